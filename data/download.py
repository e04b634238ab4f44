"""Fetch the official data, check them, unpack them into data/ and build the templates.

    python data/download.py                                  fetch 657 MB, unpack all but images
    python data/download.py --archive ~/Downloads/data.zip   use an archive that you have
    python data/download.py --parts answers metadata         unpack only some parts

Run the same command again after an interruption: it continues where it stopped. Nothing is unpacked
before size and checksum match the official archive. Simulated data in the folder are removed. No
other file is ever overwritten. OFFICIAL.json records which files are official, so that scores on
them are called so. Licence: CC BY-NC-ND 4.0.
"""

from __future__ import annotations

import argparse
import http.client
import re
import shutil
import stat
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from common import cli, fingerprints, layout, official_files, run_log, writing, zips
from common.errors import InputError
from tools.templates import build_template

from tqdm import tqdm

URL = "https://dqanonymousdata.blob.core.windows.net/neurips-public/data.zip"
# Bytes and checksum of the official archive, computed from the file at the address above.
SIZE = 656_787_242
SHA256 = "c7f01672360f1adeb3cf9507d72455d7be035bf897e4a167293e8938049800e1"
# The parts that --parts can name. Each part is a folder, with the same name in the archive and in
# data/.
PARTS = {
    "answers": layout.TRAIN_DIR.name,
    "metadata": layout.METADATA_DIR.name,
    "tests": layout.TEST_DIR.name,
    "images": layout.IMAGES_DIR.name,
}
DEFAULT_PARTS = ("answers", "metadata", "tests")
IMAGES_NOTE = (
    "The images are restricted further than the other data: use them for your own research only, "
    "and never share or publish them, whole or in part."
)

ARCHIVE_NAME = "data.zip"
# Read this many bytes at a time.
BLOCK_BYTES = 1 << 20
# Options of the progress bars. With `disable` None, tqdm shows a bar on a terminal only.
BYTES_BAR: dict[str, Any] = {"unit": "B", "unit_scale": True, "disable": None}
TIMEOUT_SECONDS = 60.0
# Seconds to wait after the first, second, third and fourth transfer in a row that brings no bytes.
# After the fifth such transfer, the download fails.
PAUSES = (1.0, 3.0, 10.0, 30.0)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "--archive", type=Path, metavar="FILE", help="use this archive instead of fetching one"
    )
    parser.add_argument("--url", default=URL, help="a mirror of the official archive")
    cli.add_names(
        parser, "--parts", description="unpack some of", names=PARTS, default=DEFAULT_PARTS
    )
    cli.add_folder(parser, "--output_dir", layout.DATA_DIR)
    run_log.add_log_flag(parser)
    return parser


def main() -> None:
    """Fetch, check and unpack the archive, then build the templates."""
    options = build_parser().parse_args()
    data_dir: Path = options.output_dir
    template_dir = layout.template_dir_of(data_dir)
    log_event = run_log.open_log(options.log)
    if "images" in options.parts:
        print(IMAGES_NOTE)

    path = options.archive or data_dir / ARCHIVE_NAME
    if options.archive is None and not path.exists():
        fetch(options.url, path)
        log_event("fetched", file=str(path), bytes=SIZE)
    else:
        require_official(path)
    with zips.open_zip(path) as archive:
        files = find_members(archive, options.parts, data_dir)
        remove_simulated(data_dir, template_dir)
        unpack(archive, files, data_dir)
    record_official(data_dir, files)
    log_event("unpacked", files=[str(file) for file in files])
    if "tests" in options.parts:
        build_template(layout.TEMPLATE_TASK_1_2, data_dir, template_dir)
    if "metadata" in options.parts:
        build_template(layout.TEMPLATE_TASK_3, data_dir, template_dir)
    print(f"official data in {cli.show(data_dir)}: {', '.join(options.parts)} ({len(files)} files)")
    if not options.archive:
        print(f"{cli.show(path)} can be deleted, unless you will unpack more parts")
    print("next: python quickstart.py")


def record_official(data_dir: Path, files: Iterable[Path]) -> None:
    """Add the tables (CSV files) among the given official files to the record OFFICIAL.json.

    By this record, evaluations know which answers are official. If it is up to date, it is not
    written again.
    """
    tables = [file for file in files if file.suffix == ".csv"]
    # `record_of` returns a dict with one entry: the path of the record and its content.
    for record, content in official_files.record_of(data_dir, tables).items():
        is_up_to_date = record.is_file() and record.read_text() == content
        if not is_up_to_date:
            writing.write_files({record: content})


def require_official(path: Path) -> None:
    """Raise `InputError` unless a file is the official archive."""
    if not path.is_file():
        raise InputError(f"{path}: file not found, expected the official archive")
    if not is_official(path):
        raise InputError(
            f"{path}: is not the official archive, expected {SIZE:,} bytes with SHA-256 "
            f"{SHA256}; remove this file and run the command again"
        )


# ---- Fetching --------------------------------------------------------------------------------


def fetch(url: str, path: Path) -> None:
    """Fetch the archive to `path`; continue the partial file of an earlier run if there is one.

    The bytes go to a partial file, which gets the archive's name once it is complete and correct.
    """
    if not is_web_address(url):
        raise InputError(f"--url {url}: expected an address that begins with https:// or http://")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.touch()
    n_kept = partial.stat().st_size
    # Whether the partial file may hold bytes that an earlier run has fetched.
    is_continued = n_kept > 0
    # How many transfers have brought no bytes since the last transfer that brought some.
    n_failures = 0
    require_space(path.parent, SIZE - n_kept)
    with tqdm(total=SIZE, desc=f"fetching {ARCHIVE_NAME}", **BYTES_BAR) as bar:
        while not is_official(partial):
            n_before = partial.stat().st_size
            has_wrong_bytes = n_before >= SIZE
            if has_wrong_bytes:
                partial.unlink()
                if not is_continued:
                    raise InputError(
                        f"{url}: the file sent is not the official archive (SHA-256 differs), "
                        f"expected {SHA256}; the file was removed"
                    )
                # The bytes that an earlier run has fetched may be wrong: fetch everything again.
                partial.touch()
                n_before = 0
                is_continued = False
            # The reason to report if the transfer ends early without an error.
            reason = "the server closed the connection"
            try:
                append_blocks(url, partial, n_before, bar)
            except ConnectionError as error:
                reason = str(error)
            n_bytes = partial.stat().st_size
            n_failures = 0 if n_bytes > n_before else n_failures + 1
            if n_failures > len(PAUSES):
                raise InputError(
                    f"{url}: {reason}; {n_bytes:,} of {SIZE:,} bytes are there, run the "
                    f"command again to continue"
                )
            if n_failures:
                time.sleep(PAUSES[n_failures - 1])
    partial.replace(path)


def append_blocks(url: str, partial: Path, n_bytes: int, bar: tqdm[Any]) -> None:
    """Request the archive from byte `n_bytes` on and append what arrives to the partial file.

    Some servers send the archive from its beginning instead. Raises `InputError` if these bytes
    differ from those in the file.
    """
    with partial.open("r+b", buffering=0) as file:
        for block, start in request_blocks(url, n_bytes):
            # Compare the part of the block that the file already holds, and write the rest.
            file.seek(start)
            present = file.read(len(block))
            if present != block[: len(present)]:
                raise InputError(
                    f"{url}: sends other bytes than those already fetched; if the server is right, "
                    f"remove {cli.show(partial)} and run the command again"
                )
            file.write(block[len(present) :])
            # Move the bar on, from its old position `bar.n` to the position in the file.
            bar.update(file.tell() - bar.n)


def is_web_address(url: str) -> bool:
    """Return whether a text is an http or https address with a host, in ASCII without spaces."""
    try:
        parts = urllib.parse.urlsplit(url)
        # Reading `port` raises ValueError if the port is no number.
        is_complete = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_complete and url.isascii() and url.isprintable() and " " not in url


def request_blocks(url: str, start: int) -> Iterator[tuple[bytes, int]]:
    """Request the archive from byte `start` on; yield its blocks, each with its position.

    A server that does not support ranges sends everything: the first position is then 0. Raises
    `ConnectionError` if another attempt may succeed, otherwise `InputError`.
    """
    # Ask the server for no compression, since it would change the positions of bytes.
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            position = read_position(response, url, start)
            while position < SIZE and (block := response.read1(BLOCK_BYTES)):
                # Drop the bytes at the end if the server sends more than the archive has.
                yield block[: SIZE - position], position
                position += len(block)
    except urllib.error.HTTPError as error:
        reason = f"the server answered {error.code} {error.reason}"
        # Another attempt may succeed after 408 (timeout), 416 (range refused), 429 (too many
        # requests) and all server errors.
        if error.code < 500 and error.code not in (408, 416, 429):
            raise InputError(f"{url}: {reason}") from None
        raise ConnectionError(reason) from None
    except UnicodeError:
        raise InputError(f"{url}: the host name is not valid; choose another address") from None
    except (OSError, http.client.HTTPException) as error:
        # Some errors hold the true cause in `reason`. If an error has no text, name its type.
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise ConnectionError(reason) from None


def read_position(response: http.client.HTTPResponse, url: str, start: int) -> int:
    """Return the position in the archive of the first byte that the server sends: `start` or 0.

    Raises `ConnectionError` if the server sends another range than the one from byte `start` on,
    and `InputError` if the size of the server's file is not the size of the archive.
    """
    # The status 206 means that the server sends the range that was requested.
    if response.status == 206:
        # The header is like "bytes 1000-4999/5000": the range, and the size of the whole file.
        sent_range, _, stated_size = response.headers.get("Content-Range", "").partition("/")
        if not sent_range.startswith(f"bytes {start}-"):
            raise ConnectionError(f"the server sent '{sent_range}', expected bytes from {start}")
        position = start
    else:
        stated_size = response.headers.get("Content-Length", "")
        position = 0
    # If the text in the header is no number, the server states no size. Take at most 18 digits,
    # since `int` raises an error for a number with very many digits.
    if re.fullmatch("[0-9]{1,18}", stated_size) and int(stated_size) != SIZE:
        raise InputError(f"{url}: has {int(stated_size):,} bytes, expected {SIZE:,}")
    return position


def is_official(path: Path) -> bool:
    """Return whether a file is the official archive, by size and checksum."""
    return fingerprints.matches(path, {"bytes": SIZE, "sha256": SHA256})


# ---- Unpacking -------------------------------------------------------------------------------


def find_members(
    archive: zipfile.ZipFile, parts: Sequence[str], data_dir: Path
) -> dict[Path, zipfile.ZipInfo]:
    """Return the members of the archive to unpack; the keys are the paths of the files to write.

    Raises `InputError` if a member would be written outside `data_dir`. Also raises it if a member
    differs from a file that exists, unless that file holds simulated data.
    """
    files: dict[Path, zipfile.ZipInfo] = {}
    folders = {PARTS[part] for part in parts}
    for member in archive.infolist():
        if may_leave_folder(member):
            raise InputError(
                f"{archive.filename}: holds '{member.filename}', which would leave the folder "
                f"{data_dir}; nothing was unpacked"
            )
        path_parts = PurePosixPath(member.filename).parts
        # The official archive has everything in a folder data/.
        if path_parts[0] == layout.DATA_DIR.name:
            path_parts = path_parts[1:]
        is_in_folder = len(path_parts) > 1 and path_parts[0] in folders
        if is_in_folder and not member.is_dir():
            files[data_dir.joinpath(*path_parts)] = member
    # Simulated files may be overwritten.
    simulated = fingerprints.replaceable_files(data_dir)
    for file, member in files.items():
        if file.exists() and file not in simulated and not is_same(file, member):
            raise InputError(
                f"{file}: differs from the archive's file of this name; move it away and run the "
                f"command again"
            )
    return files


def may_leave_folder(member: zipfile.ZipInfo) -> bool:
    """Return whether unpacking a member could write outside the folder that it is unpacked into."""
    # The upper 16 bits are the mode of a file on Unix.
    is_link = stat.S_ISLNK(member.external_attr >> 16)
    # On Windows, a folder in the member's name may be a drive, such as C:. If `find_members` joined
    # `data_dir` and such a name, the drive would take the place of `data_dir`. `leads_out` only
    # refuses a drive at the beginning of the name, so refuse a drive anywhere.
    has_drive = ":" in member.filename
    return is_link or has_drive or zips.leads_out(member.filename)


def is_same(file: Path, member: zipfile.ZipInfo) -> bool:
    """Return whether a file on disk equals a member of a zip, by size and CRC-32."""
    if not file.is_file() or file.stat().st_size != member.file_size:
        return False
    checksum = 0
    with file.open("rb") as opened:
        while block := opened.read(BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum == member.CRC


def remove_simulated(data_dir: Path, template_dir: Path) -> None:
    """Remove simulated files, and the templates and local splits that were made from them.

    Simulated files must never mix with official files. A template lists what to predict, and a
    local split divides the training answers, for scores on one's own machine. Nothing is removed if
    the simulated files belong to a competition that an organiser hosts.
    """
    marker = data_dir / layout.SIMULATED_MARKER_NAME
    is_simulated = marker.exists()
    if not is_simulated or fingerprints.is_hosted(data_dir):
        return
    print(f"removing the simulated data in {cli.show(data_dir)}")
    # The folder of the local splits.
    split_dir = data_dir / layout.TEST_INPUT_DIR.name
    # The keys of `RECORD_OF_FILE` are the names of all templates and of all files of local splits.
    # The value is the name of the record beside the file, which says how the file was made. Remove
    # both.
    for name, record in layout.RECORD_OF_FILE.items():
        is_template = name in (layout.TEMPLATE_TASK_1_2, layout.TEMPLATE_TASK_3)
        folder = template_dir if is_template else split_dir
        (folder / name).unlink(missing_ok=True)
        (folder / record).unlink(missing_ok=True)
    for file in fingerprints.replaceable_files(data_dir):
        file.unlink(missing_ok=True)
    # Remove the marker last: if this run is killed, the next one finds it and removes the rest.
    marker.unlink()


def unpack(archive: zipfile.ZipFile, files: Mapping[Path, zipfile.ZipInfo], data_dir: Path) -> None:
    """Unpack the members of an archive to the paths that are the keys of `files`.

    A file that exists is skipped: `find_members` has checked that it equals the member. A damaged
    member raises an error, and nothing of it is written.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    missing = {file: member for file, member in files.items() if not file.exists()}
    n_bytes = sum(member.file_size for member in missing.values())
    require_space(data_dir, n_bytes)
    with tqdm(total=n_bytes, desc="unpacking", **BYTES_BAR) as bar:
        for file, member in missing.items():
            # Reading a member to its end checks its CRC-32.
            with archive.open(member) as source, writing.atomic_write(file) as (target,):
                while block := source.read(BLOCK_BYTES):
                    target.write(block)
                    bar.update(len(block))


def require_space(folder: Path, n_bytes: int) -> None:
    """Raise `InputError` unless the disk of a folder has `n_bytes` free bytes."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise InputError(
            f"{folder}: the disk has {free / 1e6:,.0f} MB free, expected {n_bytes / 1e6:,.0f} MB"
        )


if __name__ == "__main__":
    cli.run(main)
