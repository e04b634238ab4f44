"""Task 4, partial VAE: ask what reveals most about the answers that are probably hidden."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

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
        # True where a question could be asked before the first round, shape (students, questions).
        # None until the evaluator passes `can_query`, the questions that can still be asked, to
        # `select_questions` or `update_model`.
        self.askable: BoolArray | None = None
        # True where the posterior has learned from a revealed answer, shape (students, questions).
        self.observed: BoolArray = np.zeros((0, 0), bool)

    def select_questions(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> IntArray:
        """Choose the next question for every student."""
        posterior = self._observe(masked_data, masked_binary_data, can_query)
        return posterior.select(torch.from_numpy(can_query == 1)).numpy()

    # The evaluators that the organisers published call this method `select_feature`.
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
        return self._observe(masked_data, masked_binary_data, None).predict().numpy()

    def _observe(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray | None
    ) -> StudentPosterior:
        """Return the posterior of the students, after learning from newly revealed answers.

        A new posterior needs the answered mask: which questions of a student may be asked or are
        revealed. `can_query` gives the mask, but `predict` does not get `can_query`. If `predict`
        is called first, the posterior starts from an empty mask. The first call with `can_query`
        then replaces it by a new posterior, which learns from all revealed answers.
        """
        revealed = self._find_revealed(masked_data, masked_binary_data, can_query)
        if can_query is not None and self.askable is None:
            # Now the answered mask is known. Drop a posterior that was made without it.
            self.askable = revealed | (can_query == 1)
            self.posterior = None
        if self.posterior is None:
            # If the answered mask is not known yet, `StudentPosterior` expects an empty mask.
            empty_mask = np.zeros(revealed.shape, bool)
            answered_mask = empty_mask if self.askable is None else self.askable
            # The new posterior has not learned from any answer yet.
            self.observed = np.zeros(revealed.shape, bool)
            model = self.model.pad_questions(revealed.shape[1])
            self.posterior = StudentPosterior(model, torch.from_numpy(answered_mask))

        # `observe` takes the student, the question and the outcome of each new answer.
        new = revealed & ~self.observed
        self.observed |= new
        student, question = np.nonzero(new)
        is_right = masked_binary_data[student, question].astype(np.int64)
        self.posterior.observe(
            torch.from_numpy(student), torch.from_numpy(question), torch.from_numpy(is_right)
        )
        return self.posterior

    def _find_revealed(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray | None
    ) -> BoolArray:
        """Return which answers are revealed, shape (students, questions).

        The parameters have this shape too. `masked_data` holds the chosen option of a revealed
        answer, 1 or more. `masked_binary_data` is 1 for a right and 0 for a wrong answer; if an
        answer is not revealed, it is -1 with some evaluators, 0 with others. `can_query` is 1 where
        a question may be asked now.
        """
        marks_by_minus_one = (masked_binary_data == -1).any()
        if marks_by_minus_one:
            return masked_binary_data >= 0
        # From here on, 0 in `masked_binary_data` means either a wrong answer or a hidden one.
        is_right = masked_binary_data == 1
        has_option = masked_data > 0
        revealed: BoolArray = is_right | has_option
        # Some evaluators give no options either. A revealed wrong answer then looks like a hidden
        # one. But if a question could be asked before the first round and may not be asked now, it
        # has been asked, so its answer is revealed.
        if self.askable is not None and can_query is not None:
            revealed |= self.askable & (can_query != 1)
        return revealed
