r"""Habits of position: some students choose one position more often than the options explain.

A student may click the first option too often, above all in one sitting. The log probability of
option k therefore gets two terms, one of (student, k) and one of (student, context, k). Both are
Gaussian around 0. Both are estimated from the difference between the student's choices and the
probabilities of the item response model:

    P(option k) ∝ P(option k | item response) exp(habit of k).

The terms are found by the algorithm of `context`, with a tree of two levels for each student: a
node for the student's term, and below it a node for each context. The algorithm also estimates
abilities; here there are none, so the abilities are given 0 dimensions.

The posterior mode of the terms is found by Newton steps. The curvature of the log likelihood of a
choice is diag(p) − ppᵀ, where p are the probabilities of the n options. It is replaced by the
diagonal matrix with p(1 − p) n / (n − 1), so that each option can be solved for by itself. If all p
are equal, the replacement is exact, except for a term common to all options, which does not change
the probabilities. The replacement always exceeds half of the curvature, which is enough for the
steps to converge.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from common.answers import find_ids, number_ids
from common.arrays import FloatArray, IntArray
from common.item_response.context import Level, accelerate, eliminate, restore
from common.item_response.model import standard_normal
from common.item_response.observations import Observations, find_nodes, number_rows, sort_answers
from common.threads import in_threads

import numpy as np

_N_STEPS = 12
# Variance of the terms of each level at the start.
_START_VARIANCE = 0.05
# Bound on how fast a variance changes, see `context.accelerate`.
_MAX_ACCELERATION = 10.0
# Lower bound on the probability of an option without habits.
_MIN_PROBABILITY = np.float32(1e-6)
# Bound on a habit, so that no exponential overflows. It outweighs `_MIN_PROBABILITY`, whose
# logarithm is −14. Only nearly impossible choices that are made again and again reach this bound.
_MAX_HABIT = np.float32(20)


@dataclass(frozen=True)
class Habits:
    """The habits of students, as a whole and in each context."""

    # Students with answers, increasing.
    student_ids: IntArray
    # Contexts with answers, increasing.
    context_ids: IntArray
    # Nodes of the students, and of the students' contexts.
    levels: tuple[Level, ...]
    # For each level, the habit of every option: the sum of the terms of the node and of the nodes
    # above it, shape (nodes, options).
    total: tuple[FloatArray, ...]
    # Prior variance of the terms of each level, shape (levels,).
    variance: FloatArray


@dataclass(frozen=True)
class _Choices:
    """Choices, sorted by student and context."""

    # Says which choices belong to which student and context. Its items and outcomes are not used.
    observations: Observations
    # Option chosen, from 0, shape (choices,).
    choice: IntArray
    # Logarithm of the probability that every option would have if nobody had habits, shape
    # (choices, options).
    log_probability: FloatArray


def fit_habits(
    student: IntArray, context: IntArray, choice: IntArray, probability: FloatArray
) -> Habits:
    """Estimate habits from choices, and from the probabilities if nobody had habits.

    Parameters
    ----------
    student, context
        Ids, shape (choices,).
    choice
        Option chosen, from 0, shape (choices,).
    probability
        Probability that every option would have if nobody had habits, float32, shape (choices,
        options).
    """
    n_choices, n_options = probability.shape
    student_ids, student_number = number_ids(student)
    context_ids, label = number_ids(context)
    # Level 0 has one node for each student, level 1 one for each context of a student.
    labels = [np.zeros(n_choices, np.int32), label]
    order, start, levels = sort_answers(student_number, labels, len(student_ids))
    # Only `start` and `levels` are used. The other arrays just need the right length.
    unused = np.zeros(n_choices, bool)
    observations = Observations(
        start=start,
        item=order,
        is_right=unused,
        is_used=unused,
        n_items=n_choices,
        levels=levels,
    )
    choices = _Choices(
        observations,
        choice[order],
        # Sorted once, since looking up rows in random order is slow in every step.
        np.log(np.maximum(probability[order], _MIN_PROBABILITY)),
    )
    total = tuple(np.zeros((len(level.label), n_options), np.float32) for level in levels)
    variance = np.full((len(levels), 1), _START_VARIANCE)
    for _ in range(_N_STEPS):
        sums = _update_habits(choices, total, variance)
        variance = _estimate_variance(sums, variance, n_options)
    return Habits(student_ids, context_ids, levels, total, variance[:, 0])


def _update_habits(
    choices: _Choices, total: Sequence[FloatArray], variance: FloatArray
) -> FloatArray:
    """Make a Newton step: change `total` in place; return `restore`'s sums over all options."""
    observations = choices.observations

    def update_chunk(students: slice) -> FloatArray:
        part, nodes = observations.of_students(students)
        n_students = len(part.start) - 1
        last_level_habit = total[-1][nodes[-1]]
        gathered = _gather(choices, part, students, last_level_habit)
        # Abilities of 0 dimensions.
        no_abilities = standard_normal(n_students, 0)
        sums = np.zeros((len(part.levels), 1, 4))
        for option, gathered_of_option in enumerate(gathered):
            eliminations, _ = eliminate(part.levels, gathered_of_option, variance, n_students)
            effects, option_sums, _ = restore(part.levels, eliminations, no_abilities, variance)
            sums += option_sums
            for level_total, rows, effect in zip(total, nodes, effects, strict=True):
                level_total[rows, option] = np.clip(effect[:, 0], -_MAX_HABIT, _MAX_HABIT)
        return sums

    sums: FloatArray = np.zeros((len(observations.levels), 1, 4))
    for chunk_sums in in_threads(update_chunk, observations.chunks()):
        sums = sums + chunk_sums
    return sums


def _gather(
    choices: _Choices, part: Observations, students: slice, leaf_habit: FloatArray
) -> FloatArray:
    """Return what `eliminate` needs for each option, shape (options, leaves, 3).

    A leaf is a student in a context. The columns are W, r and S of the leaf (see `context`).
    `leaf_habit` is the habit of the last step at the leaves, shape (leaves, options).
    """
    start = choices.observations.start
    rows = slice(start[students.start], start[students.stop])
    leaf_start = part.levels[-1].start
    habit = leaf_habit[number_rows(leaf_start)]
    p = np.exp(choices.log_probability[rows] + habit)
    p /= p.sum(axis=1, keepdims=True)
    n_options = p.shape[1]
    curvature = p * (1 - p) * np.float32(n_options / (n_options - 1))
    # The log likelihood is replaced by a parabola in the habit. Its linear term is
    # κ = slope + curvature · habit, where the slope is 1 − p for the option chosen and −p for the
    # others.
    kappa = curvature * habit - p
    kappa[np.arange(len(p)), choices.choice[rows]] += 1
    first = leaf_start[:-1]
    gathered = np.zeros((n_options, len(first), 3), np.float32)
    # For each option and leaf, the sums of curvature and κ over the leaf's choices. The third sum
    # is for abilities. It stays 0, since habits are fitted without abilities.
    gathered[:, :, :2] = np.add.reduceat([curvature, kappa], first, axis=1).T
    return gathered


def _estimate_variance(sums: FloatArray, old: FloatArray, n_options: int) -> FloatArray:
    """Return the terms' prior variance at each level, shape (levels, 1), from `restore`'s sums."""
    n_terms, squares, variances, squares_of_removed = np.moveaxis(sums, -1, 0)
    # A constant that is added to the terms of all n options does not change the probabilities, so
    # its estimate is 0. The terms of a node have n − 1 degrees of freedom left: scale their squares
    # up to n.
    squares = squares * n_options / (n_options - 1)
    new = (squares + variances) / n_terms
    return accelerate(old, new, squares_of_removed / n_terms, _MAX_ACCELERATION)


def add_habits(
    habits: Habits, student: IntArray, context: IntArray, probability: FloatArray
) -> FloatArray:
    """Return the probabilities of options with habits.

    In a context in which a student has no answers, the student's overall habit is used. An unknown
    student has no habit.
    """
    student_position = find_ids(habits.student_ids, student)
    label = find_ids(habits.context_ids, context)
    habit = np.zeros_like(probability)
    nodes = find_nodes(habits.levels, student_position, [np.zeros_like(label), label])
    # A habit includes the terms of the levels above, so the deepest level with answers counts.
    for node, level_total in zip(nodes, habits.total, strict=True):
        has_answers = node >= 0
        habit[has_answers] = level_total[node[has_answers]]
    result: FloatArray = probability * np.exp(habit)
    result /= result.sum(axis=1, keepdims=True)
    return result
