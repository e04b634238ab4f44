"""The rows whose features are computed, as every group of features gets them."""

from dataclasses import dataclass
from functools import cached_property

from common.answer_features.known import Known
from common.answer_features.nearest_answers import NearestAnswers, summarise_nearest
from common.answer_features.pairs import Pairs
from common.arrays import Array, IntArray

# Features by their names, as a function of `groups.py` returns them. Each array has one value for
# each of `Asked.rows`. The value is NaN if the feature is unknown.
Columns = dict[str, Array]


@dataclass(frozen=True)
class Asked:
    """The rows whose features are to be computed, and the data that the features may use."""

    # All pairs of students and questions: a row for each training answer or pair to predict.
    pairs: Pairs
    # The training answers whose outcomes (right or wrong) the features may use. Answers of `rows`
    # must not be among them: a feature would reveal the outcome that a model is to predict from it.
    known: Known
    # The positions of the rows of `pairs` whose features are to be computed, shape (rows,).
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
        """The number of each row's context on each level, shape (rows, levels): `Pairs.context`."""
        return self.pairs.context[self.rows]

    @cached_property
    def nearest(self) -> NearestAnswers:
        """For each row, a summary of the student's known answers to the most similar questions."""
        return summarise_nearest(self.pairs, self.known, self.rows)
