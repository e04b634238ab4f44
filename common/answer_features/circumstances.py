"""Groups of features from the answer metadata: quiz, order, class, time, confidence.

The functions are as those of `groups`; all need the answer metadata of training answers and
template. When a quiz was taken and in which order is known of the pairs to be predicted, too: rows
are ranked among all pairs, and nothing but the outcomes of `Known` is looked at.
"""

from typing import Any

from common.answer_features.known import N_OPTIONS, Known, shrunk_mean
from common.answer_features.pairs import Pairs
from common.answer_features.rates import Columns, look_up, rates_of
from common.answers import IntArray

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]

# How many known answers before, and how many after, are features of their own.
N_STEPS = 2
# Minutes, more than there are in the four years that dates may span; the last one is no date.
_MINUTES = 1 << 21
_DAYS_PER_YEAR = 365.25


def quiz(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How the student did in the quiz, the question in it, and the quiz as a whole.

    With the number of known answers of each, how many of its questions the student was asked, and,
    if the options are known, which places the student preferred in it, as `groups.habits`.
    """
    keys = [("student", "quiz"), ("question", "quiz"), ("quiz",)]
    columns = rates_of(pairs, known, asked, keys)
    number = pairs.number("student", "quiz")
    n_groups = int(number.max(initial=-1)) + 1
    size = np.bincount(number[number >= 0], minlength=n_groups)
    columns["quiz_size"] = look_up(size.astype(np.float32), number[asked])
    if known.option is not None and known.option_share is not None:
        assert known.outcome_of_option is not None
        of_outcome = np.argsort(known.outcome_of_option, axis=1)[pairs.numbers["question"][asked]]
        mean = np.zeros((len(asked), N_OPTIONS), np.float32)
        for o in range(N_OPTIONS):
            excess = (known.option == o + 1) - known.option_share[known.question, o]
            of_group = shrunk_mean(number[known.rows], excess, n_groups)[0]
            mean[:, o] = look_up(of_group, number[asked])
        in_order = np.take_along_axis(mean, of_outcome, 1)
        columns |= {f"quiz_habit_{o}": in_order[:, o] for o in range(N_OPTIONS)}
    return columns


def order(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How the student's answers just before and just after, in the same quiz, turned out.

    What they exceed expectation by, and which of the question's options was at the place chosen.
    Answers of the same minute count as later ones.
    """
    moment = _moment(pairs)
    has_moment = np.flatnonzero(moment[known.rows] >= 0)
    in_order = has_moment[np.argsort(moment[known.rows][has_moment], kind="stable")]
    ordered = moment[known.rows][in_order]
    own = moment[asked]
    position = np.searchsorted(ordered, own)
    question = pairs.numbers["question"][asked]
    columns: Columns = {}
    for step in (*range(-N_STEPS, 0), *range(N_STEPS)):
        place = position + step
        inside = (place >= 0) & (place < len(ordered)) & (own >= 0)
        if len(ordered):
            place = np.clip(place, 0, len(ordered) - 1)
            inside &= ordered[place] // _MINUTES == own // _MINUTES
        answer = in_order[place[inside]]
        name = f"before_{-step}" if step < 0 else f"after_{step + 1}"
        columns[name] = np.full(len(asked), np.nan, np.float32)
        columns[name][inside] = known.residual[answer]
        if known.option is not None and known.outcome_of_option is not None:
            outcome = known.outcome_of_option[question[inside], known.option[answer] - 1]
            columns[f"{name}_option"] = np.full(len(asked), np.nan, np.float32)
            columns[f"{name}_option"][inside] = outcome
    return columns


def classes(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How the class and the scheme of work do, on the whole, on the question and in the quiz."""
    keys = [
        ("group",),
        ("question", "group"),
        ("group", "quiz"),
        ("scheme",),
        ("question", "scheme"),
    ]
    return rates_of(pairs, known, asked, keys)


def time(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """When the answer was given: hour, weekday, place in the quiz, minutes since the last answer.

    With how the student did on that day, and the age then, if the student metadata are there.
    """
    date = _minutes(pairs)
    own = date[asked]
    is_missing = np.isnat(own)
    minute = own.astype(np.int64)
    # 1970 began on a Thursday; Monday is 0.
    columns: Columns = {
        "hour": np.where(is_missing, np.nan, minute % 1440 / 60),
        "weekday": np.where(is_missing, np.nan, (minute // 1440 + 3) % 7),
    }
    columns |= rates_of(pairs, known, asked, [("student", "day")])
    moment = _moment(pairs)
    ordered = np.sort(moment[moment >= 0])
    begin = np.searchsorted(ordered, moment[asked] // _MINUTES * _MINUTES)
    place = np.searchsorted(ordered, moment[asked]) - begin
    columns["place_in_quiz"] = np.where(moment[asked] < 0, np.nan, place)
    # The last answer at an earlier minute, whatever the quiz.
    moment = _join(pairs.numbers["student"], date)
    ordered = np.sort(moment[moment >= 0])
    if len(ordered):
        last = ordered[np.maximum(np.searchsorted(ordered, moment[asked]) - 1, 0)]
        is_own = (last // _MINUTES == moment[asked] // _MINUTES) & (last < moment[asked])
        columns["gap"] = np.where(is_own, moment[asked] - last, np.nan)
    else:
        columns["gap"] = np.full(len(asked), np.nan)
    if pairs.students is not None:
        days = (own - pairs.students["DateOfBirth"].to_numpy()[asked]) / np.timedelta64(1, "D")
        columns["age_then"] = days / _DAYS_PER_YEAR
    return columns


def confidence(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How sure the student said to be of this answer, and usually is; most say nothing.

    Confidence is stated with the answer, so that it is known of the pairs to be predicted, too.
    """
    assert pairs.circumstances is not None
    stated, student = pairs.circumstances["Confidence"].to_numpy(), pairs.numbers["student"]
    is_there = ~np.isnan(stated)
    mean, count = shrunk_mean(
        student[is_there],
        stated[is_there],
        pairs.n_students,
        float(stated[is_there].mean()) if is_there.any() else 0.0,
    )
    usual = np.where(count > 0, mean, np.nan)[student[asked]]
    return {
        "confidence": stated[asked],
        "usual_confidence": usual,
        "confidence_above_usual": stated[asked] - usual,
        "confidence_count": count[student[asked]],
    }


def _moment(pairs: Pairs) -> npt.NDArray[np.int64]:
    """Order the rows by student and quiz, and within these by date; -1 where one is missing."""
    return _join(pairs.number("student", "quiz"), _minutes(pairs))


def _minutes(pairs: Pairs) -> npt.NDArray[np.datetime64]:
    assert pairs.circumstances is not None
    return pairs.circumstances["DateAnswered"].to_numpy().astype("datetime64[m]")


def _join(number: IntArray, date: npt.NDArray[np.datetime64]) -> npt.NDArray[np.int64]:
    """Join a number and a date to one number; -1 where either is missing."""
    is_missing = np.isnat(date) | (number < 0)
    minute = date.astype(np.int64)
    first = int(minute[~is_missing].min(initial=np.iinfo(np.int64).max))
    # Dates further from the first one than any official one are all as late as can be.
    later = np.clip(minute - first, 0, _MINUTES - 1)
    return np.where(is_missing, -1, number.astype(np.int64) * _MINUTES + later)
