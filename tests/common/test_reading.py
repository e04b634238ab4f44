"""Reading CSV files: which forms are accepted, and which message refuses a fault."""

import os
from pathlib import Path

from common import schema
from common.errors import InputError
from common.reading import file_source, read_table, read_valid_rows

import pandas as pd
import pytest
from conftest import Write
from platforms import on_unix
from run_scripts import ROOT

# A test with this mark runs twice: pandas reads the CSV files in one run, and pyarrow in the other.
READERS = pytest.mark.usefixtures("each_reader")
COLUMNS = (schema.QUESTION_ID, schema.IS_CORRECT)
HEADER = "QuestionId,IsCorrect\n"


@READERS
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(
            "\ufeffQuestionId,IsCorrect\r\n7,1\r\n8,0", id="byte-order mark, no last line end"
        ),
        pytest.param("IsCorrect,Other,QuestionId\n1,x,7\n0,,8\n", id="another order of columns"),
        pytest.param(",QuestionId,IsCorrect\n0,7,1\n1,8,0\n", id="row numbers without a name"),
        pytest.param("QuestionId,IsCorrect\n7.0,1.0\n8,0.0\n", id="decimal places"),
        pytest.param('"QuestionId",IsCorrect\n"7","1"\n 8 , 0\n', id="quotes and spaces"),
        pytest.param("QuestionId,IsCorrect\r7,1\r8,0\r", id="CR as line end"),
        pytest.param("QuestionId,IsCorrect\n\n7,1\n\r\n\n8,0\n\n", id="blank lines"),
        pytest.param("QuestionId,IsCorrect\n7,1\n8,0\n,\n\n,\r\n", id="empty rows at the end"),
        pytest.param("QuestionId,IsCorrect\n7,1\n8,0\n,,,\n,", id="longer empty rows at the end"),
        pytest.param("QuestionId,IsCorrect\n7,TRUE\n8,False\n", id="TRUE and False"),
        pytest.param(
            'QuestionId,IsCorrect,Example\n7,1,"a\n\nb"\n8,0,x\n', id="line ends in quotes"
        ),
    ],
)
def test_a_file_may_be_written_in_many_forms(write: Write, content: str) -> None:
    data = read_table(write("a.csv", content), COLUMNS)
    assert data["QuestionId"].tolist() == [7, 8]
    assert data["IsCorrect"].tolist() == [1, 0]
    assert [str(dtype) for dtype in data.dtypes] == ["int32", "int8"]


@READERS
@pytest.mark.parametrize(
    ("number", "is_read"),
    [
        # numpy.savetxt writes 1234567 in the first form, R writes 100000 in the second form, and a
        # spreadsheet shows 12345 in the third form. None of these forms loses a digit.
        ("1.234567000000000000e+06", True),
        ("1e+05", True),
        ("1.2345E+04", True),
        ("1.23457E+06", False),
        ("1.2E+06", False),
    ],
)
def test_a_number_with_an_exponent_is_read_if_no_digit_is_lost(
    write: Write, number: str, is_read: bool
) -> None:
    """A number with decimals is refused if its exponent exceeds the number of its decimals.

    1.2345E+04 has four decimals and is read as 12345. 1.2E+06 has only one decimal: a spreadsheet
    may have shortened any number near 1,200,000 to this form, as the message says. A number without
    decimals, such as 1e+05, is read as a round number.
    """
    # A column of QuizIds may have empty cells, so pandas first reads its numbers as floats.
    for column in (schema.QUESTION_ID, schema.QUIZ_ID):
        path = write("a.csv", f"{column.name}\n3\n{number}\n")
        if is_read:
            values = read_table(path, (column,))[column.name].tolist()
            assert values == [3, int(float(number))]
        else:
            with pytest.raises(InputError, match="shortened the numbers"):
                read_table(path, (column,))


@READERS
def test_dates_with_a_time_zone_are_read_as_utc(write: Write) -> None:
    """A date is read in UTC, to the minute; a date without a time zone counts as UTC."""
    # The date that is read, by the cell in the file.
    date_by_cell = {
        "2020-02-11 14:05:00.000": "2020-02-11T14:05",
        "2020-02-11T14:05:00Z": "2020-02-11T14:05",
        "2020-02-11 14:05 UTC": "2020-02-11T14:05",
        "2020-02-11 14:05:59.123+01:00": "2020-02-11T13:05",
        "2020-02-29 20:30:00-0530": "2020-03-01T02:00",
        "2020-01-01 00:59:00+01": "2019-12-31T23:59",
    }
    lines = ["DateAnswered", *date_by_cell]
    path = write("a.csv", "\n".join(lines) + "\n")
    dates = read_table(path, (schema.DATE_ANSWERED,))["DateAnswered"]
    assert dates.tolist() == [pd.Timestamp(date) for date in date_by_cell.values()]


@pytest.mark.parametrize("cell", ["2020-02-11Z", "2020-02-11 14:05 CET", "2020-02-11 14:05+25:00"])
def test_another_time_zone_is_refused(write: Write, cell: str) -> None:
    path = write("a.csv", f"DateAnswered\n{cell}\n")
    with pytest.raises(InputError, match="column 'DateAnswered': row 2 is '2020-02-11"):
        read_table(path, (schema.DATE_ANSWERED,))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("\n", "is empty"),
        (HEADER, "holds a header but no rows"),
        ("QuestionId\n7\n", "column 'IsCorrect' is missing, found: QuestionId"),
        ("QuestionId,iscorrect\n7,1\n", "; rename the column 'iscorrect' to 'IsCorrect'"),
        ("QuestionId, IsCorrect\n7,1\n", "; rename the column ' IsCorrect' to 'IsCorrect'"),
        ("QuestionId,IsCorect\n7,1\n", "; is it 'IsCorect'?"),
        ("QuestionId,IsCorrect,IsCorrect\n7,1,1\n", "'IsCorrect' appears twice"),
        (HEADER + "7,1\n8,no\n9,0\n4,yes\n", "row 3 is 'no'; row 5 is 'yes', expected a whole"),
        (HEADER + "-7,1\n", "column 'QuestionId': row 2 is '-7', expected"),
        (HEADER + "7,0.7\n", "row 2 is '0.7'"),
        (HEADER + "7,\n8,1\n", "column 'IsCorrect': row 2 is empty"),
        (
            HEADER + "7,1\n,\n,\n8,1\n,\n",
            "'QuestionId': row 3 is empty; row 4 is empty, exp",
        ),
        (HEADER + ",\n,\n", "holds a header but no rows"),
        (HEADER + "7,1\n1.23457E+06,1\n", "row 3 is '1.23457E+06', expected a whole number"),
        (HEADER + "1.23457E+06,1\n", "a spreadsheet has shortened the numbers: save the column"),
        (HEADER + '"1,23457E+06",1\n', "a spreadsheet has shortened the numbers: save the column"),
        # One row lacks a column and another row has a column too many. The number of commas in the
        # whole file is right, so that counting them would not reveal the faults.
        (HEADER[:-1] + ",A\n7,1\n8,0,a,b\n", "row 2 has 2 columns, expected 3: '7,1' (2"),
        (HEADER[:-1] + ",A\n7,1\r8,1\n9,1,a\n", "row 2 has 2 columns, expected 3: '7,1' (2"),
        (HEADER + "7,5\n" * 9, "row 4 is '5' and 6 more rows, expected"),
        (b"QuestionId,IsCorrect\n7,\xff\n", "column 'IsCorrect': row 2 is not UTF-8 text"),
        (HEADER + "7,1\n0x7,1\n", "column 'QuestionId': row 3 is '0x7', expected"),
        (HEADER + "7,1\0\n", r"row 2 holds a NUL byte: '7,1\x00'"),
        (HEADER + "\n7,1\n\n\n8\n", "row 6 has 1 columns, expected 2: '8'"),
        # Rows are numbered as in a spreadsheet, where a quoted cell with line ends is one cell.
        ('QuestionId,IsCorrect,A\n7,1,"a\n\nb"\nx,1,c\n', "row 3 is 'x', expected"),
        ('QuestionId,IsCorrect,A\n7,1,"a"\n8,1,"b\n9,1,c\n', "row 3 has a quotation mark that is"),
        (HEADER + "7," + "9" * 200_000 + "\n", f"row 2 is '{'9' * 79}…', expected"),
        (HEADER + "7,\x1b[2J\u2028\n", r"row 2 is '\x1b[2J', expected"),
        ("\n" + HEADER + "7,1\n", "row 1 is blank, expected a header"),
        ("x" * 100_000 + ",QuestionId\n1,7\n", "row 1 is longer than 65,536 bytes"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "row 1 is not UTF-8 text"),
    ],
)
@READERS
def test_a_fault_is_told_in_one_line_with_its_row_and_value(
    write: Write, content: str | bytes, expected: str
) -> None:
    path = write("a.csv", content)
    with pytest.raises(InputError) as raised:
        read_table(path, COLUMNS)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert expected in message
    assert "\n" not in message


@READERS
def test_the_error_for_a_fault_does_not_keep_the_exception_of_the_quick_reader(
    write: Write,
) -> None:
    path = write("a.csv", HEADER + "7,1\n8,x\n")
    with pytest.raises(InputError, match="row 3 is 'x'") as raised:
        read_table(path, COLUMNS)
    # The quick reader fails first. Its exception has a traceback that keeps the half-read columns
    # in memory. The error that the user sees must not have this exception as its context.
    assert raised.value.__context__ is None


@READERS
def test_valid_rows_are_read_without_the_faulty_ones(write: Write) -> None:
    path = write("a.csv", HEADER + "7,1\n8\n9,right\n,0\n3.5,0\n6,0\n")
    assert read_valid_rows(file_source(path), COLUMNS).to_numpy().tolist() == [[7, 1], [6, 0]]


def test_a_file_that_lacks_a_column_has_no_valid_rows(write: Write) -> None:
    path = write("a.csv", "QuestionId\n7\n")
    assert read_valid_rows(file_source(path), COLUMNS).empty


def read_without_header(path: Path) -> list[list[int]]:
    """Read a file of two columns without a header."""
    source = file_source(path, ("user", "item"))
    table = read_table(source, (schema.Column("user"), schema.Column("item")))
    rows: list[list[int]] = table.to_numpy().tolist()
    return rows


@READERS
@pytest.mark.parametrize("content", ["1,2\n3,4\n", "\ufeff1,2\r\n3,4"])
def test_a_file_without_a_header_is_read(write: Write, content: str) -> None:
    assert read_without_header(write("a.csv", content)) == [[1, 2], [3, 4]]


@READERS
@pytest.mark.parametrize(
    ("content", "fault"),
    [("1,2\nx,4\n", "'user': row 2 is 'x'"), ("1\n", "row 1 has 1 columns")],
)
def test_rows_of_a_file_without_a_header_are_counted_from_1(
    write: Write, content: str, fault: str
) -> None:
    with pytest.raises(InputError, match=fault):
        read_without_header(write("a.csv", content))


MADE_BY_SPLIT = "file not found; `python task_1/local_data_split.py` makes it"


@on_unix("named pipes among its files")
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("circle.csv", "cannot be read (Too many levels of symbolic links)"),
        ("link.csv", "is a link to nowhere.csv, which does not exist"),
        ("pipe.csv", "is a pipe or a device, expected a file"),
        ("", "is a folder, expected a file"),
        ("slip.csv", "file not found; the folder holds circle.csv, link.csv, pipe.csv"),
        ("slip", "file not found; the folder holds numpy, pytorch"),
        ("valid_task_1_2.csv", MADE_BY_SPLIT),
        ("no/valid_task_1_2.csv", "file not found; the folder {tmp}/no does not exist"),
        # For a folder of data in the kit, the message does not say that the folder is missing: a
        # new clone of the kit has no such folders.
        (f"{ROOT}/no/valid_task_1_2.csv", MADE_BY_SPLIT),
    ],
)
def test_a_path_that_leads_to_no_file_is_refused_with_the_reason(
    tmp_path: Path, name: str, fault: str
) -> None:
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    (tmp_path / "link.csv").symlink_to("nowhere.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    for folder in ("numpy", "pytorch", "__pycache__", ".hidden"):
        (tmp_path / folder).mkdir()
    with pytest.raises(InputError) as raised:
        file_source(tmp_path / name)
    assert str(raised.value) == f"{tmp_path / name}: {fault.format(tmp=tmp_path)}"
