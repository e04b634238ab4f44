"""Answers sorted by student and context, so that each student's answers lie side by side."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from common.arrays import BoolArray, FloatArray, IntArray
from common.item_response.context import Level
from common.threads import in_threads

import numpy as np
import numpy.typing as npt
import scipy.sparse

# `_sort_by` sorts values by keys. If there are at least `_MANY_KEYS` keys, it cuts the range from
# the lowest to the highest key into this many parts, and sorts the parts in parallel.
_N_SORTED_PARTS = 4
_MANY_KEYS = 1 << 14
# A fit processes students in chunks, in parallel. It makes this many chunks, unless the chunks
# would be too large or too small.
_N_CHUNKS = 8
# Approximate upper bound on the number of answers in a chunk.
_MAX_CHUNK = 1 << 20
# Approximate lower bound on the number of answers in a chunk.
_MIN_CHUNK = 1 << 14


@dataclass(frozen=True)
class Observations:
    """Answers to items, sorted by student, and for each student by context.

    An item is a question in one stage (MODEL.md in this folder explains the words).
    """

    # Shape (students + 1,): the answers of student i are start[i] to start[i + 1].
    start: IntArray
    # Shape (answers,): the item of each answer, from 0.
    item: npt.NDArray[np.int32]
    # Shape (answers,): whether the answer passes the item. In the first stage, an answer passes if
    # it is right. In the second stage, a wrong answer passes if it is the most popular wrong
    # option, in the third stage if it is the next one, and so on.
    is_right: BoolArray
    # Shape (answers,): False for answers that are held out.
    is_used: BoolArray
    # Number of items, with or without answers.
    n_items: int
    # The levels of contexts, the coarsest level first: for example topics, then quizzes within
    # topics. The tuple is empty if the answers have no contexts.
    levels: tuple[Level, ...] = ()

    def of_students(self, students: slice) -> tuple["Observations", list[slice]]:
        """Return the answers of a range of students, and the positions of these students' nodes.

        A node is a student in a context. MODEL.md explains contexts, levels and nodes.

        Returns
        -------
        part : Observations
            The students' answers. Students, answers and nodes are numbered from 0 again.
        node_ranges : list of slice
            For each level of contexts, the range of the students' nodes in `self.levels`.
        """
        first_answer = int(self.start[students.start])
        end_answer = int(self.start[students.stop])
        answers = slice(first_answer, end_answer)
        levels = []
        node_ranges = []
        # The students are the parents of the nodes of the first level.
        parents = students
        for level in self.levels:
            # `nodes` is the range of these students' nodes in the level. `level_of_part` is a level
            # with only these nodes.
            nodes, level_of_part = _cut_level(level, answers, parents)
            levels.append(level_of_part)
            node_ranges.append(nodes)
            parents = nodes
        part = Observations(
            start=self.start[students.start : students.stop + 1] - first_answer,
            item=self.item[answers],
            is_right=self.is_right[answers],
            is_used=self.is_used[answers],
            n_items=self.n_items,
            levels=tuple(levels),
        )
        return part, node_ranges

    def matrix(self, values: FloatArray, start: IntArray) -> Any:
        """Return `values`, one for each answer, as a sparse matrix with a column for each item.

        Row i holds the answers start[i] to start[i + 1]. With `self.start`, a row is a student;
        with the `start` of a level, it is a student's context.
        """
        shape = len(start) - 1, self.n_items
        return scipy.sparse.csr_matrix((values, self.item, start), shape=shape)

    def chunks(self) -> list[slice]:
        """Cut the students into ranges with about equally many answers.

        Neither the chunks nor sums over the chunks depend on the number of threads.
        """
        n_answers = int(self.start[-1])
        size = min(_MAX_CHUNK, max(_MIN_CHUNK, n_answers // _N_CHUNKS))
        # `start` holds the position of each student's first answer. For each multiple of `size`,
        # cut before the first student whose answers start there or later.
        cuts = np.searchsorted(self.start, np.arange(size, n_answers, size))
        bounds = [0, *np.unique(cuts).tolist(), len(self.start) - 1]
        return [slice(first, end) for first, end in itertools.pairwise(bounds) if first < end]


def _cut_level(level: Level, answers: slice, parents: slice) -> tuple[slice, Level]:
    """Return the range of a level's nodes that hold the `answers`, and a level of only these nodes.

    A node is a student in a context. `answers` is the range of the answers, and `parents` the range
    of the parents of the nodes. In the new level, the first of `answers` is answer 0, and the first
    of `parents` is parent 0.
    """
    first, end = np.searchsorted(level.start, [answers.start, answers.stop]).tolist()
    nodes = slice(first, end)
    return nodes, Level(
        start=level.start[first : end + 1] - answers.start,
        parent=level.parent[nodes] - np.int32(parents.start),
        label=level.label[nodes],
    )


def number_rows(start: IntArray) -> npt.NDArray[np.int32]:
    """Return the number of each answer's row, if row i has the answers start[i] to start[i + 1].

    A row is a student or a student's context. For instance, if `start` is [0, 2, 3], the rows of
    the three answers are [0, 0, 1].
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
        For each level of contexts, the coarsest first, the label of each answer's context (see
        `context.make_label`): int32 from 0, shape (answers,).
    n_students
        Number of students, with or without answers.

    Returns
    -------
    order : array of int32, shape (answers,)
        The positions of the answers, sorted. Answers of one student in one context keep their
        order.
    start : array of int, shape (students + 1,)
        In the new order, the answers of student i are start[i] to start[i + 1].
    levels : tuple of Level
        The nodes of the students' trees of contexts.
    """
    n_answers = len(student)
    order = np.arange(n_answers, dtype=np.int32)
    # Sort by the least important key first and by the student last. Each sort is stable: answers
    # with equal keys keep the order that the earlier sorts gave them.
    for key in (*reversed(labels), student):
        order = _sort_by(key[order], order)
    start = np.append(0, np.cumsum(np.bincount(student, minlength=n_students)))
    levels = []
    # A node is a context in which a student has answers. The parent of a node is a node of the
    # level before; in the first level, it is the student.
    parent_start = start
    for label in labels:
        level = _find_level(label[order], parent_start)
        levels.append(level)
        parent_start = level.start
    return order, start, tuple(levels)


def observe(
    student: IntArray,
    item: npt.NDArray[np.int32],
    is_right: BoolArray,
    *,
    n_students: int,
    n_items: int,
    labels: Sequence[IntArray] = (),
) -> Observations:
    """Return answers in the order that a fit needs: sorted by student, then by context.

    None of the answers is held out.

    Parameters
    ----------
    student, item
        Numbers of each answer's student and item, from 0, int32, shape (answers,). The answers may
        be in any order.
    is_right
        Whether each answer is right, shape (answers,).
    n_students, n_items
        Numbers of students and of items, with or without answers.
    labels
        For each level of contexts (see MODEL.md), the coarsest first: the number of each answer's
        context, int32 from 0, shape (answers,). By default, the answers have no contexts.
    """
    # The answers of student i are start[i] to start[i + 1] in the new order. `levels` holds the
    # nodes: a node is a context in which a student has answers.
    order, start, levels = sort_answers(student, labels, n_students)
    all_used = np.ones(len(order), bool)
    return Observations(
        start=start,
        item=item[order],
        is_right=is_right[order],
        is_used=all_used,
        n_items=n_items,
        levels=levels,
    )


def _find_level(label: IntArray, parent_start: IntArray) -> Level:
    """Return the nodes of one level: a node is a run of answers with the same parent and label.

    The label of an answer is the number of its context at this level. The parent of an answer is
    its node at the level before; at the first level, it is the answer's student.

    `label` has the label of each answer, sorted by parent and label. The answers of parent i are
    parent_start[i] to parent_start[i + 1].
    """
    n_answers = len(label)
    # A node begins where the label changes, and where a parent begins. `parent_start` also holds
    # `n_answers`, the end of the last parent. If the last parents have no answers, their starts are
    # `n_answers` too. There is no answer at this position: leave it out.
    is_first = np.diff(label, prepend=-1) != 0
    first_answer_of_parent = parent_start[parent_start < n_answers]
    is_first[first_answer_of_parent] = True
    first = np.flatnonzero(is_first)
    # The parent of a node is the last parent that begins at or before the node's first answer. If
    # several parents begin at the same answer, all but the last have no answers: with the starts
    # [0, 2, 2, 5], student 1 has none, and a node that begins at 2 belongs to student 2.
    n_begun = np.searchsorted(parent_start, first, side="right").astype(np.int32)
    parent = n_begun - np.int32(1)
    return Level(start=np.append(first, n_answers), parent=parent, label=label[first])


def _sort_by(key: IntArray, values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Sort values by their keys; values with equal keys keep their order.

    The keys are int32 of at least 0. Ranges of keys are sorted in parallel, each by a counting
    sort, which is several times faster than `np.argsort`.
    """

    def sort_range(bounds: tuple[np.int32, np.int32]) -> npt.NDArray[np.int32]:
        """Return the values with a key of at least `low` and below `high`, sorted by key."""
        low, high = bounds
        positions = np.flatnonzero((key >= low) & (key < high))
        # SciPy has a counting sort: it converts a sparse matrix from a list of cells (COO) to a
        # list of rows (CSR), and keeps the order of the cells in each row. So build a matrix in
        # which the row of each value is its key.
        matrix_row = key[positions] - low
        # Put each value into a column of its own. If two values were in the same row and column,
        # SciPy would add them up.
        matrix_column = np.arange(len(positions), dtype=np.int32)
        # The matrix has at least one row and one column, even if the range is empty.
        shape = max(high - low, 1), max(len(positions), 1)
        cells = scipy.sparse.coo_matrix((values[positions], (matrix_row, matrix_column)), shape)
        sorted_values: npt.NDArray[np.int32] = cells.tocsr().data
        return sorted_values

    key_end = int(key.max(initial=0)) + 1
    n_parts = _N_SORTED_PARTS if len(key) >= _MANY_KEYS else 1
    # Cut the keys from 0 to key_end − 1 into ranges of about equal width. `pairwise` yields the
    # bounds of each range.
    cuts = np.linspace(0, key_end, n_parts + 1).astype(np.int32)
    return np.concatenate(list(in_threads(sort_range, itertools.pairwise(cuts))))


def find_nodes(
    levels: tuple[Level, ...], student: IntArray, labels: Sequence[IntArray]
) -> Iterator[IntArray]:
    """Yield, for each level of contexts, the number of each pair's node, shape (pairs,).

    A pair is a student and a question in a context. A node is a context in which a student has
    answers. If the pair's student has no answers in the pair's context of a level, the pair gets −1
    at this level and at all finer levels.

    Parameters
    ----------
    levels
        The levels of contexts, the coarsest first.
    student
        Position of each pair's student, shape (pairs,).
    labels
        For each level, the label of each pair's context (see `context.make_label`), shape (pairs,).
    """
    # The students are the parents of the nodes of the first level.
    node = student.astype(np.int64)
    has_answers = np.ones(len(node), bool)
    for level, label in zip(levels, labels, strict=True):
        position = level.find(parent=node, label=label)
        # If there is no such node, `find` returns the number of nodes. A pair without a node at one
        # level has no node at the finer levels either.
        n_nodes = len(level.label)
        has_answers &= position < n_nodes
        node = np.where(has_answers, position, -1).astype(np.int64)
        yield node
