"""Read zips from unknown sources safely, within limits of size, and write flat zips."""

import errno
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from common.errors import InputError, Report, printable, stop
from common.reading import SHOWN, Source, require_file, text_source
from common.stray_files import is_stray_path

_MAX_MEMBERS = 100_000
# Error numbers of the system that mean a bad name: the file system refuses the name of a member, or
# the name conflicts with another member.
_NAME_ERRORS = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ)
# Exceptions that `zipfile` raises for a damaged zip, besides OSError.
_ERRORS_OF_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    IndexError,
    OverflowError,
    MemoryError,
)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip for reading; stray files, see `stray_files`, are not among its members.

    Backslashes in names, which some programs of Windows write, are replaced by slashes.

    Raises `InputError` if the zip is damaged. If the damage shows only when the `with` block reads
    a member, the error is raised there.
    """
    require_file(path)
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: is not a zip file, or is cut off")
    try:
        with zipfile.ZipFile(path) as archive:
            _tidy_members(archive, path)
            for member in archive.infolist():
                # Accept only stored and deflated members. With any other method of compression,
                # Python unpacks a whole block at once, and the size of the unpacked block cannot be
                # limited.
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    fault = "is packed by another method than deflate, or with a password"
                    raise InputError(f"{path}: {printable(member.filename)} {fault}")
            yield archive
    except RuntimeError as error:
        # For an encrypted member, `zipfile` raises RuntimeError.
        raise InputError(f"{path}: cannot be unpacked ({error})") from None
    except InputError:
        # `InputError` is a kind of ValueError. Without this clause, it would count as damage below.
        raise
    except OSError as error:
        # A damaged zip may state a negative position. When `zipfile` seeks to it, the system
        # answers EINVAL. Other errors of the system do not mean that the zip is damaged.
        if error.errno != errno.EINVAL:
            raise
        raise InputError(f"{path}: is a damaged zip file ({error})") from None
    except _ERRORS_OF_DAMAGE as error:
        raise InputError(f"{path}: is a damaged zip file ({error})") from None


def _tidy_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Replace backslashes by slashes in the names of a zip, and leave out stray files.

    Raises `InputError` if two members then have the same name.
    """
    members = []
    for member in archive.filelist:
        member.filename = member.filename.replace("\\", "/").removeprefix("./")
        # A zip may hold the folder "./", whose name is empty now.
        if member.filename and not is_stray_path(member.filename):
            members.append(member)
    # If several members have the same name now, the dict keeps only the last of them.
    by_name = {member.filename: member for member in members}
    for member in members:
        # Two members with different names in the zip (`orig_filename`), such as a\b and a/b, may
        # have the same name after backslashes were replaced. Refuse such a zip.
        other = by_name[member.filename]
        if other.orig_filename != member.orig_filename:
            raise InputError(
                f"{path}: holds {printable(member.orig_filename)} and "
                f"{printable(other.orig_filename)}, which name the same file, expected one"
            )
    archive.filelist = members
    archive.NameToInfo = by_name


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, max_size: int) -> bytes:
    """Unpack a member into memory.

    Raises `InputError` if it is larger than `max_size` bytes, is encrypted, or has another size or
    checksum than the zip states.
    """
    name = f"{archive.filename}/{printable(member.filename)}"
    too_large = f"{name}: unpacks to more than {max_size:,} bytes, expected at most that"
    if member.file_size > max_size:
        raise InputError(too_large)
    if member.flag_bits & 1:  # Flag of encryption, APPNOTE 4.4.4.
        raise InputError(f"{name}: is encrypted, expected a zip without a password")
    # The zip may state a size that is too small. Python's reader would stop there, and nobody would
    # notice that the member is larger. So read with a copy of the member that states more bytes
    # than are read below. The copy has no checksum (CRC), because the reader could not compare it
    # correctly. This function checks the size and the checksum itself.
    with_large_size: Any = copy(member)
    with_large_size.file_size = max_size + 2
    with_large_size.CRC = None
    with archive.open(with_large_size) as file:
        # Try to read one byte more than allowed: if there is one, the member is too large.
        content = file.read(max_size + 1)
    if len(content) > max_size:
        raise InputError(too_large)
    if len(content) != member.file_size:
        raise InputError(
            f"{name}: unpacks to {len(content):,} bytes, but the zip states {member.file_size:,}"
        )
    if zlib.crc32(content) != member.CRC:
        raise InputError(f"{name}: is damaged (wrong checksum)")
    return content


def unpack(path: Path, folder: Path, max_size: int) -> None:
    """Unpack a zip into a folder, which is made if missing.

    Raises `InputError` if the content is larger than `max_size` bytes, or a name leads out of the
    folder.
    """
    with open_zip(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > max_size:
            raise InputError(f"{path}: unpacks to {size:,} bytes, expected at most {max_size:,}")
        n_members = len(members)
        if n_members > _MAX_MEMBERS:
            raise InputError(
                f"{path}: holds {n_members:,} files, expected at most {_MAX_MEMBERS:,}"
            )
        for member in members:
            # Check `orig_filename`, the name in the zip file. Python and `_tidy_members` may have
            # changed `filename`.
            if leads_out(member.orig_filename):
                raise InputError(
                    f"{path}: holds {printable(member.orig_filename)}, which leads out of its "
                    "folder, expected names below it"
                )
        folder.mkdir(parents=True, exist_ok=True)
        for member in members:
            try:
                archive.extract(member, folder)
            except OSError as error:
                # Other errors, such as a full disk, are no fault of the zip.
                if error.errno not in _NAME_ERRORS:
                    raise
                raise InputError(
                    f"{path}: {printable(member.filename)} cannot be unpacked ({error.strerror})"
                ) from None


def leads_out(name: str) -> bool:
    """Return whether the name of a member leads out of the folder that a zip is unpacked into."""
    folders = name.replace("\\", "/").split("/")
    is_absolute = folders[0] == "" and len(folders) > 1
    has_drive = ":" in folders[0]
    return is_absolute or has_drive or ".." in folders


def zip_source(path: Path, member: str, max_size: int, report: Report = stop) -> Source:
    """Return a `Source` that reads the CSV in a zip.

    The zip should hold only one file, named `member`. If the zip holds other files, but exactly one
    CSV, the fault is reported, and that CSV is returned. Raises `InputError` if there is no CSV or
    there are several.
    """
    with open_zip(path) as archive:
        members = archive.infolist()
        names = [info.filename for info in members]
        if names != [member]:
            fault = f"{path}: {_describe_content(names)}, expected only {member} at the top level"
            members = [info for info in members if info.filename.lower().endswith(".csv")]
            if len(members) != 1:
                raise InputError(fault)
            report(fault)
        content = read_member(archive, members[0], max_size)
    return text_source(f"{path}/{members[0].filename}", lambda: BytesIO(content))


def _describe_content(names: Sequence[str]) -> str:
    """Describe a zip by the names in it, for the message that it holds the wrong files."""
    in_folders = [name for name in names if "/" in name]
    if in_folders:
        return f"holds a folder ({printable(in_folders[0])})"
    shown = ", ".join(printable(name) for name in names[:SHOWN]) or "nothing"
    if len(names) == 1:
        return f"holds {shown}"
    return f"holds {len(names)} files ({shown})"


def write_zip_to(file: BinaryIO, members: Mapping[str, Path]) -> None:
    """Write files to a zip, whose bytes depend only on the files' names and contents.

    `members` maps each name in the zip to the file to write.
    """
    with zipfile.ZipFile(file, "w") as archive:
        for name, path in members.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            # The upper 16 bits are the mode on Unix: the owner may write the file, all may read it.
            info.external_attr = 0o644 << 16
            # Compression level 1 takes a quarter of the default's time. In Python 3.11, there is no
            # public attribute for the level.
            info._compresslevel = 1  # type: ignore[attr-defined]
            # Files of 2 GiB or more, such as weights, need the zip64 extension. `zipfile` must know
            # this before it writes the file.
            is_large = path.stat().st_size >= 1 << 31
            with path.open("rb") as source, archive.open(info, "w", force_zip64=is_large) as target:
                while block := source.read(1 << 20):
                    target.write(block)
