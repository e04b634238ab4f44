"""Find the files of the kit that a script imports, and fingerprint their contents."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from common import layout

# In Python's syntax tree, a statement holds further statements in these fields.
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def files_of(*scripts: Path) -> dict[Path, bytes]:
    """Return the contents of scripts and of all kit files that they import, sorted by path."""
    # Files may have been added or removed since the last call.
    _modules.cache_clear()
    _names_in.cache_clear()
    contents: dict[Path, bytes] = {}
    waiting = [script.resolve() for script in scripts]
    while waiting:
        path = waiting.pop()
        if path not in contents:
            contents[path] = path.read_bytes()
            waiting += _imports_of(path, contents[path])
    return dict(sorted(contents.items()))


def _imports_of(path: Path, content: bytes) -> set[Path]:
    """Return the files that the file `path` imports, from its own folder or from the kit.

    `content` is the content of the file. Libraries are left out, since their files lie in other
    folders.
    """
    files: set[Path] = set()
    for statement in _import_statements(content):
        if isinstance(statement, ast.ImportFrom) and statement.level > 0:
            # A relative import begins with `level` dots. One dot stands for the folder of the
            # importing file, `path.parents[0]`; two dots stand for the folder around it, and so on.
            folders = [path.parents[statement.level - 1]]
        else:
            folders = [path.parent, layout.ROOT]
        # The name a.b, for example, stands for two files in a folder: a/__init__.py, and a/b.py or
        # a/b/__init__.py.
        names = _names_of_modules(statement)
        for folder in folders:
            for name in names:
                # Most names are names of libraries, which `folder` does not hold. Skip these names
                # first: looking for the files of each library would take long.
                if name.partition(".")[0] in _names_in(folder):
                    files.update(_modules(folder, name))
    return files


def _names_of_modules(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the names of all modules that an import statement may import, without leading dots."""
    names = [alias.name for alias in statement.names]
    if isinstance(statement, ast.Import):
        return names
    if statement.module is None:
        # The statement is "from . import name".
        return names
    # The statement is "from module import name". The name may be a module of a package.
    return [*(f"{statement.module}.{name}" for name in names), statement.module]


# Cached, because the quickstart asks for many scripts, which import mostly the same files.
@cache
def _import_statements(content: bytes) -> list[ast.Import | ast.ImportFrom]:
    """Return the import statements of a file by its content; none if it is not valid Python."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return []
    return [
        statement
        for statement in _statements(tree.body)
        if isinstance(statement, ast.Import | ast.ImportFrom)
    ]


def _statements(block: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield all statements of a block, also nested ones, without looking into expressions."""
    for statement in block:
        yield statement
        for field in _BLOCKS:
            yield from _statements(getattr(statement, field, ()))


@cache
def _names_in(folder: Path) -> frozenset[str]:
    """Return the names of the modules and folders in `folder`; none if there is no such folder."""
    try:
        return frozenset(path.name.removesuffix(".py") for path in folder.iterdir())
    except OSError:
        return frozenset()


@cache
def _modules(folder: Path, name: str) -> list[Path]:
    """Return the files of a module and of the packages around it, if they exist in `folder`."""
    package_name, _, last = name.rpartition(".")
    files: list[Path] = []
    if package_name:
        files += _modules(folder, package_name)
        folder = folder.joinpath(*package_name.split("."))
    candidates = (folder / f"{last}.py", folder / last / "__init__.py")
    return files + [file.resolve() for file in candidates if file.is_file()]


def fingerprint(*scripts: Path) -> str:
    """Return a fingerprint of the code of scripts and of the kit's files that they import.

    The fingerprint has 12 hexadecimal digits. It depends on the names and contents of the files but
    not on their folders: a copy of the code has the same fingerprint.
    """
    contents = [(path.name, code) for path, code in files_of(*scripts).items()]
    return fingerprint_contents(sorted(contents))


def fingerprint_contents(files: Iterable[tuple[str, bytes]]) -> str:
    """Return a fingerprint of 12 hexadecimal digits of files, given by name and content."""
    digest = sha256()
    for name, content in files:
        # Line ends may differ between systems.
        content = content.replace(b"\r\n", b"\n")
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def imported_modules(node: ast.AST) -> list[str]:
    """Return the top-level modules that a statement imports; relative imports are left out.

    The list is empty if `node` is a node of a syntax tree that imports nothing.
    """
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        names = [node.module or ""]
    else:
        names = []
    return [name.split(".")[0] for name in names]
