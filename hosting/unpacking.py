"""Unpack zips of unknown origin into a folder: bundles, and what participants hand in."""

import errno
import zipfile
from pathlib import Path

from common import zips
from common.errors import InputError, printable

_MAX_MEMBERS = 100_000
# What a name inside a zip may be that no file system takes, or none takes beside another.
_ODD_NAMES = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ)


def unpack(path: Path, folder: Path, max_size: int) -> None:
    """Unpack a zip into a folder.

    Parameters
    ----------
    path
        The zip.
    folder
        Where its members go; made if missing.
    max_size
        How many bytes all members may have together.

    Raises
    ------
    InputError
        If the zip is missing, damaged or encrypted, unpacks to more, holds a name that leads out of
        the folder, or one that cannot be written.
    """
    with zips.open_zip(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > max_size:
            raise InputError(f"{path}: unpacks to {size:,} bytes, expected at most {max_size:,}")
        if len(members) > _MAX_MEMBERS:
            raise InputError(
                f"{path}: holds {len(members):,} files, expected at most {_MAX_MEMBERS:,}"
            )
        for member in members:
            # As the zip states it: Python has made some names harmless already.
            name = member.orig_filename.replace("\\", "/")
            shown = printable(member.orig_filename)
            if name.startswith("/") or ".." in name.split("/") or ":" in name.split("/")[0]:
                raise InputError(
                    f"{path}: holds {shown}, which leads out of its folder, expected names below it"
                )
            # Of other methods Python unpacks a whole block at once, however large it gets.
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(f"{path}: {shown} is packed by another method than deflate")
        folder.mkdir(parents=True, exist_ok=True)
        for member in members:
            try:
                archive.extract(member, folder)
            except OSError as error:
                if error.errno not in _ODD_NAMES:
                    raise
                raise InputError(
                    f"{path}: {printable(member.filename)} cannot be unpacked ({error.strerror})"
                ) from None
