"""Every script explains itself on one screen, with a command to copy."""

import ast
from pathlib import Path

from tools import script_runs

import pytest
from conftest import ROOT, scripts
from run_scripts import run_script

# Scripts that only the kit itself starts. The first script runs an entry of task 4, and the second
# prints the flags that another script declares.
NOT_FOR_USERS = {"common/sandbox/inside/__main__.py", "tools/print_flags.py"}
PATTERNS = (
    "*",
    "common/**/*",
    "tools/*",
    "data/*",
    "hosting/*",
    "task_[1-4]/**/*",
    "related_challenges/*/*",
)
SCRIPTS = {path.relative_to(ROOT).as_posix() for path in scripts(*PATTERNS)} - NOT_FOR_USERS


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_help_fits_a_screen_and_holds_a_command_to_copy(script: str) -> None:
    done = run_script([script, "--help"], environment={"COLUMNS": "100"})
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 42
    assert [line for line in lines if len(line) > 100] == []
    module = script.removesuffix(".py").replace("/", ".")
    examples = (f"python {script}", f"python3 {script}", f"python -m {module}")
    assert any(example in done.stdout for example in examples)


# The sample models of tasks 1 to 3, and the scripts that train those of task 4.
SAMPLES = scripts("task_[123]/sample_model_*", "task_4/*/train_model")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_header_of_a_sample_explains_the_flag_local_by_the_words_of_the_guide(
    path: Path,
) -> None:
    """The guide of 2020 has two blocks of default arguments, one of which is commented out.

    One block is for local evaluation, the other for a submission. The samples have the flag --local
    instead, and their headers must name the two blocks.
    """
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    blocks = '"Default arguments for local evaluation" with --local, "… for Codalab submission" wi'
    assert f"\nGuide:   {blocks}" in docstring


@pytest.mark.parametrize("script", sorted(SCRIPTS - {"quickstart.py"}))
def test_every_script_defines_build_parser(script: str) -> None:
    """Only quickstart.py does not define `build_parser`: its parser is in tools/.

    Even an old Python must be able to read quickstart.py, so quickstart.py imports as little as
    possible.
    """
    assert script_runs._defines_build_parser(ROOT / script)
