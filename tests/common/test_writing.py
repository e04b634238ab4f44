"""Files are written whole or not at all, whatever ends the process."""

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
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(",QuestionId,AnswerId\n0,7,0012\n1,8,1.50\n", id="no text needs quotes"),
        pytest.param(
            ',QuestionId,Note,AnswerId\n0,7,"a, ""b""",0012\n1,8,,1.50\n', id="a text needs quotes"
        ),
    ],
)
def test_columns_that_are_not_read_are_written_as_they_were(write: Write, text: str) -> None:
    source = file_source(write("a.csv", text))
    written = io.BytesIO()
    write_csv_to(written, read_table(source, [schema.QUESTION_ID], keep_others=True))
    assert written.getvalue().decode() == text


def test_a_failed_write_leaves_the_previous_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.zip"]
    for path in paths:
        path.write_text("previous")
    with pytest.raises(OSError, match="disk"), atomic_write(*paths) as (first, _second):
        first.write(b"half")
        raise OSError("disk")
    assert [path.read_text() for path in paths] == ["previous", "previous"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.zip"]


@pytest.mark.parametrize(
    ("name", "fault"), [("", "is a folder, exp"), ("a.csv/c.csv", "is no folder, exp")]
)
def test_neither_a_folder_nor_below_a_file_can_be_written(
    tmp_path: Path, name: str, fault: str
) -> None:
    (tmp_path / "a.csv").write_text("previous")
    with pytest.raises(InputError, match=fault), atomic_write(tmp_path / name):
        raise AssertionError("nothing is to be written")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


# A program that writes half of a file. The test replaces {then} by one more line, at which the
# program ends.
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
WAITS = "time.sleep(60)"
# The system refuses to write more than 9 bytes to a file, as it does if the disk is full.
EXCEEDS_A_LIMIT = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (9, 9)); file.write(bytes(99))"


@on_unix("such signals and limits")
@pytest.mark.parametrize("cause", ["SIGKILL", "SIGTERM", "size limit"])
def test_a_write_that_is_ended_keeps_the_previous_file(tmp_path: Path, cause: str) -> None:
    """A process replaces a file by `atomic_write`, and ends when half of the new file is written.

    The cause is a signal, or a limit on the size of files, which the process exceeds. The previous
    file must stay as it was, and no other file may stay.
    """
    path = tmp_path / "a.csv"
    path.write_text("previous")
    exceeds_limit = cause == "size limit"
    # The script writes half of the file. Its next line exceeds the limit on the size of files, or
    # waits until a signal ends the script.
    last_line = EXCEEDS_A_LIMIT if exceeds_limit else WAITS
    script = WRITES.format(then=last_line)

    process = subprocess.Popen(
        [sys.executable, "-c", script, path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    if not exceeds_limit:
        # Send the signal when half of the file is written.
        assert wait_for(lambda: any(file.stat().st_size for file in tmp_path.glob(".*.partial")))
        process.send_signal(getattr(signal, cause))
    _, error = process.communicate(timeout=PATIENCE)

    assert path.read_text() == "previous"
    if exceeds_limit:
        assert process.returncode == 2
        assert error == f"error: {path}: File too large\n"
    if cause == "SIGKILL":
        # The next write removes the half-written file.
        write_files({path: "next"})
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]
