"""Blends of probabilities: averages of their log-odds, with weights learned from answers."""

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# Probabilities are kept this far from 0, whose logarithm no weight could outweigh.
_SMALLEST = 1e-6


def logarithms(probability: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return logarithms of probabilities, none of which counts as 0."""
    return np.asarray(np.log(np.maximum(probability, _SMALLEST)), np.float32)


def blend(logs: npt.NDArray[Any], weights: FloatArray) -> FloatArray:
    """Blend probabilities: the softmax of weighted logarithms.

    For right and wrong this averages the log-odds (a logarithmic opinion pool, Genest and Zidek
    1986). Shape of the logarithms: (files, rows, categories); of the result: (rows, categories).
    The weights, one for each file, need not sum to 1.
    """
    return np.asarray(np.exp(_log_blend(logs, weights)))


def _log_blend(logs: npt.NDArray[Any], weights: FloatArray) -> FloatArray:
    """Return the logarithm of `blend`, which is finite where that is too small for a number."""
    total = np.tensordot(weights, logs, axes=1)
    total -= total.max(axis=1, keepdims=True)
    return np.asarray(total - np.log(np.exp(total).sum(axis=1, keepdims=True)))


def learn_weights(logs: npt.NDArray[Any], truth: npt.NDArray[np.int64]) -> FloatArray:
    """Minimise the log loss of a blend, which is convex, over weights of at least 0.

    The truth is what happened, from 0, shape (rows,); there is a weight for each file.
    """
    from scipy.optimize import minimize

    happened = np.stack([np.take_along_axis(own, truth[:, None], axis=1)[:, 0] for own in logs])

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        blended = _log_blend(logs, weights)
        p, chosen = np.exp(blended), np.take_along_axis(blended, truth[:, None], axis=1)
        gradient = [
            float((p * own).sum() - known.sum()) for own, known in zip(logs, happened, strict=True)
        ]
        return float(-chosen.mean()), np.array(gradient) / len(truth)

    start = np.full(len(logs), 1 / len(logs))
    found = minimize(loss, start, jac=True, bounds=[(0, None)] * len(logs), method="L-BFGS-B")
    return np.asarray(found.x, np.float64)
