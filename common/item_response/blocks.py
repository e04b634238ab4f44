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
from common.item_response.model import FloatArray, Gaussians, IntArray, Known
from common.item_response.observations import Observations, number_rows

import numpy as np

Result = TypeVar("Result")

# Answers in a block; parts in which the items are updated.
_BLOCK, _N_ITEM_PARTS = 1 << 13, 8


def _count_threads() -> int:
    """Take as many as BLAS is given, so that processes that share a machine do not collide."""
    # May be a list, one number for each level of nesting.
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(given) if given.isdecimal() and int(given) else min(os.cpu_count() or 1, 8)


N_THREADS = _count_threads()


def run_step(observations: Observations, state: Known) -> Known:
    """Make one step of the fit: students and contexts, then items, their prior, then the scale."""
    state, sums = pass_over_answers(observations, state)
    stage, is_answered = state.stage, sums[:, -1] > 0
    parts = np.array_split(np.arange(len(stage)), _N_ITEM_PARTS)
    items = model.join(
        in_threads(lambda own: model.update_items(sums[own], state.prior, stage[own]), parts)
    )
    prior = model.estimate_prior(items, stage, is_answered, state.prior)
    items = Gaussians(items.mean.astype(np.float32), items.covariance.astype(np.float32))
    return model.standardise(replace(state, items=items, prior=prior))


def pass_over_answers(observations: Observations, state: Known) -> tuple[Known, FloatArray]:
    """Update all students and contexts, and sum up what the items need (see `sum_for_items`)."""
    shared, of_items, item_rows = state.shared, model.moments(state.items), _rows(state.items)

    def work(chunk: slice) -> tuple[Gaussians, list[FloatArray], list[FloatArray]]:
        part, nodes = observations.of_students(chunk)
        at_leaves = leaf = None
        if part.levels:
            leaves, leaf = part.levels[-1], number_rows(part.levels[-1].start)
            at_leaves, fixed = state.effects[-1][nodes[-1]].copy(), shared.mean[leaves.label]
            at_leaves[:, 0] += fixed
            at_leaves[:, 1] += shared.variance[leaves.label]
        old = _rows(model.append_one(state.students.take(chunk)))
        # κ and w of every answer.
        kappa, weight = values = np.empty((2, len(part.item)), np.float32)
        pairs = old, item_rows, number_rows(part.start), part.item
        for block, m, v in _logit_blocks(*pairs, at_leaves, leaf):
            slope, curvature = model.expected_slope_and_curvature(
                m, v, part.is_right[block], state.guessing[part.item[block]]
            )
            kappa[block], weight[block] = slope + curvature * m, curvature
        values *= part.is_used

        weights = part.matrix(weight, part.start)
        if not part.levels:
            kappas = part.matrix(kappa, part.start)
            new = model.update_students(weights, kappas, of_items)
            t = model.moments(model.append_one(new))
            return new, [], [model.sum_for_items(weights, kappas, t)]
        kappa -= weight * fixed[leaf]
        at_leaf = part.matrix(weight, leaves.start), part.matrix(kappa, leaves.start)
        sums = [np.asarray(matrix.sum(axis=1)) for matrix in at_leaf]
        gathered = np.concatenate([*sums, at_leaf[0] @ of_items.mean], axis=1)
        steps, taken = context.eliminate(part.levels, gathered, state.variance, len(old))
        new = model.update_students(weights, part.matrix(kappa, part.start), of_items, taken)
        found, of_variance, left = context.restore(part.levels, steps, new, state.variance)
        left += steps[-1].weight * fixed
        n = len(shared.mean)
        of_shared = [np.bincount(leaves.label, v, n) for v in (steps[-1].weight, left)]
        kappa -= weight * found[-1][leaf, 0]
        t = model.moments(model.append_one(new))
        for_items = model.sum_for_items(weights, part.matrix(kappa, part.start), t)
        for_items[:, : new.mean.shape[1]] -= at_leaf[0].T @ found[-1][:, 2:]
        return new, found, [for_items, of_variance, np.stack(of_shared, axis=1)]

    parts, totals = [], [np.zeros(1)] * 3
    for new, found, sums in in_threads(work, observations.chunks()):
        parts.append((new, found))
        totals = [total + own.astype(float) for total, own in zip(totals, sums, strict=False)]
    effects = tuple(map(np.concatenate, zip(*(found for _, found in parts), strict=True)))
    state = replace(state, students=model.join(new for new, _ in parts), effects=effects)
    if effects:
        variance = context.estimate_variance(totals[1], state.variance)
        state = replace(state, variance=variance, shared=context.update_shared(totals[2], shared))
    return state, totals[0]


def logit_moments(
    students: Gaussians,
    items: Gaussians,
    student: IntArray,
    item: IntArray,
    effects: FloatArray | None = None,
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
    effects: FloatArray | None = None,
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
            own = effects[at]
            mean += own[:, 0]
            variance += own[:, 1] + 2 * np.einsum("ij,ij->i", own[:, 2:], items[:n, : d - 1])
        yield block, mean, np.maximum(variance, 0)


def in_threads(function: Callable[[Any], Result], parts: Iterable[Any]) -> Iterator[Result]:
    """Return function(part) for every part, in order, several at a time."""
    if N_THREADS == 1:
        yield from map(function, parts)
        return
    with ThreadPoolExecutor(N_THREADS) as pool:
        yield from pool.map(function, parts)
