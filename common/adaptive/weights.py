"""The weights of a package of task 4; the standard library only, as the quickstart imports it."""

import shutil
from pathlib import Path

from common import provenance
from common.errors import printable

# The challenge's rule: the names of saved models, or of their folders, begin with this.
WEIGHTS = "model_task_4"
# The students that a package's weights are trained on: none of them may be examined with it.
TRAINED_STUDENTS = f"{WEIGHTS}_students.npy"
TRAINING = f"{WEIGHTS}_training.json"


def read_origin(package: Path) -> provenance.Provenance | None:
    """Return how the weights of a package's folder were trained; None if that is not recorded."""
    path = package / TRAINING
    return provenance.parse(path.read_bytes()) if path.is_file() else None


def describe_origin(origin: provenance.Provenance | None) -> str:
    """Return the command that trained weights, to be shown."""
    return printable(origin.command) if origin else "not recorded"


def copy_package(package: Path, place: Path) -> None:
    """Copy a package without its weights, hidden files and caches."""
    without = shutil.ignore_patterns(f"{WEIGHTS}*", "__pycache__", ".*", "*.partial")
    shutil.copytree(package, place, ignore=without)
