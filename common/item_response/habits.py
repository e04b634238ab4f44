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

from dataclasses import dataclass

from common.answers import find_ids, number_ids
from common.item_response.blocks import in_threads
from common.item_response.context import accelerate
from common.item_response.model import FloatArray, IntArray
from common.item_response.observations import sort_by_student
from common.item_response.tree import Level, find_nodes

import numpy as np
import numpy.typing as npt

_N_STEPS = 12
_START_VARIANCE, _MAX_ACCELERATION = 0.05, 10.0
_MIN_PROBABILITY = np.float32(1e-6)

Steps = list[tuple[FloatArray, FloatArray, FloatArray]]


@dataclass(frozen=True)
class Habits:
    """The habits of students.

    Attributes
    ----------
    student_ids, context_ids
        Those with answers, increasing.
    levels
        Nodes of the students, and of their contexts.
    total
        For each level, the habit of every option at its nodes, shape (nodes, options).
    variance
        Prior variance of the terms of each level, shape (levels,).
    """

    student_ids: IntArray
    context_ids: IntArray
    levels: tuple[Level, ...]
    total: list[FloatArray]
    variance: FloatArray


def fit_habits(
    student: IntArray, context: IntArray, choice: IntArray, probability: FloatArray
) -> Habits:
    """Estimate the habits of students.

    Parameters
    ----------
    student, context
        Of each answer, whole numbers of at least 0, shape (answers,).
    choice
        Place of the option chosen, from 0, shape (answers,).
    probability
        Of every option without habits, shape (answers, options).
    """
    n = len(student)
    student_ids, place = number_ids(student)
    context_ids, label = number_ids(context)
    rows = np.arange(n, dtype=np.int32)
    nothing = np.zeros(n, bool)
    answers = sort_by_student(
        place, rows, nothing, ~nothing, (len(student_ids), n), [np.zeros(n, np.int32), label]
    )
    levels = answers.levels
    # In their new order, for what is far apart in memory is slow to fetch in every step.
    without = np.log(np.maximum(probability[answers.item], _MIN_PROBABILITY))
    chosen = choice[answers.item]
    total = [np.zeros((len(level), probability.shape[1]), np.float32) for level in levels]
    variance = np.full(len(levels), _START_VARIANCE)

    def work(students: slice) -> FloatArray:
        part = answers.of_students(students.start, students.stop)
        chunk, nodes = answers.places_of_students(students.start, students.stop)
        leaf = part.leaf()
        own = total[-1][nodes[-1]][leaf]
        # Habits are small, so that nothing overflows.
        p = np.exp(without[chunk] + own)
        p /= p.sum(axis=1, keepdims=True)
        curvature = p * (1 - p) * np.float32(p.shape[1] / (p.shape[1] - 1))
        # κ = slope + curvature own, the slope being −p, and 1 more for the option chosen.
        kappa = curvature * own - p
        kappa[np.arange(len(p)), chosen[chunk]] += 1
        starts = part.levels[-1].start[:-1]
        weight, kappa = np.add.reduceat(curvature, starts), np.add.reduceat(kappa, starts)
        steps = _eliminate(part.levels, weight, kappa, variance)
        found, sums = _restore(part.levels, steps, variance, part.n_students)
        for whole, values, place in zip(total, found, nodes, strict=True):
            whole[place] = values
        return sums

    for _ in range(_N_STEPS):
        sums = sum(in_threads(work, answers.chunks()), np.zeros((len(levels), 2)))
        square, removed = sums.T / [values.size for values in total]
        variance = accelerate(variance, square, removed, _MAX_ACCELERATION)
    return Habits(student_ids, context_ids, levels, total, variance)


def with_habits(
    habits: Habits, student: IntArray, context: IntArray, probability: FloatArray
) -> FloatArray:
    """Return the probabilities of the options with the habits of the students.

    Parameters
    ----------
    habits
        From `fit_habits`.
    student, context, probability
        Of each pair, as there; students and contexts without answers have no habits of their own.
    """
    place = find_ids(habits.student_ids, student)
    label = find_ids(habits.context_ids, context)
    habit = np.zeros_like(probability)
    for node, own in zip(
        find_nodes(habits.levels, place, [np.zeros_like(label), label]), habits.total, strict=True
    ):
        habit[node >= 0] = own[node[node >= 0]]
    result: FloatArray = probability * np.exp(habit)
    result /= result.sum(axis=1, keepdims=True)
    return result


def _eliminate(
    levels: tuple[Level, ...], weight: FloatArray, kappa: FloatArray, variance: FloatArray
) -> Steps:
    """As `context.eliminate`, for every option: shapes (nodes, options)."""
    steps: Steps = []
    for depth in reversed(range(len(levels))):
        noise = 1 / (np.float32(1 / variance[depth]) + weight)
        gain = noise / np.float32(variance[depth])
        steps.append((gain, noise, noise * kappa))
        if depth:
            n_parents = len(levels[depth - 1])
            weight = levels[depth].sum_children(gain * weight, n_parents)
            kappa = levels[depth].sum_children(gain * kappa, n_parents)
    return steps[::-1]


def _restore(
    levels: tuple[Level, ...], steps: Steps, prior: FloatArray, n_students: int
) -> tuple[list[FloatArray], npt.NDArray[np.float64]]:
    """As `context.restore`: totals at the nodes of each level, sums of E[u²] and of s²."""
    shape = n_students, steps[0][0].shape[1]
    mean: FloatArray = np.zeros(shape, np.float32)
    variance: FloatArray = np.zeros(shape, np.float32)
    totals: list[FloatArray] = []
    sums = np.zeros((len(levels), 2))
    for depth, (level, (gain, noise, linear)) in enumerate(zip(levels, steps, strict=True)):
        above, variance_above = mean[level.parent], variance[level.parent]
        mean = gain * above + linear
        variance = gain * gain * variance_above + noise
        own_variance = (1 - gain) ** 2 * variance_above + noise
        # What all options share has no influence, its mean is 0, and its variance would be missed
        # where options separate: the sum is that over the other dimensions, scaled up to all.
        scaled = (mean - above) ** 2 * np.float32(shape[1] / (shape[1] - 1)) + own_variance
        removed = 1 - own_variance / np.float32(prior[depth])
        sums[depth] = [x.sum(dtype=np.float64) for x in (scaled, removed * removed)]
        totals.append(mean)
    return totals, sums
