"""Answers sorted by student, those of a student by context.

They are the rows of sparse matrices, one for each student; and the contexts of a student are a
tree, with the student at its root and the answers in its leaves.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from common.answers import find_ids
from common.item_response.model import BoolArray, FloatArray, IntArray

import numpy as np
import numpy.typing as npt
import scipy.sparse

# Answers in a chunk, at most and at least, and how many chunks there are in between.
_MAX_CHUNK, _MIN_CHUNK, _N_CHUNKS = 1 << 20, 1 << 14, 8


@dataclass(frozen=True)
class Level:
    """The contexts of a level, the nodes of all students' trees, in the order of their answers."""

    start: IntArray  # Shape (nodes + 1,): the answers of node i are start[i] to start[i + 1].
    parent: IntArray  # Shape (nodes,): node of the level above; of the first level, the student.
    # Shape (nodes,): which context it is, increasing for one parent. Its remainder by the number of
    # stages of a question is the stage of the items in it.
    label: IntArray

    @cached_property
    def keys(self) -> tuple[IntArray, int]:
        """What parent and label of a node are in one number, parent · width + label; the width."""
        width = 2 + int(self.label.max(initial=0))
        return self.parent * np.int64(width) + self.label, width

    def sum_children(self, values: FloatArray, n_parents: int) -> FloatArray:
        """Sum up the values of the nodes, shape (nodes, …), for each parent."""
        n = len(values)
        first = np.searchsorted(self.parent, np.arange(n_parents + 1))
        ones, nodes = np.ones(n, np.float32), np.arange(n, dtype=np.int32)
        sums: FloatArray = scipy.sparse.csr_matrix((ones, nodes, first), (n_parents, n)) @ values
        return sums


@dataclass(frozen=True)
class Observations:
    """Right and wrong answers."""

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
        """Return a sparse matrix with a value for every answer, a column for every item.

        Its rows begin at `start`: that of the students, or of the nodes of a level.
        """
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
    """Sort answers by student, those of one student by context, else in the order given.

    `student` and the `labels` of each level are numbers from 0, int32, shape (answers,). Returned
    are the answers in their new order, and `start` and `levels` of `Observations`.
    """
    n = len(student)
    order, place = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)
    for key in (*reversed(labels), student):
        # A sparse matrix with one row's number in each column: its conversion is a stable counting
        # sort, several times faster than argsort.
        shape = int(key.max(initial=0)) + 1, max(n, 1)
        order = scipy.sparse.coo_matrix((order, (key[order], place)), shape).tocsr().data
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


def find_nodes(
    levels: tuple[Level, ...], student: IntArray, labels: Sequence[IntArray]
) -> Iterator[IntArray]:
    """Yield for each level the nodes of pairs, shape (pairs,); −1 where there is none.

    `student` and `labels`, of each level, are numbered as in `levels`.
    """
    node = student.astype(np.int64)
    is_there = np.ones(len(node), bool)
    for level, label in zip(levels, labels, strict=True):
        keys, width = level.keys
        # Labels from there on have no answers.
        place = find_ids(keys, node * width + np.minimum(label, width - 1))
        is_there &= place < len(keys)
        node = np.where(is_there, place, -1).astype(np.int64)
        yield node
