"""The challenge's metrics, and what is needed to read them honestly."""

from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]


def accuracy(truth: npt.NDArray[Any], prediction: npt.NDArray[Any]) -> float:
    """Share of predictions that equal the truth (tasks 1, 2 and 4).

    Parameters
    ----------
    truth, prediction
        Equally long arrays of any shape with at least one element.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If the shapes differ or there is nothing to score.
    """
    if truth.shape != prediction.shape:
        raise ValueError(f"truth has shape {truth.shape}, prediction {prediction.shape}")
    if truth.size == 0:
        raise ValueError("there are no predictions to score")
    return float(np.mean(truth == prediction))


def confusion_matrix(
    truth: IntArray, prediction: IntArray, categories: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Count every combination of true and predicted category.

    Parameters
    ----------
    truth, prediction
        Equally long arrays of categories.
    categories
        The possible values, in increasing order.

    Returns
    -------
    array of int64, shape (categories, categories)
        Rows are the truth, columns the prediction.
    """
    n = len(categories)
    cells = np.searchsorted(categories, truth) * n + np.searchsorted(categories, prediction)
    return np.bincount(cells, minlength=n * n).reshape(n, n)


def normalise_rows(counts: npt.NDArray[np.int64]) -> FloatArray:
    """Divide every row by its own sum: of the answers that are truly this, which share became that.

    Parameters
    ----------
    counts
        Confusion matrix with the truth in rows.

    Returns
    -------
    array of float64
        Same shape; each row sums to 1, or is all 0 where there was nothing to count.
    """
    totals = counts.sum(axis=1, keepdims=True)
    return np.asarray(counts / np.maximum(totals, 1))


def expert_agreement(
    rank_left: IntArray, rank_right: IntArray, judgements: npt.NDArray[np.floating[Any]]
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Share of pairs on which a ranking agrees with each expert (task 3).

    The score of task 3 is the largest of these shares.

    Parameters
    ----------
    rank_left, rank_right
        Ranks of the left and the right question of every pair, shape (pairs,); 1 is the best.
    judgements
        Shape (experts, pairs): 1 where the expert finds the left question better, 2 the right,
        NaN where there is no judgement, which then does not count for that expert.

    Returns
    -------
    agreement : array of float64, shape (experts,)
        From 0 to 1; NaN for an expert without a judgement.
    n_judged : array of int64, shape (experts,)
        Number of pairs that each expert judged.
    """
    judged = ~np.isnan(judgements)
    agrees = np.where(rank_left < rank_right, 1, 2) == judgements
    n_judged = judged.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return agrees.sum(axis=1) / n_judged, n_judged


def random_best_agreement(
    left: IntArray,
    right: IntArray,
    judgements: npt.NDArray[np.floating[Any]],
    *,
    n_rankings: int = 10_000,
    seed: int = 0,
) -> FloatArray:
    """Score random rankings of the judged questions, the floor to compare a score of task 3 with.

    Parameters
    ----------
    left, right
        QuestionIds of every pair, shape (pairs,).
    judgements
        As in `expert_agreement`.
    n_rankings
        How many random rankings to score.
    seed
        Seed of the random rankings.

    Returns
    -------
    array of float64, shape (n_rankings,)
        Best expert's agreement of each random ranking.
    """
    questions, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    keys = np.random.default_rng(seed).random((n_rankings, len(questions)))
    side = np.where(keys[:, place[: len(left)]] < keys[:, place[len(left) :]], 1, 2)
    judged = (~np.isnan(judgements)).sum(axis=1)
    agreement = [(side == expert).sum(axis=1) for expert in judgements] / judged[:, None]
    return np.asarray(np.nanmax(agreement, axis=0))
