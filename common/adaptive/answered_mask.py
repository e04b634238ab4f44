"""Predict abilities and hidden questions from answered masks, before any answer is seen (task 4).

The answered mask of a student is 1 for each question that may be asked, and 0 for the others. It
tells something about ability, since teachers choose quizzes for their classes. It also tells which
questions are likely to be the hidden targets: a question that is 0 in the mask, although it is
usually answered together with the student's questions, is probably a target.
"""

from common.arrays import Array, FloatArray

import numpy as np

# In the game, this share of a student's answers are targets, which the entry has to predict. They
# are hidden: the entry may not ask them.
HIDDEN_SHARE = 0.2
# Ridge penalties of `fit_latent` and `fit_completion`, chosen by cross-validation over students.
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
        `together`, divided by the geometric mean of the number of students who answered the first
        question and the number who answered the second one. The cosine is 1 if the same students
        answered both questions, and 0 if nobody answered both.
    """
    together = mask.T @ mask
    n_students = np.maximum(np.diagonal(together), 1)
    return together, together / np.sqrt(np.outer(n_students, n_students))


def fit_latent(mask: Array, latent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit a ridge regression that predicts latent vectors of students from their answered masks.

    With the `mean` and the `weights` that are returned, the prediction for a mask m is
    latent.mean(axis=0) + (m / √m.sum() − mean) @ weights.

    Parameters
    ----------
    mask
        Answered masks, shape (students, questions); every student has answered a question.
    latent
        Vectors to predict, such as abilities, shape (students, k).

    Returns
    -------
    mean : array of float32, shape (questions,)
        Mean of the masks, after each mask is divided by the square root of its sum.
    weights : array of float32, shape (questions, k)
        The regression coefficients.
    """
    # A mask consists of zeros and ones. Divided by the square root of its sum, it is a vector of
    # length 1.
    x = np.asarray(mask / np.sqrt(mask.sum(axis=1, keepdims=True)), np.float32)
    mean = x.mean(axis=0)
    x -= mean
    penalty = np.float32(_REGRESSION_PENALTY) * np.eye(x.shape[1], dtype=np.float32)
    return mean, np.linalg.solve(x.T @ x + penalty, x.T @ (latent - latent.mean(axis=0)))


def fit_completion(together: FloatArray) -> FloatArray:
    """Fit a ridge regression that finds the hidden targets of a student.

    Its input is the student's answered mask, which is 0 for the hidden targets. It predicts the
    whole mask, which is 1 for every question that the student has answered, targets included.

    Parameters
    ----------
    together
        Numbers of students who answered both of two questions, from `count_together`.

    Returns
    -------
    array of float32, shape (questions, questions)
        Regression coefficients: the mask without targets @ coefficients predicts the whole mask.

    Notes
    -----
    No masks with answers hidden at random are needed. The sums of products that the regression
    needs have a closed form in expectation (Steck 2020, "Autoencoders that don't overfit towards
    the identity"). Let y be the whole masks and x the same masks in which each 1 is kept with the
    probability `kept_share`, both of shape (students, questions). Then E[xᵀx] is
    kept_share² · together, except on the diagonal, where it is kept_share · together. E[xᵀy] is
    kept_share · together.
    """
    kept_share = np.float32(1 - HIDDEN_SHARE)
    # E[xᵀx], by the formulas in the docstring, plus the ridge penalty on its diagonal.
    expected_squares = kept_share**2 * together
    expected_diagonal = kept_share * np.diagonal(together)
    np.fill_diagonal(expected_squares, expected_diagonal + _COMPLETION_PENALTY)
    # E[xᵀy], by the formula in the docstring.
    expected_products = kept_share * together
    return np.linalg.solve(expected_squares, expected_products)
