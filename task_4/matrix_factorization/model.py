"""Matrix factorisation: ask what tells most about a student's abilities, then predict the answers.

Every student has a short vector of abilities, and every question a vector of loadings. An answer, 1
if right and 0 if wrong, is treated as a measurement with noise,

    answer = intercept + loading · ability + noise.

Abilities are normally distributed, N(0, I), before any answer, and the noise of all answers has the
same variance. The abilities then stay normal after any answers. Their mean and covariance have a
closed form, that of a ridge regression (Salakhutdinov and Mnih 2008, "Probabilistic matrix
factorization").

This file needs NumPy only, and no other file of the kit, because it goes into the zip to upload.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]

WEIGHTS = "model_task_4_matrix_factorization.npz"
# The model may compute a probability below 0 or above 1. Predictions are clipped to this distance
# from 0 and from 1.
_MIN_PROBABILITY = 0.01


@dataclass(frozen=True)
class Model:
    """The learned parameters: float32, for Q questions and k abilities."""

    # Probability that a student with average abilities answers each question correctly, shape (Q,).
    intercept: FloatArray
    # How much each ability raises this probability, shape (Q, k).
    loading: FloatArray
    # Variance of the noise, shape ().
    noise: FloatArray

    def save(self, folder: Path) -> None:
        """Write the weights to a folder."""
        np.savez(folder / WEIGHTS, **asdict(self))

    @staticmethod
    def load(folder: Path) -> "Model":
        """Read the weights from a folder."""
        with np.load(folder / WEIGHTS) as weights:
            return Model(**weights)

    def pad_questions(self, n_questions: int) -> "Model":
        """Return a copy of the model that has `n_questions` questions.

        If the model has more questions, the last ones are cut off. If it has fewer, new questions
        get the mean intercept and the loadings 0, so their answers tell nothing about other
        questions.
        """
        n_new = max(0, n_questions - len(self.intercept))
        intercept = np.pad(self.intercept[:n_questions], (0, n_new))
        intercept[len(self.intercept) :] = self.intercept.mean()
        loading = np.pad(self.loading[:n_questions], [(0, n_new), (0, 0)])
        return replace(self, intercept=intercept, loading=loading)


def fit_abilities(model: Model, answered: Any, is_right: Any) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of students' abilities, given answers.

    Each student's precision (inverse covariance) is I + Σ loading loadingᵀ / noise. The mean is the
    covariance times Σ loading (answer - intercept) / noise. Both sums are over the student's
    answers.

    Parameters
    ----------
    model
        A model of Q questions and k abilities.
    answered
        1 where a student has answered a question, else 0, float32, shape (students, Q). An array or
        a sparse matrix.
    is_right
        1 where the answer is right, else 0: an array or a sparse matrix like `answered`.

    Returns
    -------
    mean : array, shape (students, k)
    covariance : array, shape (students, k, k)
    """
    n_questions, k = model.loading.shape
    # loading loadingᵀ of each question, shape (Q, k, k).
    squares = model.loading[:, :, None] * model.loading[:, None, :]
    # For each student, the sum of these k x k matrices over the answered questions. Each matrix is
    # written as a row of k * k numbers, so that one product of matrices computes all sums.
    square_sums = (answered @ squares.reshape(n_questions, k * k)).reshape(-1, k, k)
    precision = np.eye(k, dtype=np.float32) + square_sums / model.noise
    covariance = np.linalg.inv(precision)
    # For each student, Σ loading (answer - intercept). It is split into Σ loading · answer and
    # Σ loading · intercept, because each of these sums is a product of two matrices.
    weighted_sums = is_right @ model.loading - answered @ (model.loading * model.intercept[:, None])
    mean = (covariance @ (weighted_sums / model.noise)[:, :, None])[:, :, 0]
    return mean, covariance


class Students:
    """The abilities of S students, as far as their revealed answers tell.

    Parameters
    ----------
    model
        The model, of Q questions.
    revealed
        Which answers are revealed, shape (S, Q).
    is_right
        1 for a right and 0 for a wrong answer, shape (S, Q). Other answers may have any value.
    """

    def __init__(self, model: Model, revealed: BoolArray, is_right: IntArray) -> None:
        self.model = model
        self.revealed = revealed
        self.is_right = is_right
        right = revealed & (is_right == 1)
        self.mean, self.covariance = fit_abilities(
            model, revealed.astype(np.float32), right.astype(np.float32)
        )

    def predict(self) -> FloatArray:
        """Return P(right), shape (S, Q), with 1 (right) or 0 (wrong) for revealed answers."""
        expected = self.model.intercept + self.mean @ self.model.loading.T
        probability = expected.clip(_MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
        return np.where(self.revealed, self.is_right, probability)

    def select(self, askable: BoolArray) -> IntArray:
        """Select for each student the question whose answer tells most about the abilities.

        Parameters
        ----------
        askable
            Which questions may be asked, shape (S, Q).

        Returns
        -------
        array of int64, shape (S,)
            The question selected for each student, as a column of `askable`; 0 for students who may
            not be asked anything.

        Notes
        -----
        The expected answer to a question is intercept + loading · ability. Because the abilities
        are uncertain, it has the variance loadingᵀ covariance loading. The answer multiplies the
        determinant of the covariance of the abilities by noise / (noise + variance). So the
        question with the largest variance tells most about the abilities. The covariance depends on
        which questions have been asked, but not on whether the answers are right.
        """
        loading = self.model.loading
        # Covariance of each question's expected answer with the abilities, shape (S, Q, k).
        covariance_with_abilities = loading @ self.covariance
        variance = (covariance_with_abilities * loading).sum(axis=2)
        return np.asarray(np.where(askable, variance, -1).argmax(axis=1))
