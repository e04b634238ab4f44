"""Sample models show in their docstring the flags with which the tools call them."""

import ast
import re
from pathlib import Path

from tools import script_flags
from tools.kit_files import glob_kit

import pytest
from conftest import ROOT

pytestmark = pytest.mark.files
SAMPLES = [
    *glob_kit("task_[123]/sample_model_*.py"),
    *glob_kit("task_4/*/train_model.py"),
    *glob_kit("related_challenges/*/sample_model_*.py"),
]


def commands_in_header(script: Path) -> list[str]:
    """Return the commands in a script's docstring, without optional flags and remarks."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    lines = re.findall(r"^(?:Run:)? +(python .*)$", docstring, re.MULTILINE)
    # Two spaces come before a remark, and " [" begins an optional flag: keep the text before them.
    return [re.split(r"  | \[", line)[0] for line in lines]


@pytest.mark.parametrize("script", SAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_header_of_every_sample_shows_these_flags(script: Path) -> None:
    is_package = script.name == "train_model.py"
    flags = script_flags.flags_of(script.parent.parent if is_package else script.parent)
    evaluation = script.with_name("local_evaluation.py")
    commands = commands_in_header(script)
    for path, its_flags in ((script, flags.predict), (evaluation, flags.score)):
        words = ["python", path.relative_to(ROOT).as_posix(), *its_flags]
        assert " ".join(words) in commands
