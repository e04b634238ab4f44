"""Majority: ask the question that most students have answered, predict the more frequent outcome.

The predictions are the same for every student, so any model of students should score higher.

This file needs NumPy only, and no other file of the kit, because it goes into the zip to upload.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]


class Model:
    """The number of answers to each question, and the more frequent outcome."""

    def __init__(self) -> None:
        # The more frequent outcome of each question, shape (questions,): 1 if more than half of the
        # answers are right, else 0.
        self.usual_outcome: IntArray = np.zeros(0, np.int64)
        # Number of answers to each question, shape (questions,).
        self.num_answers: IntArray = np.zeros(0, np.int64)

    def fit(self, question: IntArray, is_correct: IntArray, n_questions: int) -> None:
        """Count the training answers.

        Parameters
        ----------
        question
            QuestionId of each answer, shape (answers,).
        is_correct
            1 for a right and 0 for a wrong answer, shape (answers,).
        n_questions
            The number of questions; all QuestionIds are smaller.
        """
        self.num_answers = np.bincount(question, minlength=n_questions)
        n_correct = np.bincount(question[is_correct == 1], minlength=n_questions)
        self.usual_outcome = (2 * n_correct > self.num_answers).astype(np.int64)
        # A question that nobody answered gets the more frequent outcome of all answers to all
        # questions.
        never_answered = self.num_answers == 0
        self.usual_outcome[never_answered] = 2 * n_correct.sum() > len(question)

    def save(self, folder: Path) -> None:
        """Write the weights to a folder."""
        np.save(folder / "model_task_4_most_popular.npy", self.usual_outcome)
        np.save(folder / "model_task_4_num_answers.npy", self.num_answers)

    def load(self, folder: Path) -> None:
        """Read the weights from a folder."""
        self.usual_outcome = np.load(folder / "model_task_4_most_popular.npy")
        self.num_answers = np.load(folder / "model_task_4_num_answers.npy")

    def select(self, can_query: IntArray) -> IntArray:
        """Choose for every student the most answered question among those that may be asked.

        `can_query` is 1 for a question that may be asked, else 0, shape (students, questions).
        """
        num_answers = pad_questions(self.num_answers, can_query.shape[1], fill=0)
        chosen: IntArray = np.where(can_query == 1, num_answers, -1).argmax(axis=1)
        return chosen

    def predict(self, shape: tuple[int, int]) -> IntArray:
        """Predict the usual outcome of each question for an array (students, questions)."""
        n_students, n_questions = shape
        # A question that the model does not know gets the usual outcome of most known questions.
        most_are_right = int(2 * self.usual_outcome.sum() > len(self.usual_outcome))
        by_question = pad_questions(self.usual_outcome, n_questions, fill=most_are_right)
        return np.tile(by_question, (n_students, 1))


def pad_questions(values: IntArray, n_questions: int, fill: int) -> IntArray:
    """Cut or pad an array over questions to another number of questions; new entries are `fill`.

    The model and the game may have different numbers of questions. Each number comes from the
    metadata or, without metadata, from the answers of different students.
    """
    n_new = max(0, n_questions - len(values))
    return np.pad(values[:n_questions], (0, n_new), constant_values=fill)
