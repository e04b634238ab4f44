"""Writing files: all of them or none, whatever ends the process; CSV as it was read."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

from common import schema
from common.errors import InputError
from common.reading import file_source, read_table
from common.writing import atomic_write, write_csv_to, write_files

import pytest
from conftest import Write
from platforms import on_unix
from run_scripts import PATIENCE, ROOT, wait_for


@pytest.mark.usefixtures("each_reader")
def test_other_columns_pass_through_as_they_stand(write: Write) -> None:
    """Only a text that needs quotes gets them."""
    plain = ",QuestionId,AnswerId\n0,7,0012\n1,8,1.50\n"
    mixed = ',QuestionId,Note,AnswerId\n0,7,"a, ""b""",0012\n1,8,,1.50\n'
    for rows in (plain, mixed):
        source = file_source(write("a.csv", rows))
        written = io.BytesIO()
        write_csv_to(written, read_table(source, [schema.QUESTION_ID], keep_others=True))
        assert written.getvalue().decode() == rows


def test_failed_write_leaves_the_previous_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.zip"]
    for path in paths:
        path.write_text("previous")
    with pytest.raises(OSError, match="disk"), atomic_write(*paths) as (first, _second):
        first.write(b"half")
        raise OSError("disk")
    assert [path.read_text() for path in paths] == ["previous", "previous"]
    # No folder is written over, and no file taken for one.
    for path, fault in ((tmp_path, "is a folder, exp"), (paths[0] / "c.csv", "is no folder, exp")):
        with pytest.raises(InputError, match=fault), atomic_write(path):
            raise AssertionError("nothing is to be written")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.csv", "b.zip"]


WRITES = """
import sys, time
from pathlib import Path
from common import cli, writing
def main():
    with writing.atomic_write(Path(sys.argv[1])) as (file,):
        file.write(b"half")
        file.flush()
        {then}
cli.run(main)
"""
FILLS_THE_DISK = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (9, 9)); file.write(bytes(99))"


@on_unix("such signals and limits")
@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "full disk"])
def test_a_write_that_is_ended_keeps_the_previous_file(tmp_path: Path, end: str) -> None:
    path, is_full = tmp_path / "a.csv", end == "full disk"
    path.write_text("previous")
    script = WRITES.format(then=FILLS_THE_DISK if is_full else "time.sleep(60)")
    process = subprocess.Popen(
        [sys.executable, "-c", script, path],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    if not is_full:
        assert wait_for(lambda: any(e.stat().st_size for e in tmp_path.glob(".*.partial")))
        process.send_signal(getattr(signal, end))
    said = process.communicate(timeout=PATIENCE)[1]
    assert path.read_text() == "previous"
    if is_full:
        assert (process.returncode, said) == (2, f"error: {path}: File too large\n")
    if end == "SIGKILL":
        # What was half-written goes with the next write.
        write_files({path: "next"})
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]
