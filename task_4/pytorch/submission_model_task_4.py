"""Task 4, partial VAE: asks what tells most about the answers that are probably to be predicted."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from model import Examination, Model

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.integer[Any]]


class Submission:
    """The entry; `submission_templates/submission_model_task_4.py` documents every method.

    Parameters
    ----------
    model
        For cross-validation; default: the one that lies beside this file.
    """

    def __init__(self, model: Model | None = None) -> None:
        self.model = model or Model.load(Path(__file__).parent)
        self.examination: Examination | None = None
        # Which answers could be asked at first; not known before the first call that tells.
        self.askable: BoolArray | None = None
        self.learned: BoolArray = np.zeros((0, 0), bool)

    def select_questions(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> IntArray:
        """Choose the next question for every student."""
        examination = self._learn(masked_data, masked_binary_data, can_query)
        return examination.choose(torch.from_numpy(can_query == 1)).numpy()

    # Its name in the published evaluators.
    select_feature = select_questions

    def update_model(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> None:
        """Learn from the answers revealed since the last call."""
        self._learn(masked_data, masked_binary_data, can_query)

    def predict(self, masked_data: IntArray, masked_binary_data: IntArray) -> IntArray:
        """Predict right (1) or wrong (0) for every student and question."""
        return self._learn(masked_data, masked_binary_data, None).predict().numpy()

    def _learn(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray | None
    ) -> Examination:
        # An answer shows, whether -1 or 0 stands for the others; only where 0 does and the option
        # is not told, a wrong one does not: but then it can no longer be asked.
        revealed = (masked_data > 0) | (masked_binary_data == 1)
        if (masked_binary_data == -1).any():
            revealed = masked_binary_data >= 0
        elif can_query is not None and self.askable is not None:
            revealed |= self.askable & (can_query != 1)

        if self.examination is None or (self.askable is None and can_query is not None):
            pattern = revealed & (can_query is not None)
            if can_query is not None:
                self.askable = pattern = revealed | (can_query == 1)
            self.learned = np.zeros(revealed.shape, bool)
            self.examination = Examination(
                self.model.fit_width(revealed.shape[1]), torch.from_numpy(pattern)
            )

        new = revealed & ~self.learned
        self.learned |= new
        student, question = (torch.from_numpy(index) for index in np.nonzero(new))
        is_right = torch.from_numpy(masked_binary_data[new].astype(np.int64))
        self.examination.answer(student, question, is_right)
        return self.examination
