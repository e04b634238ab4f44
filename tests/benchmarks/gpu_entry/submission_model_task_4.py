"""An entry of task 4 that computes on a GPU or a processor: the most popular model in PyTorch.

`tests/benchmarks/on_gpu.py` saves the weights from tensors that lie on the GPU, writes the device
to compute on into a file beside them, and plays the entry.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

IntArray = npt.NDArray[np.integer[Any]]
WEIGHTS = Path(__file__).parent / "model_task_4_counts.pt"
DEVICE = Path(__file__).parent / "model_task_4_device.txt"


class Submission:
    """The entry; `submission_templates/submission_model_task_4.py` documents every method."""

    def __init__(self) -> None:
        self.device = DEVICE.read_text(encoding="utf-8")
        # Without `map_location`, weights saved on a GPU are loaded onto a GPU again.
        counts = torch.load(WEIGHTS, map_location=self.device, weights_only=True)
        self.n_answers = counts["n_answers"]
        self.n_right = counts["n_right"]

    def select_questions(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> IntArray:
        """Choose for every student the most answered question among those that may be asked.

        "Most answered" refers to the answers of the training students.
        """
        may_ask = torch.tensor(can_query, device=self.device) == 1
        chosen = torch.where(may_ask, self.n_answers, -1).argmax(dim=1)
        return chosen.cpu().numpy()

    # The published evaluators call this method `select_feature`.
    select_feature = select_questions

    def update_model(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> None:
        """Learn nothing: the predictions are the same for all students."""

    def predict(self, masked_data: IntArray, masked_binary_data: IntArray) -> IntArray:
        """Predict for every question whether most answers of the training students are right."""
        outcome = (2 * self.n_right > self.n_answers).long()
        return outcome.expand(masked_binary_data.shape).cpu().numpy()
