"""Zips of untrusted content: read within limits and checked, and written flat.

What a zip states about itself is not believed: a member is unpacked to the end of its packed bytes,
within a limit, and refused where its size or checksum is not the one stated.
"""

import copy
import errno
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from common.errors import InputError, Report, printable, stop
from common.io import SHOWN, Source, require_file

try:
    from lzma import LZMAError
except ImportError:  # A Python built without it; zipfile then says so itself.
    LZMAError = zipfile.BadZipFile  # type: ignore[misc,assignment]

# The part of a local header that repeats what the directory of the zip states (APPNOTE 4.3.7).
_LOCAL_HEADER = struct.Struct("<4s2H3H3L2H")
_SIZES_FOLLOW = 1 << 3
_IN_ZIP64 = 0xFFFFFFFF
# Python unpacks whole blocks of these methods, however much comes out: they are given little.
_STEP = {zipfile.ZIP_STORED: 1 << 20, zipfile.ZIP_DEFLATED: 1 << 20}
_SMALL_STEP = 1 << 12


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip for reading.

    Parameters
    ----------
    path
        The zip.

    Raises
    ------
    InputError
        If it is missing, no zip or damaged; a fault that shows while the block reads it, too.
    """
    require_file(path)
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: is not a zip file, or is cut off")
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"{path}: holds a name that is not UTF-8 text") from None
    except (RuntimeError, NotImplementedError) as error:
        raise InputError(f"{path}: cannot be unpacked ({error})") from None
    except (
        zipfile.BadZipFile, zlib.error, LZMAError, EOFError, ValueError, struct.error,
        IndexError, OverflowError, MemoryError,
    ) as error:  # fmt: skip
        raise InputError(f"{path}: is a damaged zip file ({error})") from None
    except OSError as error:
        # Without a number it comes from bzip2; a place before the file's start is in the zip.
        if error.errno not in (None, errno.EINVAL):
            raise
        raise InputError(f"{path}: is a damaged zip file ({error})") from None


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, max_size: int) -> bytearray:
    """Unpack a member of a zip into memory, within a limit.

    Parameters
    ----------
    archive
        From `open_zip`.
    member
        One of its `infolist()`.
    max_size
        No more bytes than these are unpacked.

    Raises
    ------
    InputError
        If there are more, or size or checksum are not those that the zip states.
    """
    path = Path(archive.filename or "")
    name = f"{path}/{printable(member.filename)}"
    too_large = f"{name}: unpacks to more than {max_size:,} bytes, expected at most that"
    if member.file_size > max_size:
        raise InputError(too_large)
    _require_same_sizes(path, name, member)
    # Where the size stated is larger than the limit, zipfile reads to the end of what is packed.
    whole = copy.copy(member)
    whole.file_size = max_size + 1
    content = bytearray()
    step = _STEP.get(member.compress_type, _SMALL_STEP)
    with archive.open(whole) as opened:
        file = cast(zipfile.ZipExtFile, opened)
        while block := file.read1(step):
            content += block
            if len(content) > max_size:
                raise InputError(too_large)
    if len(content) != member.file_size:
        raise InputError(
            f"{name}: unpacks to {len(content):,} bytes, but the zip states {member.file_size:,}"
        )
    return content


def _require_same_sizes(path: Path, name: str, member: zipfile.ZipInfo) -> None:
    """Raise `InputError` if the header beside a member states other sizes than the directory."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        *_, flags, _, _, _, checksum, packed, size, _, _ = _LOCAL_HEADER.unpack(
            file.read(_LOCAL_HEADER.size)
        )
    if flags & _SIZES_FOLLOW or _IN_ZIP64 in (packed, size):
        return
    if (checksum, packed, size) != (member.CRC, member.compress_size, member.file_size):
        raise InputError(f"{name}: is damaged: the zip states two different sizes or checksums")


def zip_source(path: Path, member: str, max_size: int, report: Report = stop) -> Source:
    """Return the only file of a zip as a source; it is unpacked into memory once.

    Parameters
    ----------
    path
        The zip.
    member
        Name that the file inside must have; it must lie at the top level.
    max_size
        How many bytes the file may have.
    report
        What to do with a fault that leaves one CSV to read.

    Raises
    ------
    InputError
        If the zip is damaged, holds another number of files, a folder, or another name, or if the
        file is too large.
    """
    with open_zip(path) as archive:
        members = archive.infolist()
        names = [info.filename for info in members]
        if names != [member]:
            fault = f"{path}: {_fault(names)}, expected only {member} at the top level"
            members = [info for info in members if info.filename.lower().endswith(".csv")]
            if len(members) != 1:
                raise InputError(fault)
            report(fault)
        content = pa.py_buffer(read_member(archive, members[0], max_size))
    return Source(f"{path}/{members[0].filename}", lambda: pa.BufferReader(content))


def _fault(names: Sequence[str]) -> str:
    """Say what is wrong with what a zip holds."""
    nested = [name for name in names if name.lower().endswith(".zip")]
    folders = [name for name in names if "/" in name]
    if nested:
        return f"holds another zip ({printable(nested[0])})"
    if folders:
        return f"holds a folder ({printable(folders[0])})"
    if len(names) != 1:
        shown = ", ".join(printable(name) for name in names[:SHOWN])
        return f"holds {len(names)} files ({shown or 'nothing'})"
    return f"holds {printable(names[0])}"


def write_zip_to(file: BinaryIO, members: Mapping[str, Path]) -> None:
    """Write a flat zip; the same input, the same bytes.

    Parameters
    ----------
    file
        Open binary file to write to.
    members
        For each name inside the zip the file whose bytes go into it.
    """
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            # A fixed date, so that the same submission always gives the same zip.
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            # Level 1: a quarter of the default's time for a somewhat larger file. A member that is
            # described by itself does not take the archive's level, and Python 3.11 has no public
            # name for its own.
            info._compresslevel = 1  # type: ignore[attr-defined]
            # Weights may exceed what a zip without its extension for large files can hold.
            large = content.stat().st_size >= 1 << 31
            with content.open("rb") as source, archive.open(info, "w", force_zip64=large) as target:
                while block := source.read(1 << 20):
                    target.write(block)
