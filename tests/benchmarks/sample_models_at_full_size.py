"""Measure accuracy, time and memory of the sample models of tasks 1 and 2 at official size.

Run:     python data/generate_sample.py --size full --output_dir FULL
         python tests/benchmarks/sample_models_at_full_size.py --data_dir FULL
         … --scripts task_1/sample_model_partial_vae.py --repeats 3
         … --percents 1 3 10 30 100     how the time grows with the number of students
Writes:  a table to the terminal

Every script runs as a user runs it, from CSV to zip, on two threads, and is scored on the answers
of the public phase. Runs of all scripts alternate, so that a busy machine slows all of them down,
and medians are printed. The benchmark runs on Linux and macOS only.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import cli, layout, reading, writing
from common.answers import read_answers
from common.submission import find_pairs, read_pair_values
from common.tasks import TASKS

import numpy as np
import pandas as pd
from running import Cost, median_cost, metadata_flags, run_script, short_name

PHASE = "public"


def main() -> None:
    """Run every script on every share of the students; print the table."""
    p = cli.parser(__doc__)
    p.add_argument("--data_dir", type=Path, required=True, help="where the full data lie")
    p.add_argument("--scripts", nargs="+", type=Path, metavar="FILE", help="default: all samples")
    p.add_argument("--repeats", type=int, default=1, metavar="N")
    p.add_argument("--percents", type=int, nargs="+", default=[100], metavar="P")
    options = p.parse_args()
    scripts = options.scripts or sorted(layout.ROOT.glob("task_[12]/sample_model_*.py"))
    os.environ["OMP_NUM_THREADS"] = "2"
    print(
        "| model | answers | accuracy | wall | processor | peak memory |\n|---|---|---|---|---|---|"
    )
    for percent in options.percents:
        with tempfile.TemporaryDirectory() as folder:
            train, n_answers = take_share(options.data_dir, percent, Path(folder))
            # For each script: the accuracy and the cost of each run.
            runs: dict[Path, list[tuple[float, Cost]]] = {script: [] for script in scripts}
            for _ in range(options.repeats):
                for script, results in runs.items():
                    results.append(measure(script, train, options.data_dir, percent=percent))
        for script, results in runs.items():
            print_row(script, n_answers, results)


def is_kept(student: "pd.Series[int]", percent: int) -> "pd.Series[bool]":
    """Return whether each student is kept: the last two digits of the id are below `percent`."""
    return student % 100 < percent


def take_share(data_dir: Path, percent: int, folder: Path) -> tuple[Path, int]:
    """Return a file with the training answers of some students, and the number of these answers.

    `percent` is the share of the students. If it is 100, the file is the one in `data_dir`.
    Otherwise the function writes a file into `folder`.
    """
    train = data_dir / layout.TRAIN_DIR.name / layout.TRAIN_TASK_1_2
    table = read_answers(train, ids=True)
    if percent < 100:
        table = table[is_kept(table["UserId"], percent)]
        train = folder / layout.TRAIN_TASK_1_2
        writing.write_files({train: table})
    return train, len(table)


def measure(
    script: Path, train: Path, data_dir: Path, *, percent: int, flags: Sequence[str] = ()
) -> tuple[float, Cost]:
    """Run a sample model; return its accuracy on the public test, and its cost.

    `train` holds the training answers of `percent` percent of the students. The accuracy counts
    only the test answers of the same students.
    """
    task = TASKS[int(script.resolve().parent.name.removeprefix("task_"))]
    metadata = metadata_flags(script, data_dir / layout.METADATA_DIR.name)
    with tempfile.TemporaryDirectory() as folder:
        command = [script, "--input_dir", train.parent, "--train_data", train.name, *metadata]
        command += ["--submission_template_dir", data_dir / layout.TEMPLATE_DIR.name]
        command += ["--output_dir", folder, *flags]
        cost = run_script(command)
        source = reading.file_source(Path(folder) / task.submission)
        predictions = read_pair_values(source, task.column)
    answer_file = data_dir / layout.TEST_DIR.name / task.answers_name(PHASE)
    truth = read_pair_values(reading.file_source(answer_file), task.column)
    # Match the predictions with the true answers, as the evaluation does: find the row of the
    # prediction for each true answer.
    prediction_rows, _ = find_pairs(source.name, predictions, truth, answer_file)
    predicted = predictions[task.column.name].to_numpy()[prediction_rows]
    is_right = predicted == truth[task.column.name]
    is_counted = is_kept(truth["UserId"], percent)
    return float(is_right[is_counted].mean()), cost


def print_row(script: Path, n_answers: int, results: list[tuple[float, Cost]]) -> None:
    """Print a row of the table: the medians of several runs of a script."""
    accuracy = np.median([accuracy for accuracy, _ in results])
    cost = median_cost([cost for _, cost in results])
    name = f"{script.resolve().parent.name}, {short_name(script)}"
    print(
        f"| {name} | {n_answers:,} | {accuracy:.4f} | {cost.seconds:.0f} s "
        f"| {cost.processor_seconds:.0f} s | {cost.peak_gb:.1f} GB |",
        flush=True,
    )


if __name__ == "__main__":
    cli.run(main)
