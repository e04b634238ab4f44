"""Score models of other libraries on the same real answers as the kit's models of task 1.

Run:     KIT_REAL_DATA=… python tests/benchmarks/peers_on_real_answers.py Surprise PEER/bin/python
         … EduCDM PEER/bin/python --models EduCDM_MIRT --splits 3
         … girth PEER/bin/python --skip_pool
Writes:  rows of a table to the terminal

PEER is an environment with the library: python -m venv PEER, then PEER/bin/python -m pip install …
The script says what to install if the library is missing. The kit itself needs no such library.

Each model runs twice: with the library's defaults (without defaults, with the values of its
example), and with one setting chosen by log loss on a fifth of the training answers. The time is
the processor time of fitting and predicting, from arrays in memory. Probabilities are kept within
0.01 and 0.99, since some of the models predict numbers outside of 0 to 1.

Course subset:  trained on the training part, scored on the validation part.
Pool:           the first splits of `real_answers`, 80 % for training and 20 % for scoring.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from common import cli, layout, metrics
from common.errors import InputError
from common.metadata import read_question_subjects
from common.splits import hold_out_answers

import numpy as np
import pandas as pd
from real_answers import (
    pool_splits,
    read_course_subset,
    read_pool,
    write_course_metadata,
    write_pool_metadata,
)

PROGRAM = Path(__file__).with_name("peer_models.py")
# Probabilities are kept at least this far from 0 and 1, so that the log loss is finite.
MARGIN = 0.01
# Share of the training answers that are held out from the fits that choose a model's setting.
HELD_OUT = 0.2
HEADER = ("model", "setting", "accuracy", "AUC", "log loss", "seconds")


@dataclass(frozen=True)
class Library:
    """A library and how to install it."""

    module: str
    package: str
    # The words after `pip install`.
    install: str


@dataclass(frozen=True)
class Model:
    """A model of a library, with the setting that is chosen for it."""

    library: str
    setting: str
    # The values to choose from. The first value is the library's default. EduCDM's item response
    # models have no default number of epochs; their first value is 1, the number in EduCDM's
    # examples.
    values: tuple[float | str, ...]


LIBRARIES = {
    "cmfrec": Library("cmfrec", "cmfrec", "cmfrec pandas threadpoolctl"),
    "Surprise": Library("surprise", "scikit-surprise", "scikit-surprise pandas"),
    "LightFM": Library("lightfm", "lightfm-next", "lightfm-next"),
    "girth": Library("girth", "girth", "girth"),
    "py-irt": Library("py_irt", "py-irt", "py-irt torch==2.13.0"),
    "EduCDM": Library("EduCDM", "EduCDM", "EduCDM torch==2.13.0"),
}
# The models to score. The keys are the names by which `peer_models.py` knows the models.
MODELS = {
    "cmfrec": Model("cmfrec", "lambda_", (10, 3, 30, 100)),
    "Surprise_SVD": Model("Surprise", "reg_all", (0.02, 0.05, 0.1, 0.2)),
    "LightFM": Model("LightFM", "epochs", (1, 10, 30, 100)),
    "girth": Model("girth", "model", ("twopl_mml", "onepl_mml")),
    "py-irt": Model("py-irt", "priors", ("vague", "hierarchical")),
    "EduCDM_IRT": Model("EduCDM", "epochs", (1, 10, 30, 100)),
    "EduCDM_MIRT": Model("EduCDM", "epochs", (1, 10, 30, 100)),
    "EduCDM_NCDM": Model("EduCDM", "epochs", (10, 1, 3)),
    "EduCDM_KaNCD": Model("EduCDM", "epochs", (15, 3)),
}


@dataclass(frozen=True)
class Task:
    """Answers to learn from and to be scored on, with the subjects of their questions."""

    train: pd.DataFrame
    test: pd.DataFrame
    write_metadata: Callable[[Path], None]


@dataclass(frozen=True)
class Result:
    """The figures of one run."""

    accuracy: float
    auc: float
    log_loss: float
    # Processor time.
    seconds: float


def main() -> None:
    """Run every model of a library on two sets of real answers, and print a table.

    The sets are the course subset (answers of tasks 1 and 2), and splits of the pool (the answers
    of tasks 3 and 4). Each row shows the scores of one model with one setting on one set.
    """
    p = cli.parser(__doc__)
    p.add_argument("library", choices=LIBRARIES)
    p.add_argument("python", metavar="PEER/bin/python")
    p.add_argument("--models", nargs="+", choices=MODELS, metavar="MODEL", help="default: all")
    p.add_argument("--splits", type=int, default=1, help="splits of the pool; default 1")
    p.add_argument("--skip_pool", action="store_true")
    p.add_argument("--skip_course", action="store_true")
    options = p.parse_args()
    version = find_version(LIBRARIES[options.library], options.python)
    print(f"{options.library} {version}")
    print(f"| answers | {' | '.join(HEADER)} |")
    print("|---" * (1 + len(HEADER)) + "|")
    task_by_title = dict(
        list_tasks(options.splits, skip_pool=options.skip_pool, skip_course=options.skip_course)
    )
    chosen_models = options.models or MODELS
    for name, model in MODELS.items():
        if model.library != options.library or name not in chosen_models:
            continue
        for title, task in task_by_title.items():
            print_rows(title, name, task, options.python)


def list_tasks(n_splits: int, *, skip_pool: bool, skip_course: bool) -> Iterator[tuple[str, Task]]:
    """Yield the title and the answers of each set: the course subset, then splits of the pool."""
    if not skip_course:
        parts = [read_course_subset(part) for part in ("train", "valid")]
        yield "course subset", Task(*parts, write_course_metadata)
    if not skip_pool:
        for seed, train, test in islice(pool_splits(read_pool()), n_splits):
            yield f"pool, split {seed}", Task(train, test, write_pool_metadata)


def find_version(library: Library, python: str) -> str:
    """Return the version of a library that is installed for the interpreter `python`.

    Raises `InputError` if the library is missing.
    """
    # Importing the module too shows that the library can be used, not only that it is installed.
    imports = f"import importlib.metadata, {library.module}"
    print_version = f"print(importlib.metadata.version({library.package!r}))"
    code = f"{imports}; {print_version}"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError as error:
        raise InputError(f"{python}: {error.strerror}, expected a Python") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(
            f"{python}: cannot import {library.module} ({reason}); install it: "
            f"{python} -m pip install {library.install}"
        )
    return done.stdout.split()[-1]


def print_rows(title: str, name: str, task: Task, python: str) -> None:
    """Print a row for the default value of a model's setting, and a row for the chosen value.

    `title` is the title of the set of answers, `name` the name of the model. If the chosen value is
    the default, only one row is printed.
    """
    model = MODELS[name]
    # The first value of a setting is the default.
    default = model.values[0]
    chosen = choose_value(name, task, python)
    values = [default] if chosen == default else [default, chosen]
    for value in values:
        result = run(name, task, python, value)
        mark = ", chosen" if value == chosen else ", default"
        scores = [f"{score:.4f}" for score in (result.accuracy, result.auc, result.log_loss)]
        cells = [title, name, f"{model.setting} {value}{mark}", *scores, f"{result.seconds:.0f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def choose_value(name: str, task: Task, python: str) -> float | str:
    """Return the value of a model's setting that predicts held-out training answers best.

    For each value, the model is fitted to one part of the training answers, and the log loss is
    computed on the other part. The lowest log loss decides. The answers of `task.test` are not
    used.
    """
    is_held_out = hold_out_answers(len(task.train), HELD_OUT, seed=0)
    parts_of_train = Task(task.train[~is_held_out], task.train[is_held_out], task.write_metadata)
    loss_by_value = {
        value: run(name, parts_of_train, python, value).log_loss for value in MODELS[name].values
    }
    return min(loss_by_value, key=loss_by_value.__getitem__)


def run(name: str, task: Task, python: str, value: float | str) -> Result:
    """Fit the model `name` with one value of its setting, and score its predictions.

    `python` is the interpreter in which the model's library is installed.
    """
    p_right, seconds = run_program(name, task, python, value)
    # A model may return NaN for a question without training answers.
    p_right[np.isnan(p_right)] = task.train["IsCorrect"].mean()
    p_right = p_right.clip(MARGIN, 1 - MARGIN)
    is_correct = task.test["IsCorrect"].to_numpy()
    scores = metrics.score_probabilities(is_correct, np.column_stack([1 - p_right, p_right]))
    return Result(
        accuracy=float(np.mean((p_right > 0.5) == is_correct)),
        auc=scores.auc or float("nan"),
        log_loss=scores.log_loss,
        seconds=seconds,
    )


def run_program(name: str, task: Task, python: str, value: float | str) -> tuple[np.ndarray, float]:
    """Run peer_models.py; return P(right) of each answer to score, and the processor seconds."""
    setting = MODELS[name].setting
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        arrays = folder / "arrays.npz"
        output = folder / "p.npy"
        # `make_arrays` reads the subjects of the questions from the metadata.
        task.write_metadata(folder)
        np.savez(arrays, allow_pickle=False, **make_arrays(task, folder))
        command = [python, PROGRAM, name, arrays, json.dumps({setting: value}), output]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise InputError(f"{name}, {setting} {value}: failed: {reason}")
        p_right = np.load(output).astype(np.float64)
    last_line = done.stdout.splitlines()[-1]
    return p_right, json.loads(last_line)["seconds"]


def make_arrays(task: Task, metadata_dir: Path) -> dict[str, np.ndarray]:
    """Return the arrays from which peer_models.py learns and predicts, by name.

    Students and questions are numbered from 0. The array `has_subject` is 1 where a question (row)
    has a subject (column).
    """
    train_and_test = pd.concat([task.train, task.test])
    student, student_ids = pd.factorize(train_and_test["UserId"])
    question, question_ids = pd.factorize(train_and_test["QuestionId"])
    n_train = len(task.train)
    question_file = metadata_dir / layout.QUESTION_METADATA_TASK_1_2
    # A row for each subject of each question. The column "row" holds the question's number.
    subjects = read_question_subjects(question_file, question_ids.to_numpy())
    subject, subject_ids = pd.factorize(subjects["subject"])
    has_subject = np.zeros((len(question_ids), len(subject_ids)), np.float32)
    has_subject[subjects["row"], subject] = 1
    return {
        "student": student[:n_train],
        "question": question[:n_train],
        "is_correct": task.train["IsCorrect"].to_numpy(),
        "test_student": student[n_train:],
        "test_question": question[n_train:],
        "has_subject": has_subject,
        "n_students": np.array(len(student_ids)),
    }


if __name__ == "__main__":
    cli.run(main)
