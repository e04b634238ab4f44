"""Reading: what is tolerated, what is refused and how; writing: all or nothing."""

import io
import os
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import layout, schema
from common.errors import InputError
from common.io import (
    atomic_write,
    file_source,
    read_columns,
    read_table,
    write_csv,
    write_csv_to,
    zip_source,
)

Write = Callable[[str, str | bytes], Path]
COLUMNS = (schema.QUESTION_ID, schema.IS_CORRECT)
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "content",
    [
        "QuestionId,IsCorrect\n7,1\n8,0\n",
        "QuestionId,IsCorrect\r\n7,1\r\n8,0\r\n",
        "\ufeffQuestionId,IsCorrect\n7,1\n8,0\n",
        "\ufeffQuestionId,IsCorrect\r\n7,1\r\n8,0",
        "IsCorrect,Other,QuestionId\n1,x,7\n0,,8\n",
        ",QuestionId,IsCorrect\n0,7,1\n1,8,0\n",
        "QuestionId,IsCorrect\n7.0,1.0\n8,0.0\n",
        'QuestionId,IsCorrect\n"7","1"\n 8 , 0\n',
        '"QuestionId","IsCorrect"\n7,1\n8,0\n',
    ],
)
def test_tolerates_how_a_file_is_written(write: Write, content: str) -> None:
    data = read_columns(write("a.csv", content), COLUMNS)
    assert data["QuestionId"].tolist() == [7, 8]
    assert data["IsCorrect"].tolist() == [1, 0]
    assert data["QuestionId"].dtype == np.int32
    assert data["IsCorrect"].dtype == np.int8


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("QuestionId,IsCorrect\n", "holds a header but no rows"),
        ("QuestionId\n7\n", "column 'IsCorrect' is missing, found: QuestionId"),
        ("QuestionId,iscorrect\n7,1\n", "is it 'iscorrect'?"),
        ("QuestionId;IsCorrect\n7;1\n", "column 'QuestionId' is missing"),
        ("QuestionId,IsCorrect,IsCorrect\n7,1,1\n", "'IsCorrect' stands twice"),
        (
            "QuestionId,IsCorrect\n7,1\n8,right\n9,0\n4,wrong\n",
            "column 'IsCorrect': row 3 is 'right'; row 5 is 'wrong', expected a whole number "
            "from 0 to 1",
        ),
        ("QuestionId,IsCorrect\n7,2\n", "column 'IsCorrect': row 2 is '2', expected"),
        ("QuestionId,IsCorrect\n7,900\n", "column 'IsCorrect': row 2 is '900', expected"),
        ("QuestionId,IsCorrect\n-7,1\n", "column 'QuestionId': row 2 is '-7', expected"),
        ("QuestionId,IsCorrect\n7,0.7\n", "row 2 is '0.7'"),
        ("QuestionId,IsCorrect\n7,NaN\n", "row 2 is 'NaN'"),
        ("QuestionId,IsCorrect\n7,inf\n", "row 2 is 'inf'"),
        ("QuestionId,IsCorrect\n7,\n8,1\n", "column 'IsCorrect': row 2 is empty"),
        ("QuestionId,IsCorrect\n1e99,1\n", "row 2 is '1e99'"),
        ("QuestionId,IsCorrect\n7,1\n8\n", "row 3 has 1 columns, expected 2: '8'"),
        ("QuestionId,IsCorrect\n7,1\n8,1,1\n", "row 3 has 3 columns, expected 2"),
        ("QuestionId,IsCorrect\n" + "7,5\n" * 9, "row 4 is '5' and 6 more rows, expected"),
        (b"QuestionId,IsCorrect\n7,\xff\n", "column 'IsCorrect': row 2 is not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "row 1 is not UTF-8 text"),
    ],
)
def test_says_what_is_wrong(write: Write, content: str | bytes, expected: str) -> None:
    path = write("a.csv", content)
    with pytest.raises(InputError) as raised:
        read_columns(path, COLUMNS)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert expected in message
    assert "\n" not in message


def test_empty_cells_where_they_are_allowed(write: Write) -> None:
    column = schema.expert_judgement("T1_ALR")
    path = write("a.csv", "left,T1_ALR\n1,2.0\n2,\n3,1\n")
    assert np.array_equal(read_columns(path, [column])["T1_ALR"], [2, np.nan, 1], equal_nan=True)
    path = write("b.csv", "left,T1_ALR\n1,2.0\n2,\n3,1.5\n")
    with pytest.raises(
        InputError, match=r"row 4 is '1\.5', expected a whole number from 1 to 2 or"
    ):
        read_columns(path, [column])
    path = write("c.csv", "left,T1_ALR\n1,2.0\n2,nan\n")
    with pytest.raises(InputError, match="row 3 is 'nan'"):
        read_columns(path, [column])


def test_missing_files_say_where_to_get_them(tmp_path: Path, write: Write) -> None:
    with pytest.raises(InputError, match=r"nowhere does not exist"):
        file_source(tmp_path / "nowhere" / "a.csv")
    write("train_task_1_2.csv", "x")
    with pytest.raises(InputError, match=r"the folder holds train_task_1_2\.csv"):
        file_source(tmp_path / "trian_task_1_2.csv")
    with pytest.raises(InputError, match=r"python task_1/local_data_split\.py` makes it"):
        file_source(tmp_path / "valid_task_1_2.csv")
    with pytest.raises(InputError, match=r"python -m common\.templates` builds it"):
        file_source(layout.TEMPLATE_DIR / "submission_task_9.csv")
    with pytest.raises(InputError, match="is a folder"):
        file_source(tmp_path)


def test_other_columns_pass_through_as_they_stand(write: Write) -> None:
    rows = ',QuestionId,Note,AnswerId\n0,7,"a, ""b""",0012\n1,8,,1.50\n'
    table = read_table(file_source(write("a.csv", rows)), [schema.QUESTION_ID], keep_others=True)
    written = io.BytesIO()
    write_csv_to(written, table)
    header, first, second = written.getvalue().decode().splitlines()
    assert header == ",QuestionId,Note,AnswerId"
    # Only a text that needs quotes makes the whole file quoted; the texts themselves are kept.
    assert first == '"0",7,"a, ""b""","0012"'
    assert second == '"1",8,"","1.50"'


def test_columns_without_special_characters_stay_unquoted(write: Write) -> None:
    content = ",QuestionId,AnswerId\n0,7,0012\n1,8,1.50\n"
    table = read_table(file_source(write("a.csv", content)), [schema.QUESTION_ID], keep_others=True)
    path = write("b.csv", "")
    write_csv(path, table)
    assert path.read_text() == content


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9_999_999), st.integers(0, 1)), min_size=1, max_size=50))
def test_writing_and_reading_are_inverse(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.mktemp("inverse") / "a.csv"
    question, is_correct = (np.array(column) for column in zip(*rows, strict=True))
    write_csv(path, {"QuestionId": question, "IsCorrect": is_correct})
    data = read_columns(path, COLUMNS)
    assert np.array_equal(data["QuestionId"], question)
    assert np.array_equal(data["IsCorrect"], is_correct)


def make_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, "holds 0 files (nothing), expected only submission_task_1.csv at the top level"),
        ({"submission.csv": b"x"}, "holds submission.csv, expected only submission_task_1.csv"),
        ({"a/submission_task_1.csv": b"x"}, "holds a folder (a/submission_task_1.csv)"),
        ({"submission_task_1.zip": b"x"}, "holds another zip (submission_task_1.zip)"),
        ({"submission_task_1.csv": b"x", "b.csv": b"y"}, "holds 2 files"),
    ],
)
def test_zip_must_hold_only_the_submission(
    tmp_path: Path, members: dict[str, bytes], expected: str
) -> None:
    path = make_zip(tmp_path / "a.zip", members)
    with pytest.raises(InputError) as raised:
        zip_source(path, "submission_task_1.csv")
    assert expected in str(raised.value)


def test_damaged_zip(tmp_path: Path, write: Write) -> None:
    with pytest.raises(InputError, match="is not a zip file"):
        zip_source(write("a.zip", "QuestionId\n1\n"), "submission_task_1.csv")
    path = make_zip(tmp_path / "b.zip", {"submission_task_1.csv": b"QuestionId,UserId\n" * 50})
    content = bytearray(path.read_bytes())
    content[100] ^= 255
    path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        zip_source(path, "submission_task_1.csv")


def test_failed_write_leaves_the_previous_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.zip"]
    for path in paths:
        path.write_text("previous")
    with pytest.raises(OSError, match="disk"), atomic_write(*paths) as (first, _second):
        first.write(b"half")
        raise OSError("disk")
    assert [path.read_text() for path in paths] == ["previous", "previous"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.csv", "b.zip"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
def test_full_disk_is_one_line_and_keeps_the_previous_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("previous")
    script = f"""
        import resource
        from pathlib import Path
        import numpy as np
        from common import cli, io
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        cli.run(lambda: io.write_csv(Path({str(path)!r}), {{"QuestionId": np.arange(10_000)}}))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]
    assert path.read_text() == "previous"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("kill", ["SIGKILL", "SIGTERM"])
def test_killed_write_keeps_the_previous_file(tmp_path: Path, kill: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("previous")
    script = f"""
        import time
        from pathlib import Path
        from common import cli, io
        def main():
            with io.atomic_write(Path({str(path)!r})) as (file,):
                file.write(b"half")
                file.flush()
                time.sleep(60)
        cli.run(main)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    deadline = time.monotonic() + 30
    while not any(
        entry.suffix == ".partial" and entry.stat().st_size for entry in tmp_path.iterdir()
    ):
        assert time.monotonic() < deadline, "the write never started"
        time.sleep(0.02)
    process.send_signal(getattr(signal, kill))
    process.wait(timeout=30)
    assert path.read_text() == "previous"
    if kill == "SIGTERM":
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]
