"""Most popular: ask the question that most students have answered, predict the usual outcome.

Both are the same for every student, so this is the floor that a model has to beat. Needs only
NumPy, no other file of the kit: it goes into the zip.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]


class Model:
    """How often each question was answered, and what the more frequent outcome was."""

    def __init__(self) -> None:
        # 1 where most answers were right, else 0 (also for a tie), shape (questions,).
        self.most_popular: IntArray = np.zeros(0, np.int64)
        # Number of answers, shape (questions,).
        self.num_answers: IntArray = np.zeros(0, np.int64)

    def fit(self, question: IntArray, is_correct: IntArray, n_questions: int) -> None:
        """Count the training answers: QuestionId, 1 right or 0 wrong, and the number of columns."""
        self.num_answers = np.bincount(question, minlength=n_questions)
        n_correct = np.bincount(question[is_correct == 1], minlength=n_questions)
        self.most_popular = (2 * n_correct > self.num_answers).astype(np.int64)
        never_answered = self.num_answers == 0
        self.most_popular[never_answered] = 2 * n_correct.sum() > len(question)

    def save(self, folder: Path) -> None:
        """Write the weights to a folder."""
        np.save(folder / "model_task_4_most_popular.npy", self.most_popular)
        np.save(folder / "model_task_4_num_answers.npy", self.num_answers)

    def load(self, folder: Path) -> None:
        """Read the weights from a folder."""
        self.most_popular = np.load(folder / "model_task_4_most_popular.npy")
        self.num_answers = np.load(folder / "model_task_4_num_answers.npy")

    def select(self, can_query: IntArray) -> IntArray:
        """Choose for every student the most answered question where `can_query` is 1."""
        num_answers = pad_questions(self.num_answers, can_query.shape[1], 0)
        chosen: IntArray = np.where(can_query == 1, num_answers, -1).argmax(axis=1)
        return chosen

    def predict(self, shape: tuple[int, int]) -> IntArray:
        """Predict the usual outcome of every question, in the shape (students, questions)."""
        mostly_right = int(2 * self.most_popular.sum() > len(self.most_popular))
        return np.tile(pad_questions(self.most_popular, shape[1], mostly_right), (shape[0], 1))


def pad_questions(values: IntArray, n_questions: int, fill: int) -> IntArray:
    """Cut or pad an array over questions: without metadata, new students may answer new ones."""
    return np.pad(
        values[:n_questions], (0, max(0, n_questions - len(values))), constant_values=fill
    )
