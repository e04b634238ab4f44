"""Predictions from the answered mask of a student, before any answer is seen (task 4).

The mask is 1 for each question that may be asked, and 0 for the others. It tells something about
ability, since teachers choose quizzes for their classes. It also tells which questions are likely
hidden: those that are missing, though other students answered them together with the rest.
"""

from common.arrays import Array, FloatArray

import numpy as np

# Share of the answers of a test student that the masks hide.
HIDDEN_SHARE = 0.2
# Ridge penalties of `regress` and `complete`, chosen by cross-validation over students.
_REGRESSION_PENALTY = 12.0
_COMPLETION_PENALTY = 100.0


def count_together(mask: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Count the students who answered both of two questions, for all pairs of questions.

    Parameters
    ----------
    mask
        Answered masks, float32, shape (students, questions).

    Returns
    -------
    together : array of float32, shape (questions, questions)
        The number of students who answered both questions.
    cosine : array of float32, shape (questions, questions)
        `together` over the geometric mean of the numbers of students who answered each: 1 if the
        same students answered both questions, 0 if nobody did.
    """
    together = mask.T @ mask
    n_students = np.maximum(np.diagonal(together), 1)
    return together, together / np.sqrt(np.outer(n_students, n_students))


def regress(mask: Array, latent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit a ridge regression of latent vectors on answered masks.

    The prediction for a mask m is mean(latent) + (m / √(number of questions in m) − mean) weights.

    Parameters
    ----------
    mask
        Answered masks, shape (students, questions); every student has answered a question.
    latent
        Vectors to predict, such as abilities, shape (students, k).

    Returns
    -------
    mean : array of float32, shape (questions,)
        Mean of the masks, each divided by the root of its number of questions.
    weights : array of float32, shape (questions, k)
        The regression coefficients.
    """
    x = np.asarray(mask / np.sqrt(mask.sum(axis=1, keepdims=True)), np.float32)
    mean = x.mean(axis=0)
    x -= mean
    penalty = np.float32(_REGRESSION_PENALTY) * np.eye(x.shape[1], dtype=np.float32)
    return mean, np.linalg.solve(x.T @ x + penalty, x.T @ (latent - latent.mean(axis=0)))


def complete(together: FloatArray) -> FloatArray:
    """Fit a ridge regression of whole answered masks on masks with hidden answers.

    Parameters
    ----------
    together
        Numbers of students who answered both of two questions, from `count_together`.

    Returns
    -------
    array of float32, shape (questions, questions)
        Regression coefficients: mask with hidden answers @ coefficients predicts the whole mask.

    Notes
    -----
    No masks with answers hidden at random are needed. The expectations over all ways of hiding have
    a closed form (Steck 2020, "Autoencoders that don't overfit towards the identity").
    """
    kept_share = np.float32(1 - HIDDEN_SHARE)
    expected_squares = kept_share**2 * together
    expected_diagonal = kept_share * np.diagonal(together)
    np.fill_diagonal(expected_squares, expected_diagonal + _COMPLETION_PENALTY)
    return np.linalg.solve(expected_squares, kept_share * together)
