"""Answers in compressed sparse rows: sorted by student, those of a student by context."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.item_response.model import BoolArray, FloatArray, IntArray
from common.item_response.tree import Level

import numpy as np
import numpy.typing as npt
import scipy.sparse

# Answers in a chunk, at most and at least, and how many chunks there are in between.
_MAX_CHUNK, _MIN_CHUNK, _N_CHUNKS = 1 << 20, 1 << 14, 8


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
    levels
        The contexts of the answers, the coarsest level first; none, or those of `context`.
    """

    start: npt.NDArray[np.int64]
    item: npt.NDArray[np.int32]
    is_right: BoolArray
    is_used: BoolArray
    n_items: int
    levels: tuple[Level, ...] = ()

    @property
    def n_students(self) -> int:
        """Number of students, with or without answers."""
        return len(self.start) - 1

    def of_students(self, first: int, last: int) -> "Observations":
        """Return the answers of students `first` to `last` − 1, without copying them."""
        rows, nodes = self.places_of_students(first, last)
        columns = self.item[rows], self.is_right[rows], self.is_used[rows]
        above = [first, *(own.start for own in nodes)]
        levels = tuple(
            level.take(own, parent, rows.start)
            for level, own, parent in zip(self.levels, nodes, above, strict=False)
        )
        return Observations(
            self.start[first : last + 1] - rows.start, *columns, self.n_items, levels
        )

    def places_of_students(self, first: int, last: int) -> tuple[slice, list[slice]]:
        """Return the places of the answers of students, and of the nodes of each level."""
        rows = slice(int(self.start[first]), int(self.start[last]))
        return rows, [level.nodes_of(rows) for level in self.levels]

    def student(self) -> npt.NDArray[np.int32]:
        """Return the student of every answer, shape (answers,)."""
        return np.repeat(np.arange(self.n_students, dtype=np.int32), np.diff(self.start))

    def leaf(self) -> npt.NDArray[np.int32]:
        """Return the node of the last level that every answer belongs to, shape (answers,)."""
        leaves = self.levels[-1]
        return np.repeat(np.arange(len(leaves), dtype=np.int32), np.diff(leaves.start))

    def matrix(self, values: FloatArray) -> Any:
        """Return a sparse matrix of students × items with a value for every answer."""
        return self._rows(values, self.start)

    def leaf_matrix(self, values: FloatArray) -> Any:
        """Return a sparse matrix of the last level's nodes × items, as `matrix`."""
        return self._rows(values, self.levels[-1].start)

    def _rows(self, values: FloatArray, start: IntArray) -> Any:
        indptr = start.astype(np.int32 if len(self.item) < 2**31 else np.int64)
        return scipy.sparse.csr_matrix(
            (values, self.item, indptr), shape=(len(start) - 1, self.n_items)
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
    labels: Sequence[IntArray] = (),
    kind: IntArray | None = None,
) -> Observations:
    """Sort answers by student, those of one student by context, else in the order given.

    All arrays have shape (answers,), see `Observations`; students and items are numbered from 0,
    and `shape` says how many there are of each. `labels` tells the contexts, those of the coarsest
    level first, int32 from 0; answers of another `kind` are given other labels.
    """
    order = np.arange(len(student), dtype=np.int32)
    for key in (*reversed(labels), student):
        order = _sort_stably(order, key)
    start = np.searchsorted(student[order], np.arange(shape[0] + 1)).astype(np.int64)
    levels: list[Level] = []
    differs = np.diff(student[order], prepend=-1) != 0
    parent = student[order]
    for label in labels:
        differs |= np.diff(label[order], prepend=-1) != 0
        first = np.flatnonzero(differs)
        levels.append(
            Level(
                np.append(first, len(order)),
                parent[first].astype(np.int32),
                label[order[first]],
                np.zeros(len(first), np.int8) if kind is None else kind[order[first]],
            )
        )
        parent = np.cumsum(differs, dtype=np.int32) - np.int32(1)
    return Observations(
        start=start,
        item=item[order].astype(np.int32, copy=False),
        is_right=is_right[order],
        is_used=is_used[order],
        n_items=shape[1],
        levels=tuple(levels),
    )


def _sort_stably(rows: npt.NDArray[np.int32], key: IntArray) -> npt.NDArray[np.int32]:
    """Sort row numbers by a key of small numbers, of each row; equal ones keep their order."""
    # A sparse matrix with one row's number in each column: its conversion is a stable counting
    # sort, several times faster than argsort.
    places = key[rows].astype(np.int32, copy=False), np.arange(len(rows), dtype=np.int32)
    shape = int(key.max(initial=0)) + 1, max(len(rows), 1)
    ordered: npt.NDArray[np.int32] = scipy.sparse.coo_matrix((rows, places), shape).tocsr().data
    return ordered
