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

from common.item_response import context, model
from common.item_response.model import Effects, FloatArray, Gaussians, IntArray, State
from common.item_response.observations import Observations

import numpy as np

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
    """Make one step of the fit: students and contexts, then items, their prior, then the scale.

    `group` and `guessing` have shape (items,); items of one group share a prior.
    """
    state, sums = pass_over_answers(observations, state, guessing)
    items = model.update_items(sums, state.prior, group)
    prior = model.estimate_prior(items, group, sums[:, -1] > 0, state.prior)
    items = Gaussians(items.mean.astype(np.float32), items.covariance.astype(np.float32))
    return model.standardise(replace(state, items=items, prior=prior))


def pass_over_answers(
    observations: Observations, state: State, guessing: FloatArray
) -> tuple[State, FloatArray]:
    """Update all students and contexts, and sum up what the items need (see `sum_for_items`)."""
    students, items = state.students, state.items
    of_items, item_rows = model.moments(items), _rows(items)
    mean, covariance = np.empty_like(students.mean), np.empty_like(students.covariance)
    effects = tuple(Effects(*map(np.empty_like, e)) for e in state.effects)

    def expand(part: Observations, rows: slice, at_leaves: Effects | None) -> FloatArray:
        """Return κ and w of every answer, shape (2, answers)."""
        old = _rows(model.append_one(Gaussians(students.mean[rows], students.covariance[rows])))
        kappa, weight = values = np.empty((2, len(part.item)), np.float32)
        leaf = None if at_leaves is None else part.leaf()
        for block, m, v in _logit_blocks(
            old, item_rows, part.student(), part.item, at_leaves, leaf
        ):
            slope, curvature = model.expected_slope_and_curvature(
                m, v, part.is_right[block], guessing[part.item[block]]
            )
            kappa[block], weight[block] = slope + curvature * m, curvature
        values *= part.is_used
        return values

    def work(rows: slice) -> tuple[FloatArray, ...]:
        part = observations.of_students(rows.start, rows.stop)
        kappa, weight = expand(part, rows, None)
        weights, kappas = part.matrix(weight), part.matrix(kappa)
        new = model.update_students(weights, kappas, of_items)
        mean[rows], covariance[rows] = new.mean, new.covariance
        return (model.sum_for_items(weights, kappas, model.moments(model.append_one(new))),)

    def work_with_contexts(rows: slice) -> tuple[FloatArray, ...]:
        assert state.variance is not None and state.shared is not None
        part = observations.of_students(rows.start, rows.stop)
        _, nodes = observations.places_of_students(rows.start, rows.stop)
        leaves, leaf = part.levels[-1], part.leaf()
        at_leaves = context.add_shared(state.effects[-1].take(nodes[-1]), leaves, state.shared)
        kappa, weight = expand(part, rows, at_leaves)
        kappa -= weight * state.shared.mean[leaves.label][leaf]
        weights, leaf_weights = part.matrix(weight), part.leaf_matrix(weight)
        steps, *taken = context.eliminate(
            part.levels,
            leaf_weights,
            part.leaf_matrix(kappa),
            of_items,
            state.variance,
            part.n_students,
        )
        new = model.update_students(weights, part.matrix(kappa), of_items, (taken[0], taken[1]))
        mean[rows], covariance[rows] = new.mean, new.covariance
        found, of_variance = context.restore(part.levels, steps, new, state.variance)
        for whole, own, place in zip(effects, found, nodes, strict=True):
            for target, values in zip(whole, own, strict=True):
                target[place] = values
        of_shared = context.sum_shared(part.levels, steps[-1], new, found, state.shared)
        kappas = part.matrix(kappa - weight * found[-1].mean[leaf])
        sums = model.sum_for_items(weights, kappas, model.moments(model.append_one(new)))
        sums[:, : mean.shape[1]] -= leaf_weights.T @ found[-1].with_ability
        return sums, of_variance, of_shared

    has_contexts = state.shared is not None
    totals: tuple[Any, ...] = (0.0, 0.0, 0.0) if has_contexts else (0.0,)
    for sums in in_threads(work_with_contexts if has_contexts else work, observations.chunks()):
        totals = tuple(total + own.astype(float) for total, own in zip(totals, sums, strict=True))
    state = replace(state, students=Gaussians(mean, covariance), effects=effects)
    if state.variance is not None and state.shared is not None:
        state = replace(
            state,
            variance=context.estimate_variance(totals[1], state.variance),
            shared=context.update_shared(totals[2], state.shared),
        )
    return state, totals[0]


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
