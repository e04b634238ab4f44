"""Answered masks: closed forms against the computations that they replace."""

from common.adaptive import answered_mask

import numpy as np
import pytest
from numpy.testing import assert_allclose


def test_completion_against_hiding_answers() -> None:
    """The closed form equals ridge regression on masks with answers hidden many times."""
    rng = np.random.default_rng(8)
    patterns = (rng.random((60, 1)) < rng.random((1, 8))) | (rng.random((60, 8)) < 0.3)
    n_times = 4000
    squares, products = np.zeros((8, 8)), np.zeros((8, 8))
    for _ in range(n_times):
        kept = (patterns & (rng.random(patterns.shape) > answered_mask.HIDDEN_SHARE)).astype(float)
        squares += kept.T @ kept / n_times
        products += kept.T @ patterns / n_times
    expected = np.linalg.solve(squares + 100 * np.eye(8), products)
    whole = patterns.astype(np.float32)
    assert answered_mask.complete(whole.T @ whole) == pytest.approx(expected, abs=2e-3)


def test_regression_against_minimising_its_loss() -> None:
    rng = np.random.default_rng(3)
    mask = (rng.random((40, 6)) < 0.5).astype(np.float32)
    mask[:, 0] = 1
    latent = rng.normal(1, 1, (40, 2)).astype(np.float32)
    mean, weights = answered_mask.regress(mask, latent)
    relative = mask / np.sqrt(mask.sum(axis=1, keepdims=True))
    assert_allclose(mean, relative.mean(axis=0), rtol=1e-6)

    def loss(weights: np.ndarray) -> float:
        error = (relative - mean) @ weights - (latent - latent.mean(axis=0))
        return float((error**2).sum() + 12 * (weights**2).sum())

    least = loss(weights)
    assert all(loss(weights + 0.05 * rng.normal(size=weights.shape)) > least for _ in range(50))


def test_similarity_of_questions() -> None:
    mask = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0]], np.float32)
    together, similarity = answered_mask.count_together(mask)
    assert together.tolist() == [[4, 2, 0], [2, 2, 0], [0, 0, 0]]
    assert_allclose(similarity, [[1, np.sqrt(0.5), 0], [np.sqrt(0.5), 1, 0], [0, 0, 0]], rtol=1e-6)
