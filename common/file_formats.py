"""Tell by its first bytes what a file holds, and open text of other encodings as UTF-8.

A file that should be CSV may be something else: a workbook, a web page that a failed download has
left, a pointer to the file. Text in UTF-16 and text packed by gzip are read; anything else is named
in a message that says what to do.
"""

import gzip
import io
import re
import zlib
from codecs import (
    BOM_UTF8,
    BOM_UTF16_BE,
    BOM_UTF16_LE,
    BOM_UTF32_BE,
    BOM_UTF32_LE,
    getincrementaldecoder,
)
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from common.errors import InputError

Opener = Callable[[], BinaryIO]

# The two formats that a text file may be expected to have, in words for messages.
CSV = "CSV"
JSON_LINES = "a JSON object in each line"

_GZIP = b"\x1f\x8b"
# The first bytes that are looked at. In a workbook, the name of the folder xl/ is among them.
_N_FIRST = 1 << 12
# Number of bytes that are read and converted at a time.
_PIECE = 1 << 20
# A gzip file may unpack to at most `_MIN_UNPACKED` bytes or a multiple of its own size, whichever
# is larger. gzip shrinks a CSV file to a fifth or a tenth; a small file that unpacks to far more
# could fill the memory.
_MIN_UNPACKED = 1 << 26
_MAX_RATIO = 100

_EXPORT = "open it and save it as CSV UTF-8"
_TO_CSV = "write it as text, for instance with DataFrame.to_csv"
_JSON_TITLE = "JSON"
_UNPACK = "unpack it first"
# How files of other formats begin, what they are, and what to do.
_FORMATS = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook", _EXPORT),
    (b"PAR1", "a Parquet file", _TO_CSV),
    (b"ARROW1", "a Feather file", _TO_CSV),
    (b"FEA1", "a Feather file", _TO_CSV),
    (b"SQLite format 3\0", "an SQLite database", "export its table as CSV"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _TO_CSV),
    (b"\x93NUMPY", "a NumPy array", "write it as CSV, for instance with numpy.savetxt"),
    (b"BZh", "a file packed by bzip2", _UNPACK),
    (b"\xfd7zXZ\0", "a file packed by xz", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a file packed by zstd", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"%PDF-", "a PDF document", "export its table as CSV"),
    (b"{\\rtf", "a text document (RTF)", "save it as plain text, in UTF-8"),
    (BOM_UTF32_LE, "text in UTF-32", "save it in UTF-8"),
    (BOM_UTF32_BE, "text in UTF-32", "save it in UTF-8"),
    (
        b"version https://git-lfs.github.com/spec/",
        "a Git LFS pointer to the file",
        "fetch the file with `git lfs pull`",
    ),
)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
# A git-annex pointer is a path to the content.
_GIT_ANNEX = re.compile(rb"(/|\.\./)[^\r\n]*annex/objects/")
_MARKUP = re.compile(rb"\s*<(!doctype|!--|\?xml|html|head|body|table)", re.IGNORECASE)
_JSON = re.compile(rb'\s*(\{\s*"|\[\s*[\[{])')
# Where the word "ustar" stands in a tar archive.
_POSITION_OF_USTAR = slice(257, 262)
# Characters of a header, to recognise UTF-16 that has no byte order mark.
_HEADER_BYTES = frozenset(b"\t\r\n" + bytes(range(32, 127)))
_N_HEADER_BYTES = 64


class DamagedFileError(InputError):
    """A file cannot be converted to UTF-8; reading it again would end in the same way."""


def open_as_utf8(name: str, opener: Opener, expected: str = CSV) -> Opener:
    """Return a function that opens a file of text as UTF-8.

    Parameters
    ----------
    name
        The name of the file that messages show.
    opener
        Opens the file from its beginning.
    expected
        The format that the file should have: `CSV` or `JSON_LINES`.

    Returns
    -------
    callable
        `opener` itself for most files. For text in UTF-16, or packed by gzip, a function that opens
        the text as UTF-8. Reading raises `InputError` if the file is damaged.

    Raises
    ------
    InputError
        If the first bytes are those of a known format other than the expected one, such as a zip, a
        web page or, where CSV is expected, JSON.
    """
    first = _read_first(opener)
    # `_converting` returns a function that opens the file and converts it while it is read. Each
    # time that the file is opened, it is converted anew.
    if first.startswith(_GZIP):
        opener = _converting(opener, partial(_unpack_gzip, name))
        first = _read_first(opener)
    encoding = _find_utf16(first)
    if encoding:
        opener = _converting(opener, partial(_decode, name, encoding))
        first = _read_first(opener)
    fault = describe_format(first, expected)
    if fault:
        raise InputError(f"{name}: {fault}")
    return opener


def _read_first(opener: Opener) -> bytes:
    """Return the first bytes of a file."""
    with opener() as file:
        return file.read(_N_FIRST)


def needs_conversion(first: bytes) -> bool:
    """Return whether a file that begins with `first` is text in UTF-16, or packed by gzip."""
    return first.startswith(_GZIP) or _find_utf16(first) != ""


def describe_format(first: bytes, expected: str = CSV) -> str:
    """Return the end of a message if a file is of a known format other than `expected`; else "".

    The message says what the file is, and what to do. `first` are the first bytes of the file.
    """
    found, advice = _find_format(first)
    if not found or (found == _JSON_TITLE and expected == JSON_LINES):
        return ""
    return f"is {found}, expected {expected}; {advice}"


def _find_format(first: bytes) -> tuple[str, str]:
    """Return the format of a file, and what the user can do about it, both in words.

    Returns "" and "" for CSV or unknown content. `first` are the first bytes of the file. If the
    file is packed by gzip, they are the first bytes after `open_as_utf8` has unpacked it once.
    """
    for beginning, title, advice in _FORMATS:
        if first.startswith(beginning):
            return title, advice
    if first.startswith(_GZIP):
        return "packed by gzip twice", _UNPACK
    if first.startswith(b"PK\x03\x04"):
        return _describe_zip(first)
    if _PICKLE.match(first):
        return "a pickle", _TO_CSV
    if first[_POSITION_OF_USTAR] == b"ustar":
        return "a tar archive", _UNPACK
    if _GIT_ANNEX.match(first):
        return "a git-annex pointer to the file", "fetch the file with `git annex get`"
    text = first.removeprefix(BOM_UTF8)
    if _MARKUP.match(text):
        return "a web page or XML", "if it comes from a download, download the file itself"
    if _JSON.match(text):
        return _JSON_TITLE, _TO_CSV
    return "", ""


def _describe_zip(first: bytes) -> tuple[str, str]:
    """Return what a zip file is, such as an Excel workbook, and what the user should do."""
    if b"opendocument.spreadsheet" in first:
        return "an OpenDocument spreadsheet", _EXPORT
    if b"[Content_Types].xml" in first or b"xl/" in first:
        return "an Excel workbook", _EXPORT
    return "a zip", "unpack it, or give the zip a name that ends in .zip"


def _find_utf16(first: bytes) -> str:
    """Return Python's name of the encoding if bytes that begin a file are UTF-16, else ""."""
    # The byte order mark of UTF-32 begins with the bytes of the mark of UTF-16.
    if first.startswith(BOM_UTF32_LE):
        return ""
    if first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        # Python's decoder "utf-16" reads the order of the bytes from the mark.
        return "utf-16"
    # There is no byte order mark. In UTF-16, each letter of an English header is two bytes: the
    # letter's ASCII code and a zero byte.
    n_bytes = min(len(first) // 2 * 2, _N_HEADER_BYTES)
    if n_bytes < 4:
        return ""
    even_bytes = first[0:n_bytes:2]
    odd_bytes = first[1:n_bytes:2]
    if _are_letters(even_bytes) and not any(odd_bytes):
        return "utf-16-le"
    if _are_letters(odd_bytes) and not any(even_bytes):
        return "utf-16-be"
    return ""


def _are_letters(content: bytes) -> bool:
    """Return whether all bytes may be characters of a header."""
    return _HEADER_BYTES.issuperset(content)


# ---- Conversion ----------------------------------------------------------------------------------


class _Converted(io.RawIOBase):
    """A file whose content is converted while it is read."""

    def __init__(self, file: BinaryIO, pieces: Iterator[bytes]) -> None:
        """Take an open file, and the pieces of its converted content.

        Closing this object closes the file too.
        """
        self._file = file
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Say that the file can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes; return their number, 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        n = min(len(buffer), len(self._rest))
        buffer[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        return n

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _converting(opener: Opener, convert: Callable[[BinaryIO], Iterator[bytes]]) -> Opener:
    """Return a function that opens a file and returns its content as `convert` yields it."""

    def open_converted() -> BinaryIO:
        file = opener()
        return io.BufferedReader(_Converted(file, convert(file)), _PIECE)

    return open_converted


def _unpack_gzip(name: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a gzip file in pieces.

    Raises `DamagedFileError` if the file is damaged, or unpacks to so much that it could fill the
    memory.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    max_unpacked = max(_MIN_UNPACKED, _MAX_RATIO * size)
    n_unpacked = 0
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            while piece := unpacked.read(_PIECE):
                n_unpacked += len(piece)
                if n_unpacked > max_unpacked:
                    raise DamagedFileError(
                        f"{name}: its {size:,} bytes unpack to more than {max_unpacked:,} bytes; "
                        "if that is right, unpack it first"
                    )
                yield piece
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DamagedFileError(
            f"{name}: is a damaged gzip file ({error}); is it cut off?"
        ) from None


def _decode(name: str, encoding: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield text of another encoding as UTF-8."""
    # UTF-16 writes some characters as a pair of numbers, a surrogate pair. A damaged file may hold
    # only half of a pair. "surrogatepass" turns it into bytes that are not UTF-8. The reader of the
    # rows refuses these bytes, and says in which row they are.
    decoder = getincrementaldecoder(encoding)("surrogatepass")
    while piece := file.read(_PIECE):
        yield decoder.decode(piece).encode("utf-8", "surrogatepass")
    # The decoder may still hold the first bytes of a character. `final` makes it refuse them.
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise DamagedFileError(
            f"{name}: ends within a character of UTF-16; is it cut off?"
        ) from None
