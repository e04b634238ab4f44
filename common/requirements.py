"""Prepare Python for a script, when this module is imported.

The import limits the threads of libraries, makes `tools` importable, and lets Python name a package
that is missing. The `common.py` beside every script imports this module before any library.
"""

import os
import sys
from pathlib import Path
from types import TracebackType

_KIT = Path(__file__).resolve().parents[1]
_PINNED_VERSIONS = _KIT / "requirements.txt"
# Names of packages, by the names of their modules where these differ.
_PACKAGES = {
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


def _limit_threads() -> None:
    """Set how the threads of libraries behave that will be imported later."""
    # Busy-waiting threads slow a shared machine down; threads that sleep at once slow trees down.
    # These settings spin briefly, then sleep.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # BLAS rounds differently with another number of threads. The kit's own code has threads of its
    # own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _make_tools_importable() -> None:
    """Make `tools` importable too, after the script's own folder."""
    if str(_KIT) not in sys.path:
        sys.path.insert(1, str(_KIT))


def _name_missing_package(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Report an uncaught exception, as `sys.excepthook` does.

    If a required package is missing, print one line that tells how to install it, and exit with
    code 2.
    """
    pin = _pin_of(error.name) if isinstance(error, ModuleNotFoundError) else None
    if pin is None:
        sys.__excepthook__(kind, error, traceback)
        return
    print(
        f"error: this Python has no {pin.partition('==')[0]}: `{sys.executable} -m pip install "
        f"{pin}` installs it; `python3 quickstart.py` makes .venv, an environment with all that "
        "the kit needs: activate that",
        file=sys.stderr,
    )
    raise SystemExit(2)


def _pin_of(module: str | None) -> str | None:
    """Return the line of requirements.txt for the package of a module; None if there is none."""
    if not module or not _PINNED_VERSIONS.is_file():
        return None
    name = module.split(".")[0]
    package = _PACKAGES.get(name, name)
    for line in _PINNED_VERSIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{package}=="):
            return line
    return None


_limit_threads()
_make_tools_importable()
if sys.excepthook is sys.__excepthook__:
    sys.excepthook = _name_missing_package
