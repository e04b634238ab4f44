"""Measure what item response offers after a fit: new students, further answers, mastery.

Run:     KIT_REAL_DATA=… python tests/benchmarks/item_response_after_fit.py
Writes:  tables to the terminal

The answers are real answers of the students of tasks 3 and 4. A fifth of the students are held out
of the fit, as new students. Some of their answers are then given, and their other answers are
predicted. For mastery, a fifth of all answers is held out. Times are processor times.
"""

import time
from copy import copy
from dataclasses import dataclass
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
# Bounds of the intervals of expected shares. `print_calibration` prints a row for each interval.
SHARE_BOUNDS = [0, 0.3, 0.5, 0.7, 0.85, 1]


def columns(rows: pd.DataFrame) -> tuple[Any, Any, Any]:
    """Return the first three arguments of `ItemResponse.fit`."""
    return rows["UserId"], rows["QuestionId"], rows["IsCorrect"]


def log_loss(model: ItemResponse, rows: pd.DataFrame) -> float:
    """Return the mean log loss of a model's predictions of answers."""
    # The columns are P(wrong) and P(right). Take the probability of the true outcome of each row.
    p = model.predict_proba(rows["UserId"], rows["QuestionId"])
    p_outcome = p[np.arange(len(rows)), rows["IsCorrect"]]
    return float(-np.log(p_outcome).mean())


def measure_new_students(answers: pd.DataFrame) -> None:
    """Compare three ways to predict new students from their first answers: log loss and time.

    The three ways are a new fit that includes the new students, a call of `for_students`, and a
    call of `partial_fit`. A line below the table says how long `ability_of` takes for one student.
    """
    rng = np.random.default_rng(0)
    students = rng.permutation(answers["UserId"].unique())
    n_new = len(students) // 5
    is_new = answers["UserId"].isin(students[:n_new])
    train = answers[~is_new]
    fitted = ItemResponse().fit(*columns(train))
    shuffled = answers[is_new].sample(frac=1, random_state=0)
    # Number the answers of each new student from 0, in random order. The answers with low numbers
    # are known; the answers whose numbers are at least the largest of N_KNOWN are predicted.
    number = shuffled.groupby("UserId").cumcount()
    hidden = shuffled[number >= max(N_KNOWN)]
    print(f"{is_new.sum():,} answers of new students, {len(hidden):,} predicted")
    print(
        "| known answers | new fit | for_students | partial_fit | seconds: new fit | for_students |"
    )
    print("|---|---|---|---|---|---|")
    for n_known in N_KNOWN:
        known = shuffled[number < n_known]
        print(f"| {n_known} | {compare_ways(fitted, train, known, hidden)} |")
    ten_answers = shuffled[number < 10]
    print_time_of_one_student(fitted, ten_answers)


def compare_ways(
    fitted: ItemResponse, train: pd.DataFrame, known: pd.DataFrame, hidden: pd.DataFrame
) -> str:
    """Return the log loss of three ways to predict new students' answers, as cells of a table row.

    The three ways are a new fit, `for_students` and `partial_fit`. Two more cells hold the seconds
    that the first and the second way take. `fitted` has learned from the answers `train` of other
    students. Each way learns from `known` and predicts `hidden`, both answers of the new students.
    """
    begin = time.process_time()
    refitted = ItemResponse().fit(*columns(pd.concat([train, known])))
    seconds_of_new_fit = time.process_time() - begin
    begin = time.process_time()
    extended = fitted.for_students(*columns(known))
    seconds_of_for_students = time.process_time() - begin
    # `partial_fit` changes its model, so give it a copy.
    updated = copy(fitted).partial_fit(*columns(known))
    losses = [f"{log_loss(model, hidden):.4f}" for model in (refitted, extended, updated)]
    return f"{' | '.join(losses)} | {seconds_of_new_fit:.2f} | {seconds_of_for_students:.3f}"


def print_time_of_one_student(fitted: ItemResponse, known: pd.DataFrame) -> None:
    """Print how long `ability_of` takes for one student, the median over several students.

    `known` holds ten answers of each student.
    """
    times = []
    for _, own in list(known.groupby("UserId"))[:N_STUDENTS_TIMED]:
        _, question, is_correct = columns(own)
        begin = time.process_time()
        fitted.ability_of(question, is_correct)
        times.append(time.process_time() - begin)
    print(f"one student with ten answers: median {1000 * np.median(times):.2f} ms")


@dataclass(frozen=True)
class MasteryAnswers:
    """Answers that mastery is learned from, and held-out answers that measure it.

    A path holds the subject of a question on each level of the tree of subjects; an array of paths
    has a row for each answer or question and a column for each level.
    """

    train: pd.DataFrame
    train_path: IntArray
    held_out: pd.DataFrame
    held_out_path: IntArray


def measure_mastery(answers: pd.DataFrame) -> None:
    """Measure `mastery`, a student's expected share of right answers in a subject.

    The first table asks whether the shares are calibrated: where a share of 0.6 is expected, about
    0.6 of the held-out answers should be right. The second table compares models that have
    different contexts. A context is a group of questions, such as a subject, in which a student can
    be better than in others.
    """
    folder = real_data_dir() / "eedi_tasks_3_4" / "metadata"
    question_ids = np.unique(answers["QuestionId"])
    # A row for each of `question_ids`: its subject on each level of the tree of subjects.
    path_by_question = read_subjects(folder, "3/4", question_ids).path
    is_held_out = np.random.default_rng(0).random(len(answers)) < 0.2
    train = answers[~is_held_out]
    held_out = answers[is_held_out]
    data = MasteryAnswers(
        train=train,
        train_path=path_by_question[find_ids(question_ids, train["QuestionId"])],
        held_out=held_out,
        held_out_path=path_by_question[find_ids(question_ids, held_out["QuestionId"])],
    )
    # The contexts of an answer are the subjects of its question, one on each level.
    model = ItemResponse().fit(*columns(train), context=data.train_path)
    # `mastery` expects a row of subjects for each question of `model.question_ids_`, in this order.
    question_path = path_by_question[find_ids(question_ids, model.question_ids_)]
    begin = time.process_time()
    mastery = model.mastery(question_path)
    print(f"mastery: {len(mastery):,} rows in {time.process_time() - begin:.1f} s")
    print_calibration(mastery, data)
    print_log_loss_by_contexts(mastery, data, question_path)


def print_calibration(mastery: pd.DataFrame, data: MasteryAnswers) -> None:
    """Compare the share of held-out answers that are right with the share that is expected.

    `mastery` is the table of `ItemResponse.mastery`. It holds the share of a subject's questions
    that each student is expected to answer correctly. A row of the printed table is about subjects
    of one level, and about the answers whose expected share lies in one interval.
    """
    print("| level | share expected | held-out answers | right | expected |")
    print("|---|---|---|---|---|")
    for level in range(data.held_out_path.shape[1]):
        rows = match_shares(mastery, data.held_out, data.held_out_path, level)
        intervals = pd.cut(rows["share"], SHARE_BOUNDS)
        for interval, group in rows.groupby(intervals, observed=True):
            print(
                f"| {level + 1} | {interval} | {len(group):,} | {group['IsCorrect'].mean():.3f} "
                f"| {group['share'].mean():.3f} |"
            )


def print_log_loss_by_contexts(
    by_subjects: pd.DataFrame, data: MasteryAnswers, question_path: IntArray
) -> None:
    """Print the log loss of held-out answers, predicted by the student's mastery of a subject.

    Mastery is the share of the subject's questions that the student is expected to answer
    correctly. It serves as P(right) of each held-out answer in the subject.

    Three models are compared. The first is fitted with subjects as contexts (groups of questions in
    which a student may be better or worse than elsewhere); `by_subjects` is its mastery. The second
    is fitted without contexts, and the third with clusters of questions as contexts. To get mastery
    of subjects from these two, `with_subjects` adds subjects after the fit. `question_path` has a
    row for each question, with the question's subject on each level of the tree of subjects.
    """
    train = data.train
    clustered_ids, cluster = cluster_questions(
        train["UserId"].to_numpy(), train["QuestionId"].to_numpy()
    )
    cluster_by_answer = cluster[find_ids(clustered_ids, train["QuestionId"])]
    mastery_by_contexts = {"subjects": by_subjects}
    for name, context in (("none", None), ("clusters of questions", cluster_by_answer)):
        model = ItemResponse().fit(*columns(train), context=context)
        model_with_subjects = model.with_subjects(train["UserId"], data.train_path)
        mastery_by_contexts[name] = model_with_subjects.mastery(question_path)
    print("| contexts of the fit | level 1 | level 2 | level 3 |\n|---|---|---|---|")
    for name, mastery in mastery_by_contexts.items():
        losses = []
        for level in range(question_path.shape[1]):
            rows = match_shares(mastery, data.held_out, data.held_out_path, level)
            p_outcome = np.where(rows["IsCorrect"] == 1, rows["share"], 1 - rows["share"])
            losses.append(f"{-np.log(p_outcome).mean():.4f}")
        print(f"| {name} | {' | '.join(losses)} |")


def match_shares(
    mastery: pd.DataFrame, answers: pd.DataFrame, subjects: IntArray, level: int
) -> pd.DataFrame:
    """Return the answers with a column `share`: the student's mastery of the subject.

    The subject is the one that the answer's question has on the given level. Mastery is the share
    of the subject's questions that the student is expected to answer correctly; `mastery` is the
    table of `ItemResponse.mastery`. `subjects` has a row for each answer and a column for each
    level. Answers of students without a share are left out.
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
