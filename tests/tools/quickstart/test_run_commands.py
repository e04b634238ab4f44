"""Several commands in one process: each runs as if it were alone, until one fails."""

from pathlib import Path

from tools.quickstart import run_commands

import pytest
from run_scripts import Done, run_process

# The code of a script that prints its flags, a constant of a module in its folder, its `__name__`
# and the id of its process. MODULE stands for the name of the module.
SHOW_ITSELF = "import os, sys, MODULE; print(sys.argv[1:], MODULE.NAME, __name__, os.getpid())\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with four scripts.

    first/script.py and second/script.py print what `SHOW_ITSELF` says. The exit code of fails.py is
    7, and that of exits.py is 0.
    """
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "script.py").write_text(SHOW_ITSELF.replace("MODULE", f"{name}_module"))
        (tmp_path / name / f"{name}_module.py").write_text(f"NAME = '{name}'\n")
    (tmp_path / "fails.py").write_text("import sys\nsys.exit(7)\n")
    (tmp_path / "exits.py").write_text("import sys\nsys.exit()\n")
    return tmp_path


def run(folder: Path, *commands: str) -> Done:
    """Run commands in a folder, all in one process."""
    return run_process([run_commands.__file__, *commands], cwd=folder)


def test_each_script_has_its_flags_and_its_modules(folder: Path) -> None:
    done = run(folder, "first/script.py --flag 'two words'", "second/script.py")
    assert (done.returncode, done.stderr) == (0, "")
    started, first, started_too, second = done.stdout.splitlines()
    assert started == "$ python first/script.py --flag 'two words'"
    assert first.startswith("['--flag', 'two words'] first __main__ ")
    assert started_too == "$ python second/script.py"
    assert second.startswith("[] second __main__ ")
    # The last word is the process id: both scripts run in one process, so that libraries are
    # imported only once.
    assert first.split()[-1] == second.split()[-1]


def test_no_command_runs_after_one_that_fails(folder: Path) -> None:
    done = run(folder, "exits.py", "fails.py", "first/script.py")
    assert done.returncode == 7
    assert done.stdout == "$ python exits.py\n$ python fails.py\n"
