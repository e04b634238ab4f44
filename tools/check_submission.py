"""Check a submission as the challenge's scorer would, and report everything that is wrong.

    python -m tools.check_submission submissions/submission_task_1.zip
    python -m tools.check_submission my_answers.csv --task 2

    python -m tools.check_submission submissions/submission_task_4.zip
    python -m tools.check_submission related_challenges/cloze/data/test_output/submission.csv
    python -m tools.check_submission mine.csv --challenge cloze

FILE is the CSV or zip of task 1, 2 or 3, the zip or folder of task 4, or the CSV of a related
challenge. An entry of task 4 is tried in a game of ten rounds with training students. For a related
challenge, its own check_submission.py runs with the same flags. Every error is one line on stderr,
and the exit code is 2. For a valid submission a summary is printed. No hidden answers are needed.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common import answer_options, cli, layout, provenance, reading, source_code, submission
from common.adaptive import entry_files
from common.adaptive.entry_files import ENTRY_FILE, unpack
from common.adaptive.playing import N_DRY_RUN_STUDENTS, dry_run
from common.adaptive.setting import Setting, add_game_flags, read_game_flags
from common.arrays import Array
from common.sandbox import KIT_PACKAGES
from common.tasks import TASKS, Form, Task
from tools.which_task import task_of

import numpy as np

# The script of a related challenge that checks its submissions.
CHECK_NAME = "check_submission.py"


def find_challenges() -> list[str]:
    """Return the names of the related challenges whose submissions can be checked."""
    return sorted(path.parent.name for path in layout.RELATED_DIR.glob(f"*/{CHECK_NAME}"))


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="the submission")
    help_text = "number of the task (default: by the file's name or columns)"
    parser.add_argument("--task", type=int, choices=(1, 2, 3, 4), help=help_text)
    help_text = "related challenge, such as cloze (default: taken from the file's folder)"
    parser.add_argument("--challenge", choices=find_challenges(), metavar="NAME", help=help_text)
    cli.add_template_flags(parser, "that of the task")
    cli.add_optional_folder(parser, "--input_dir", "data/train_data")
    help_text = "answers to compare with (default those of the task)"
    parser.add_argument("--train_data", metavar="FILE", help=help_text)
    add_game_flags(parser)
    return parser


def main() -> None:
    """Check the file that the command line names."""
    parser = build_parser()
    # Accept unknown flags for now: the script of a related challenge may have them.
    options, unknown = parser.parse_known_args()
    challenge = options.challenge
    if options.task is None and challenge is None:
        challenge = challenge_of(options.file)
    if challenge:
        # A related challenge has its own script that checks submissions. It gets all flags of the
        # command line except --challenge.
        sys.exit(run_check_of_challenge(challenge))
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    task = TASKS[options.task] if options.task else task_of(options.file)
    check = check_entry if task.form is Form.ENTRY else check_table
    cli.run_check(options.file, f"task {task.number}", lambda faults: check(options, task, faults))


def challenge_of(file: Path) -> str | None:
    """Return the name of the related challenge whose folder holds a file, or else None."""
    path = Path(os.path.realpath(file))
    for name in find_challenges():
        if path.is_relative_to(layout.RELATED_DIR / name):
            return name
    return None


def run_check_of_challenge(challenge: str) -> int:
    """Run the script of a related challenge with the flags of this one; return its exit code."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--challenge")
    # Pass on all flags except --challenge, which the script of the challenge does not have.
    _, flags = parser.parse_known_args()
    script = layout.RELATED_DIR / challenge / CHECK_NAME
    return subprocess.call([sys.executable, script, *flags])


def is_local(path: Path) -> bool:
    """Return whether the name of a submission is that of a submission for the local split."""
    return path.stem in {Path(task.local_submission).stem for task in TASKS.values()}


def check_table(options: argparse.Namespace, task: Task, faults: list[str]) -> list[str]:
    """Check a submission of task 1, 2 or 3.

    Every error is added to `faults`. Returns lines that summarise a valid submission, none if there
    is an error.
    """
    check_rows = check_ranking if task.form is Form.RANKING else check_pairs
    summary = check_rows(options, task, faults)
    # Compare the CSV with the zip beside it only if the CSV has no faults. A user who mends the CSV
    # must make the zip again anyway.
    if not faults:
        report_differing_zip(options.file, task, faults)
    if faults:
        return []
    return [
        *summary,
        *warn_of_local_training(options.file),
        *how_to_upload(options.file, task),
    ]


def check_pairs(options: argparse.Namespace, task: Task, faults: list[str]) -> list[str]:
    """Check the rows of a submission of task 1 or 2.

    Every error is added to `faults`. Returns lines that summarise a valid submission: its number of
    rows, and the share of each value in the predictions, beside the share of the value in the
    training answers. Two shares that are far apart are a sign of a mistake.
    """
    # A submission for the local split has a template and training answers of its own.
    if is_local(options.file):
        template_dir = layout.TEST_INPUT_DIR
        train_dir = layout.TEST_INPUT_DIR
        template = task.local_template
    else:
        template_dir = layout.TEMPLATE_DIR
        train_dir = layout.TRAIN_DIR
        template = task.template
    template_path = cli.template_path(options, template_dir, str(template))
    predictions = submission.read_predictions(
        options.file, task.number, template_path, faults.append
    )
    if faults:
        return []
    train = (options.input_dir or train_dir) / (options.train_data or task.data.train)
    return [
        f"{len(predictions):,} rows: every pair of {cli.show(template_path)} once",
        *describe_shares(task, predictions[task.column.name].to_numpy(), train),
    ]


def describe_shares(task: Task, predicted: Array, train: Path) -> list[str]:
    """Return a table of the share of each value in the predictions and in the training answers.

    The training answers are left out if their file does not exist.
    """
    column = task.column
    values_by_title = {"predicted": predicted}
    if train.is_file():
        source = reading.file_source(train)
        # In the user's data, questions may have more than four options. The file then says which
        # values the column may have.
        column = answer_options.column_in(source, column)
        answers = reading.read_table(source, [column])
        values_by_title[cli.show(train)] = answers[column.name].to_numpy()
    # Show every option up to the highest predicted one, even if the training answers lack it.
    highest_value = max(column.high, int(predicted.max()))
    column = replace(column, high=highest_value)
    lines = [as_line(column.name, list(values_by_title))]
    # The names of the values are "wrong" and "right" in task 1. In task 2, where a value is the
    # number of an option, the names are left out.
    names = task.name_values(column)
    for value, name in zip(column.values, names, strict=True):
        label = f"{value} {name}" if column.is_boolean else f"{value}"
        shares = [f"{np.mean(values == value):.1%}" for values in values_by_title.values()]
        lines.append(as_line(label, shares))
    return lines


def as_line(label: str, cells: Sequence[str]) -> str:
    """Return a line of a table of shares: the label, then the cells of the columns.

    The first column has the title "predicted", so that its cells are nine characters wide.
    """
    first, *others = cells
    return "   ".join([f"{label:14}{first:>9}", *others])


def check_ranking(options: argparse.Namespace, task: Task, faults: list[str]) -> list[str]:
    """Check the rows of a submission of task 3.

    Every error is added to `faults`. Returns lines that summarise a valid submission: its number of
    rows, and the questions at both ends of the ranking.
    """
    path = cli.template_path(options, layout.TEMPLATE_DIR, str(task.template))
    ranking = submission.read_ranking(options.file, path, faults.append)
    if faults:
        return []
    questions = ranking.sort_values().index.tolist()
    n = len(questions)
    return [
        f"{n:,} rows: every question of {cli.show(path)} once, ranks 1 to {n}",
        f"best  QuestionId {', '.join(map(str, questions[:5]))}",
        f"worst QuestionId {', '.join(map(str, questions[-5:]))}",
    ]


def report_differing_zip(path: Path, task: Task, faults: list[str]) -> None:
    """Add a fault if a CSV differs from the CSV in the zip beside it, which users upload."""
    zipped = path.with_suffix(".zip")
    if path == zipped or not zipped.is_file():
        return
    in_zip = submission.submission_source(zipped, task.number, path)
    if read_text(in_zip) != read_text(reading.file_source(path)):
        faults.append(
            f"{path}: differs from {task.submission} in {zipped.name} beside it, which is the file "
            "to upload; make both again with the script, or remove the zip"
        )


def read_text(source: reading.Source) -> bytes:
    """Return the content of a CSV, so that two files can be compared: UTF-8, with LF line ends."""
    with source.open() as file:
        content = file.read()
    return content.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n")


def warn_of_local_training(path: Path) -> list[str]:
    """Return a warning if a submission to upload was made from the local split alone, else []."""
    record = provenance.read(path)
    if record is None or is_local(path):
        return []
    sources = [(path.parent / source).resolve() for source in record.made_from]
    # The name of each file of training answers contains "train".
    train_folders = {source.parent for source in sources if "train" in source.name}
    # The local split writes its training answers to this folder. The file with all training answers
    # lies in another folder.
    folder_of_local_split = layout.TEST_INPUT_DIR.resolve()
    if train_folders != {folder_of_local_split}:
        return []
    return [
        "note: it has learned from the training part of the local split alone; run "
        f"{record.script} without --local and --input_dir to learn from all answers"
    ]


def how_to_upload(path: Path, task: Task) -> list[str]:
    """Return a list with one line, which says which zip to upload.

    The list is empty if the submission is a zip itself, or is for the local split.
    """
    zipped = path.with_suffix(".zip")
    if path.suffix.lower() == ".zip" or is_local(path):
        return []
    if zipped.is_file():
        return [f"to upload: {cli.show(zipped)}"]
    return [f"to upload: a zip that holds it as {task.submission}"]


def check_entry(options: argparse.Namespace, task: Task, faults: list[str]) -> list[str]:
    """Check the files of an entry of task 4, then let it play the ten rounds of the game.

    Every error in the files is added to `faults`; an error in the game raises `InputError`. Returns
    lines that summarise a valid entry.
    """
    entry: Path = options.file
    with tempfile.TemporaryDirectory() as temporary:
        if entry.is_dir():
            folder = entry
            reading.require_file(entry / ENTRY_FILE)
        else:
            folder = Path(temporary) / "entry"
            unpack(entry, folder)
        modules = check_code(folder, entry, faults)
    # Report saved models whose names the challenge does not accept: it would not load them.
    faults += entry_files.list_misnamed(entry)
    if faults:
        return []
    train_dir = options.input_dir or layout.TRAIN_DIR
    train = train_dir / (options.train_data or task.data.train)
    metadata_dir = train_dir.parent / layout.METADATA_DIR.name
    # The dry run needs students to examine. The test students are not known here, so it takes
    # students of the training file. The flags of the game may change its rules and limits.
    setting = Setting(submission=entry, reference=train, train=train, metadata_dir=metadata_dir)
    setting_with_flags = read_game_flags(options, setting)
    dry_run(setting_with_flags)
    summary = [
        f"its files: {', '.join([*modules, *entry_files.list_weights(entry)])}",
        f"dry run: the ten rounds ran with {N_DRY_RUN_STUDENTS} students of {cli.show(train)}",
    ]
    if entry.is_dir():
        package = f"python task_4/package.py {cli.show(entry.resolve())}"
        summary.append(f"to upload: the zip that `{package}` writes")
    return summary


def check_code(folder: Path, entry: Path, faults: list[str]) -> list[str]:
    """Check that the modules of an entry are Python and do not import the kit.

    Parameters
    ----------
    folder
        The folder with the entry's files.
    entry
        The folder or zip that the user has named, for messages.
    faults
        The list to which every error is added.

    Returns
    -------
    list of str
        The file names of the entry's modules: the one with the class, and all that it imports,
        directly or by way of others.
    """
    modules = [ENTRY_FILE]
    # The loop adds each module that an entry's module imports to the list, and so checks it too.
    for file in modules:
        try:
            tree = ast.parse((folder / file).read_bytes())
        except SyntaxError as error:
            faults.append(f"{entry}/{file}: row {error.lineno or 1} is not Python: {error.msg}")
            continue
        except ValueError as error:
            faults.append(f"{entry}/{file}: is not Python: {error}")
            continue
        for row, module in list_imports(tree):
            if module in KIT_PACKAGES and not (folder / module).exists():
                faults.append(
                    f"{entry}/{file}: row {row} imports {module}, the kit's shared "
                    "code, which is not there in the challenge; expected only what is in the "
                    "zip, numpy, pandas, scikit-learn and torch"
                )
            module_file = f"{module}.py"
            if module_file not in modules and (folder / module_file).is_file():
                modules.append(module_file)
    return modules


def list_imports(tree: ast.AST) -> list[tuple[int, str]]:
    """Return the row and the top-level module of each import in a parsed Python file."""
    imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for module in source_code.imported_modules(node):
                imports.append((node.lineno, module))
    return imports


if __name__ == "__main__":
    cli.run(main)
