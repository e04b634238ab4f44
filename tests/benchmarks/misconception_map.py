"""Measure the map of misconceptions on real and on simulated answers; `misconceptions.md` shows it.

Groups are found in the choices of some students. The choices of other students decide how strong
the evidence must be. Half the answers of the remaining students are held out. The item response
model of options predicts the option of each wrong answer, with and without the student's other
choices in the same group. Held-out answers are predicted from the known answers, and each known
answer is predicted from the other known answers.

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
# A group is a set of wrong options that the same students tend to choose. Groups are found in the
# choices of half of the students. The choices of another fifth decide the threshold: how strong the
# evidence for a group must be. The groups are measured on the remaining students.
SHARE_FINDING = 0.5
SHARE_CHOOSING = 0.2
# Number of misconceptions that are planted in the simulated answers.
N_PLANTED = 60
# With this threshold, weak evidence suffices for a group. The groups found in this way are measured
# too, even if the choices of other students do not confirm them.
FORCED_THRESHOLD = 2.5
# Groups are searched for in a quarter, in half and in all of the simulated students, to see how
# many students are needed.
SHARES = (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class NumberedAnswers:
    """Answers of students; each array has the shape (n,), with an element for each answer.

    Students and questions are numbered from 0, options from 1.
    """

    student: IntArray
    question: IntArray
    option: IntArray
    correct: IntArray
    # Questions are clustered on several levels: each cluster of a level is cut into smaller ones on
    # the next level. On each level, the context of an answer is the cluster of its question. Shape
    # (n, levels).
    context: IntArray
    is_held_out: BoolArray


@dataclass(frozen=True)
class Prepared:
    """Wrong answers, with the probabilities of their options, for each step of the measurement.

    Each field is a `WrongAnswers` of task_2/misconception_groups.py.
    """

    # Answers of the first part of the students, in which groups of options are found. The
    # probabilities come from a model with as many dimensions as task_2/misconceptions.py uses.
    finding: Any
    # Answers of the second part of the students. They decide how strong the evidence for a group
    # must be. The probabilities come from the same model.
    choosing: Any
    # Answers of the third part of the students. They measure how well the groups of options predict
    # choices. The probabilities come from a second model with more dimensions. This model has
    # learned from the answers in `known`. The answers in `asked` were held out.
    known: Any
    asked: Any


@dataclass(frozen=True)
class Measured:
    """How well groups predict which option is chosen in wrong answers.

    Gains and lifts are values with intervals: a `Ratio` of task_2/misconception_groups.py.
    """

    # Mean log loss of the held-out wrong answers, predicted without groups.
    loss: float
    # How much the mean log loss falls if the groups are used to predict: `gain` is measured on the
    # held-out answers, `gain_known` on the known answers.
    gain: Any
    gain_known: Any
    # If a student has chosen an option of a group, how often does the student choose an option of
    # this group in another answer, too? The lift is this number, divided by the number that the
    # item response model expects. The other answer is held out for `lift`, and known for
    # `lift_known`.
    lift: Any
    lift_known: Any


def prepare(answers: pd.DataFrame, seed: int) -> Prepared:
    """Split students into three parts and return their wrong answers; see `Prepared`.

    A group is a set of wrong options, of different questions, that the same students tend to
    choose. Groups are found with the first part of the students and chosen by the second part. The
    third part measures how well the groups predict wrong answers.

    Without groups, an item response model predicts the options. Two such models are fitted here,
    and neither sees half of the answers of the third part. `Prepared.asked` has the wrong answers
    among this half, and `Prepared.known` has the other wrong answers of the third part.
    """
    rng = np.random.default_rng(seed)
    student_ids, student = number_ids(answers["UserId"])
    _question_ids, question = number_ids(answers["QuestionId"])
    draw = rng.random(len(student_ids))
    is_finding = draw < SHARE_FINDING
    is_choosing = ~is_finding & (draw < SHARE_FINDING + SHARE_CHOOSING)
    is_measuring = ~is_finding & ~is_choosing
    numbered = NumberedAnswers(
        student,
        question,
        option=answers["AnswerValue"].to_numpy(),
        correct=answers["CorrectAnswer"].to_numpy(),
        # Contexts would be quizzes if metadata named the quiz of each answer. Without metadata,
        # they are clusters of questions that the same students answer.
        context=number_contexts(student, question, n_answers=0, circumstances=None),
        is_held_out=is_measuring[student] & (rng.random(len(answers)) < 0.5),
    )
    # The first two parts of the students get probabilities from a small model, with as many
    # dimensions of ability as task_2/misconceptions.py uses. The third part gets probabilities from
    # a model with more dimensions.
    small_model_known, _ = split_wrong_answers(numbered, misconceptions.N_DIMENSIONS)
    large_model_known, large_model_held_out = split_wrong_answers(numbered, DEFAULT_DIMENSIONS)
    return Prepared(
        finding=small_model_known.of_students(is_finding),
        choosing=small_model_known.of_students(is_choosing),
        known=large_model_known.of_students(is_measuring),
        # These are answers of the third part, since only answers of that part are held out.
        asked=large_model_held_out,
    )


def find_groups(prepared: Prepared) -> IntArray:
    """Return the groups that task_2/misconceptions.py finds: the group of each option, -1 for none.

    Element N_OPTIONS · q + o is about option o of question q, both counted from 0.
    """
    group: IntArray = groups.choose_groups(
        groups.compare_pairs(prepared.finding), prepared.choosing
    )
    return group


def measure(prepared: Prepared, group: IntArray) -> Measured:
    """Return gain and lift of groups, measured on students who took no part in finding them."""
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
    """Return the lift of all groups together, a `Ratio`.

    Count pairs of choices of one student: in an answer in `known`, the student chose an option of a
    group, and in an answer in `asked` another option of the same group. The lift is the number of
    pairs, divided by its expectation. The expectation takes the choices in `known` as given, and
    the choices in `asked` with the probabilities of the item response model.
    """
    choices = groups.pair_choices(known, asked, group)
    n_pairs = np.asarray(choices.n_pairs.sum(axis=1))
    n_expected = np.asarray(choices.n_expected.sum(axis=1))
    return groups.ratio_by_student(n_pairs, n_expected)


def split_wrong_answers(answers: NumberedAnswers, n_dimensions: int) -> tuple[Any, Any]:
    """Fit a model to the answers that are not held out; return the wrong answers in two parts.

    The first part has the wrong answers that are not held out, the second part has those that are.
    Each part is a `WrongAnswers` of task_2/misconception_groups.py. It holds the answers and the
    model's probabilities of their options.
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
    known_wrong = take_wrong_answers(answers, known, model)
    held_out_wrong = take_wrong_answers(answers, answers.is_held_out, model)
    return known_wrong, held_out_wrong


def take_wrong_answers(
    answers: NumberedAnswers, is_taken: BoolArray, model: ItemResponseOptions
) -> Any:
    """Return the `WrongAnswers` of all answers that are wrong and for which `is_taken` is true.

    For each wrong answer, it also holds the probability that `model` gives to each wrong option.
    """
    is_wrong = answers.option != answers.correct
    rows = np.flatnonzero(is_taken & is_wrong)
    p_option = model.predict_proba(
        answers.student[rows], answers.question[rows], context=answers.context[rows]
    )
    # Subtract 1: options are numbered from 0 in `WrongAnswers`, but from 1 in `answers`.
    return groups.WrongAnswers(
        student=answers.student[rows],
        question=answers.question[rows],
        option=answers.option[rows] - np.int8(1),
        probability=groups.given_wrong(p_option, answers.correct[rows] - np.int8(1)),
        n_students=int(answers.student.max()) + 1,
        n_questions=int(answers.question.max()) + 1,
    )


def permute_options(answers: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Exchange the wrong options among the students who got the same question wrong.

    Afterwards, only chance decides which wrong options occur together in a student's answers.
    """
    rng = np.random.default_rng(seed)
    is_wrong = (answers["AnswerValue"] != answers["CorrectAnswer"]).to_numpy()
    rows = np.flatnonzero(is_wrong)
    # The answers may disagree on which option of a question is right. Such a question is treated as
    # two questions, one for each right option: they get different numbers.
    question_id = answers["QuestionId"].to_numpy()[rows]
    right_option = answers["CorrectAnswer"].to_numpy()[rows] - 1
    question = question_id * N_OPTIONS + right_option
    # `in_order` and `shuffled` hold the same rows, sorted by question. Within a question,
    # `in_order` keeps the order of the file, and `shuffled` has a random order.
    in_order = rows[np.argsort(question, kind="stable")]
    shuffled = rows[np.lexsort((rng.random(len(rows)), question))]
    option = answers["AnswerValue"].to_numpy()
    permuted = option.copy()
    permuted[in_order] = option[shuffled]
    return answers.assign(AnswerValue=permuted)


def simulate_planted(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate answers with misconceptions, as many answers as the official tasks 3 and 4 have.

    A misconception is a set of wrong options that attracts some of the students. The second result
    has a row for each option that belongs to a misconception: its QuestionId, its AnswerValue and
    the number of its Misconception.
    """
    setting = generate_sample.settings("full").tasks_3_4
    rng = np.random.default_rng(seed)
    school = generate_sample.simulate(rng, setting, generate_sample.make_subjects(), N_PLANTED)
    assert school.misconceptions is not None
    return school.answers, generate_sample.list_misconceptions(school, school.misconceptions)


def number_planted(question_id: IntArray, planted: pd.DataFrame) -> IntArray:
    """Return the number of the misconception to which each item belongs, -1 for none.

    Item N_OPTIONS · q + o is option o of question q, both counted from 0. `planted` lists the
    options of the misconceptions, see `simulate_planted`.
    """
    question = np.searchsorted(question_id, planted["QuestionId"].to_numpy())
    option = planted["AnswerValue"].to_numpy() - 1
    group = np.full(len(question_id) * N_OPTIONS, -1, np.int32)
    group[question * N_OPTIONS + option] = planted["Misconception"]
    return group


def score_groups(group: IntArray, truth: IntArray) -> float:
    """Return the adjusted Rand index of found groups and planted ones.

    Only options that are in a found or in a planted group count. An option that is in only one of
    these makes a group of its own on the other side.
    """
    # An option in no group gets a negative group number that no other option has.
    alone = -1 - np.arange(len(group))
    is_in_any = (truth >= 0) | (group >= 0)
    found = np.where(group < 0, alone, group)[is_in_any]
    planted = np.where(truth < 0, alone, truth)[is_in_any]
    return float(adjusted_rand_score(planted, found))


def row(name: str, group: IntArray, measured: Measured, last_cells: str = "") -> str:
    """Return a row of a Markdown table about groups.

    The cells are the name, the number of groups, the number of options in groups, two gains, two
    lifts, and `last_cells`, the text of the last cell or cells. `Measured` explains gains and
    lifts: the first of the two is measured on held-out answers, the second on known answers.
    """
    n_groups = groups.count_groups(group)
    n_options_in_groups = np.count_nonzero(group >= 0)
    cells = [name, f"{n_groups}", f"{n_options_in_groups}"]
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

    A ratio is a gain or a lift of groups (see `Measured`). If there are no groups, both ends of the
    interval of a lift are NaN, and both ends of the interval of a gain are 0.
    """
    has_interval = ratio.low < ratio.high
    if not has_interval:
        return "none"
    value, low, high = (f"{x:z.{digits}f}" for x in (ratio.value, ratio.low, ratio.high))
    return f"{value} ({low} to {high})"


def print_real() -> None:
    """Print how well groups of wrong options predict the real answers of the pool.

    The students are split at random into three parts. Groups are found in the answers of the first
    part, the answers of the second part confirm them, and the answers of the third part measure
    them. This is done for several splits. Each time, it is done again with the options permuted
    among the students, so that every group is due to chance.
    """
    pool = real_answers.read_pool()
    print(f"{len(pool):,} answers")
    for seed in SEEDS:
        print_confirmed_and_forced(f"real, split {seed}", pool, seed)
        print_confirmed_and_forced("the same, permuted", permute_options(pool, seed), seed)


def print_confirmed_and_forced(name: str, answers: pd.DataFrame, seed: int) -> None:
    """Print two rows about the groups that are found in the first part of the students.

    `seed` splits the students into three parts. The first row is about the groups that the answers
    of the second part confirm, if there are any. The second row, "forced", is about all groups for
    which weak evidence suffices, whether they are confirmed or not.
    """
    prepared = prepare(answers, seed)
    pairs = groups.compare_pairs(prepared.finding)
    group = groups.choose_groups(pairs, prepared.choosing)
    print_row_and_loss(name, group, measure(prepared, group))
    forced_group = groups.find_groups(pairs, FORCED_THRESHOLD)
    forced_measured = measure(prepared, forced_group)
    print(row(f"{name}, forced", forced_group, forced_measured), flush=True)


def print_row_and_loss(
    name: str, group: IntArray, measured: Measured, last_cells: str = ""
) -> None:
    """Print a row of a table about groups and, after the row, the log loss without groups."""
    print(row(name, group, measured, last_cells), f"log loss {measured.loss:.4f}", flush=True)


def print_simulated() -> None:
    """Print how well groups agree with the misconceptions that were planted in simulated answers.

    The first three rows are about the groups found in a quarter, in half and in all of the
    students. For the last two rows, the wrong options are permuted among the students, so that no
    group can predict them.
    """
    answers, planted = simulate_planted()
    student_ids = np.random.default_rng(0).permutation(answers["UserId"].unique())
    for share in SHARES:
        chosen_ids = student_ids[: int(share * len(student_ids))]
        part = answers[answers["UserId"].isin(chosen_ids)].reset_index(drop=True)
        planted_group = number_planted(np.unique(part["QuestionId"]), planted)
        prepared = prepare(part, seed=0)
        group = find_groups(prepared)
        name = f"{share:.0%} of the students, {len(part):,} answers"
        rand_index = f"{score_groups(group, planted_group):.3f}"
        print_row_and_loss(name, group, measure(prepared, group), rand_index)
    # The loop has ended with all students (the last of SHARES is 1), so `group` holds the groups
    # that were found in all students.
    print_permuted(answers, group_of_all=group)


def print_permuted(answers: pd.DataFrame, group_of_all: IntArray) -> None:
    """Permute the wrong options among students, and print two rows about groups.

    The first row measures, on the permuted answers, the groups that were found before in the
    answers of all students. The second row measures the groups found in the permuted answers.
    """
    prepared = prepare(permute_options(answers, seed=0), seed=0)
    print(row("all, permuted", group_of_all, measure(prepared, group_of_all)), flush=True)
    permuted_group = find_groups(prepared)
    measured = measure(prepared, permuted_group)
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
