"""Prepare Python for a script, when this module is imported.

The import limits the threads of libraries, makes `tools` importable, and makes Python say how to
install a package that is missing. The `common.py` beside every script imports this module before
any library.
"""

import os
import sys
from pathlib import Path
from types import TracebackType

_KIT = Path(__file__).resolve().parents[1]
_PINNED_VERSIONS = _KIT / "requirements.txt"
# The package of a module, where the two have different names.
_PACKAGES = {
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
    # BLAS rounds differently with another number of threads, so the number is fixed. To use several
    # cores, the kit calls BLAS from threads of its own, see `common.threads`.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _make_tools_importable() -> None:
    """Add the kit's folder to the import path, after the script's folder, to import `tools`."""
    if str(_KIT) not in sys.path:
        sys.path.insert(1, str(_KIT))


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
    print(
        f"error: this Python has no {package}: `{sys.executable} -m pip install "
        f"{pin}` installs it; `python3 quickstart.py` makes .venv, an environment with all that "
        "the kit needs: activate that",
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
    package = _PACKAGES.get(name, name)
    for line in _PINNED_VERSIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{package}=="):
            return line
    return None


_limit_threads()
_make_tools_importable()
# Keep a hook that is there already, such as that of IPython.
if sys.excepthook is sys.__excepthook__:
    sys.excepthook = _excepthook
