"""Fingerprint files, to tell whether a file has changed, and find simulated files.

This module needs the standard library only: the quickstart uses it before anything is installed.
"""

import json
import re
from collections.abc import Mapping
from hashlib import file_digest, sha256
from pathlib import Path
from typing import IO, Any

from common import layout

# The keys are "bytes" (the file's size), and "sha256" (of its content) or "sha256_of_samples" (of
# samples of its content).
Fingerprint = dict[str, int | str]

# Large files are fingerprinted by 64 samples, which takes 1 ms.
_N_SAMPLES = 64
_SAMPLE_SIZE = 1 << 16
# A relative path with at least one folder, without `..`, drive letter or backslash.
_PATH_IN_TREE = re.compile(r"([^./\\:][^/\\:]*/)+[^./\\:][^/\\:]*")


def fingerprint(path: Path) -> Fingerprint:
    """Return the fingerprint of a file: its size, and the SHA-256 of its content.

    For a large file it is the SHA-256 of samples of the content.
    """
    with path.open("rb") as file:
        return fingerprint_open(file, path.stat().st_size)


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
    """Return the SHA-256 of a file, or of the names and contents of all files in a folder."""
    if not path.is_dir():
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    total = sha256()
    for inside in sorted(filter(Path.is_file, path.rglob("*"))):
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
    # Earlier versions of the kit fingerprinted large files by their whole content.
    return "sha256" in known and known["sha256"] == digest(path)


# ---- Simulated files -----------------------------------------------------------------------------


def read_marker(data_dir: Path) -> dict[str, Any] | None:
    """Read the marker that a simulation leaves in a data folder; None if there is no valid marker.

    The entry `files` lists the simulated files. While a new simulation replaces older files,
    `replaced` lists the older ones. Both are dicts of fingerprints by path.
    """
    try:
        marker = json.loads((data_dir / layout.SIMULATED_MARKER_NAME).read_bytes())
        names = [*marker["files"].keys(), *marker.setdefault("replaced", {}).keys()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return marker if all(_PATH_IN_TREE.fullmatch(name) for name in names) else None


def simulated_files(data_dir: Path, only: Path | None = None) -> list[Path]:
    """Return the unchanged simulated files in a folder that is laid out like `data/`.

    `only` restricts the search to one path.
    """
    marker = read_marker(data_dir)
    if marker is None:
        return []
    simulated: set[Path] = set()
    # Look for replaced files too: if a simulation was killed, some of them are still there.
    for part in ("files", "replaced"):
        for name, known in marker.get(part, {}).items():
            path = data_dir / name
            if (only is None or path == only) and matches(path, known):
                simulated.add(path)
    return sorted(simulated)
