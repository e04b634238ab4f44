"""What the pattern of answered questions tells, before any answer is seen (task 4).

A pattern is a row of 0 and 1 for each student: which questions the student has answered. It tells
something about the student, since teachers choose quizzes for their classes; and the gaps in it
tell which answers are hidden. Penalties were chosen by cross-validation over training students.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]

# Share of the answers of a test student that the masks hide.
HIDDEN_SHARE = 0.2
REGRESSION_PENALTY, COMPLETION_PENALTY = 12.0, 100.0


def count_together(pattern: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Count how often questions are answered by the same students.

    Parameters
    ----------
    pattern
        Float32 0 or 1, shape (students, questions).

    Returns
    -------
    together : array of float32, shape (questions, questions)
        Number of students who answered both questions.
    similarity : array of float32, shape (questions, questions)
        Their cosine: 1 for questions that the same students answered, 0 where nobody answered both.
    """
    together = pattern.T @ pattern
    count = np.maximum(np.diagonal(together), 1)
    return together, together / np.sqrt(np.outer(count, count))


def relative(pattern: npt.NDArray[Any]) -> FloatArray:
    """Divide patterns, last axis, by the root of the number of questions answered; float32."""
    return np.asarray(pattern / np.sqrt(pattern.sum(axis=-1, keepdims=True)), np.float32)


def regress(pattern: npt.NDArray[Any], latent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Predict latent vectors from which questions were answered, by ridge regression.

    Parameters
    ----------
    pattern
        0 or 1, shape (students, questions); nobody without answers.
    latent
        Abilities or means of latent vectors, shape (students, k).

    Returns
    -------
    mean : array of float32, shape (questions,)
        Of the relative patterns.
    weights : array of float32, shape (questions, k)
        ``(relative(pattern) - mean) @ weights`` is how far the latent vector is expected from the
        mean of all.
    """
    x = relative(pattern)
    mean = x.mean(axis=0)
    x -= mean
    penalty = np.float32(REGRESSION_PENALTY) * np.eye(x.shape[1], dtype=np.float32)
    return mean, np.linalg.solve(x.T @ x + penalty, x.T @ (latent - latent.mean(axis=0)))


def complete(together: FloatArray) -> FloatArray:
    """Predict a whole pattern from one with hidden answers, by ridge regression.

    The training patterns with answers hidden at random need not be made: expectations over all ways
    of hiding are known (Steck 2020, "Autoencoders that don't overfit towards the identity").

    Parameters
    ----------
    together
        Number of students who answered both questions, shape (questions, questions).
    """
    kept = np.float32(1 - HIDDEN_SHARE)
    squares = kept**2 * together
    np.fill_diagonal(squares, kept * np.diagonal(together) + COMPLETION_PENALTY)
    return np.linalg.solve(squares, kept * together)
