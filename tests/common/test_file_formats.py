"""The first bytes of a file show its format: some formats are read, others refused by name."""

import gzip
import io
import pickle
import zipfile
from collections.abc import Callable

from common import file_formats, row_sketches, schema
from common.errors import InputError
from common.file_formats import describe_format, needs_conversion
from common.reading import file_source, read_header, read_table
from common.zips import zip_source

import numpy as np
import pytest
from conftest import Write

READERS = pytest.mark.usefixtures("each_reader")
COLUMNS = (schema.QUESTION_ID, schema.IS_CORRECT)
TEXT = "QuestionId,IsCorrect,Text\n7,1,naïve\n8,0,π 𝟙\n"


def as_workbook(text: str) -> bytes:
    """Return the beginning of a workbook: a zip with the folder xl/."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("[Content_Types].xml", "")
        archive.writestr("xl/worksheets/sheet1.xml", text)
    return content.getvalue()


def as_zip(text: str) -> bytes:
    """Return a zip that holds a CSV."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.csv", text)
    return content.getvalue()


def as_array(text: str) -> bytes:
    """Return the content of a NumPy file that holds an array with this text."""
    content = io.BytesIO()
    np.save(content, np.array([text]))
    return content.getvalue()


# ---- What is read --------------------------------------------------------------------------------

CONVERSIONS: dict[str, Callable[[str], bytes]] = {
    "UTF-16 with a mark": lambda text: text.encode("utf-16"),
    "big-endian with a mark": lambda text: f"\ufeff{text}".encode("utf-16-be"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "big-endian without a mark": lambda text: text.encode("utf-16-be"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip of UTF-16": lambda text: gzip.compress(text.encode("utf-16")),
    "gzip in two parts": lambda text: (
        gzip.compress(text[:40].encode()) + gzip.compress(text[40:].encode())
    ),
}


@READERS
@pytest.mark.parametrize("convert", CONVERSIONS.values(), ids=CONVERSIONS)
def test_utf_16_and_gzip_are_read_as_text(write: Write, convert: Callable[[str], bytes]) -> None:
    content = convert(TEXT)
    assert needs_conversion(content)
    path = write("a.csv", content)
    data = read_table(path, COLUMNS, keep_others=True)
    assert data["QuestionId"].tolist() == [7, 8]
    assert data["IsCorrect"].tolist() == [1, 0]
    assert data["Text"].tolist() == ["naïve", "π 𝟙"]
    assert file_source(path).row_number(1) == 3


def test_a_large_file_is_converted_piece_by_piece(write: Write) -> None:
    """A piece may end inside a character. In UTF-16, it has two bytes, or four such as 𝟙."""
    n = 200_000
    rows = "".join(f"{k},{'𝟙' * (k % 7)}\n" for k in range(n))
    text = f"QuestionId,Text\n{rows}"
    for content in (text.encode("utf-16"), gzip.compress(text.encode(), 1)):
        data = read_table(write("a.csv", content), (schema.QUESTION_ID,), keep_others=True)
        assert data["QuestionId"].tolist() == [*range(n)]
        assert data["Text"].str.len().tolist() == [k % 7 for k in range(n)]


def test_a_csv_in_a_zip_may_be_utf_16(write: Write) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.csv", TEXT.encode("utf-16"))
    source = zip_source(write("a.zip", content.getvalue()), "a.csv", max_size=1000)
    assert read_table(source, COLUMNS)["QuestionId"].tolist() == [7, 8]


def test_simulated_answers_are_recognised_in_utf_16_and_gzip(write: Write) -> None:
    """Scores on simulated answers are marked as simulated, even if a user has converted the file.

    To recognise a converted copy, the kit compares its rows with hashes of the rows of the
    simulated file (the file's sketch).
    """
    header = "UserId,QuestionId,IsCorrect\n"
    rng = np.random.default_rng(0)
    is_right = [int(rng.integers(2)) for _ in range(2000)]
    pairs = [f"{number % 90},{number // 90}" for number in range(2000)]
    rows = [f"{pair},{right}\n" for pair, right in zip(pairs, is_right, strict=True)]
    simulated = header + "".join(rows)
    known = {"train.csv": row_sketches.sketch(write("train.csv", simulated))}
    for name in ("UTF-16 with a mark", "gzip"):
        copy = write("copy.csv", CONVERSIONS[name](simulated))
        assert row_sketches.is_known(copy, [known])
    # A file with the same students and questions, but other outcomes, is not a copy.
    swapped_rows = [f"{pair},{1 - right}\n" for pair, right in zip(pairs, is_right, strict=True)]
    swapped = header + "".join(swapped_rows)
    assert not row_sketches.is_known(write("copy.csv", swapped.encode("utf-16")), [known])


# ---- What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (as_workbook(TEXT), "is an Excel workbook, expected CSV; open it and save it as CSV UTF-8"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "is an Excel workbook"),
        (as_zip(TEXT), "is a zip, expected CSV; unpack it"),
        (b"PAR1\x15\x04\x15", "is a Parquet file, expected CSV; write it as text"),
        (as_array(TEXT), "is a NumPy array"),
        (pickle.dumps(TEXT), "is a pickle"),
        (b"\n <!DOCTYPE html>\n<html>404</html>", "is a web page or XML"),
        (b"\xef\xbb\xbf<HTML><body>", "download the file itself"),
        ("<html><body>".encode("utf-16"), "is a web page or XML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "`git lfs pull`"),
        (b"../.git/annex/objects/Xk/9f/MD5E-s3--0.csv\n", "`git annex get`"),
        (b'[{"QuestionId": 7}]', "is JSON"),
        (TEXT.encode("utf-32"), "is text in UTF-32, expected CSV; save it in UTF-8"),
        (gzip.compress(gzip.compress(TEXT.encode())), "is packed by gzip twice"),
        (gzip.compress(as_workbook(TEXT)), "is an Excel workbook"),
        (gzip.compress(TEXT.encode() * 99)[:-12], "is a damaged gzip file"),
        (gzip.compress(TEXT.encode())[:-8] + bytes(8), "is a damaged gzip file"),
        (TEXT.encode("utf-16")[:-1], "ends within a character of UTF-16"),
        (
            "QuestionId,IsCorrect\n7,1\n8\ud800,1\n".encode("utf-16", "surrogatepass"),
            "column 'QuestionId': row 3 is not UTF-8 text; save it in UTF-8",
        ),
        ("QuestionId,IsCorrect\n7,é\n".encode("cp1252"), "row 2 is not UTF-8 text; save it"),
        (TEXT.replace(",", ";").encode(), "with semicolons between the columns, expected commas"),
        (TEXT.replace(",", "\t").encode("utf-16"), "with tabs between the columns"),
        (b"sep=,\n" + TEXT.encode(), "row 1 is 'sep=,', which only Excel reads"),
    ],
    # Pytest builds the names of the test cases from these texts. The contents must not be part of a
    # name: gzip writes the time into its output, so the name would change from run to run.
    ids=lambda value: value if isinstance(value, str) else "content",
)  # fmt: skip
def test_another_format_is_named_with_what_to_do(
    write: Write, content: bytes, expected: str
) -> None:
    path = write("a.csv", content)
    with pytest.raises(InputError) as caught:
        read_table(path, COLUMNS)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert expected in message
    assert message.isprintable()


def test_a_small_gzip_file_cannot_fill_the_memory(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gzip file may unpack to 100 times its size, or to `_MIN_UNPACKED` bytes if that is more."""
    n_rows = 1 << 20
    text = "QuestionId,IsCorrect\n" + "7,1\n" * n_rows
    content = gzip.compress(text.encode())
    # The text is larger than `_MIN_UNPACKED` bytes, and than 100 times the size of the file.
    monkeypatch.setattr(file_formats, "_MIN_UNPACKED", 1 << 20)
    assert len(text) > 1 << 20
    assert len(text) > 100 * len(content)
    path = write("a.csv", content)
    with pytest.raises(InputError, match="bytes unpack to more than 1,048,576 bytes; if"):
        read_table(path, COLUMNS)
    # The same file is accepted if every file may unpack to that many bytes.
    monkeypatch.setattr(file_formats, "_MIN_UNPACKED", len(text))
    assert len(read_table(path, COLUMNS)) == n_rows


@pytest.mark.parametrize(
    "text", ["", "7", "QuestionId,IsCorrect\n", "PK,IsCorrect\n", "{a},b\n", "[x],y\n", "é,ü\n"]
)
def test_ordinary_text_is_not_taken_for_another_format(text: str) -> None:
    content = text.encode()
    assert describe_format(content) == ""
    assert not needs_conversion(content)


def test_the_name_of_a_column_may_hold_a_tab(write: Write) -> None:
    assert read_header(file_source(write("a.csv", "a\tb,c\n1,2\n"))) == ["a\tb", "c"]
