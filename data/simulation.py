"""A simulated school: who answers which question when, and which option they choose.

`data/SIMULATION.md` describes the model in words, in the order in which it is drawn. Answers follow
the multiple-choice model with a "don't know" state of Samejima (1979, A new family of models for
the multiple-choice item) and Thissen & Steinberg (1984, Psychometrika 49, eq. 5), with its two
states kept apart.

Students, cohorts, quizzes, questions, sittings and answers are numbered from 0 here. An array that
holds such numbers is named after what it numbers: `student` holds one student's number a row.
"""

from dataclasses import dataclass, replace

from common.arrays import Array
from common.errors import InputError

import numpy as np
import pandas as pd

# Every student gives at least this many answers.
MIN_ANSWERS = 50
# Questions in a quiz.
QUIZ_LENGTH = 10
# Minutes between the starts of two quizzes on one day.
BREAK = 20
# Options of a question.
N_OPTIONS = 4
# The confidence of an answer for which it was not asked.
EMPTY = -1
CONFIDENCE_LEVELS = np.array([0, 25, 50, 75, 100], np.int8)
MINUTES_PER_DAY = 24 * 60

# Standard deviations of the parts of an ability, in logits.
GENERAL_SD = 2.0
AREA_SD = 0.4
TOPIC_SD = 0.2
# Standard deviations of the effects of one quiz and of one day on ability, in logits.
QUIZ_SD = 1.55
DAY_SD = 0.3
# Share of the variance of the general ability that lies between cohorts.
COHORT_SHARE = 0.3
# Share of the variance of the effect of a quiz that lies between cohorts.
COHORT_QUIZ_SHARE = 0.8
# Share of the variance of the questions' easiness that lies between topics.
TOPIC_SHARE = 0.15

# Rows that are worked on at once: large temporary arrays would not fit into memory.
CHUNK = 1 << 20
# Rounds in which students who ran out of quizzes are offered more: first popular ones, then any.
MOST_ROUNDS = 40
MOST_POPULAR_ROUNDS = 20

# Dtypes of the columns of `Incidence`.
SITTING = {"student": np.int32, "quiz": np.int32, "cohort": np.int32, "start": np.int32}
ANSWER = {"sitting": np.int32, "student": np.int32, "question": np.int32, "slot": np.int8}

Rng = np.random.Generator


@dataclass(frozen=True)
class SchoolSetting:
    """Size and character of one school, which provides the students and questions of two tasks.

    Quantiles are equally spaced in probability.
    """

    # Number of students and of answers in each part: the training file, then the test files.
    students: tuple[int, ...]
    answers: tuple[int, ...]
    n_questions: int
    n_quizzes: int
    n_cohorts: int
    # Every question has at least this many answers, over all parts.
    min_answers_per_question: int
    # Quantiles of the answers per student, for each part. Only their shape counts, because they
    # are scaled to the part's number of answers.
    activity: tuple[tuple[float, ...], ...]
    # Quantiles of the logarithm of a quiz's popularity.
    popularity: tuple[float, ...]
    # Cohorts and quizzes have a level from 0 to 1. Standard deviation of the difference between
    # the level of a cohort and of the quizzes that it is set.
    level_width: float
    # Mean over questions of the logit of knowing the answer, and its standard deviation.
    easiness: float
    easiness_sd: float
    # Share of the questions whose right option is the first, second, third and fourth.
    key_shares: tuple[float, float, float, float]
    # A Monday, on which the first answers are given.
    first_day: str
    # School days, Monday to Friday, from the first to the last answer.
    n_days: int
    n_topics: int
    # First and last year of birth of most students.
    birth_years: tuple[int, int]
    # Share of the students whose date of birth is unknown.
    no_birth_date: float
    # Share of the other students for whom it is unknown whether they are premium pupils.
    no_premium: float


@dataclass(frozen=True)
class Incidence:
    """Which student meets which question, in which sitting.

    A sitting is one student's work on one quiz.
    """

    # Columns student, quiz, cohort, start (minutes since midnight of the first day) and alone
    # (True if the student does not sit the quiz in class).
    sittings: pd.DataFrame
    # Columns sitting, student, question and slot (position of the answer in its sitting).
    answers: pd.DataFrame


@dataclass(frozen=True)
class Questions:
    """The n questions and how they work."""

    # Topic of the question, int32 (n,).
    topic: Array
    # Slope of the logit of knowing the answer against ability, float32 (n,).
    discrimination: Array
    # Logit of knowing the answer at ability 0, float32 (n,).
    easiness: Array
    # The correct option, 0 to 3, int8 (n,).
    key: Array
    # Logit of each option for students who do not know the answer, float32 (n, 4).
    attraction: Array
    # Change of that logit with ability, float32 (n, 4).
    attraction_slope: Array


@dataclass(frozen=True)
class CohortLists:
    """The quizzes that each cohort is set, one list after the other.

    The questions of a listed quiz that the cohort has not met in an earlier quiz form a block.
    """

    # Number of quizzes in the list of each cohort, and the position where its list starts.
    n_listed: Array
    list_start: Array
    # The quiz at each position.
    quiz: Array
    # Number of questions in the block of each position, and where the block starts in `questions`.
    block_size: Array
    block_start: Array
    # The questions of all blocks.
    questions: Array


@dataclass(frozen=True)
class ClassSittings:
    """The sittings in class, ordered by student; every array is of shape (n_sittings,)."""

    student: Array
    # Index of the quiz in the list of the student's cohort.
    list_index: Array
    # Position of the quiz in `CohortLists`.
    position: Array
    # Number of questions that the student answers, at least one.
    n_answers: Array


# ---- Numbers of answers, and quizzes -------------------------------------------------------------


def draw_counts(rng: Rng, n: int, total: int, quantiles: tuple[float, ...], high: int) -> Array:
    """Draw how many answers each of n students gives: MIN_ANSWERS to `high`, `total` in all.

    The quantiles give the shape of the distribution.
    """
    low = MIN_ANSWERS
    probabilities = np.linspace(0, 1, len(quantiles))
    shape = np.interp(rng.random(n), probabilities, quantiles) - quantiles[0]
    # Find the scale by bisection: because of the cap, the sum is not proportional to it.
    least = 0.0
    most = 1.0
    while np.minimum(low + shape * most, high).sum() < total and most < 1e9:
        most *= 2
    for _ in range(50):
        middle = (least + most) / 2
        if np.minimum(low + shape * middle, high).sum() < total:
            least = middle
        else:
            most = middle
    counts = np.floor(np.minimum(low + shape * least, high)).astype(np.int64)
    # Rounding leaves the sum a little off: change random students by one until it is exact.
    while missing := total - int(counts.sum()):
        if missing > 0:
            step = 1
            can_change = np.flatnonzero(counts < high)
        else:
            step = -1
            can_change = np.flatnonzero(counts > low)
        counts[rng.permutation(can_change)[: abs(missing)]] += step
    return counts


def draw_quizzes(rng: Rng, topic: Array, n_quizzes: int) -> Array:
    """Cut the questions, sorted by topic, into quizzes; int32 (n_quizzes, QUIZ_LENGTH).

    Each round cuts all questions in a new random order within topics. No question is twice in a
    quiz. Every question is in a quiz if there are enough quizzes.
    """
    n_blocks = -(-len(topic) // QUIZ_LENGTH)
    n_rounds = -(-n_quizzes // n_blocks)
    rounds = []
    for _ in range(n_rounds):
        order = np.lexsort((rng.random(len(topic)), topic))
        rounds.append(np.resize(order, n_blocks * QUIZ_LENGTH).reshape(n_blocks, QUIZ_LENGTH))
    return np.concatenate(rounds)[:n_quizzes].astype(np.int32)


# ---- Who meets which question --------------------------------------------------------------------


def draw_incidence(
    rng: Rng, setting: SchoolSetting, targets: Array, quizzes: Array, level: Array
) -> Incidence:
    """Draw which student meets which question, when and in which quiz.

    `targets` is each student's number of answers, int64 (n_students,). `quizzes` holds questions,
    int32 (n_quizzes, QUIZ_LENGTH). `level` is the level of each quiz, from 0 to 1.
    """
    cohort = _draw_cohorts(rng, targets, setting.n_cohorts)
    probabilities = np.linspace(0, 1, len(setting.popularity))
    log_popularity = np.interp(rng.random(len(quizzes)), probabilities, setting.popularity)
    popularity = np.exp(log_popularity)
    lists = _draw_lists(rng, setting, targets, cohort, quizzes, popularity, level)
    sittings = _draw_class_sittings(rng, lists, targets, cohort)
    incidence = _schedule_class_sittings(rng, setting, lists, sittings, cohort)
    incidence = _continue_alone(rng, setting, incidence, targets, cohort, quizzes, popularity)
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


def _draw_lists(
    rng: Rng,
    setting: SchoolSetting,
    targets: Array,
    cohort: Array,
    quizzes: Array,
    popularity: Array,
    level: Array,
) -> CohortLists:
    """Draw the quizzes that each cohort is set, enough for its most active student."""
    busiest = np.zeros(setting.n_cohorts, np.int64)
    np.maximum.at(busiest, cohort, targets)
    n_needed = np.ceil(busiest * 1.35 / QUIZ_LENGTH).astype(np.int64) + 2
    n_listed = np.minimum(n_needed, len(quizzes))
    quiz = _draw_listed_quizzes(rng, popularity, level, n_listed, setting.level_width)

    list_cohort = np.repeat(np.arange(setting.n_cohorts), n_listed)
    questions = quizzes[quiz].ravel()
    # One number for each pair of cohort and question.
    pair = np.repeat(list_cohort * setting.n_questions, QUIZ_LENGTH) + questions
    is_first = np.zeros(len(pair), bool)
    is_first[np.unique(pair, return_index=True)[1]] = True
    block_size = is_first.reshape(-1, QUIZ_LENGTH).sum(axis=1)
    return CohortLists(
        n_listed=n_listed,
        list_start=np.cumsum(n_listed) - n_listed,
        quiz=quiz,
        block_size=block_size,
        block_start=np.cumsum(block_size) - block_size,
        questions=questions[is_first],
    )


def _draw_listed_quizzes(
    rng: Rng, popularity: Array, level: Array, n_listed: Array, level_width: float
) -> Array:
    """Draw different quizzes for each cohort, popular ones and those of its level first.

    Sorting exponential waiting times draws by weight without repetition (Efraimidis & Spirakis
    2006).
    """
    longest = int(n_listed.max())
    cohort_level = rng.random(len(n_listed))
    lists = []
    n_at_once = max(1, 4 * CHUNK // len(popularity))
    for start in range(0, len(n_listed), n_at_once):
        cohorts = slice(start, start + n_at_once)
        difference = (level - cohort_level[cohorts, None]).astype(np.float32)
        rate = popularity.astype(np.float32) * np.exp(-0.5 * (difference / level_width) ** 2)
        waiting = rng.standard_exponential(rate.shape, dtype=np.float32) / (rate + 1e-12)
        if longest < waiting.shape[1]:
            soonest = np.argpartition(waiting, longest - 1, axis=1)[:, :longest]
        else:
            soonest = np.broadcast_to(np.arange(waiting.shape[1]), waiting.shape)
        order = np.argsort(np.take_along_axis(waiting, soonest, axis=1), axis=1, kind="stable")
        ordered = np.take_along_axis(soonest, order, axis=1)
        lists.append(ordered[np.arange(longest) < n_listed[cohorts, None]])
    return np.concatenate(lists)


def _draw_class_sittings(
    rng: Rng, lists: CohortLists, targets: Array, cohort: Array
) -> ClassSittings:
    """Let each student go through the cohort's list until the student's target is reached.

    Students leave out some quizzes and stop some early.
    """
    n_tried = np.ceil(targets * 1.25 / QUIZ_LENGTH).astype(np.int64) + 1
    student = np.repeat(np.arange(len(targets)), n_tried)
    # A step of 2 or 3 leaves out the next one or two quizzes of the list.
    steps = 1 + (rng.random(len(student)) < 0.15) + (rng.random(len(student)) < 0.05)
    walked = np.cumsum(steps)
    list_index = walked - walked[_first_row_of_group(student)]
    is_listed = list_index < lists.n_listed[cohort[student]]
    student = student[is_listed]
    list_index = list_index[is_listed]
    position = lists.list_start[cohort[student]] + list_index

    stops_early = rng.random(len(position)) < 0.2
    n_left_out = np.where(stops_early, rng.integers(1, 6, len(position)), 0)
    n_answers = np.maximum(lists.block_size[position] - n_left_out, 0)
    # Answers of the student in earlier sittings.
    n_before = np.cumsum(n_answers) - n_answers
    n_before -= n_before[_first_row_of_group(student)]
    n_answers = np.clip(targets[student] - n_before, 0, n_answers)

    kept = n_answers > 0
    return ClassSittings(student[kept], list_index[kept], position[kept], n_answers[kept])


def _first_row_of_group(group: Array) -> Array:
    """Return for each row the first row of its group, in a sorted array of groups."""
    return np.searchsorted(group, group)


def _schedule_class_sittings(
    rng: Rng, setting: SchoolSetting, lists: CohortLists, sittings: ClassSittings, cohort: Array
) -> Incidence:
    """Draw when each sitting in class starts, and list its answers.

    Each cohort is set two quizzes at a time, evenly over its school days. A student sits both on
    one day, starting between 8 and 16 o'clock, with a delay that never changes their order.
    """
    student = sittings.student
    position = sittings.position
    pair_of_quizzes = sittings.list_index // 2
    is_second = sittings.list_index % 2
    # Both quizzes of a pair have the same delay.
    student_and_pair = student * lists.n_listed.max() + pair_of_quizzes
    delay = rng.beta(1, 4, len(student))[_first_row_of_group(student_and_pair)]
    days_per_quiz = setting.n_days / np.maximum(lists.n_listed, 1)
    day = (pair_of_quizzes * 2 + delay) * days_per_quiz[cohort[student]]
    sitting_columns = {
        "student": student,
        "quiz": lists.quiz[position],
        "cohort": cohort[student],
        "start": _school_minute(day) + is_second * BREAK,
        "alone": False,
    }

    n_answers = sittings.n_answers
    sitting = np.repeat(np.arange(len(student), dtype=np.int32), n_answers)
    first_answer = np.cumsum(n_answers) - n_answers
    slot = (np.arange(len(sitting)) - first_answer[sitting]).astype(np.int8)
    answer_columns = {
        "sitting": sitting,
        "student": student.astype(np.int32)[sitting],
        "question": lists.questions[lists.block_start[position][sitting] + slot],
        "slot": slot,
    }
    return Incidence(
        sittings=pd.DataFrame(sitting_columns).astype(SITTING),
        answers=pd.DataFrame(answer_columns, copy=False),
    )


def _school_minute(day: Array) -> Array:
    """Convert times in school days to minutes since a Monday, in school hours; keep their order."""
    whole_day = np.floor(day).astype(np.int64)
    calendar_day = whole_day // 5 * 7 + whole_day % 5
    minute_of_day = 8 * 60 + (day - whole_day) * 8 * 60
    return (calendar_day * MINUTES_PER_DAY + minute_of_day).astype(np.int32)


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
    answers = answers[[*ANSWER]].astype(ANSWER)
    return Incidence(
        pd.concat([incidence.sittings, sittings.astype(SITTING)], ignore_index=True),
        pd.concat([incidence.answers, answers], ignore_index=True),
    )


def _continue_alone(
    rng: Rng,
    setting: SchoolSetting,
    incidence: Incidence,
    targets: Array,
    cohort: Array,
    quizzes: Array,
    popularity: Array,
) -> Incidence:
    """Assign further quizzes to students who ran out, until all reach their numbers of answers."""
    n_questions = setting.n_questions
    seen = np.sort(_pairs(incidence.answers, n_questions))
    missing = targets - np.bincount(incidence.answers["student"], minlength=len(targets))
    cumulative = np.cumsum(popularity)
    cumulative /= cumulative[-1]
    parts = [pd.DataFrame({"student": [], "quiz": [], "question": []}, dtype=np.int64)]
    for attempt in range(MOST_ROUNDS):
        unfinished = np.flatnonzero(missing)
        if not len(unfinished):
            break
        student = np.repeat(unfinished, -(-missing[unfinished] // 5))
        uniform = rng.random(len(student))
        if attempt < MOST_POPULAR_ROUNDS:
            quiz = np.searchsorted(cumulative, uniform)
        else:
            # Students who have met every popular quiz are offered any.
            quiz = (uniform * len(quizzes)).astype(int)
        offered = pd.DataFrame(
            {
                "student": np.repeat(student, QUIZ_LENGTH),
                "quiz": np.repeat(quiz, QUIZ_LENGTH),
                "question": quizzes[quiz].ravel(),
            }
        )
        offered = offered.drop_duplicates(["student", "question"])
        offered = offered[~_contains(seen, _pairs(offered, n_questions))]
        rank = offered.groupby("student").cumcount()
        offered = offered[rank < missing[offered["student"]]]
        parts.append(offered)
        seen = np.sort(np.concatenate([seen, _pairs(offered, n_questions)]))
        missing -= np.bincount(offered["student"], minlength=len(targets))
    # Students who still lack answers get random questions that they have not met.
    for student_left in np.flatnonzero(missing).tolist():
        first_pair = student_left * n_questions
        met = seen[np.searchsorted(seen, first_pair) :][: targets[student_left]] - first_pair
        unmet = np.setdiff1d(np.arange(n_questions), met)
        question = rng.permutation(unmet)[: missing[student_left]]
        quiz = _quiz_of_question(quizzes, n_questions)[question]
        parts.append(pd.DataFrame({"student": student_left, "quiz": quiz, "question": question}))
    return _add_alone(rng, setting, incidence, cohort, pd.concat(parts, ignore_index=True))


def _pairs(answers: pd.DataFrame, n_questions: int) -> Array:
    """Return one number for each pair of student and question, int64, ordered by student."""
    pairs = answers["student"].to_numpy(np.int64) * n_questions
    pairs += answers["question"].to_numpy()
    return pairs


def _contains(sorted_values: Array, values: Array) -> Array:
    """Return for each value whether it is in a sorted array that is not empty."""
    # np.isin builds a hash table of everything, which takes ten times as long.
    position = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    return np.asarray(sorted_values[position] == values)


def _quiz_of_question(quizzes: Array, n_questions: int) -> Array:
    """Return for each question the first quiz that holds it."""
    quiz_of_question = np.zeros(n_questions, np.int64)
    # In reverse, because the last assignment to an element counts.
    reversed_quizzes = np.repeat(np.arange(len(quizzes)), QUIZ_LENGTH)[::-1]
    quiz_of_question[quizzes.ravel()[::-1]] = reversed_quizzes
    return quiz_of_question


def _lift_rare_questions(
    rng: Rng, setting: SchoolSetting, incidence: Incidence, cohort: Array, quizzes: Array
) -> Incidence:
    """Exchange answers to common questions for answers to questions that have too few."""
    n_questions = setting.n_questions
    least = setting.min_answers_per_question
    n = len(incidence.answers)
    if n < n_questions * least or len(cohort) < least:
        raise InputError(
            f"{n_questions:,} questions are too many for {n:,} answers, expected at most "
            f"{n // least:,}: choose fewer --questions or a larger --size"
        )
    quiz_of_question = _quiz_of_question(quizzes, n_questions)
    while True:
        counts = np.bincount(incidence.answers["question"], minlength=n_questions)
        rare = np.flatnonzero(counts < least)
        if not len(rare):
            return incidence
        n_missing = least - counts[rare]
        # One exchange per student and round, and no question gives away more than it can spare.
        n_tried = 4 * int(n_missing.sum()) + 1000
        exchanged = incidence.answers.iloc[rng.permutation(n)[:n_tried]]
        rank = exchanged.groupby("question").cumcount()
        n_to_spare = counts[exchanged["question"]] - least
        exchanged = exchanged[rank < n_to_spare].drop_duplicates("student")
        wanted = rng.permutation(np.repeat(rare, n_missing))[: len(exchanged)]
        exchanged = exchanged[: len(wanted)]
        exchanged = exchanged.assign(question=wanted, quiz=quiz_of_question[wanted])
        # Students do not get questions that they have answered.
        answered = _pairs(incidence.answers, n_questions)
        answered.sort()
        exchanged = exchanged[~_contains(answered, _pairs(exchanged, n_questions))]
        del answered
        incidence = _without_answers(incidence, exchanged.index)
        incidence = _add_alone(rng, setting, incidence, cohort, exchanged)


def _without_answers(incidence: Incidence, rows: pd.Index) -> Incidence:
    """Return the incidence without some of its answers."""
    kept = np.ones(len(incidence.answers), bool)
    kept[rows] = False
    # Column by column: selecting rows of the frame would also make an index as large as a column.
    columns = {name: column.to_numpy()[kept] for name, column in incidence.answers.items()}
    return replace(incidence, answers=pd.DataFrame(columns, copy=False))


# ---- How students answer -------------------------------------------------------------------------


def draw_questions(rng: Rng, setting: SchoolSetting, topic: Array, counts: Array) -> Questions:
    """Draw how the questions work, given their topics and numbers of answers, (n_questions,)."""
    n = len(topic)
    key = rng.choice(N_OPTIONS, n, p=setting.key_shares).astype(np.int8)
    attraction = rng.normal(0, 0.45, (n, N_OPTIONS)) + np.array([-0.1, 0.1, 0.1, -0.1])
    # Some distractors are hardly ever chosen.
    is_distractor = np.arange(N_OPTIONS) != key[:, None]
    is_idle = (rng.random((n, N_OPTIONS)) < 0.05) & is_distractor
    attraction -= 1.2 * is_idle
    attraction[np.arange(n), key] -= 0.2
    discrimination = np.exp(rng.normal(0, 0.45, n))
    easiness_in_topic = rng.standard_normal(n)
    attraction_slope = rng.normal(0, 0.2, (n, N_OPTIONS))
    # Topics, and so quizzes, differ in difficulty.
    easiness_of_topic = rng.standard_normal(int(topic.max()) + 1)[topic]
    easiness_of_topic -= np.average(easiness_of_topic, weights=counts)
    standard_easiness = np.sqrt(1 - TOPIC_SHARE) * easiness_in_topic
    standard_easiness += np.sqrt(TOPIC_SHARE) * easiness_of_topic
    # Questions that are set often are a little easier.
    log_count = np.log(counts)
    frequency = (log_count - log_count.mean()) / log_count.std()
    easiness = setting.easiness + setting.easiness_sd * standard_easiness + 0.35 * frequency
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
    n_students = len(cohort)
    n_topics = len(area_of_topic)
    n_areas = int(area_of_topic.max()) + 1
    between = rng.standard_normal(n_cohorts, np.float32) * np.sqrt(COHORT_SHARE)
    within = rng.standard_normal(n_students, np.float32) * np.sqrt(1 - COHORT_SHARE)
    general = GENERAL_SD * (between[cohort] + within)
    area = AREA_SD * rng.standard_normal((n_students, n_areas), np.float32)
    ability = TOPIC_SD * rng.standard_normal((n_students, n_topics), np.float32)
    ability += area[:, area_of_topic]
    ability += general[:, None]
    return ability.astype(np.float32)


def draw_form(rng: Rng, sittings: pd.DataFrame) -> Array:
    """Draw the effect of quiz, class and day on ability in each sitting.

    In logits, float32 (n_sittings,).
    """
    n = len(sittings)
    student_quiz_sd = QUIZ_SD * np.sqrt(1 - COHORT_QUIZ_SHARE)
    form = student_quiz_sd * rng.standard_normal(n, np.float32)
    cohort_quiz_sd = QUIZ_SD * np.sqrt(COHORT_QUIZ_SHARE)
    cohort_quiz = sittings.groupby(["cohort", "quiz"]).ngroup()
    form += cohort_quiz_sd * rng.standard_normal(n, np.float32)[cohort_quiz]
    student_day = sittings.groupby(["student", sittings["start"] // MINUTES_PER_DAY]).ngroup()
    form += DAY_SD * rng.standard_normal(n, np.float32)[student_day]
    return np.asarray(form, np.float32)


@dataclass(frozen=True)
class Choices:
    """The options that students chose, and how well these can be predicted."""

    # The chosen option, 0 to 3, int8 (n_answers,).
    option: Array
    # The stated confidence, 0 to 100, or EMPTY, int8 (n_answers,).
    confidence: Array
    # The expected accuracies of the best predictions of right or wrong, and of the option. They are
    # made from the true probabilities, so that no other prediction is better, except by luck.
    limits: dict[str, float]


def draw_choices(rng: Rng, incidence: Incidence, questions: Questions, ability: Array) -> Choices:
    """Draw the option and the confidence of each answer.

    `ability` is in logits, float32 (n_students, n_topics).
    """
    n = len(incidence.answers)
    form = draw_form(rng, incidence.sittings)
    asks_confidence = rng.random(len(form), np.float32) < 0.1
    option = np.empty(n, np.int8)
    confidence = np.full(n, EMPTY, np.int8)
    right_sum = 0.0
    option_sum = 0.0
    for start in range(0, n, CHUNK):
        rows = slice(start, start + CHUNK)
        question = incidence.answers["question"].to_numpy()[rows]
        student = incidence.answers["student"].to_numpy()[rows]
        sitting = incidence.answers["sitting"].to_numpy()[rows]
        answer_ability = ability[student, questions.topic[question]] + form[sitting]
        probability = _option_probabilities(questions, question, answer_ability)
        right = probability[np.arange(len(question)), questions.key[question]]
        right_sum += float(np.maximum(right, 1 - right).sum(dtype=np.float64))
        option_sum += float(probability.max(axis=1).sum(dtype=np.float64))
        uniform = rng.random(len(question), np.float32)[:, None]
        chosen = (uniform > np.cumsum(probability, axis=1)[:, :-1]).sum(axis=1)
        option[rows] = chosen
        # Confidence follows, through noise, the probability of the chosen option.
        is_stated = asks_confidence[sitting] & (rng.random(len(question), np.float32) < 0.65)
        stated = np.flatnonzero(is_stated)
        belief = probability[stated, chosen[stated]]
        noise = rng.standard_normal(len(stated))
        feeling = 0.35 * np.log(belief / (1 - belief + 1e-6)) + noise
        level = np.searchsorted([-1.6, -1.35, -0.6, 0.3], feeling)
        confidence[rows][stated] = CONFIDENCE_LEVELS[level]
    limits = {"right_or_wrong": round(right_sum / n, 4), "option": round(option_sum / n, 4)}
    return Choices(option, confidence, limits)


def _option_probabilities(questions: Questions, question: Array, ability: Array) -> Array:
    """Return the probability of each option for students of some abilities, float32 (n, 4)."""
    logit = questions.discrimination[question] * ability + questions.easiness[question]
    knows = 1 / (1 + np.exp(-logit))
    slope = questions.attraction_slope[question]
    probability = np.exp(questions.attraction[question] + slope * ability[:, None])
    # Students who do not know the answer choose in proportion to the attractions.
    probability *= ((1 - knows) / probability.sum(axis=1))[:, None]
    probability[np.arange(len(question)), questions.key[question]] += knows
    return np.asarray(probability, np.float32)
