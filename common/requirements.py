"""What every script does before it imports a library, by the `common.py` beside it."""

import os
import sys
from pathlib import Path
from types import TracebackType

_KIT = Path(__file__).resolve().parents[1]
_LIST = _KIT / "requirements.txt"
# Packages whose modules have another name.
_PACKAGES = {
    "PIL": "pillow", "dateutil": "python-dateutil", "sklearn": "scikit-learn", "yaml": "pyyaml",
}  # fmt: skip


def _name_what_is_missing(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Report an error that nobody caught: as one line, exit code 2, if a package is not there."""
    module = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    package = _PACKAGES.get(module, module)
    lines = _LIST.read_text(encoding="utf-8").splitlines() if _LIST.is_file() else []
    pins = [line for line in lines if package and line.startswith(f"{package}==")]
    if not pins:
        sys.__excepthook__(kind, error, traceback)
        return
    print(
        f"error: this Python has no {package}: `{sys.executable} -m pip install {pins[0]}` installs"
        f" it; `python3 quickstart.py` makes .venv, an environment with all that the kit needs: "
        "activate that",
        file=sys.stderr,
    )
    raise SystemExit(2)


# For libraries still to be imported: threads that wait awake make a fit beside other work several
# times slower; where they sleep at once, trees take twice as long; GNU's can sleep soon.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
# BLAS rounds otherwise with each number of threads, and engines have threads of their own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if str(_KIT) not in sys.path:
    # Of a script that has found only `common`; behind the folder of the script.
    sys.path.insert(1, str(_KIT))
if sys.excepthook is sys.__excepthook__:
    sys.excepthook = _name_what_is_missing
