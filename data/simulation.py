"""A simulated school: who answers which question when, and which option they choose.

`data/SIMULATION.md` describes the model in words, in the order in which it is drawn. Answers follow
the multiple-choice model with a "don't know" state of Samejima (1979, A new family of models for
the multiple-choice item) and Thissen & Steinberg (1984, Psychometrika 49, eq. 5), with its two
states kept apart.
"""

from dataclasses import dataclass
from typing import NamedTuple

from common.arrays import Array
from common.errors import InputError

import numpy as np
import pandas as pd

# Of a student.
MIN_ANSWERS = 50
QUIZ_LENGTH = 10
# Minutes between the starts of two quizzes on one day.
BREAK = 20
N_OPTIONS = 4
EMPTY = -1
CONFIDENCE_LEVELS = np.array([0, 25, 50, 75, 100], np.int8)

# Standard deviations of the abilities, in logits.
GENERAL_SD, AREA_SD, TOPIC_SD = 2.0, 0.4, 0.2
# The same for what adds to them in one quiz, and on one day.
QUIZ_SD, DAY_SD = 1.55, 0.3
# Shares of variances that lie between cohorts: of the general ability, of the effect of a quiz.
COHORT_SHARE, COHORT_QUIZ_SHARE = 0.3, 0.8
# Share of the variance of the questions' easiness that lies between topics.
TOPIC_SHARE = 0.15

CHUNK = 1 << 20
# Columns of the tables of `Incidence`.
SITTING = {"student": np.int32, "quiz": np.int32, "cohort": np.int32, "start": np.int32}
ANSWER = {"sitting": np.int32, "student": np.int32, "question": np.int32, "slot": np.int8}

Rng = np.random.Generator


@dataclass(frozen=True)
class SchoolSetting:
    """Size and character of one school: of the students and questions of two tasks.

    Quantiles are equally spaced in probability.
    """

    # Students and answers of each part: the training file, then those of the test files.
    students: tuple[int, ...]
    answers: tuple[int, ...]
    n_questions: int
    n_quizzes: int
    n_cohorts: int
    # Every question has at least so many answers, over all parts.
    min_answers_per_question: int
    # Quantiles of the answers per student, for each part. Only the shape counts: they are scaled to
    # the part's number of answers.
    activity: tuple[tuple[float, ...], ...]
    # Quantiles of the logarithm of a quiz's popularity.
    popularity: tuple[float, ...]
    # How far around their own level, from 0 to 1, cohorts are set quizzes.
    level_width: float
    # Mean over questions of the logit of knowing the answer, and its standard deviation.
    easiness: float
    easiness_sd: float
    # Share of the questions whose right option is the first, second, third and fourth.
    key_shares: tuple[float, float, float, float]
    # A Monday, and the number of school days, Monday to Friday, from then to the last answer.
    first_day: str
    n_days: int
    n_topics: int
    # First and last year of birth of most students.
    birth_years: tuple[int, int]
    # Share of the students whose date of birth is not known.
    no_birth_date: float
    # Share of the others of whom it is not known whether they are premium pupils.
    no_premium: float


class Incidence(NamedTuple):
    """Who meets which question: the sittings of students, and the answers, numbered from 0."""

    # student, quiz, cohort, start (minutes from the first day, midnight), alone (not in class).
    sittings: pd.DataFrame
    answers: pd.DataFrame  # sitting, student, question, slot (place in the sitting)


class Questions(NamedTuple):
    """The n questions and how they work."""

    topic: Array  # int32 (n,)
    discrimination: Array  # slope of the logit of knowing against ability; float32 (n,)
    easiness: Array  # that logit at ability 0; float32 (n,)
    key: Array  # the correct option, 0 to 3; int8 (n,)
    attraction: Array  # logit of each option for those who do not know; float32 (n, 4)
    attraction_slope: Array  # change of that logit with ability; float32 (n, 4)


def draw_counts(rng: Rng, n: int, total: int, quantiles: tuple[float, ...], high: int) -> Array:
    """Draw n counts from MIN_ANSWERS to high of an exact sum, of the shape that quantiles give."""
    low = MIN_ANSWERS
    shape = np.interp(rng.random(n), np.linspace(0, 1, len(quantiles)), quantiles) - quantiles[0]
    # The cap makes the sum grow more slowly than the scale: find the scale by bisection.
    least, most = 0.0, 1.0
    while np.minimum(low + shape * most, high).sum() < total and most < 1e9:
        most *= 2
    for _ in range(50):
        middle = (least + most) / 2
        if np.minimum(low + shape * middle, high).sum() < total:
            least = middle
        else:
            most = middle
    counts = np.floor(np.minimum(low + shape * least, high)).astype(np.int64)
    while missing := total - int(counts.sum()):
        step = 1 if missing > 0 else -1
        room = np.flatnonzero(counts < high if step > 0 else counts > low)
        counts[rng.permutation(room)[: abs(missing)]] += step
    return counts


def draw_quizzes(rng: Rng, topic: Array, n_quizzes: int) -> Array:
    """Cut all questions, sorted by topic, into quizzes, round after round; int32 (n_quizzes,
    QUIZ_LENGTH), no question twice in a quiz, and each in one if there are enough.
    """
    rounds = []
    n_blocks = -(-len(topic) // QUIZ_LENGTH)
    for _ in range(-(-n_quizzes // n_blocks)):
        order = np.lexsort((rng.random(len(topic)), topic))
        rounds.append(np.resize(order, n_blocks * QUIZ_LENGTH).reshape(n_blocks, QUIZ_LENGTH))
    return np.concatenate(rounds)[:n_quizzes].astype(np.int32)


def draw_incidence(
    rng: Rng, setting: SchoolSetting, targets: Array, quizzes: Array, level: Array
) -> Incidence:
    """Draw who meets which question: students with so many answers, `targets`, int64 (n_students,),
    in quizzes, int32 (n_quizzes, QUIZ_LENGTH), of levels from 0 to 1.
    """
    cohort = _draw_cohorts(rng, targets, setting.n_cohorts)
    shape = np.linspace(0, 1, len(setting.popularity))
    popularity = np.exp(np.interp(rng.random(len(quizzes)), shape, setting.popularity))
    busiest = np.zeros(setting.n_cohorts, np.int64)
    np.maximum.at(busiest, cohort, targets)
    n_listed = np.minimum(np.ceil(busiest * 1.35 / QUIZ_LENGTH).astype(np.int64) + 2, len(quizzes))
    listed = _draw_lists(rng, popularity, level, n_listed, setting.level_width)
    list_start = np.cumsum(n_listed) - n_listed

    # The questions of each listed quiz that its cohort has not met in an earlier one.
    list_cohort = np.repeat(np.arange(setting.n_cohorts), n_listed)
    pair = np.repeat(list_cohort * setting.n_questions, QUIZ_LENGTH) + quizzes[listed].ravel()
    first = np.zeros(len(pair), bool)
    first[np.unique(pair, return_index=True)[1]] = True
    block_size = first.reshape(-1, QUIZ_LENGTH).sum(axis=1)
    block_questions = quizzes[listed].ravel()[first]
    block_start = np.cumsum(block_size) - block_size

    # Sittings in class: the cohort's list, with some quizzes left out.
    n_tried = np.ceil(targets * 1.25 / QUIZ_LENGTH).astype(np.int64) + 1
    student = np.repeat(np.arange(len(targets)), n_tried)
    steps = 1 + (rng.random(len(student)) < 0.15) + (rng.random(len(student)) < 0.05)
    walked = np.cumsum(steps)
    place = walked - walked[np.searchsorted(student, student)]
    kept = place < n_listed[cohort[student]]
    student, place = student[kept], place[kept]
    block = list_start[cohort[student]] + place
    left_early = np.where(rng.random(len(block)) < 0.2, rng.integers(1, 6, len(block)), 0)
    size = np.maximum(block_size[block] - left_early, 0)
    before = np.cumsum(size) - size
    before -= before[np.searchsorted(student, student)]
    size = np.clip(targets[student] - before, 0, size)
    student, place, block, size = (each[size > 0] for each in (student, place, block, size))

    # Each cohort is set two quizzes at a time, evenly over its school days; a student sits both on
    # one day, starting between 8 and 16 o'clock, with a delay that never changes their order.
    both = student * n_listed.max() + place // 2
    delay = rng.beta(1, 4, len(place))[np.searchsorted(both, both)]
    gap = setting.n_days / np.maximum(n_listed, 1)
    day = (place // 2 * 2 + delay) * gap[cohort[student]]
    sittings = {
        "student": student,
        "quiz": listed[block],
        "cohort": cohort[student],
        "start": _school_minute(day) + place % 2 * BREAK,
        "alone": False,
    }
    sitting = np.repeat(np.arange(len(student), dtype=np.int32), size)
    slot = (np.arange(len(sitting)) - (np.cumsum(size) - size)[sitting]).astype(np.int8)
    answers = {
        "sitting": sitting,
        "student": student.astype(np.int32)[sitting],
        "question": block_questions[block_start[block][sitting] + slot],
        "slot": slot,
    }
    incidence = Incidence(pd.DataFrame(sittings).astype(SITTING), pd.DataFrame(answers, copy=False))
    incidence = _go_on_alone(rng, setting, incidence, targets, cohort, quizzes, popularity)
    return _lift_rare_questions(rng, setting, incidence, cohort, quizzes)


def _draw_cohorts(rng: Rng, targets: Array, n_cohorts: int) -> Array:
    """Put students of about the same activity into cohorts of unequal size."""
    order = np.argsort(np.log(targets) + rng.normal(0, 0.5, len(targets)))
    weights = rng.gamma(4, size=n_cohorts)
    edges = np.cumsum(weights) / weights.sum() * len(targets)
    cohort = np.empty(len(targets), np.int64)
    cohort[order] = np.searchsorted(edges[:-1], np.arange(len(targets)), side="right")
    # Cohorts are numbered at random, not by activity.
    return rng.permutation(n_cohorts)[cohort]


def _draw_lists(rng: Rng, popularity: Array, level: Array, n_listed: Array, width: float) -> Array:
    """Draw each cohort's list of different quizzes, popular ones of its level first: sorting
    exponential waiting times draws by weight, one after the other (Efraimidis & Spirakis 2006).
    """
    longest = int(n_listed.max())
    cohort_level = rng.random(len(n_listed))
    lists = []
    step = max(1, 4 * CHUNK // len(popularity))
    for start in range(0, len(n_listed), step):
        near = (level - cohort_level[start : start + step, None]).astype(np.float32)
        rate = popularity.astype(np.float32) * np.exp(-0.5 * (near / width) ** 2)
        waiting = rng.standard_exponential(rate.shape, dtype=np.float32) / (rate + 1e-12)
        if longest < waiting.shape[1]:
            soonest = np.argpartition(waiting, longest - 1, axis=1)[:, :longest]
        else:
            soonest = np.broadcast_to(np.arange(waiting.shape[1]), waiting.shape)
        order = np.argsort(np.take_along_axis(waiting, soonest, axis=1), axis=1, kind="stable")
        ordered = np.take_along_axis(soonest, order, axis=1)
        lists.append(ordered[np.arange(longest) < n_listed[start : start + step, None]])
    return np.concatenate(lists)


def _school_minute(day: Array) -> Array:
    """Turn a time in school days into minutes from a Monday, in school hours, in the same order."""
    whole = np.floor(day).astype(np.int64)
    calendar = whole // 5 * 7 + whole % 5
    return (calendar * 1440 + 8 * 60 + (day - whole) * 8 * 60).astype(np.int32)


def _add_alone(
    rng: Rng, setting: SchoolSetting, incidence: Incidence, cohort: Array, more: pd.DataFrame
) -> Incidence:
    """Add answers (student, quiz, question) of students on their own: a sitting for each quiz."""
    more = more.sort_values(["student", "quiz"], kind="stable")
    sittings = more[["student", "quiz"]].drop_duplicates()
    start = _school_minute(rng.random(len(sittings)) * setting.n_days)
    sittings = sittings.assign(cohort=cohort[sittings["student"]], start=start, alone=True)
    grouped = more.groupby(["student", "quiz"])
    answers = more.assign(
        sitting=grouped.ngroup() + len(incidence.sittings), slot=grouped.cumcount()
    )
    return Incidence(
        pd.concat([incidence.sittings, sittings.astype(SITTING)], ignore_index=True),
        pd.concat([incidence.answers, answers[[*ANSWER]].astype(ANSWER)], ignore_index=True),
    )


def _go_on_alone(
    rng: Rng,
    setting: SchoolSetting,
    incidence: Incidence,
    targets: Array,
    cohort: Array,
    quizzes: Array,
    popularity: Array,
) -> Incidence:
    """Assign further quizzes to students who ran out, until each has their number of answers."""
    n_questions = setting.n_questions
    seen = np.sort(_pairs(incidence.answers, n_questions))
    missing = targets - np.bincount(incidence.answers["student"], minlength=len(targets))
    chance = np.cumsum(popularity)
    chance /= chance[-1]
    parts = [pd.DataFrame({"student": [], "quiz": [], "question": []}, dtype=np.int64)]
    for attempt in range(40):
        short = np.flatnonzero(missing)
        if not len(short):
            break
        # After some rounds, students who have met every popular quiz are offered any.
        tried = np.repeat(short, -(-missing[short] // 5))
        drawn = rng.random(len(tried))
        quiz = (
            np.searchsorted(chance, drawn) if attempt < 20 else (drawn * len(quizzes)).astype(int)
        )
        of_each = np.repeat([tried, quiz], QUIZ_LENGTH, axis=1)
        offered = pd.DataFrame(of_each.T, columns=["student", "quiz"])
        offered["question"] = quizzes[quiz].ravel()
        offered = offered.drop_duplicates(["student", "question"])
        offered = offered[~_contains(seen, _pairs(offered, n_questions))]
        offered = offered[offered.groupby("student").cumcount() < missing[offered["student"]]]
        parts.append(offered)
        seen = np.sort(np.concatenate([seen, _pairs(offered, n_questions)]))
        missing -= np.bincount(offered["student"], minlength=len(targets))
    for last in np.flatnonzero(missing).tolist():
        met = seen[np.searchsorted(seen, last * n_questions) :][: targets[last]]
        free = np.setdiff1d(np.arange(n_questions), met - last * n_questions)
        question = rng.permutation(free)[: missing[last]]
        quiz = _quiz_of(quizzes, n_questions)[question]
        parts.append(pd.DataFrame({"student": last, "quiz": quiz, "question": question}))
    return _add_alone(rng, setting, incidence, cohort, pd.concat(parts, ignore_index=True))


def _pairs(answers: pd.DataFrame, n_questions: int) -> Array:
    """Return a number for each pair of student and question; int64."""
    pairs = answers["student"].to_numpy(np.int64) * n_questions
    pairs += answers["question"].to_numpy()
    return pairs


def _contains(ordered: Array, values: Array) -> Array:
    """Return for each value whether it is in a sorted array that is not empty."""
    # np.isin builds a hash table of everything, which takes ten times as long.
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[place] == values)


def _quiz_of(quizzes: Array, n_questions: int) -> Array:
    """Return for each question one quiz that holds it."""
    quiz_of = np.zeros(n_questions, np.int64)
    quiz_of[quizzes.ravel()[::-1]] = np.repeat(np.arange(len(quizzes)), QUIZ_LENGTH)[::-1]
    return quiz_of


def _lift_rare_questions(
    rng: Rng, setting: SchoolSetting, incidence: Incidence, cohort: Array, quizzes: Array
) -> Incidence:
    """Exchange answers to common questions for answers to questions that have too few."""
    n_questions, least = setting.n_questions, setting.min_answers_per_question
    n = len(incidence.answers)
    if n < n_questions * least or len(cohort) < least:
        raise InputError(
            f"{n_questions:,} questions are too many for {n:,} answers, expected at most "
            f"{n // least:,}: choose fewer --questions or a larger --size"
        )
    quiz_of = _quiz_of(quizzes, n_questions)
    while True:
        counts = np.bincount(incidence.answers["question"], minlength=n_questions)
        rare = np.flatnonzero(counts < least)
        if not len(rare):
            return incidence
        # One exchange per student and round, and no question gives away more than it can spare.
        n_tried = 4 * int((least - counts[rare]).sum()) + 1000
        given = incidence.answers.iloc[rng.permutation(n)[:n_tried]]
        rank = given.groupby("question").cumcount()
        given = given[rank < counts[given["question"]] - least].drop_duplicates("student")
        wanted = rng.permutation(np.repeat(rare, least - counts[rare]))[: len(given)]
        given = given[: len(wanted)].assign(question=wanted, quiz=quiz_of[wanted])
        known, asked = (_pairs(each, n_questions) for each in (incidence.answers, given))
        known.sort()
        given = given[~_contains(known, asked)]
        del known
        kept = np.ones(n, bool)
        kept[given.index] = False
        # Column by column, nothing large twice: pandas would keep an index as large again.
        columns = incidence.answers.items()
        answers = {name: column.to_numpy()[kept] for name, column in columns}
        incidence = incidence._replace(answers=pd.DataFrame(answers, copy=False))
        del answers, columns
        incidence = _add_alone(rng, setting, incidence, cohort, given)


def draw_questions(rng: Rng, setting: SchoolSetting, topic: Array, counts: Array) -> Questions:
    """Draw how the questions work, of these topics and numbers of answers, (n_questions,)."""
    n = len(topic)
    # Questions that are set often are a little easier.
    often = np.log(counts)
    often = (often - often.mean()) / often.std()
    key = rng.choice(N_OPTIONS, n, p=setting.key_shares).astype(np.int8)
    attraction = rng.normal(0, 0.45, (n, N_OPTIONS)) + np.array([-0.1, 0.1, 0.1, -0.1])
    # Some distractors are hardly ever chosen.
    idle = (rng.random((n, N_OPTIONS)) < 0.05) & (np.arange(N_OPTIONS) != key[:, None])
    attraction -= 1.2 * idle
    attraction[np.arange(n), key] -= 0.2
    discrimination = np.exp(rng.normal(0, 0.45, n))
    easy = np.sqrt(1 - TOPIC_SHARE) * rng.standard_normal(n)
    attraction_slope = rng.normal(0, 0.2, (n, N_OPTIONS))
    # Topics, and so quizzes, differ in difficulty.
    of_topic = rng.standard_normal(int(topic.max()) + 1)[topic]
    easy += np.sqrt(TOPIC_SHARE) * (of_topic - np.average(of_topic, weights=counts))
    easiness = setting.easiness + setting.easiness_sd * easy + 0.35 * often
    return Questions(
        topic=topic,
        discrimination=discrimination.astype(np.float32),
        easiness=easiness.astype(np.float32),
        key=key,
        attraction=attraction.astype(np.float32),
        attraction_slope=attraction_slope.astype(np.float32),
    )


def draw_abilities(rng: Rng, cohort: Array, n_cohorts: int, area_of_topic: Array) -> Array:
    """Draw abilities, in logits, along the subject tree; float32 (n_students, n_topics)."""
    n_students, n_topics = len(cohort), len(area_of_topic)
    between = rng.standard_normal(n_cohorts, np.float32) * np.sqrt(COHORT_SHARE)
    within = rng.standard_normal(n_students, np.float32) * np.sqrt(1 - COHORT_SHARE)
    general = GENERAL_SD * (between[cohort] + within)
    area = AREA_SD * rng.standard_normal((n_students, int(area_of_topic.max()) + 1), np.float32)
    ability = TOPIC_SD * rng.standard_normal((n_students, n_topics), np.float32)
    ability += area[:, area_of_topic]
    ability += general[:, None]
    return ability.astype(np.float32)


def draw_form(rng: Rng, sittings: pd.DataFrame) -> Array:
    """Draw what quiz, class and day add to students' abilities; logits, float32 (n_sittings,)."""
    n = len(sittings)
    form = QUIZ_SD * np.sqrt(1 - COHORT_QUIZ_SHARE) * rng.standard_normal(n, np.float32)
    for sd, keys in (
        (QUIZ_SD * np.sqrt(COHORT_QUIZ_SHARE), ["cohort", "quiz"]),
        (DAY_SD, ["student", sittings["start"] // 1440]),
    ):
        form += sd * rng.standard_normal(n, np.float32)[sittings.groupby(keys).ngroup()]
    return np.asarray(form, np.float32)


def draw_choices(
    rng: Rng, incidence: Incidence, questions: Questions, ability: Array
) -> tuple[Array, Array, dict[str, float]]:
    """Draw the options chosen, 0 to 3, and confidences, 0 to 100 or EMPTY, int8 (n_answers,), from
    abilities, float32 (n_students, n_topics); return also the accuracies of predicting right or
    wrong, and the option, from the true probabilities: nobody can do better, except by luck.
    """
    n = len(incidence.answers)
    form = draw_form(rng, incidence.sittings)
    asked = rng.random(len(form), np.float32) < 0.1
    option = np.empty(n, np.int8)
    confidence = np.full(n, EMPTY, np.int8)
    right_sum = option_sum = 0.0
    for start in range(0, n, CHUNK):
        rows = slice(start, start + CHUNK)
        question, student, sitting = (
            incidence.answers[name].to_numpy()[rows] for name in ("question", "student", "sitting")
        )
        level = ability[student, questions.topic[question]] + form[sitting]
        key = np.arange(len(question)), questions.key[question]
        logit = questions.discrimination[question] * level + questions.easiness[question]
        know = 1 / (1 + np.exp(-logit))
        slope = questions.attraction_slope[question]
        drawn = np.exp(questions.attraction[question] + slope * level[:, None])
        drawn *= ((1 - know) / drawn.sum(axis=1))[:, None]
        drawn[key] += know
        probability = np.asarray(drawn, np.float32)
        right = probability[key]
        right_sum += float(np.maximum(right, 1 - right).sum(dtype=np.float64))
        option_sum += float(probability.max(axis=1).sum(dtype=np.float64))
        uniform = rng.random(len(question), np.float32)[:, None]
        chosen = (uniform > np.cumsum(probability, axis=1)[:, :-1]).sum(axis=1)
        option[rows] = chosen
        # Confidence: how probable the chosen option was to the student, seen through noise.
        stated = np.flatnonzero(asked[sitting] & (rng.random(len(question), np.float32) < 0.65))
        belief = probability[stated, chosen[stated]]
        noisy = 0.35 * np.log(belief / (1 - belief + 1e-6)) + rng.standard_normal(len(stated))
        steps = np.searchsorted([-1.6, -1.35, -0.6, 0.3], noisy)
        confidence[rows][stated] = CONFIDENCE_LEVELS[steps]
    limits = {"right_or_wrong": round(right_sum / n, 4), "option": round(option_sum / n, 4)}
    return option, confidence, limits
