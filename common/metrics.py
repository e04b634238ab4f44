"""The challenge's metrics, and the intervals and baselines needed to interpret them."""

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
    """Divide every row by its own sum: the shares of each true category by predicted category.

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
    agrees = pair_agreement(rank_left, rank_right, judgements)
    n_judged = (~np.isnan(agrees)).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.nansum(agrees, axis=1) / n_judged, n_judged


def pair_agreement(
    rank_left: IntArray, rank_right: IntArray, judgements: npt.NDArray[np.floating[Any]]
) -> FloatArray:
    """Return for every judgement whether a ranking agrees with it.

    Parameters
    ----------
    rank_left, rank_right, judgements
        As in `expert_agreement`.

    Returns
    -------
    array of float64, shape (experts, pairs)
        1 agrees, 0 disagrees, NaN no judgement.
    """
    side = np.where(rank_left < rank_right, 1, 2)
    return np.where(np.isnan(judgements), np.nan, side == judgements)


def expert_concordance(
    judgements: npt.NDArray[np.floating[Any]],
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Share of pairs on which every two experts agree: a ranking can hardly agree more.

    Parameters
    ----------
    judgements
        As in `expert_agreement`.

    Returns
    -------
    concordance : array of float64, shape (experts, experts)
        From 0 to 1; NaN for an expert with themselves, or without a pair that both judged.
    n_judged : array of int64, shape (experts, experts)
        Number of pairs that both judged.
    """
    left = (judgements == 1).astype(np.int64)
    right = (judgements == 2).astype(np.int64)
    n_judged = (left + right) @ (left + right).T
    same = left @ left.T + right @ right.T
    with np.errstate(invalid="ignore"):
        concordance = same / n_judged
    np.fill_diagonal(concordance, np.nan)
    return concordance, n_judged


def binomial_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact interval for a share (Clopper & Pearson 1934).

    Parameters
    ----------
    successes, n
        How many of how many; 0 of 0 gives the whole range.
    level
        Confidence level, between 0 and 1.

    Returns
    -------
    low, high : float
        From 0 to 1.
    """
    # SciPy doubles the time that a script takes to start, and only this function needs it.
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = betaincinv(successes, n - successes + 1, tail) if successes else 0.0
    high = betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return float(low), float(high)


def bootstrap_agreement(
    agrees: FloatArray, *, n_samples: int = 10_000, seed: int = 0
) -> FloatArray:
    """Resample the pairs, and return every expert's agreement in each draw.

    Pairs are drawn with replacement, as many as there are (Efron 1979); a pair brings the
    judgements of all experts along.

    Parameters
    ----------
    agrees
        From `pair_agreement`, shape (experts, pairs).
    n_samples
        How many draws.
    seed
        Seed of the draws.

    Returns
    -------
    array of float64, shape (n_samples, experts)
        NaN where a draw holds no judgement of an expert.
    """
    n_pairs = agrees.shape[1]
    drawn = np.random.default_rng(seed).multinomial(
        n_pairs, np.full(n_pairs, 1 / n_pairs), size=n_samples
    )
    n_judged = drawn @ (~np.isnan(agrees)).T
    with np.errstate(invalid="ignore"):
        return np.asarray(drawn @ np.nan_to_num(agrees).T / n_judged)


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
    judgements = judgements[~np.isnan(judgements).all(axis=1)]
    questions, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    keys = np.random.default_rng(seed).random((n_rankings, len(questions)))
    side = np.where(keys[:, place[: len(left)]] < keys[:, place[len(left) :]], 1, 2)
    judged = (~np.isnan(judgements)).sum(axis=1)
    agreement = [(side == expert).sum(axis=1) for expert in judgements] / judged[:, None]
    return np.asarray(np.max(agreement, axis=0))
