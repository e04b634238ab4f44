"""Check a submission as the challenge's scorer would, and say everything that is wrong with it.

    python -m common.check_submission submissions/submission_task_1.zip
    python -m common.check_submission my_answers.csv --task 2

FILE is the CSV or zip of task 1, 2 or 3, or the zip or folder of task 4, whose ten rounds are tried
on made-up students. Every fault is one line on stderr, and the exit code is 2; where all is well, a
summary is printed. No true answers are needed.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common import cli, io, layout, schema, submission
from common.errors import InputError
from common.schema import Column

TASKS = (1, 2, 3)


def main() -> None:
    """Check the file that the command line names."""
    options = _parse()
    task = options.task or guess_task(options.file)
    faults: list[str] = []
    summary: list[str] = []
    try:
        if task == 3:
            summary = check_ranking(options, faults)
        else:
            summary = check_pairs(options, task, faults)
    except InputError as error:
        faults.append(str(error))
    if faults:
        for fault in faults:
            print(f"error: {' '.join(fault.split())}", file=sys.stderr)
        sys.exit(2)
    print(f"{cli.show(options.file)}: valid for task {task}")
    for line in summary:
        print(line)


def _parse() -> argparse.Namespace:
    p = cli.parser(__doc__)
    p.prog = "python -m common.check_submission"
    p.add_argument("file", type=Path, metavar="FILE", help="the submission")
    p.add_argument("--task", type=int, choices=TASKS, help="default: as the file's name says")
    cli.add_template_flags(p, "that of the task")
    p.add_argument("--input_dir", type=Path, metavar="DIR", help="default data/train_data")
    p.add_argument(
        "--train_data", metavar="FILE", help="answers to compare with (default those of the task)"
    )
    return p.parse_args()


def guess_task(path: Path) -> int:
    """Tell the task from the name of a submission.

    Raises
    ------
    InputError
        If the name does not say it.
    """
    match = re.search(r"task_([123])(?!\d|_\d)", path.name)
    if match is None:
        raise InputError(
            f"{path}: the name does not tell the task, expected it with --task "
            f"{', '.join(map(str, TASKS))}"
        )
    return int(match[1])


def is_local(path: Path) -> bool:
    """Tell whether a submission is for the local split, by its name."""
    return path.stem in {Path(layout.local_submission_name(task)).stem for task in (1, 2)}


def check_pairs(options: argparse.Namespace, task: int, faults: list[str]) -> list[str]:
    """Check a submission of task 1 or 2.

    Parameters
    ----------
    options
        The command line.
    task
        1 or 2.
    faults
        What is wrong is appended to it.

    Returns
    -------
    list of str
        Lines that sum up a valid submission.

    Raises
    ------
    InputError
        For a fault after which nothing more can be checked.
    """
    local = is_local(options.file)
    name = layout.LOCAL_TEMPLATE_TASK_1_2 if local else layout.TEMPLATE_TASK_1_2
    folder = layout.TEST_INPUT_DIR if local else layout.TEMPLATE_DIR
    template = submission.read_template(cli.template_path(options, folder, name))
    column = schema.PREDICTED_COLUMN[task]
    source = submission.submission_source(options.file, layout.submission_name(task), faults.append)
    predictions = submission.read_pair_values(source, column, faults.append)
    _, extra = submission.find_pairs(predictions, template, faults.append)
    submission.require_no_extra(predictions, extra, template.name, faults.append)
    if faults:
        return []
    train = (options.input_dir or (layout.TEST_INPUT_DIR if local else layout.TRAIN_DIR)) / (
        options.train_data or layout.TRAIN_TASK_1_2
    )
    return [
        f"{len(predictions.value):,} rows: every pair of {cli.show(Path(template.name))} once",
        *compare_shares(predictions.value, column, train),
        *how_to_upload(options.file, task),
    ]


def compare_shares(values: io.IntArray, column: Column, train: Path) -> list[str]:
    """Give the share of each value predicted beside that of the training answers, as lines.

    Parameters
    ----------
    values
        What is predicted.
    column
        Its column, which the training file has too.
    train
        The training file, which may be missing.
    """
    names = {0: "wrong", 1: "right"} if column == schema.IS_CORRECT else {}
    given = io.read_columns(train, [column])[column.name] if train.is_file() else None
    lines = [f"{column.name:14}predicted   " + ("" if given is None else cli.show(train))]
    for value in range(column.low, column.high + 1):
        label = f"{value} {names.get(value, '')}"
        line = f"{label:14}{np.mean(values == value):9.1%}"
        lines.append(line if given is None else f"{line}   {np.mean(given == value):.1%}")
    return lines


def check_ranking(options: argparse.Namespace, faults: list[str]) -> list[str]:
    """Check a submission of task 3, as `check_pairs`."""
    path = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    expected = submission.read_ranking_template(path)
    source = submission.submission_source(options.file, layout.submission_name(3), faults.append)
    question, ranking = submission.read_ranking(source, expected, faults.append)
    if faults:
        return []
    best = question[np.argsort(ranking)]
    return [
        f"{len(question):,} rows: every question of {cli.show(path)} once, ranks 1 to "
        f"{len(question)}",
        f"best  QuestionId {_list(best[:5])}",
        f"worst QuestionId {_list(best[-5:])}",
        *how_to_upload(options.file, 3),
    ]


def _list(values: Sequence[int] | io.IntArray) -> str:
    return ", ".join(map(str, values))


def how_to_upload(path: Path, task: int) -> list[str]:
    """Say what to upload if this is a CSV: the challenge takes a zip."""
    if path.suffix.lower() == ".zip" or is_local(path):
        return []
    zipped = path.with_suffix(".zip")
    if zipped.is_file():
        return [f"to upload: {cli.show(zipped)}"]
    return [f"to upload: a zip that holds it as {layout.submission_name(task)}"]


if __name__ == "__main__":
    cli.run(main)
