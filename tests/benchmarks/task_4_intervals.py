"""Measure how often the ranges on the pages of task_4/student_report.py contain the true value.

Run:     KIT_REAL_DATA=… python tests/benchmarks/task_4_intervals.py
Writes:  a table to the terminal

A model of four folds of the training students asks the students of the fifth fold ten questions.
The answers of these students are reduced to about as many as test students have. The true abilities
are not known. So the true value is the number of hidden answers that are right.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from common import cli, layout
from common.answers import read_students

import numpy as np
from real_answers import real_data_dir
from running import load_module
from task_4_real import split_folds

N_ASKED = 10
COVERAGES = (0.5, 0.8, 0.9)


def main() -> None:
    """Print how often the predicted range contains a student's number of right answers.

    Only the answers that are hidden from the model are counted. The table shows the share of the
    students whose number lies in the range. A 50 % range should contain the number of about half of
    the students.
    """
    cli.parser(__doc__).parse_args()
    sessions = ask_held_out_students()
    print(f"{len(sessions)} students, {N_ASKED} questions")
    # How many of a student's hidden answers are right: random numbers that are drawn from the
    # model's prediction, shape (students, draws), and the true number, shape (students,).
    drawn_counts = np.array([session.hidden_counts for session in sessions])
    true_count = np.array([session.hidden_truth.sum() for session in sessions])
    print("| range of the number of hidden answers that are right | holds it for |")
    print("|---|---|")
    for coverage in COVERAGES:
        # The range leaves out equal shares of the draws at both ends.
        quantiles = [(1 - coverage) / 2, (1 + coverage) / 2]
        low, high = np.quantile(drawn_counts, quantiles, axis=1)
        contains_truth = (low <= true_count) & (true_count <= high)
        print(f"| {coverage:.0%} | {contains_truth.mean():.1%} |")
    # The standard error of each student's ability, before the first question and after each
    # question, shape (students, N_ASKED + 1).
    errors = np.array([session.steps["error"] for session in sessions])
    print("standard error of the ability, mean over the students:")
    print(", ".join(f"{n}: {error:.2f}" for n, error in enumerate(errors.mean(axis=0))))


def ask_held_out_students() -> list[Any]:
    """Fit a model to four folds; let it ask N_ASKED questions of each student of the fifth fold.

    Returns a `Session` of task_4/ability.py for each student: what the model knows after each
    question (`steps`), and the model's prediction of the hidden answers. The model never sees the
    hidden answers.
    """
    package = layout.ROOT / "task_4" / "item_response"
    ability = load_module(layout.ROOT / "task_4" / "ability.py")
    train = load_module(package / "train_model.py")
    data = real_data_dir() / "eedi_tasks_3_4" / "train_data"
    files = [data / "train_task_3_4.csv", data / "train_task_3_4_right_wrong_only.csv"]
    answers = read_students(files)
    first_fold = split_folds(answers, few_answers=False)[0]
    train_answers, reference = first_fold
    n_questions = reference.is_correct.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        train.fit(train_answers, n_questions).save(Path(folder))
        # `load_bank` expects the code of the model beside its weights.
        shutil.copy(package / "model.py", folder)
        bank = ability.load_bank(Path(folder))
    # Each mask is a random choice of the answers to hide. One mask is enough: take the first.
    mask = next(iter(reference.targets))
    all_students = range(len(reference.student))
    session_by_student = ability.ask(bank, reference, mask, all_students, N_ASKED)
    return list(session_by_student.values())


if __name__ == "__main__":
    cli.run(main)
