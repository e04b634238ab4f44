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
# Groups of wrong options are found in the choices of half of the students. The choices of another
# fifth decide the threshold: how strong the evidence for a group must be. The groups are measured
# on the remaining students.
SHARE_FINDING = 0.5
SHARE_CHOOSING = 0.2
N_PLANTED = 60
# Groups found with this low threshold of the evidence are measured too, although the choices of
# other students may not support them.
FORCED_THRESHOLD = 2.5
# The groups are found with these shares of the simulated students, to see how many students are
# needed.
SHARES = (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class NumberedAnswers:
    """Answers with students and questions numbered from 0; each array has the shape (n,)."""

    student: IntArray
    question: IntArray
    option: IntArray
    correct: IntArray
    # A context is a cluster of similar questions. There are several levels: each cluster of a level
    # is cut into smaller ones on the next level. Shape (n, levels).
    context: IntArray
    is_held_out: BoolArray


@dataclass(frozen=True)
class Prepared:
    """Wrong answers, with the probabilities of their options, for each step of the measurement.

    Each field is a `WrongAnswers` of task_2/misconception_groups.py.
    """

    # Answers of the students whose choices are used to find groups of options. The probabilities
    # come from a model with as many dimensions as the model in task_2/misconceptions.py.
    finding: Any
    # Answers of other students. They decide how strong the evidence for a group must be. The
    # probabilities come from the same model as those of `finding`.
    choosing: Any
    # Answers of the remaining students, on whom the groups are measured. The probabilities come
    # from a second model, with more dimensions than the model of `finding`. The second model has
    # learned from the answers in `known`; the answers in `asked` are held out.
    known: Any
    asked: Any


@dataclass(frozen=True)
class Measured:
    """How well groups predict which option is chosen in wrong answers.

    Gains and lifts are values with intervals: a `Ratio` of task_2/misconception_groups.py.
    """

    # Mean log loss of the held-out wrong answers, predicted without groups.
    loss: float
    # The decrease of the log loss that groups achieve: for the held-out answers, and for the known
    # answers.
    gain: Any
    gain_known: Any
    # The lift concerns students who have chosen an option of a group. It says how often they choose
    # the group's option in another answer, divided by how often the model of answers expects this.
    # The first lift counts held-out answers, the second known answers.
    lift: Any
    lift_known: Any


def prepare(answers: pd.DataFrame, seed: int) -> Prepared:
    """Split students into three parts and return their wrong answers; see `Prepared`.

    A group is a set of wrong options, of different questions, that the same students tend to
    choose. Groups are found with the first part of the students and chosen by the second part. The
    third part measures how well the groups predict wrong answers. Two item response models give the
    probability of each option without groups. Half of the answers of the third part are held out of
    both models. `Prepared.asked` has the wrong answers that are held out, and `Prepared.known` has
    the other wrong answers of the third part.
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
        # Without metadata of quizzes, contexts are clusters of questions.
        context=number_contexts(student, question, n_answers=0, circumstances=None),
        is_held_out=is_measuring[student] & (rng.random(len(answers)) < 0.5),
    )
    # For the first two parts, the probabilities come from a model with as many abilities as in
    # task_2/misconceptions.py. For the third part, they come from a model with more abilities.
    small_model_known, _ = split_wrong_answers(numbered, misconceptions.N_DIMENSIONS)
    large_model_known, large_model_held_out = split_wrong_answers(numbered, DEFAULT_DIMENSIONS)
    return Prepared(
        finding=small_model_known.of_students(is_finding),
        choosing=small_model_known.of_students(is_choosing),
        known=large_model_known.of_students(is_measuring),
        # All held-out answers are from students of the third part.
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
    """Return gain and lift of groups, measured on students who were not used to find the groups."""
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

    Count pairs of choices of one student: an option of a group in `known`, and another option of
    the same group in `asked`. The lift is the number of pairs, divided by the number that the model
    of answers expects if the first choice of each pair is given.
    """
    choices = groups.pair_choices(known, asked, group)
    n_pairs = np.asarray(choices.n_pairs.sum(axis=1))
    n_expected = np.asarray(choices.n_expected.sum(axis=1))
    return groups.ratio_by_student(n_pairs, n_expected)


def split_wrong_answers(answers: NumberedAnswers, n_dimensions: int) -> tuple[Any, Any]:
    """Fit a model to the answers that are not held out, and split the wrong answers in two.

    Returns two `WrongAnswers`: the wrong answers that are not held out, and those that are. Both
    hold the probabilities that the model gives to the options.
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
    """Return those wrong answers for which `is_taken` is true, as a `WrongAnswers`.

    It holds the probability that `model` gives to each option if the answer is wrong.
    """
    is_wrong = answers.option != answers.correct
    rows = np.flatnonzero(is_taken & is_wrong)
    p_option = model.predict_proba(
        answers.student[rows], answers.question[rows], context=answers.context[rows]
    )
    # `WrongAnswers` counts options from 0, but `answers` counts them from 1.
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
    # `in_order` keeps the order of the file, and `shuffled` has a random order. `lexsort` sorts by
    # its last key first.
    in_order = rows[np.argsort(question, kind="stable")]
    shuffled = rows[np.lexsort((rng.random(len(rows)), question))]
    option = answers["AnswerValue"].to_numpy()
    permuted = option.copy()
    permuted[in_order] = option[shuffled]
    return answers.assign(AnswerValue=permuted)


def simulate_planted(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate answers with misconceptions, as many answers as the official tasks 3 and 4 have.

    A misconception is a set of wrong options that draws some of the students. The second result has
    a row for each option of a misconception: QuestionId, AnswerValue and the number of the
    Misconception.
    """
    setting = generate_sample.settings("full").tasks_3_4
    rng = np.random.default_rng(seed)
    school = generate_sample.simulate(rng, setting, generate_sample.make_subjects(), N_PLANTED)
    assert school.misconceptions is not None
    return school.answers, generate_sample.list_misconceptions(school, school.misconceptions)


def number_planted(question_id: IntArray, planted: pd.DataFrame) -> IntArray:
    """Return the number of the misconception planted in each item, -1 for none.

    Item N_OPTIONS · q + o is option o of question q, both counted from 0.
    """
    question = np.searchsorted(question_id, planted["QuestionId"].to_numpy())
    option = planted["AnswerValue"].to_numpy() - 1
    group = np.full(len(question_id) * N_OPTIONS, -1, np.int32)
    group[question * N_OPTIONS + option] = planted["Misconception"]
    return group


def score_groups(group: IntArray, truth: IntArray) -> float:
    """Return the adjusted Rand index of found groups and planted ones.

    The index is taken over the options that are in a found or a planted group. An option in no
    group is a group of its own.
    """
    # A negative number for each option, different from all others: a group of one option.
    alone = -1 - np.arange(len(group))
    is_in_any = (truth >= 0) | (group >= 0)
    found = np.where(group < 0, alone, group)[is_in_any]
    planted = np.where(truth < 0, alone, truth)[is_in_any]
    return float(adjusted_rand_score(planted, found))


def row(name: str, group: IntArray, measured: Measured, last_cells: str = "") -> str:
    """Return a row of a Markdown table about groups.

    The cells are the name, the number of groups, the number of options in groups, two gains, two
    lifts, and `last_cells`, the text of the last cell or cells. The first gain and the first lift
    are measured on held-out answers, the others on known answers; see `Measured`.
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

    If there are no groups, both bounds of a lift are NaN, and both bounds of a gain are 0.
    """
    has_interval = ratio.low < ratio.high
    if not has_interval:
        return "none"
    value, low, high = (f"{x:z.{digits}f}" for x in (ratio.value, ratio.low, ratio.high))
    return f"{value} ({low} to {high})"


def print_real() -> None:
    """Print how well groups of wrong options predict the real answers of the pool.

    The students are split at random into three parts: the first part finds groups, the second part
    confirms them, and the third part measures them. This is done for several splits, each time for
    the real options, and for options permuted among the students, so that no group is real.
    """
    pool = real_answers.read_pool()
    print(f"{len(pool):,} answers")
    for seed in SEEDS:
        print_confirmed_and_forced(f"real, split {seed}", pool, seed)
        print_confirmed_and_forced("the same, permuted", permute_options(pool, seed), seed)


def print_confirmed_and_forced(name: str, answers: pd.DataFrame, seed: int) -> None:
    """Print two rows about the groups found in one split of the students.

    The first row is about the groups that the answers of the second part of the students confirm,
    if there are any. The second row, "forced", is about all groups found at a low threshold.
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

    The first rows show the groups found with a quarter, half and all of the students. For the last
    two rows, the wrong options are permuted among students, so that no group is real.
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
    # The last of SHARES is 1, so `group` now holds the groups that were found with all students.
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
