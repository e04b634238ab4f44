"""Task 4, item response model: ask what helps most to predict the hidden answers."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from model import Model, StudentPosterior

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.integer[Any]]


class Submission:
    """The entry; `submission_templates/submission_model_task_4.py` documents every method."""

    def __init__(self, model: Model | None = None) -> None:
        # Only cross-validation passes a model. The evaluator calls Submission(), which loads the
        # weights beside this file.
        self.model = model or Model.load(Path(__file__).parent)
        self.posterior: StudentPosterior | None = None
        # Whether a question could be asked before the first round, shape (students, questions).
        # None until a method gets `can_query`, which `predict` never does.
        self.askable: BoolArray | None = None
        # Whether the posterior has learned from an answer, shape (students, questions).
        self.observed: BoolArray = np.zeros((0, 0), bool)

    def select_questions(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> IntArray:
        """Choose the next question for every student."""
        return self._observe(masked_data, masked_binary_data, can_query).select(can_query == 1)

    # The evaluators that the organisers published call the method by this name.
    select_feature = select_questions

    def update_model(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> None:
        """Learn from the answers revealed since the last call."""
        self._observe(masked_data, masked_binary_data, can_query)

    def predict(self, masked_data: IntArray, masked_binary_data: IntArray) -> IntArray:
        """Predict right (1) or wrong (0) for every student and question."""
        return (self.predict_probabilities(masked_data, masked_binary_data) > 0.5).astype(np.int64)

    def predict_probabilities(
        self, masked_data: IntArray, masked_binary_data: IntArray
    ) -> npt.NDArray[np.floating[Any]]:
        """Return P(right) for every student and question."""
        return self._observe(masked_data, masked_binary_data, None).predict()

    def _observe(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray | None
    ) -> StudentPosterior:
        """Return the posterior, after learning from the answers revealed since the last call.

        Which questions a student has answered tells something about the student. The evaluator
        tells this through `can_query`, which `predict` does not get. The posterior begins without
        this knowledge if the first call has no `can_query`. It begins anew with the first call that
        has it.
        """
        revealed = self._find_revealed(masked_data, masked_binary_data, can_query)
        is_first_mask = self.askable is None and can_query is not None
        if self.posterior is None or is_first_mask:
            # All False stands for unknown.
            answered_mask = np.zeros(revealed.shape, bool)
            if can_query is not None:
                # The answered questions are those already asked and those that may be asked.
                self.askable = revealed | (can_query == 1)
                answered_mask = self.askable
            self.observed = np.zeros(revealed.shape, bool)
            model = self.model.pad_questions(revealed.shape[1])
            self.posterior = StudentPosterior(model, answered_mask)

        new = revealed & ~self.observed
        self.observed |= new
        # The posterior learns from at most one answer of each student at a time. Take the first new
        # answer of each student until there are no more.
        while new.any():
            student = np.flatnonzero(new.any(axis=1))
            question = new[student].argmax(axis=1)
            self.posterior.observe(student, question, masked_binary_data[student, question])
            new[student, question] = False
        return self.posterior

    def _find_revealed(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray | None
    ) -> BoolArray:
        """Return which answers are revealed, shape (students, questions).

        Some evaluators mark an answer that is not revealed by -1, others by 0. In the second case,
        0 in `masked_binary_data` may also be a wrong answer.
        """
        if (masked_binary_data == -1).any():
            return masked_binary_data >= 0
        # A revealed answer is right, or its option in `masked_data` is above 0.
        revealed: BoolArray = (masked_data > 0) | (masked_binary_data == 1)
        if can_query is not None and self.askable is not None:
            # Some evaluators give no options. Then this finds the wrong answers: an answer that
            # could be asked at first, and cannot be asked now, has been revealed.
            revealed |= self.askable & (can_query != 1)
        return revealed
