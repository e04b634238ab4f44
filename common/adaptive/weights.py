"""The names of the files of a package's weights (task 4), and the record of how they were trained.

Uses the standard library only, since the quickstart imports this module before NumPy is installed.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path

from common import provenance
from common.errors import printable
from common.stray_files import is_stray

# The challenge's rules ask that the name of a saved model, or of its folder, begins with this.
WEIGHTS = "model_task_4"
# The file with the UserIds of the students that the weights are trained on. These students may not
# be examined.
TRAINED_STUDENTS = f"{WEIGHTS}_students.npy"
# The file that records how the weights were trained, as a `provenance.Provenance`.
TRAINING = f"{WEIGHTS}_training.json"
# The script that trains a package's weights. A package may lack this script.
TRAINER = "train_model.py"


def read_record(package: Path) -> provenance.Provenance | None:
    """Return how the weights of a package were trained; None if it is not recorded."""
    path = package / TRAINING
    return provenance.parse(path.read_bytes()) if path.is_file() else None


def describe_origin(record: provenance.Provenance | None) -> str:
    """Return the command that trained the weights, or "not recorded" without a record."""
    return printable(record.command) if record else "not recorded"


def move_record(folder: Path, copy: Path, package: Path) -> None:
    """Rewrite the record of weights trained in a copy of a package, as if trained in the package.

    The record then names the package's script, and the paths of its sources become relative to the
    package. If there is no valid record, nothing changes.

    Parameters
    ----------
    folder
        The folder whose record is rewritten: the copy or, if the weights have been moved there
        already, the package.
    copy
        The folder where the weights were trained. The paths in the record are relative to it.
    package
        The package that the copy was made of.
    """
    record = read_record(folder)
    if record is None:
        return
    made_from = {}
    for name, fingerprint in record.made_from.items():
        # In the record, `name` is the path of a source relative to the copy.
        name_from_package = os.path.relpath(copy / name, package).replace(os.sep, "/")
        made_from[name_from_package] = fingerprint
    script = provenance.show_path(package / TRAINER)
    moved_record = replace(record, script=script, made_from=made_from)
    (folder / TRAINING).write_bytes(moved_record.as_json())


def copy_package(package: Path, destination: Path) -> None:
    """Copy a package of task 4 without its weights and without stray files, such as caches."""

    def list_ignored(folder: str, names: list[str]) -> list[str]:
        """Return the names in a folder that are not copied."""
        return [name for name in names if name.startswith(WEIGHTS) or is_stray(name)]

    shutil.copytree(package, destination, ignore=list_ignored)
