"""The files of an entry of task 4, a folder or its zip, which are played and checked alike."""

import os
import shutil
import sys
from io import BytesIO
from pathlib import Path

from common import cli, source_code, zips
from common.adaptive.weights import TRAINED_STUDENTS, WEIGHTS
from common.arrays import IntArray
from common.errors import InputError, printable
from common.reading import is_there, require_file
from common.sandbox import ENTRY_MODULE

import numpy as np

ENTRY_FILE = f"{ENTRY_MODULE}.py"
# What an entry may unpack to, or take in its folder, in bytes, and a file that is read of it.
_MAX_SIZE, _MAX_FILE = 8 << 30, 256 << 20
_TRAINER = "train_model.py"
# Lets the scripts of the folder find the kit. No entry can import `common`, so it is left out.
_FINDS_THE_KIT = "common.py"
# Hidden files, caches, and what macOS puts into a zip.
_NO_PART = (".", "__pycache__", "__MACOSX")
_SAVED_MODELS = (
    ".bin", ".ckpt", ".h5", ".hdf5", ".joblib", ".keras", ".npy", ".npz", ".onnx", ".pickle",
    ".pkl", ".pt", ".pth", ".safetensors",
)  # fmt: skip


def collect(package: Path) -> dict[str, Path]:
    """Return an entry's files by names in the zip; `InputError` if one is unfit or missing."""
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
            name_in_zip = path.relative_to(package).as_posix()
            if name_in_zip != _FINDS_THE_KIT:
                files[name_in_zip] = path
    if (package / _TRAINER).is_file() and not any(map(_is_named_by_the_rule, files)):
        raise InputError(
            f"{package}: holds no weights ({WEIGHTS}…), expected those that "
            f"`python {cli.show(package.resolve() / _TRAINER)}` writes "
            "(with --local for the local split)"
        )
    size = sum(path.stat().st_size for path in files.values())
    if size > _MAX_SIZE:
        raise InputError(f"{package}: holds {size:,} bytes, expected at most {_MAX_SIZE:,}")
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


def _names_inside(submission: Path) -> list[str]:
    """Return the names of the files of an entry's folder, as in its zip, or of its zip."""
    if submission.is_dir():
        return list(collect(submission))
    with zips.open_zip(submission) as archive:
        return archive.namelist()


def unpack(submission: Path, folder: Path) -> None:
    """Copy an entry out of its folder, or unpack its zip, to a new folder."""
    if submission.is_dir():
        for name, path in collect(submission).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
        return
    names = _names_inside(submission)
    if ENTRY_FILE not in names:
        inside = [name for name in names if name.endswith(f"/{ENTRY_FILE}")]
        fault = f"holds a folder ({inside[0]})" if inside else f"holds no {ENTRY_FILE}"
        raise InputError(f"{submission}: {fault}, expected {ENTRY_FILE} at the top level")
    zips.unpack(submission, folder, _MAX_SIZE)


def read_entry_file(submission: Path, name: str) -> bytes | None:
    """Read a file of an entry's folder or zip; None if it is not there."""
    if submission.is_dir():
        if not is_there(submission / name):
            return None
        require_file(submission / name)
        return (submission / name).read_bytes()
    with zips.open_zip(submission) as archive:
        if name not in archive.namelist():
            return None
        return zips.read_member(archive, archive.getinfo(name), _MAX_FILE)


def read_trained_students(submission: Path) -> IntArray | None:
    """Return the students that an entry's weights are trained on; None if that is not recorded."""
    if (content := read_entry_file(submission, TRAINED_STUDENTS)) is None:
        return None
    try:
        students: IntArray = np.lib.format.read_array(BytesIO(content), allow_pickle=False)
    except Exception:  # NumPy's reader raises whatever its parts do.
        students = np.empty(0, int)
    # Anything else, such as UserIds as text, would equal no UserId.
    if students.dtype.kind not in "iu" or students.ndim != 1 or not len(students):
        raise InputError(
            f"{submission}: {TRAINED_STUDENTS} is damaged, expected an array of UserIds"
        )
    return students


def fingerprint_code(submission: Path, training_code: str = "") -> str:
    """Return a fingerprint of an entry's Python files, folder or zip, and its training code."""
    contents = [
        (name, read_entry_file(submission, name) or b"")
        for name in sorted(_names_inside(submission))
        if name.endswith(".py") and name != _FINDS_THE_KIT
    ]
    return source_code.fingerprint_contents([*contents, ("training", training_code.encode())])


def warn_of_names(submission: Path) -> None:
    """Warn, a line for each, of files of an entry that seem to be models saved by other names."""
    for name in sorted(_names_inside(submission)):
        if name.lower().endswith(_SAVED_MODELS) and not _is_named_by_the_rule(name):
            print(
                f"warning: {cli.show(submission)}: {printable(name)} seems to be a saved model, "
                f"expected a name that begins with {WEIGHTS}_, as the challenge's guide asks",
                file=sys.stderr,
            )


def _is_named_by_the_rule(name: str) -> bool:
    return any(part.startswith((WEIGHTS, *_NO_PART)) for part in name.split("/"))
