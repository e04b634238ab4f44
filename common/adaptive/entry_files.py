"""Which files of a folder belong to an entry of task 4: all beside its class, with few exceptions.

They are zipped, played and checked alike; the names of saved models are the challenge's rule.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from common import cli
from common.adaptive import entry_runner
from common.adaptive.weights import WEIGHTS
from common.errors import InputError, printable
from common.io import require_file

ENTRY_FILE = f"{entry_runner.MODULE}.py"
# What an entry may unpack to, or take in its folder, in bytes.
MAX_SIZE = 8 << 30
_TRAINER = "train_model.py"
# Hidden files, caches, and what macOS puts into a zip.
_NO_PART = (".", "__pycache__", "__MACOSX")
# By these endings a file seems to be a saved model.
_SAVED_MODELS = (
    ".bin", ".ckpt", ".h5", ".hdf5", ".joblib", ".keras", ".npy", ".npz", ".onnx", ".pickle",
    ".pkl", ".pt", ".pth", ".safetensors",
)  # fmt: skip


def collect(package: Path) -> dict[str, Path]:
    """Collect an entry's files by their names inside the zip.

    Raises `InputError` if the class of the entry is missing, a file is a link that leads out of the
    folder, all are too large, or the package has a trainer but no weights.
    """
    require_file(package / ENTRY_FILE)
    files = {}
    for folder, folders, names in os.walk(package):
        folders[:] = [name for name in folders if not name.startswith(_NO_PART)]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in [*links, *names]:
            path = Path(folder) / name
            if name.startswith(_NO_PART) or name.endswith(".partial"):
                continue
            _require_plain(path, package)
            if not (name == "common.py" and finds_the_kit(name, path.read_bytes())):
                files[path.relative_to(package).as_posix()] = path
    if (package / _TRAINER).is_file() and not any(map(_is_named_by_the_rule, files)):
        raise InputError(
            f"{package}: holds no weights ({WEIGHTS}…), expected those that "
            f"`python {cli.show(package.resolve() / _TRAINER)}` writes "
            "(with --local for the local split)"
        )
    size = sum(path.stat().st_size for path in files.values())
    if size > MAX_SIZE:
        raise InputError(f"{package}: holds {size:,} bytes, expected at most {MAX_SIZE:,}")
    return dict(sorted(files.items()))


def _require_plain(path: Path, package: Path) -> None:
    try:
        inside = path.resolve(strict=True).is_relative_to(package.resolve())
    except (OSError, RuntimeError):
        inside = False
    if not inside:
        raise InputError(
            f"{path}: is a link that leads out of the entry's folder, expected a file in it"
        )
    if not path.is_file():
        raise InputError(f"{path}: is not a file, expected one")
    if not str(path.relative_to(package)).isprintable():
        raise InputError(f"{path}: has a name of odd characters, expected plain text")


def finds_the_kit(name: str, content: bytes) -> bool:
    """Return whether a file is the one by which scripts find the kit: never part of an entry."""
    return PurePosixPath(name).name == "common.py" and b"common/layout.py" in content


def warn_of_names(submission: Path, names: Iterable[str]) -> None:
    """Warn, a line for each, of files of an entry that seem to be models saved by other names."""
    for name in sorted(names):
        if name.lower().endswith(_SAVED_MODELS) and not _is_named_by_the_rule(name):
            print(
                f"warning: {cli.show(submission)}: {printable(name)} seems to be a saved model, "
                f"expected a name that begins with {WEIGHTS}_, as the challenge's guide asks",
                file=sys.stderr,
            )


def _is_named_by_the_rule(name: str) -> bool:
    return any(part.startswith((WEIGHTS, *_NO_PART)) for part in name.split("/"))
