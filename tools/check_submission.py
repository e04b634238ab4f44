"""Check a submission as the challenge's scorer would, and report everything that is wrong.

    python -m tools.check_submission submissions/submission_task_1.zip
    python -m tools.check_submission my_answers.csv --task 2

    python -m tools.check_submission submissions/submission_task_4.zip
    python -m tools.check_submission related_challenges/cloze/data/test_output/submission.csv
    python -m tools.check_submission mine.csv --challenge cloze

FILE is the CSV or zip of task 1, 2 or 3, the zip or folder of task 4, whose ten rounds are
played with training students, or the CSV of a related challenge, whose own check_submission.py
runs and takes further flags. Every error is one line on stderr, with exit code 2; for a valid
submission a summary is printed. No hidden answers are needed.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import cli, layout, reading, submission
from common.adaptive import entry_files
from common.adaptive.entry_files import ENTRY_FILE, unpack
from common.adaptive.playing import N_DRY_RUN_STUDENTS, dry_run
from common.adaptive.setting import Setting, add_game_flags, read_game_flags
from common.sandbox import KIT_PACKAGES
from common.tasks import TASKS, Form, Task
from tools.which_task import task_of

import numpy as np

# Of each related challenge that has submissions to check.
CHECK_NAME = "check_submission.py"


def find_challenges() -> list[str]:
    """Return the names of the related challenges whose submissions can be checked."""
    return sorted(path.parent.name for path in layout.RELATED_DIR.glob(f"*/{CHECK_NAME}"))


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="the submission")
    help_text = "default: by the file's name, or columns"
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
    options, others = parser.parse_known_args()
    if options.task is None and options.challenge is None:
        place = Path(os.path.realpath(options.file))
        own = (
            name for name in find_challenges() if place.is_relative_to(layout.RELATED_DIR / name)
        )
        options.challenge = next(own, None)
    if options.challenge:
        # The challenge's own script checks it, and knows its flags.
        named = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        named.add_argument("--challenge")
        script = layout.RELATED_DIR / options.challenge / CHECK_NAME
        sys.exit(subprocess.call([sys.executable, script, *named.parse_known_args()[1]]))
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    task = TASKS[options.task] if options.task else task_of(options.file)
    checks = {
        Form.PREDICTIONS: check_pairs,
        Form.RANKING: check_ranking,
        Form.ENTRY: check_entry,
    }
    check = checks[task.form]
    cli.run_check(options.file, f"task {task.number}", lambda faults: check(options, task, faults))


def is_local(path: Path) -> bool:
    """Return whether a submission is for the local split, judging by its name."""
    return path.stem in {Path(task.local_submission).stem for task in TASKS.values()}


def check_pairs(options: argparse.Namespace, task: Task, faults: list[str]) -> list[str]:
    """Check a submission of task 1 or 2; add faults, return lines that summarise a valid one."""
    template_dir, train_dir, name = layout.TEMPLATE_DIR, layout.TRAIN_DIR, task.template
    if is_local(options.file):
        template_dir = train_dir = layout.TEST_INPUT_DIR
        name = task.local_template
    template_path = cli.template_path(options, template_dir, str(name))
    column = task.column
    predictions = submission.read_predictions(
        options.file, task.number, template_path, faults.append
    )
    if faults:
        return []
    lines = [f"{len(predictions):,} rows: every pair of {cli.show(template_path)} once"]
    # The share of each value predicted, beside that of the training answers if they are there.
    train = (options.input_dir or train_dir) / (options.train_data or task.data.train)
    columns = {"predicted   ": predictions[column.name].to_numpy()}
    if train.is_file():
        columns[cli.show(train)] = reading.read_table(train, [column])[column.name].to_numpy()
    lines.append(f"{column.name:14}{''.join(columns)}")
    for value, name in zip(task.values, task.value_names, strict=True):
        shares = [f"{np.mean(own == value):.1%}" for own in columns.values()]
        label = f"{value} {name}" if column.is_boolean else f"{value}"
        lines.append(f"{label:14}{shares[0]:>9}" + "".join(f"   {share}" for share in shares[1:]))
    return [*lines, *how_to_upload(options.file, task)]


def check_ranking(options: argparse.Namespace, task: Task, faults: list[str]) -> list[str]:
    """Check a submission of task 3, as `check_pairs`."""
    path = cli.template_path(options, layout.TEMPLATE_DIR, str(task.template))
    ranking = submission.read_ranking(options.file, path, faults.append)
    if faults:
        return []
    best = ranking.sort_values().index.tolist()
    return [
        f"{len(best):,} rows: every question of {cli.show(path)} once, ranks 1 to {len(best)}",
        f"best  QuestionId {', '.join(map(str, best[:5]))}",
        f"worst QuestionId {', '.join(map(str, best[-5:]))}",
        *how_to_upload(options.file, task),
    ]


def how_to_upload(path: Path, task: Task) -> list[str]:
    """Say what to upload if this is a CSV: the challenge takes a zip."""
    zipped = path.with_suffix(".zip")
    if path.suffix.lower() == ".zip" or is_local(path):
        return []
    if zipped.is_file():
        return [f"to upload: {cli.show(zipped)}"]
    return [f"to upload: a zip that holds it as {task.submission}"]


def check_entry(options: argparse.Namespace, task: Task, faults: list[str]) -> list[str]:
    """Check an entry of task 4, as `check_pairs`; if its files are valid, play the ten rounds."""
    entry: Path = options.file
    with tempfile.TemporaryDirectory() as temporary:
        folder = entry if entry.is_dir() else Path(temporary) / "entry"
        if folder == entry:
            reading.require_file(entry / ENTRY_FILE)
        else:
            unpack(entry, folder)
        modules = check_code(folder, entry, faults)
    if faults:
        return []
    entry_files.warn_of_names(entry)
    train_dir = options.input_dir or layout.TRAIN_DIR
    train = train_dir / (options.train_data or task.data.train)
    metadata_dir = train_dir.parent / layout.METADATA_DIR.name
    dry_run(read_game_flags(options, Setting(entry, train, train, metadata_dir)))
    summary = [
        f"its files: {', '.join(modules)}",
        f"dry run: the ten rounds ran with {N_DRY_RUN_STUDENTS} students of {cli.show(train)}",
    ]
    if entry.is_dir():
        package = f"python task_4/package.py {cli.show(entry.resolve())}"
        summary.append(f"to upload: the zip that `{package}` writes")
    return summary


def check_code(folder: Path, name: Path, faults: list[str]) -> list[str]:
    """Add files that are no Python and imports of the kit to the faults; return the modules."""
    modules = [ENTRY_FILE]
    for file in modules:  # The list grows.
        try:
            tree = ast.parse((folder / file).read_bytes())
        except SyntaxError as error:
            faults.append(f"{name}/{file}: row {error.lineno or 1} is not Python: {error.msg}")
            continue
        except ValueError as error:
            faults.append(f"{name}/{file}: is not Python: {error}")
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [] if node.level else [node.module or ""]
            for module in (name.split(".")[0] for name in names):
                if module in KIT_PACKAGES and not (folder / module).exists():
                    faults.append(
                        f"{name}/{file}: row {node.lineno} imports {module}, the kit's shared "
                        "code, which is not there in the challenge; expected only what is in the "
                        "zip, numpy, pandas, scikit-learn and torch"
                    )
                beside = f"{module}.py"
                if beside not in modules and (folder / beside).is_file():
                    modules.append(beside)
    return modules


if __name__ == "__main__":
    cli.run(main)
