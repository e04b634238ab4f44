"""Which files of the kit a script consists of, and a fingerprint of their contents."""

import re
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

from common import layout

# Parsing all code would take seconds. What a docstring shows as an example counts as well.
_IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n;]+)"
    r"|import[ \t]+([^\n;]+))",
    re.MULTILINE,
)


def files_of(*scripts: Path) -> dict[Path, bytes]:
    """Return scripts and all files of the kit that they import, sorted, with their contents."""
    found: dict[Path, bytes] = {}
    waiting = [script.resolve() for script in scripts]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = path.read_bytes()
            waiting += _imports_of(path, found[path])
    return dict(sorted(found.items()))


@cache  # The quickstart asks for many scripts, which share most of what they import.
def _imports_of(path: Path, content: bytes) -> set[Path]:
    """Return the files that a file of this content imports from beside it or the kit."""
    files: set[Path] = set()
    code = content.decode(errors="replace").replace("\\\n", " ")
    for dots, module, inside, modules in _IMPORT.findall(code):
        listed = re.sub("#.*", "", inside or modules).strip("() \t\n").split(",")
        names = [words.split()[0] for words in listed if words.split()]
        # What is imported from a package may be a module of it.
        names = [module, *(f"{module}.{name}".strip(".") for name in names)] if inside else names
        folders = [path.parents[len(dots) - 1]] if dots else [path.parent, layout.ROOT]
        for folder in folders:
            files |= {file for name in names if name for file in _modules(folder, name)}
    return files


@cache
def _modules(folder: Path, name: str) -> list[Path]:
    """Return the file of a module, and those of the packages around it, where they exist."""
    parts = name.split(".")
    places = [folder.joinpath(*parts[:n]) for n in range(1, len(parts) + 1)]
    inside = [(place.with_name(f"{place.name}.py"), place / "__init__.py") for place in places]
    return [file.resolve() for files in inside for file in files if file.is_file()]


def fingerprint(*scripts: Path) -> str:
    """Return 12 hexadecimal digits that change with the code of scripts and of their imports."""
    return fingerprint_contents((path.name, code) for path, code in files_of(*scripts).items())


def fingerprint_contents(files: Iterable[tuple[str, bytes]]) -> str:
    """Return 12 hexadecimal digits that change with the names and contents of files."""
    digest = sha256()
    for name, content in files:
        # Line ends may differ between systems.
        content = content.replace(b"\r\n", b"\n")
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]
