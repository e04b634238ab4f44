"""Prepare Python for a script, when this module is imported.

The import limits the threads of libraries, makes `tools` and the modules beside the script
importable, lets printing never fail, and makes Python say how to install a package that is missing.
The `common.py` beside every script imports this module before any library.
"""

import os
import sys
from pathlib import Path
from types import TracebackType

from common import streams

_KIT = Path(__file__).resolve().parents[1]
_PINNED_VERSIONS = _KIT / "requirements.txt"
# A mapping from the name of a module to the name of its package, if the two names differ.
_PACKAGE_OF_MODULE = {
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


def _limit_threads() -> None:
    """Set environment variables for the threads of libraries, which read them when imported."""
    # OpenMP threads without work either wait busily, which slows down other processes, or sleep
    # immediately, which slows down the fit of gradient-boosted trees. With these settings, they
    # wait busily for a short time, then sleep.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # Use one thread in BLAS, unless the user has set another number: BLAS rounds differently with
    # another number. The kit uses several cores by calling BLAS from several threads (see
    # `common.threads`).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _require_folder() -> None:
    """Exit with a message if the kit is imported from a zip: data needs a folder."""
    if not _KIT.is_dir():
        print(f"error: {_KIT}: is not a folder: unzip the starter kit", file=sys.stderr)
        raise SystemExit(2)


def _prepare_search_path() -> None:
    """Let a script import the modules beside it and `tools`, however Python was started."""
    # Use `tools` of this kit, not of another copy that is installed. Python searches `sys.path` in
    # order, and element 0 is usually the script's folder: put the kit right behind it.
    if str(_KIT) not in sys.path[:2]:
        sys.path.insert(1, str(_KIT))
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    # Python usually searches the folder of the script first. Python leaves this folder out if it
    # was started with -P, -I or PYTHONSAFEPATH (`safe_path`), or runs the script as a module (-m).
    is_module = getattr(main, "__spec__", None) is not None
    is_folder_left_out = sys.flags.safe_path or is_module
    if script is None or not is_folder_left_out:
        return
    folder = Path(script).resolve().parent
    # A folder with scripts of the kit has a `common.py`, which these scripts import.
    if (folder / "common.py").is_file() and str(folder) not in sys.path:
        sys.path.insert(1, str(folder))


def _excepthook(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Report an uncaught exception: the kit's `sys.excepthook`.

    If a required package is missing, the hook prints one line that tells how to install the
    package, and exits with code 2. Other exceptions are reported as Python does.
    """
    pin = _pin_of(error.name) if isinstance(error, ModuleNotFoundError) else None
    if pin is None:
        sys.__excepthook__(kind, error, traceback)
        return
    # A pin is a package with its version, such as "numpy==2.1.0".
    package = pin.partition("==")[0]
    if sys.flags.no_site:
        print(
            f"error: Python was started with -S, which hides {package} and all other packages: "
            "start it without -S",
            file=sys.stderr,
        )
        raise SystemExit(2)
    print(
        f"error: this Python has no {package}: `{sys.executable} -m pip install "
        f"{pin}` installs it; `python3 quickstart.py` makes .venv, an environment with all that "
        "the kit needs: activate .venv",
        file=sys.stderr,
    )
    raise SystemExit(2)


def _pin_of(module: str | None) -> str | None:
    """Find the package of a module, with its version, in requirements.txt; None if it is not there.

    For the module sklearn, for instance, this is the line "scikit-learn==1.9.1".
    """
    if not module or not _PINNED_VERSIONS.is_file():
        return None
    name = module.split(".")[0]
    package = _PACKAGE_OF_MODULE.get(name, name)
    for line in _PINNED_VERSIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{package}=="):
            return line
    return None


_require_folder()
_limit_threads()
_prepare_search_path()
streams.prepare_streams()
# Install the kit's hook, unless there is another hook already, such as the hook of IPython.
if sys.excepthook is sys.__excepthook__:
    sys.excepthook = _excepthook
