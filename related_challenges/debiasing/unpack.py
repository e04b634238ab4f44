"""Debiasing: unpack the organisers' zips, which have passwords, into the folder that they lie in.

Run:     python related_challenges/debiasing/unpack.py FOLDER --passwords FILE
Reads:   all zips in FOLDER, such as underexpose_train.zip and underexpose_test.zip, and the zips
         inside them; and FILE with lines "password name", as the organisers published them. The
         name is that of a zip without .zip, such as underexpose_train_click-1
Writes:  the files underexpose_*.csv of all zips to FOLDER

All files are unpacked, or none. A file that is already in FOLDER must be the one in the zip.
"""

import argparse
import shutil
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from common import cli, reading, writing
from common.errors import InputError, printable, quote
from common.stray_files import list_paths
from common.zips import open_zip

from tqdm import tqdm

PREFIX = "underexpose_"
# This bit of a member's flags says that the member is encrypted (zip format, APPNOTE 4.4.4).
ENCRYPTED = 1
BLOCK_SIZE = 1 << 20


@dataclass(frozen=True)
class Places:
    """Where passwords come from, and where files go."""

    # The file of passwords, for messages.
    password_file: Path
    # The password of each zip, by the zip's name without .zip.
    passwords: Mapping[str, str]
    # The folder that holds the zips. All unpacked files are moved here at the end.
    folder: Path
    # The temporary folder, to which files are unpacked first.
    partial: Path


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of the zips")
    help_text = "lines of a password, a blank and the name of a zip"
    parser.add_argument("--passwords", type=Path, required=True, metavar="FILE", help=help_text)
    return parser


def main() -> None:
    """Unpack all zips of a folder."""
    options = build_parser().parse_args()
    folder = options.folder
    paths = list(list_paths(folder, "*.zip"))
    if not paths:
        raise InputError(f"{folder}: holds no zip, expected {PREFIX}train.zip or another")
    passwords = read_passwords(options.passwords)
    writing.require_writable_folder(folder)
    partial = writing.partial_beside(folder / "unpacked")
    # The name of the temporary folder holds the id of this process. An earlier process with the
    # same id may have been killed and have left the folder.
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        places = Places(options.passwords, passwords, folder, partial)
        for path in paths:
            unpack(path, path.name, places)
        unpacked = sorted(partial.glob("*.csv"))
        # Move the files to their folder only now that all of them are complete.
        for path in unpacked:
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"written: {len(unpacked)} files to {cli.show(folder)}")


def read_passwords(path: Path) -> dict[str, str]:
    """Read the password of each zip, by the zip's name without .zip.

    Raises
    ------
    InputError
        If a line does not hold a password and a name, or if a name repeats.
    """
    reading.require_file(path)
    passwords: dict[str, str] = {}
    lines = path.read_text(encoding="utf-8-sig", errors="backslashreplace").splitlines()
    for row, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2:
            raise InputError(f"{path}: row {row} is {quote(line)}, expected a password and a name")
        password, name = words
        if name in passwords:
            raise InputError(f"{path}: row {row} repeats the name {quote(name)}, expected it once")
        passwords[name] = password
    return passwords


def unpack(path: Path, shown_name: str, places: Places) -> None:
    """Unpack a zip, and the zips inside it, into the temporary folder.

    Parameters
    ----------
    path : Path
        The zip. A zip inside another one has been unpacked to this path.
    shown_name : str
        The zip's name for messages. A zip inside another zip has both names: "outer.zip/inner.zip".
    places : Places
        Passwords and folders.
    """
    # A zip inside another one lies in the temporary folder, to which it has been unpacked.
    is_inside_another = path.parent == places.partial
    # A zip inside another zip holds only CSV files.
    endings = [".csv"] if is_inside_another else [".csv", ".zip"]
    with open_zip(path) as archive:
        members = find_members(archive, endings)
        for member in tqdm(members, shown_name, leave=False, disable=None):
            name = PurePosixPath(member.filename).name
            origin = f"{shown_name}/{name}"
            target = places.partial / name
            if name.endswith(".zip"):
                # Unpack the inner zip, unpack its files, and remove the inner zip.
                write_member(archive, member, target, origin, places)
                unpack(target, origin, places)
                target.unlink()
            elif is_new(member, origin, places):
                write_member(archive, member, target, origin, places)


def find_members(archive: zipfile.ZipFile, endings: Sequence[str]) -> list[zipfile.ZipInfo]:
    """Return the organisers' files in a zip whose names have one of the endings."""
    members = []
    for member in archive.infolist():
        name = PurePosixPath(member.filename).name
        # The prefix also leaves out the files ._underexpose_... that macOS adds to a zip.
        is_of_organisers = name.startswith(PREFIX)
        if is_of_organisers and member.filename.endswith(tuple(endings)):
            members.append(member)
    return members


def is_new(member: zipfile.ZipInfo, origin: str, places: Places) -> bool:
    """Return whether a file has to be unpacked.

    `member` is the file in the zip. `origin` names the zip and the file in messages.

    A file is not unpacked again if it is in the folder of the zips (``places.folder``) already, or
    if it was unpacked from another zip to the temporary folder (``places.partial``).

    Raises
    ------
    InputError
        If the file that is there already has other content.
    """
    name = PurePosixPath(member.filename).name
    for present in (places.folder / name, places.partial / name):
        if reading.is_there(present):
            if checksum(present) != member.CRC:
                raise InputError(
                    # Name the final place of the file, even if the file is in the temporary folder.
                    f"{places.folder / name}: is not the file in {printable(origin)}, expected "
                    "the same; move the file or the zip that it is from to another folder"
                )
            return False
    return True


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file, the checksum that a zip holds."""
    reading.require_file(path)
    value = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_SIZE):
            value = zlib.crc32(block, value)
    return value


def write_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, origin: str, places: Places
) -> None:
    """Unpack a member of a zip to a path; `InputError` if a password is missing or wrong."""
    if not member.flag_bits & ENCRYPTED:
        copy_member(archive, member, target)
        return
    # Each zip has its own password, with which the CSV files in it are encrypted. A zip inside
    # another zip is itself encrypted with its own password, not with the password of the outer zip.
    # `locked_zip` is the zip whose password opens the member.
    is_zip_in_zip = target.suffix == ".zip"
    locked_zip = target if is_zip_in_zip else Path(str(archive.filename))
    name = locked_zip.stem
    if name not in places.passwords:
        raise InputError(
            f"{places.password_file}: holds no password for {printable(origin)}, expected a line "
            f"with a password and {printable(name)}"
        )
    try:
        copy_member(archive, member, target, places.passwords[name].encode())
    except (RuntimeError, zipfile.BadZipFile, zlib.error):
        # A zip checks a password by a single byte, so one wrong password in 256 is accepted. The
        # file is then unpacked to noise, which raises another error.
        raise InputError(
            f"{places.password_file}: the password of {printable(name)} does not open "
            f"{printable(origin)}, expected the published one"
        ) from None


def copy_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, password: bytes | None = None
) -> None:
    """Unpack a member of a zip to a path."""
    with archive.open(member, pwd=password) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, BLOCK_SIZE)


if __name__ == "__main__":
    cli.run(main)
