"""Read and check the files of an entry of task 4, which is a folder or the zip of a folder."""

import ast
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from io import BytesIO
from pathlib import Path

from common import cli, source_code, zips
from common.adaptive.weights import TRAINED_STUDENTS, TRAINER, TRAINING, WEIGHTS
from common.arrays import IntArray
from common.errors import InputError, printable
from common.fingerprints import Fingerprint, fingerprint, fingerprint_open
from common.reading import is_there, require_file
from common.sandbox import ENTRY_MODULE
from common.stray_files import is_stray, is_stray_path

import numpy as np

ENTRY_FILE = f"{ENTRY_MODULE}.py"
# Largest size in bytes of all files of an entry together.
_MAX_SIZE = 8 << 30
# Largest size in bytes of a single file that `read_entry_file` reads from a zip.
_MAX_FILE = 256 << 20
# The scripts of a package that train and score it. They are not needed when the entry is run: it
# then asks students questions and predicts other answers (the game).
_SCRIPTS = (TRAINER, "local_evaluation.py")
# The scripts of a package import this file, which puts the kit on Python's path. It is left out of
# the entry, since an entry cannot use the kit.
_KIT_FINDER = "common.py"
# Endings of the names of files that hold no weights: code and documentation.
_NO_DATA = (".py", ".md", ".rst", "LICENSE", "requirements.txt")
# Endings of the names of saved models.
_SAVED_MODELS = (
    ".bin", ".ckpt", ".h5", ".hdf5", ".joblib", ".keras", ".npy", ".npz", ".onnx", ".pickle",
    ".pkl", ".pt", ".pth", ".safetensors",
)  # fmt: skip


def collect(package: Path) -> dict[str, Path]:
    """Find the files of an entry's folder.

    Returns
    -------
    dict
        The path of each file, by the file's name in the zip of the entry, in alphabetical order.

    Raises
    ------
    InputError
        If the entry's module or the weights are missing, a file is not allowed in an entry, or the
        files are too large.
    """
    require_file(package / ENTRY_FILE)
    files: dict[str, Path] = {}
    for path in _walk(package):
        _require_plain_file(path, package)
        name_in_zip = _name_in_zip(path.relative_to(package))
        if name_in_zip in files:
            # Two files get the same name in the zip: for instance, the file b.npy in a folder a,
            # and a file beside this folder with the name a\b.npy.
            raise InputError(f"{path}: has the name of another file, with backslashes")
        # Leave out common.py: it finds the kit for the scripts of the package, and an entry cannot
        # use the kit.
        if name_in_zip != _KIT_FINDER:
            files[name_in_zip] = path
    # If a package has a script that trains weights, it must hold the weights too.
    has_trainer = (package / TRAINER).is_file()
    has_weights = any(_is_weights(name) for name in files)
    if has_trainer and not has_weights:
        raise InputError(
            f"{package}: holds no weights ({WEIGHTS}…), expected those that "
            f"`python {cli.show(package.resolve() / TRAINER)}` writes "
            "(with --local for the local split)"
        )
    size = sum(path.stat().st_size for path in files.values())
    if size > _MAX_SIZE:
        raise InputError(f"{package}: holds {size:,} bytes, expected at most {_MAX_SIZE:,}")
    return dict(sorted(files.items()))


def _walk(package: Path) -> Iterator[Path]:
    """Yield the files of an entry's folder and its subfolders, and symlinks to folders.

    Stray files, which the system or an editor has left, are skipped (`stray_files`).
    """
    for folder, folders, names in os.walk(package):
        # Change the list `folders` in place: `os.walk` visits only the folders that remain in it.
        folders[:] = [name for name in folders if not is_stray(name)]
        # `os.walk` does not follow symlinks to folders. Yield such a symlink like a file, so that
        # `collect` refuses the entry.
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in [*links, *names]:
            # In a zip made on Windows, the name of a folder may end with a backslash. Some programs
            # unpack such a folder as an empty file of this name: skip it.
            is_wrongly_unpacked_folder = name.endswith("\\")
            if not is_wrongly_unpacked_folder and not is_stray(name):
                yield Path(folder) / name


def _name_in_zip(path: Path) -> str:
    """Return the name that a file gets in the zip of its package: its path, with slashes.

    `path` is relative to the package.
    """
    # If a zip made on Windows was unpacked on another system, the backslashes between its folders
    # may have become a part of a file's name. `as_posix` replaces backslashes only on Windows.
    return path.as_posix().replace("\\", "/")


def _require_plain_file(path: Path, package: Path) -> None:
    """Raise `InputError` unless a path is a file within the package, with a printable name."""
    try:
        is_inside = path.resolve(strict=True).is_relative_to(package.resolve())
    except (OSError, RuntimeError):
        # A broken symlink, or a loop of symlinks.
        is_inside = False
    if not is_inside:
        raise InputError(
            f"{path}: is a link that leads out of the entry's folder, expected a file in it"
        )
    if not path.is_file():
        raise InputError(f"{path}: is not a file, expected one")
    if not str(path.relative_to(package)).isprintable():
        raise InputError(f"{path}: has a name of odd characters, expected plain text")


def _names_inside(submission: Path) -> list[str]:
    """Return the names of an entry's files, relative to its folder or as they are in its zip."""
    if submission.is_dir():
        return list(collect(submission))
    with zips.open_zip(submission) as archive:
        return archive.namelist()


def unpack(submission: Path, folder: Path) -> None:
    """Copy the files of an entry, which is a folder or a zip, to a new folder."""
    if submission.is_dir():
        for name, path in collect(submission).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
        return
    names = _names_inside(submission)
    if ENTRY_FILE not in names:
        # Perhaps the entry's module is there, but in a folder of the zip: then the message names
        # the folder.
        in_folders = [name for name in names if name.endswith(f"/{ENTRY_FILE}")]
        fault = f"holds a folder ({in_folders[0]})" if in_folders else f"holds no {ENTRY_FILE}"
        raise InputError(f"{submission}: {fault}, expected {ENTRY_FILE} at the top level")
    zips.unpack(submission, folder, _MAX_SIZE)


def read_entry_file(submission: Path, name: str) -> bytes | None:
    """Read a file of an entry, which is a folder or a zip; None if the file is not there."""
    if submission.is_dir():
        path = submission / name
        if not is_there(path):
            # A zip made on Windows may have been unpacked to files with backslashes in their names.
            path = submission / name.replace("/", "\\")
        if not is_there(path):
            return None
        require_file(path)
        return path.read_bytes()
    with zips.open_zip(submission) as archive:
        if name not in archive.namelist():
            return None
        return zips.read_member(archive, archive.getinfo(name), _MAX_FILE)


def read_trained_students(submission: Path) -> IntArray | None:
    """Return the UserIds that an entry's weights are trained on; None if they are not recorded."""
    content = read_entry_file(submission, TRAINED_STUDENTS)
    if content is None:
        return None
    try:
        students: IntArray = np.lib.format.read_array(BytesIO(content), allow_pickle=False)
    except Exception:
        # NumPy raises many kinds of exceptions for a damaged file. An empty array stands for the
        # damaged file: the check below raises an error for it.
        students = np.empty(0, int)
    # The caller compares these UserIds with the UserIds of the students to be examined. UserIds of
    # another type, such as text, would equal none of them. Then nobody would notice that the
    # weights are trained on students to be examined.
    if students.dtype.kind not in "iu" or students.ndim != 1 or not len(students):
        raise InputError(
            f"{submission}: {TRAINED_STUDENTS} is damaged, expected an array of UserIds"
        )
    return students


def fingerprint_data(submission: Path, sizes: Collection[int]) -> dict[str, Fingerprint | None]:
    """Return the fingerprints of an entry's files that may hold weights, by name.

    Parameters
    ----------
    submission
        A folder or a zip.
    sizes
        Only files of these sizes in bytes are read and fingerprinted. All other files get None.
    """
    fingerprint_by_name: dict[str, Fingerprint | None] = {}
    if submission.is_dir():
        for name, path in collect(submission).items():
            if _may_hold_weights(name):
                is_to_read = path.stat().st_size in sizes
                fingerprint_by_name[name] = fingerprint(path) if is_to_read else None
        return fingerprint_by_name
    with zips.open_zip(submission) as archive:
        for member in archive.infolist():
            name = member.filename
            if member.is_dir() or not _may_hold_weights(name):
                continue
            fingerprint_by_name[name] = None
            if member.file_size in sizes:
                with archive.open(member) as file:
                    fingerprint_by_name[name] = fingerprint_open(file, member.file_size)
    return fingerprint_by_name


def _may_hold_weights(name: str) -> bool:
    """Return whether a file of an entry may hold weights, as far as its name tells."""
    is_record = name in (TRAINED_STUDENTS, TRAINING)
    return not (is_stray_path(name) or is_record or name.endswith(_NO_DATA))


def fingerprint_code(submission: Path, training_code: str = "") -> str:
    """Return a fingerprint of the code of an entry and of the code that trained its weights.

    `training_code` is the fingerprint that the training code had when the weights were trained, or
    "" if it is unknown. If it is known, the scripts that train and score are left out: the entry
    runs without them, and the training script may have changed since.
    """
    left_out = (_KIT_FINDER, *_SCRIPTS) if training_code else (_KIT_FINDER,)
    contents = []
    for name in sorted(_names_inside(submission)):
        if name.endswith(".py") and name not in left_out:
            contents.append((name, read_entry_file(submission, name) or b""))
    contents.append(("training", training_code.encode()))
    return source_code.fingerprint_contents(contents)


def list_weights(submission: Path) -> list[str]:
    """Return the names of the files of an entry that count as weights (`_is_weights`), sorted."""
    names = [name for name in _names_inside(submission) if _is_weights(name)]
    # In a zip, the name of a folder ends with a slash.
    return sorted(name for name in names if not name.endswith("/"))


def list_misnamed(submission: Path) -> list[str]:
    """Return a warning for each file that seems to be a saved model, but is not named as weights.

    Only names are judged. A file seems to be a saved model if its name ends as in `_SAVED_MODELS`,
    such as .npz. `_is_weights` says which names weights have.
    """
    sentences = []
    for name in sorted(_names_inside(submission)):
        is_saved_model = name.lower().endswith(_SAVED_MODELS) and not is_stray_path(name)
        if is_saved_model and not _is_weights(name):
            sentences.append(
                f"{cli.show(submission)}: {printable(name)} seems to be a saved model, "
                f"expected a name that begins with {WEIGHTS}_, as the challenge's guide asks"
            )
    return sentences


def warn_of_names(submission: Path) -> None:
    """Print the warnings of `list_misnamed` to stderr."""
    for sentence in list_misnamed(submission):
        print(f"warning: {sentence}", file=sys.stderr)


def needed_to_play(files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the files that an entry needs when it asks students and predicts answers (the game).

    `files` come from `collect`. The scripts that train weights and that score the entry are left
    out, unless another module of the entry imports them.
    """
    imported: set[str] = set()
    for name, path in files.items():
        if name.endswith(".py") and name not in _SCRIPTS:
            imported |= _imported_modules(path)
    scripts = [name for name in _SCRIPTS if name.removesuffix(".py") not in imported]
    return {name: path for name, path in files.items() if name not in scripts}


def _imported_modules(path: Path) -> set[str]:
    """Return the top-level modules that a Python file imports; none if it is not Python."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return set()
    modules: set[str] = set()
    for node in ast.walk(tree):
        modules.update(source_code.imported_modules(node))
    return modules


def list_left_out(package: Path, packed: Collection[str]) -> list[str]:
    """Return the names of files and folders of a package that are not packed, sorted.

    A folder that is left out as a whole is named once, with a slash at its end.
    """
    left_out = set()
    for folder, folders, names in os.walk(package):
        inside = Path(folder).relative_to(package)
        stray_folders = [name for name in folders if is_stray(name)]
        for name in stray_folders:
            left_out.add(f"{(inside / name).as_posix()}/")
            # `os.walk` visits only the folders that remain in the list.
            folders.remove(name)
        for name in names:
            name_in_zip = _name_in_zip(inside / name)
            if name_in_zip not in packed:
                left_out.add(name_in_zip)
    return sorted(left_out)


def _is_weights(name: str) -> bool:
    """Return whether a file of an entry counts as weights, because of its name.

    `name` is the path of the file in the entry. A part of this path, the name of a folder or of the
    file itself, must begin with `WEIGHTS`.
    """
    return any(part.startswith(WEIGHTS) for part in name.split("/"))
