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
# A student's habit in a context is the student's overall habit plus a term for the context. This is
# the prior variance of overall habits and of terms for contexts at the start of the fit.
_START_VARIANCE = 0.05
# The prior variances are estimated by EM (expectation maximisation). To save time,
# `context.accelerate` takes several EM steps at once, but at most this many.
_MAX_ACCELERATION = 10.0
# Lower bound on the probability of an option before habits are taken into account. The logarithm of
# this bound is about −14.
_MIN_PROBABILITY = np.float32(1e-6)
# Upper bound on the size of a habit, so that no exponential overflows. A habit of 20 can make an
# option with the log probability −14 the most probable one. A habit reaches this bound only if the
# student makes nearly impossible choices again and again.
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
    # Two levels of nodes. The first level has one node for each student. The second level has one
    # node for each student and each context in which the student has answers.
    levels: tuple[Level, ...]
    # For each level, what the habit at each node adds to the log probability of every option, shape
    # (nodes, options). The first level has the students' overall habits. The second level has their
    # habits in contexts: the overall habit plus a term for the context.
    total: tuple[FloatArray, ...]
    # Two prior variances, shape (2,): of the overall habits, then of the terms for contexts.
    variance: FloatArray


@dataclass(frozen=True)
class _Choices:
    """Choices, sorted by student and context."""

    # The student and the context of each choice. The arrays `item`, `is_right` and `is_used` mean
    # nothing here.
    observations: Observations
    # The option that the student chose, from 0, shape (choices,).
    choice: IntArray
    # Logarithm of the probability of every option before habits are added to it, shape (choices,
    # options).
    log_probability: FloatArray


def fit_habits(
    student: IntArray, context: IntArray, choice: IntArray, probability: FloatArray
) -> Habits:
    """Estimate the habits of students from their choices.

    A habit says how much more often a student chooses an option, such as the first one, than the
    item response model expects. A student has an overall habit, and a habit in each context, such
    as a quiz.

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
    # Sort the probabilities once, since looking up rows in random order would be slow in every
    # step.
    log_probability = np.log(np.maximum(probability[order], _MIN_PROBABILITY))
    choices = _Choices(observations, choice[order], log_probability)
    levels = observations.levels
    # For each level, the habits at its nodes, shape (nodes, options). Each step changes them in
    # place.
    habits = tuple(np.zeros((len(level.label), n_options), np.float32) for level in levels)
    variance = np.full((len(levels), 1), _START_VARIANCE)
    for _ in range(_N_STEPS):
        sums = _update_habits(choices, habits, variance)
        variance = _estimate_variance(sums, variance, n_options)
    return Habits(student_ids, context_ids, levels, total=habits, variance=variance[:, 0])


def _sort_choices(
    student: IntArray, context: IntArray, n_students: int
) -> tuple[IntArray, Observations]:
    """Sort choices by student and context; return their order, and the sorted `Observations`.

    Students and contexts are numbered from 0. The returned `Observations` groups the sorted choices
    in two ways, called levels. A group is called a node. On the first level, a node holds all
    choices of a student, for the student's overall habit. On the second level, a node holds the
    choices of a student in one context, for the student's habit in this context.
    """
    n_choices = len(student)
    # On each level, `sort_answers` puts choices of a student that have the same label into one
    # node. On the first level, all choices have the label 0. On the second level, the label of a
    # choice is the number of its context.
    label_of_all = np.zeros(n_choices, np.int32)
    order, start, levels = sort_answers(student, [label_of_all, context], n_students)
    # `Observations` also needs the arrays `item`, `is_right` and `is_used`, which habits do not
    # use. So give it any arrays of the right length and dtype: `order` and `placeholder`.
    placeholder = np.zeros(n_choices, bool)
    observations = Observations(
        start=start,
        item=order,
        is_right=placeholder,
        is_used=placeholder,
        n_items=n_choices,
        levels=levels,
    )
    return order, observations


def _update_habits(
    choices: _Choices, habits: Sequence[FloatArray], variance: FloatArray
) -> FloatArray:
    """Bring the habits of all students closer to their most probable values, by a Newton step.

    A student's habit in a context is the student's overall habit plus a term for the context (see
    the module's docstring). Overall habits and terms for contexts have the prior N(0, variance).

    Parameters
    ----------
    choices
        The options that the students chose.
    habits
        Changed in place. The first array has the overall habits of the students, shape (students,
        options). The second has a row for each context of each student: the student's habits in
        this context.
    variance
        Prior variance of the overall habits, then of the terms for contexts, shape (2, 1).

    Returns
    -------
    array of float64, shape (2, 1, 4)
        The sums from which `_estimate_variance` computes the prior variances of the next step. Row
        0 is about the overall habits, row 1 about the terms for contexts. A row has four numbers:
        how many habits or terms there are, and their sums of (posterior mean)², of the posterior
        variance, and of (1 − posterior variance / prior variance)². The last sum tells how many EM
        steps `accelerate` may take at once.
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

    The habits are changed in place. Returns what these students add to the sums that
    `_update_habits` returns.

    For this step, the log likelihood of a student's choices is replaced by a sum of parabolas (see
    the module's docstring). Each parabola is a function of the habit of one option. So the options
    can be handled one after the other. For each option, the step finds the Gaussian posterior of
    the student's overall habit, and of the student's habit in each context.

    The overall habit and the habits in contexts form a tree, as effects of nested contexts do, so
    the functions for these effects serve here too. `eliminate` goes from the contexts up to the
    student, and `restore` goes back down to the contexts.
    """
    # `part` holds the choices of these students. It has two levels: the students as a whole, then
    # their contexts. For each level, `row_ranges` has the range of the rows in `habits` that belong
    # to these students.
    part, row_ranges = choices.observations.of_students(students)
    n_students = len(part.start) - 1
    _, all_habits_in_contexts = habits
    _, rows_of_contexts = row_ranges
    # A leaf is a student in a context. Its habits are the student's habits in the context, here
    # before the step.
    leaf_habits = all_habits_in_contexts[rows_of_contexts]
    # For the step, a parabola replaces the log likelihood of each choice, for each option. Sum the
    # coefficients of the parabolas over the choices of each leaf.
    leaf_sums_by_option = _sum_by_leaf(choices, part, students, leaf_habits)
    # `restore` requires abilities of the students. Habits do not depend on abilities, so pass
    # abilities of 0 dimensions.
    no_abilities = standard_normal(n_students, 0)
    # For each option, `restore` returns the sums from which the prior variances are estimated,
    # shape (2, 1, 4). Add them up over the options.
    sums = np.zeros((2, 1, 4))
    for option, leaf_sums in enumerate(leaf_sums_by_option):
        conditional_totals, _ = eliminate(part.levels, leaf_sums, variance, n_students)
        # `posteriors` has an array for each level. A row is the posterior of the habit at one node.
        posteriors, sums_over_terms, _ = restore(
            part.levels, conditional_totals, no_abilities, variance
        )
        sums += sums_over_terms
        # The new habits for this option are the posterior means.
        for habits_of_level, rows, posterior in zip(habits, row_ranges, posteriors, strict=True):
            new_habits = np.clip(posterior[:, EFFECT_MEAN], -_MAX_HABIT, _MAX_HABIT)
            habits_of_level[rows, option] = new_habits
    return sums


def _sum_by_leaf(
    choices: _Choices, part: Observations, students: slice, leaf_habit: FloatArray
) -> FloatArray:
    """Return sums over the choices of each leaf; `context.eliminate` needs these sums.

    A leaf is a student in a context. For each option, the log likelihood of a choice is replaced by
    the parabola linear · habit − weight · habit² / 2. At the habit before the step, the parabola
    has the slope of the log likelihood. The module's docstring explains its curvature `weight`.

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
    # `rows` is the range of these students' choices, since choices are sorted by student.
    start = choices.observations.start
    rows = slice(start[students.start], start[students.stop])
    # The choices of leaf i are leaf_start[i] to leaf_start[i + 1]. `number_rows` returns the leaf
    # of each choice.
    leaf_start = part.levels[-1].start
    habit = leaf_habit[number_rows(leaf_start)]
    p = np.exp(choices.log_probability[rows] + habit)
    p /= p.sum(axis=1, keepdims=True)
    n_options = p.shape[1]
    # Without its last factor, `weight` is the curvature of the log likelihood in the habit of one
    # option. The second derivatives by the habits of two different options are left out. The factor
    # n / (n − 1), where n is the number of options, makes up for them (see the module's docstring).
    weight = p * (1 - p) * np.float32(n_options / (n_options - 1))
    # The slope is the derivative of the log likelihood by the habit: 1 − p for the chosen option,
    # and −p for each other option. The coefficient `linear` is slope + weight · habit.
    linear = weight * habit - p
    linear[np.arange(len(p)), choices.choice[rows]] += 1
    first_choice_of_leaf = leaf_start[:-1]
    sums = np.zeros((n_options, len(first_choice_of_leaf), 3), np.float32)
    # `reduceat` sums over the choices of each leaf: from its first choice to the first choice of
    # the next leaf. The sums have the shape (2, leaves, options), and their transpose the shape
    # (options, leaves, 2).
    sums_by_leaf = np.add.reduceat([weight, linear], first_choice_of_leaf, axis=1)
    sums[:, :, :2] = sums_by_leaf.T
    return sums


def _estimate_variance(sums: FloatArray, old: FloatArray, n_options: int) -> FloatArray:
    """Return new prior variances of overall habits and of terms for contexts, shape (2, 1).

    A student's habit in a context is the overall habit plus a term for the context. The first
    variance is that of the overall habits, the second that of the terms for contexts. `sums` is the
    result of `_update_habits` with the prior variances `old`.
    """
    n_terms, squares, variances, squares_of_removed = np.moveaxis(sums, -1, 0)
    # For each student or context, there is one term for each of the n options. A constant that is
    # added to all n terms does not change the probabilities, so this constant is estimated as 0.
    # Only n − 1 of the terms are free, so their sum of squares is too small by the factor
    # (n − 1) / n: correct it.
    squares = squares * n_options / (n_options - 1)
    new = (squares + variances) / n_terms
    return accelerate(old, new, squares_of_removed / n_terms, _MAX_ACCELERATION)


def add_habits(
    habits: Habits, student: IntArray, context: IntArray, probability: FloatArray
) -> FloatArray:
    """Add habits to the log probabilities of options; return probabilities, shape (pairs, options).

    A pair is a student and a question in a context. In a context where the student has answers, the
    student's habit in this context counts; elsewhere, the student's overall habit counts. An
    unknown student has no habits.

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
    # `habits.levels` has two levels. On the first level, there is one node for each student, with
    # the label 0. On the second level, there is one node for each context of a student, and its
    # label is the position of the context. On each level, `find_nodes` finds the node of each
    # pair's student that has the pair's label.
    labels = [np.zeros_like(context_position), context_position]
    nodes_by_level = find_nodes(habits.levels, student_position, labels)
    habit = np.zeros_like(probability)
    # The first round of the loop takes the overall habit of the student. If the student has answers
    # in the context, the second round replaces it by the habit in the context.
    for node, habit_of_node in zip(nodes_by_level, habits.total, strict=True):
        # A pair without a node on this level has the node −1.
        is_known = node >= 0
        habit[is_known] = habit_of_node[node[is_known]]
    result: FloatArray = probability * np.exp(habit)
    result /= result.sum(axis=1, keepdims=True)
    return result
