"""Rules that matter on Windows or macOS and that can be tested on every system."""

import csv
import sys
from pathlib import Path

from tools.script_runs import run_to_end

import pytest
from run_scripts import ROOT, run_process

# On Windows, a program can write only the characters of the system's code page to a pipe. To test
# this on every system, let Python write only ASCII, whose characters are in all code pages.
CODE_PAGE = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}


def test_the_longest_cell_fits_a_c_long_of_32_bits() -> None:
    """The limit of a CSV cell's length fits a C long, which has only 32 bits on Windows."""
    assert csv.field_size_limit() < 2**31


def test_scripts_print_a_character_that_the_code_page_lacks_as_an_escape() -> None:
    done = run_process(["task_1/sample_model_item_response.py", "--help"], environment=CODE_PAGE)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"(1 \u2212 guessing)" in done.stdout


def test_the_quickstart_too_prints_such_a_character_as_an_escape(tmp_path: Path) -> None:
    script = tmp_path / "start.py"
    code = "from tools.quickstart.command_line import main\nmain('−')\n"
    script.write_text(code, encoding="utf-8")
    done = run_process([script, "--help"], environment={"PYTHONPATH": str(ROOT), **CODE_PAGE})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n\\u2212\n" in done.stdout


def test_output_of_programs_is_read_as_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CODE_PAGE.items():
        monkeypatch.setenv(name, value)
    assert run_to_end([sys.executable, "-c", "print('0.7 ± 0.1 −')"]) == (0, ["0.7 ± 0.1 −"])


def test_git_writes_lf_on_every_system() -> None:
    """Git must write line ends as LF, because Bash refuses .ci/run if its lines end with CRLF."""
    assert "* text=auto eol=lf\n" in (ROOT / ".gitattributes").read_text(encoding="utf-8")
