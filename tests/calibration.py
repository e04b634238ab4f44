"""Predicted probabilities of right answers against the true ones of planted answers."""

import numpy as np


def loss(p: np.ndarray, truth: np.ndarray) -> float:
    """Return the log loss expected of answers with these true probabilities."""
    return float(-(truth * np.log(p) + (1 - truth) * np.log1p(-p)).mean())


def bin_means(p: np.ndarray, truth: np.ndarray, n_bins: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Return means in ten equally wide bins, of those that hold 200 pairs; of `n_bins` at least."""
    bins = np.minimum((p * 10).astype(int), 9)
    kept = [bins == b for b in range(10) if (bins == b).sum() >= 200]
    assert len(kept) >= n_bins
    return np.array([p[b].mean() for b in kept]), np.array([truth[b].mean() for b in kept])


def over_gaussian(logit: np.ndarray, variance: float) -> np.ndarray:
    """Return E[sigmoid(logit + x)] for x of N(0, variance)."""
    x, weight = np.polynomial.hermite_e.hermegauss(30)
    p = 1 / (1 + np.exp(-logit[:, None] - np.sqrt(variance) * x))
    result: np.ndarray = p @ weight / weight.sum()
    return result
