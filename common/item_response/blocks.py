"""What makes the fit fast: answers sorted by student, and one pass over them in blocks and threads.

A pass updates every student and sums up what the items need, in chunks of students, one thread for
each, and within these in blocks of answers that stay in the processor's cache. Neither the chunks
nor the order in which they are summed up depend on the number of threads, so neither do results.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from common.answers import find_ids
from common.arrays import BoolArray, FloatArray, IntArray
from common.item_response import context, model
from common.item_response.context import Level, SharedEffects
from common.item_response.model import Gaussians

import numpy as np
import numpy.typing as npt
import scipy.sparse

Result = TypeVar("Result")

# Answers in a block; parts in which answers are sorted, and in which the items are updated.
_BLOCK, _N_SORTED_PARTS, _N_ITEM_PARTS = 1 << 15, 4, 8
# Answers in a chunk, at most and at least, and how many chunks there are in between.
_MAX_CHUNK, _MIN_CHUNK, _N_CHUNKS = 1 << 20, 1 << 14, 8


def _count_threads() -> int:
    """Take as many as BLAS is given, so that processes that share a machine do not collide."""
    # May be a list, one number for each level of nesting.
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(given) if given.isdecimal() and int(given) else min(os.cpu_count() or 1, 8)


N_THREADS = _count_threads()


def in_threads(function: Callable[[Any], Result], parts: Iterable[Any]) -> Iterator[Result]:
    """Return function(part) for every part, in order, several at a time."""
    if N_THREADS == 1:
        yield from map(function, parts)
        return
    with ThreadPoolExecutor(N_THREADS) as pool:
        yield from pool.map(function, parts)


# ---- Answers, sorted --------------------------------------------------------------------------


@dataclass(frozen=True)
class Observations:
    """Right and wrong answers, sorted by student, those of a student by context."""

    start: IntArray  # Shape (students + 1,): those of student i are start[i] to start[i + 1].
    item: npt.NDArray[np.int32]  # Shape (answers,), from 0.
    is_right: BoolArray  # Shape (answers,).
    is_used: BoolArray  # Shape (answers,): False for an answer that is left out.
    n_items: int  # Answered or not.
    levels: tuple[Level, ...] = ()  # The contexts of the answers, the coarsest level first.

    def of_students(self, students: slice) -> tuple["Observations", list[slice]]:
        """Return the answers of some students, and the places of the nodes of each level."""
        rows = slice(*self.start[[students.start, students.stop]].tolist())
        levels, places = [], [students]
        for level in self.levels:
            own = slice(*np.searchsorted(level.start, [rows.start, rows.stop]).tolist())
            start = level.start[own.start : own.stop + 1] - rows.start
            parent = level.parent[own] - np.int32(places[-1].start)
            levels.append(Level(start, parent, level.label[own]))
            places.append(own)
        start = self.start[students.start : students.stop + 1] - rows.start
        columns = self.item[rows], self.is_right[rows], self.is_used[rows]
        return Observations(start, *columns, self.n_items, tuple(levels)), places[1:]

    def matrix(self, values: FloatArray, start: IntArray) -> Any:
        """Return a sparse matrix, a column an item, whose rows of answers begin at `start`."""
        shape = len(start) - 1, self.n_items
        return scipy.sparse.csr_matrix((values, self.item, start), shape=shape)

    def chunks(self) -> list[slice]:
        """Cut the students into ranges with about equally many answers."""
        end = int(self.start[-1])
        size = min(_MAX_CHUNK, max(_MIN_CHUNK, end // _N_CHUNKS))
        cuts = np.searchsorted(self.start, np.arange(size, end, size))
        bounds = [0, *np.unique(cuts).tolist(), len(self.start) - 1]
        return [slice(a, b) for a, b in itertools.pairwise(bounds) if a < b]


def number_rows(start: IntArray) -> npt.NDArray[np.int32]:
    """Return for every answer the student or node to which it belongs."""
    return np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))


def sort_answers(
    student: IntArray, labels: Sequence[IntArray], n_students: int
) -> tuple[npt.NDArray[np.int32], IntArray, tuple[Level, ...]]:
    """Return a stable order by student, then labels, int32 from 0; with it `start` and `levels`."""
    n = len(student)
    order = np.arange(n, dtype=np.int32)
    for key in (*reversed(labels), student):
        order = _sort_by(key[order], order)
    above = start = np.append(0, np.cumsum(np.bincount(student, minlength=n_students)))
    levels = []
    for label in labels:
        own = label[order]
        is_first = np.diff(own, prepend=-1) != 0
        is_first[above[above < n]] = True
        first = np.flatnonzero(is_first)
        # Of students without answers, and the next one, it is the last that begins there.
        parent = np.searchsorted(above, first, side="right").astype(np.int32) - np.int32(1)
        above = np.append(first, n)
        levels.append(Level(above, parent, own[first]))
    return order, start, tuple(levels)


def _sort_by(key: IntArray, values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return values in the stable order of their keys, int32 from 0."""

    def work(keys: tuple[np.int32, np.int32]) -> npt.NDArray[np.int32]:
        rows = np.flatnonzero((key >= keys[0]) & (key < keys[1]))
        # This conversion is a stable counting sort, several times faster than argsort.
        place = key[rows] - keys[0], np.arange(len(rows), dtype=np.int32)
        shape = max(keys[1] - keys[0], 1), max(len(rows), 1)
        data: npt.NDArray[np.int32]
        data = scipy.sparse.coo_matrix((values[rows], place), shape).tocsr().data
        return data

    cuts = np.linspace(0, int(key.max(initial=0)) + 1, _N_SORTED_PARTS + 1).astype(np.int32)
    return np.concatenate(list(in_threads(work, itertools.pairwise(cuts))))


def find_nodes(
    levels: tuple[Level, ...], student: IntArray, labels: Sequence[IntArray]
) -> Iterator[IntArray]:
    """Yield for each level the nodes of pairs, (pairs,), −1 for none; numbered as in `levels`."""
    node = student.astype(np.int64)
    is_there = np.ones(len(node), bool)
    for level, label in zip(levels, labels, strict=True):
        keys, width = level.keys
        # Labels from there on have no answers.
        place = find_ids(keys, node * width + np.minimum(label, width - 1))
        is_there &= place < len(keys)
        node = np.where(is_there, place, -1).astype(np.int64)
        yield node


# ---- A step of the fit ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ItemResponseModel:
    """What a step of the fit knows; items are all of the first stage, then of the second, …, the
    last of each of a question without answers, like the last student of a finished fit.
    """

    students: Gaussians  # Posteriors of the abilities, k dimensions.
    items: Gaussians  # Posteriors of slopes and intercepts, k + 1 dimensions.
    prior: Gaussians  # Of the items of each stage.
    guessing: FloatArray  # Probability of passing without knowing how, shape (items,), float32.
    student_ids: IntArray  # Those with answers, increasing.
    question_ids: IntArray
    # Of contexts, by level, the coarsest first: the total effects' mean, variance, and covariances
    # with ability, (nodes, 2 + k), float32; prior variances, (levels, stages); shared effects.
    effects: tuple[FloatArray, ...] = ()
    variance: FloatArray = field(default_factory=lambda: np.zeros((0, 1)))
    shared: SharedEffects = field(default_factory=lambda: SharedEffects(*np.zeros((3, 1))))
    context_ids: tuple[IntArray, ...] = ()  # Labels that have answers, increasing, by level.
    levels: tuple[Level, ...] = ()  # The nodes of all students' trees, to which `effects` belong.
    # Log loss and accuracy on the answers held out for early stopping, after each step.
    history: list[tuple[float, float]] = field(default_factory=list)


def run_step(observations: Observations, state: ItemResponseModel) -> ItemResponseModel:
    """Make one step of the fit: students and contexts, then items, their prior, then the scale."""
    state, sums = pass_over_answers(observations, state)
    n_stages = len(state.prior.mean)
    stage = np.repeat(np.arange(n_stages), len(sums) // n_stages)
    parts = np.array_split(np.arange(len(stage)), _N_ITEM_PARTS)
    new = in_threads(lambda own: model.update_items(sums[own], state.prior, stage[own]), parts)
    items = model.join(new)
    # The last column is Σ w.
    prior = model.estimate_prior(items, stage, sums[:, -1] > 0, state.prior)
    items = Gaussians(items.mean.astype(np.float32), items.covariance.astype(np.float32))
    return standardise(replace(state, items=items, prior=prior))


def standardise(state: ItemResponseModel) -> ItemResponseModel:
    """Give abilities mean 0 and covariance I, and change the items to match: the fit needs far
    fewer steps (parameter expansion: Liu, Rubin and Wu 1998).
    """
    n, k = state.students.mean.shape
    ability = state.students.mean.astype(np.float64)
    centre = ability.mean(axis=0)
    total = state.students.covariance.sum(axis=0, dtype=np.float64)
    spread = (ability.T @ ability + total) / n - np.outer(centre, centre)
    root = np.linalg.cholesky(spread)
    inverse = np.linalg.inv(root)
    # Slopes · ability + intercept must stay the same.
    matrix = np.eye(k + 1)
    matrix[:k, :k] = root.T
    matrix[k, :k] = centre
    for own in state.effects:
        # In place, for they may be the largest arrays.
        own[:, 2:] = own[:, 2:] @ inverse.T.astype(np.float32)
    students = state.students.transform(inverse, -inverse @ centre)
    items, prior = state.items.transform(matrix), state.prior.transform(matrix)
    return replace(state, students=students, items=items, prior=prior)


def pass_over_answers(
    observations: Observations, state: ItemResponseModel
) -> tuple[ItemResponseModel, FloatArray]:
    """Update all students and contexts; `weigh` what the items need, shape (items, …)."""
    shared, of_items = state.shared, model.moments(state.items)
    d = state.items.mean.shape[1]
    # Written in place: parts, and all of them put together, would be there twice.
    students = Gaussians(*map(np.empty_like, (state.students.mean, state.students.covariance)))
    levels = observations.levels
    effects = tuple(np.empty((len(level.label), 1 + d), np.float32) for level in levels)

    def work(chunk: slice) -> list[FloatArray]:
        part, nodes = observations.of_students(chunk)
        at_leaves = leaf = None
        if part.levels:
            leaves, leaf = part.levels[-1], number_rows(part.levels[-1].start)
            at_leaves, fixed = state.effects[-1][nodes[-1]].copy(), shared.mean[leaves.label]
            at_leaves[:, 0] += fixed
            at_leaves[:, 1] += shared.variance[leaves.label]
        old = model.moments_with_one(state.students.take(chunk))
        # κ and w of every answer.
        kappa, weight = values = np.empty((2, len(part.item)), np.float32)
        pairs = old, of_items, number_rows(part.start), part.item
        for block, m, v in _logit_blocks(*pairs, at_leaves, leaf):
            right, guessing = part.is_right[block], state.guessing[part.item[block]]
            slope, curvature = model.expected_slope_and_curvature(m, v, right, guessing)
            kappa[block], weight[block] = slope + curvature * m, curvature
        values *= part.is_used
        if part.levels:
            kappa -= weight * fixed[leaf]
        weights, kappas = part.matrix(weight, part.start), part.matrix(kappa, part.start)
        sums = model.weigh(kappas, weights, of_items)
        if part.levels:
            at_leaf = part.matrix(weight, leaves.start), part.matrix(kappa, leaves.start)
            of_leaf = [np.asarray(matrix.sum(axis=1)) for matrix in at_leaf]
            gathered = np.concatenate([*of_leaf, at_leaf[0] @ of_items[:, :d]], axis=1)
            steps, taken = context.eliminate(part.levels, gathered, state.variance, len(old))
            sums -= taken
        new = model.update_students(sums)
        students.mean[chunk], students.covariance[chunk] = new.mean, new.covariance
        if not part.levels:
            return [model.weigh(kappas.T, weights.T, model.moments_with_one(new))]

        found, of_variance, left = context.restore(part.levels, steps, new, state.variance)
        for whole, place, own in zip(effects, nodes, found, strict=True):
            whole[place] = own
        left += steps[-1].weight * fixed
        n = len(shared.mean)
        of_shared = [np.bincount(leaves.label, v, n) for v in (steps[-1].weight, left)]
        kappa -= weight * found[-1][leaf, 0]
        kappas = part.matrix(kappa, part.start)
        for_items = model.weigh(kappas.T, weights.T, model.moments_with_one(new))
        for_items[:, : d - 1] -= at_leaf[0].T @ found[-1][:, 2:]
        return [for_items, of_variance, np.stack(of_shared, axis=1)]

    totals = [np.zeros(1)] * 3
    for sums in in_threads(work, observations.chunks()):
        totals = [total + own.astype(float) for total, own in zip(totals, sums, strict=False)]
    state = replace(state, students=students, effects=effects)
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
    """Return mean and variance of slopes · ability + intercept + effect, of places, (pairs,)."""
    mean, variance = np.empty((2, len(student)), np.float32)
    sides = model.moments_with_one(students), model.moments(items)
    for block, m, v in _logit_blocks(*sides, student, item, effects):
        mean[block], variance[block] = m, v
    return mean, variance


def _logit_blocks(
    students: FloatArray,
    items: FloatArray,
    student: IntArray,
    item: IntArray,
    effects: FloatArray | None = None,
    node: IntArray | None = None,
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield the logits' mean E[z] · E[t] and variance E[(z · t)²] − mean² by block; with the effect
    U of a pair, or of its `node`, E[U] more, and Var[U] + 2 Cov[z · t, U].
    """
    d = model.count_dimensions(items)
    # Of another type, `take` would first convert what happens to lie there, and warn of no numbers.
    of_student, of_item = np.empty((2, _BLOCK, items.shape[1]), items.dtype)
    for begin in range(0, len(student), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        n = len(student[block])
        # "clip" only because it is twice as fast as checking each place.
        np.take(students, student[block], axis=0, out=of_student[:n], mode="clip")
        np.take(items, item[block], axis=0, out=of_item[:n], mode="clip")
        mean = np.einsum("ij,ij->i", of_student[:n, :d], of_item[:n, :d])
        square = np.einsum("ij,ij->i", of_student[:n, d:], of_item[:n, d:])
        variance = square - mean * mean
        if effects is not None:
            at = block if node is None else node[block]
            own = effects[at]
            mean += own[:, 0]
            variance += own[:, 1] + 2 * np.einsum("ij,ij->i", own[:, 2:], of_item[:n, : d - 1])
        yield block, mean, np.maximum(variance, 0)
