"""Zips of unknown origin: what they may hold, and that nothing they state is trusted."""

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
ROWS = b"QuestionId\n" + b"".join(b"%d\n" % number for number in range(1000))
METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_read_whole(tmp_path: Path, method: int) -> None:
    path = write_zip(tmp_path / "a.zip", {NAME: ROWS}, method=method)
    source = zip_source(path, NAME, len(ROWS))
    assert source.name == f"{path}/{NAME}"
    assert read_table(source, [QUESTION_ID])["QuestionId"].to_list() == list(range(1000))
    with pytest.raises(InputError, match=f"unpacks to more than {len(ROWS) - 1:,} bytes"):
        zip_source(path, NAME, len(ROWS) - 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stated", [None, 100])
def test_a_bomb_takes_no_more_memory_than_the_limit(
    tmp_path: Path, method: int, stated: int | None
) -> None:
    limit = 8 << 20
    path = write_zip(tmp_path / "a.zip", {NAME: bytes(64 << 20)}, method=method)
    if stated is not None:
        # With the checksum of what it states to hold.
        content = bytearray(path.read_bytes())
        for start in (14, content.rindex(b"PK\x01\x02") + 16):
            content[start : start + 4] = zlib.crc32(bytes(stated)).to_bytes(4, "little")
            content[start + 8 : start + 12] = stated.to_bytes(4, "little")
        path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"unpacks to more than 8,388,608 bytes"):
            zip_source(path, NAME, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A zip bomb that is stored without compression is read up to its contents, no byte more.
    assert peak < 4 * limit + path.stat().st_size
    if stated is not None:
        with pytest.raises(InputError, match="unpacks to 67,108,864 bytes, but the zip states 100"):
            zip_source(path, NAME, 64 << 20)


def test_zip_must_hold_only_the_submission(tmp_path: Path) -> None:
    for members, expected in (
        ({NAME: b"x", "b.csv": b"y"}, f"holds 2 files ({NAME}, b.csv), expected only {NAME}"),
        ({"\x1b[2J.txt": b"x"}, r"holds \x1b[2J.txt, expected"),
    ):
        with pytest.raises(InputError, match=re.escape(expected)):
            zip_source(write_zip(tmp_path / "a.zip", members), NAME, LIMIT)
    (tmp_path / "a.zip").write_bytes(ROWS)
    with pytest.raises(InputError, match=r"a\.zip: is not a zip file, or is cut off"):
        zip_source(tmp_path / "a.zip", NAME, LIMIT)


def test_no_damage_reaches_the_reader(tmp_path: Path) -> None:
    """Every byte of a small zip changed in turn: refused, or unpacked to the original contents."""
    table = ROWS[:121]
    faults = []
    for method in METHODS:
        path = write_zip(tmp_path / "a.zip", {NAME: table}, method=method)
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
            try:
                with zip_source(path, NAME, LIMIT).open() as file:
                    assert file.read() == table
            except InputError as error:
                assert str(error).startswith(str(path))
                faults.append(str(error))
    assert len(faults) > 350
    for part in ("is encrypted", "another method than deflate", "wrong checksum", "the zip states"):
        assert any(part in fault for fault in faults), part
