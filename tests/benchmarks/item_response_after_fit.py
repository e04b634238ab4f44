"""Measure what item response offers after a fit: new students, further answers, mastery.

Run:     KIT_REAL_DATA=… python tests/benchmarks/item_response_after_fit.py
Writes:  tables to the terminal

The answers are the real ones of the students of tasks 3 and 4. New students are a fifth of the
students, held out of the fit; some of their answers are then given, and their other answers are
predicted. For mastery, a fifth of all answers is held out.
"""

import time
from collections.abc import Callable
from copy import copy
from typing import Any

from common import cli
from common.answers import find_ids, read_students
from common.item_response import ItemResponse
from tools.mastery import read_subjects

import numpy as np
import pandas as pd
from real_answers import real_data_dir

N_KNOWN = (1, 5, 10, 20, 50)
N_STUDENTS_TIMED = 50


def columns(rows: pd.DataFrame) -> tuple[Any, Any, Any]:
    """Return the first three arguments of `ItemResponse.fit`."""
    return rows["UserId"], rows["QuestionId"], rows["IsCorrect"]


def log_loss(model: ItemResponse, rows: pd.DataFrame) -> float:
    """Return the mean log loss of predictions."""
    p = model.predict_proba(rows["UserId"], rows["QuestionId"])
    return float(-np.log(p[np.arange(len(rows)), rows["IsCorrect"]]).mean())


def seconds(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def measure_new_students(answers: pd.DataFrame) -> None:
    """Print the log loss of new students by three ways, and how long each takes."""
    rng = np.random.default_rng(0)
    students = rng.permutation(answers["UserId"].unique())
    is_new = answers["UserId"].isin(students[: len(students) // 5])
    fitted = ItemResponse().fit(*columns(answers[~is_new]))
    new = answers[is_new].sample(frac=1, random_state=0)
    order = new.groupby("UserId").cumcount()
    hidden = new[order >= max(N_KNOWN)]
    print(f"{is_new.sum():,} answers of new students, {len(hidden):,} predicted")
    print(
        "| known answers | new fit | for_students | partial_fit | seconds: new fit | for_students |"
    )
    print("|---|---|---|---|---|---|")
    for n in N_KNOWN:
        known = new[order < n]
        begin = time.perf_counter()
        refitted = ItemResponse().fit(*columns(pd.concat([answers[~is_new], known])))
        of_new_fit = time.perf_counter() - begin
        begin = time.perf_counter()
        extended = fitted.for_students(*columns(known))
        of_extended = time.perf_counter() - begin
        updated = copy(fitted).partial_fit(*columns(known))
        losses = [log_loss(model, hidden) for model in (refitted, extended, updated)]
        print(
            f"| {n} | {' | '.join(f'{loss:.4f}' for loss in losses)} "
            f"| {of_new_fit:.2f} | {of_extended:.3f} |"
        )
    known = new[order < 10]
    times = []
    for _, own in list(known.groupby("UserId"))[:N_STUDENTS_TIMED]:
        times.append(seconds(lambda own=own: fitted.ability_of(*columns(own)[1:])))  # type: ignore[misc]
    print(f"one student with ten answers: median {1000 * np.median(times):.1f} ms")


def measure_mastery(answers: pd.DataFrame) -> None:
    """Print how many held-out answers are right where a share is expected."""
    folder = real_data_dir() / "eedi_tasks_3_4" / "metadata"
    question_ids = np.unique(answers["QuestionId"])
    subjects = read_subjects(folder, "3/4", question_ids)
    is_held_out = np.random.default_rng(0).random(len(answers)) < 0.2
    train = answers[~is_held_out]
    path = subjects.path[find_ids(question_ids, train["QuestionId"])]
    model = ItemResponse().fit(*columns(train), context=path)
    of_question = subjects.path[find_ids(question_ids, model.question_ids_)]
    begin = time.perf_counter()
    mastery = model.mastery(of_question)
    print(f"mastery: {len(mastery):,} rows in {time.perf_counter() - begin:.1f} s")
    held_out = answers[is_held_out]
    print("| level | share expected | held-out answers | right | expected |")
    print("|---|---|---|---|---|")
    for level in range(of_question.shape[1]):
        rows = held_out.assign(
            subject=subjects.path[find_ids(question_ids, held_out["QuestionId"]), level]
        )
        at_level = mastery[mastery["level"] == level]
        rows = rows.merge(at_level, left_on=["UserId", "subject"], right_on=["student", "subject"])
        groups = rows.groupby(pd.cut(rows["share"], [0, 0.3, 0.5, 0.7, 0.85, 1]), observed=True)
        for interval, group in groups:
            print(
                f"| {level + 1} | {interval} | {len(group):,} | {group['IsCorrect'].mean():.3f} "
                f"| {group['share'].mean():.3f} |"
            )


def main() -> None:
    """Print all tables."""
    cli.parser(__doc__).parse_args()
    data = real_data_dir() / "eedi_tasks_3_4" / "train_data"
    names = ("train_task_3_4.csv", "train_task_3_4_right_wrong_only.csv")
    answers = read_students([data / name for name in names])
    measure_new_students(answers)
    measure_mastery(answers)


if __name__ == "__main__":
    cli.run(main)
