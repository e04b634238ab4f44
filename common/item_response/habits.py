r"""Habits of position: some students choose one position more often than the options explain.

A student may click the first option too often, above all in one sitting. The log probability of
option k therefore gets two terms, a term of (student, k) and a term of (student, context, k). Both
are Gaussian around 0. Both are estimated from the difference between the student's choices and the
probabilities of the item response model:

    P(option k) ∝ P(option k | item response) exp(habit of k).

The terms are found by the algorithm of `context`, with a tree of two levels for each student: a
node for the student's term, and below it a node for each context. A node's habit is the sum of its
term and the term of the node above it. The algorithm also estimates abilities; here there are none,
so the abilities are given 0 dimensions.

The posterior mode of the terms is found by Newton steps. The curvature of the log likelihood of a
choice is diag(p) − ppᵀ, where p are the probabilities of the n options. This matrix is replaced by
the diagonal matrix with p(1 − p) n / (n − 1), so that each option can be solved for by itself. If
all p are equal, the replacement is exact, except for a term common to all options, which does not
change the probabilities. The replacement always exceeds half of the curvature, which is enough for
the steps to converge.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from common.answers import find_ids, number_ids
from common.arrays import FloatArray, IntArray
from common.item_response.context import EFFECT_MEAN, Level, accelerate, eliminate, restore
from common.item_response.model import standard_normal
from common.item_response.observations import Observations, find_nodes, number_rows, sort_answers
from common.threads import in_threads

import numpy as np

_N_STEPS = 12
# Prior variance of the terms of students, and of the terms of their contexts, at the start.
_START_VARIANCE = 0.05
# The prior variances are estimated by EM (expectation maximisation). To save time,
# `context.accelerate` takes several of its steps at once, but at most this many.
_MAX_ACCELERATION = 10.0
# Lower bound on the probability of an option before habits are taken into account. Its logarithm is
# −14.
_MIN_PROBABILITY = np.float32(1e-6)
# Upper bound on the size of a habit, so that no exponential overflows. A habit of 20 can make an
# option with the log probability −14 the most probable one. Only nearly impossible choices that
# are made again and again reach this bound.
_MAX_HABIT = np.float32(20)


@dataclass(frozen=True)
class Habits:
    """The habits of students: which options each of them prefers, whatever the question is.

    Each student has an overall habit, and one for each context with answers of the student.
    """

    # Students with answers, increasing.
    student_ids: IntArray
    # Contexts with answers, increasing.
    context_ids: IntArray
    # The first level has one node for each student, the second one for each context of a student.
    levels: tuple[Level, ...]
    # For each level, what is added to the log probability of every option, shape (nodes, options).
    # At a node of the first level this is the student's term. At a node of the second level it is
    # the student's term plus a term of the student in this context.
    total: tuple[FloatArray, ...]
    # Prior variance of the students' terms, then of the contexts' terms, shape (2,).
    variance: FloatArray


@dataclass(frozen=True)
class _Choices:
    """Choices, sorted by student and context."""

    # The student and the context of each choice. The arrays `item`, `is_right` and `is_used` mean
    # nothing here.
    observations: Observations
    # Option chosen, from 0, shape (choices,).
    choice: IntArray
    # Logarithm of the probability of every option before habits are added to it, shape (choices,
    # options).
    log_probability: FloatArray


def fit_habits(
    student: IntArray, context: IntArray, choice: IntArray, probability: FloatArray
) -> Habits:
    """Estimate the habits of students from their choices.

    Parameters
    ----------
    student, context
        Ids, shape (choices,).
    choice
        Option chosen, from 0, shape (choices,).
    probability
        Probability of every option without habits, by the item response model, float32, shape
        (choices, options).
    """
    n_options = probability.shape[1]
    student_ids, student_number = number_ids(student)
    context_ids, context_number = number_ids(context)
    order, observations = _sort_choices(student_number, context_number, len(student_ids))
    # Sorted once, since looking up rows in random order is slow in every step.
    log_probability = np.log(np.maximum(probability[order], _MIN_PROBABILITY))
    choices = _Choices(observations, choice[order], log_probability)
    levels = observations.levels
    total = tuple(np.zeros((len(level.label), n_options), np.float32) for level in levels)
    variance = np.full((len(levels), 1), _START_VARIANCE)
    for _ in range(_N_STEPS):
        sums = _update_habits(choices, habits=total, variance=variance)
        variance = _estimate_variance(sums, variance, n_options)
    return Habits(student_ids, context_ids, levels, total, variance[:, 0])


def _sort_choices(
    student: IntArray, context: IntArray, n_students: int
) -> tuple[IntArray, Observations]:
    """Return the order of choices by student and context, and the choices in this order.

    Students and contexts are numbered from 0. A habit has a term for the student and a term for the
    student in a context, so the choices have two levels (see `Level`). A node of the first level
    holds all choices of a student, a node of the second the student's choices in one context.
    """
    n_choices = len(student)
    # In the first level, all choices of a student have the same label.
    same_label = np.zeros(n_choices, np.int32)
    order, start, levels = sort_answers(student, [same_label, context], n_students)
    # Habits use only `start` and `levels` of `Observations`. The other arrays must have the right
    # length, but their values mean nothing.
    unused = np.zeros(n_choices, bool)
    observations = Observations(
        start=start,
        item=order,
        is_right=unused,
        is_used=unused,
        n_items=n_choices,
        levels=levels,
    )
    return order, observations


def _update_habits(
    choices: _Choices, habits: Sequence[FloatArray], variance: FloatArray
) -> FloatArray:
    """Bring the habits of all students closer to their most probable values, by a Newton step.

    A habit is the sum of a term of the student and, in a context, a term of the student in this
    context (see the module's docstring). The terms have the prior N(0, variance).

    Parameters
    ----------
    choices
        The options that the students chose.
    habits
        Changed in place. The first array has the overall habits of the students, shape (students,
        options). The second has a row for each context of each student: the student's habits in
        this context.
    variance
        Prior variance of the terms of students, then of students in contexts, shape (2, 1).

    Returns
    -------
    array of float64, shape (2, 1, 4)
        Four numbers about the terms of students, then four about those of students in contexts: how
        many terms there are, and the sums over them of (posterior mean)², of the posterior variance
        and of (1 − posterior variance / prior variance)². `_estimate_variance` computes the prior
        variances of the next step from them.
    """
    sums: FloatArray = np.zeros((2, 1, 4))
    # Different chunks of students write into different rows of `habits`.
    for chunk_sums in in_threads(
        lambda students: _update_habits_of_students(students, choices, habits, variance),
        choices.observations.chunks(),
    ):
        sums = sums + chunk_sums
    return sums


def _update_habits_of_students(
    students: slice, choices: _Choices, habits: Sequence[FloatArray], variance: FloatArray
) -> FloatArray:
    """Make the Newton step of `_update_habits` for a range of students.

    For this step, the log likelihood of a student's choices is a parabola in the habits, without
    products of the habits of two options. So each option is a problem of its own: find the Gaussian
    posterior of the student's habit as a whole, and of the student's habit in each context. The
    contexts lie within the student, as topics lie within areas, so the functions for nested effects
    serve here too. `eliminate` goes from the contexts to the student, and `restore` back again.
    """
    # `part.levels` has two levels: the students as a whole, then their contexts. `rows` has the
    # range of their rows in each of the two arrays of `habits`.
    part, rows = choices.observations.of_students(students)
    n_students = len(part.start) - 1
    habit_in_context = habits[1][rows[1]]
    # For each option, the coefficients of the parabolas, summed for each student in each context.
    sums_by_option = _sum_by_leaf(choices, part, students, habit_in_context)
    # `restore` also takes abilities of students, which are not used here: they have 0 dimensions.
    no_abilities = standard_normal(n_students, 0)
    sums = np.zeros((2, 1, 4))
    for option, sums_of_option in enumerate(sums_by_option):
        conditional_totals, _ = eliminate(part.levels, sums_of_option, variance, n_students)
        posteriors, sums_over_terms, _ = restore(
            part.levels, conditional_totals, no_abilities, variance
        )
        sums += sums_over_terms
        # On each level, the mean of the posterior is the new habit of this option.
        for habits_of_level, rows_of_level, posterior in zip(habits, rows, posteriors, strict=True):
            new_habits = np.clip(posterior[:, EFFECT_MEAN], -_MAX_HABIT, _MAX_HABIT)
            habits_of_level[rows_of_level, option] = new_habits
    return sums


def _sum_by_leaf(
    choices: _Choices, part: Observations, students: slice, leaf_habit: FloatArray
) -> FloatArray:
    """Return the sums over the choices of each leaf that `context.eliminate` needs.

    A leaf is a student in a context. For each option, the log likelihood of a choice is replaced by
    linear · habit − weight · habit² / 2, its Taylor expansion of second order at the habit before
    the step, apart from a constant.

    Parameters
    ----------
    choices
        The choices of all students.
    part
        The students and contexts to sum over.
    students
        The range of these students.
    leaf_habit
        The habits of the leaves before the step, shape (leaves, options).

    Returns
    -------
    array of float32, shape (options, leaves, 3)
        The sums of weight and of linear. The third column is for abilities, which habits do not
        have; it is 0.
    """
    start = choices.observations.start
    rows = slice(start[students.start], start[students.stop])
    leaf_start = part.levels[-1].start
    habit = leaf_habit[number_rows(leaf_start)]
    p = np.exp(choices.log_probability[rows] + habit)
    p /= p.sum(axis=1, keepdims=True)
    n_options = p.shape[1]
    # The factor n / (n − 1) makes up for the curvature between options, which is left out (see the
    # module's docstring).
    weight = p * (1 - p) * np.float32(n_options / (n_options - 1))
    # linear = slope + weight · habit. The slope of the log likelihood is 1 − p for the option
    # chosen and −p for the others.
    linear = weight * habit - p
    linear[np.arange(len(p)), choices.choice[rows]] += 1
    first = leaf_start[:-1]
    sums = np.zeros((n_options, len(first), 3), np.float32)
    sums[:, :, :2] = np.add.reduceat([weight, linear], first, axis=1).T
    return sums


def _estimate_variance(sums: FloatArray, old: FloatArray, n_options: int) -> FloatArray:
    """Return the prior variance of the terms of students and of contexts, shape (2, 1).

    The last axis of `sums` has the number of terms, and sums over the terms: of their squared
    posterior means, of their posterior variances, and of (1 − posterior variance / prior
    variance)². `old` is the prior variance with which they were computed.
    """
    n_terms, squares, variances, squares_of_removed = np.moveaxis(sums, -1, 0)
    # A constant that is added to the terms of all n options does not change the probabilities, so
    # this constant is estimated as 0. Only n − 1 of a node's n terms are free, which makes the sum
    # of their squares too small by the factor (n − 1) / n.
    squares = squares * n_options / (n_options - 1)
    new = (squares + variances) / n_terms
    return accelerate(old, new, squares_of_removed / n_terms, _MAX_ACCELERATION)


def add_habits(
    habits: Habits, student: IntArray, context: IntArray, probability: FloatArray
) -> FloatArray:
    """Add habits to the log probabilities of options; return probabilities, shape (pairs, options).

    A pair is a student and a question in a context. In a context where the student has answers, the
    student's habit in this context counts; elsewhere, the student's overall habit. An unknown
    student has no habits.

    Parameters
    ----------
    habits
        The result of `fit_habits`.
    student, context
        Ids, shape (pairs,).
    probability
        The probabilities without habits, shape (pairs, options).
    """
    student_position = find_ids(habits.student_ids, student)
    context_position = find_ids(habits.context_ids, context)
    # `habits.levels` has two levels: the students as a whole, then their contexts. At the first
    # level, a student has only one node, whose label is 0.
    labels = [np.zeros_like(context_position), context_position]
    rows_by_level = find_nodes(habits.levels, student_position, labels)
    habit = np.zeros_like(probability)
    # The second level overwrites the first where the student has answers in the context.
    for row, habit_of_row in zip(rows_by_level, habits.total, strict=True):
        # The row of a pair whose habit is not known is −1.
        is_known = row >= 0
        habit[is_known] = habit_of_row[row[is_known]]
    result: FloatArray = probability * np.exp(habit)
    result /= result.sum(axis=1, keepdims=True)
    return result
