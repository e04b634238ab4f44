r"""Which option a student tends to click, whatever it says: habits of position.

Some students click the first option more often than they should, above all in one sitting. So the
logarithm of the probability of option k gets a term of (student, k) and another of (student,
context, k), both Gaussian around 0, and both estimated from how the student's choices differ from
the probabilities that the item response model gives:

    P(option k) ∝ P(option k | item response) exp(habit of k).

The habits of a student are again a tree (see `context`), with a root of no uncertainty in place of
the abilities. Their posterior mode is found by Newton steps in which the curvature, diag(p) − ppᵀ,
is replaced by a diagonal: p(1 − p) n / (n − 1) for n options, so that these separate. That is exact
for equal p, but for what all options share, which has no influence; and always more than half of
the curvature, so that the steps converge.
"""

from typing import NamedTuple

from common.answers import find_ids, number_ids
from common.item_response.blocks import in_threads
from common.item_response.context import accelerate, eliminate, restore
from common.item_response.model import FloatArray, IntArray, standard_normal
from common.item_response.observations import (
    Level,
    Observations,
    find_nodes,
    number_rows,
    sort_answers,
)

import numpy as np

_N_STEPS = 12
_START_VARIANCE, _MAX_ACCELERATION = 0.05, 10.0
_MIN_PROBABILITY = np.float32(1e-6)


class Habits(NamedTuple):
    """The habits of students; ids are those with answers, increasing."""

    student_ids: IntArray
    context_ids: IntArray
    levels: tuple[Level, ...]  # Nodes of the students, and of their contexts.
    total: list[FloatArray]  # Of each level: habit of every option, shape (nodes, options).
    variance: FloatArray  # Prior variance of the terms of each level, shape (levels,).


def fit_habits(
    student: IntArray, context: IntArray, choice: IntArray, probability: FloatArray
) -> Habits:
    """Estimate the habits of students from answers, given the place of the option chosen, from 0.

    `probability` is that of every option without habits, shape (answers, options).
    """
    n = len(student)
    student_ids, place = number_ids(student)
    context_ids, label = number_ids(context)
    order, start, levels = sort_answers(place, [np.zeros(n, np.int32), label], len(student_ids))
    nothing = np.zeros(n, bool)
    answers = Observations(start, order, nothing, nothing, n, levels)
    # In their new order, for what is far apart in memory is slow to fetch in every step.
    without = np.log(np.maximum(probability[order], _MIN_PROBABILITY))
    chosen = choice[order]
    n_options = probability.shape[1]
    total = [np.zeros((len(level.label), n_options), np.float32) for level in levels]
    variance = np.full((len(levels), 1), _START_VARIANCE)

    def work(students: slice) -> FloatArray:
        part, nodes = answers.of_students(students)
        rows = slice(start[students.start], start[students.stop])
        own = total[-1][nodes[-1]][number_rows(part.levels[-1].start)]
        # Habits are small, so that nothing overflows.
        p = np.exp(without[rows] + own)
        p /= p.sum(axis=1, keepdims=True)
        curvature = p * (1 - p) * np.float32(p.shape[1] / (p.shape[1] - 1))
        # κ = slope + curvature own, the slope being −p, and 1 more for the option chosen.
        kappa = curvature * own - p
        kappa[np.arange(len(p)), chosen[rows]] += 1
        first = part.levels[-1].start[:-1]
        # Of each option W and r, and S, which is 0: no ability is known.
        gathered = np.add.reduceat([curvature, kappa, 0 * kappa], first, axis=1)
        nobody = standard_normal(len(part.start) - 1, 0)
        sums = np.zeros((len(levels), 1, 4))
        for option in range(n_options):
            of_option = gathered[:, :, option].T
            steps, _ = eliminate(part.levels, of_option, variance, len(nobody))
            found, own_sums, _ = restore(part.levels, steps, nobody, variance)
            sums += own_sums
            for whole, own, place in zip(total, found, nodes, strict=True):
                whole[place, option] = own[:, 0]
        return sums

    for _ in range(_N_STEPS):
        sums = sum(in_threads(work, answers.chunks()), np.zeros((len(levels), 1, 4)))
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
    """Return the probabilities of the options with the habits of the students.

    Students and contexts without answers have no habits of their own.
    """
    place = find_ids(habits.student_ids, student)
    label = find_ids(habits.context_ids, context)
    habit = np.zeros_like(probability)
    nodes = find_nodes(habits.levels, place, [np.zeros_like(label), label])
    for node, own in zip(nodes, habits.total, strict=True):
        habit[node >= 0] = own[node[node >= 0]]
    result: FloatArray = probability * np.exp(habit)
    result /= result.sum(axis=1, keepdims=True)
    return result
