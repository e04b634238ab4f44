"""Which files of a folder belong to an entry of task 4: what is zipped, played and checked."""

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from common import cli
from common.adaptive import entry_runner
from common.errors import InputError
from common.io import require_file

ENTRY_FILE = f"{entry_runner.MODULE}.py"
# The challenge's rule: the names of weights, or of their folders, begin with this.
WEIGHTS = "model_task_4"
_TRAINER = "train_model.py"


def collect(package: Path) -> dict[str, Path]:
    """Collect an entry's files by their names inside the zip: its class, the modules beside it
    that it imports, the weights.

    Raises `InputError` if the entry is missing, one of its files is not Python or is a link that
    leads out of the folder, or the package has a trainer but no weights.
    """
    require_file(package / ENTRY_FILE)
    files = {
        path.relative_to(package).as_posix(): path
        for path in _walk(package)
        if any(part.startswith(WEIGHTS) for part in path.relative_to(package).parts)
        and path.suffix != ".partial"
    }
    if not files and (package / _TRAINER).is_file():
        raise InputError(
            f"{package}: holds no weights ({WEIGHTS}…), expected those that "
            f"`python {cli.show(package.resolve() / _TRAINER)}` writes "
            "(with --local for the local split)"
        )
    for path in files.values():
        _require_inside(path, package)
    waiting = [package / ENTRY_FILE]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(package).as_posix()
        if name not in files:
            _require_inside(path, package)
            files[name] = path
            waiting += _find_imports(path, package)
    return files


def left_out(package: Path, files: Mapping[str, Path]) -> list[str]:
    """List what lies in an entry's folder but is not among the files of the entry.

    A folder left out as a whole is listed by its own name, with a slash.
    """
    names = []
    for path in _walk(package):
        name = path.relative_to(package).as_posix()
        if name not in files:
            parts = name.split("/")
            parents = ["/".join(parts[:depth]) + "/" for depth in range(1, len(parts))]
            untouched = [p for p in parents if not any(file.startswith(p) for file in files)]
            names.append(untouched[0] if untouched else name + "/" * path.is_dir())
    return sorted(set(names))


def find_misnamed(names: Iterable[str]) -> list[str]:
    """Find the files to be zipped that, by their names, are neither Python nor weights."""
    return sorted(
        name
        for name in names
        if not name.endswith(("/", ".py"))
        and not any(part.startswith((WEIGHTS, ".", "__MACOSX")) for part in name.split("/"))
    )


def explain_missing(fault: str, names: Iterable[str]) -> str:
    """Explain, as the end of a sentence or nothing, a missing file by what `left_out` found."""
    for name in names:
        # Python quotes the path as the entry gave it: from its folder, or in full.
        end = "" if name.endswith("/") else "'"
        if re.search(rf"('|/entry/)(\./)?{re.escape(name)}{end}", fault):
            return (
                f"; {name} is left out of the zip, expected the names of weights to begin with "
                f"{WEIGHTS}"
            )
    return ""


def _walk(package: Path) -> Iterator[Path]:
    """Walk through the files of a folder and the links to folders, but nothing hidden."""
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted([*links, *names]):
            path = Path(folder) / name
            if not name.startswith(".") and not _finds_the_kit(path):
                yield path


def _finds_the_kit(path: Path) -> bool:
    """Return whether a file is the one by which scripts find the kit: never part of an entry."""
    return path.name == "common.py" and "common/layout.py" in path.read_text(errors="replace")


def _require_inside(path: Path, package: Path) -> None:
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


def _find_imports(path: Path, package: Path) -> list[Path]:
    """Find the package's modules that one of its files imports; of a subfolder, all modules."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{path}: is not Python: {error}") from None
    modules: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.append(node.module)
    found: list[Path] = []
    for name in sorted({module.split(".")[0] for module in modules}):
        beside = package / f"{name}.py"
        if beside.is_file() and not _finds_the_kit(beside):
            found.append(beside)
        else:
            found += sorted((package / name).rglob("*.py"))
    return found
