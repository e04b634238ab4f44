"""Compare item response theory with cmfrec at full size: accuracy, time and memory.

    python data/generate_sample.py --size full --output_dir FOLDER
    python tests/benchmarks/item_response_against_cmfrec.py PEER/bin/python --data_dir FOLDER

PEER is an environment with cmfrec, a fast matrix factorisation (see peer_cmfrec.py). Every run is a
process of its own that reads arrays, fits and predicts on two threads. The time does not include
the reading; the peak memory does.
Runs alternate, so that a busy machine slows all of them down, and medians are printed. Processor
seconds depend less on other work than wall seconds.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import cli, layout, reading, schema
from common.answers import read_answers
from common.item_response import ItemResponse, ItemResponseOptions
from common.tasks import TASK_1, TASK_2

import numpy as np

# The best settings of cmfrec for this simulation. They were chosen with the same answers that are
# scored, which favours cmfrec.
PEER_SETTINGS = {"k": 5, "lambda_": 10}
COLUMNS = {
    "student": "UserId",
    "question": "QuestionId",
    "is_correct": "IsCorrect",
    "option": "AnswerValue",
    "correct_option": "CorrectAnswer",
}
# The name of cmfrec, the other library, in the first column of the table.
CMFREC = "cmfrec, task 1"
# The probability of guessing in the sample model of task 1.
GUESSING = 0.2


def save_arrays(data_dir: Path, path: Path) -> None:
    """Write training answers and public test answers of tasks 1 and 2 into one file of arrays."""
    train = read_answers(data_dir / "train_data" / layout.TRAIN_TASK_1_2, options=True)
    arrays = {name: train[column].to_numpy() for name, column in COLUMNS.items()}
    for task in (TASK_1, TASK_2):
        column = task.column
        file = data_dir / "test_data" / task.answers_name("public")
        test = reading.read_table(file, [schema.USER_ID, schema.QUESTION_ID, column])
        arrays["test_student"], arrays["test_question"] = test["UserId"], test["QuestionId"]
        arrays["test_is_correct" if task is TASK_1 else "test_option"] = test[column.name]
    np.savez(path, **arrays)


def measure(path: Path, task: int, n_dimensions: int) -> dict[str, float]:
    """Fit and predict with the settings of the sample model; return accuracy, time and memory.

    `path` is a file that `save_arrays` wrote. The peak memory is that of the whole process, so a
    process must call this function only once.
    """
    # The module `resource` exists on Unix only.
    import resource

    arrays = dict(np.load(path))
    student, question = arrays["student"], arrays["question"]
    test_student, test_question = arrays["test_student"], arrays["test_question"]
    wall_start = time.perf_counter()
    processor_start = time.process_time()
    if task == 1:
        model = ItemResponse(n_dimensions, guessing=GUESSING)
        model.fit(student, question, arrays["is_correct"])
        p_right = model.predict_proba(test_student, test_question)[:, 1]
        is_hit = (p_right > 0.5) == arrays["test_is_correct"]
    else:
        option_model = ItemResponseOptions(n_dimensions, guessing=0.0)
        option_model.fit(student, question, arrays["option"], arrays["correct_option"])
        p_option = option_model.predict_proba(test_student, test_question)
        # The columns of `p_option` count options from 0, the file counts them from 1.
        is_hit = p_option.argmax(axis=1) + 1 == arrays["test_option"]
    return {
        "seconds": time.perf_counter() - wall_start,
        "processor_seconds": time.process_time() - processor_start,
        "accuracy": float(np.mean(is_hit)),
        # `ru_maxrss` is in kilobytes.
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def run(*command: object) -> dict[str, float]:
    """Run a process on two threads; return the JSON object in the last line that it prints."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(result, file=sys.stderr, flush=True)
    return result


def compare(
    path: Path, peer_python: Path, repeats: int, tasks: list[int], dimensions: list[int]
) -> None:
    """Run cmfrec and the kit's models in turn, each `repeats` times; print a table of medians.

    `path` is a file that `save_arrays` wrote. Every run is a process of its own.
    """
    commands = list_commands(path, peer_python, tasks, dimensions)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            runs[name].append(run(*command))
    print_medians(runs)


def list_commands(
    path: Path, peer_python: Path, tasks: list[int], dimensions: list[int]
) -> dict[str, list[Any]]:
    """Return the command that runs cmfrec, and a command for each of the kit's models.

    For the kit's models, this script calls itself with the hidden flag --measure.
    """
    peer = Path(__file__).with_name("peer_cmfrec.py")
    commands: dict[str, list[Any]] = {CMFREC: [peer_python, peer, path, json.dumps(PEER_SETTINGS)]}
    for task, n_dimensions in itertools.product(tasks, dimensions):
        name = f"item response, task {task}, {n_dimensions} abilities"
        flags = ["--arrays", path, "--measure", task, n_dimensions]
        # The command line requires `peer_python`, although --measure does not use it.
        commands[name] = [sys.executable, __file__, peer_python, *flags]
    return commands


def print_medians(runs: dict[str, list[dict[str, float]]]) -> None:
    """Print the medians of each model's runs, and the ratios of its times to those of cmfrec."""
    print("| what | accuracy | wall | ratio | processor | ratio | peak memory |")
    print("|---|---|---|---|---|---|---|")
    cmfrec = medians_of(runs[CMFREC])
    for name, results in runs.items():
        medians = medians_of(results)
        wall = medians["seconds"]
        wall_ratio = wall / cmfrec["seconds"]
        processor = medians["processor_seconds"]
        processor_ratio = processor / cmfrec["processor_seconds"]
        print(
            f"| {name} | {medians['accuracy']:.4f} | {wall:.1f} s | {wall_ratio:.2f} "
            f"| {processor:.1f} s | {processor_ratio:.2f} | {medians['peak_gb']:.1f} GB |"
        )


def medians_of(results: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure over several runs."""
    return {key: float(np.median([result[key] for result in results])) for key in results[0]}


def main() -> None:
    """Compare the models; with --measure, only fit and measure one model.

    `compare` runs this script with --measure once for each fit. The argument PEER/bin/python is the
    Python of an environment with cmfrec, a library for matrix factorisation.
    """
    parser = cli.parser(__doc__)
    parser.add_argument("peer_python", type=Path, metavar="PEER/bin/python")
    parser.add_argument("--data_dir", type=Path, default=layout.DATA_DIR, help="default data")
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    parser.add_argument("--tasks", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    parser.add_argument(
        "--dimensions", type=int, nargs="+", default=[8, 4], metavar="K", help="default 8 4"
    )
    parser.add_argument("--arrays", type=Path, metavar="FILE", help="keep the arrays in FILE")
    # Two numbers: a task and a number of abilities.
    parser.add_argument("--measure", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        task, n_dimensions = options.measure
        print(json.dumps(measure(options.arrays, task, n_dimensions)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = options.arrays or Path(folder) / "arrays.npz"
        if not path.exists():
            save_arrays(options.data_dir, path)
        compare(path, options.peer_python, options.repeats, options.tasks, options.dimensions)


if __name__ == "__main__":
    cli.run(main)
