r"""Which option a student chooses: stages of the right and wrong ones, and habits of position.

Is the answer right? If not, is it the most popular distractor? If not, the next one? Each of these
stages is an item with slopes of its own on the same abilities, so that the fit for right and wrong
answers works here too (Linderman, Johnson and Adams 2015, "Dependent multinomial models made
easy"). Only the first stage can be guessed: choosing a distractor means not knowing the answer.

Besides, some students click the first option more often than they should, above all in one sitting.
So the logarithm of the probability of option k gets a term of (student, k) and another of (student,
context, k), both Gaussian around 0, and both estimated from how the student's choices differ from
the probabilities that the item response model gives:

    P(option k) ∝ P(option k | item response) exp(habit of k).

The habits of a student are again a tree (see `context`), with a root of no uncertainty in place of
the abilities. Their posterior mode is found by Newton steps in which the curvature, diag(p) − ppᵀ,
is replaced by a diagonal: p(1 − p) n / (n − 1) for n options, so that these separate. That is exact
for equal p, but for what all options share, which has no influence; and always more than half of
the curvature, so that the steps converge.
"""

from typing import Any, NamedTuple

from common import schema
from common.answers import find_ids, number_ids
from common.arrays import FloatArray, IntArray
from common.item_response import blocks
from common.item_response.blocks import ItemResponseModel, Observations
from common.item_response.context import Level, accelerate, eliminate, restore
from common.item_response.fitting import fit
from common.item_response.model import standard_normal
from common.item_response.prediction import break_stick, predict_stages

import numpy as np

N_OPTIONS = len(schema.OPTIONS)
# Of the habits: steps, the variance that they begin with, and a bound (see `accelerate`).
_N_STEPS, _START_VARIANCE, _MAX_ACCELERATION = 12, 0.05, 10.0
_MIN_PROBABILITY = np.float32(1e-6)
# Pairs whose probabilities are put in order at a time.
_BLOCK = 1 << 16


class Habits(NamedTuple):
    """The habits of students; ids are those with answers, increasing."""

    student_ids: IntArray
    context_ids: IntArray
    levels: tuple[Level, ...]  # Nodes of the students, and of their contexts.
    total: list[FloatArray]  # Of each level: habit of every option, shape (nodes, options).
    variance: FloatArray  # Prior variance of the terms of each level, shape (levels,).


class OptionModel(NamedTuple):
    """What `fit_options` has learned."""

    stages: ItemResponseModel  # Every question has `N_OPTIONS` − 1 stages.
    # The stage at which each option is chosen, 0 for the right one; shape (questions, `N_OPTIONS`).
    outcome_of_option: IntArray
    option_shares: FloatArray  # How often each is chosen over all questions, (`N_OPTIONS`,).
    habits: Habits | None  # Of the students, in the contexts of their answers; None without any.


def fit_options(
    student: IntArray,
    question: IntArray,
    option: IntArray,
    correct_option: IntArray,
    **settings: Any,
) -> OptionModel:
    """Fit the item response model to the options chosen.

    Parameters
    ----------
    student, question
        Ids, shape (answers,).
    option, correct_option
        The option chosen and the right one, 1 to `N_OPTIONS`, shape (answers,).
    settings
        As in `fit`, which also lists the errors; but for `start`.
    """
    question_ids, number = number_ids(question)
    outcome_of_option = order_options(number, option, correct_option, len(question_ids))
    n_stages = N_OPTIONS - 1
    left = n_stages - outcome_of_option[number, option - 1]
    stages = fit(student, question, left, n_stages=n_stages, **settings)
    # As if each had been chosen once more: what is rare is not impossible.
    shares = (np.bincount(option - 1, minlength=N_OPTIONS) + 1) / (len(option) + N_OPTIONS)
    model = OptionModel(stages, outcome_of_option, shares.astype(np.float32), None)
    context = settings.get("context")
    if context is None or not context.shape[1]:
        return model
    probability = predict_options(model, student, question, context)
    habits = fit_habits(student, _context_of_habits(context), option - 1, probability)
    return model._replace(habits=habits)


def predict_options(
    model: OptionModel, student: IntArray, question: IntArray, context: IntArray | None = None
) -> FloatArray:
    """Return the probability of every option.

    Parameters
    ----------
    model
        From `fit_options`.
    student, question
        Ids of each pair, shape (pairs,), unknown ones too.
    context
        As in `predict`.

    Returns
    -------
    array of float32, shape (pairs, `N_OPTIONS`)
        Rows sum to 1. Of an unknown question, how often each option is chosen over all questions.
    """
    result = break_stick(predict_stages(model.stages, student, question, context))
    number = find_ids(model.stages.question_ids, question)
    for begin in range(0, len(number), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        outcome = model.outcome_of_option.take(number[block], axis=0, mode="clip")
        result[block] = np.take_along_axis(result[block], outcome, axis=1)
    result[number == len(model.outcome_of_option)] = model.option_shares
    if model.habits is None or context is None:
        return result
    return with_habits(model.habits, student, _context_of_habits(context), result)


def order_options(
    question: IntArray, option: IntArray, correct_option: IntArray, n_questions: int
) -> IntArray:
    """Rank each question's options: the right one, then by popularity, (questions, options)."""
    popularity = count_options(question, option, n_questions)
    # A few questions have had two right options; the more frequent one is meant.
    right = count_options(question, correct_option, n_questions).argmax(axis=1)
    popularity[np.arange(n_questions), right] = len(option) + 1
    order = np.argsort(-popularity, axis=1, kind="stable")
    return np.argsort(order, axis=1).astype(np.int8)


def count_options(question: IntArray, option: IntArray, n_questions: int) -> IntArray:
    """Count the options, from 1, of each question, shape (questions, `N_OPTIONS`)."""
    cells = question * np.int32(N_OPTIONS) + (option - 1)
    return np.bincount(cells, minlength=n_questions * N_OPTIONS).reshape(-1, N_OPTIONS)


# ---- Habits -----------------------------------------------------------------------------------


def _context_of_habits(context: IntArray) -> IntArray:
    """Return the level, of shape (pairs,), in which students have habits of their own."""
    return np.ascontiguousarray(context[:, (context.shape[1] - 1) // 2])


def fit_habits(
    student: IntArray, context: IntArray, choice: IntArray, probability: FloatArray
) -> Habits:
    """Estimate habits by choices, from 0, and probabilities without them, (answers, options)."""
    n, n_options = probability.shape
    student_ids, place = number_ids(student)
    context_ids, label = number_ids(context)
    labels = [np.zeros(n, np.int32), label]
    order, start, levels = blocks.sort_answers(place, labels, len(student_ids))
    nothing = np.zeros(n, bool)
    answers = Observations(start, order, nothing, nothing, n, levels)
    # In their new order, for what is far apart in memory is slow to fetch in every step.
    without = np.log(np.maximum(probability[order], _MIN_PROBABILITY))
    chosen = choice[order]
    total = [np.zeros((len(level.label), n_options), np.float32) for level in levels]
    variance = np.full((len(levels), 1), _START_VARIANCE)

    def work(students: slice) -> FloatArray:
        part, nodes = answers.of_students(students)
        rows = slice(start[students.start], start[students.stop])
        own = total[-1][nodes[-1]][blocks.number_rows(part.levels[-1].start)]
        # Habits are small, so that nothing overflows.
        p = np.exp(without[rows] + own)
        p /= p.sum(axis=1, keepdims=True)
        curvature = p * (1 - p) * np.float32(n_options / (n_options - 1))
        # κ = slope + curvature own, the slope being −p, and 1 more for the option chosen.
        kappa = curvature * own - p
        kappa[np.arange(len(p)), chosen[rows]] += 1
        first = part.levels[-1].start[:-1]
        # Of each option W and r, and S, which is 0: no ability is known.
        gathered = np.zeros((n_options, len(first), 3), np.float32)
        gathered[:, :, :2] = np.add.reduceat([curvature, kappa], first, axis=1).T
        nobody = standard_normal(len(part.start) - 1, 0)
        sums = np.zeros((len(levels), 1, 4))
        for option in range(n_options):
            steps, _ = eliminate(part.levels, gathered[option], variance, len(part.start) - 1)
            found, own_sums, _ = restore(part.levels, steps, nobody, variance)
            sums += own_sums
            for whole, own, place in zip(total, found, nodes, strict=True):
                whole[place, option] = own[:, 0]
        return sums

    for _ in range(_N_STEPS):
        sums = sum(blocks.in_threads(work, answers.chunks()), np.zeros((len(levels), 1, 4)))
        number, square, spread, removed = sums.T
        # What all options share has no influence, its mean is 0, and its variance would be missed
        # where options separate: the sum is that over the other dimensions, scaled up to all.
        new = square * n_options / (n_options - 1) + spread
        new, removed = (new / number).T, (removed / number).T
        variance = accelerate(variance, new, removed, _MAX_ACCELERATION)
    return Habits(student_ids, context_ids, levels, total, variance[:, 0])


def with_habits(
    habits: Habits, student: IntArray, context: IntArray, probability: FloatArray
) -> FloatArray:
    """Return the probabilities of the options with habits; who or what is unknown has none."""
    place = find_ids(habits.student_ids, student)
    label = find_ids(habits.context_ids, context)
    habit = np.zeros_like(probability)
    nodes = blocks.find_nodes(habits.levels, place, [np.zeros_like(label), label])
    for node, own in zip(nodes, habits.total, strict=True):
        habit[node >= 0] = own[node[node >= 0]]
    result: FloatArray = probability * np.exp(habit)
    result /= result.sum(axis=1, keepdims=True)
    return result
