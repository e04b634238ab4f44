"""Put simulated files in place of former ones: all of them, or none."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import layout, writing
from common.errors import InputError
from common.fingerprints import fingerprint, simulated_files


def place_simulated(
    data_dir: Path, folders: Sequence[str], write_tree: Callable[[Path], dict[str, Any]]
) -> None:
    """Put simulated files in place of former ones, all or none; `write_tree` writes them below a
    folder and returns what else the marker says; other files there are an `InputError`.
    """
    partial = writing.partial_beside(data_dir / "simulation")
    # Left by a process of the same number, as in a container that was stopped.
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        # Looked for after its own is made: of two processes at least one finds the other.
        for other in data_dir.glob(".simulation.*.partial"):
            if other != partial:
                raise InputError(
                    f"{data_dir}: another process ({other.name.split('.')[2]}) is simulating into "
                    f"it; wait until it ends, or remove {other.name} if there is none"
                )
        former = {path: fingerprint(path) for path in simulated_files(data_dir)}
        for folder in folders:
            for path in sorted((data_dir / folder).rglob("*")):
                if path.is_file() and not path.name.startswith(".") and path not in former:
                    raise InputError(
                        f"{path}: is not a simulated file and would be overwritten; "
                        "expected an empty data folder, or give another one with --output_dir"
                    )
        facts = write_tree(partial)
        new = {path: fingerprint(path) for path in sorted(partial.rglob("*")) if path.is_file()}
        files = {path.relative_to(partial).as_posix(): f for path, f in new.items()}
        replaced = {path.relative_to(data_dir).as_posix(): f for path, f in former.items()}
        marker = {"simulated": True, **facts, "files": files}
        # Written before anything changes: whenever the run is killed, all files are known.
        place = data_dir / layout.SIMULATED_MARKER_NAME
        writing.write_files({place: json.dumps({**marker, "replaced": replaced}, indent=2) + "\n"})
        for path in new:
            target = data_dir / path.relative_to(partial)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            former.pop(target, None)
        for path in former:
            path.unlink(missing_ok=True)
        writing.write_files({place: json.dumps(marker, indent=2) + "\n"})
    finally:
        shutil.rmtree(partial, ignore_errors=True)
