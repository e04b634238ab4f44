"""Predictions from masks, which say who answered which question, equal those of scikit-learn.

The kit solves the ridge regressions in closed form; scikit-learn's `Ridge` is the reference.
"""

from common.adaptive import answered_mask

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge


def draw_masks(rng: np.random.Generator, n_students: int, n_questions: int) -> np.ndarray:
    """Draw which student answered which question, 1 or 0, shape (students, questions).

    Questions differ in how many students answer them, and students in how many questions they
    answer.
    """
    reluctance = rng.random((n_students, 1))
    appeal = rng.random((1, n_questions))
    is_answered_anyway = rng.random((n_students, n_questions)) < 0.3
    masks: np.ndarray = ((reluctance < appeal) | is_answered_anyway).astype(np.float32)
    return masks


def test_completing_masks_equals_ridge_regression_with_answers_hidden_many_times() -> None:
    """`fit_completion` learns to complete a mask, some of whose answers are hidden at random.

    It is a ridge regression, which minimises the expected squared error over all random choices of
    hidden answers. It computes this expectation exactly, from the numbers of students who answered
    both of two questions. The test approximates it: scikit-learn's `Ridge` is fitted to 4,000
    copies of 60 masks, each with its own hidden answers. The squared errors of all copies add up,
    so the penalty of `Ridge` is multiplied by 4,000, too.
    """
    n_students = 60
    n_questions = 8
    n_copies = 4000
    # The ridge penalty in `fit_completion`, which takes each mask once and not 4,000 times.
    penalty = 100
    rng = np.random.default_rng(8)
    masks = draw_masks(rng, n_students, n_questions)

    whole_masks = np.tile(masks, (n_copies, 1))
    is_kept = rng.random(whole_masks.shape) > answered_mask.HIDDEN_SHARE
    ridge = Ridge(alpha=penalty * n_copies, fit_intercept=False)
    expected = ridge.fit(whole_masks * is_kept, whole_masks).coef_.T

    n_answered_both = masks.T @ masks
    weights = answered_mask.fit_completion(n_answered_both)

    # A residual has a standard deviation of 0.39, and a column of kept masks one of 0.48. With
    # 240,000 rows, a weight without the penalty has a standard error of
    # 0.39 / 0.48 / √240,000 = 0.0016. A column of 60 kept masks has about 25 ones, hence a sum of
    # squares of 25. The penalty of 100 beside it shrinks a weight and its error to
    # 25 / (25 + 100), a fifth, so that the error is 0.0003. The tolerance is six of these standard
    # errors: enough for all 64 weights.
    assert weights == pytest.approx(expected, abs=2e-3)


def test_regression_on_masks_equals_ridge_regression() -> None:
    rng = np.random.default_rng(3)
    mask = (rng.random((40, 6)) < 0.5).astype(np.float32)
    mask[:, 0] = 1
    latent = rng.normal(1, 1, (40, 2)).astype(np.float32)

    mean, weights = answered_mask.fit_latent(mask, latent)

    # `fit_latent` divides every mask by its Euclidean length. Its ridge penalty is 12.
    scaled_mask = mask / np.sqrt(mask.sum(axis=1, keepdims=True))
    assert_allclose(mean, scaled_mask.mean(axis=0), rtol=1e-6)
    assert_allclose(weights, Ridge(alpha=12).fit(scaled_mask, latent).coef_.T, atol=1e-5)


def test_questions_are_similar_by_the_cosine_of_who_answered_them() -> None:
    # Both students answered question 0, one of them question 1, and nobody question 2.
    masks = np.array([[1, 1, 0], [1, 0, 0]], np.float32)
    _, similarity = answered_mask.count_together(masks)
    assert_allclose(similarity, [[1, 0.5**0.5, 0], [0.5**0.5, 1, 0], [0, 0, 0]], rtol=1e-6)
