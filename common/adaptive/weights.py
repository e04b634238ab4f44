"""The names of the files of a package's weights (task 4), and the record of how they were trained.

Uses the standard library only, since the quickstart imports this module before NumPy is installed.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path

from common import provenance
from common.errors import printable

# The beginning of the name of a saved model, or of the folder of a saved model, as the challenge's
# rules ask.
WEIGHTS = "model_task_4"
# UserIds of the students that the weights are trained on. These students may not be examined.
TRAINED_STUDENTS = f"{WEIGHTS}_students.npy"
# How the weights were trained, as a `provenance.Provenance`.
TRAINING = f"{WEIGHTS}_training.json"


def read_origin(package: Path) -> provenance.Provenance | None:
    """Return how the weights of a package were trained; None if it is not recorded."""
    path = package / TRAINING
    return provenance.parse(path.read_bytes()) if path.is_file() else None


def describe_origin(origin: provenance.Provenance | None) -> str:
    """Return the command that trained the weights, or that it is not recorded, as text."""
    return printable(origin.command) if origin else "not recorded"


def move_record(origin: provenance.Provenance, copy: Path, package: Path) -> provenance.Provenance:
    """Return the record `origin` of weights trained in a copy, as if the package had trained them.

    The record names the script in the package, and paths of its sources relative to the package.
    """
    trainer = package / Path(origin.script).name
    made_from = {
        os.path.relpath(copy / name, package).replace(os.sep, "/"): known
        for name, known in origin.made_from.items()
    }
    return replace(origin, script=provenance.show_path(trainer), made_from=made_from)


def copy_package(package: Path, destination: Path) -> None:
    """Copy a package without its weights, hidden files and caches."""
    ignored = shutil.ignore_patterns(f"{WEIGHTS}*", "__pycache__", ".*", "*.partial")
    shutil.copytree(package, destination, ignore=ignored)
