"""The groups of features: one function each, and the table that they make together.

Every function takes the pairs, the known outcomes and the rows of the pairs that are asked for, and
returns columns by name, float32, one value for each row asked for, NaN where there is none.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from common import item_response
from common.answer_features import circumstances
from common.answer_features.known import N_OPTIONS, Known, cut, know, shrunk_mean
from common.answer_features.nearest import nearest_answers
from common.answer_features.pairs import SUBJECT_LEVELS, Pairs
from common.answer_features.rates import Columns, rates_of
from common.answers import IntArray
from common.errors import InputError
from common.item_response.blocks import in_threads

import numpy as np
import numpy.typing as npt
import pandas as pd
from tqdm import tqdm

FloatArray = npt.NDArray[np.floating[Any]]
Group = Callable[[Pairs, Known, IntArray], Columns]

# How many of a student's answers count as near, of how many the option is a feature of its own, and
# how fast the others' weights fall, similarity to this power, each with so much weight on no effect
# at all. Chosen on training answers of the pool (see tests/benchmarks/README.md).
N_NEAREST, N_OPTIONS_SHOWN = 32, 4
DECAYS = ((2, 2.0), (6, 1.0), (15, 0.5))
# Ages are those at the start of the year in which most answers were given.
_YEAR = np.datetime64("2019-01-01")
_DAYS_PER_YEAR = 365.25
_MIN_PROBABILITY = np.float32(1e-6)
# Chance to be right without knowing the answer.
_GUESSING = 0.2
# Steps of a model that goes on from one of fewer answers.
_N_STEPS = 3


def model(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Predict by item response theory with context: logit of being right. From the training file.

    The model is fitted to the known answers.
    """
    fitted = _fit_model(pairs, known)
    student, question = (pairs.numbers[name][asked] for name in ("student", "question"))
    p = item_response.predict(fitted, student, question, pairs.context[asked])
    p = np.clip(p, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
    return {"model": np.log(p / (1 - p))}


def options(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Predict by item response theory with context: log probability of each outcome.

    The right option, the most popular wrong one, and so on. From the training file, which must tell
    the options. The model is fitted to the known answers, and takes several times as long as
    `model`.
    """
    assert known.option is not None and known.correct_option is not None
    assert known.outcome_of_option is not None
    fitted = item_response.fit_options(
        known.student,
        known.question,
        known.option,
        known.correct_option,
        guessing=_GUESSING,
        context=pairs.context[known.rows],
    )
    student, question = (pairs.numbers[name][asked] for name in ("student", "question"))
    p = item_response.predict_options(fitted, student, question, pairs.context[asked])
    in_order = np.argsort(known.outcome_of_option, axis=1)[question]
    log_p = np.log(np.maximum(np.take_along_axis(p, in_order, 1), _MIN_PROBABILITY))
    return {f"model_{outcome}": log_p[:, outcome] for outcome in range(N_OPTIONS)}


def _fit_model(pairs: Pairs, known: Known) -> item_response.ItemResponseModel:
    """Fit what `model` predicts with."""
    start = known.start
    return item_response.fit(
        known.student,
        known.question,
        known.is_correct,
        guessing=_GUESSING,
        n_steps=None if start is None else _N_STEPS,
        context=pairs.context[known.rows],
        start=start,
    )


def rates(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Rate of the question, and of the student above it, with the numbers of answers that tell.

    From the training file.
    """
    student, question = (pairs.numbers[name][asked] for name in ("student", "question"))
    n_of_question = np.bincount(known.question, minlength=pairs.n_questions).astype(np.float32)
    n_of_student = np.bincount(known.student, minlength=pairs.n_students).astype(np.float32)
    return {
        "question_rate": known.question_rate[question],
        "question_count": n_of_question[question],
        "student_rate": known.student_rate[student],
        "student_count": n_of_student[student],
    }


def subjects(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How the student did on the question's subject, at three levels of the tree, and how often.

    From the question metadata; the levels from the subject metadata, if there.
    """
    keys = [("student", level) for level in SUBJECT_LEVELS]
    return rates_of(pairs, known, asked, keys)


def context(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How the student did on the most similar questions, and how similar they are.

    From the training file. Means of what the outcomes exceed expectation by, over the nearest known
    answers, weighted by powers of the similarity.
    """
    columns = {
        f"{kind}_{power}": np.zeros(len(asked), np.float32)
        for power, _ in DECAYS
        for kind in ("near", "nearness")
    }
    for rows, nearest, similarity in _near(pairs, known, asked):
        residual = np.where(nearest >= 0, known.residual[nearest], 0)
        for power, shrinkage in DECAYS:
            weight = similarity**power
            total = weight.sum(axis=1)
            columns[f"near_{power}"][rows] = (weight * residual).sum(axis=1) / (total + shrinkage)
            columns[f"nearness_{power}"][rows] = total
    return columns


def habits(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How much the student prefers option A, B, C or D, whatever the question.

    From the training file, which must tell the options. Who does not know, or does not care, often
    clicks at the same place, above all within a quiz. So each option of the question gets: how far
    the student's answers, and those to the most similar questions alone, exceed the shares with
    which the option at this place is usually chosen; and the four nearest answers say which of the
    question's options was at the place chosen there. Options are in the order of `Known`.
    """
    assert known.option is not None and known.option_share is not None
    assert known.outcome_of_option is not None
    student, question = (pairs.numbers[name][asked] for name in ("student", "question"))
    chosen = known.option - 1
    excess = -known.option_share[known.question]
    excess[np.arange(len(chosen)), chosen] += 1
    outcome_of_option = known.outcome_of_option[question]
    in_order = np.argsort(outcome_of_option, axis=1)
    columns = {f"place_{o}": in_order[:, o].astype(np.float32) for o in range(N_OPTIONS)}

    def add(name: str, rows: IntArray | slice, of_place: FloatArray) -> None:
        of_outcome = np.take_along_axis(of_place, in_order[rows], 1)
        for o in range(N_OPTIONS):
            column = columns.setdefault(f"{name}_{o}", np.zeros(len(asked), np.float32))
            column[rows] = of_outcome[:, o]

    usual = [
        shrunk_mean(known.student, excess[:, o], pairs.n_students)[0] for o in range(N_OPTIONS)
    ]
    add("habit", slice(None), np.column_stack([mean[student] for mean in usual]))
    for nth in range(N_OPTIONS_SHOWN):
        columns[f"near_option_{nth}"] = np.full(len(asked), np.nan, np.float32)
    for rows, nearest, similarity in _near(pairs, known, asked):
        of_near = np.where((nearest >= 0)[:, :, None], excess[nearest], 0)
        for power, shrinkage in DECAYS:
            weight = similarity**power
            total = (weight[:, None] @ of_near)[:, 0]
            add(f"habit_{power}", rows, total / (weight.sum(axis=1, keepdims=True) + shrinkage))
        shown = nearest[:, :N_OPTIONS_SHOWN]
        outcome = np.take_along_axis(outcome_of_option[rows], chosen[shown], 1)
        for nth in range(N_OPTIONS_SHOWN):
            is_there = shown[:, nth] >= 0
            columns[f"near_option_{nth}"][rows[is_there]] = outcome[is_there, nth]
    return columns


def students(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Gender, age in years at the start of 2019, and pupil premium. From the student metadata."""
    assert pairs.students is not None
    own = pairs.students.iloc[asked]
    gender, premium = own["Gender"].to_numpy(), own["PremiumPupil"].to_numpy()
    age = (_YEAR - own["DateOfBirth"]).dt.days.to_numpy() / _DAYS_PER_YEAR
    return {
        "gender": np.where(gender < 0, np.nan, gender),
        "age": age,
        "premium": np.where(premium < 0, np.nan, premium),
    }


GROUPS: dict[str, Group] = {
    "model": model,
    "options": options,
    "rates": rates,
    "subjects": subjects,
    "context": context,
    "habits": habits,
    "students": students,
    "quiz": circumstances.quiz,
    "order": circumstances.order,
    "classes": circumstances.classes,
    "time": circumstances.time,
    "confidence": circumstances.confidence,
}
_OF_ANSWER_METADATA = ("quiz", "order", "classes", "time", "confidence")


def available_groups(
    pairs: Pairs,
    answers: pd.DataFrame,
    wanted: Sequence[str] | None = None,
    leave_out: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the names of the groups whose files are there.

    Parameters
    ----------
    pairs, answers
        What there is.
    wanted
        Names of groups; None: all of them that are available, but some.
    leave_out
        Which these are.

    Raises
    ------
    InputError
        If a group that is wanted needs a file, or a column, that is not there.
    """
    missing: dict[str, str] = {}
    if "AnswerValue" not in answers:
        needs = "AnswerValue and CorrectAnswer of the training answers"
        missing |= dict.fromkeys(("options", "habits"), needs)
    if SUBJECT_LEVELS[0] not in pairs.numbers:
        missing["subjects"] = "the question metadata"
    if pairs.students is None:
        missing["students"] = "the student metadata"
    if pairs.circumstances is None:
        needs = "the answer metadata, and AnswerId in the training answers and the template"
        missing |= dict.fromkeys(_OF_ANSWER_METADATA, needs)
    for name in wanted or ():
        if name in missing:
            raise InputError(f"the features '{name}' need {missing[name]}, which are not there")
    chosen = wanted or [name for name in GROUPS if name not in leave_out]
    return tuple(name for name in chosen if name not in missing)


def table(pairs: Pairs, known: Known, asked: IntArray, groups: Sequence[str]) -> Columns:
    """Return all columns of some groups.

    Parameters
    ----------
    pairs
        From `read_pairs`.
    known
        The outcomes to be used.
    asked
        Rows of the pairs, none of them among those of `known`.
    groups
        Keys of `GROUPS`; whichever `available_groups` returns.

    Returns
    -------
    dict
        For each feature an array of float32, shape (asked,), in an order that depends on `groups`
        only.
    """
    columns: Columns = {}
    for name in groups:
        found = GROUPS[name](pairs, known, asked)
        columns |= {key: np.asarray(column, np.float32) for key, column in found.items()}
    return columns


class Part(NamedTuple):
    """Answers that are held out, or the template, and what is known about them without outcomes.

    Attributes
    ----------
    rows
        Their places in the pairs.
    known
        All other answers.
    table
        A row for each, a column of float32 for each feature.
    """

    rows: IntArray
    known: Known
    table: pd.DataFrame


def tables(
    pairs: Pairs, answers: pd.DataFrame, groups: Sequence[str], seed: int, n_parts: int = 10
) -> Iterator[Part]:
    """Yield parts of the training answers with their features, which no outcome of theirs is in.

    Last comes the template, with all training answers known. Shows a progress bar on a terminal.

    The model of `model` begins where one has got that knows neither this part's outcomes nor those
    of every other part; so there are two of these, each for half of the parts. That of `options` is
    fitted anew each time: going on from another cost 0.0007 of accuracy.

    Parameters
    ----------
    pairs
        From `read_pairs`.
    answers
        The training answers, from which `pairs` come.
    groups
        From `available_groups`.
    seed
        The same seed holds out the same answers.
    n_parts
        Into how many parts to cut the training answers, at least.
    """
    part, n_held_out = cut(len(answers), seed, n_parts)

    def learn(half: int) -> item_response.ItemResponseModel | None:
        if "model" not in groups:
            return None
        return _fit_model(pairs, know(pairs, answers, (part < n_held_out) & (part % 2 == half)))

    def describe(number: int) -> Part:
        held_out = part == number
        rows, known = np.flatnonzero(held_out), know(pairs, answers, held_out, starts[number % 2])
        return Part(rows, known, pd.DataFrame(table(pairs, known, rows, groups)))

    starts = list(in_threads(learn, range(min(n_held_out, 2))))
    parts = in_threads(describe, range(n_held_out))
    yield from tqdm(parts, "features", n_held_out, disable=None)
    rows, known = np.arange(len(answers), len(pairs)), know(pairs, answers, None, starts[0])
    yield Part(rows, known, pd.DataFrame(table(pairs, known, rows, groups)))


def _near(pairs: Pairs, known: Known, asked: IntArray) -> Any:
    """Return the known answers near to each row that is asked for, in blocks."""
    return nearest_answers(
        (known.student, known.question),
        (pairs.numbers["student"][asked], pairs.numbers["question"][asked]),
        pairs.neighbours,
        pairs.similarity,
        N_NEAREST,
    )
