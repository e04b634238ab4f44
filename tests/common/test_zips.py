"""Zips of unknown origin: what they may hold, and that nothing they state is trusted."""

import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import malformed
import pytest

from common.errors import InputError
from common.io import read_table
from common.schema import QUESTION_ID
from common.zips import open_zip, read_member, zip_source

Write = Callable[[str, str | bytes], Path]
NAME = "submission_task_1.csv"
LIMIT = 10_000
METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_read_whole(tmp_path: Path, method: int) -> None:
    rows = b"QuestionId\n" + b"".join(b"%d\n" % number for number in range(1000))
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(NAME, rows)
    source = zip_source(path, NAME, len(rows))
    assert source.name == f"{path}/{NAME}"
    for _ in range(2):
        with source.open() as file:
            assert file.read() == rows
    assert read_table(source, [QUESTION_ID])["QuestionId"].to_pylist() == list(range(1000))
    with pytest.raises(InputError, match=f"unpacks to more than {len(rows) - 1:,} bytes"):
        zip_source(path, NAME, len(rows) - 1)


@pytest.mark.parametrize("streamed", [False, True])
def test_sizes_that_follow_their_file_are_read(tmp_path: Path, streamed: bool) -> None:
    """A zip written to a pipe: the header beside the file then states no sizes."""
    path = tmp_path / "a.zip"

    class Pipe:
        def __init__(self) -> None:
            self.file = path.open("wb")

        def write(self, data: bytes) -> int:
            return self.file.write(data)

        def flush(self) -> None:
            self.file.flush()

    pipe = Pipe()
    with zipfile.ZipFile(pipe if streamed else path, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        archive.writestr(NAME, b"QuestionId\n7\n")
    pipe.file.close() if streamed else None
    assert path.read_bytes()[6] & 8 == (8 if streamed else 0)
    with zip_source(path, NAME, LIMIT).open() as file:
        assert file.read() == b"QuestionId\n7\n"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stated", [None, 100])
def test_a_bomb_takes_no_more_memory_than_the_limit(
    tmp_path: Path, method: int, stated: int | None
) -> None:
    path = tmp_path / "a.zip"
    size, limit = 64 << 20, 8 << 20
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(NAME, bytes(size))
    if stated is not None:
        content = bytearray(path.read_bytes())
        for start in (22, content.rindex(b"PK\x01\x02") + 24):
            content[start : start + 4] = stated.to_bytes(4, "little")
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


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, f"holds 0 files (nothing), expected only {NAME} at the top level"),
        ({"submission.csv": b"x"}, f"holds submission.csv, expected only {NAME}"),
        ({f"a/{NAME}": b"x"}, f"holds a folder (a/{NAME})"),
        ({"submission_task_1.zip": b"x"}, "holds another zip (submission_task_1.zip)"),
        ({NAME: b"x", "b.csv": b"y"}, "holds 2 files"),
        ({"\x1b[2J.txt": b"x"}, r"holds \x1b[2J.txt, expected"),
    ],
)
def test_zip_must_hold_only_the_submission(
    tmp_path: Path, members: dict[str, bytes], expected: str
) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(InputError) as raised:
        zip_source(path, NAME, LIMIT)
    assert expected in str(raised.value)


def test_no_zip(write: Write) -> None:
    with pytest.raises(InputError, match="is not a zip file"):
        zip_source(write("a.zip", "QuestionId\n1\n"), NAME, LIMIT)


def test_no_damage_reaches_the_reader(tmp_path: Path) -> None:
    """Every byte of a small zip changed in turn: refused, or unpacked to the original contents."""
    table = b"QuestionId\n" + b"".join(b"%d\n" % number for number in range(40))
    path = tmp_path / "a.zip"
    n_refused = 0
    for method in METHODS:
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr(NAME, table)
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(malformed.change(whole, place))
            try:
                with zip_source(path, NAME, LIMIT).open() as file:
                    assert file.read() == table
            except InputError as error:
                assert str(error).startswith(str(path))
                n_refused += 1
    assert n_refused > 700


def test_what_a_block_finds_wrong_passes_through(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", b"QuestionId\n1\n")
    with pytest.raises(InputError, match=r"^mine$"), open_zip(path) as archive:
        raise InputError("mine")
    with open_zip(path) as archive:
        assert read_member(archive, archive.infolist()[0], LIMIT) == b"QuestionId\n1\n"
