"""Start an entry of your own from a sample model, and print the commands that run it.

    python -m tools.new_entry task_1 my_idea
    python -m tools.new_entry task_2 my_idea --from matrix_factorization
    python -m tools.new_entry task_4 my_idea --from item_response
    python -m tools.new_entry related_challenges/cloze my_idea

Writes task_1/my_idea.py, or the folder task_4/my_idea. Marks in the file show the block to replace.
WRITE_YOUR_OWN_ENTRY.md explains how to do the same by hand.
"""

import argparse
import importlib.util
import keyword
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from common import cli, layout
from common.adaptive.weights import copy_package
from common.errors import InputError
from common.reading import is_there
from common.tasks import TASK_4, TASKS, title_of
from common.writing import write_files
from tools import script_flags

# The beginning of the file name of every sample model.
PREFIX = "sample_model_"
# Names of devices on Windows. There, no file can have such a name, with any suffix.
_WINDOWS_DEVICES = re.compile("con|prn|aux|nul|com[0-9]|lpt[0-9]")
# The names of the sample models that are copied by default. The keys are the names of the tasks'
# folders.
MODELS = {task.folder.name: task.simplest_model for task in TASKS.values()}
# The name of the folder of task 4. The entries of this task are folders; all other entries are
# scripts.
PACKAGE_TASK = TASK_4.folder.name


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    # A shell that completes the name of a folder may add a slash: remove it.
    parser.add_argument(
        "task",
        type=lambda text: text.rstrip("/\\"),
        choices=(*MODELS, *find_challenges()),
        metavar="TASK",
        help=f"{', '.join(MODELS)}, or the folder of a related challenge",
    )
    help_text = "name of your entry, such as my_idea"
    parser.add_argument("name", type=entry_name, metavar="NAME", help=help_text)
    help_text = "sample model to start from (default majority, entropy in task 3, numpy in task 4, "
    help_text += "the shortest one of a related challenge)"
    parser.add_argument("--from", dest="model", metavar="MODEL", help=help_text)
    return parser


def main() -> None:
    """Copy the sample model that the command line names."""
    options = build_parser().parse_args()
    model = options.model or MODELS.get(options.task) or shortest_model(options.task)
    entry = copy_model(layout.ROOT / options.task, model, options.name)
    print(f"written: {cli.show(entry)}; replace the block that is marked in it, then")
    listed = commands(options.task, entry)
    width = max(len(command) for command, _ in listed)
    for command, purpose in listed:
        print(f"  {command:<{width}}  {purpose}")


def find_challenges() -> list[str]:
    """Return the folders of the related challenges, relative to the kit's folder."""
    scripts = layout.RELATED_DIR.glob(f"*/{PREFIX}*.py")
    return sorted({path.parent.relative_to(layout.ROOT).as_posix() for path in scripts})


def shortest_model(folder: str) -> str:
    """Return the name of the sample model with the shortest file in a folder."""
    scripts = (layout.ROOT / folder).glob(f"{PREFIX}*.py")
    shortest = min(scripts, key=lambda path: (path.stat().st_size, path.name))
    return shortest.stem.removeprefix(PREFIX)


def entry_name(text: str) -> str:
    """Check the name of an entry on the command line, which becomes the name of a Python module."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", text):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not valid, expected lower-case letters, digits and _, a letter first"
        )
    # Python looks for modules in a script's folder first. An entry json.py would be imported by
    # every script of its folder that says `import json`.
    if text in sys.stdlib_module_names or importlib.util.find_spec(text) is not None:
        raise argparse.ArgumentTypeError(
            f"'{text}' is the name of a Python module, which the entry would hide"
        )
    # Python could not import a module whose name is a keyword. The prefix marks a sample model.
    # Windows has no file with the name of a device.
    is_device = _WINDOWS_DEVICES.fullmatch(text)
    if keyword.iskeyword(text) or text.startswith(PREFIX) or is_device:
        raise argparse.ArgumentTypeError(f"'{text}' is a reserved name, expected another one")
    return text


def copy_model(folder: Path, model: str, name: str) -> Path:
    """Copy a sample model as a new entry.

    Parameters
    ----------
    folder
        The folder of a task or of a related challenge.
    model
        The name of the sample model, such as majority.
    name
        The name of the entry.

    Returns
    -------
    Path
        The new script or, in task 4, folder.

    Raises
    ------
    InputError
        If there is no such sample model, or if a sample model or a file has the entry's name.
    """
    # In task 4, a model is a package: a folder. Elsewhere, also in a related challenge, it is a
    # script.
    is_package = folder.name == PACKAGE_TASK
    if is_package:
        source = folder / model
        target = folder / name
        sample_models = [path.parent for path in folder.glob("*/train_model.py")]
    else:
        source = folder / f"{PREFIX}{model}.py"
        target = folder / f"{name}.py"
        sample_models = list(folder.glob(f"{PREFIX}*.py"))
    model_names = sorted(path.stem.removeprefix(PREFIX) for path in sample_models)
    if source not in sample_models:
        raise InputError(
            f"--from {model}: {cli.show(source)} does not exist, expected one of "
            f"{', '.join(model_names)}"
        )
    _require_new_name(folder, name, model_names)
    if is_package:
        _copy_package(source, target)
    else:
        text = rename(source.read_text(encoding="utf-8"), source.stem, name)
        write_files({target: retitle(text, folder.name, name, source.name)})
    return target


def _require_new_name(folder: Path, name: str, model_names: Sequence[str]) -> None:
    """Raise `InputError` if a sample model, a module or a package of a folder has an entry's name.

    `model_names` are the names of the folder's sample models.
    """
    if name in model_names:
        raise InputError(
            f"{name}: is the name of a sample model, under which its scores are shown; expected "
            "another NAME"
        )
    # If a folder holds a module and a package of the same name, Python imports only the package. So
    # an entry needs a name that neither a module nor a package has. `is_there` also finds a broken
    # symlink.
    for path in (folder / name, folder / f"{name}.py"):
        if is_there(path):
            raise InputError(f"{cli.show(path)}: exists already, expected another NAME")


def _copy_package(source: Path, target: Path) -> None:
    """Copy a package of task 4 without its weights, and put the new name into its files.

    The copy is made in a hidden folder. This folder gets the name of the entry when the copy is
    complete.
    """
    old = f"{PACKAGE_TASK}/{source.name}"
    new = f"{PACKAGE_TASK}/{target.name}"
    partial = target.with_name(f".{target.name}.partial")
    # An interrupted run may have left this folder.
    shutil.rmtree(partial, ignore_errors=True)
    # `copy_package` leaves out the weights.
    copy_package(source, partial)
    for path in [*partial.rglob("*.py"), *partial.rglob("*.md")]:
        text = rename(path.read_text(encoding="utf-8"), old, new)
        if path.name == "train_model.py":
            text = retitle(text, PACKAGE_TASK, target.name, old)
        write_files({path: text})
    partial.replace(target)


def rename(text: str, old: str, new: str) -> str:
    """Replace a name in a text; comments to the right of a command with this name stay aligned.

    If the new name is longer than the old one, the gap before such a comment shrinks, and if it is
    shorter, the gap grows. At least two spaces remain.
    """
    # The pattern matches the old name, the rest of its command, and the gap before a comment, if
    # there is a comment. In `majority.py --local    predict`, the rest is ".py --local", and the
    # gap is four spaces. A single space does not end the command.
    rest_of_command = r"(?P<rest>\S*(?: \S+)*)"
    gap_before_comment = r"(?P<gap> {2,})"
    pattern = f"{re.escape(old)}{rest_of_command}{gap_before_comment}?"

    def with_new_name(match: re.Match[str]) -> str:
        """Return the match with the new name, and with a gap that fits the new name."""
        # The rest of the command may hold the old name again.
        rest = match["rest"].replace(old, new)
        gap = ""
        if match["gap"]:
            gap_width = len(match["gap"]) + len(old) - len(new)
            gap = " " * max(gap_width, 2)
        return f"{new}{rest}{gap}"

    return re.sub(pattern, with_new_name, text)


def retitle(text: str, task: str, name: str, source: str) -> str:
    """Give the docstring of a copied script the entry's own title.

    Parameters
    ----------
    text
        The script, which begins with a docstring.
    task
        The name of the folder of the task or of the related challenge.
    name
        The name of the entry.
    source
        What the script was copied from, for the docstring.
    """
    if task in MODELS:
        # For the folder "task_1", `title_of(1)` returns "Task 1: …", which is cut to "Task 1".
        task_number = int(task[-1])
        challenge, _, _ = title_of(task_number).partition(":")
    else:
        challenge = title_of(task)
    title = f"{challenge}, {name}: say here in one line what it does."
    first_line, rest = text.split("\n", 1)
    old_title = first_line.removeprefix('"""').removesuffix('"""')
    # The new docstring has several lines. If the old one has a single line, its closing quotes move
    # to a line of their own. A first line of only three quotes opens a docstring and closes none.
    is_one_line = first_line.endswith('"""') and len(first_line) > 3
    closing = '\n"""' if is_one_line else ""
    # Drop the line that begins with "Score:" or "Scores:", and the indented lines that follow it:
    # they are the scores of the sample model, not of the copy.
    rest = re.sub(r"^Scores?:.*\n(?:[ \t]+.*\n)*", "", rest, count=1, flags=re.MULTILINE)
    copied = f"Copied from {source}, whose description is:"
    return f'"""{title}\n\n{copied}\n{old_title}{closing}\n{rest}'


def commands(task: str, entry: Path) -> list[tuple[str, str]]:
    """Return the commands that predict, score and check an entry, each with its purpose.

    `task` is the path of the folder in the kit, such as "task_1" or "related_challenges/cloze".
    """
    # Each step is a list of words after "python", with its purpose.
    if task == PACKAGE_TASK:
        steps = package_commands(f"{task}/{entry.name}")
    elif task in ("task_1", "task_2"):
        steps = prediction_commands(task, f"{task}/{entry.name}")
    else:
        steps = task_3_or_related_commands(task, entry)
    # `MODELS` names the folders of the tasks. Any other folder is a related challenge.
    if task in MODELS:
        submission = f"{layout.SUBMISSION_DIR.name}/submission_{task}.zip"
    else:
        submission = f"{task}/{layout.DATA_DIR.name}/{layout.TEST_OUTPUT_DIR.name}/submission.csv"
    steps.append((["-m", "tools.check_submission", submission], "check the file"))
    return [(shlex.join(["python", *words]), purpose) for words, purpose in steps]


def prediction_commands(task: str, script: str) -> list[tuple[list[str], str]]:
    """Return the commands for a script of task 1 or 2.

    Each command is a list of the words after `python`, with its purpose.
    """
    flags = script_flags.flags_of(Path(task))
    return [
        ([script, *flags.predict], "predict the local split"),
        ([f"{task}/local_evaluation.py", *flags.score], "score that"),
        ([script], "predict the official template"),
    ]


def package_commands(package: str) -> list[tuple[list[str], str]]:
    """Return the commands for an entry of task 4, whose folder in the kit is `package`.

    Each command is a list of the words after `python`, with its purpose.
    """
    flags = script_flags.flags_of(Path(PACKAGE_TASK))
    return [
        ([f"{package}/train_model.py", *flags.predict], "learn from the local split"),
        ([f"{package}/local_evaluation.py", *flags.score], "score that"),
        ([f"{package}/train_model.py"], "learn from all training students"),
        (["task_4/package.py", package], "write the zip to upload"),
    ]


def task_3_or_related_commands(task: str, entry: Path) -> list[tuple[list[str], str]]:
    """Return the commands for a script of task 3 or of a related challenge.

    Each command is a list of the words after `python`, with its purpose.
    """
    flags = script_flags.flags_of(Path(task))
    steps = [
        ([f"{task}/{entry.name}", *flags.predict], "predict"),
        ([f"{task}/local_evaluation.py", *flags.score], "score that"),
    ]
    # Task 3 needs no local split, because the judgements of experts score it. A related challenge
    # may have one. `MODELS` names the folders of the tasks, not of related challenges.
    is_related_challenge = task not in MODELS
    if is_related_challenge and entry.with_name("local_data_split.py").exists():
        steps.insert(0, ([f"{task}/local_data_split.py"], "split the data, once"))
    return steps


if __name__ == "__main__":
    cli.run(main)
