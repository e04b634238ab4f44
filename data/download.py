"""Fetch the official data, check them, unpack them into data/ and build the templates.

    python data/download.py                                  all but the images (657 MB)
    python data/download.py --archive ~/Downloads/data.zip   from an archive that is there already
    python data/download.py --parts answers metadata         only some parts

The same command resumes an interrupted download, or a killed run, where it stopped; nothing is
unpacked before size and checksum match the official archive. Simulated data in the folder are
removed, other files are never overwritten. Licence: CC BY-NC-ND 4.0.
"""

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from common import cli, fingerprints, layout, run_log, writing, zips
from common.errors import InputError
from tools.templates import build_template

from tqdm import tqdm

URL = "https://dqanonymousdata.blob.core.windows.net/neurips-public/data.zip"
SIZE, SHA256 = 656_787_242, "c7f01672360f1adeb3cf9507d72455d7be035bf897e4a167293e8938049800e1"
# The parts that --parts names, and the folder of each.
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
BLOCK = 1 << 20
# Of progress bars, shown on a terminal.
IN_BYTES: dict[str, Any] = {"unit": "B", "unit_scale": True, "disable": None}
TIMEOUT_SECONDS = 60.0
# Seconds before a transfer that brought nothing is tried again; after the last it fails.
PAUSES = (1.0, 3.0, 10.0, 30.0)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "--archive", type=Path, metavar="FILE", help="do not fetch, use this archive"
    )
    parser.add_argument("--url", default=URL, help="a mirror of the archive")
    cli.add_names(parser, "--parts", "some of", PARTS, DEFAULT_PARTS)
    cli.add_folder(parser, "--output_dir", layout.DATA_DIR)
    run_log.add_log_flag(parser)
    return parser


def main() -> None:
    """Fetch, check, unpack, build the templates."""
    options = build_parser().parse_args()
    data_dir: Path = options.output_dir
    is_default = data_dir.resolve() == layout.DATA_DIR
    template_dir = layout.TEMPLATE_DIR if is_default else data_dir / layout.TEMPLATE_DIR.name
    log_event = run_log.open_log(options.log)
    if "images" in options.parts:
        print(IMAGES_NOTE)

    path = options.archive or data_dir / ARCHIVE_NAME
    if not options.archive and not path.exists():
        fetch(options.url, path)
        log_event("fetched", file=str(path), bytes=SIZE)
    elif not path.is_file():
        raise InputError(f"{path}: file not found, expected the official archive")
    elif not is_official(path):
        raise InputError(
            f"{path}: is not the official archive, expected {SIZE:,} bytes with SHA-256 "
            f"{SHA256}; remove it and run the command again"
        )
    with zips.open_zip(path) as archive:
        files = plan(archive, options.parts, data_dir)
        remove_simulated(data_dir, template_dir)
        unpack(archive, files, data_dir)
    log_event("unpacked", files=[str(file) for file in files])
    if "tests" in options.parts:
        build_template(layout.TEMPLATE_TASK_1_2, data_dir, template_dir)
    if "metadata" in options.parts:
        build_template(layout.TEMPLATE_TASK_3, data_dir, template_dir)
    print(f"official data in {cli.show(data_dir)}: {', '.join(options.parts)} ({len(files)} files)")
    if not options.archive:
        print(f"{cli.show(path)} is no longer needed, unless for other parts")
    print("next: python quickstart.py")


# ---- Fetching --------------------------------------------------------------------------------


def fetch(url: str, path: Path) -> None:
    """Fetch the archive, resuming what an earlier run left; it gets its name once it is right."""
    if not is_address(url):
        raise InputError(f"--url {url}: expected an address that begins with https:// or http://")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.touch()
    n_kept, n_failures = partial.stat().st_size, 0
    require_space(path.parent, SIZE - n_kept)
    with tqdm(total=SIZE, desc=f"fetching {ARCHIVE_NAME}", **IN_BYTES) as bar:
        while not is_official(partial):
            n_before = partial.stat().st_size
            if n_before >= SIZE:
                partial.unlink()
                if not n_kept:
                    raise InputError(
                        f"{url}: what was sent is not the official archive (SHA-256 differs), "
                        f"expected {SHA256}; it was removed"
                    )
                # What an earlier run left may have been wrong: once more from the start.
                partial.touch()
                n_before = n_kept = 0
            reason = "the server closed the connection"
            try:
                with partial.open("r+b", buffering=0) as file:
                    for block, start in blocks(url, n_before):
                        # A server that cannot resume starts from 0, with the same bytes.
                        file.seek(start)
                        known = file.read(len(block))
                        if known != block[: len(known)]:
                            raise InputError(
                                f"{url}: sends other bytes than those that are there, which are "
                                f"kept; expected the same, or remove {cli.show(partial)}"
                            )
                        file.write(block[len(known) :])
                        bar.update(file.tell() - bar.n)
            except ConnectionError as error:
                reason = str(error)
            n_bytes = partial.stat().st_size
            n_failures = 0 if n_bytes > n_before else n_failures + 1
            if n_failures > len(PAUSES):
                raise InputError(
                    f"{url}: {reason}; {n_bytes:,} of {SIZE:,} bytes are there, run the "
                    f"command again to resume"
                )
            if n_failures:
                time.sleep(PAUSES[n_failures - 1])
    partial.replace(path)


def is_address(url: str) -> bool:
    """Return whether a text is an address to fetch from: plain characters, a host, a port."""
    try:
        parts = urllib.parse.urlsplit(url)
        is_whole = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_whole and url.isascii() and url.isprintable() and " " not in url


def blocks(url: str, start: int) -> Iterator[tuple[bytes, int]]:
    """Request the archive from a byte on and yield its blocks, each with its place: from 0 where
    the server cannot resume; `ConnectionError` where trying again may help.
    """
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            if response.status == 206:
                place, _, total = response.headers.get("Content-Range", "").partition("/")
                if not place.startswith(f"bytes {start}-"):
                    raise ConnectionError(f"the server sent '{place}', expected bytes from {start}")
            else:
                start, total = 0, response.headers.get("Content-Length", "")
            # Of digits that other scripts have, and of thousands, no number is made.
            if re.fullmatch("[0-9]{1,18}", total) and int(total) != SIZE:
                raise InputError(f"{url}: has {int(total):,} bytes, expected {SIZE:,}")
            while start < SIZE and (block := response.read1(BLOCK)):
                yield block[: SIZE - start], start
                start += len(block)
    except urllib.error.HTTPError as error:
        reason = f"the server answered {error.code} {error.reason}"
        if error.code < 500 and error.code not in (408, 416, 429):
            raise InputError(f"{url}: {reason}") from None
        raise ConnectionError(reason) from None
    except UnicodeError:
        raise InputError(f"{url}: has no host that could exist, expected another address") from None
    except (OSError, http.client.HTTPException) as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise ConnectionError(reason) from None


def is_official(path: Path) -> bool:
    """Return whether a file is the official archive, by size and checksum."""
    return path.stat().st_size == SIZE and fingerprints.digest(path) == SHA256


# ---- Unpacking -------------------------------------------------------------------------------


def plan(
    archive: zipfile.ZipFile, parts: Sequence[str], data_dir: Path
) -> dict[Path, zipfile.ZipInfo]:
    """Return the wanted files of the archive by where they go; `InputError` if any would leave the
    folder, or a file is there that is neither the same nor simulated.
    """
    files: dict[Path, zipfile.ZipInfo] = {}
    folders = {PARTS[part] for part in parts}
    for member in archive.infolist():
        name = PurePosixPath(member.filename)
        is_link = stat.S_ISLNK(member.external_attr >> 16)
        leaves = name.is_absolute() or ".." in name.parts
        if is_link or leaves or any(sign in member.filename for sign in "\\:"):
            raise InputError(
                f"{archive.filename}: holds '{member.filename}', which would leave the folder "
                f"{data_dir}; nothing was unpacked"
            )
        inner = name.parts[1:] if name.parts[0] == layout.DATA_DIR.name else name.parts
        if len(inner) > 1 and inner[0] in folders and not member.is_dir():
            files[data_dir.joinpath(*inner)] = member
    simulated = fingerprints.simulated_files(data_dir)
    for file, member in files.items():
        if file.exists() and file not in simulated and not is_same(file, member):
            raise InputError(
                f"{file}: is there and is not the archive's file, expected none or the same; "
                f"move it away and run the command again"
            )
    return files


def is_same(file: Path, member: zipfile.ZipInfo) -> bool:
    """Return whether a file on disk is what a zip holds, by size and CRC-32."""
    if not file.is_file() or file.stat().st_size != member.file_size:
        return False
    checksum = 0
    with file.open("rb") as opened:
        while block := opened.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum == member.CRC


def remove_simulated(data_dir: Path, template_dir: Path) -> None:
    """Remove simulated files and what was made of them: they must never mix with official ones."""
    marker = data_dir / layout.SIMULATED_MARKER_NAME
    if not marker.exists():
        return
    print(f"removing the simulated data in {cli.show(data_dir)}")
    templates = (layout.TEMPLATE_TASK_1_2, layout.TEMPLATE_TASK_3)
    derived = [
        (template_dir if name in templates else data_dir / layout.TEST_INPUT_DIR.name) / each
        for name, stamp in layout.STAMP_OF_FILE.items()
        for each in (name, stamp)
    ]
    for file in [*derived, *fingerprints.simulated_files(data_dir)]:
        file.unlink(missing_ok=True)
    # Last, so that the next run continues here if this one is killed.
    marker.unlink()


def unpack(archive: zipfile.ZipFile, files: Mapping[Path, zipfile.ZipInfo], data_dir: Path) -> None:
    """Unpack files, each complete and checked or not at all; files that are there are kept."""
    data_dir.mkdir(parents=True, exist_ok=True)
    todo = {file: member for file, member in files.items() if not file.exists()}
    n_bytes = sum(member.file_size for member in todo.values())
    require_space(data_dir, n_bytes)
    with tqdm(total=n_bytes, desc="unpacking", **IN_BYTES) as bar:
        for file, member in todo.items():
            # Reading checks the CRC-32.
            with archive.open(member) as source, writing.atomic_write(file) as (target,):
                while block := source.read(BLOCK):
                    target.write(block)
                    bar.update(len(block))


def require_space(folder: Path, n_bytes: int) -> None:
    """Raise `InputError` unless the disk of a folder has room for so many bytes."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise InputError(
            f"{folder}: the disk has {free / 1e6:,.0f} MB free, expected {n_bytes / 1e6:,.0f} MB"
        )


if __name__ == "__main__":
    cli.run(main)
