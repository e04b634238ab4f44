"""Where files come from: which are simulated, and what a split or a template was made from.

`data/generate_sample.py` leaves SIMULATED.json with a fingerprint of every file that it wrote: a
file is simulated if its contents are still those. What the kit makes from such files, or from real
ones, has a stamp beside it: a small .json with the fingerprints of what it was made from and of all
files made together. Every script that reads such a file checks its stamp, so that a training file
of one split is never used with the validation file of another, nor a template with other data than
it was built from.
"""

import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, BinaryIO

from common import layout
from common.errors import InputError

Fingerprint = dict[str, int | str]


def fingerprint(path: Path) -> Fingerprint:
    """Return the size and the SHA-256 of a file: 0.6 s for a gigabyte."""
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": file_digest(file, "sha256").hexdigest()}


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files in a folder."""
    if not path.is_dir():
        return str(fingerprint(path)["sha256"])
    total = sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            name = file.relative_to(path).as_posix()
            total.update(f"{name} {fingerprint(file)['sha256']}\n".encode())
    return total.hexdigest()


def matches(path: Path, known: object) -> bool:
    """Return whether a file is there and has the contents of a fingerprint."""
    if not isinstance(known, Mapping) or not path.is_file():
        return False
    # A file of another size need not be read.
    return path.stat().st_size == known.get("bytes") and fingerprint(path) == known


# ---- Simulated files -------------------------------------------------------------------------


def read_marker(data_dir: Path) -> dict[str, Any] | None:
    """Read the simulation's record of a folder laid out like `data/`.

    Returns
    -------
    dict or None
        With ``files``, and possibly ``replaced``: a fingerprint for each name, such as
        ``train_data/train_task_1_2.csv``. None if there is no marker, or it is damaged, or names a
        file that lies elsewhere than in the folders of the data.
    """
    try:
        marker = json.loads((data_dir / layout.SIMULATED_MARKER_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(marker, dict) or not isinstance(marker.get("files"), dict):
        return None
    for files in (marker["files"], marker.setdefault("replaced", {})):
        if not isinstance(files, dict) or not all(map(_is_in_tree, files)):
            return None
    return marker


def _is_in_tree(name: str) -> bool:
    """Return whether a name in a marker stays inside the folders of the data."""
    parts = name.replace("\\", "/").split("/")
    inside = all(part and not part.startswith(".") and ":" not in part for part in parts)
    return inside and len(parts) > 1


def simulated_files(data_dir: Path) -> list[Path]:
    """Return the simulated files in a folder laid out like `data/` that are unchanged."""
    marker = read_marker(data_dir)
    if marker is None:
        return []
    names = sorted({**marker["replaced"], **marker["files"]})
    return [data_dir / name for name in names if _is_in_marker(data_dir / name, name, marker)]


def _is_in_marker(path: Path, name: str, marker: Mapping[str, Any]) -> bool:
    # While the simulation replaces its files, some are still the former ones.
    return any(matches(path, marker[kind].get(name)) for kind in ("files", "replaced"))


def is_simulated(*paths: Path) -> bool:
    """Return whether any of the files is simulated, or was made from a simulated one.

    Parameters
    ----------
    paths
        Files that a score rests on, or folders of such; those that are not there do not count.
    """
    return any(
        _is_simulated(file.absolute())
        for path in paths
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
    )


def _is_simulated(path: Path) -> bool:
    stamp = read_stamp(path)
    if stamp is not None and matches(path, stamp["files"].get(path.name)):
        return bool(stamp["simulated"])
    for data_dir in path.parents[1:4]:
        marker = read_marker(data_dir)
        if marker is not None:
            return _is_in_marker(path, path.relative_to(data_dir).as_posix(), marker)
    return False


def is_running(process: int) -> bool:
    """Return whether a process of that number runs; on Windows always True."""
    if os.name == "nt":
        return True  # Asking there would end it.
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


# ---- Stamps of files that the kit made -------------------------------------------------------


def stamp_path(path: Path) -> Path | None:
    """Return where the stamp of a file would lie; None if files of that name have none."""
    name = layout.STAMP_OF_FILE.get(path.name)
    return None if name is None else path.with_name(name)


def read_stamp(path: Path) -> dict[str, Any] | None:
    """Read the stamp of a file; None if there is none.

    Raises
    ------
    InputError
        If it is there and damaged.
    """
    place = stamp_path(path)
    if place is None or not place.is_file():
        return None
    try:
        stamp = json.loads(place.read_text(encoding="utf-8"))
        valid = (
            all(isinstance(stamp[name], dict) for name in ("files", "made_from"))
            and isinstance(stamp["simulated"], bool)
            and isinstance(stamp["command"], str)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise InputError(f"{place}: is damaged, expected the stamp of {path.name}; remove it")
    return dict(stamp)


def make_stamp(
    files: Mapping[str, BinaryIO], made_from: Sequence[Path], folder: Path, command: str
) -> bytes:
    """Return the stamp of files that are being written.

    Parameters
    ----------
    files
        The open files, complete, by their final names.
    made_from
        What they were made from.
    folder
        Where they will lie.
    command
        Makes them again.
    """
    for file in files.values():
        file.flush()
    stamp = {
        "command": command,
        "simulated": is_simulated(*made_from),
        "files": {name: fingerprint(Path(file.name)) for name, file in files.items()},
        "made_from": {_relative(path, folder): fingerprint(path) for path in made_from},
    }
    return (json.dumps(stamp, indent=1) + "\n").encode()


def require_current(paths: Iterable[Path]) -> None:
    """Check files that the kit may have made, before they are read.

    Files without a stamp are the user's own and pass.

    Raises
    ------
    InputError
        If a file is not the one that its stamp describes, or what it was made from has changed.
    """
    for path in paths:
        stamp = read_stamp(path)
        if stamp is None or not path.exists():
            continue
        place = stamp_path(path)
        if not matches(path, stamp["files"].get(path.name)):
            raise InputError(
                f"{path}: is not the file that {place} describes, so it may be of another split or "
                f"of other data; `{stamp['command']}` makes it again, or remove the .json if the "
                "file is your own"
            )
        for name, known in stamp["made_from"].items():
            source = path.parent / name
            if source.is_file() and not matches(source, known):
                raise InputError(
                    f"{path}: was made from other data than now lie in {source.resolve()}; "
                    f"`{stamp['command']}` makes it again"
                )


def are_current(paths: Iterable[Path]) -> bool:
    """Return whether all files are there and pass `require_current`."""
    try:
        require_current(paths := list(paths))
    except InputError:
        return False
    return all(path.is_file() for path in paths)


def _relative(path: Path, folder: Path) -> str:
    """Return a path as seen from a folder, so that the whole tree may be moved."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # Another drive on Windows.
        return path.resolve().as_posix()


def this_command() -> str:
    """Return the command that is running, as typed in the kit's folder."""
    script = Path(sys.argv[0]).resolve()
    if not script.is_relative_to(layout.ROOT):
        return shlex.join(["python", *sys.argv])
    name = script.relative_to(layout.ROOT)
    if name.parts[0] == "tools":
        return shlex.join(["python", "-m", ".".join(name.with_suffix("").parts), *sys.argv[1:]])
    return shlex.join(["python", name.as_posix(), *sys.argv[1:]])
