"""What the answered mask, 0 or 1 for each question, reveals before any answer is seen (task 4).

Teachers choose quizzes for their classes; and a question that is missing, though usually answered
with the others, is likely hidden. Penalties were chosen by cross-validation over students.
"""

from common.arrays import Array, FloatArray

import numpy as np

# Share of the answers of a test student that the masks hide.
HIDDEN_SHARE = 0.2
_REGRESSION_PENALTY, _COMPLETION_PENALTY = 12.0, 100.0


def count_together(mask: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Count how often questions are answered by the same students.

    Parameters
    ----------
    mask
        Answered masks, float32 0 or 1, shape (students, questions).

    Returns
    -------
    together : array of float32, shape (questions, questions)
        Number of students who answered both questions.
    similarity : array of float32, shape (questions, questions)
        Their cosine: 1 for questions that the same students answered, 0 where nobody answered both.
    """
    together = mask.T @ mask
    count = np.maximum(np.diagonal(together), 1)
    return together, together / np.sqrt(np.outer(count, count))


def regress(mask: Array, latent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Predict latent vectors from which questions were answered, by ridge regression.

    Parameters
    ----------
    mask
        Answered masks, 0 or 1, shape (students, questions); every student has answers.
    latent
        Abilities or means of latent vectors, shape (students, k).

    Returns
    -------
    mean : array of float32, shape (questions,)
        Of the masks, each divided by the root of the number of questions answered.
    weights : array of float32, shape (questions, k)
        What a mask, divided so, has beyond that mean, times these, is the expected deviation of the
        latent vector from the mean of all.
    """
    x = np.asarray(mask / np.sqrt(mask.sum(axis=1, keepdims=True)), np.float32)
    mean = x.mean(axis=0)
    x -= mean
    penalty = np.float32(_REGRESSION_PENALTY) * np.eye(x.shape[1], dtype=np.float32)
    return mean, np.linalg.solve(x.T @ x + penalty, x.T @ (latent - latent.mean(axis=0)))


def complete(together: FloatArray) -> FloatArray:
    """Predict a whole answered mask from one with hidden answers, by ridge regression.

    No training masks with answers hidden at random are needed: the expectations over all ways of
    hiding have a closed form (Steck 2020, "Autoencoders that don't overfit towards the identity").

    Parameters
    ----------
    together
        Number of students who answered both questions, shape (questions, questions).
    """
    kept = np.float32(1 - HIDDEN_SHARE)
    squares = kept**2 * together
    np.fill_diagonal(squares, kept * np.diagonal(together) + _COMPLETION_PENALTY)
    return np.linalg.solve(squares, kept * together)
