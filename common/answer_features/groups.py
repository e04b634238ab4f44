"""The groups of features: functions of the pairs, the known outcomes, and the rows asked for.

They return columns by name, one value for each row asked for, NaN where there is none. Of the pairs
to be predicted all is known but the outcomes, also order and confidence.
"""

from collections.abc import Callable, Sequence

from common.answer_features.known import Columns, Known, shrunk_mean
from common.answer_features.nearest import visit_nearest
from common.answer_features.pairs import MINUTES, SUBJECT_LEVELS, Pairs
from common.arrays import Array, FloatArray, IntArray
from common.item_response import ItemResponse, ItemResponseOptions
from common.item_response.options import N_OPTIONS

import numpy as np

Group = Callable[[Pairs, Known, IntArray], Columns]

# How many answers count as near, of how many the option is a feature; powers of the similarity as
# weights, and the weight of no effect: chosen on training answers (tests/benchmarks/README.md).
_N_NEAREST, _N_OPTIONS_SHOWN = 32, 4
_DECAYS = ((2, 2.0), (6, 1.0), (15, 0.5))
# How many known answers before, and how many after, are features of their own.
_N_STEPS = 2
# Ages are those at the start of the year in which most answers were given.
_YEAR = np.datetime64("2019-01-01")
_DAYS_PER_YEAR = 365.25
_MIN_PROBABILITY = np.float32(1e-6)
_GUESSING = 0.2
# Steps of a model that goes on from one of fewer answers, and of one of wrong answers.
_STEPS_FROM_START, _STEPS_OF_DISTRACTORS = 3, 8


# ---- From the training file ------------------------------------------------------------------


def model(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Predict by item response theory with context: logit of being right, and its parts."""
    fitted = fit_model(pairs, known)
    student, question = (pairs.numbers[name][asked] for name in ("student", "question"))
    context = pairs.context[asked]
    p_right = fitted.predict_proba(student, question, context=context)[:, 1]
    parts = fitted.explain(student, question, context=context)
    columns = {f"model_{name}": part for name, part in vars(parts).items()}
    return {"model": _logit(p_right)} | columns


def fit_model(pairs: Pairs, known: Known) -> ItemResponse:
    """Fit what `model` predicts with, or return it where that is done."""
    if known.model is None:
        n_steps = None if known.start is None else _STEPS_FROM_START
        known.model = ItemResponse(guessing=_GUESSING, n_steps=n_steps).fit(
            known.student,
            known.question,
            known.is_correct,
            context=pairs.context[known.rows],
            start=known.start,
        )
    return known.model


def options(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Log probability of each outcome, the right option's first; takes far longer than `model`."""
    fitted = ItemResponseOptions(guessing=_GUESSING).fit(
        known.student,
        known.question,
        known.option,
        known.correct_option,
        context=pairs.context[known.rows],
    )
    student, question = (pairs.numbers[name][asked] for name in ("student", "question"))
    p = fitted.predict_proba(student, question, context=pairs.context[asked])
    return _by_outcome("model", np.log(np.maximum(p, _MIN_PROBABILITY)), known, question)


def rates(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Rate of the question, of the student above it, and the numbers of answers that tell."""
    student, question = (pairs.numbers[name][asked] for name in ("student", "question"))
    return {
        "question_rate": known.question_rate[question],
        "question_count": np.bincount(known.question, minlength=pairs.n_questions)[question],
        "student_rate": known.student_rate[student],
        "student_count": np.bincount(known.student, minlength=pairs.n_students)[student],
    }


def distractors(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How often each option is chosen, and whether who errs takes the most popular one (logit)."""
    student, question = (pairs.numbers[name][asked] for name in ("student", "question"))
    columns = _by_outcome("share", known.option_share[question], known, question)
    outcome = known.outcome_of_option[known.question, known.option - 1]
    is_wrong = np.flatnonzero(outcome > 0)
    columns["distractor"] = np.zeros(len(asked))
    if len(is_wrong):
        # Among wrong answers, the most popular distractor stands for "right".
        fitted = ItemResponse(n_dimensions=1, guessing=0.0, n_steps=_STEPS_OF_DISTRACTORS).fit(
            known.student[is_wrong], known.question[is_wrong], outcome[is_wrong] == 1
        )
        columns["distractor"] = _logit(fitted.predict_proba(student, question)[:, 1])
    return columns


def context(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Means of residuals on the most similar questions, by powers of similarity; how similar."""
    names = [f"{kind}_{power}" for power, _ in _DECAYS for kind in ("near", "nearness")]
    return {name: known.near[name] for name in names}


def habits(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How far the student's answers, and those to similar questions alone, exceed the usual share
    of the place of each option of the question, since who does not know often clicks at one place;
    and which of its options was at the place chosen in the four nearest answers.
    """
    question = pairs.numbers["question"][asked]
    columns = _numbered("place", np.argsort(known.outcome_of_option, axis=1)[question])
    habit = _habits_in(("student",), pairs, known, asked)
    columns |= _by_outcome("habit", habit, known, question)
    for power, _ in _DECAYS:
        columns |= _numbered(f"habit_{power}", known.near[f"habit_{power}"])
    return columns | _numbered("near_option", known.near["near_option"])


# ---- From the metadata of questions and students ---------------------------------------------


def subjects(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How the student did on the question's subject, at three levels of the tree, and how often."""
    return rates_of(pairs, known, asked, [("student", level) for level in SUBJECT_LEVELS])


def students(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Gender, age in years at the start of 2019, and pupil premium."""
    assert pairs.students is not None
    own = pairs.students.iloc[pairs.numbers["student"][asked]]
    age = (_YEAR - own["DateOfBirth"]).dt.days / _DAYS_PER_YEAR
    told = {"gender": own["Gender"], "age": age, "premium": own["PremiumPupil"]}
    return {name: column.where(column >= 0).to_numpy() for name, column in told.items()}


# ---- From the answer metadata ----------------------------------------------------------------


def quiz(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How the student did in the quiz, the question in it, the quiz as a whole, and its size."""
    keys = [("student", "quiz"), ("question", "quiz"), ("quiz",)]
    columns = rates_of(pairs, known, asked, keys)
    number = pairs.number("student", "quiz")
    size = np.bincount(number[number >= 0]).astype(np.float32)
    columns["quiz_size"] = _look_up(size, number[asked])
    if len(known.option):
        habit = _habits_in(("student", "quiz"), pairs, known, asked)
        columns |= _by_outcome("quiz_habit", habit, known, pairs.numbers["question"][asked])
    return columns


def order(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How the answers next to it in the quiz turned out; those of the same minute come later."""
    moment = pairs.moments("student", "quiz")
    own, of_known = moment[asked], moment[known.rows]
    del moment
    answer = np.argsort(of_known, kind="stable").astype(np.int32)[np.sum(of_known < 0) :]
    ordered = of_known[answer]
    position = _find(ordered, own) + _N_STEPS
    # So that there is something before the first one, and after the last.
    ordered, answer = np.pad(ordered, _N_STEPS, constant_values=-1), np.pad(answer, _N_STEPS)
    question = pairs.numbers["question"][asked]
    columns: Columns = {}
    for step in (*range(-_N_STEPS, 0), *range(_N_STEPS)):
        place = position + step
        inside = (own >= 0) & (ordered[place] // MINUTES == own // MINUTES)
        near = answer[place[inside]]
        name = f"before_{-step}" if step < 0 else f"after_{step + 1}"
        found = {name: known.residual[near]}
        if len(known.option):
            option = known.option[near] - 1
            found[f"{name}_option"] = known.outcome_of_option[question[inside], option]
        for column, values in found.items():
            columns[column] = np.full(len(asked), np.nan, np.float32)
            columns[column][inside] = values
    return columns


def classes(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How the class and the scheme of work do, on the whole, on the question and in the quiz."""
    of_group = [("group",), ("question", "group"), ("group", "quiz")]
    return rates_of(pairs, known, asked, [*of_group, ("scheme",), ("question", "scheme")])


def time(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Hour, weekday, place in the quiz, minutes since the last answer, how the day went, age."""
    assert pairs.circumstances is not None

    def look_up(*names: str) -> tuple[IntArray, IntArray]:
        moment = pairs.moments(*names)
        own = moment[asked]
        moment.sort()
        return own, moment[np.searchsorted(moment, 0) :]

    date = pairs.circumstances["DateAnswered"].iloc[asked]
    hour = (date.dt.hour * 60 + date.dt.minute) / 60
    columns: Columns = {"hour": hour.to_numpy(), "weekday": date.dt.day_of_week.to_numpy()}
    columns |= rates_of(pairs, known, asked, [("student", "day")])
    own, ordered = look_up("student", "quiz")
    place = _find(ordered, own) - _find(ordered, own // MINUTES * MINUTES)
    columns["place_in_quiz"] = np.where(own < 0, np.nan, place)
    # The last answer at an earlier minute, whatever the quiz.
    own, ordered = look_up("student")
    last = np.append(-1, ordered)[_find(ordered, own)]
    is_own = (last // MINUTES == own // MINUTES) & (last < own)
    columns["gap"] = np.where(is_own, own - last, np.nan)
    if pairs.students is not None:
        birth = pairs.students["DateOfBirth"].to_numpy()[pairs.numbers["student"][asked]]
        columns["age_then"] = (date.to_numpy() - birth) / np.timedelta64(1, "D") / _DAYS_PER_YEAR
    return columns


def confidence(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """How sure the student said to be of this answer, 0 to 100, and usually is; mostly NaN."""
    assert pairs.circumstances is not None
    stated, student = pairs.circumstances["Confidence"].to_numpy(), pairs.numbers["student"]
    is_there = ~np.isnan(stated)
    overall = float(stated[is_there].mean()) if is_there.any() else 0.0
    mean, count = shrunk_mean(student[is_there], stated[is_there], pairs.n_students, overall)
    usual = np.where(count > 0, mean, np.nan)[student[asked]]
    return {
        "confidence": stated[asked],
        "usual_confidence": usual,
        "confidence_above_usual": stated[asked] - usual,
        "confidence_count": count[student[asked]],
    }


GROUPS: dict[str, Group] = {
    function.__name__: function
    for function in (
        model,
        options,
        rates,
        distractors,
        subjects,
        context,
        habits,
        students,
        quiz,
        order,
        classes,
        time,
        confidence,
    )
}
NEEDS = {
    "AnswerValue and CorrectAnswer of the training answers": ("options", "distractors", "habits"),
    "the question metadata": ("subjects",),
    "the student metadata": ("students",),
    "the answer metadata, and AnswerId in the training answers and the template": (
        *("quiz", "order", "classes", "time", "confidence"),
    ),
}


# ---- What the groups share -------------------------------------------------------------------


def rates_of(
    pairs: Pairs, known: Known, asked: IntArray, keys: Sequence[tuple[str, ...]]
) -> Columns:
    """Return mean residual and number of known answers by each key, of one or two `numbers`."""
    columns: Columns = {}
    for key in keys:
        name = "_".join(key)
        found = _mean_in(key, pairs, known, asked, known.residual)
        columns[f"{name}_rate"], columns[f"{name}_count"] = found
    return columns


def _habits_in(key: tuple[str, ...], pairs: Pairs, known: Known, asked: IntArray) -> FloatArray:
    """Return how much each place is preferred in what the key names, shape (asked, options)."""
    preferred = []
    for place in range(N_OPTIONS):
        excess = (known.option == place + 1) - known.option_share[known.question, place]
        preferred.append(_mean_in(key, pairs, known, asked, excess)[0])
    return np.column_stack(preferred)


def _mean_in(
    key: tuple[str, ...], pairs: Pairs, known: Known, asked: IntArray, value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return means of known answers in what the key names, shrunk towards 0; and how many."""
    number = pairs.number(*key)
    n_groups, group, own = int(number.max(initial=-1)) + 1, number[known.rows], number[asked]
    # Unless it is kept, it is large.
    del number
    mean, count = shrunk_mean(group, value, n_groups)
    return _look_up(mean, own), _look_up(count, own)


def look_near(pairs: Pairs, known: Known, asked: IntArray) -> Columns:
    """Return what `context` and `habits` tell of the known answers near to each row asked for."""
    student, question = (pairs.numbers[name][asked] for name in ("student", "question"))
    n_places = N_OPTIONS if len(known.option) else 0
    shape = len(asked), _N_OPTIONS_SHOWN if n_places else 0
    found: Columns = {"near_option": np.full(shape, np.nan, np.float32)}
    for power, _ in _DECAYS:
        found[f"near_{power}"], found[f"nearness_{power}"] = np.zeros((2, len(asked)), np.float32)
        found[f"habit_{power}"] = np.zeros((len(asked), n_places), np.float32)

    def look(rows: IntArray, nearest: IntArray, similarity: FloatArray) -> None:
        residual = np.where(nearest >= 0, known.residual[nearest], 0)
        if n_places:
            excess = known.option[nearest][:, :, None] == np.arange(1, n_places + 1)
            excess = excess - known.option_share[known.question[nearest]]
            excess = np.where((nearest >= 0)[:, :, None], excess, 0)
            places = np.argsort(known.outcome_of_option[question[rows]], axis=1)
        for power, shrinkage in _DECAYS:
            weight = similarity**power
            total = weight.sum(axis=1)
            found[f"near_{power}"][rows] = (weight * residual).sum(axis=1) / (total + shrinkage)
            found[f"nearness_{power}"][rows] = total
            if n_places:
                preferred = (weight[:, None] @ excess)[:, 0] / (total + shrinkage)[:, None]
                found[f"habit_{power}"][rows] = np.take_along_axis(preferred, places, 1)
        if n_places:
            shown = nearest[:, :_N_OPTIONS_SHOWN]
            option = known.option[shown] - 1
            outcome = np.take_along_axis(known.outcome_of_option[question[rows]], option, 1)
            found["near_option"][rows, : shown.shape[1]] = np.where(shown >= 0, outcome, np.nan)

    answers, asked_here = (known.student, known.question), (student, question)
    similar = pairs.neighbours, pairs.similarity
    visit_nearest(answers, asked_here, pairs.n_students, *similar, _N_NEAREST, look)
    return found


def _find(ordered: IntArray, wanted: IntArray) -> IntArray:
    """Return how many of the ordered numbers are less than each of those wanted."""
    # Looking millions up from the least on is much faster than in any order.
    order = np.argsort(wanted)
    place = np.empty(len(wanted), np.int64)
    place[order] = np.searchsorted(ordered, wanted[order])
    return place


def _look_up(values: FloatArray, number: IntArray) -> FloatArray:
    """Return the value of each number, NaN for -1."""
    return np.append(values, np.float32(np.nan))[number]


def _by_outcome(name: str, of_place: FloatArray, known: Known, question: IntArray) -> Columns:
    """Number columns of the options of questions, shape (questions, options), by their outcome."""
    place = np.argsort(known.outcome_of_option, axis=1)[question]
    return _numbered(name, np.take_along_axis(of_place, place, 1))


def _numbered(name: str, columns: Array) -> Columns:
    return {f"{name}_{number}": column for number, column in enumerate(columns.T)}


def _logit(p: FloatArray) -> FloatArray:
    p = np.clip(p, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
    return np.log(p / (1 - p))
