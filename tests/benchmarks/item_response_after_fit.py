"""Measure what item response offers after a fit: new students, further answers, mastery.

Run:     KIT_REAL_DATA=… python tests/benchmarks/item_response_after_fit.py
Writes:  tables to the terminal

The answers are the real ones of the students of tasks 3 and 4. New students are a fifth of the
students, held out of the fit; some of their answers are then given, and their other answers are
predicted. For mastery, a fifth of all answers is held out. Times are processor times.
"""

import time
from copy import copy
from typing import Any

from common import cli
from common.answers import find_ids, read_students
from common.arrays import IntArray
from common.item_response import ItemResponse
from common.item_response.similarity import cluster_questions
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
        begin = time.process_time()
        refitted = ItemResponse().fit(*columns(pd.concat([answers[~is_new], known])))
        of_new_fit = time.process_time() - begin
        begin = time.process_time()
        extended = fitted.for_students(*columns(known))
        of_extended = time.process_time() - begin
        updated = copy(fitted).partial_fit(*columns(known))
        losses = [log_loss(model, hidden) for model in (refitted, extended, updated)]
        print(
            f"| {n} | {' | '.join(f'{loss:.4f}' for loss in losses)} "
            f"| {of_new_fit:.2f} | {of_extended:.3f} |"
        )
    known = new[order < 10]
    times = []
    for _, own in list(known.groupby("UserId"))[:N_STUDENTS_TIMED]:
        _, question, is_correct = columns(own)
        begin = time.process_time()
        fitted.ability_of(question, is_correct)
        times.append(time.process_time() - begin)
    print(f"one student with ten answers: median {1000 * np.median(times):.2f} ms")


def measure_mastery(answers: pd.DataFrame) -> None:
    """Print how many held-out answers are right where a share is expected, by three models."""
    folder = real_data_dir() / "eedi_tasks_3_4" / "metadata"
    question_ids = np.unique(answers["QuestionId"])
    subjects = read_subjects(folder, "3/4", question_ids)
    is_held_out = np.random.default_rng(0).random(len(answers)) < 0.2
    train = answers[~is_held_out]
    path = subjects.path[find_ids(question_ids, train["QuestionId"])]
    model = ItemResponse().fit(*columns(train), context=path)
    of_question = subjects.path[find_ids(question_ids, model.question_ids_)]
    begin = time.process_time()
    mastery = model.mastery(of_question)
    print(f"mastery: {len(mastery):,} rows in {time.process_time() - begin:.1f} s")
    held_out = answers[is_held_out]
    path_of_held_out = subjects.path[find_ids(question_ids, held_out["QuestionId"])]
    print("| level | share expected | held-out answers | right | expected |")
    print("|---|---|---|---|---|")
    for level in range(of_question.shape[1]):
        rows = match_shares(mastery, held_out, path_of_held_out, level)
        groups = rows.groupby(pd.cut(rows["share"], [0, 0.3, 0.5, 0.7, 0.85, 1]), observed=True)
        for interval, group in groups:
            print(
                f"| {level + 1} | {interval} | {len(group):,} | {group['IsCorrect'].mean():.3f} "
                f"| {group['share'].mean():.3f} |"
            )

    clustered, cluster = cluster_questions(
        train["UserId"].to_numpy(), train["QuestionId"].to_numpy()
    )
    clusters = cluster[find_ids(clustered, train["QuestionId"])]
    by_model = {"subjects": mastery}
    for name, context in (("none", None), ("clusters of questions", clusters)):
        other = ItemResponse().fit(*columns(train), context=context)
        by_model[name] = other.with_subjects(train["UserId"], path).mastery(of_question)
    print("| contexts of the fit | level 1 | level 2 | level 3 |\n|---|---|---|---|")
    for name, table in by_model.items():
        losses = []
        for level in range(of_question.shape[1]):
            rows = match_shares(table, held_out, path_of_held_out, level)
            p = np.where(rows["IsCorrect"] == 1, rows["share"], 1 - rows["share"])
            losses.append(f"{-np.log(p).mean():.4f}")
        print(f"| {name} | {' | '.join(losses)} |")


def match_shares(
    mastery: pd.DataFrame, answers: pd.DataFrame, subjects: IntArray, level: int
) -> pd.DataFrame:
    """Return the answers with the share of the student in the answer's subject at a level.

    `subjects` has a row for each answer and a column for each level. Answers of students without a
    share are left out.
    """
    rows = answers.assign(subject=subjects[:, level])
    at_level = mastery[mastery["level"] == level]
    return rows.merge(at_level, left_on=["UserId", "subject"], right_on=["student", "subject"])


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
