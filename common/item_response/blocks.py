"""What makes the fit fast: one pass over the answers, in blocks and threads.

Answers lie sorted by student. One pass over them updates every student and sums up what the items
need. It goes in chunks of students, one thread for each chunk, and within a chunk in blocks of
answers whose temporary arrays stay in the processor's cache; nothing of the size students × items
is ever made. Chunks do not depend on the number of threads, nor does the order in which their
results are summed up, so neither do the results.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from common.item_response import context, model
from common.item_response.model import Effects, FloatArray, Gaussians, IntArray, State
from common.item_response.observations import Observations

Result = TypeVar("Result")

# Answers in a block.
_BLOCK = 1 << 13


def _count_threads() -> int:
    """Take as many as BLAS is given, so that processes that share a machine do not collide."""
    # May be a list, one number for each level of nesting.
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(given) if given.isdecimal() and int(given) else min(os.cpu_count() or 1, 8)


N_THREADS = _count_threads()


def run_step(
    observations: Observations, state: State, group: IntArray, guessing: FloatArray
) -> State:
    """Make one step of the fit: students and effects, then items, then priors, then the scale.

    `group` and `guessing` have shape (items,); items of one group share a prior.
    """
    state, sums, square = pass_over_answers(observations, state, guessing)
    items = model.update_items(sums, state.prior, group)
    prior = model.estimate_prior(items, group, sums[:, -1] > 0, state.prior)
    items = Gaussians(items.mean.astype(np.float32), items.covariance.astype(np.float32))
    state = replace(state, items=items, prior=prior)
    if state.variance is not None:
        state = replace(state, variance=context.estimate_variance(square, state.variance))
    return model.standardise(state)


def pass_over_answers(
    observations: Observations, state: State, guessing: FloatArray
) -> tuple[State, FloatArray, FloatArray]:
    """Update all students and effects, and sum up what the items need (see `sum_for_items`).

    The last result is what the variances of the effects need (see `context.restore`).
    """
    students, items = state.students, state.items
    levels = observations.levels if state.variance is not None else ()
    of_items, item_rows = model.moments(items), _rows(items)
    k = students.mean.shape[1]
    mean, covariance = np.empty_like(students.mean), np.empty_like(students.covariance)
    effects = tuple(Effects(*map(np.empty_like, e)) for e in state.effects)

    def work(rows: slice) -> tuple[FloatArray, FloatArray]:
        part = observations.of_students(rows.start, rows.stop)
        answers = slice(int(observations.start[rows.start]), int(observations.start[rows.stop]))
        old = _rows(model.append_one(Gaussians(students.mean[rows], students.covariance[rows])))
        kappa, weight = np.empty((2, len(part.item)), np.float32)
        nodes = [level.nodes_of(answers) for level in levels]
        leaf, at_leaf = None, None
        if levels:
            leaf, at_leaf = part.leaf(), state.effects[-1].take(nodes[-1])
        for block, m, v in _logit_blocks(old, item_rows, part.student(), part.item, at_leaf, leaf):
            slope, curvature = model.expected_slope_and_curvature(
                m, v, part.is_right[block], guessing[part.item[block]]
            )
            kappa[block], weight[block] = slope + curvature * m, curvature
        kappa *= part.is_used
        weight *= part.is_used
        weights, kappas = part.matrix(weight), part.matrix(kappa)
        if not levels:
            new = model.update_students(weights, kappas, of_items)
            mean[rows], covariance[rows] = new.mean, new.covariance
            sums = model.sum_for_items(weights, kappas, model.moments(model.append_one(new)))
            return sums, np.zeros(0)
        leaf_weights, leaf_kappas = part.leaf_matrix(weight), part.leaf_matrix(kappa)
        assert state.variance is not None
        steps, *taken = context.eliminate(
            part.levels, leaf_weights, leaf_kappas, of_items, state.variance, part.n_students
        )
        new = model.update_students(weights, kappas, of_items, (taken[0], taken[1]))
        mean[rows], covariance[rows] = new.mean, new.covariance
        found, square = context.restore(part.levels, steps, new, state.variance)
        for whole, own, place in zip(effects, found, nodes, strict=True):
            for target, values in zip(whole, own, strict=True):
                target[place] = values
        kappas = part.matrix(kappa - weight * found[-1].mean[leaf])
        sums = model.sum_for_items(weights, kappas, model.moments(model.append_one(new)))
        sums[:, :k] -= leaf_weights.T @ found[-1].with_ability
        return sums, square

    total = np.zeros((observations.n_items, item_rows.shape[1]))
    squares = np.zeros(0 if state.variance is None else (*state.variance.shape, 3))
    for sums, square in in_threads(work, observations.chunks()):
        total += sums
        squares += square
    return replace(state, students=Gaussians(mean, covariance), effects=effects), total, squares


def logit_moments(
    students: Gaussians,
    items: Gaussians,
    student: IntArray,
    item: IntArray,
    effects: Effects | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the logit slopes · ability + intercept for pairs.

    Posteriors of students and items are taken as independent; `student` and `item` are places in
    them, shape (pairs,). The `effects` of the pairs are added.
    """
    mean, variance = np.empty((2, len(student)), np.float32)
    sides = _rows(model.append_one(students)), _rows(items)
    for block, m, v in _logit_blocks(*sides, student, item, effects):
        mean[block], variance[block] = m, v
    return mean, variance


def _rows(g: Gaussians) -> FloatArray:
    """Put first and second moments side by side."""
    return np.concatenate(model.moments(g), axis=1)


def _logit_blocks(
    student_rows: FloatArray,
    item_rows: FloatArray,
    student: IntArray,
    item: IntArray,
    effects: Effects | None = None,
    node: IntArray | None = None,
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Return the logits' mean E[z] · E[t] and variance E[(z · t)²] − mean², block by block.

    With the effect U of a pair, or of its `node`: E[U] more, and Var[U] + 2 Cov[z · t, U].
    """
    width = item_rows.shape[1]
    d = int(np.sqrt(2 * width + 2.25) - 1.5)  # width = d + d(d + 1)/2
    students, items = np.empty((2, _BLOCK, width), np.float32)
    for begin in range(0, len(student), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        n = len(student[block])
        # "clip" only because it is twice as fast as checking each place.
        np.take(student_rows, student[block], axis=0, out=students[:n], mode="clip")
        np.take(item_rows, item[block], axis=0, out=items[:n], mode="clip")
        mean = np.einsum("ij,ij->i", students[:n, :d], items[:n, :d])
        square = np.einsum("ij,ij->i", students[:n, d:], items[:n, d:])
        variance = square - mean * mean
        if effects is not None:
            at = block if node is None else node[block]
            mean += effects.mean[at]
            shared = np.einsum("ij,ij->i", effects.with_ability[at], items[:n, : d - 1])
            variance += effects.variance[at] + 2 * shared
        yield block, mean, np.maximum(variance, 0)


def in_threads(function: Callable[[Any], Result], parts: Iterable[Any]) -> Iterator[Result]:
    """Return function(part) for every part, in order, several at a time."""
    if N_THREADS == 1:
        yield from map(function, parts)
        return
    with ThreadPoolExecutor(N_THREADS) as pool:
        yield from pool.map(function, parts)
