"""A simulated school: who answers which question when, and which option they choose.

`data/SIMULATION.md` describes the model in words, in the order of this code. A student either knows
the answer to a question, or picks an option by its attraction: the multiple-choice model with a
"don't know" state of Samejima (1979, A new family of models for the multiple-choice item) and
Thissen & Steinberg (1984, Psychometrika 49, eq. 5).

A cohort is a class. A sitting is the work of one student on one quiz. Students, cohorts, quizzes,
questions, sittings and answers are numbered from 0. An array of such numbers has the name of the
thing in the singular: `student[i]` is the number of the student in row i.
"""

import math
from dataclasses import dataclass, replace

from common.arrays import Array
from common.errors import InputError

import numpy as np
import pandas as pd

# Every student gives at least this many answers.
MIN_ANSWERS = 50
# Questions in a quiz.
QUIZ_LENGTH = 10
# Minutes between the starts of the two quizzes that a student sits on one day.
QUIZ_INTERVAL = 20
# Options of a question.
N_OPTIONS = 4
# Stands for the confidence of an answer if the student has stated none.
NO_CONFIDENCE = -1
CONFIDENCE_LEVELS = np.array([0, 25, 50, 75, 100], np.int8)
MINUTES_PER_DAY = 24 * 60
# School is from 8 to 16 o'clock. Both numbers are in minutes.
SCHOOL_START = 8 * 60
SCHOOL_LENGTH = 8 * 60

# Standard deviations of the parts of an ability, in logits.
GENERAL_SD = 2.0
AREA_SD = 0.4
TOPIC_SD = 0.2
# Standard deviations of the effects of one quiz and of one day on a student's ability, in logits.
QUIZ_SD = 1.55
DAY_SD = 0.3
# Share of the variance of the general ability that comes from differences between cohorts, that
# is, classes. The rest comes from differences between the students of a cohort.
COHORT_VARIANCE_SHARE = 0.3
# Share of the variance of a quiz's effect that comes from differences between cohorts. The rest
# comes from differences between the students of a cohort.
COHORT_QUIZ_VARIANCE_SHARE = 0.8
# Share of the variance of the easiness that comes from differences between topics. The rest comes
# from differences between the questions of a topic.
TOPIC_VARIANCE_SHARE = 0.15
# How much easier a question is, in logits, if the logarithm of its number of answers is larger by
# one standard deviation.
FREQUENCY_SLOPE = 0.35

# The number of questions on which a planted misconception leads to a wrong option.
MISCONCEPTION_LENGTH = 8
# Share of the students who have a given misconception.
MISCONCEPTION_SHARE = 0.2
# If a student with a misconception answers one of these questions wrong, the answer is with this
# probability the option to which the misconception leads. Otherwise the student chooses among the
# wrong options like any other student.
MISCONCEPTION_STRENGTH = 0.8

# Number of rows to work on at a time, since larger temporary arrays would not fit into memory.
CHUNK = 1 << 20
# Students whose class has too few quizzes for them draw further quizzes, in rounds: in each round,
# as many quizzes as their missing answers should need. There are at most this many rounds.
MOST_ROUNDS = 40
# In the rounds before this one (counted from 0), popular quizzes are drawn more often. From this
# round on, all quizzes are equally probable.
FIRST_EQUAL_ROUND = 20

# Dtypes of the columns of the tables `Incidence.sittings` and `Incidence.answers`. The sittings
# have a further column, "alone", with the dtype bool.
SITTING_DTYPES = {"student": np.int32, "quiz": np.int32, "cohort": np.int32, "start": np.int32}
ANSWER_DTYPES = {
    "sitting": np.int32,
    "student": np.int32,
    "question": np.int32,
    "slot": np.int8,
}

Rng = np.random.Generator


@dataclass(frozen=True)
class SchoolSetting:
    """The parameters of the simulation of two tasks, 1/2 or 3/4.

    Quantiles are given from the minimum to the maximum, at equal steps of probability.
    """

    # Number of students in each file: first the training file, then the test files.
    students: tuple[int, ...]
    # Number of answers in each file, in the same order.
    answers: tuple[int, ...]
    n_questions: int
    n_quizzes: int
    n_cohorts: int
    # Every question has at least this many answers in all files together.
    min_answers_per_question: int
    # For each file, quantiles of the number of answers per student. They only give the shape of the
    # distribution: `draw_counts` shifts it to begin at MIN_ANSWERS, and scales it to the number of
    # answers in the file.
    activity: tuple[tuple[float, ...], ...]
    # Quantiles of the logarithm of a quiz's popularity. The popularity is a weight: popular quizzes
    # are drawn more often.
    popularity: tuple[float, ...]
    # Cohorts and quizzes have levels from 0 to 1, and a cohort mostly gets quizzes of a similar
    # level. The weight of a quiz in the draw falls with the difference of the two levels, like a
    # normal density with this standard deviation.
    level_width: float
    # Mean and standard deviation of the questions' easiness. The easiness of a question is the
    # logit of the probability that a student with ability 0 knows the answer.
    easiness: float
    easiness_sd: float
    # Share of the questions whose right option is the first, second, third and fourth.
    key_shares: tuple[float, float, float, float]
    # The date of the first answers, which must be a Monday.
    first_day: str
    # School days, Monday to Friday, from the first to the last answer.
    n_days: int
    n_topics: int
    # The first and the last birth_year; see `School` in generate_sample.py.
    birth_years: tuple[int, int]
    # Share of the students whose date of birth is unknown. For these students, the official column
    # PremiumPupil (whether the student is financially disadvantaged) is empty too.
    share_without_birth_date: float
    # Share of empty cells in PremiumPupil among the students with a date of birth.
    share_without_premium: float


@dataclass(frozen=True)
class Incidence:
    """The answers that students give, without their outcomes, and the sittings they are part of."""

    # A row for each sitting: student, quiz, cohort, start (minutes since midnight of the first day)
    # and alone (True if the sitting is not in class).
    sittings: pd.DataFrame
    # A row for each answer: sitting, student, question and slot (position in the sitting, from 0).
    answers: pd.DataFrame


@dataclass(frozen=True)
class Questions:
    """The parameters of the n questions."""

    # Topic of the question, int32 (n,).
    topic: Array
    # How much the logit of knowing the answer rises per unit of ability, float32 (n,).
    discrimination: Array
    # Logit of the probability that a student with ability 0 knows the answer, float32 (n,).
    easiness: Array
    # The right option, 0 to 3, int8 (n,).
    key: Array
    # How strongly each option attracts students who do not know the answer, float32 (n, 4). At
    # ability 0, they choose an option with a probability in proportion to exp(attraction).
    attraction: Array
    # Change of `attraction` per unit of ability, float32 (n, 4).
    attraction_slope: Array


@dataclass(frozen=True)
class CohortLists:
    """A list of quizzes for each cohort; the lists are stored one after the other.

    A row is a quiz in the list of a cohort. Each row has a block: the questions of the quiz that no
    earlier quiz of the same list holds.
    """

    # Number of quizzes in the list of each cohort, shape (n_cohorts,).
    n_listed: Array
    # Index in `quiz` at which the list of each cohort begins, shape (n_cohorts,).
    list_start: Array
    # The quizzes of all lists: those of the first cohort's list, then those of the second cohort's
    # list, and so on. Shape (n_rows,).
    quiz: Array
    # For each element of `quiz`, the number of questions in its block. The block holds those
    # questions of the quiz that no earlier quiz of the same list holds. Shape (n_rows,).
    block_size: Array
    # For each element of `quiz`, the index in `questions` at which its block begins, shape
    # (n_rows,).
    block_start: Array
    # The questions of all blocks: those of the first block, then those of the second block, and so
    # on. The blocks have the order of the quizzes in `quiz`.
    questions: Array


@dataclass(frozen=True)
class ClassSittings:
    """The sittings in class, ordered by student; every array has the shape (n_sittings,)."""

    student: Array
    # Index of the quiz in the list of the student's cohort, from 0.
    index_in_list: Array
    # Index of the quiz in `CohortLists.quiz`, which holds the lists of all cohorts one after the
    # other.
    list_row: Array
    # Number of questions that the student answers, at least one.
    n_answers: Array


# ---- Numbers of answers, and quizzes -------------------------------------------------------------


def _draw_by_quantiles(rng: Rng, quantiles: tuple[float, ...], n: int) -> Array:
    """Draw n numbers from a distribution that is given by quantiles at equal steps of probability.

    The first quantile is the minimum, the last one the maximum.
    """
    probabilities = np.linspace(0, 1, len(quantiles))
    # Draw a random probability for each number. The number is the quantile at this probability,
    # interpolated between the given quantiles.
    return np.interp(rng.random(n), probabilities, quantiles)


def draw_counts(rng: Rng, n: int, total: int, quantiles: tuple[float, ...], high: int) -> Array:
    """Draw how many answers each of n students gives: from MIN_ANSWERS to `high`, together `total`.

    The quantiles give the shape of the distribution.
    """
    # The excess is a random number for each student: it gives the shape of the distribution above
    # MIN_ANSWERS. Its minimum is 0, because the first quantile, the minimum, is subtracted.
    excess = _draw_by_quantiles(rng, quantiles, n) - quantiles[0]
    # Each count is MIN_ANSWERS + scale · excess, at most `high`, rounded down. Find the scale with
    # which the counts sum to almost `total` before they are rounded.
    scale = _find_scale(excess, total, high)
    counts = np.floor(_unrounded_counts(excess, scale, high)).astype(np.int64)
    # The sum of the rounded counts is a little off: change the counts of random students by one
    # until the sum is exact. `missing` is negative if there are too many answers.
    while missing := total - int(counts.sum()):
        if missing > 0:
            step = 1
            can_change = np.flatnonzero(counts < high)
        else:
            step = -1
            can_change = np.flatnonzero(counts > MIN_ANSWERS)
        counts[rng.permutation(can_change)[: abs(missing)]] += step
    return counts


def _unrounded_counts(excess: Array, scale: float, high: int) -> Array:
    """Return MIN_ANSWERS + scale * excess for each student, but at most `high`."""
    return np.asarray(np.minimum(MIN_ANSWERS + excess * scale, high))


def _find_scale(excess: Array, total: int, high: int) -> float:
    """Return the scale with which the counts of `_unrounded_counts` sum to almost `total`.

    There is no formula for the scale, since the counts of some students stop growing at `high`. So
    find it by bisection: it is always between `too_small` and `large_enough`.
    """
    too_small = 0.0
    large_enough = 1.0
    # If `excess` is 0 for all students, the counts do not grow with the scale, so no scale is large
    # enough. The limit 1e9 ends the loop in this case.
    while _unrounded_counts(excess, large_enough, high).sum() < total and large_enough < 1e9:
        large_enough *= 2
    # Each turn halves the distance between the two bounds.
    for _ in range(50):
        middle = (too_small + large_enough) / 2
        if _unrounded_counts(excess, middle, high).sum() < total:
            too_small = middle
        else:
            large_enough = middle
    return too_small


def draw_quizzes(rng: Rng, topic: Array, n_quizzes: int) -> Array:
    """Cut the questions, in order of topic, into quizzes; int32 (n_quizzes, QUIZ_LENGTH).

    A round sorts all questions by topic, in random order within a topic, and cuts this order into
    quizzes. Further rounds follow until there are enough quizzes. No question is twice in a quiz.
    Every question is in a quiz if there are at least as many quizzes as a round has.
    """
    n_per_round = math.ceil(len(topic) / QUIZ_LENGTH)
    n_rounds = math.ceil(n_quizzes / n_per_round)
    rounds = []
    for _ in range(n_rounds):
        order = np.lexsort((rng.random(len(topic)), topic))
        # `np.resize` repeats the first questions to fill up the last quiz.
        order = np.resize(order, n_per_round * QUIZ_LENGTH)
        rounds.append(order.reshape(n_per_round, QUIZ_LENGTH))
    return np.concatenate(rounds)[:n_quizzes].astype(np.int32)


# ---- Who answers which question ------------------------------------------------------------------


def draw_incidence(
    rng: Rng, setting: SchoolSetting, n_wanted: Array, quizzes: Array, quiz_level: Array
) -> Incidence:
    """Draw which student answers which question, when and in which quiz.

    Parameters
    ----------
    n_wanted
        Number of answers of each student, int64 (n_students,).
    quizzes
        The questions of each quiz, int32 (n_quizzes, QUIZ_LENGTH).
    quiz_level
        Level of each quiz, from 0 to 1.
    """
    cohort = _draw_cohorts(rng, n_wanted, setting.n_cohorts)
    # The setting gives quantiles of the logarithm of the popularity.
    popularity = np.exp(_draw_by_quantiles(rng, setting.popularity, len(quizzes)))
    # First the answers that students give in class.
    lists = _draw_lists(rng, setting, n_wanted, cohort, quizzes, popularity, quiz_level)
    sittings = _draw_class_sittings(rng, lists, n_wanted, cohort)
    start = _draw_class_starts(rng, setting, lists, sittings, cohort)
    incidence = _list_class_answers(lists, sittings, cohort, start)
    # Then the answers that students give alone, because their class's quizzes are not enough.
    incidence = _continue_alone(rng, setting, incidence, n_wanted, cohort, quizzes, popularity)
    return _ensure_min_answers(rng, setting, incidence, cohort, quizzes)


def _draw_cohorts(rng: Rng, n_wanted: Array, n_cohorts: int) -> Array:
    """Put students with similar numbers of answers into a cohort; cohorts differ in size.

    `n_wanted` is the number of answers that each student is to give. Returns each student's cohort.
    """
    # Sort the students by the logarithm of this number plus noise, and cut the order into pieces of
    # random sizes, the cohorts. Each piece ends at one of the `edges`, positions in the order.
    order = np.argsort(np.log(n_wanted) + rng.normal(0, 0.5, len(n_wanted)))
    weights = rng.gamma(4, size=n_cohorts)
    edges = np.cumsum(weights) / weights.sum() * len(n_wanted)
    cohort = np.empty(len(n_wanted), np.int64)
    cohort[order] = np.searchsorted(edges[:-1], np.arange(len(n_wanted)), side="right")
    # Number the cohorts at random, not by their students' numbers of answers.
    return rng.permutation(n_cohorts)[cohort]


def _draw_lists(
    rng: Rng,
    setting: SchoolSetting,
    n_wanted: Array,
    cohort: Array,
    quizzes: Array,
    popularity: Array,
    quiz_level: Array,
) -> CohortLists:
    """Draw the list of quizzes that each cohort (class) gets.

    If there are enough quizzes, a list is long enough for the student of the cohort with the most
    answers. No question comes twice in a list: a quiz leaves out the questions of earlier quizzes.

    Parameters
    ----------
    n_wanted, cohort
        The number of answers that each student is to give, and the student's cohort.
    quizzes
        The questions of each quiz, shape (n_quizzes, QUIZ_LENGTH).
    popularity, quiz_level
        How popular each quiz is, and how advanced, from 0 to 1.
    """
    most_wanted = np.zeros(setting.n_cohorts, np.int64)
    np.maximum.at(most_wanted, cohort, n_wanted)
    # In each cohort, `most_wanted` is the largest number of answers that a student is to give.
    # Students leave out some quizzes, and do not finish others. So list about a third more quizzes
    # than these answers would fill.
    n_needed = np.ceil(most_wanted * 1.35 / QUIZ_LENGTH).astype(np.int64) + 2
    n_listed = np.minimum(n_needed, len(quizzes))
    quiz = _draw_listed_quizzes(rng, popularity, quiz_level, n_listed, setting.level_width)

    # The questions of all quizzes of all lists, one after the other, and each question's cohort.
    questions = quizzes[quiz].ravel()
    n_questions_listed = n_listed * QUIZ_LENGTH
    cohort_of_question = np.repeat(np.arange(setting.n_cohorts), n_questions_listed)
    # If a list holds a question several times, keep only the first occurrence. `pair` numbers the
    # pairs of cohort and question. `np.unique` finds the first position of each pair.
    pair = cohort_of_question * setting.n_questions + questions
    _, first_positions = np.unique(pair, return_index=True)
    is_first = np.zeros(len(pair), bool)
    is_first[first_positions] = True
    # The block of a quiz in a list holds the questions of the quiz that no earlier quiz of the list
    # holds. Count them.
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
    rng: Rng, popularity: Array, quiz_level: Array, n_listed: Array, level_width: float
) -> Array:
    """Draw a list of quizzes for each cohort; return the quizzes of all lists, one after the other.

    A list holds no quiz twice. Popular quizzes and quizzes of the cohort's level tend to come
    first, because they have larger weights. The weight of a quiz is its popularity times a factor.
    This factor falls with the difference between the quiz's level and the cohort's level, like a
    normal density with the standard deviation `level_width`. `n_listed` is the length of each
    cohort's list.

    Each quiz gets a random waiting time, exponentially distributed with the mean 1 / weight. The
    list consists of the quizzes with the shortest waiting times, the shortest first. This draws
    quizzes without replacement, with probabilities in proportion to the weights (Efraimidis &
    Spirakis 2006).
    """
    longest = int(n_listed.max())
    # For each cohort, draw the level of the quizzes that suit it best, from 0 to 1.
    cohort_level = rng.random(len(n_listed))
    lists = []
    # The arrays below have a row for each cohort and a column for each quiz. To save memory, take a
    # few cohorts at a time: an array then has at most about 4 * CHUNK cells.
    n_at_once = max(1, 4 * CHUNK // len(popularity))
    for start in range(0, len(n_listed), n_at_once):
        cohorts = slice(start, start + n_at_once)
        difference = (quiz_level - cohort_level[cohorts, None]).astype(np.float32)
        weight = popularity.astype(np.float32) * np.exp(-0.5 * (difference / level_width) ** 2)
        # A weight may be rounded to 0. Adding 1e-12 avoids a division by 0.
        waiting_time = rng.standard_exponential(weight.shape, dtype=np.float32) / (weight + 1e-12)
        first_quizzes = _smallest_columns(waiting_time, longest)
        # Each row holds `longest` quizzes; the cohort's list is the first `n_listed` quizzes of the
        # row. Selecting with a boolean array puts the lists one after the other.
        is_in_list = np.arange(longest) < n_listed[cohorts, None]
        lists.append(first_quizzes[is_in_list])
    return np.concatenate(lists)


def _smallest_columns(values: Array, n: int) -> Array:
    """Return for each row the columns of the n smallest values, the smallest first.

    `values` has the shape (n_rows, n_columns), the result has the shape (n_rows, n).
    """
    n_columns = values.shape[1]
    if n < n_columns:
        # Find the n smallest values of each row first, so that only these have to be sorted.
        candidates = np.argpartition(values, n - 1, axis=1)[:, :n]
    else:
        candidates = np.broadcast_to(np.arange(n_columns), values.shape)
    candidate_values = np.take_along_axis(values, candidates, axis=1)
    order = np.argsort(candidate_values, axis=1, kind="stable")
    return np.take_along_axis(candidates, order, axis=1)


def _draw_class_sittings(
    rng: Rng, lists: CohortLists, n_wanted: Array, cohort: Array
) -> ClassSittings:
    """Draw the sittings in class, that is, which student works on which quiz.

    Each student takes quizzes of the cohort's list, in order, until the student has enough answers.
    `n_wanted` is the number of answers that each student is to give, and `cohort` the student's
    cohort.
    """
    student, index_in_list = _draw_list_indices(rng, lists, n_wanted, cohort)
    # In `lists`, the lists of all cohorts follow one another. So the row of a quiz is the row at
    # which the cohort's list starts, plus the index of the quiz in this list.
    list_row = lists.list_start[cohort[student]] + index_in_list
    # The number of questions in the quiz that no earlier quiz of the list holds.
    n_new = lists.block_size[list_row]
    n_answers = _draw_answers_in_sittings(rng, student, n_wanted, n_new)
    # Leave out sittings without answers.
    kept = n_answers > 0
    return ClassSittings(
        student=student[kept],
        index_in_list=index_in_list[kept],
        list_row=list_row[kept],
        n_answers=n_answers[kept],
    )


def _draw_list_indices(
    rng: Rng, lists: CohortLists, n_wanted: Array, cohort: Array
) -> tuple[Array, Array]:
    """Draw which quizzes of the cohort's list each student takes: some quizzes are left out.

    Returns the student of each sitting, and the index of the sitting's quiz in the list of the
    student's cohort. The sittings are ordered by student, then by index. A student gets more
    sittings than the wanted number of answers needs, since students do not finish all quizzes.
    """
    # Let each student try about a quarter more quizzes than the wanted answers would fill.
    n_tried = np.ceil(n_wanted * 1.25 / QUIZ_LENGTH).astype(np.int64) + 1
    # The arrays from here on have a row for each sitting.
    student = np.repeat(np.arange(len(n_wanted)), n_tried)
    # Sometimes the student leaves out one or two quizzes of the list before this sitting.
    leaves_out_one = rng.random(len(student)) < 0.15
    leaves_out_another = rng.random(len(student)) < 0.05
    # How far the student moves in the list from the previous quiz to this one.
    steps = 1 + leaves_out_one + leaves_out_another
    # In a student's first row, the index in the list is 0. In each further row, the index grows by
    # the step of the row. `np.cumsum` adds up the steps of all students. Subtract the sum at the
    # student's first row, so that this row gets index 0.
    sum_of_steps = np.cumsum(steps)
    index_in_list = sum_of_steps - sum_of_steps[_first_row_of_equals(student)]
    # Leave out the rows whose index is beyond the end of the cohort's list of quizzes.
    is_listed = index_in_list < lists.n_listed[cohort[student]]
    return student[is_listed], index_in_list[is_listed]


def _draw_answers_in_sittings(rng: Rng, student: Array, n_wanted: Array, n_new: Array) -> Array:
    """Draw how many answers each sitting has, until each student has the wanted number of answers.

    `student` is the student of each sitting, in increasing order, and `n_new` is the largest number
    of answers that the sitting can have. `n_wanted` is the number of answers that each student is
    to give.
    """
    stops_early = rng.random(len(student)) < 0.2
    # A student who stops early leaves out the last one to five questions of the quiz.
    n_left_out = np.where(stops_early, rng.integers(1, 6, len(student)), 0)
    n_possible = np.maximum(n_new - n_left_out, 0)
    # For each sitting, the number of answers that its student can give in the student's earlier
    # sittings. First add up `n_possible` over all earlier rows, including the rows of other
    # students. Then subtract the sum at the student's first row, which is only about other
    # students.
    n_before = np.cumsum(n_possible) - n_possible
    n_before -= n_before[_first_row_of_equals(student)]
    # `n_missing` is the number of answers that the student still lacks before each sitting. It is
    # zero or negative if the student has enough answers, and then the student gives no answer.
    n_missing = n_wanted[student] - n_before
    return np.asarray(np.clip(n_missing, 0, n_possible))


def _first_row_of_equals(numbers: Array) -> Array:
    """Return for each element of a sorted array the index of the first equal element.

    For example, the result for [4, 4, 4, 7, 7] is [0, 0, 0, 3, 3].
    """
    return np.searchsorted(numbers, numbers)


def _draw_class_starts(
    rng: Rng, setting: SchoolSetting, lists: CohortLists, sittings: ClassSittings, cohort: Array
) -> Array:
    """Draw when each sitting in class starts, in minutes since midnight of the first day.

    A cohort, a group of students, has a list of quizzes (in `lists`). The cohort gets the quizzes
    in pairs, at equal distances over the school days. A student starts both quizzes of a pair on
    one day, some time after the cohort gets the pair, but before the cohort gets the next pair.
    `cohort` is the cohort of each student.
    """
    student = sittings.student
    pair_of_quizzes = sittings.index_in_list // 2
    # The number is 0 for the first quiz of a pair, and 1 for the second.
    number_in_pair = sittings.index_in_list % 2
    # The list of a cohort is spread evenly over the school days: on average, the cohort gets one
    # quiz in `days_per_quiz` school days. This period is the unit of `time_of_pair` and `delay`.
    days_per_quiz = setting.n_days / np.maximum(lists.n_listed, 1)
    # A pair has two quizzes, so it takes two periods: the cohort gets pair 0 at the time 0, pair 1
    # at the time 2, and pair 2 at the time 4.
    time_of_pair = pair_of_quizzes * 2
    # Give each pair of quizzes of each student its own number. The numbers are in increasing order,
    # because the sittings are ordered by student, then by index in the list.
    student_and_pair = student * lists.n_listed.max() + pair_of_quizzes
    # A student starts both quizzes of a pair after the same delay, from 0 to 1, mostly a short one.
    # So draw a delay for each sitting, but use only that of the student's first sitting in the
    # pair.
    delay_of_sitting = rng.beta(1, 4, len(student))
    delay = delay_of_sitting[_first_row_of_equals(student_and_pair)]
    school_day = (time_of_pair + delay) * days_per_quiz[cohort[student]]
    # The second quiz of a pair starts QUIZ_INTERVAL minutes after the first.
    return np.asarray(_school_minute(school_day) + number_in_pair * QUIZ_INTERVAL)


def _list_class_answers(
    lists: CohortLists, sittings: ClassSittings, cohort: Array, start: Array
) -> Incidence:
    """Return a table of the sittings in class, and a table of the answers in these sittings.

    A sitting is one student who works on one quiz. `start` is the minute in which each sitting
    starts.
    """
    student = sittings.student
    list_row = sittings.list_row
    sitting_columns = {
        "student": student,
        "quiz": lists.quiz[list_row],
        "cohort": cohort[student],
        "start": start,
        "alone": False,
    }

    # The table of answers has a row for each answer. `sitting` is the number of the sitting that
    # the answer belongs to.
    n_answers = sittings.n_answers
    sitting = np.repeat(np.arange(len(student), dtype=np.int32), n_answers)
    # The row of each sitting's first answer is the number of answers in all earlier sittings.
    first_row_of_sitting = np.cumsum(n_answers) - n_answers
    # `slot` is the position of the answer in its sitting, from 0.
    slot = (np.arange(len(sitting)) - first_row_of_sitting[sitting]).astype(np.int8)
    # The block of a quiz in a cohort's list holds those questions of the quiz that no earlier quiz
    # of the list holds. The student answers the questions at the start of the block, in their
    # order.
    block_start = lists.block_start[list_row][sitting]
    answer_columns = {
        "sitting": sitting,
        "student": student.astype(np.int32)[sitting],
        "question": lists.questions[block_start + slot],
        "slot": slot,
    }
    return Incidence(
        sittings=pd.DataFrame(sitting_columns).astype(SITTING_DTYPES),
        answers=pd.DataFrame(answer_columns, copy=False),
    )


def _school_minute(day: Array) -> Array:
    """Convert times in school days to minutes since midnight of the first day, a Monday.

    The time 2.5, for example, is the middle of the third school day: Wednesday, 12 o'clock.
    """
    whole_day = np.floor(day).astype(np.int64)
    # Five school days make a week of seven calendar days.
    calendar_day = whole_day // 5 * 7 + whole_day % 5
    minute_of_day = SCHOOL_START + (day - whole_day) * SCHOOL_LENGTH
    return (calendar_day * MINUTES_PER_DAY + minute_of_day).astype(np.int32)


def _add_alone(
    rng: Rng, setting: SchoolSetting, incidence: Incidence, cohort: Array, extra: pd.DataFrame
) -> Incidence:
    """Add answers that students give alone, outside class, to the tables of sittings and answers.

    A sitting is the work of one student on one quiz. `incidence` holds both tables. `cohort` is the
    cohort of each student. `extra` has a row for each new answer, with the columns student, quiz
    and question. The answers of one student to one quiz become a new sitting, which starts at a
    random time.
    """
    extra = extra.sort_values(["student", "quiz"], kind="stable")
    sittings = extra[["student", "quiz"]].drop_duplicates()
    # Draw the start as a random time in school days, and convert it to minutes.
    school_day = rng.random(len(sittings)) * setting.n_days
    start = _school_minute(school_day)
    sittings = sittings.assign(cohort=cohort[sittings["student"]], start=start, alone=True)
    # `ngroup` numbers the new sittings from 0, by student and quiz: this is the order of the rows
    # of `sittings`. These rows are appended to the old sittings, so add the number of old sittings.
    grouped = extra.groupby(["student", "quiz"])
    sitting = len(incidence.sittings) + grouped.ngroup()
    # `slot` is the position of the answer in its sitting.
    answers = extra.assign(sitting=sitting, slot=grouped.cumcount())
    answers = answers[[*ANSWER_DTYPES]].astype(ANSWER_DTYPES)
    return Incidence(
        pd.concat([incidence.sittings, sittings.astype(SITTING_DTYPES)], ignore_index=True),
        pd.concat([incidence.answers, answers], ignore_index=True),
    )


def _continue_alone(
    rng: Rng,
    setting: SchoolSetting,
    incidence: Incidence,
    n_wanted: Array,
    cohort: Array,
    quizzes: Array,
    popularity: Array | None,
) -> Incidence:
    """Let students who lack answers answer further quizzes alone, until all have enough answers.

    "Alone" means outside class. At first the students draw quizzes at random, popular ones more
    often. Whoever still lacks answers after many draws answers questions at random.

    Parameters
    ----------
    incidence
        The tables of the sittings and answers so far.
    n_wanted, cohort
        The number of answers that each student is to have, and the student's cohort.
    quizzes
        The questions of each quiz, shape (n_quizzes, QUIZ_LENGTH).
    popularity
        How popular each quiz is.
    """
    n_questions = setting.n_questions
    # `_pair_numbers` codes each pair of student and question as one number. `answered` holds the
    # numbers of the pairs that have an answer, sorted.
    answered = np.sort(_pair_numbers(incidence.answers, n_questions))
    # How many answers each student still lacks.
    missing = n_wanted - np.bincount(incidence.answers["student"], minlength=len(n_wanted))
    # Begin with an empty table: `concat` needs a table even if no student lacks answers.
    parts = [pd.DataFrame({"student": [], "quiz": [], "question": []}, dtype=np.int64)]
    for round_number in range(MOST_ROUNDS):
        if not missing.any():
            break
        if round_number == FIRST_EQUAL_ROUND:
            # Popular quizzes have few new questions for the students who still lack answers. From
            # now on, draw all quizzes with the same probability.
            popularity = None
        new = _offer_quizzes(rng, missing, quizzes, popularity)
        # Leave out questions that the student has answered before.
        new = new[~_is_in_sorted(_pair_numbers(new, n_questions), answered)]
        # If a student has more new questions than the number of answers that the student lacks,
        # drop the last questions.
        index_in_student = new.groupby("student").cumcount()
        new = new[index_in_student < missing[new["student"]]]
        parts.append(new)
        answered = np.sort(np.concatenate([answered, _pair_numbers(new, n_questions)]))
        missing -= np.bincount(new["student"], minlength=len(n_wanted))
    # These students lack answers even after the last round.
    for student in np.flatnonzero(missing).tolist():
        unanswered = _unanswered_questions(answered, student, n_questions)
        question = rng.permutation(unanswered)[: missing[student]]
        quiz = _quiz_of_question(quizzes, n_questions)[question]
        parts.append(pd.DataFrame({"student": student, "quiz": quiz, "question": question}))
    return _add_alone(rng, setting, incidence, cohort, pd.concat(parts, ignore_index=True))


def _unanswered_questions(answered: Array, student: int, n_questions: int) -> Array:
    """Return the questions that a student has not answered, in increasing order.

    `answered` holds the numbers of the pairs of student and question that have an answer, sorted;
    see `_pair_numbers`.
    """
    # In the sorted array, the pairs of a student follow one another: from the number of the student
    # and question 0, to just before the number of the next student and question 0.
    first_pair = student * n_questions
    start, end = np.searchsorted(answered, [first_pair, first_pair + n_questions])
    answered_questions = answered[start:end] - first_pair
    return np.setdiff1d(np.arange(n_questions), answered_questions)


def _offer_quizzes(
    rng: Rng, n_missing: Array, quizzes: Array, popularity: Array | None
) -> pd.DataFrame:
    """Draw quizzes for the students who lack answers; return a row for each student and question.

    `n_missing` is the number of answers that each student lacks. `quizzes` holds the questions of
    each quiz, shape (n_quizzes, QUIZ_LENGTH). Quizzes are drawn with probabilities in proportion to
    `popularity`, or with equal probabilities if `popularity` is None. The columns of the result are
    student, quiz and question. A student gets a question only once.
    """
    unfinished = np.flatnonzero(n_missing)
    # A quiz has ten questions. Assume that a student has answered half of them before. Then each
    # quiz adds five answers, so a student gets one quiz for every five missing answers.
    n_offered = np.ceil(n_missing[unfinished] / 5).astype(np.int64)
    student = np.repeat(unfinished, n_offered)
    uniform = rng.random(len(student))
    if popularity is None:
        quiz = (uniform * len(quizzes)).astype(int)
    else:
        # Cut the range from 0 to 1 into an interval for each quiz, with a length in proportion to
        # the popularity. `searchsorted` finds the interval that holds the random number: the quiz
        # of this interval is drawn.
        cumulative = np.cumsum(popularity)
        ends_of_intervals = cumulative / cumulative[-1]
        quiz = np.searchsorted(ends_of_intervals, uniform)
    offered = pd.DataFrame(
        {
            "student": np.repeat(student, QUIZ_LENGTH),
            "quiz": np.repeat(quiz, QUIZ_LENGTH),
            "question": quizzes[quiz].ravel(),
        }
    )
    return offered.drop_duplicates(["student", "question"])


def _pair_numbers(answers: pd.DataFrame, n_questions: int) -> Array:
    """Return one number for each pair of student and question, int64, in the order of the rows.

    The number is student * n_questions + question. Sorting the numbers sorts the pairs by student,
    then by question.
    """
    numbers = answers["student"].to_numpy(np.int64) * n_questions
    numbers += answers["question"].to_numpy()
    return numbers


def _is_in_sorted(values: Array, sorted_values: Array) -> Array:
    """Return for each of the `values` whether `sorted_values`, which must not be empty, holds it.

    `np.isin` would give the same result. It does not use the fact that `sorted_values` is sorted,
    and takes many times as long.
    """
    # Look up the position at which each value would be inserted. `sorted_values` holds the value if
    # the element at this position equals it. A value above all elements would be inserted after the
    # last element: compare this value with the last element.
    position = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    return np.asarray(sorted_values[position] == values)


def _quiz_of_question(quizzes: Array, n_questions: int) -> Array:
    """Return for each question the first quiz that holds it."""
    quiz_of_question = np.zeros(n_questions, np.int64)
    # Assign the quizzes in reverse order. If several quizzes hold a question, the first of these
    # quizzes is assigned last, and overwrites the others.
    reversed_quizzes = np.repeat(np.arange(len(quizzes)), QUIZ_LENGTH)[::-1]
    quiz_of_question[quizzes.ravel()[::-1]] = reversed_quizzes
    return quiz_of_question


def _ensure_min_answers(
    rng: Rng, setting: SchoolSetting, incidence: Incidence, cohort: Array, quizzes: Array
) -> Incidence:
    """Exchange answers to frequent questions for answers to questions that have too few.

    A student who loses an answer answers another question instead, alone and not in class. The
    number of answers of each student stays the same.
    """
    n_questions = setting.n_questions
    least = setting.min_answers_per_question
    n_answers = len(incidence.answers)
    if n_answers < n_questions * least:
        raise InputError(
            f"{n_questions:,} questions are too many for {n_answers:,} answers, expected at most "
            f"{n_answers // least:,}: choose fewer --questions or a larger --size"
        )
    quiz_of_question = _quiz_of_question(quizzes, n_questions)
    while True:
        counts = np.bincount(incidence.answers["question"], minlength=n_questions)
        if counts.min() >= least:
            return incidence
        replacements = _draw_replacements(rng, incidence.answers, counts, least)
        # Drop replacements that would give a student a question twice. The next turn of the loop
        # tries other replacements. To find them, code each pair of student and question as one
        # number. `answered` holds the numbers of the pairs that have an answer.
        answered = _pair_numbers(incidence.answers, n_questions)
        # The array is large: sort it in place, to save memory.
        answered.sort()
        is_repeated = _is_in_sorted(_pair_numbers(replacements, n_questions), answered)
        replacements = replacements[~is_repeated]
        # Free the memory of this large array before the tables are copied.
        del answered
        # Each replacement has the index of the answer that it replaces.
        incidence = _without_answers(incidence, replacements.index)
        quiz = quiz_of_question[replacements["question"]]
        incidence = _add_alone(rng, setting, incidence, cohort, replacements.assign(quiz=quiz))


def _draw_replacements(rng: Rng, answers: pd.DataFrame, counts: Array, least: int) -> pd.DataFrame:
    """Choose answers to frequent questions, and replace their questions by rare ones.

    A question is rare if it has fewer than `least` answers. All other questions are frequent, and
    keep at least `least` answers. `counts` is the number of answers of each question. At most one
    answer of each student is chosen.

    The result has the rows of `answers` that are chosen, with the same index. Its column question
    holds the rare question that replaces the frequent one.
    """
    rare = np.flatnonzero(counts < least)
    n_missing = least - counts[rare]
    # Draw random answers as candidates: many more than needed, since some are dropped below.
    n_candidates = 4 * int(n_missing.sum()) + 1000
    candidates = answers.iloc[rng.permutation(len(answers))[:n_candidates]]
    # For each candidate, the number of answers that its question can lose and still have `least`
    # answers. It is negative if the question is rare.
    n_to_spare = counts[candidates["question"]] - least
    # Number the candidates of each question from 0, and keep as many of them as the question can
    # lose. This keeps no answer to a rare question.
    index_in_question = candidates.groupby("question").cumcount()
    spared = candidates[index_in_question < n_to_spare]
    # Choose at most one answer of each student.
    exchanged = spared.drop_duplicates("student")
    # List each rare question once for each answer that it lacks, in random order.
    new_question = rng.permutation(np.repeat(rare, n_missing))
    # Give each chosen answer the next of these questions, until the answers or the questions run
    # out.
    n_exchanged = min(len(exchanged), len(new_question))
    return exchanged[:n_exchanged].assign(question=new_question[:n_exchanged])


def _without_answers(incidence: Incidence, rows: pd.Index) -> Incidence:
    """Return the tables of sittings and answers without the answers in the given rows."""
    kept = np.ones(len(incidence.answers), bool)
    kept[rows] = False
    # Select the rows column by column to save memory: a selection from the whole DataFrame would
    # also make a new index, which is as large as a column.
    columns = {name: column.to_numpy()[kept] for name, column in incidence.answers.items()}
    return replace(incidence, answers=pd.DataFrame(columns, copy=False))


# ---- How students answer -------------------------------------------------------------------------


@dataclass(frozen=True)
class Misconceptions:
    """Misconceptions that are planted in the answers; see `draw_misconceptions`."""

    # The misconception of each question, -1 for none, int32 (n_questions,).
    of_question: Array
    # The wrong option to which the question's misconception leads, 0 to 3; -1 for none. The type is
    # int8, the shape (n_questions,).
    option: Array
    # Whether each student has each misconception, bool (n_students, n_misconceptions).
    has: Array


def require_room(n_questions: int, n_misconceptions: int) -> None:
    """Raise `InputError` if there are too few questions for `n_misconceptions` misconceptions."""
    most = n_questions // MISCONCEPTION_LENGTH
    if n_misconceptions > most:
        raise InputError(
            f"--misconceptions {n_misconceptions}: the {n_questions:,} questions have room for "
            f"{most} misconceptions; choose fewer, or a larger --size"
        )


def draw_misconceptions(rng: Rng, questions: Questions, n_students: int, n: int) -> Misconceptions:
    """Draw n misconceptions; each leads to a wrong option on MISCONCEPTION_LENGTH questions.

    The questions of a misconception are of one topic or of neighbouring topics. No question belongs
    to two misconceptions. Raises `InputError` if there are too few questions.
    """
    n_questions = len(questions.key)
    require_room(n_questions, n)
    n_blocks = n_questions // MISCONCEPTION_LENGTH
    # Sort the questions by topic, at random within a topic, and cut this order into blocks. Then a
    # block holds questions of one topic or of neighbouring topics. Each misconception gets a block.
    order = np.lexsort((rng.random(n_questions), questions.topic))
    blocks = order[: n_blocks * MISCONCEPTION_LENGTH].reshape(n_blocks, MISCONCEPTION_LENGTH)
    chosen_blocks = blocks[rng.permutation(n_blocks)[:n]]
    misconception_of_question = np.full(n_questions, -1, np.int32)
    for misconception, questions_of_block in enumerate(chosen_blocks):
        misconception_of_question[questions_of_block] = misconception
    # Draw a wrong option for every question: add one to three steps to the number of the right
    # option, and begin again at 0 after the last option. Only questions with a misconception keep
    # this option.
    steps = rng.integers(1, N_OPTIONS, n_questions)
    wrong_option = ((questions.key + steps) % N_OPTIONS).astype(np.int8)
    wrong_option[misconception_of_question < 0] = -1
    student_has = rng.random((n_students, n)) < MISCONCEPTION_SHARE
    return Misconceptions(misconception_of_question, wrong_option, student_has)


def _follow_misconceptions(
    misconceptions: Misconceptions,
    questions: Questions,
    student: Array,
    question: Array,
    probability: Array,
) -> None:
    """Change the probabilities of options, in place, for students with a misconception.

    The probability of the right option stays. The share MISCONCEPTION_STRENGTH of the probability
    of a wrong answer goes to the option to which the misconception leads. The rest stays divided
    among the wrong options as before. `student` and `question` have the shape (n,), `probability`
    has the shape (n, 4).
    """
    misconception = misconceptions.of_question[question]
    # Select the rows whose question belongs to a misconception that the student has.
    rows = np.flatnonzero(misconception >= 0)
    rows = rows[misconceptions.has[student[rows], misconception[rows]]]
    right_option = questions.key[question[rows]]
    misconception_option = misconceptions.option[question[rows]]
    changed = probability[rows]
    positions = np.arange(len(rows))
    p_right = changed[positions, right_option]
    changed *= 1 - MISCONCEPTION_STRENGTH
    changed[positions, right_option] = p_right
    changed[positions, misconception_option] += MISCONCEPTION_STRENGTH * (1 - p_right)
    probability[rows] = changed


def draw_questions(rng: Rng, setting: SchoolSetting, topic: Array, counts: Array) -> Questions:
    """Draw the parameters of the questions, given their topics and numbers of answers.

    `topic` and `counts` have the shape (n_questions,).
    """
    n = len(topic)
    # The right option of each question.
    key = rng.choice(N_OPTIONS, n, p=setting.key_shares).astype(np.int8)
    attraction = _draw_attraction(rng, key)
    discrimination = np.exp(rng.normal(0, 0.45, n))
    # The easiness has a part for the question itself, and a part that all questions of its topic
    # share. Draw the first part here, and the second part below.
    within_topic = rng.standard_normal(n)
    # How much more an option attracts students with a higher ability.
    attraction_slope = rng.normal(0, 0.2, (n, N_OPTIONS))
    between_topics = rng.standard_normal(int(topic.max()) + 1)[topic]
    return Questions(
        topic=topic,
        discrimination=discrimination.astype(np.float32),
        easiness=_easiness(setting, within_topic, between_topics, counts).astype(np.float32),
        key=key,
        attraction=attraction.astype(np.float32),
        attraction_slope=attraction_slope.astype(np.float32),
    )


def _draw_attraction(rng: Rng, key: Array) -> Array:
    """Draw how much each option attracts students who do not know the answer.

    `key` is the right option of each question. The result has the shape (n_questions, N_OPTIONS).
    A student who does not know the answer chooses an option with a probability in proportion to the
    option's weight. The attraction is the logarithm of this weight for a student with ability 0.
    """
    n = len(key)
    # The two options in the middle attract a little more than the first and the last.
    attraction: Array = rng.normal(0, 0.45, (n, N_OPTIONS)) + np.array([-0.1, 0.1, 0.1, -0.1])
    # Some wrong options (distractors) attract much less.
    is_distractor = np.arange(N_OPTIONS) != key[:, None]
    is_weak = (rng.random((n, N_OPTIONS)) < 0.05) & is_distractor
    attraction -= 1.2 * is_weak
    # Students who do not know the answer choose the right option less often than by chance.
    attraction[np.arange(n), key] -= 0.2
    return attraction


def _easiness(
    setting: SchoolSetting, within_topic: Array, between_topics: Array, counts: Array
) -> Array:
    """Return the easiness of each question, on the scale of the students' abilities.

    `within_topic` and `between_topics` hold standard normal random numbers for the questions. Each
    question has its own number in `within_topic`. The questions of a topic have the same number in
    `between_topics`. `counts` holds the number of answers of each question.
    """
    # Shift `between_topics` so that its mean over all answers is 0. Otherwise the topics with many
    # answers would make the answers easier with some seeds, and harder with others.
    between_topics = between_topics - np.average(between_topics, weights=counts)
    # The squares of the two factors sum to 1, so that `standardised` has about the variance 1.
    standardised = np.sqrt(1 - TOPIC_VARIANCE_SHARE) * within_topic
    standardised += np.sqrt(TOPIC_VARIANCE_SHARE) * between_topics
    # Questions with many answers are a little easier. `frequency` is the logarithm of the number of
    # answers, standardised over the questions.
    log_count = np.log(counts)
    frequency = (log_count - log_count.mean()) / log_count.std()
    easiness: Array = (
        setting.easiness + setting.easiness_sd * standardised + FREQUENCY_SLOPE * frequency
    )
    return easiness


def draw_abilities(rng: Rng, cohort: Array, n_cohorts: int, area_of_topic: Array) -> Array:
    """Draw the abilities of students in each topic, in logits; float32 (n_students, n_topics).

    An ability is the sum of the student's general ability, a deviation in the area, and a deviation
    in the topic. `cohort` is the cohort of each student, and `area_of_topic` the area of each
    topic.
    """
    n_students = len(cohort)
    n_topics = len(area_of_topic)
    n_areas = int(area_of_topic.max()) + 1
    # The variances of the cohort's effect and of the student's effect sum to 1. So the general
    # ability has the standard deviation GENERAL_SD.
    cohort_effect = rng.standard_normal(n_cohorts, np.float32) * np.sqrt(COHORT_VARIANCE_SHARE)
    student_sd = np.sqrt(1 - COHORT_VARIANCE_SHARE)
    student_effect = rng.standard_normal(n_students, np.float32) * student_sd
    general = GENERAL_SD * (cohort_effect[cohort] + student_effect)
    area = AREA_SD * rng.standard_normal((n_students, n_areas), np.float32)
    # Add up the three parts in place, to save memory.
    ability = TOPIC_SD * rng.standard_normal((n_students, n_topics), np.float32)
    ability += area[:, area_of_topic]
    ability += general[:, None]
    return ability.astype(np.float32)


def draw_sitting_effects(rng: Rng, sittings: pd.DataFrame) -> Array:
    """Draw the effect of each sitting on ability, in logits; float32 (n_sittings,).

    The effect is a sum of three parts: how well the student does in the quiz, how well the whole
    cohort does in the quiz, and how well the student does on the day.
    """
    # All sittings of the same cohort and quiz share the second part, and all sittings of the same
    # student and day share the third part. `ngroup` returns the number of each sitting's group,
    # from 0. This number is used as an index into an array of random numbers, so a group shares one
    # random number. There are no more groups than sittings, so `n` random numbers are enough.
    n = len(sittings)
    student_quiz_sd = QUIZ_SD * np.sqrt(1 - COHORT_QUIZ_VARIANCE_SHARE)
    effect = student_quiz_sd * rng.standard_normal(n, np.float32)
    cohort_quiz_sd = QUIZ_SD * np.sqrt(COHORT_QUIZ_VARIANCE_SHARE)
    cohort_quiz = sittings.groupby(["cohort", "quiz"]).ngroup()
    effect += cohort_quiz_sd * rng.standard_normal(n, np.float32)[cohort_quiz]
    student_day = sittings.groupby(["student", sittings["start"] // MINUTES_PER_DAY]).ngroup()
    effect += DAY_SD * rng.standard_normal(n, np.float32)[student_day]
    return np.asarray(effect, np.float32)


@dataclass(frozen=True)
class Choices:
    """The options that students chose, and how well these can be predicted."""

    # The chosen option, 0 to 3, int8 (n_answers,).
    option: Array
    # The stated confidence, 0 to 100, or NO_CONFIDENCE, int8 (n_answers,).
    confidence: Array
    # The highest accuracies that a model can reach on average. A model that knows the true
    # probabilities reaches them if it predicts the most probable option of each answer (key
    # "option"), or the more probable of the two outcomes right and wrong (key "right_or_wrong").
    limits: dict[str, float]


def draw_choices(
    rng: Rng,
    incidence: Incidence,
    questions: Questions,
    ability: Array,
    misconceptions: Misconceptions | None = None,
) -> Choices:
    """Draw the option and the confidence of each answer.

    The field `limits` of the result says how well answers can be predicted. It holds the mean
    accuracy of a model that knows the true probabilities and predicts the most probable outcome of
    each answer.

    `incidence` holds the tables of sittings and answers, without outcomes. `ability` is in logits,
    float32 (n_students, n_topics).
    """
    n = len(incidence.answers)
    sitting_effect = draw_sitting_effects(rng, incidence.sittings)
    # In a tenth of the sittings, the student is asked for the confidence in each answer.
    asks_confidence = rng.random(len(sitting_effect), np.float32) < 0.1
    option = np.empty(n, np.int8)
    confidence = np.empty(n, np.int8)
    # These sums give the best possible accuracies (`limits`). The first adds up, over all answers,
    # the probability of the more probable outcome, right or wrong. The second adds up the
    # probability of the most probable option.
    best_outcome_sum = 0.0
    best_option_sum = 0.0
    for start in range(0, n, CHUNK):
        rows = slice(start, start + CHUNK)
        question = incidence.answers["question"].to_numpy()[rows]
        student = incidence.answers["student"].to_numpy()[rows]
        sitting = incidence.answers["sitting"].to_numpy()[rows]
        answer_ability = ability[student, questions.topic[question]] + sitting_effect[sitting]
        probability = _option_probabilities(questions, question, answer_ability)
        if misconceptions is not None:
            _follow_misconceptions(misconceptions, questions, student, question, probability)
        p_right = probability[np.arange(len(question)), questions.key[question]]
        best_outcome_sum += float(np.maximum(p_right, 1 - p_right).sum(dtype=np.float64))
        best_option_sum += float(probability.max(axis=1).sum(dtype=np.float64))
        # Draw the options. Three bounds cut the range from 0 to 1 into four intervals, as long as
        # the options' probabilities. The number of bounds below a random number is the option.
        uniform = rng.random(len(question), np.float32)[:, None]
        bounds = np.cumsum(probability, axis=1)[:, :-1]
        option[rows] = (uniform > bounds).sum(axis=1)
        is_asked = asks_confidence[sitting]
        confidence[rows] = _draw_confidence(rng, probability, option[rows], is_asked)
    limits = {
        "right_or_wrong": round(best_outcome_sum / n, 4),
        "option": round(best_option_sum / n, 4),
    }
    return Choices(option, confidence, limits)


def _draw_confidence(rng: Rng, probability: Array, option: Array, is_asked: Array) -> Array:
    """Draw the stated confidence of n answers, or NO_CONFIDENCE; int8 (n,).

    `probability` holds the probabilities of the options, shape (n, 4), and `option` the options
    chosen. `is_asked` says whether the student was asked for the confidence. Students state it in
    65 % of the answers for which they are asked.
    """
    confidence = np.full(len(option), NO_CONFIDENCE, np.int8)
    is_stated = is_asked & (rng.random(len(option), np.float32) < 0.65)
    stated = np.flatnonzero(is_stated)
    # The confidence rises with a noisy logit: the logit of the probability of the chosen option,
    # times a factor, plus noise. Adding 1e-6 avoids a division by 0.
    p_chosen = probability[stated, option[stated]]
    odds = p_chosen / (1 - p_chosen + 1e-6)
    noise = rng.standard_normal(len(stated))
    noisy_logit = 0.35 * np.log(odds) + noise
    # Four bounds cut the noisy logits into five intervals, one for each level of confidence.
    level = np.searchsorted([-1.6, -1.35, -0.6, 0.3], noisy_logit)
    confidence[stated] = CONFIDENCE_LEVELS[level]
    return confidence


def _option_probabilities(questions: Questions, question: Array, ability: Array) -> Array:
    """Return the probabilities of the options of `question[i]` at `ability[i]`, float32 (n, 4).

    Students who know the answer choose the right option. The other students choose an option with a
    probability in proportion to its weight.
    """
    logit = questions.discrimination[question] * ability + questions.easiness[question]
    p_knows = 1 / (1 + np.exp(-logit))
    slope = questions.attraction_slope[question]
    weight = np.exp(questions.attraction[question] + slope * ability[:, None])
    # Turn the weights into probabilities in the same array, to save memory.
    probability = weight
    probability *= ((1 - p_knows) / weight.sum(axis=1))[:, None]
    probability[np.arange(len(question)), questions.key[question]] += p_knows
    return np.asarray(probability, np.float32)
