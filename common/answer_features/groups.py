"""The groups of features: functions that return columns with a value for each row asked.

A group may use everything that is known about the rows asked except their outcomes, so also their
order and the confidence of the students. To add a group, write a function with the decorator
`@group`, which enters it in `GROUPS` and says which data it needs. Groups are used in the order of
this file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.answer_features.asked import Asked, Columns
from common.answer_features.known import GUESSING, shrunk_mean
from common.answer_features.nearest_answers import PRIOR_WEIGHT_BY_POWER
from common.answer_features.pairs import MINUTES, SUBJECT_LEVELS, Pairs
from common.arrays import Array, FloatArray, IntArray
from common.errors import InputError
from common.item_response import ItemResponse, ItemResponseOptions
from common.item_response.options import N_OPTIONS

import numpy as np
import pandas as pd

# Numbers of known answers before, and of known answers after, that `order` describes.
_N_STEPS = 2
# Date for ages: the start of the year in which most answers were given.
_YEAR = np.datetime64("2019-01-01")
_DAYS_PER_YEAR = 365.25
# Probabilities are clipped to this before a logarithm is taken, and to 1 minus this.
_MIN_PROBABILITY = np.float32(1e-6)
# Steps of the item response model of wrong answers.
_STEPS_OF_DISTRACTORS = 8


# ---- The register of groups ------------------------------------------------------------------


@dataclass(frozen=True)
class Need:
    """Data that may be missing, and that some groups need."""

    # The name of the data in messages.
    title: str
    # Whether the data are there, by the pairs and the training answers.
    is_met: Callable[[Pairs, pd.DataFrame], bool]


OPTIONS = Need(
    "AnswerValue and CorrectAnswer of the training answers",
    lambda pairs, answers: "AnswerValue" in answers,
)
QUESTION_METADATA = Need(
    "the question metadata", lambda pairs, answers: SUBJECT_LEVELS[0] in pairs.numbers
)
STUDENT_METADATA = Need("the student metadata", lambda pairs, answers: pairs.students is not None)
ANSWER_METADATA = Need(
    "the answer metadata, and AnswerId in the training answers and the template",
    lambda pairs, answers: pairs.circumstances is not None,
)


@dataclass(frozen=True)
class Group:
    """A group of features."""

    # Computes the columns of the group.
    compute: Callable[[Asked], Columns]
    # The data that the group needs beside UserId, QuestionId and IsCorrect; None if it needs none.
    need: Need | None
    # Whether the group reads `Asked.nearest`.
    uses_nearest: bool


GROUPS: dict[str, Group] = {}
GroupFunction = Callable[[Asked], Columns]


def group(
    *, need: Need | None = None, uses_nearest: bool = False
) -> Callable[[GroupFunction], GroupFunction]:
    """Enter a function in `GROUPS` by its name; see `Group` for the arguments."""

    def enter(compute: GroupFunction) -> GroupFunction:
        GROUPS[compute.__name__] = Group(compute, need, uses_nearest)
        return compute

    return enter


def available_groups(
    pairs: Pairs,
    answers: pd.DataFrame,
    wanted: Sequence[str] | None = None,
    leave_out: Sequence[str] = (),
) -> tuple[str, ...]:
    """Choose the groups whose data are there.

    Parameters
    ----------
    pairs
        From `read_pairs`.
    answers
        The training answers.
    wanted
        Names of groups. By default all but those to `leave_out`.
    leave_out
        Names of groups that are not chosen by default.

    Returns
    -------
    tuple of str
        Names of groups.

    Raises
    ------
    InputError
        If a group that is `wanted` needs data that are not there.
    """
    if wanted:
        for name in wanted:
            if need := _find_unmet_need(name, pairs, answers):
                raise InputError(f"the features '{name}' need {need.title}, which are not there")
        return tuple(wanted)
    candidates = [name for name in GROUPS if name not in leave_out]
    return tuple(name for name in candidates if not _find_unmet_need(name, pairs, answers))


def _find_unmet_need(name: str, pairs: Pairs, answers: pd.DataFrame) -> Need | None:
    """Return the data that a group needs and that are missing; None if nothing is missing."""
    need = GROUPS[name].need
    if need is None or need.is_met(pairs, answers):
        return None
    return need


# ---- From the training file ------------------------------------------------------------------


@group()
def model(asked: Asked) -> Columns:
    """Item response theory with context: the logit of a right answer, and the logit's parts."""
    fitted = asked.known.fit_model(asked.pairs)
    student = asked.student
    question = asked.question
    context = asked.context
    p_right = fitted.predict_proba(student, question, context=context)[:, 1]
    parts = fitted.explain(student, question, context=context)
    columns = {f"model_{name}": part for name, part in vars(parts).items()}
    return {"model": _logit(p_right)} | columns


@group(need=OPTIONS)
def options(asked: Asked) -> Columns:
    """Log probability of each option, the right one first; takes far longer than `model`."""
    known = asked.known
    fitted = ItemResponseOptions(guessing=GUESSING).fit(
        known.student,
        known.question,
        known.option,
        known.correct_option,
        context=asked.pairs.context[known.rows],
    )
    probability = fitted.predict_proba(asked.student, asked.question, context=asked.context)
    return _by_outcome("model", np.log(np.maximum(probability, _MIN_PROBABILITY)), asked)


@group()
def rates(asked: Asked) -> Columns:
    """Rates of the question and of the student (see `Known`), each with its number of answers."""
    known = asked.known
    student = asked.student
    question = asked.question
    question_count = np.bincount(known.question, minlength=asked.pairs.n_questions)
    student_count = np.bincount(known.student, minlength=asked.pairs.n_students)
    return {
        "question_rate": known.question_rate[question],
        "question_count": question_count[question],
        "student_rate": known.student_rate[student],
        "student_count": student_count[student],
    }


@group(need=OPTIONS)
def distractors(asked: Asked) -> Columns:
    """Share of each option, and the logit that a wrong answer is the most popular wrong option."""
    known = asked.known
    columns = _by_outcome("share", known.option_share[asked.question], asked)
    outcome = known.outcome_of_option[known.question, known.option - 1]
    wrong = np.flatnonzero(outcome > 0)
    columns["distractor"] = np.zeros(len(asked))
    if len(wrong):
        # An item response model of the wrong answers only: 1 is the most popular wrong option.
        fitted = ItemResponse(n_dimensions=1, guessing=0.0, n_steps=_STEPS_OF_DISTRACTORS)
        fitted.fit(known.student[wrong], known.question[wrong], outcome[wrong] == 1)
        probability = fitted.predict_proba(asked.student, asked.question)[:, 1]
        columns["distractor"] = _logit(probability)
    return columns


# ---- From the question metadata ----------------------------------------------------------------


@group(need=QUESTION_METADATA)
def subjects(asked: Asked) -> Columns:
    """Rate of the student on the question's subject, at three levels of the tree of subjects."""
    return rates_of(asked, [("student", level) for level in SUBJECT_LEVELS])


# ---- From the answers to similar questions -----------------------------------------------------


@group(uses_nearest=True)
def context(asked: Asked) -> Columns:
    """Mean residual of the student on the most similar questions, and how similar these are."""
    columns: Columns = {}
    for power in PRIOR_WEIGHT_BY_POWER:
        columns[f"near_{power}"] = asked.nearest.residual[power]
        columns[f"nearness_{power}"] = asked.nearest.weight[power]
    return columns


@group(need=OPTIONS, uses_nearest=True)
def habits(asked: Asked) -> Columns:
    """How often the student chooses the position of each option, beyond the option's usual share.

    Students who do not know an answer often click at one position. The features are the positions
    of the options; the habit in all answers of the student; the habit in the answers to similar
    questions; and which option is at the position chosen in each of the four nearest answers.
    """
    columns = _numbered("place", _option_of_outcome(asked))
    columns |= _by_outcome("habit", _habits_in(("student",), asked), asked)
    for power in PRIOR_WEIGHT_BY_POWER:
        columns |= _numbered(f"habit_{power}", asked.nearest.habit[power])
    return columns | _numbered("near_option", asked.nearest.outcome)


# ---- From the student metadata -----------------------------------------------------------------


@group(need=STUDENT_METADATA)
def students(asked: Asked) -> Columns:
    """Gender, age in years at the start of 2019, and pupil premium."""
    assert asked.pairs.students is not None
    student_rows = asked.pairs.students.iloc[asked.student]
    columns = {
        "gender": student_rows["Gender"],
        "age": (_YEAR - student_rows["DateOfBirth"]).dt.days / _DAYS_PER_YEAR,
        "premium": student_rows["PremiumPupil"],
    }
    # -1 stands for unknown. An age below 0 must be wrong.
    return {name: column.where(column >= 0).to_numpy() for name, column in columns.items()}


# ---- From the answer metadata ------------------------------------------------------------------


@group(need=ANSWER_METADATA)
def quiz(asked: Asked) -> Columns:
    """Rates of the student in the quiz, the question in it and the quiz, its size, and habits."""
    columns = rates_of(asked, [("student", "quiz"), ("question", "quiz"), ("quiz",)])
    number = asked.pairs.number("student", "quiz")
    size = np.bincount(number[number >= 0]).astype(np.float32)
    columns["quiz_size"] = _look_up(size, number[asked.rows])
    if asked.known.has_options:
        columns |= _by_outcome("quiz_habit", _habits_in(("student", "quiz"), asked), asked)
    return columns


@group(need=ANSWER_METADATA)
def order(asked: Asked) -> Columns:
    """Residual and option of the two known answers before and the two after, in the same quiz.

    Known answers of the same minute count as later.
    """
    known = asked.known
    moment = asked.pairs.moments("student", "quiz")
    asked_moment = moment[asked.rows]
    known_moment = moment[known.rows]
    # Free this large array, which has an element for each pair.
    del moment
    # Positions in `known` in the order of time. Answers of unknown time, -1, come first: drop them.
    n_unknown = np.sum(known_moment < 0)
    answer = np.argsort(known_moment, kind="stable").astype(np.int32)[n_unknown:]
    ordered_moment = known_moment[answer]
    n_earlier = _count_less(ordered_moment, asked_moment)
    # Pad both ends, so that every step from a position leads to an element.
    ordered_moment = np.pad(ordered_moment, _N_STEPS, constant_values=-1)
    answer = np.pad(answer, _N_STEPS)
    first_later = n_earlier + _N_STEPS

    question = asked.question
    columns: Columns = {}
    for step in (*range(-_N_STEPS, 0), *range(_N_STEPS)):
        name = f"before_{-step}" if step < 0 else f"after_{step + 1}"
        position = first_later + step
        is_same_quiz = ordered_moment[position] // MINUTES == asked_moment // MINUTES
        is_found = (asked_moment >= 0) & is_same_quiz
        neighbour = answer[position[is_found]]
        columns[name] = np.full(len(asked), np.nan, np.float32)
        columns[name][is_found] = known.residual[neighbour]
        if known.has_options:
            position_chosen = known.option[neighbour] - 1
            outcome = known.outcome_of_option[question[is_found], position_chosen]
            columns[f"{name}_option"] = np.full(len(asked), np.nan, np.float32)
            columns[f"{name}_option"][is_found] = outcome
    return columns


@group(need=ANSWER_METADATA)
def classes(asked: Asked) -> Columns:
    """Rates of the class and of the scheme of work: overall, on the question, in the quiz."""
    return rates_of(
        asked,
        [
            ("group",),
            ("question", "group"),
            ("group", "quiz"),
            ("scheme",),
            ("question", "scheme"),
        ],
    )


@group(need=ANSWER_METADATA)
def time(asked: Asked) -> Columns:
    """Hour, weekday, rate of the day, position in the quiz, minutes since the last answer, age."""
    assert asked.pairs.circumstances is not None
    date = asked.pairs.circumstances["DateAnswered"].iloc[asked.rows]
    hour = (date.dt.hour * 60 + date.dt.minute) / 60
    columns: Columns = {"hour": hour.to_numpy(), "weekday": date.dt.day_of_week.to_numpy()}
    columns |= rates_of(asked, [("student", "day")])

    moment, ordered = _moments_of(asked, "student", "quiz")
    start_of_quiz = moment // MINUTES * MINUTES
    position = _count_less(ordered, moment) - _count_less(ordered, start_of_quiz)
    columns["place_in_quiz"] = np.where(moment < 0, np.nan, position)

    # The student's last answer at an earlier minute, in any quiz. -1 stands before the first.
    moment, ordered = _moments_of(asked, "student")
    last = np.append(-1, ordered)[_count_less(ordered, moment)]
    is_same_student = (last // MINUTES == moment // MINUTES) & (last < moment)
    columns["gap"] = np.where(is_same_student, moment - last, np.nan)

    if asked.pairs.students is not None:
        birth = asked.pairs.students["DateOfBirth"].to_numpy()[asked.student]
        columns["age_then"] = (date.to_numpy() - birth) / np.timedelta64(1, "D") / _DAYS_PER_YEAR
    return columns


@group(need=ANSWER_METADATA)
def confidence(asked: Asked) -> Columns:
    """The student's confidence in this answer, 0 to 100, and usual confidence; mostly NaN."""
    assert asked.pairs.circumstances is not None
    stated = asked.pairs.circumstances["Confidence"].to_numpy()
    student = asked.pairs.numbers["student"]
    is_stated = ~np.isnan(stated)
    overall = float(stated[is_stated].mean()) if is_stated.any() else 0.0
    mean, count = shrunk_mean(
        student[is_stated], stated[is_stated], asked.pairs.n_students, overall
    )
    usual = np.where(count > 0, mean, np.nan)[asked.student]
    return {
        "confidence": stated[asked.rows],
        "usual_confidence": usual,
        "confidence_above_usual": stated[asked.rows] - usual,
        "confidence_count": count[asked.student],
    }


# ---- Rates -------------------------------------------------------------------------------------


def rates_of(asked: Asked, keys: Sequence[tuple[str, ...]]) -> Columns:
    """Return columns with the mean residual of the known answers that share a key with each row.

    A key is one or two names of `Pairs.numbers`. For instance, ("student", "quiz") stands for the
    answers of the same student in the same quiz. Its columns are student_quiz_rate, the mean, and
    student_quiz_count, the number of answers.
    """
    columns: Columns = {}
    for key in keys:
        name = "_".join(key)
        mean, count = _mean_in(key, asked, asked.known.residual)
        columns[f"{name}_rate"] = mean
        columns[f"{name}_count"] = count
    return columns


def _habits_in(key: tuple[str, ...], asked: Asked) -> FloatArray:
    """Return how much more often than usual each position is chosen, shape (rows, options).

    Only known answers that share the key with a row count. The usual share of a position is that of
    the option at this position among all answers to the question.
    """
    known = asked.known
    habit_by_position = []
    for position in range(N_OPTIONS):
        is_chosen = known.option == position + 1
        excess = is_chosen - known.option_share[known.question, position]
        habit, _ = _mean_in(key, asked, excess)
        habit_by_position.append(habit)
    return np.column_stack(habit_by_position)


def _mean_in(
    key: tuple[str, ...], asked: Asked, value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the mean of a value over the known answers that share a key with each row.

    Returns also the number of these answers. Means are shrunk towards 0. Mean and number are NaN if
    the key of a row is unknown.
    """
    number = asked.pairs.number(*key)
    n_numbers = int(number.max(initial=-1)) + 1
    known_number = number[asked.known.rows]
    asked_number = number[asked.rows]
    # Free this large array, unless `pairs` keeps it.
    del number
    mean, count = shrunk_mean(known_number, value, n_numbers)
    return _look_up(mean, asked_number), _look_up(count, asked_number)


def _look_up(values: FloatArray, number: IntArray) -> FloatArray:
    """Return the value of each number, NaN for -1."""
    return np.append(values, np.float32(np.nan))[number]


# ---- Options -----------------------------------------------------------------------------------


def _option_of_outcome(asked: Asked) -> IntArray:
    """Return the position of the right option, the most popular wrong one, and so on, from 0.

    Shape (rows, options): the inverse of `Known.outcome_of_option` for the question of each row.
    """
    return np.argsort(asked.known.outcome_of_option, axis=1)[asked.question]


def _by_outcome(name: str, values: FloatArray, asked: Asked) -> Columns:
    """Return columns of values that are given by position, shape (rows, options).

    The first column is the value of the right option, the second that of the most popular wrong
    option, and so on.
    """
    return _numbered(name, np.take_along_axis(values, _option_of_outcome(asked), 1))


def _numbered(name: str, columns: Array) -> Columns:
    return {f"{name}_{number}": column for number, column in enumerate(columns.T)}


# ---- Time and numbers --------------------------------------------------------------------------


def _moments_of(asked: Asked, *names: str) -> tuple[IntArray, IntArray]:
    """Return the moment (see `Pairs.moments`) of each row, and all known moments in order."""
    moment = asked.pairs.moments(*names)
    asked_moment = moment[asked.rows]
    moment.sort()
    return asked_moment, moment[np.searchsorted(moment, 0) :]


def _count_less(ordered: IntArray, wanted: IntArray) -> IntArray:
    """Return, for each wanted number, how many of the ordered numbers are less."""
    # Looking up millions of numbers is much faster in increasing order.
    order = np.argsort(wanted)
    count = np.empty(len(wanted), np.int64)
    count[order] = np.searchsorted(ordered, wanted[order])
    return count


def _logit(p: FloatArray) -> FloatArray:
    p = np.clip(p, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
    return np.log(p / (1 - p))
