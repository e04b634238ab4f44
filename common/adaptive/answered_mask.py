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
    """Count, of answered masks, float32 (students, questions), the students who answered both of
    two questions, and compute the questions' cosine, 1 where the same students answered them, 0
    where nobody answered both; two arrays of float32, (questions, questions).
    """
    together = mask.T @ mask
    count = np.maximum(np.diagonal(together), 1)
    return together, together / np.sqrt(np.outer(count, count))


def regress(mask: Array, latent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Predict latent vectors, abilities or means, (students, k), from which questions were
    answered, (students, questions), by ridge regression; every student has answers.

    Masks are divided by the root of the number of questions answered. Returned are their mean,
    float32 (questions,), and weights, float32 (questions, k): what a mask has beyond that mean,
    times these, is the expected deviation of the latent vector from the mean of all.
    """
    x = np.asarray(mask / np.sqrt(mask.sum(axis=1, keepdims=True)), np.float32)
    mean = x.mean(axis=0)
    x -= mean
    penalty = np.float32(_REGRESSION_PENALTY) * np.eye(x.shape[1], dtype=np.float32)
    return mean, np.linalg.solve(x.T @ x + penalty, x.T @ (latent - latent.mean(axis=0)))


def complete(together: FloatArray) -> FloatArray:
    """Predict a whole answered mask from one with hidden answers, by ridge regression on the
    numbers of students who answered both of two questions, (questions, questions).

    No training masks with answers hidden at random are needed: the expectations over all ways of
    hiding have a closed form (Steck 2020, "Autoencoders that don't overfit towards the identity").
    """
    kept = np.float32(1 - HIDDEN_SHARE)
    squares = kept**2 * together
    np.fill_diagonal(squares, kept * np.diagonal(together) + _COMPLETION_PENALTY)
    return np.linalg.solve(squares, kept * together)
