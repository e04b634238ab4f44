"""Measure the map of misconceptions on real and on simulated answers; `misconceptions.md` shows it.

The choices of some students find groups, and those of others choose how strong the evidence must
be. Half the answers of the remaining students are held out. The option of a wrong answer is
predicted by the item response model of options, with and without the student's other choices in
the same group: for held-out answers from the answers that are known, and for known answers from the
other known ones.

Run:     KIT_REAL_DATA=FOLDER python tests/benchmarks/misconception_map.py real
         python tests/benchmarks/misconception_map.py simulated
"""

from dataclasses import dataclass
from typing import Any

from common import cli, layout, schema
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
N_OPTIONS = schema.N_OPTIONS

SEEDS = range(3)
# Groups of wrong options are found by the choices of half of the students. By the choices of
# another fifth, the threshold is chosen: how strong the evidence for a group must be. On the
# remaining students the groups are measured.
SHARE_FINDING = 0.5
SHARE_CHOOSING = 0.2
N_PLANTED = 60
# Groups found with this low threshold of the evidence are measured too, although the choices of
# other students may not support them.
FORCED_THRESHOLD = 2.5
# The groups are found with these shares of the simulated students, to see how many are needed.
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
class Prepared:
    """Wrong answers, with the probabilities of their options, for each step of the measurement.

    Each field is a `WrongAnswers` of task_2/misconception_groups.py.
    """

    # Answers of the students by whose choices groups of options are found. The probabilities are
    # those of a model with as many dimensions as that in task_2/misconceptions.py.
    finding: Any
    # Answers of other students, by which it is chosen how strong the evidence for a group must be.
    # The probabilities are those of the model of `finding`.
    choosing: Any
    # Answers of the remaining students, on whom the groups are measured. The probabilities are
    # those of a second model, with more dimensions than the model of `finding`. It has learned from
    # the answers in `known`; those in `asked` are held out.
    known: Any
    asked: Any


@dataclass(frozen=True)
class Measured:
    """How well groups predict which option is chosen in wrong answers.

    Gains and lifts are values with intervals: a `Ratio` of task_2/misconception_groups.py.
    """

    # Mean log loss of the held-out wrong answers, predicted without groups.
    loss: float
    # By how much groups lower the log loss of the held-out answers, and of the known answers.
    gain: Any
    gain_known: Any
    # How often students who chose an option of a group choose the group's option in another answer,
    # divided by how often the model of answers expects it: in held-out and in known answers.
    lift: Any
    lift_known: Any


def prepare(answers: pd.DataFrame, seed: int) -> Prepared:
    """Split students into three parts and return their wrong answers; see `Prepared`.

    A group is a set of wrong options, of different questions, that the same students tend to
    choose. Groups are found with the first part of the students and chosen by the second. The third
    part measures how well they predict wrong answers. Two item response models give the probability
    of each option without groups; half of the answers of the third part are held out of both.
    """
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
    # For the first two parts, the probabilities come from a model with as many abilities as in
    # task_2/misconceptions.py. For the third part, they come from a model with more abilities.
    wrong, _ = split_wrong_answers(numbered, misconceptions.N_DIMENSIONS)
    wrong_known, wrong_held_out = split_wrong_answers(numbered, DEFAULT_DIMENSIONS)
    return Prepared(
        finding=wrong.of_students(is_finding),
        choosing=wrong.of_students(is_choosing),
        known=wrong_known.of_students(is_measuring),
        asked=wrong_held_out,
    )


def find_groups(prepared: Prepared) -> IntArray:
    """Return the groups that task_2/misconceptions.py finds: the group of each option, -1 for none.

    The options of all questions are in one row; see `find_groups` in
    task_2/misconception_groups.py.
    """
    group: IntArray = groups.choose_groups(
        groups.compare_pairs(prepared.finding), prepared.choosing
    )
    return group


def measure(prepared: Prepared, group: IntArray) -> Measured:
    """Return gain and lift of groups, on students by whose answers no group was found or chosen."""
    known = prepared.known
    asked = prepared.asked
    return Measured(
        float(groups.log_loss(asked.probability, asked.option).mean()),
        gain=groups.ratio_by_student(*groups.gain_by_student(known, asked, group)),
        gain_known=groups.ratio_by_student(*groups.gain_by_student(known, known, group)),
        lift=measure_lift(known, asked, group),
        lift_known=measure_lift(known, known, group),
    )


def measure_lift(known: Any, asked: Any, group: IntArray) -> Any:
    """Return the lift over all groups, a `Ratio`.

    Take the students who chose an option of a group in `known`, and their wrong answers in `asked`
    to the group's questions. The lift is how often they chose the group's option there, divided by
    how often the model of answers expects it.
    """
    choices = groups.pair_choices(known, asked, group)
    n_pairs = np.asarray(choices.n_pairs.sum(axis=1))
    n_expected = np.asarray(choices.n_expected.sum(axis=1))
    return groups.ratio_by_student(n_pairs, n_expected)


def split_wrong_answers(answers: NumberedAnswers, n_dimensions: int) -> tuple[Any, Any]:
    """Fit a model to the answers that are not held out, and split the wrong answers in two.

    Returns two `WrongAnswers`: the wrong answers that are not held out, and those that are. Both
    have the probabilities of the options by the model.
    """
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
    """Exchange the wrong options among the students who got the same question wrong.

    Afterwards, which wrong options a student chose together is chance.
    """
    rng = np.random.default_rng(seed)
    is_wrong = (answers["AnswerValue"] != answers["CorrectAnswer"]).to_numpy()
    rows = np.flatnonzero(is_wrong)
    # A question where two options are right, in different answers, is treated as two questions.
    key = answers["QuestionId"].to_numpy()[rows] * N_OPTIONS
    key = key + answers["CorrectAnswer"].to_numpy()[rows] - 1
    # Both list the rows question by question. The rows of a question are in the order of the file
    # in `in_order`, and in a random order in `shuffled`.
    in_order = rows[np.argsort(key, kind="stable")]
    shuffled = rows[np.lexsort((rng.random(len(rows)), key))]
    option = answers["AnswerValue"].to_numpy(copy=True)
    option[in_order] = answers["AnswerValue"].to_numpy()[shuffled]
    return answers.assign(AnswerValue=option)


def simulate_planted(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate answers with misconceptions, as many answers as the official tasks 3 and 4 have.

    A misconception is a set of wrong options that draws some of the students. The second result
    lists the options: QuestionId, AnswerValue and the number of the Misconception.
    """
    setting = generate_sample.settings("full").tasks_3_4
    rng = np.random.default_rng(seed)
    school = generate_sample.simulate(rng, setting, generate_sample.make_subjects(), N_PLANTED)
    assert school.misconceptions is not None
    return school.answers, generate_sample.list_misconceptions(school, school.misconceptions)


def number_planted(question_id: IntArray, planted: pd.DataFrame) -> IntArray:
    """Return the planted misconception of each item, -1 for none; see `groups.find_groups`."""
    row = np.searchsorted(question_id, planted["QuestionId"].to_numpy())
    group = np.full(len(question_id) * N_OPTIONS, -1, np.int32)
    group[row * N_OPTIONS + planted["AnswerValue"].to_numpy() - 1] = planted["Misconception"]
    return group


def score_groups(group: IntArray, truth: IntArray) -> float:
    """Return the adjusted Rand index of found groups and planted ones.

    The index is taken over the options that are in a found or a planted group. An option in no
    group is a group of its own.
    """
    alone = -1 - np.arange(len(group))
    is_in_any = (truth >= 0) | (group >= 0)
    found = np.where(group < 0, alone, group)[is_in_any]
    planted = np.where(truth < 0, alone, truth)[is_in_any]
    return float(adjusted_rand_score(planted, found))


def row(name: str, group: IntArray, measured: Measured, last_cells: str = "") -> str:
    """Return a row of a Markdown table about groups: name, numbers, gains and lifts.

    `last_cells` is the text of the last cell or cells.
    """
    cells = [name, f"{groups.count_groups(group)}", f"{(group >= 0).sum()}"]
    for ratio, digits in (
        (measured.gain, 4),
        (measured.gain_known, 4),
        (measured.lift, 2),
        (measured.lift_known, 2),
    ):
        cells.append(show_ratio(ratio, digits))
    return "| " + " | ".join([*cells, last_cells]) + " |"


def show_ratio(ratio: Any, digits: int) -> str:
    """Return a ratio with its 95 % interval, or "none" if the ratio has no interval.

    Without groups, the bounds are NaN (lift) or both 0 (gain).
    """
    has_interval = ratio.low < ratio.high
    if not has_interval:
        return "none"
    value, low, high = (f"{x:z.{digits}f}" for x in (ratio.value, ratio.low, ratio.high))
    return f"{value} ({low} to {high})"


def print_real() -> None:
    """Print how well groups of wrong options predict the real answers of the pool.

    The students are split at random into three parts: groups are found with the first, confirmed by
    the second and measured on the third. This is done for several splits, each time for the real
    options and for options permuted among the students, where no group is real.

    Each time, two rows are printed. The first is that of the groups that the second part confirms,
    if any. The second row, "forced", is that of groups found at a low threshold, confirmed or not.
    """
    pool = real_answers.read_pool()
    print(f"{len(pool):,} answers")
    for seed in SEEDS:
        for name, answers in (
            (f"real, split {seed}", pool),
            ("the same, permuted", permute_options(pool, seed)),
        ):
            prepared = prepare(answers, seed)
            pairs = groups.compare_pairs(prepared.finding)
            group = groups.choose_groups(pairs, prepared.choosing)
            measured = measure(prepared, group)
            print(row(name, group, measured), f"log loss {measured.loss:.4f}", flush=True)
            forced_group = groups.find_groups(pairs, FORCED_THRESHOLD)
            forced_measured = measure(prepared, forced_group)
            print(row(f"{name}, forced", forced_group, forced_measured), flush=True)


def print_simulated() -> None:
    """Print how well groups agree with the misconceptions that were planted in simulated answers.

    The rows show the groups found with a quarter, half and all of the students. For the last two
    rows, the wrong options are permuted among students, so that no group is real. The first of
    these rows measures the groups found with all students before; the last row searches anew.
    """
    answers, planted = simulate_planted()
    student_id = np.random.default_rng(0).permutation(answers["UserId"].unique())
    for share in SHARES:
        chosen = student_id[: int(share * len(student_id))]
        part = answers[answers["UserId"].isin(chosen)].reset_index(drop=True)
        truth = number_planted(np.unique(part["QuestionId"]), planted)
        prepared = prepare(part, 0)
        group = find_groups(prepared)
        measured = measure(prepared, group)
        name = f"{share:.0%} of the students, {len(part):,} answers"
        rand_index = f"{score_groups(group, truth):.3f}"
        print(row(name, group, measured, rand_index), f"log loss {measured.loss:.4f}", flush=True)
    prepared_permuted = prepare(permute_options(answers, 0), 0)
    # `group` holds the groups found with all students, the last of SHARES.
    measured = measure(prepared_permuted, group)
    print(row("all, permuted", group, measured), flush=True)
    permuted_group = find_groups(prepared_permuted)
    measured = measure(prepared_permuted, permuted_group)
    print(row("found in permuted answers", permuted_group, measured), flush=True)


def main() -> None:
    """Print the rows of the tables."""
    parser = cli.parser(__doc__)
    parser.add_argument("answers", choices=("real", "simulated"))
    if parser.parse_args().answers == "real":
        print_real()
    else:
        print_simulated()


if __name__ == "__main__":
    cli.run(main)
