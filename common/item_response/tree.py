"""The trees of students and contexts: at the root a student, in the leaves the answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from common.answers import find_ids
from common.item_response.model import FloatArray, IntArray

import numpy as np
import scipy.sparse


@dataclass(frozen=True)
class Level:
    """The nodes of one level of all students' trees, in the order of their answers.

    Attributes
    ----------
    start
        Shape (nodes + 1,), int64: the answers of node i are start[i] to start[i + 1].
    parent
        Shape (nodes,), int32: node of the level above; of the first level, the student.
    label
        Shape (nodes,), int32: which context of its level it is, increasing for one parent.
    kind
        Shape (nodes,), int8: the stage of the items in it; each kind has variances of its own.
    """

    start: IntArray
    parent: IntArray
    label: IntArray
    kind: IntArray

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self.kind)

    @cached_property
    def keys(self) -> tuple[IntArray, int]:
        """What parent and label of a node are in one number, parent · width + label; the width."""
        width = 2 + int(self.label.max(initial=0))
        return self.parent * np.int64(width) + self.label, width

    def nodes_of(self, answers: slice) -> slice:
        """Return the nodes of answers that end with a student."""
        begin, end = np.searchsorted(self.start, [answers.start, answers.stop]).tolist()
        return slice(begin, end)

    def take(self, nodes: slice, first_parent: int, first_answer: int) -> "Level":
        """Return some nodes, with parents and answers numbered from the given ones."""
        return Level(
            self.start[nodes.start : nodes.stop + 1] - first_answer,
            self.parent[nodes] - np.int32(first_parent),
            self.label[nodes],
            self.kind[nodes],
        )

    def sum_children(self, values: FloatArray, n_parents: int) -> FloatArray:
        """Sum up the values of the nodes, shape (nodes, …), for each parent."""
        first = np.searchsorted(self.parent, np.arange(n_parents + 1))
        ones = np.ones(len(self), np.float32)
        indices = np.arange(len(self), dtype=np.int32)
        matrix = scipy.sparse.csr_matrix((ones, indices, first), shape=(n_parents, len(self)))
        sums: FloatArray = matrix @ values
        return sums


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
