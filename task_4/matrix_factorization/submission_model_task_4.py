"""Task 4, matrix factorisation: ask what tells most about the student's abilities."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from model import Model, Students

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.integer[Any]]


class Submission:
    """The entry; `submission_templates/submission_model_task_4.py` documents every method."""

    def __init__(self, model: Model | None = None) -> None:
        # Only cross-validation passes a model. The evaluator calls Submission(), which loads the
        # weights beside this file.
        self.model = model or Model.load(Path(__file__).parent)
        # True where a question could be asked before the first round, shape (students, questions).
        # None until the evaluator passes `can_query`, the questions that can still be asked, to
        # `select_questions` or `update_model`. `predict` does not get `can_query`.
        self.askable: BoolArray | None = None
        # True where an answer has been revealed, shape (students, questions).
        self.revealed: BoolArray | None = None

    def select_questions(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> IntArray:
        """Choose the next question for every student."""
        self.update_model(masked_data, masked_binary_data, can_query)
        return self._students(masked_data, masked_binary_data).select(can_query == 1)

    # The evaluators that the organisers published call this method `select_feature`.
    select_feature = select_questions

    def update_model(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> None:
        """Note which answers have been revealed; `_students` learns from them when it is called."""
        if self.askable is None:
            self.askable = can_query == 1
        # Some evaluators write 0 in `masked_binary_data` both for a hidden answer and for a wrong
        # one. So tell by `can_query`: a question that could be asked at first and cannot be asked
        # now has been asked.
        self.revealed = self.askable & (can_query != 1)

    def predict(self, masked_data: IntArray, masked_binary_data: IntArray) -> IntArray:
        """Predict right (1) or wrong (0) for every student and question."""
        return (self.predict_probabilities(masked_data, masked_binary_data) > 0.5).astype(np.int64)

    def predict_probabilities(
        self, masked_data: IntArray, masked_binary_data: IntArray
    ) -> npt.NDArray[np.floating[Any]]:
        """Return P(right) for every student and question."""
        return self._students(masked_data, masked_binary_data).predict()

    def _students(self, masked_data: IntArray, masked_binary_data: IntArray) -> Students:
        """Return the students' abilities, given the answers revealed so far.

        `masked_data` holds the chosen option of a revealed answer, 1 or more. `masked_binary_data`
        is 1 for a right and 0 for a wrong answer; if an answer is not revealed, it is -1 with some
        evaluators, 0 with others.
        """
        marks_by_minus_one = (masked_binary_data == -1).any()
        if marks_by_minus_one:
            revealed = masked_binary_data >= 0
        else:
            # Here 0 in `masked_binary_data` means either a wrong answer or a hidden one.
            is_right = masked_binary_data == 1
            has_option = masked_data > 0
            revealed = is_right | has_option
        # Some evaluators give no options either. A revealed wrong answer then looks like a hidden
        # one. But `update_model` has noted which answers were revealed.
        if self.revealed is not None:
            revealed = revealed | self.revealed
        model = self.model.pad_questions(revealed.shape[1])
        return Students(model, revealed, masked_binary_data)
