"""Reading: what is tolerated, what is refused and how; writing: all or nothing."""

import io
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from common import layout, schema
from common.answers import read_answers
from common.errors import InputError
from common.io import (
    atomic_write,
    file_source,
    parse_json,
    read_columns,
    read_table,
    to_array,
    write_csv,
    write_csv_to,
)
from common.submission import read_template

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
        "QuestionId,IsCorrect\r7,1\r8,0\r",
        "QuestionId,IsCorrect\n\n7,1\n\r\n\n8,0\n\n",
        "QuestionId,IsCorrect\n7,True\n8,False\n",
        "QuestionId,IsCorrect\n7,TRUE\n8,0\n",
        'QuestionId,IsCorrect,Example\n7,1,"a\n\nb"\n8,0,x\n',
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
        ("QuestionId,IsCorrect,IsCorrect\n7,1,1\n", "'IsCorrect' appears twice"),
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
        (b"QuestionId,IsCorrect\n7,1\n8\xff\n", "column 'QuestionId': row 3 is not UTF-8 text"),
        ("QuestionId,IsCorrect\n7,1\n0x7,1\n", "column 'QuestionId': row 3 is '0x7', expected"),
        ("QuestionId,IsCorrect\n7,0X1\n", "column 'IsCorrect': row 2 is '0X1', expected"),
        ("QuestionId,IsCorrect\n7,1\0\n", r"row 2 holds a NUL byte: '7,1\x00'"),
        ("QuestionId,IsCorrect,Other\n7,1,\0\n", "row 2 holds a NUL byte"),
        ("QuestionId,IsCorrect\n\n7,1\n\n\n8,x\n", "column 'IsCorrect': row 6 is 'x'"),
        ("QuestionId,IsCorrect\n\n7,1\n\n\n8\n", "row 6 has 1 columns, expected 2: '8'"),
        ('QuestionId,IsCorrect,A\n7,1,"\n\n"\n8,x,\n', "column 'IsCorrect': row 3 is 'x'"),
        ('QuestionId,IsCorrect,A\n7,1,"a"\n8,1,"b\n9,1,c\n', "row 3 has a quotation mark that is"),
        ("QuestionId,IsCorrect\n7,1e400\n", "row 2 is '1e400'"),
        ("QuestionId,IsCorrect\n7," + "9" * 5000 + "\n", f"row 2 is '{'9' * 79}…', expected"),
        ("QuestionId,IsCorrect\n7," + "y" * 9_000_000 + "\n", "row 2 is longer than 1,048,576"),
        ("QuestionId,IsCorrect\n7,\x1b[2J\u2028\n", r"row 2 is '\x1b[2J', expected"),
        ("\nQuestionId,IsCorrect\n7,1\n", "row 1 is blank, expected a header"),
        ('"QuestionId,IsCorrect\n7,1\n', "row 1 cannot be read as CSV"),
        ("x" * 100_000 + ",QuestionId\n1,7\n", "row 1 is longer than 65,536 bytes"),
        ("\x1b[2J,b\n1,7\n", r"column 'QuestionId' is missing, found: \x1b[2J, b"),
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
        file_source(tmp_path / layout.TEMPLATE_TASK_1_2)
    with pytest.raises(InputError, match="is a folder"):
        file_source(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
def test_what_is_no_file_is_named_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    (tmp_path / "link.csv").symlink_to("nowhere.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    for name, fault in (
        ("circle.csv", "cannot be read (Too many levels of symbolic links)"),
        ("link.csv", "is a link to nowhere.csv, which does not exist"),
        ("pipe.csv", "is a pipe or a device, expected a file"),
        ("x" * 300, "cannot be read (File name too long)"),
    ):
        with pytest.raises(InputError) as raised:
            file_source(tmp_path / name)
        assert str(raised.value) == f"{tmp_path / name}: {fault}"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["7,1", "8,0", "", '9,"1"', '9,"\n\n1"']), max_size=12))
def test_rows_are_numbered_as_in_the_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str]
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "a.csv"
    path.write_text("\n".join(["QuestionId,IsCorrect", *rows, "wrong,1", ""]))
    with pytest.raises(InputError, match=f"'QuestionId': row {len(rows) + 2} is 'wrong'"):
        read_columns(path, [schema.QUESTION_ID])
    data_rows = [number for number, row in enumerate(rows, 2) if row]
    source = file_source(path)
    assert [source.row_number(index) for index in range(len(data_rows))] == data_rows


def test_arrays_may_be_written_to(write: Write) -> None:
    """Without a copy where the file is read in one piece, and without touching a template."""
    path = write("a.csv", "UserId,QuestionId,IsCorrect\n1,7,1\n2,8,0\n")
    for array in read_columns(path, COLUMNS).values():
        array += 1
    answers = read_answers(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.from_numpy(answers.student)
    template = read_template(path)
    template.question[:] = 0
    assert template.table["QuestionId"].to_pylist() == [7, 8]
    table = pa.table({"a": pa.array([1, 2, 3], pa.int32())}).slice(1)
    array = to_array(table["a"])
    array[0] = 9
    assert array.tolist() == [9, 3]
    assert to_array(pa.chunked_array([[1], [2]])).flags.writeable


def test_only_what_json_is_is_read() -> None:
    assert parse_json('{"a": [1, "\u2028"]}') == {"a": [1, "\u2028"]}
    for text in ("", "[" * 200_000, "9" * 5000, "{'a': 1}"):
        with pytest.raises(ValueError):
            parse_json(text)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_file_that_may_not_be_read(write: Write) -> None:
    path = write("a.csv", "QuestionId\n1\n")
    path.chmod(0)
    with pytest.raises(InputError, match=r"a\.csv: cannot be read \(Permission denied\)"):
        read_columns(path, [schema.QUESTION_ID])


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


def test_failed_write_leaves_the_previous_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.zip"]
    for path in paths:
        path.write_text("previous")
    with pytest.raises(OSError, match="disk"), atomic_write(*paths) as (first, _second):
        first.write(b"half")
        raise OSError("disk")
    assert [path.read_text() for path in paths] == ["previous", "previous"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.csv", "b.zip"]


def test_no_folder_is_written_over_and_no_file_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, expected in (
        (tmp_path, "is a folder, expected the name of a file to write$"),
        (tmp_path / "file/below/a.csv", r"file: is no folder, expected one to write a\.csv to$"),
    ):
        with pytest.raises(InputError, match=expected), atomic_write(path):
            raise AssertionError("nothing is to be written")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


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


def test_no_command_is_named_for_a_file_that_none_makes() -> None:
    """A slip in a file's name is not a missing official file."""
    command = "`python data/generate_sample.py` simulates one"
    assert command in layout.where_to_get(layout.TRAIN_DIR / layout.TRAIN_TASK_1_2)
    assert layout.where_to_get(layout.TRAIN_DIR / "train_task_1_2_mine.csv") == ""
    command = "`python -m common.templates` builds it"
    assert command in layout.where_to_get(layout.TEMPLATE_DIR / layout.TEMPLATE_TASK_1_2)
    assert command in layout.where_to_get(layout.TEMPLATE_DIR / layout.TEMPLATE_TASK_3)
    assert layout.where_to_get(layout.TEMPLATE_DIR / "submision.csv") == ""
