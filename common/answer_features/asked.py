"""The rows whose features are computed, as every group of features gets them."""

from dataclasses import dataclass
from functools import cached_property

from common.answer_features.known import Known
from common.answer_features.nearest_answers import NearestAnswers, summarise_nearest
from common.answer_features.pairs import Pairs
from common.arrays import Array, IntArray

# The features that a function of `groups.py` computes: the columns by their names. A column has a
# value for each of `Asked.rows`, and NaN where the feature is unknown.
Columns = dict[str, Array]


@dataclass(frozen=True)
class Asked:
    """The rows whose features are to be computed, and the data that the features may use."""

    pairs: Pairs
    # The outcomes that the features may use. The outcomes of `rows` must not be among them: a
    # feature would reveal the outcome that a model is to predict from it.
    known: Known
    # The rows of `pairs` whose features are to be computed, shape (rows,).
    rows: IntArray

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.rows)

    @property
    def student(self) -> IntArray:
        """The student of each row; students are numbered from 0."""
        return self.pairs.numbers["student"][self.rows]

    @property
    def question(self) -> IntArray:
        """The question of each row; questions are numbered from 0."""
        return self.pairs.numbers["question"][self.rows]

    @property
    def context(self) -> IntArray:
        """The contexts of each row as numbers, shape (rows, levels); see `Pairs.context`."""
        return self.pairs.context[self.rows]

    @cached_property
    def nearest(self) -> NearestAnswers:
        """The student's known answers to the most similar questions, computed once."""
        return summarise_nearest(self.pairs, self.known, self.rows)
