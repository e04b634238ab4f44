"""The challenge's metrics, and the intervals and baselines needed to interpret them."""

from __future__ import annotations

from dataclasses import dataclass

from common.arrays import Array, FloatArray, IntArray

import numpy as np
import numpy.typing as npt
import pandas as pd


def accuracy(truth: Array, prediction: Array) -> float:
    """Share of predictions that equal the truth (tasks 1, 2 and 4), arrays of one shape."""
    if truth.shape != prediction.shape:
        raise ValueError(f"truth has shape {truth.shape}, prediction {prediction.shape}")
    if truth.size == 0:
        raise ValueError("there are no predictions to score")
    return float(np.mean(truth == prediction))


def confusion_matrix(
    truth: IntArray, prediction: IntArray, categories: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Count every combination of true (row) and predicted category (column), given increasing."""
    n = len(categories)
    cells = np.searchsorted(categories, truth) * n + np.searchsorted(categories, prediction)
    return np.bincount(cells, minlength=n * n).reshape(n, n)


def normalise_rows(counts: npt.NDArray[np.int64]) -> FloatArray:
    """Divide every row by its own sum; all 0 where there was nothing to count."""
    totals = counts.sum(axis=1, keepdims=True)
    return np.asarray(counts / np.maximum(totals, 1))


# ---- Probabilities -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProbabilityScores:
    """How good predicted probabilities are, beyond the accuracy of the predictions."""

    # Mean negative logarithm (nats) of the probability of what happened; 0 is best.
    log_loss: float
    # Mean squared distance (Brier 1950): of two categories that of one, 0 to 1; else the sum.
    brier: float
    # Area under the ROC curve; None for more than two categories, or if one never happened.
    auc: float | None
    # Expected calibration error (Guo et al. 2017): mean distance of the bins from the diagonal.
    calibration_error: float
    # For `charts.share_chart`: in ten bins of equal width how often it happened and the mean
    # probability, NaN if empty; of two categories for the second, else for the most probable.
    bins: pd.DataFrame
    # How many predictions are not the most probable value.
    n_other: int


_N_BINS = 10


def score_probabilities(
    truth: IntArray, probability: FloatArray, predicted: IntArray | None = None
) -> ProbabilityScores:
    """Score probabilities, (answers, categories); truth and prediction are categories from 0."""
    # scikit-learn takes a second to import, and only this function needs it.
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    n_categories, n_other = probability.shape[1], 0
    if predicted is not None:
        own = probability[np.arange(len(predicted)), predicted]
        n_other = int((own < probability.max(axis=1)).sum())
    p = probability / probability.sum(axis=1, keepdims=True, dtype=np.float64)
    if n_categories == 2:
        believed, happened = p[:, 1], truth == 1
    else:
        believed, happened = p.max(axis=1), truth == p.argmax(axis=1)
    both_happened = n_categories == 2 and 0 < happened.sum() < len(happened)
    place = np.minimum((believed * _N_BINS).astype(np.int64), _N_BINS - 1)
    counts = np.bincount(place, minlength=_N_BINS)
    filled = np.where(counts, counts, np.nan)
    mean, share = (np.bincount(place, own, _N_BINS) / filled for own in (believed, happened))
    bins = {"accuracy": share, "majority": mean, "share": counts / len(p), "n_answers": counts}
    return ProbabilityScores(
        log_loss=float(log_loss(truth, p, labels=range(n_categories))),
        brier=float(brier_score_loss(truth, p, labels=range(n_categories))),
        auc=float(roc_auc_score(happened, believed)) if both_happened else None,
        calibration_error=float(np.nansum(np.abs(mean - share) * counts) / len(p)),
        bins=pd.DataFrame(bins),
        n_other=n_other,
    )


# ---- Intervals -----------------------------------------------------------------------------------


def clustered_standard_error(right: Array, cluster: IntArray) -> float:
    """Return a share's standard error by clusters from 0 (Liang and Zeger 1986); NaN for one."""
    deviation = np.bincount(cluster, right - np.mean(right))
    n_clusters = int((np.bincount(cluster) > 0).sum())
    if n_clusters < 2:
        return float("nan")
    variance = (deviation**2).sum() * n_clusters / (n_clusters - 1)
    return float(np.sqrt(variance) / len(right))


def binomial_interval(successes: IntArray, n: IntArray) -> tuple[FloatArray, FloatArray]:
    """Exact 95 % intervals for shares (Clopper & Pearson 1934); 0 of 0 gives the whole range."""
    # SciPy doubles the time that a script takes to start, and only this function needs it.
    from scipy.special import betaincinv

    low = np.where(successes > 0, betaincinv(successes, n - successes + 1, 0.025), 0.0)
    high = np.where(successes < n, betaincinv(successes + 1, n - successes, 0.975), 1.0)
    return low, high


# ---- Expert judgements (task 3) ------------------------------------------------------------------

# Judgements: a row for each pair of QuestionIds, its index, and a column for each expert: 1 if the
# first is better, 2 the second, NaN where there is none, any other number for disagreement.

# Samples of the pairs, or random rankings.
_N_DRAWS = 10_000


def expert_concordance(judgements: pd.DataFrame) -> FloatArray:
    """Share of the pairs that two experts judged on which they agree, shape (experts, experts)."""
    left, right = ((judgements == side).to_numpy(np.int64) for side in (1, 2))
    n = (left + right).T @ (left + right)
    concordance = (left.T @ left + right.T @ right) / np.where(n, n, np.nan)
    np.fill_diagonal(concordance, np.nan)
    return np.asarray(concordance)


def bootstrap_agreement(agrees: pd.DataFrame) -> FloatArray:
    """Return every expert's agreement in samples of the pairs (Efron 1979), (samples, experts)."""
    n_pairs = len(agrees)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), size=_N_DRAWS)
    n_judged = drawn @ agrees.notna().to_numpy()
    return np.asarray(drawn @ agrees.fillna(0).to_numpy() / np.where(n_judged, n_judged, np.nan))


def random_best_agreement(judgements: pd.DataFrame) -> FloatArray:
    """Return the agreement of random rankings with their best expert: the floor of task 3."""
    given = judgements.dropna(axis=1, how="all").to_numpy()
    questions, place = np.unique(np.array([*judgements.index]).T, return_inverse=True)
    keys = np.random.default_rng(0).random((_N_DRAWS, len(questions)))
    left, right = place.reshape(2, -1)
    side = np.where(keys[:, left] < keys[:, right], 1, 2)
    judged = (~np.isnan(given)).sum(axis=0)
    agreement = [(side == expert).sum(axis=1) for expert in given.T] / judged[:, None]
    return np.asarray(np.max(agreement, axis=0))
