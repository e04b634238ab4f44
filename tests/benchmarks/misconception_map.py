"""Measure the map of misconceptions on real and on simulated answers; `misconceptions.md` shows it.

Some students find groups, and others choose how alike options must be. Half the answers of the
remaining students are held out. The option of a held-out wrong answer is predicted by the item
response model of options, with and without the student's other choices in the same group.

Run:     KIT_REAL_DATA=FOLDER python tests/benchmarks/misconception_map.py real
         python tests/benchmarks/misconception_map.py simulated
"""

from dataclasses import dataclass
from typing import Any

from common import cli, layout
from common.answer_context import number_contexts
from common.answers import number_ids
from common.arrays import BoolArray, IntArray
from common.item_response import DEFAULT_DIMENSIONS, ItemResponseOptions

import numpy as np
import pandas as pd
import real_answers
from running import load_module
from sklearn.metrics import adjusted_rand_score

generate_sample: Any = load_module(layout.ROOT / "data/generate_sample.py")
misconceptions: Any = load_module(layout.ROOT / "task_2/misconceptions.py")
groups = misconceptions.groups
N_OPTIONS = misconceptions.N_OPTIONS

SEEDS = range(3)
# Shares of the students who find groups and who choose among them; the others measure.
SHARE_FINDING = 0.5
SHARE_CHOOSING = 0.2
N_PLANTED = 60
# Shares of the students of the official size of tasks 3/4.
SHARES = (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class NumberedAnswers:
    """Answers with students and questions numbered from 0; each array has the shape (n,)."""

    student: IntArray
    question: IntArray
    option: IntArray
    correct: IntArray
    # The context of each answer, shape (n, levels).
    context: IntArray
    is_held_out: BoolArray


@dataclass(frozen=True)
class Measured:
    """The results of a run."""

    # The group of each item.
    group: IntArray
    # Mean log loss of the held-out wrong answers without groups, and by how much groups lower it.
    loss: float
    # A `Ratio` of task_2/misconception_groups.py.
    gain: Any


def measure(answers: pd.DataFrame, seed: int) -> Measured:
    """Find groups with some students, and measure them on held-out answers of others."""
    rng = np.random.default_rng(seed)
    student_id, student = number_ids(answers["UserId"])
    question = number_ids(answers["QuestionId"])[1]
    draw = rng.random(len(student_id))
    is_finding = draw < SHARE_FINDING
    is_choosing = ~is_finding & (draw < SHARE_FINDING + SHARE_CHOOSING)
    is_measuring = ~is_finding & ~is_choosing
    numbered = NumberedAnswers(
        student,
        question,
        option=answers["AnswerValue"].to_numpy(),
        correct=answers["CorrectAnswer"].to_numpy(),
        context=number_contexts(student, question, 0, None),
        is_held_out=is_measuring[student] & (rng.random(len(answers)) < 0.5),
    )
    known, _ = split_wrong_answers(numbered, misconceptions.N_DIMENSIONS)
    pairs = groups.compare_pairs(known.of_students(is_finding))
    group = groups.choose_groups(pairs, known.of_students(is_choosing))
    known, asked = split_wrong_answers(numbered, DEFAULT_DIMENSIONS)
    loss = groups.log_loss(asked.probability, asked.option).mean()
    gain = groups.ratio_by_student(*groups.gain_by_student(known, asked, group))
    return Measured(group, float(loss), gain)


def split_wrong_answers(answers: NumberedAnswers, n_dimensions: int) -> tuple[Any, Any]:
    """Fit the answers that are not held out; return the wrong ones of these, and those held out."""
    known = ~answers.is_held_out
    model = ItemResponseOptions(n_dimensions)
    model.fit(
        answers.student[known],
        answers.question[known],
        answers.option[known],
        answers.correct[known],
        context=answers.context[known],
    )
    parts = []
    for is_part in (known, answers.is_held_out):
        rows = np.flatnonzero(is_part & (answers.option != answers.correct))
        p_option = model.predict_proba(
            answers.student[rows], answers.question[rows], context=answers.context[rows]
        )
        wrong = groups.WrongAnswers(
            student=answers.student[rows],
            question=answers.question[rows],
            option=answers.option[rows] - np.int8(1),
            probability=groups.given_wrong(p_option, answers.correct[rows] - np.int8(1)),
            n_students=int(answers.student.max()) + 1,
            n_questions=int(answers.question.max()) + 1,
        )
        parts.append(wrong)
    return parts[0], parts[1]


def permute_options(answers: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Exchange the wrong options among the students who got the same question wrong."""
    rng = np.random.default_rng(seed)
    is_wrong = (answers["AnswerValue"] != answers["CorrectAnswer"]).to_numpy()
    rows = np.flatnonzero(is_wrong)
    # The few questions with two right options are two questions here.
    key = answers["QuestionId"].to_numpy()[rows] * N_OPTIONS
    key = key + answers["CorrectAnswer"].to_numpy()[rows] - 1
    order = rows[np.argsort(key, kind="stable")]
    shuffled = rows[np.lexsort((rng.random(len(rows)), key))]
    option = answers["AnswerValue"].to_numpy(copy=True)
    option[order] = answers["AnswerValue"].to_numpy()[shuffled]
    return answers.assign(AnswerValue=option)


def simulate_planted() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate the answers of tasks 3/4 at official size; return them and what is planted."""
    setting = generate_sample.settings("full").tasks_3_4
    rng = np.random.default_rng(0)
    school = generate_sample.simulate(rng, setting, generate_sample.make_subjects(), N_PLANTED)
    assert school.misconceptions is not None
    return school.answers, generate_sample.list_misconceptions(school, school.misconceptions)


def score_groups(group: IntArray, question_id: IntArray, planted: pd.DataFrame) -> float:
    """Return the adjusted Rand index of groups beside planted ones.

    It is taken over the options that are in a group of either kind. An option in no group is a
    group of its own.
    """
    row = np.searchsorted(question_id, planted["QuestionId"].to_numpy())
    item = row * N_OPTIONS + planted["AnswerValue"].to_numpy() - 1
    alone = -1 - np.arange(len(group))
    truth = alone.copy()
    truth[item] = planted["Misconception"].to_numpy()
    found = np.where(group < 0, alone, group)
    is_in_any = (truth >= 0) | (group >= 0)
    return float(adjusted_rand_score(truth[is_in_any], found[is_in_any]))


def row(name: str, n_answers: int, measured: Measured, index: str = "") -> str:
    """Return a row of the table."""
    n_options = int((measured.group >= 0).sum())
    n_groups = int(measured.group.max()) + 1
    gain = measured.gain
    cells = [name, f"{n_answers:,}", f"{n_groups}", f"{n_options}", f"{measured.loss:.4f}"]
    cells += [f"{gain.value:z.4f} ({gain.low:z.4f} to {gain.high:z.4f})", index]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the rows of the tables."""
    parser = cli.parser(__doc__)
    parser.add_argument("answers", choices=("real", "simulated"))
    options = parser.parse_args()
    if options.answers == "real":
        pool = real_answers.read_pool()
        for seed in SEEDS:
            print(row(f"real, split {seed}", len(pool), measure(pool, seed)), flush=True)
            permuted = permute_options(pool, seed)
            print(row("the same, permuted", len(pool), measure(permuted, seed)), flush=True)
        return
    answers, planted = simulate_planted()
    student_id = np.random.default_rng(0).permutation(answers["UserId"].unique())
    for share in SHARES:
        chosen = student_id[: int(share * len(student_id))]
        part = answers[answers["UserId"].isin(chosen)].reset_index(drop=True)
        measured = measure(part, 0)
        index = score_groups(measured.group, np.unique(part["QuestionId"]), planted)
        print(row(f"{share:.0%} of the students", len(part), measured, f"{index:.3f}"), flush=True)
    permuted = permute_options(answers, 0)
    print(row("all, permuted", len(answers), measure(permuted, 0)), flush=True)


if __name__ == "__main__":
    cli.run(main)
