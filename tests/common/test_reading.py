"""Reading a CSV file: what is accepted, what is refused, and with which message."""

import os
from pathlib import Path

from common import schema
from common.errors import InputError
from common.reading import file_source, read_table

import pytest
from conftest import Write
from platforms import on_unix
from run_scripts import ROOT

READERS = pytest.mark.usefixtures("each_reader")
COLUMNS = (schema.QUESTION_ID, schema.IS_CORRECT)
TOP = "QuestionId,IsCorrect\n"


@READERS
@pytest.mark.parametrize(
    "content",
    [
        "\ufeffQuestionId,IsCorrect\r\n7,1\r\n8,0",
        "IsCorrect,Other,QuestionId\n1,x,7\n0,,8\n",
        ",QuestionId,IsCorrect\n0,7,1\n1,8,0\n",
        "QuestionId,IsCorrect\n7.0,1.0\n8,0.0\n",
        '"QuestionId",IsCorrect\n"7","1"\n 8 , 0\n',
        "QuestionId,IsCorrect\r7,1\r8,0\r",
        "QuestionId,IsCorrect\n\n7,1\n\r\n\n8,0\n\n",
        "QuestionId,IsCorrect\n7,TRUE\n8,False\n",
        'QuestionId,IsCorrect,Example\n7,1,"a\n\nb"\n8,0,x\n',
    ],
)
def test_tolerates_how_a_file_is_written(write: Write, content: str) -> None:
    data = read_table(write("a.csv", content), COLUMNS)
    assert data["QuestionId"].tolist() == [7, 8]
    assert data["IsCorrect"].tolist() == [1, 0]
    assert [str(dtype) for dtype in data.dtypes] == ["int32", "int8"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("\n", "is empty"),
        (TOP, "holds a header but no rows"),
        ("QuestionId\n7\n", "column 'IsCorrect' is missing, found: QuestionId"),
        ("QuestionId,iscorrect\n7,1\n", "is it 'iscorrect'?"),
        ("QuestionId,IsCorrect,IsCorrect\n7,1,1\n", "'IsCorrect' appears twice"),
        (TOP + "7,1\n8,no\n9,0\n4,yes\n", "row 3 is 'no'; row 5 is 'yes', expected a whole"),
        (TOP + "-7,1\n", "column 'QuestionId': row 2 is '-7', expected"),
        (TOP + "7,0.7\n", "row 2 is '0.7'"),
        (TOP + "7,\n8,1\n", "column 'IsCorrect': row 2 is empty"),
        # As many commas in all as there should be, and none of them before what is read.
        (TOP[:-1] + ",A\n7,1\n8,0,a,b\n", "row 2 has 2 columns, expected 3: '7,1' (2"),
        (TOP[:-1] + ",A\n7,1\r8,1\n9,1,a\n", "row 2 has 2 columns, expected 3: '7,1' (2"),
        (TOP + "7,5\n" * 9, "row 4 is '5' and 6 more rows, expected"),
        (b"QuestionId,IsCorrect\n7,\xff\n", "column 'IsCorrect': row 2 is not UTF-8 text"),
        (TOP + "7,1\n0x7,1\n", "column 'QuestionId': row 3 is '0x7', expected"),
        (TOP + "7,1\0\n", r"row 2 holds a NUL byte: '7,1\x00'"),
        (TOP + "\n7,1\n\n\n8\n", "row 6 has 1 columns, expected 2: '8'"),
        # As spreadsheets number rows.
        ('QuestionId,IsCorrect,A\n7,1,"a\n\nb"\nx,1,c\n', "row 3 is 'x', expected"),
        ('QuestionId,IsCorrect,A\n7,1,"a"\n8,1,"b\n9,1,c\n', "row 3 has a quotation mark that is"),
        (TOP + "7," + "9" * 200_000 + "\n", f"row 2 is '{'9' * 79}…', expected"),
        (TOP + "7,\x1b[2J\u2028\n", r"row 2 is '\x1b[2J', expected"),
        ("\n" + TOP + "7,1\n", "row 1 is blank, expected a header"),
        ("x" * 100_000 + ",QuestionId\n1,7\n", "row 1 is longer than 65,536 bytes"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "row 1 is not UTF-8 text"),
    ],
)
@READERS
def test_says_what_is_wrong(write: Write, content: str | bytes, expected: str) -> None:
    path = write("a.csv", content)
    with pytest.raises(InputError) as raised:
        read_table(path, COLUMNS)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert expected in message
    assert "\n" not in message


@READERS
def test_files_without_a_header_count_rows_from_1(write: Write) -> None:
    def read(content: str) -> list[list[int]]:
        source = file_source(write("a.csv", content), ("user", "item"))
        found = read_table(source, (schema.Column("user"), schema.Column("item")))
        return found.to_numpy().tolist()

    for content in ("1,2\n3,4\n", "\ufeff1,2\r\n3,4"):
        assert read(content) == [[1, 2], [3, 4]]
    for content, fault in (("1,2\nx,4\n", "'user': row 2 is 'x'"), ("1\n", "row 1 has 1 columns")):
        with pytest.raises(InputError, match=fault):
            read(content)


@on_unix("named pipes among its files")
def test_what_is_no_file_is_named_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    (tmp_path / "link.csv").symlink_to("nowhere.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    made = "file not found; `python task_1/local_data_split.py` makes it"
    for name, fault in (
        ("circle.csv", "cannot be read (Too many levels of symbolic links)"),
        ("link.csv", "is a link to nowhere.csv, which does not exist"),
        ("pipe.csv", "is a pipe or a device, expected a file"),
        ("", "is a folder, expected a file"),
        ("slip.csv", "file not found; the folder holds circle.csv, link.csv, pipe.csv"),
        ("valid_task_1_2.csv", made),
        ("no/valid_task_1_2.csv", f"file not found; the folder {tmp_path}/no does not exist"),
        # As in a new clone, which has no data.
        (f"{ROOT}/no/valid_task_1_2.csv", made),
    ):
        with pytest.raises(InputError) as raised:
            file_source(tmp_path / name)
        assert str(raised.value) == f"{tmp_path / name}: {fault}"
