"""Answers sorted by student and context, so that each student's answers lie side by side."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from common.answers import find_ids
from common.arrays import BoolArray, FloatArray, IntArray
from common.item_response.context import Level
from common.threads import in_threads

import numpy as np
import numpy.typing as npt
import scipy.sparse

# Number of ranges of the key that are sorted in parallel.
_N_SORTED_PARTS = 4
# Students are cut into this many chunks, unless the bounds below ask for more or fewer.
_N_CHUNKS = 8
# Largest number of answers in a chunk, about.
_MAX_CHUNK = 1 << 20
# Smallest number of answers in a chunk, about.
_MIN_CHUNK = 1 << 14


@dataclass(frozen=True)
class Observations:
    """Answers to items, sorted by student, and for each student by context.

    An item is a question, or one stage of a question (see `fitting`).
    """

    # Shape (students + 1,): the answers of student i are start[i] to start[i + 1].
    start: IntArray
    # Shape (answers,): the item of each answer, from 0.
    item: npt.NDArray[np.int32]
    # Shape (answers,): whether the item is answered right; for a stage, whether it is passed.
    is_right: BoolArray
    # Shape (answers,): False for answers that are held out.
    is_used: BoolArray
    # Number of items, with or without answers.
    n_items: int
    # The contexts of the answers, the coarsest level first.
    levels: tuple[Level, ...] = ()

    def of_students(self, students: slice) -> tuple["Observations", list[slice]]:
        """Return the answers of a range of students, and the range of their nodes at each level."""
        first_row = int(self.start[students.start])
        end_row = int(self.start[students.stop])
        rows = slice(first_row, end_row)
        levels = []
        node_ranges = []
        parents = students
        for level in self.levels:
            first, end = np.searchsorted(level.start, [first_row, end_row]).tolist()
            nodes = slice(first, end)
            start = level.start[first : end + 1] - first_row
            parent = level.parent[nodes] - np.int32(parents.start)
            levels.append(Level(start, parent, level.label[nodes]))
            node_ranges.append(nodes)
            parents = nodes
        part = Observations(
            start=self.start[students.start : students.stop + 1] - first_row,
            item=self.item[rows],
            is_right=self.is_right[rows],
            is_used=self.is_used[rows],
            n_items=self.n_items,
            levels=tuple(levels),
        )
        return part, node_ranges

    def matrix(self, values: FloatArray, start: IntArray) -> Any:
        """Return values of the answers as a sparse matrix, with a column for each item.

        Row i holds the answers start[i] to start[i + 1]: those of a student or of a node.
        """
        shape = len(start) - 1, self.n_items
        return scipy.sparse.csr_matrix((values, self.item, start), shape=shape)

    def chunks(self) -> list[slice]:
        """Cut the students into ranges with about equally many answers.

        The chunks do not depend on the number of threads, so neither do sums over them.
        """
        n_answers = int(self.start[-1])
        size = min(_MAX_CHUNK, max(_MIN_CHUNK, n_answers // _N_CHUNKS))
        cuts = np.searchsorted(self.start, np.arange(size, n_answers, size))
        bounds = [0, *np.unique(cuts).tolist(), len(self.start) - 1]
        return [slice(first, end) for first, end in itertools.pairwise(bounds) if first < end]


def number_rows(start: IntArray) -> npt.NDArray[np.int32]:
    """Return for each answer the number of its row; row i has the answers start[i] to start[i + 1].

    A row may be a student or a node of a tree.
    """
    return np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))


def sort_answers(
    student: IntArray, labels: Sequence[IntArray], n_students: int
) -> tuple[npt.NDArray[np.int32], IntArray, tuple[Level, ...]]:
    """Sort answers by student, then by the labels of their contexts.

    Parameters
    ----------
    student
        Number of each answer's student, int32 from 0, shape (answers,).
    labels
        For each level of contexts, the coarsest first: int32 from 0, shape (answers,).
    n_students
        Number of students, with or without answers.

    Returns
    -------
    order : array of int32, shape (answers,)
        The positions of the answers, sorted. The sort is stable.
    start : array of int, shape (students + 1,)
        In the new order, the answers of student i are start[i] to start[i + 1].
    levels : tuple of Level
        The nodes of the students' trees of contexts.
    """
    n_answers = len(student)
    order = np.arange(n_answers, dtype=np.int32)
    # A stable sort by the least important key first sorts by all keys.
    for key in (*reversed(labels), student):
        order = _sort_by(key[order], order)
    start = np.append(0, np.cumsum(np.bincount(student, minlength=n_students)))
    levels = []
    parent_start = start
    for label in labels:
        ordered_label = label[order]
        # A node begins where the label changes, and where a node of the level above begins.
        is_first = np.diff(ordered_label, prepend=-1) != 0
        is_first[parent_start[parent_start < n_answers]] = True
        first = np.flatnonzero(is_first)
        # A student without answers has the same start as the next student. Of several equal starts,
        # side="right" finds the last, whose student has answers.
        parent = np.searchsorted(parent_start, first, side="right").astype(np.int32) - np.int32(1)
        parent_start = np.append(first, n_answers)
        levels.append(Level(parent_start, parent, ordered_label[first]))
    return order, start, tuple(levels)


def _sort_by(key: IntArray, values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Sort values by their keys, which are int32 from 0. The sort is stable."""

    def sort_range(bounds: tuple[np.int32, np.int32]) -> npt.NDArray[np.int32]:
        low, high = bounds
        rows = np.flatnonzero((key >= low) & (key < high))
        # A sparse matrix with the key as row number. Its conversion to CSR is a stable counting
        # sort, which is several times faster than argsort.
        matrix_row = key[rows] - low
        matrix_column = np.arange(len(rows), dtype=np.int32)
        shape = max(high - low, 1), max(len(rows), 1)
        matrix = scipy.sparse.coo_matrix((values[rows], (matrix_row, matrix_column)), shape)
        data: npt.NDArray[np.int32] = matrix.tocsr().data
        return data

    cuts = np.linspace(0, int(key.max(initial=0)) + 1, _N_SORTED_PARTS + 1).astype(np.int32)
    return np.concatenate(list(in_threads(sort_range, itertools.pairwise(cuts))))


def find_nodes(
    levels: tuple[Level, ...], student: IntArray, labels: Sequence[IntArray]
) -> Iterator[IntArray]:
    """Yield for each level the node of each pair, shape (pairs,); −1 if there is no such node.

    Nodes have answers: a student has no node for a context in which the student has no answers.
    """
    node = student.astype(np.int64)
    has_answers = np.ones(len(node), bool)
    for level, label in zip(levels, labels, strict=True):
        keys, width = level.keys
        # Labels above those of all nodes are clipped to width − 1. No node has this label, and the
        # key stays below the keys of the next parent's nodes.
        position = find_ids(keys, node * width + np.minimum(label, width - 1))
        has_answers &= position < len(keys)
        node = np.where(has_answers, position, -1).astype(np.int64)
        yield node
