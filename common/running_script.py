"""Find out which script runs, with which arguments, and whether the code that it uses is its own.

In a process of its own, a script is the first word of `sys.argv`. A notebook calls scripts too:
with IPython's ``%run``, with `runpy`, or by calling `main` of an imported script. Several scripts
then run in one process, and `sys.argv` may hold the arguments of the notebook's kernel.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import layout, source_code
from common.errors import InputError

# Every script has a file `common.py` beside it, which makes the kit's package `common` importable:
# Python loads modules such as `common.cli` through this file. If another script runs in the same
# process, `common` must stay loaded, although each script has its own `common.py`.
_FINDER = "common"


def in_kernel() -> bool:
    """Return whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules


def find_script() -> Path | None:
    """Return the path of the script that runs; None if the running code is a notebook's own.

    A notebook or an interactive session may run several scripts, one after the other, by calling
    their functions `main`.
    """
    program = Path(sys.argv[0])
    is_script = program.suffix == ".py" and not in_kernel()
    if is_script:
        # Python was started with this script.
        return program
    # Look for the `main` of a script among the functions that are running: the caller of this
    # function, the caller of this caller, and so on. A script is recognised by its `build_parser`.
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        names = frame.f_globals
        if frame.f_code.co_name == "main" and "build_parser" in names and "__file__" in names:
            return Path(names["__file__"])
    # No function `main` of a script is running. In a notebook, this means that no script runs.
    # Without a notebook, return `program`, which is not a .py file. It may be an installed program.
    return None if in_kernel() else program


def arguments() -> list[str]:
    """Return the arguments of the script that runs.

    In a notebook, `sys.argv` may hold the arguments of the kernel. The result is then empty, since
    these are no arguments of the script.
    """
    words = sys.argv[1:]
    first = len(sys.orig_argv) - len(words)
    are_of_kernel = in_kernel() and words == sys.orig_argv[first:]
    return [] if are_of_kernel else words


def require_own_code(script: Path) -> None:
    """Raise `InputError` if this process has loaded other code than the script should import.

    Python loads a module only once. So the script would silently use another copy of the kit, or a
    module of the same name that another script has loaded before.
    """
    if not script.is_file():
        return
    script = script.resolve()
    _require_own_kit(script)
    _require_own_modules(script)


def _require_own_kit(script: Path) -> None:
    """Raise `InputError` if Python has imported another copy of the kit than the user expects.

    The user expects the copy in which the script lies. Python may take another copy, which is
    installed in the environment or comes first on the search path. For instance, `python -P` leaves
    the script's folder out of the search path, and a notebook's kernel keeps what it has imported.
    """
    folders = [script.parent]
    # `python -m tools.compare`, for example, runs the first `tools.compare` on the search path,
    # which may lie in another copy of the kit. The user expects the copy in the current folder.
    is_module = getattr(sys.modules["__main__"], "__spec__", None) is not None
    if is_module:
        folders.append(Path.cwd())
    for folder in folders:
        kit = _find_kit(folder)
        if kit is not None and kit != layout.ROOT:
            raise InputError(
                f"{script}: Python uses another copy of the kit than that in {kit}, and would read "
                f"and write the files in {layout.ROOT}: leave out -P, or use another environment; "
                "in a notebook, restart the kernel"
            )


def _require_own_modules(script: Path) -> None:
    """Raise `InputError` if the script would get a module of another folder instead of its own.

    This happens if Python has loaded a module that has the same name as a module beside the script.
    Only the modules beside the script that it imports are checked.
    """
    for name, path in _modules_beside(script.parent).items():
        loaded = _path_of(sys.modules.get(name))
        is_other = loaded is not None and loaded != path
        if is_other and path in source_code.files_of(script):
            raise InputError(
                f"{script}: would use {loaded} as its module {name}, expected {path}: "
                f"in a notebook, restart the kernel; elsewhere, start it with `python {script}`"
            )


def forget_modules_beside(main: Callable[[], None]) -> None:
    """Let the next script in this process import its own modules.

    `main` is a function of a script. The modules beside this script are removed from `sys.modules`.
    The next script may have other modules of the same names beside it, or the user may edit these
    modules before running the script again.
    """
    # `__globals__` holds the variables of the module that defines `main`. `__file__`, the path of
    # the script, is one of them. A function that is defined in a cell of a notebook has no file.
    file = getattr(main, "__globals__", {}).get("__file__")
    if file is None:
        return
    beside = _modules_beside(Path(file).resolve().parent)
    forgotten = {name for name, path in beside.items() if _path_of(sys.modules.get(name)) == path}
    for name in list(sys.modules):
        # Remove a submodule such as package.module if its package is removed.
        if name.partition(".")[0] in forgotten:
            del sys.modules[name]


def _find_kit(folder: Path) -> Path | None:
    """Return the nearest folder, from `folder` upwards, that holds the kit; None without a kit.

    The kit is recognised by its file common/layout.py.
    """
    for candidate in (folder, *folder.parents):
        if (candidate / "common" / "layout.py").is_file():
            return candidate
    return None


def _modules_beside(folder: Path) -> dict[str, Path]:
    """Return the files of the modules and packages in a folder, by the names of the modules.

    `common.py` is left out: see `_FINDER`.
    """
    files = {path.stem: path for path in folder.glob("*.py")}
    files |= {path.parent.name: path for path in folder.glob("*/__init__.py")}
    files.pop(_FINDER, None)
    return files


def _path_of(module: Any) -> Path | None:
    """Return the file of a loaded module; None if `module` is None or has no file."""
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).resolve()
