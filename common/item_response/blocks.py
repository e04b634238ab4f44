"""What makes the fit fast: answers in compressed sparse rows, blocks and threads.

Answers lie sorted by student. One pass over them updates every student and sums up what the items
need. It goes in chunks of students, one thread for each chunk, and within a chunk in blocks of
answers whose temporary arrays stay in the processor's cache; nothing of the size students × items
is ever made. Chunks do not depend on the number of threads, nor does the order in which their
results are summed up, so neither do the results.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from common.item_response import model
from common.item_response.model import BoolArray, FloatArray, Gaussians, IntArray, State

# Answers in a chunk, at most and at least, and how many chunks there are in between.
_MAX_CHUNK, _MIN_CHUNK, _N_CHUNKS = 1 << 20, 1 << 14, 8
# Answers in a block.
_BLOCK = 1 << 13


def _count_threads() -> int:
    """Take as many as BLAS is given, so that processes that share a machine do not collide."""
    # May be a list, one number for each level of nesting.
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(given) if given.isdecimal() and int(given) else min(os.cpu_count() or 1, 8)


N_THREADS = _count_threads()


@dataclass(frozen=True)
class Observations:
    """Right and wrong answers in compressed sparse rows, one row for each student.

    Attributes
    ----------
    start
        Shape (students + 1,), int64: the answers of student i are start[i] to start[i + 1].
    item
        Shape (answers,), int32, from 0.
    is_right
        Shape (answers,), bool.
    is_used
        Shape (answers,), bool: False for an answer that is left out.
    n_items
        Number of items, answered or not.
    """

    start: npt.NDArray[np.int64]
    item: npt.NDArray[np.int32]
    is_right: BoolArray
    is_used: BoolArray
    n_items: int

    @property
    def n_students(self) -> int:
        """Number of students, with or without answers."""
        return len(self.start) - 1

    def of_students(self, first: int, last: int) -> "Observations":
        """Return the answers of students `first` to `last` − 1, without copying them."""
        start = self.start[first : last + 1]
        rows = slice(int(start[0]), int(start[-1]))
        columns = self.item[rows], self.is_right[rows], self.is_used[rows]
        return Observations(start - start[0], *columns, self.n_items)

    def student(self) -> npt.NDArray[np.int32]:
        """Return the student of every answer, shape (answers,)."""
        return np.repeat(np.arange(self.n_students, dtype=np.int32), np.diff(self.start))

    def matrix(self, values: FloatArray) -> Any:
        """Return a sparse matrix of students × items with a value for every answer."""
        indptr = self.start.astype(np.int32 if len(self.item) < 2**31 else np.int64)
        return scipy.sparse.csr_matrix(
            (values, self.item, indptr), shape=(self.n_students, self.n_items)
        )

    def chunks(self) -> list[slice]:
        """Cut the students into ranges with about equally many answers."""
        end = int(self.start[-1])
        size = min(_MAX_CHUNK, max(_MIN_CHUNK, end // _N_CHUNKS))
        cuts = np.searchsorted(self.start, np.arange(size, end, size))
        bounds = [0, *np.unique(cuts).tolist(), self.n_students]
        return [slice(a, b) for a, b in itertools.pairwise(bounds) if a < b]


def sort_by_student(
    student: IntArray,
    item: IntArray,
    is_right: BoolArray,
    is_used: BoolArray,
    shape: tuple[int, int],
) -> Observations:
    """Sort answers by student, those of one student in the order given.

    All arrays have shape (answers,), see `Observations`; students and items are numbered from 0,
    and `shape` says how many there are of each.
    """
    n = len(student)
    # A sparse matrix with one answer in each column: its conversion is a stable counting sort,
    # several times faster than argsort.
    columns = np.arange(n, dtype=np.int32)
    matrix = scipy.sparse.coo_matrix(
        (np.ones(n, np.int8), (student.astype(np.int32, copy=False), columns)),
        shape=(shape[0], max(n, 1)),
    ).tocsr()
    order = matrix.indices
    return Observations(
        start=matrix.indptr.astype(np.int64),
        item=item[order].astype(np.int32, copy=False),
        is_right=is_right[order],
        is_used=is_used[order],
        n_items=shape[1],
    )


def run_step(
    observations: Observations, state: State, group: IntArray, guessing: FloatArray
) -> State:
    """Make one step of the fit: students, then items, then the prior, then the scale.

    `group` and `guessing` have shape (items,); items of one group share a prior.
    """
    students, sums = pass_over_answers(observations, state.students, state.items, guessing)
    items = model.update_items(sums, state.prior, group)
    prior = model.estimate_prior(items, group, sums[:, -1] > 0, state.prior)
    items = Gaussians(items.mean.astype(np.float32), items.covariance.astype(np.float32))
    return model.standardise(State(students, items, prior))


def pass_over_answers(
    observations: Observations, students: Gaussians, items: Gaussians, guessing: FloatArray
) -> tuple[Gaussians, FloatArray]:
    """Update all students, and sum up what the items need (see `sum_for_items`)."""
    of_items, item_rows = model.moments(items), _rows(items)
    mean, covariance = np.empty_like(students.mean), np.empty_like(students.covariance)

    def work(rows: slice) -> FloatArray:
        part = observations.of_students(rows.start, rows.stop)
        old = _rows(model.append_one(Gaussians(students.mean[rows], students.covariance[rows])))
        kappa, weight = np.empty((2, len(part.item)), np.float32)
        for block, m, v in _logit_blocks(old, item_rows, part.student(), part.item):
            slope, curvature = model.expected_slope_and_curvature(
                m, v, part.is_right[block], guessing[part.item[block]]
            )
            kappa[block], weight[block] = slope + curvature * m, curvature
        kappa *= part.is_used
        weight *= part.is_used
        weights, kappas = part.matrix(weight), part.matrix(kappa)
        new = model.update_students(weights, kappas, of_items)
        mean[rows], covariance[rows] = new.mean, new.covariance
        return model.sum_for_items(weights, kappas, model.moments(model.append_one(new)))

    total = np.zeros((observations.n_items, item_rows.shape[1]))
    for sums in in_threads(work, observations.chunks()):
        total += sums
    return Gaussians(mean, covariance), total


def logit_moments(
    students: Gaussians, items: Gaussians, student: IntArray, item: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the logit slopes · ability + intercept for pairs.

    Posteriors are taken as independent; `student` and `item` are places in them, shape (pairs,).
    """
    mean, variance = np.empty((2, len(student)), np.float32)
    sides = _rows(model.append_one(students)), _rows(items)
    for block, m, v in _logit_blocks(*sides, student, item):
        mean[block], variance[block] = m, v
    return mean, variance


def _rows(g: Gaussians) -> FloatArray:
    """Put first and second moments side by side."""
    return np.concatenate(model.moments(g), axis=1)


def _logit_blocks(
    student_rows: FloatArray, item_rows: FloatArray, student: IntArray, item: IntArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Return the logits' mean E[z] · E[t] and variance E[(z · t)²] − mean², block by block."""
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
        yield block, mean, np.maximum(square - mean * mean, 0)


def in_threads(function: Callable[[Any], FloatArray], parts: Iterable[Any]) -> Iterator[FloatArray]:
    """Return function(part) for every part, in order, several at a time."""
    if N_THREADS == 1:
        yield from map(function, parts)
        return
    with ThreadPoolExecutor(N_THREADS) as pool:
        yield from pool.map(function, parts)
