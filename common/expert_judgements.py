"""Expert judgements of pairs of questions, and how often a ranking agrees with them."""

from dataclasses import dataclass
from pathlib import Path

from common import io, metrics, schema
from common.errors import InputError

import numpy as np


@dataclass(frozen=True)
class Judgements:
    """What experts say about pairs of questions.

    Attributes
    ----------
    name
        Name of the file in messages.
    left, right
        QuestionIds of every pair, int32, shape (pairs,).
    better
        1 the left question is better, 2 the right, NaN no judgement; shape (experts, pairs).
    """

    name: str
    left: io.IntArray
    right: io.IntArray
    better: metrics.FloatArray


def read_judgements(path: Path) -> Judgements:
    """Read expert judgements.

    Parameters
    ----------
    path
        CSV with left, right, and a column for each expert.

    Raises
    ------
    InputError
        If the file is not as expected or holds no judgement at all.
    """
    experts = [schema.expert_judgement(name) for name in schema.EXPERT_NAMES]
    data = io.read_columns(path, [schema.LEFT, schema.RIGHT, *experts])
    better = np.stack([data[expert.name] for expert in experts]).astype(np.float64)
    if np.isnan(better).all():
        raise InputError(f"{path}: holds no judgement in {', '.join(schema.EXPERT_NAMES)}")
    return Judgements(str(path), data["left"], data["right"], better)


def rank_pairs(
    judgements: Judgements, question: io.IntArray, ranking: io.IntArray
) -> tuple[io.IntArray, io.IntArray]:
    """Look up the ranks of the judged questions, by their ids.

    Parameters
    ----------
    judgements
        The pairs.
    question, ranking
        QuestionIds and their ranks, in any order.

    Returns
    -------
    rank_left, rank_right : arrays of int64, shape (pairs,)

    Raises
    ------
    InputError
        If a judged question has no rank.
    """
    rank = dict(zip(question.tolist(), ranking.tolist(), strict=True))
    unranked = sorted({*judgements.left.tolist(), *judgements.right.tolist()} - rank.keys())
    if unranked:
        raise InputError(
            f"{judgements.name}: QuestionId {unranked[0]} is judged, but it is not in the "
            f"ranking of {len(rank)} questions: the two belong to different data"
        )
    left, right = (
        np.array([rank[q] for q in side.tolist()]) for side in (judgements.left, judgements.right)
    )
    return left, right


@dataclass(frozen=True)
class Agreement:
    """Share of pairs on which a ranking agrees with an expert, or with several.

    Attributes
    ----------
    name
        Who judged.
    share, low, high
        The share and the ends of its 95 % interval.
    n_judged
        Number of pairs; 0 for an expert without a judgement, None for a summary of several experts.
    others
        Mean share on which the other experts agree with this one; for the mean, on which any two
        agree; None for the best.
    """

    name: str
    share: float
    low: float
    high: float
    n_judged: int | None = None
    others: float | None = None


@dataclass(frozen=True)
class Comparison:
    """How often a ranking agrees with the experts, one by one and summarised.

    Attributes
    ----------
    experts
        One for each expert.
    mean, best
        Mean over the experts, and the best expert.
    """

    experts: list[Agreement]
    mean: Agreement
    best: Agreement


def compare_with_experts(
    judgements: Judgements, rank_left: io.IntArray, rank_right: io.IntArray
) -> Comparison:
    """Compute all figures of a ranking.

    The intervals of the experts are exact binomial ones; those of their mean and their best come
    from resampling the pairs 10,000 times. The best of several experts in a sample is more often a
    lucky one than an unlucky one: the interval of the best lies too high, if anything.

    Parameters
    ----------
    judgements
        Of the experts.
    rank_left, rank_right
        From `rank_pairs`.
    """
    agrees = metrics.pair_agreement(rank_left, rank_right, judgements.better)
    share, n_judged = metrics.expert_agreement(rank_left, rank_right, judgements.better)
    concordance, _ = metrics.expert_concordance(judgements.better)
    experts = []
    for name, row, n, others in zip(
        schema.EXPERT_NAMES, agrees, n_judged.tolist(), concordance, strict=True
    ):
        low, high = metrics.binomial_interval(int(np.nansum(row)), n) if n else (np.nan, np.nan)
        experts.append(
            Agreement(name, np.nansum(row) / max(n, 1), low, high, n, mean_if_any(others))
        )
    # Without experts and pairs that have no judgement at all, every draw holds some.
    judged = ~np.isnan(agrees)
    drawn = metrics.bootstrap_agreement(agrees[judged.any(axis=1)][:, judged.any(axis=0)])
    low, high = np.nanpercentile(np.nanmean(drawn, axis=1), (2.5, 97.5))
    mean = Agreement(
        "mean", float(np.nanmean(share)), low, high, others=mean_if_any(concordance.ravel())
    )
    low, high = np.nanpercentile(np.nanmax(drawn, axis=1), (2.5, 97.5))
    return Comparison(experts, mean, Agreement("best", float(np.nanmax(share)), low, high))


def mean_if_any(shares: metrics.FloatArray) -> float | None:
    """Return the mean of the shares that are not NaN; None if all are."""
    known = shares[~np.isnan(shares)]
    return float(known.mean()) if len(known) else None
