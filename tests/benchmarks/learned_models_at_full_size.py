"""Accuracy, time and memory of the learned models at full size, beside cmfrec, and how they grow.

    python data/generate_sample.py --size full
    python tests/benchmarks/learned_models_at_full_size.py --peer_python PEER/bin/python
    … --growth growth.svg      time from 1 % to 100 % of the students instead, as table and plot

PEER is an environment with cmfrec (see peer_cmfrec.py). Every run is a process of its own that is
given arrays and fits and predicts on two threads; runs of all alternate, so that a busy machine
slows all, and the medians are told. Processor seconds suffer less from a busy machine.
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

import numpy as np

from common import cli, io, layout, schema
from common.answers import Answers, read_answers
from common.models.matrix_factorization import MatrixFactorization
from common.models.partial_vae import PartialVAE

# The best of cmfrec for this simulation: k and lambda_ were searched on the scored answers, which
# favours it.
PEER_SETTINGS: dict[str, Any] = {"k": 5, "lambda_": 10}
MODELS = {"matrix factorisation": MatrixFactorization, "partial VAE": PartialVAE}
TASKS = {"task 1": "is_correct", "task 2": "option"}
PERCENTS = (1, 3, 10, 30, 100)
COLUMNS = ("student", "question", "is_correct", "option", "correct_option")


def save_arrays(data_dir: Path, path: Path) -> int:
    """Put training and test answers of tasks 1 and 2 into one file of arrays."""
    train = read_answers(data_dir / "train_data" / layout.TRAIN_TASK_1_2, options=True)
    arrays = {name: getattr(train, name) for name in COLUMNS}
    keys = [schema.USER_ID, schema.QUESTION_ID]
    for task, column in schema.PREDICTED_COLUMN.items():
        file = data_dir / "test_data" / layout.test_answers_name(task, "public")
        test = io.read_columns(file, [*keys, column])
        arrays["test_student"], arrays["test_question"] = test["UserId"], test["QuestionId"]
        arrays["test_is_correct" if task == 1 else "test_option"] = test[column.name]
    np.savez(path, **arrays)
    return len(train)


def measure(path: Path, model_name: str, predicts: Any, percent: int) -> dict[str, float]:
    """Fit and predict in this process, on the answers of so many per cent of the students."""
    import resource

    arrays = dict(np.load(path))
    train, test = arrays["student"] % 100 < percent, arrays["test_student"] % 100 < percent
    answers = Answers(**{name: arrays[name] for name in COLUMNS})
    if percent < 100:
        answers = answers.take(train)
        arrays = {name: a[test] for name, a in arrays.items() if name.startswith("test")}
    wall, processor = time.perf_counter(), time.process_time()
    model = MODELS[model_name](predicts).fit(answers)
    p = model.predict_proba(arrays["test_student"], arrays["test_question"])
    result = {
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
    }
    prediction = p > 0.5 if p.ndim == 1 else p.argmax(axis=1) + 1
    result["accuracy"] = float(np.mean(prediction == arrays[f"test_{predicts}"]))
    result["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {**result, "answers": len(answers), "passes": len(model.history)}


def run(command: list[object]) -> dict[str, float]:
    """Run a process that prints JSON."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(f"  {command[-2]} {command[-1]}: {result}", file=sys.stderr, flush=True)
    return result


def ours(path: Path, model_name: str, task: str, percent: int = 100) -> dict[str, float]:
    """Measure one run of a model of the kit in a process of its own."""
    flags = ["--arrays", path, "--percent", percent, "--run", model_name, TASKS[task]]
    return run([sys.executable, __file__, *flags])


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """Give the median of every figure."""
    return {name: float(np.median([one[name] for one in runs])) for name in runs[0]}


def print_table(rows: dict[str, dict[str, float]]) -> None:
    """Print as a table in Markdown, ratios relative to the first row."""
    first = next(iter(rows.values()))
    print("| what | accuracy | wall | ratio | processor | ratio | peak memory |")
    print("|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        print(
            f"| {name} | {row['accuracy']:.4f} | {row['seconds']:.1f} s "
            f"| {row['seconds'] / first['seconds']:.2f} | {row['processor_seconds']:.1f} s "
            f"| {row['processor_seconds'] / first['processor_seconds']:.2f} "
            f"| {row['peak_gb']:.1f} GB |"
        )


def compare(path: Path, peer_python: Path, repeats: int) -> None:
    """Compare the models with cmfrec, and task 2 with task 1."""
    peer = Path(__file__).with_name("peer_cmfrec.py")
    runs: dict[str, list[dict[str, float]]] = {"cmfrec, task 1": []}
    for _ in range(repeats):
        found = run([peer_python, peer, path, json.dumps(PEER_SETTINGS)])
        runs["cmfrec, task 1"].append(found)
        for name, task in itertools.product(MODELS, TASKS):
            runs.setdefault(f"{name}, {task}", []).append(ours(path, name, task))
    print_table({name: medians(some) for name, some in runs.items()})


def grow(path: Path, plot: Path, repeats: int) -> None:
    """Measure growing shares of the students; print a table and plot it."""
    import matplotlib.pyplot as plt

    figures = {
        f"{name}, {task}": [
            medians([ours(path, name, task, percent) for _ in range(repeats)])
            for percent in PERCENTS
        ]
        for name, task in itertools.product(MODELS, TASKS)
    }
    print("| what | answers | wall | processor | processor per million answers | passes |")
    print("|---|---|---|---|---|---|")
    _, axes = plt.subplots()
    for what, rows in figures.items():
        for row in rows:
            print(
                f"| {what} | {row['answers']:,.0f} | {row['seconds']:.2f} s "
                f"| {row['processor_seconds']:.2f} s "
                f"| {row['processor_seconds'] / row['answers'] * 1e6:.2f} s | {row['passes']:.0f} |"
            )
        answers = [row["answers"] for row in rows]
        axes.plot(answers, [row["processor_seconds"] for row in rows], "o-", label=what)
    axes.set(
        xscale="log", yscale="log", xlabel="answers", ylabel="processor seconds, fit + predict"
    )
    axes.legend()
    plt.savefig(plot)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data_dir", type=Path, default=layout.DATA_DIR)
    parser.add_argument("--peer_python", type=Path, help="Python of the environment with cmfrec")
    parser.add_argument("--growth", type=Path, metavar="PLOT", help="measure growth instead")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--arrays", type=Path, help="arrays saved by an earlier run")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--percent", type=int, default=100, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        name, predicts = options.run
        print(json.dumps(measure(options.arrays, name, predicts, options.percent)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = options.arrays or Path(folder) / "arrays.npz"
        if not path.exists():
            print(f"{save_arrays(options.data_dir, path):,} answers", file=sys.stderr)
        if options.growth:
            grow(path, options.growth, options.repeats)
        else:
            compare(path, options.peer_python, options.repeats)


if __name__ == "__main__":
    cli.run(main)
