"""Fingerprint files, to tell whether a file has changed, and find simulated files.

This module needs the standard library only: the quickstart uses it before anything is installed.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import file_digest, sha256
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from common import layout
from common.stray_files import list_paths

# The keys are "bytes" (the file's size), and "sha256" (of its content) or "sha256_of_samples" (of
# samples of its content).
Fingerprint = dict[str, int | str]

# The fingerprint of a large file is made from 64 samples of its content, which takes about 1 ms.
_N_SAMPLES = 64
_SAMPLE_SIZE = 1 << 16
# Number of bytes up to which `digest` reads a file in one go.
_SMALL_FILE = 1 << 16
# A relative path with at least one folder, without `..`, drive letter or backslash.
_PATH_IN_TREE = re.compile(r"([^./\\:][^/\\:]*/)+[^./\\:][^/\\:]*")


def fingerprint(path: Path) -> Fingerprint:
    """Return the fingerprint of a file: its size, and the SHA-256 of its content.

    For a large file it is the SHA-256 of samples of the content.
    """
    with open_unnoticed(path) as file:
        return fingerprint_open(file, path.stat().st_size)


def open_unnoticed(path: Path) -> BufferedReader:
    """Open a file for reading, without making it a source of the files that this process writes.

    `provenance.watching_reads` notes each file that a process opens with `open`. It does not note
    files opened with `os.open`, which this function uses.
    """
    # On Windows, a flag says that a file is binary. Other systems have no such flag.
    return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)), "rb")


def fingerprint_open(file: IO[bytes], size: int) -> Fingerprint:
    """Return the fingerprint of an open binary file of `size` bytes; see `fingerprint`."""
    if size <= _N_SAMPLES * _SAMPLE_SIZE:
        return {"bytes": size, "sha256": sha256(file.read()).hexdigest()}
    samples = sha256()
    for k in range(_N_SAMPLES):
        file.seek(k * (size - _SAMPLE_SIZE) // (_N_SAMPLES - 1))
        samples.update(file.read(_SAMPLE_SIZE))
    return {"bytes": size, "sha256_of_samples": samples.hexdigest()}


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of the files in a folder."""
    if not path.is_dir():
        with open_unnoticed(path) as file:
            # Read a small file in one go, which is faster. `file_digest` reads the file in parts.
            if os.fstat(file.fileno()).st_size <= _SMALL_FILE:
                return sha256(file.read()).hexdigest()
            return file_digest(file, "sha256").hexdigest()
    total = sha256()
    for inside in filter(Path.is_file, list_paths(path)):
        total.update(f"{inside.relative_to(path).as_posix()} {digest(inside)}\n".encode())
    return total.hexdigest()


def matches(path: Path, known: object) -> bool:
    """Return whether `path` is a file with the fingerprint `known`.

    `known` may be of any type, since it may come from a damaged record.
    """
    if not isinstance(known, Mapping) or not path.is_file():
        return False
    # A file of another size need not be read.
    if path.stat().st_size != known.get("bytes"):
        return False
    if known == fingerprint(path):
        return True
    # For a large file, `fingerprint` takes the digest of samples. `known` may hold the digest of
    # the whole content, which earlier versions of the kit took.
    return "sha256" in known and known["sha256"] == digest(path)


def is_listed(path: Path, known: Iterable[object]) -> bool:
    """Return whether `path` is a file with one of the fingerprints `known`."""
    size = path.stat().st_size if path.is_file() else None
    # Read the file only for fingerprints with its size: all others cannot match.
    same_size = [each for each in known if isinstance(each, Mapping) and each.get("bytes") == size]
    return any(matches(path, each) for each in same_size)


# ---- Markers of data folders ---------------------------------------------------------------------


def data_folders(path: Path) -> list[Path]:
    """Return the folders whose marker SIMULATED.json may list a file.

    These are the folders around the file, any of which may be a data folder, and the kit's data
    folder.
    """
    # A file lies at most three folders deep in a data folder.
    return list(dict.fromkeys([*path.absolute().parents[:4], layout.DATA_DIR]))


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, which callers share and must not change.

    Returns None if the file cannot be read.
    """
    try:
        status = path.stat()
        return _read_json(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, RecursionError):
        return None


# A marker may hold some megabytes and is needed several times, so keep its content in a cache.
@lru_cache(maxsize=8)
def _read_json(path: Path, changed: int, size: int) -> Any:
    """Return the content of a JSON file.

    `changed`, the time of the last change, and `size` only serve as keys of the cache: if one of
    them differs from an earlier call, the file is read again.
    """
    return json.loads(path.read_bytes())


# ---- Simulated files -----------------------------------------------------------------------------


def read_marker(data_dir: Path) -> dict[str, Any] | None:
    """Read the marker that a simulation leaves in a data folder; None if there is no valid marker.

    The entry `files` lists the simulated files. While a new simulation replaces older files,
    `replaced` lists the older ones. Both are dicts of fingerprints by path. The entry `sketches`
    holds hashes of rows of the files of answers, by which copies of these rows are recognised (see
    `common.row_sketches`). `hosted` is True if the files belong to a competition. Only its
    organiser can simulate these files again.
    """
    marker = read_json(data_dir / layout.SIMULATED_MARKER_NAME)
    try:
        names = [*marker["files"].keys(), *marker.get("replaced", {}).keys()]
        is_valid = all(_PATH_IN_TREE.fullmatch(name) for name in names)
    except (KeyError, TypeError, AttributeError):
        return None
    return marker if is_valid else None


def is_simulated_copy(path: Path) -> bool:
    """Return whether a file has the content of a simulated file, even if it lies elsewhere."""
    for folder in data_folders(path):
        marker = read_marker(folder) or {}
        for part in ("files", "replaced"):
            if is_listed(path, marker.get(part, {}).values()):
                return True
    return False


def simulated_files(data_dir: Path) -> list[Path]:
    """Return the simulated files in a data folder that have not changed since the simulation."""
    # A simulation lists its files with their fingerprints in the file SIMULATED.json, the marker.
    marker = read_marker(data_dir)
    if marker is None:
        return []
    simulated: set[Path] = set()
    # The entry "replaced" lists files of an earlier simulation that the latest simulation had to
    # replace. If the latest simulation was killed, some of these earlier files are still there.
    for part in ("files", "replaced"):
        for name, recorded_fingerprint in marker.get(part, {}).items():
            path = data_dir / name
            if matches(path, recorded_fingerprint):
                simulated.add(path)
    return sorted(simulated)


def replaceable_files(data_dir: Path) -> list[Path]:
    """Return the simulated files of a data folder that another simulation may replace.

    Files of a hosted competition are not among them, since nobody here could simulate them again.
    """
    return [] if is_hosted(data_dir) else simulated_files(data_dir)


def is_hosted(data_dir: Path) -> bool:
    """Return whether a data folder holds the simulated files of a hosted competition."""
    marker = read_marker(data_dir)
    return marker is not None and bool(marker.get("hosted"))
