"""Every script explains itself on one screen, with a command to copy."""

from tools import script_runs

import pytest
from conftest import ROOT, scripts
from run_scripts import run_script

# Run in processes of their own: an entry of task 4, and a script that is asked for its flags.
NOT_FOR_USERS = {"common/sandbox/inside/__main__.py", "tools/print_flags.py"}
PLACES = (
    "*", "common/**/*", "tools/*", "data/*", "hosting/*", "task_[1-4]/**/*",
    "related_challenges/*/*",
)  # fmt: skip
NAMES = {path.relative_to(ROOT).as_posix() for path in scripts(*PLACES)} - NOT_FOR_USERS


@pytest.mark.parametrize("script", sorted(NAMES))
def test_help(script: str) -> None:
    done = run_script([script, "--help"], environment={"COLUMNS": "100"})
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 42 and max(map(len, lines)) <= 100
    module = script.removesuffix(".py").replace("/", ".")
    examples = (f"python {script}", f"python3 {script}", f"python -m {module}")
    assert any(example in done.stdout for example in examples)
    # Whoever needs the flags of a script asks this function.
    if script != "quickstart.py":
        assert script_runs._defines_build_parser(ROOT / script)
