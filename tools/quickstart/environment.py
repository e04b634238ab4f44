"""Finds a Python with the kit and the packages it needs, or makes one in the folder .venv."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from common.layout import ROOT
from tools.quickstart.processes import Children, CommandError, failure, run_python, succeeds

VENV = ROOT / ".venv"
CHECK_SCRIPT = Path(__file__).with_name("check_environment.py")
# The file in .venv that names the kit's folder: Python adds the folders that a .pth file names to
# the end of its search path for modules.
PATH_FILE = "education_kit.pth"


def set_up(*, for_tests: bool) -> str:
    """Return the path of a Python that has the kit and its packages.

    If the Python that runs the quickstart has them, return its path. Otherwise return the path of
    the Python in .venv, and install there what it lacks. With `for_tests`, the packages that only
    the tests need are required too.
    """
    pin_files = ["requirements.txt"]
    if for_tests:
        pin_files.append("requirements-dev.txt")
    if has_everything(sys.executable, pin_files):
        return sys.executable
    python = str(VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if not has_everything(python, pin_files):
        print(f"installing {' and '.join(pin_files)} into .venv (once; a few minutes)", flush=True)
        install(python, for_tests=for_tests)
        if not has_everything(python, pin_files):
            raise CommandError(
                f"the environment in {VENV} is broken: remove this folder, run again"
            )
    return python


def has_everything(python: str, pin_files: Sequence[str]) -> bool:
    """Return whether a Python has this kit, and the packages that are pinned in these files."""
    # With -P, Python does not look for modules in the folder of the script. So it finds `common`
    # and `tools` only if the kit is installed.
    return succeeds([python, "-P", str(CHECK_SCRIPT), str(ROOT), *pin_files])


def install(python: str, *, for_tests: bool) -> None:
    """Let the Python of .venv find the kit, and install the packages that the kit needs."""
    # If pip does not run, .venv does not exist, or is incomplete after an interruption: make it
    # anew.
    if not succeeds([python, "-m", "pip", "--version"]):
        run_python(sys.executable, "-m", "venv", "--clear", str(VENV))
    add_kit(python)
    # Install the packages.
    words = ["-m", "pip", "install"]
    # pip would compile all modules, which takes half a minute for PyTorch alone. Python compiles
    # each module at its first import anyway, and keeps the result unless `dont_write_bytecode`.
    if not sys.dont_write_bytecode:
        words.append("--no-compile")
    words += ["-r", "requirements.txt"]
    if for_tests:
        words += ["-r", "requirements-dev.txt"]
    run_python(python, *words, shown=sys.stdout.isatty())
    if for_tests:
        # The tests start many processes, which do not write compiled modules: compile them now,
        # also those that an earlier run installed.
        succeeds([python, "-m", "compileall", "-q", "-j", "0", str(VENV)])


def add_kit(python: str) -> None:
    """Let the Python of .venv import the kit from any folder, even if it is started with -P.

    The flag -P keeps Python from looking for modules in the present folder. The path of the kit's
    folder is written relative to .venv, so that it stays right if both folders are moved together.
    """
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    ended = Children().run([python, "-I", "-c", code])
    if ended.code:
        raise failure(f"{python} -I -c ...", ended.code, ended.printed)
    packages = ended.printed.splitlines()[-1]
    line = os.path.relpath(ROOT, packages) + "\n"
    Path(packages, PATH_FILE).write_text(line, encoding="utf-8")
