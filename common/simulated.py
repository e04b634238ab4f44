"""Replace the simulated files of a data folder: either all of them, or none."""

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from common import layout, row_sketches, writing
from common.errors import InputError
from common.fingerprints import fingerprint, replaceable_files
from common.stray_files import list_paths


def place_simulated(
    data_dir: Path, folders: Sequence[str], write_tree: Callable[[Path], dict[str, Any]]
) -> None:
    """Replace the simulated files in a data folder by new ones: either all of them, or none.

    Parameters
    ----------
    data_dir
        The data folder.
    folders
        Names of folders in `data_dir`. They may hold only simulated files.
    write_tree
        Called with a folder; writes the new files into it. Returns entries that describe the
        simulation, for SIMULATED.json. This file marks the data folder as simulated.

    Raises
    ------
    InputError
        If a folder holds a file that is not simulated, or another process simulates there.
    """
    partial = writing.partial_beside(data_dir / "simulation")
    # The folder's name holds the id of this process. Yet the folder may exist already: a process
    # with the same id, which ran in another container and was killed, may have left it.
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        # First make the folder of this process, then look for folders of other processes: if two
        # processes start at the same time, at least one of them finds the folder of the other.
        _require_no_other_process(data_dir, partial)
        old_paths = replaceable_files(data_dir)
        replaced = _fingerprints(old_paths, data_dir)
        for folder in folders:
            _require_simulated(data_dir / folder, set(old_paths))
        facts = write_tree(partial)
        new_paths = [path for path in sorted(partial.rglob("*")) if path.is_file()]
        marker = {
            "simulated": True,
            **facts,
            "files": _fingerprints(new_paths, partial),
            "sketches": _sketches(new_paths, partial),
        }
        # Before any file changes, write a marker that lists both the old and the new files. If this
        # process is killed while it moves files, the next simulation still recognises all of them
        # as simulated.
        marker_path = data_dir / layout.SIMULATED_MARKER_NAME
        _write_json(marker_path, {**marker, "replaced": replaced})
        _replace_files(old_paths, new_paths, partial, data_dir)
        _write_json(marker_path, marker)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _require_no_other_process(data_dir: Path, partial: Path) -> None:
    """Raise `InputError` if another process is writing simulated files into a data folder.

    `partial` is the temporary folder of this process in the data folder.
    """
    for other in data_dir.glob(".simulation.*.partial"):
        if other != partial:
            # The name is .simulation.<process id>.partial.
            process_id = other.name.split(".")[2]
            raise InputError(
                f"{data_dir}: another process ({process_id}) is simulating into "
                f"it; wait until it ends, or remove {other.name} if there is none"
            )


def _replace_files(
    old_paths: Iterable[Path], new_paths: Iterable[Path], partial: Path, data_dir: Path
) -> None:
    """Move the new files from the folder `partial` into the data folder, and remove the old files.

    `new_paths` lie in `partial`, `old_paths` in `data_dir`. A new file keeps its path relative to
    its folder, and so may overwrite an old file. All other old files are deleted.
    """
    targets = set()
    for path in new_paths:
        target = data_dir / path.relative_to(partial)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
        targets.add(target)
    for path in old_paths:
        if path not in targets:
            path.unlink(missing_ok=True)


def _fingerprints(paths: Iterable[Path], folder: Path) -> dict[str, Any]:
    """Return the fingerprint of each file, by the file's path relative to `folder`."""
    return {path.relative_to(folder).as_posix(): fingerprint(path) for path in paths}


def _sketches(paths: Iterable[Path], folder: Path) -> dict[str, Any]:
    """Return the sketch of each file of answers or judgements, by its path relative to `folder`.

    A sketch holds hashes of some rows of a file. It serves to recognise changed copies of the file.
    """
    sketches = {}
    for path in paths:
        if path.suffix == ".csv":
            sketch = row_sketches.sketch(path)
            # The sketch is empty if the file holds neither answers nor judgements.
            if sketch:
                sketches[path.relative_to(folder).as_posix()] = sketch
    return sketches


def _require_simulated(folder: Path, simulated: Collection[Path]) -> None:
    """Raise `InputError` if a folder holds a file that is not simulated."""
    for path in list_paths(folder):
        if path.is_file() and path not in simulated:
            raise InputError(
                f"{path}: is not a simulated file and would be overwritten; "
                "expected an empty data folder, or give another one with --output_dir"
            )


def _write_json(path: Path, content: dict[str, Any]) -> None:
    writing.write_files({path: json.dumps(content, indent=2) + "\n"})
