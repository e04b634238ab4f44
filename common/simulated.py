"""Put simulated files in place of former ones: all of them, or none."""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import io, layout
from common.errors import InputError
from common.made import fingerprint, is_running, simulated_files

# Holds the number of the process that writes into a folder.
_PROCESS = ".process"


def place_simulated(
    data_dir: Path, folders: Sequence[str], write_tree: Callable[[Path], dict[str, Any]]
) -> None:
    """Put simulated files in place of former ones, all or none; `write_tree` writes them below a
    folder and returns what else the marker says; other files there are an `InputError`.
    """
    partial = data_dir / ".simulation.partial"
    _claim(partial)
    try:
        former = {path: fingerprint(path) for path in simulated_files(data_dir)}
        for folder in folders:
            for path in sorted((data_dir / folder).rglob("*")):
                if path.is_file() and not path.name.startswith(".") and path not in former:
                    raise InputError(
                        f"{path}: is not a simulated file and would be overwritten; "
                        "expected an empty data folder, or give another one with --output_dir"
                    )
        facts = write_tree(partial)
        (partial / _PROCESS).unlink()
        new = {path: fingerprint(path) for path in sorted(partial.rglob("*")) if path.is_file()}
        marker: dict[str, Any] = {"simulated": True, **facts}
        marker["files"] = {path.relative_to(partial).as_posix(): f for path, f in new.items()}
        marker["replaced"] = {
            path.relative_to(data_dir).as_posix(): f for path, f in former.items()
        }
        # Written before anything changes: whenever the run is killed, all files are known.
        place = data_dir / layout.SIMULATED_MARKER_NAME
        io.write({place: json.dumps(marker, indent=2) + "\n"})
        for path in new:
            target = data_dir / path.relative_to(partial)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            former.pop(target, None)
        for path in former:
            path.unlink(missing_ok=True)
        del marker["replaced"]
        io.write({place: json.dumps(marker, indent=2) + "\n"})
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _claim(partial: Path) -> None:
    """Make the folder that a simulation writes into; only one process can."""
    try:
        partial.mkdir(parents=True)
    except FileExistsError:
        try:
            owner = int((partial / _PROCESS).read_text())
        except (OSError, ValueError):
            owner = 0
        # A process that has just made it has not written its number yet.
        is_new = time.time() - partial.stat().st_mtime < 10
        if is_running(owner) if owner else is_new:
            raise InputError(
                f"{partial.parent}: another process ({owner or 'just started'}) is simulating "
                f"into it; wait until it ends, or remove {partial.name} if there is none"
            ) from None
        shutil.rmtree(partial)
        partial.mkdir()
    (partial / _PROCESS).write_text(str(os.getpid()))
