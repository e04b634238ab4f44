"""Copies of sample models: renamed throughout, and never over something that exists."""

import argparse
import ast
import re
import shutil
from pathlib import Path

from common import layout
from common.errors import InputError
from tools import new_entry
from tools.kit_files import glob_kit

import pytest
from conftest import copy_kit, run, succeeds

pytestmark = pytest.mark.files
SCRIPT = '"""Task 1: something simple.\n\nScores:  0.6,\n         0.7\nWrites:  a file\n"""\n'
COPY = '''"""Task 1, my_idea: say here in one line what it does.

Copied from sample_model_simple.py, whose description is:
Task 1: something simple.

Writes:  a file
"""
'''
SCRIPTS = [
    *glob_kit("task_[123]/sample_model_*.py"),
    *glob_kit("related_challenges/*/sample_model_*.py"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "task_1"
    path.mkdir()
    (path / "sample_model_simple.py").write_text(SCRIPT)
    (path / "sample_model_other.py").write_text('"""Task 1: another."""\n')
    return path


def test_the_copy_has_the_new_name_everywhere(folder: Path) -> None:
    assert new_entry.copy_model(folder, "simple", "my_idea").read_text() == COPY
    # A docstring of one line.
    text = new_entry.copy_model(folder, "other", "other_idea").read_text()
    assert text.startswith('"""Task 1, other_idea: say here in one line what it does.\n')
    assert text.endswith('\nTask 1: another.\n"""\n')


def test_nothing_is_overwritten(folder: Path) -> None:
    (folder / "my_idea.py").write_text("mine")
    with pytest.raises(InputError, match=r"my_idea\.py: exists already"):
        new_entry.copy_model(folder, "simple", "my_idea")
    assert (folder / "my_idea.py").read_text() == "mine"
    with pytest.raises(InputError, match=r"task_4/ability\.py: exists already"):
        new_entry.copy_model(layout.ROOT / "task_4", "numpy", "ability")
    with pytest.raises(InputError, match="expected one of other, simple"):
        new_entry.copy_model(folder, "complicated", "other_idea")


def test_names_that_would_do_harm() -> None:
    named = ("numpy", "common", "tools", "json", "class", "nul", "sample_model_x")
    for name in (*named, "My_idea", "my-idea", "../my_idea", "a b", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            new_entry.entry_name(name)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_sample_model_can_be_copied(script: Path, tmp_path: Path) -> None:
    """After the block to replace, of its names only those are used that it promises."""
    task, folder = script.parent.relative_to(layout.ROOT).as_posix(), tmp_path / script.parent.name
    folder.mkdir()
    shutil.copy(script, folder)
    (folder / "local_data_split.py").touch()
    model = script.stem.removeprefix("sample_model_")
    name = f"my_{model}"
    copy = new_entry.copy_model(folder, model, name)
    text = copy.read_text()
    assert text.count(script.stem) == 1
    listed = "\n".join(command for command, _ in new_entry.commands(task, copy))
    for called in (f"python {task}/{name}.py", f"python {task}/local_evaluation.py"):
        assert f"\n{called}" in f"\n{listed}"
    is_related = task in new_entry.find_challenges()
    assert listed.count("local_data_split.py") == is_related and "[" not in listed
    marks = ("---- The model: replace this block by your own. -", "---- End of the model. -")
    begin, end = (text[: text.index(mark)].count("\n") + 1 for mark in marks)
    promised = re.findall(r"`(\w+)`", text.splitlines()[begin].partition("Out")[2])
    names = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    stored = [node for node in names if isinstance(node.ctx, ast.Store)]
    inside = {node.id for node in stored if begin < node.lineno < end}
    outside = {node.id for node in stored if not begin < node.lineno < end}
    needed = {node.id for node in names if node.lineno > end} & inside - outside
    assert is_related or (needed and needed <= set(promised))


def test_the_command_copies_and_says_what_to_run(tmp_path: Path) -> None:
    """What it says of tasks 1, 3 and 4 is tried in test_write_your_own_entry.py."""
    kit = copy_kit(tmp_path / "kit")
    start = ["-m", "tools.new_entry"]
    out = succeeds([*start, "related_challenges/cloze/", "my_idea"], kit=kit, cwd=kit)
    # Of its sample models the shortest one.
    text = (kit / "related_challenges/cloze/my_idea.py").read_text()
    assert text.startswith('"""Cloze') and "Copied from sample_model_frequent.py," in text
    assert "  python related_challenges/cloze/my_idea.py --local " in out
    submission = "related_challenges/cloze/data/test_output/submission.csv"
    assert f"  python -m tools.check_submission {submission} " in out
    (kit / "task_4/numpy/model_task_4_weights.npy").touch()
    succeeds([*start, "task_4", "my_idea"], kit=kit, cwd=kit)
    text = (kit / "task_4/my_idea/train_model.py").read_text()
    assert text.startswith('"""Task 4, my_idea: say') and "task_4/my_idea/train_model.py" in text
    left = {path.name for path in (kit / "task_4/numpy").glob("*.py")}
    assert {path.name for path in (kit / "task_4/my_idea").iterdir()} == left
    done = run([*start, "task_1", "2fast"], kit=kit, cwd=kit)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("python -m tools.new_entry: error: argument")
