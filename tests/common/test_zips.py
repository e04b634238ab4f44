"""Zips of unknown origin: which files they may hold; false statements in them are noticed."""

import re
import tracemalloc
import zipfile
import zlib
from pathlib import Path

from common.errors import InputError
from common.reading import read_table
from common.schema import QUESTION_ID
from common.zips import zip_source

import pytest
from toy_bundle import write_zip

NAME = "submission_task_1.csv"
LIMIT = 10_000
MIB = 1 << 20


def write_ids(n_rows: int) -> bytes:
    """Return a CSV of the QuestionIds 0, 1 and so on."""
    return b"QuestionId\n" + b"".join(b"%d\n" % number for number in range(n_rows))


ROWS = write_ids(1000)
METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]


@pytest.mark.parametrize("method", METHODS)
def test_a_zip_of_either_method_is_read_up_to_the_limit(tmp_path: Path, method: int) -> None:
    path = write_zip(tmp_path / "a.zip", {NAME: ROWS}, method=method)
    source = zip_source(path, NAME, len(ROWS))
    assert source.name == f"{path}/{NAME}"
    assert read_table(source, [QUESTION_ID])["QuestionId"].to_list() == list(range(1000))
    with pytest.raises(InputError, match=f"unpacks to more than {len(ROWS) - 1:,} bytes"):
        zip_source(path, NAME, len(ROWS) - 1)


def forge_size(path: Path, stated: int) -> None:
    """Let a zip state a false size of its only file, which consists of zero bytes.

    The headers of the zip get the size `stated`, and the checksum of that many zero bytes. Both
    numbers are in the local header, at the beginning, and in the central header, towards the end.
    The checksum begins at byte 14 of the local header and at byte 16 of the central header. The
    size begins 8 bytes after the checksum. Each number has 4 bytes.
    """
    content = bytearray(path.read_bytes())
    checksum = zlib.crc32(bytes(stated))
    start_of_central_header = content.rindex(b"PK\x01\x02")
    for start in (14, start_of_central_header + 16):
        content[start : start + 4] = checksum.to_bytes(4, "little")
        content[start + 8 : start + 12] = stated.to_bytes(4, "little")
    path.write_bytes(content)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stated", [None, 100], ids=["true size", "forged size"])
def test_a_zip_bomb_takes_no_more_memory_than_the_limit(
    tmp_path: Path, method: int, stated: int | None
) -> None:
    """A zip bomb is a small zip that unpacks to a lot of data, here 64 MiB.

    The headers of the zip state the true size, or the false size `stated`, which `forge_size` has
    written. With a limit of 8 MiB, the zip is refused before much more than 8 MiB is unpacked.
    """
    limit = 8 * MIB
    true_size = 64 * MIB
    path = write_zip(tmp_path / "a.zip", {NAME: bytes(true_size)}, method=method)
    if stated is not None:
        forge_size(path, stated)

    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"unpacks to more than 8,388,608 bytes"):
            zip_source(path, NAME, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    # Unpacking may take up to four times the limit. The zip itself is also in memory. If it is not
    # compressed (ZIP_STORED), it is as large as its contents.
    assert peak < 4 * limit + path.stat().st_size
    if stated is not None:
        # With a limit that is large enough, the false size is noticed.
        fault = f"unpacks to 67,108,864 bytes, but the zip states {stated}"
        with pytest.raises(InputError, match=fault):
            zip_source(path, NAME, true_size)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({NAME: b"x", "b.csv": b"y"}, f"holds 2 files ({NAME}, b.csv), expected only {NAME}"),
        # The name of the file begins with the control sequence that clears a terminal. The message
        # must show it as the harmless text \x1b[2J.
        ({"\x1b[2J.txt": b"x"}, r"holds \x1b[2J.txt, expected"),
    ],
)
def test_a_zip_of_other_files_than_the_submission_is_refused(
    tmp_path: Path, members: dict[str, bytes], expected: str
) -> None:
    with pytest.raises(InputError, match=re.escape(expected)):
        zip_source(write_zip(tmp_path / "a.zip", members), NAME, LIMIT)


def test_a_file_that_is_no_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(ROWS)
    with pytest.raises(InputError, match=r"a\.zip: is not a zip file, or is cut off"):
        zip_source(tmp_path / "a.zip", NAME, LIMIT)


def test_a_zip_with_a_changed_byte_is_refused_or_holds_the_original_contents(
    tmp_path: Path,
) -> None:
    """Every byte of a small zip is changed in turn, and the changed zip is read.

    Either the zip is refused, or the change does not matter (a changed date, for example) and the
    zip still holds the same table. `faults_of_changed_bytes` checks this.
    """
    # The table is short to save time, since the zip is read once for each of its bytes.
    table = write_ids(40)
    faults = []
    for method in METHODS:
        path = write_zip(tmp_path / "a.zip", {NAME: table}, method=method)
        faults += faults_of_changed_bytes(path, table)
    # There is a changed zip for each of the 483 bytes of the two zips. Most of these are refused.
    assert len(faults) > 350
    # Among the messages are these faults.
    for part in ("is encrypted", "another method than deflate", "wrong checksum", "the zip states"):
        assert any(part in fault for fault in faults), part


def faults_of_changed_bytes(path: Path, table: bytes) -> list[str]:
    """Change every byte of a zip, one at a time; return the messages that refuse the changed zips.

    A changed zip that is not refused must still hold the table.
    """
    faults = []
    whole = path.read_bytes()
    for position in range(len(whole)):
        changed = bytearray(whole)
        # Invert every second bit of the byte.
        changed[position] ^= 0x55
        path.write_bytes(changed)
        try:
            with zip_source(path, NAME, LIMIT).open() as file:
                assert file.read() == table
        except InputError as error:
            assert str(error).startswith(str(path))
            faults.append(str(error))
    return faults
