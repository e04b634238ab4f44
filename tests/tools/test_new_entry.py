"""Copies of sample models have the new name everywhere and never overwrite a file."""

import argparse
import ast
import re
import shutil
from dataclasses import dataclass
from itertools import takewhile
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
    """Return a folder with two small sample models."""
    path = tmp_path / "task_1"
    path.mkdir()
    (path / "sample_model_simple.py").write_text(SCRIPT)
    (path / "sample_model_other.py").write_text('"""Task 1: another."""\n')
    return path


def test_the_copy_has_the_new_name_everywhere(folder: Path) -> None:
    assert new_entry.copy_model(folder, "simple", "my_idea").read_text() == COPY


def test_a_docstring_of_one_line_is_kept_below_the_new_name(folder: Path) -> None:
    text = new_entry.copy_model(folder, "other", "other_idea").read_text()
    assert text.startswith('"""Task 1, other_idea: say here in one line what it does.\n')
    assert text.endswith('\nTask 1: another.\n"""\n')


def test_nothing_is_overwritten(folder: Path) -> None:
    (folder / "my_idea.py").write_text("mine")
    with pytest.raises(InputError, match=r"my_idea\.py: exists already"):
        new_entry.copy_model(folder, "simple", "my_idea")
    assert (folder / "my_idea.py").read_text() == "mine"


def test_a_package_does_not_take_the_name_of_a_module() -> None:
    with pytest.raises(InputError, match=r"task_4/ability\.py: exists already"):
        new_entry.copy_model(layout.ROOT / "task_4", "numpy", "ability")


def test_a_model_that_does_not_exist_is_refused_with_those_that_do(folder: Path) -> None:
    with pytest.raises(InputError, match="expected one of other, simple"):
        new_entry.copy_model(folder, "complicated", "other_idea")


@pytest.mark.parametrize(
    "name",
    [
        "numpy",
        "common",
        "tools",
        "json",
        "class",
        "nul",
        "sample_model_x",
        "My_idea",
        "my-idea",
        "../my_idea",
        "a b",
        "",
    ],
)
def test_names_that_would_hide_a_module_or_cannot_be_imported_are_refused(name: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        new_entry.entry_name(name)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_sample_model_can_be_copied(script: Path, tmp_path: Path) -> None:
    """The copy names the copied script only in its docstring. The tool prints commands for it.

    In a related challenge, the first command splits the data. In a task, no command does, although
    the folder of the task also has the script local_data_split.py.
    """
    task = script.parent.relative_to(layout.ROOT).as_posix()
    folder = tmp_path / script.parent.name
    folder.mkdir()
    shutil.copy(script, folder)
    # `new_entry.commands` lists the command that splits the data only if the folder has the script.
    (folder / "local_data_split.py").touch()
    model = script.stem.removeprefix("sample_model_")
    new_name = f"my_{model}"

    copy = new_entry.copy_model(folder, model, new_name)

    # The name of the original script occurs once in the copy: in its docstring.
    assert copy.read_text().count(script.stem) == 1
    listed = [command for command, _ in new_entry.commands(task, copy)]
    for begin in (f"python {task}/{new_name}.py", f"python {task}/local_evaluation.py"):
        assert any(command.startswith(begin) for command in listed)
    splits = [command for command in listed if "local_data_split.py" in command]
    is_related_challenge = script.is_relative_to(layout.RELATED_DIR)
    assert len(splits) == (1 if is_related_challenge else 0)


def enclosing_function(tree: ast.Module, line: int) -> ast.FunctionDef:
    """Return the outermost function that holds a line."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        if function.lineno < line <= (function.end_lineno or 0):
            return function
    raise AssertionError(f"line {line} is in no function")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_marked_block_lists_the_names_that_later_code_needs(script: Path) -> None:
    """In a sample model, two comments mark a block that users replace by a model of their own.

    The comment at the beginning of the block says which names the user's block must define
    (`Out: …`) or what it must return (`Return: …`), because later code needs them. `listed_names`
    are the names that follow `Out:`.
    """
    block = read_marked_block(script)
    if "Return: " in block.comment:
        # No code of the function follows the block: the block ends with the return statement.
        last_statement = block.function.body[-1]
        assert isinstance(last_statement, ast.Return)
        assert block.holds_line(last_statement.lineno)
    else:
        # The comment at the beginning of the block lists at least the names that the code after the
        # block needs.
        needed_names = block.names_that_later_code_needs()
        assert needed_names
        assert needed_names.issubset(block.listed_names)


@dataclass(frozen=True)
class MarkedBlock:
    """The block of a sample model that users replace by a model of their own."""

    # The numbers of the two lines that mark the beginning and the end, counted from 1.
    begin: int
    end: int
    # The comment at the beginning of the block.
    comment: str
    # The function that holds the block.
    function: ast.FunctionDef

    def holds_line(self, line: int) -> bool:
        """Return whether a line belongs to the block."""
        return self.begin < line < self.end

    @property
    def listed_names(self) -> set[str]:
        """The names that the block's comment lists after "Out:", in the same sentence."""
        sentence, _, _ = self.comment.partition("Out")[2].partition(". ")
        return set(re.findall(r"`(\w+)`", sentence))

    def names_that_later_code_needs(self) -> set[str]:
        """Return the names that only the block defines and that the code after it uses."""
        names = [node for node in ast.walk(self.function) if isinstance(node, ast.Name)]
        defined_in_block = set()
        defined_elsewhere = set()
        for node in names:
            if isinstance(node.ctx, ast.Store):
                if self.holds_line(node.lineno):
                    defined_in_block.add(node.id)
                else:
                    defined_elsewhere.add(node.id)
        used_after_block = {node.id for node in names if node.lineno > self.end}
        return used_after_block & (defined_in_block - defined_elsewhere)


def read_marked_block(script: Path) -> MarkedBlock:
    """Find the block between the two comments that mark it in a sample model."""
    text = script.read_text(encoding="utf-8")
    lines = text.splitlines()

    def line_with(mark: str) -> int:
        return text[: text.index(mark)].count("\n") + 1

    begin = line_with("---- The model: replace this block by your own. -")
    end = line_with("---- End of the model. -")
    comment_lines = takewhile(lambda line: line.lstrip().startswith("#"), lines[begin:])
    comment = " ".join(line.strip(" #") for line in comment_lines)
    return MarkedBlock(begin, end, comment, enclosing_function(ast.parse(text), begin))


START = ["-m", "tools.new_entry"]


def test_the_command_copies_the_shortest_model_of_a_challenge_and_prints_commands_for_it(
    tmp_path: Path,
) -> None:
    """The tool copies a sample model of a related challenge, and prints commands for the copy.

    The test reads these commands, but does not run them. (tests/test_write_your_own_entry.py runs
    those that the tool prints for tasks.)
    """
    kit = copy_kit(tmp_path / "kit")
    out = succeeds([*START, "related_challenges/cloze/", "my_idea"], kit=kit, cwd=kit)
    text = (kit / "related_challenges/cloze/my_idea.py").read_text()
    assert text.startswith('"""Cloze') and "Copied from sample_model_frequent.py," in text
    assert "  python related_challenges/cloze/my_idea.py --local " in out
    submission = "related_challenges/cloze/data/test_output/submission.csv"
    assert f"  python -m tools.check_submission {submission} " in out


def test_the_command_copies_a_package_of_task_4_without_its_weights(tmp_path: Path) -> None:
    kit = copy_kit(tmp_path / "kit")
    (kit / "task_4/numpy/model_task_4_weights.npy").touch()
    succeeds([*START, "task_4", "my_idea"], kit=kit, cwd=kit)
    text = (kit / "task_4/my_idea/train_model.py").read_text()
    assert text.startswith('"""Task 4, my_idea: say') and "task_4/my_idea/train_model.py" in text
    python_files = {path.name for path in (kit / "task_4/numpy").glob("*.py")}
    assert {path.name for path in (kit / "task_4/my_idea").iterdir()} == python_files


def test_the_command_refuses_a_name_that_begins_with_a_digit() -> None:
    done = run([*START, "task_1", "2fast"])
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("python -m tools.new_entry: error: argument")
