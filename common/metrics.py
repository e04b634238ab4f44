"""The challenge's metrics, and the intervals and baselines needed to interpret them.

Every metric is computed by one function here, for evaluations, hosting and tools alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.answers import number_ids
from common.arrays import Array, BoolArray, FloatArray, IntArray

import numpy as np
import numpy.typing as npt
import pandas as pd

# A score of the answers of fewer students than this is shown without a standard error.
_FEW_STUDENTS = 10


@dataclass(frozen=True)
class Score:
    """The value of a metric, its standard error, and the number of cases that it rests on."""

    value: float
    # Standard error; None if it is not known.
    error: float | None = None
    # Number of cases: answers (tasks 1 and 2), pairs of questions (task 3), or targets, the answers
    # to be predicted (task 4). None if it is not known.
    n: int | None = None
    # Number of students whose answers are scored; None if it is not known.
    n_students: int | None = None

    @property
    def has_few_students(self) -> bool:
        """Whether so few students are scored that a standard error says little."""
        return self.n_students is not None and self.n_students < _FEW_STUDENTS


# ---- Accuracy (tasks 1, 2 and 4) -----------------------------------------------------------------


def accuracy(truth: Array, prediction: Array, student: IntArray | None = None) -> Score:
    """Return the share of predictions that equal the truth.

    Parameters
    ----------
    truth, prediction : array, the same shape
        Values of any type that can be compared.
    student : array of int, the same shape, optional
        The UserId of each answer. With `student`, the score has a standard error that stays right
        although answers of the same student are correlated (see `clustered_standard_error`). For
        the answers of a single student, the standard error is None.

    Raises
    ------
    ValueError
        If the shapes differ, or there is nothing to score.
    """
    if truth.shape != prediction.shape:
        raise ValueError(f"truth has shape {truth.shape}, prediction {prediction.shape}")
    if truth.size == 0:
        raise ValueError("there are no predictions to score")
    is_right = truth == prediction
    value = float(share_right(np.count_nonzero(is_right), is_right.size))
    if student is None:
        return Score(value, n=is_right.size)
    students, student_number = number_ids(student)
    error = _standard_error_of_clusters(is_right, student_number, len(students))
    return Score(value, None if np.isnan(error) else error, is_right.size, len(students))


def share_right(n_right: npt.ArrayLike, n: npt.ArrayLike) -> FloatArray:
    """Return n_right / n for counts of any shape; NaN where n is 0."""
    counts = np.asarray(n)
    return np.asarray(n_right / np.where(counts > 0, counts, np.nan))


def combine_parts(shares: npt.ArrayLike, *, takes_best: bool) -> FloatArray:
    """Return the score of a task from the shares of its parts.

    Parameters
    ----------
    shares : array, shape (..., parts)
        Accuracy with each mask (task 4) or agreement with each expert (task 3); tasks 1 and 2 have
        one part. A part without answers is NaN and does not count.
    takes_best
        If True (task 3), the score is the highest share; otherwise it is the mean of the shares.

    Returns
    -------
    array, shape (...)
    """
    summary = np.nanmax if takes_best else np.nanmean
    return np.asarray(summary(np.asarray(shares), axis=-1))


def confusion_matrix(
    truth: IntArray, prediction: IntArray, categories: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Count every combination of a true category (row) and a predicted category (column).

    `categories` are in increasing order and hold every value of the two arrays.
    """
    n = len(categories)
    row = np.searchsorted(categories, truth)
    column = np.searchsorted(categories, prediction)
    return np.bincount(row * n + column, minlength=n * n).reshape(n, n)


def normalise_rows(counts: npt.NDArray[np.int64]) -> FloatArray:
    """Divide every row by its sum; a row of zeros stays as it is."""
    totals = counts.sum(axis=1, keepdims=True)
    return np.asarray(counts / np.maximum(totals, 1))


# ---- Probabilities -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProbabilityScores:
    """How good predicted probabilities are, beyond the accuracy of the predictions."""

    # Mean of −log P(true category), in nats; 0 is best.
    log_loss: float
    # Mean squared difference between probability and outcome (Brier 1950). With two categories, the
    # squared difference of a single category counts, and the score is from 0 to 1. With more
    # categories, the squared differences of all categories are added up, so the score is at most 2.
    brier: float
    # Area under the ROC curve. None if there are more than two categories, or if all answers belong
    # to one category.
    auc: float | None
    # Expected calibration error (Guo et al. 2017), see `calibration_error`; 0 is best.
    calibration_error: float
    # How often events of similar probability happen: the table of `calibration_bins`.
    bins: pd.DataFrame
    # Number of answers for which another category is more probable than the predicted one.
    n_not_most_probable: int


_N_BINS = 10
# The log loss clips probabilities to the range from this number to 1 minus this number.
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


def score_probabilities(
    truth: IntArray, probability: FloatArray, predicted: IntArray | None = None
) -> ProbabilityScores:
    """Score probabilities of categories.

    Parameters
    ----------
    truth : array of int, shape (answers,)
        The category that happened, from 0.
    probability : array, shape (answers, categories)
        Probabilities or positive weights. The function divides every row by its sum.
    predicted : array of int, shape (answers,), optional
        The category that was predicted, from 0. If it is given, predictions that are not the most
        probable category are counted.
    """
    if truth.min() < 0:
        raise ValueError(f"truth holds {truth.min()}, expected categories from 0")
    n_not_most_probable = 0
    if predicted is not None:
        p_predicted = probability[np.arange(len(predicted)), predicted]
        n_not_most_probable = int((p_predicted < probability.max(axis=1)).sum())
    p = probability / probability.sum(axis=1, keepdims=True, dtype=np.float64)
    n_categories = p.shape[1]
    # Calibration compares the probabilities of events with how often they happen. With two
    # categories, the event is that the second one happens; with more, that the most probable one
    # happens.
    if n_categories == 2:
        event_probability = p[:, 1]
        happened = truth == 1
    else:
        event_probability = p.max(axis=1)
        happened = truth == p.argmax(axis=1)
    auc = None
    if n_categories == 2 and 0 < happened.sum() < len(happened):
        auc = area_under_roc_curve(happened, event_probability)
    bins = calibration_bins(event_probability, happened)
    # Clip the probabilities, as scikit-learn does, so that the logarithm of 0 is finite.
    p_true = p[np.arange(len(truth)), truth].clip(_SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
    # The distance from a vector with 1 for the true category, and 0 for all other categories.
    squared_distance = ((p - np.eye(n_categories)[truth]) ** 2).sum(axis=1)
    if n_categories == 2:
        squared_distance /= 2
    return ProbabilityScores(
        log_loss=float(-np.log(p_true).mean()),
        brier=float(squared_distance.mean()),
        auc=auc,
        calibration_error=calibration_error(bins),
        bins=bins,
        n_not_most_probable=n_not_most_probable,
    )


def area_under_roc_curve(happened: BoolArray, event_probability: FloatArray) -> float:
    """Return the share of pairs in which the event that happened has the larger probability.

    A pair is an event that happened and an event that did not. A pair with equal probabilities
    counts half. scikit-learn has this score too, but takes two seconds to import.
    """
    distinct, index = np.unique(event_probability, return_inverse=True)
    # Count, for each distinct probability in increasing order, the events that happened and the
    # events that did not.
    n_happened = np.bincount(index, happened, len(distinct))
    n_not = np.bincount(index, ~happened, len(distinct))
    # For each distinct probability, how many events with a smaller probability did not happen.
    n_not_below = np.cumsum(n_not) - n_not
    # The number of pairs in which the event that happened has the larger probability; a pair with
    # equal probabilities counts half.
    n_pairs_won = (n_happened * (n_not_below + n_not / 2)).sum()
    return float(n_pairs_won / (n_happened.sum() * n_not.sum()))


def calibration_bins(event_probability: FloatArray, happened: BoolArray) -> pd.DataFrame:
    """Group events by their probability, in ten bins of equal width.

    Parameters
    ----------
    event_probability : array, shape (events,)
        Probability of each event. With two categories, the event is that the second one happens;
        with more, that the most probable one happens.
    happened : array of bool, shape (events,)
        Whether the event happened.

    Returns
    -------
    DataFrame
        A row for each bin: share_happened and mean_probability (NaN for an empty bin), share of all
        events, and n_answers.
    """
    # The probability 1 belongs to the last bin.
    bin_index = np.minimum((event_probability * _N_BINS).astype(np.int64), _N_BINS - 1)
    n = np.bincount(bin_index, minlength=_N_BINS)
    # Divide by NaN instead of 0, so that figures of empty bins are NaN.
    n_or_nan = np.where(n > 0, n, np.nan)
    return pd.DataFrame(
        {
            "share_happened": np.bincount(bin_index, happened, _N_BINS) / n_or_nan,
            "mean_probability": np.bincount(bin_index, event_probability, _N_BINS) / n_or_nan,
            "share": n / len(event_probability),
            "n_answers": n,
        }
    )


def calibration_error(bins: pd.DataFrame) -> float:
    """Return the mean over the bins of |mean probability − share of events that happened|.

    Bins are weighted by their numbers of answers.
    """
    n = bins["n_answers"].to_numpy()
    distance = (bins["mean_probability"] - bins["share_happened"]).abs().to_numpy()
    return float(np.nansum(distance * n) / n.sum())


# ---- Intervals -----------------------------------------------------------------------------------


def clustered_standard_error(right: Array, cluster: IntArray) -> float:
    """Return the standard error of a share of right answers, if answers are correlated.

    The answers of one student are correlated: they form a cluster. The formula is that of Liang and
    Zeger (1986).

    Parameters
    ----------
    right : array, shape (answers,)
        1 for each answer that is right, 0 for the others. The share is the mean of this array.
    cluster : array of int, shape (answers,)
        Id of the cluster (the student) of each answer, at least 0.

    Returns
    -------
    float
        NaN for a single cluster.
    """
    clusters, number = number_ids(cluster)
    return _standard_error_of_clusters(right, number, len(clusters))


def _standard_error_of_clusters(right: Array, number: IntArray, n_clusters: int) -> float:
    """Return the standard error of a share, as `clustered_standard_error` does.

    `number` holds the cluster of each answer, from 0 to `n_clusters` - 1. These numbers replace the
    ids of the clusters, since ids may be large, and `bincount` makes an element for every number up
    to the largest one.
    """
    if n_clusters < 2:
        return float("nan")
    # For each cluster, the number of right answers minus the number expected from the share.
    deviation = np.bincount(number, right - np.mean(right))
    variance = (deviation**2).sum() * n_clusters / (n_clusters - 1)
    return float(np.sqrt(variance) / len(right))


def binomial_standard_error(share: float, n: int) -> float:
    """Return the standard error of a share of `n` independent trials."""
    return float((share * (1 - share) / n) ** 0.5)


def binomial_interval(successes: IntArray, n: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return exact 95 % intervals of shares (Clopper and Pearson 1934): low and high ends.

    Where `n` is 0, the interval is 0 to 1.
    """
    # SciPy doubles the time that a script takes to start, and few functions need it.
    from scipy.special import betaincinv

    low = np.where(successes > 0, betaincinv(successes, n - successes + 1, 0.025), 0.0)
    high = np.where(successes < n, betaincinv(successes + 1, n - successes, 0.975), 1.0)
    return low, high


# ---- Expert judgements (task 3) ------------------------------------------------------------------

# Judgements are a DataFrame with a row for each pair of QuestionIds (its index) and a column for
# each expert: 1 if the first question is better, 2 if the second is, NaN without a judgement. Any
# other number counts as disagreement with every ranking, but as no judgement when experts are
# compared with one another.

# Number of bootstrap samples (`bootstrap_agreement`), and of random rankings
# (`random_best_agreement`).
_N_DRAWS = 10_000


def best_agreement(agrees: pd.DataFrame) -> Score:
    """Return the score of task 3: the agreement of a ranking with its best expert.

    `agrees` has a row for each pair and a column for each expert: 1 if the ranking agrees with the
    expert, 0 if not, NaN if the expert has not judged the pair. The score has no standard error,
    since there is no simple formula for the best of several shares; see `bootstrap_agreement`.
    """
    best = combine_parts(agrees.mean().to_numpy(), takes_best=True)
    return Score(float(best), None, len(agrees))


def expert_concordance(judgements: pd.DataFrame) -> FloatArray:
    """Return how often every two experts agree, as a share of the pairs that both have judged.

    The shape is (experts, experts). A value is NaN on the diagonal, and for two experts who have
    judged no common pair. `judgements` has a row for each pair of questions and a column for each
    expert: 1 if the first question is better, 2 if the second is, NaN without a judgement.
    """
    prefers_left = (judgements == 1).to_numpy(np.int64)
    prefers_right = (judgements == 2).to_numpy(np.int64)
    is_judged = prefers_left + prefers_right
    # The three arrays have a row for each pair and a column for each expert, and hold 1 or 0. So
    # element (i, j) of a product counts the pairs for which both experts i and j have a 1.
    n_both_judged = is_judged.T @ is_judged
    n_agree = prefers_left.T @ prefers_left + prefers_right.T @ prefers_right
    concordance = share_right(n_agree, n_both_judged)
    np.fill_diagonal(concordance, np.nan)
    return concordance


def bootstrap_agreement(agrees: pd.DataFrame) -> FloatArray:
    """Return the ranking's agreement with each expert in bootstrap samples of the pairs.

    The shape is (samples, experts). The bootstrap is that of Efron (1979).
    """
    n_pairs = len(agrees)
    rng = np.random.default_rng(0)
    # The number of times that each pair is drawn in each sample, shape (samples, pairs).
    n_drawn = rng.multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), size=_N_DRAWS)
    n_agree = n_drawn @ agrees.fillna(0).to_numpy()
    return share_right(n_agree, n_drawn @ agrees.notna().to_numpy())


def random_best_agreement(judgements: pd.DataFrame) -> FloatArray:
    """Return the scores that random rankings reach in task 3, shape (rankings,).

    The scores show what a ranking reaches by chance. The score of a ranking is its agreement with
    the expert with whom the ranking agrees most.

    The index of `judgements` holds pairs of QuestionIds. Each column holds the judgements of an
    expert: 1 if the first question is better, 2 if the second is, NaN without a judgement.
    """
    judged = judgements.dropna(axis=1, how="all").to_numpy()
    # The QuestionIds of each pair, shape (pairs, 2).
    ids = np.array([*judgements.index])
    # Number the distinct questions from 0, and find the two numbers of each pair.
    questions, number = np.unique(ids, return_inverse=True)
    number_of_pair = number.reshape(-1, 2)
    first = number_of_pair[:, 0]
    second = number_of_pair[:, 1]
    # Draw the random rankings: each gives every question a random key, and puts questions with
    # small keys first. `keys` has a row for each ranking and a column for each question.
    keys = np.random.default_rng(0).random((_N_DRAWS, len(questions)))
    # The question of each pair that a ranking puts first, 1 or 2, shape (rankings, pairs).
    preferred = np.where(keys[:, first] < keys[:, second], 1, 2)
    n_judged = (~np.isnan(judged)).sum(axis=0)
    # How many judgements of each expert agree with each ranking, shape (experts, rankings). A
    # missing judgement is NaN, which equals neither 1 nor 2.
    n_agree = np.array([(preferred == expert).sum(axis=1) for expert in judged.T])
    agreement = share_right(n_agree, n_judged[:, None])
    # The score of a ranking is its agreement with the expert who agrees most.
    return combine_parts(agreement.T, takes_best=True)
