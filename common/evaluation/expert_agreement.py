"""Task 3: how far experts agree with one another, and what their judgements say of two rankings.

Judgements are a DataFrame as `ranking.read_judgements` returns it: a row for each pair of
questions, and a column for each expert with 1 if the left question is better, 2 if the right one
is, and NaN without a judgement.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, sqrt

from common import metrics

import numpy as np
import numpy.typing as npt
import pandas as pd

# Quantiles of the standard normal distribution: for a two-sided test at 5 %, and for a power of
# 80 %.
_Z_TEST = 1.9600
_Z_POWER = 0.8416
# With fewer judgements, the exact two-sided sign test never reaches 5 %: if 5 of 5 prefer the same
# ranking, p is 2 / 2**5 = 0.06.
_MIN_JUDGED = 6


# ---- Experts with one another --------------------------------------------------------------------


@dataclass(frozen=True)
class ExpertPair:
    """How far two experts agree on the pairs of questions that both have judged."""

    first: str
    second: str
    n_pairs: int
    # Share of the common pairs on which the experts agree, with the ends of its 95 % interval. NaN
    # if the experts have no common pair.
    agreement: float
    agreement_low: float
    agreement_high: float
    # Cohen's kappa, with the ends of its 95 % interval. NaN if the experts have no common pair.
    # Also NaN if both experts always give the same judgement: kappa is then 0 / 0.
    kappa: float
    kappa_low: float
    kappa_high: float


def compare_experts(judgements: pd.DataFrame) -> list[ExpertPair]:
    """Compare each pair of experts, in the order of the columns of `judgements`."""
    compared = []
    for first, second in combinations(judgements, 2):
        by_first = judgements[first]
        by_second = judgements[second]
        compared.append(compare_two(str(first), str(second), by_first, by_second))
    return compared


def compare_two(first: str, second: str, by_first: pd.Series, by_second: pd.Series) -> ExpertPair:
    """Compare the judgements of two experts.

    `first` and `second` are the names of the experts. `by_first` and `by_second` are their
    judgements of the same pairs of questions, in the same order.

    Notes
    -----
    Kappa is (a - c) / (1 - c), where a is the agreement, and c the agreement that is expected by
    chance from how often each expert prefers the left question (Cohen 1960, "A coefficient of
    agreement for nominal scales"). The interval of a is exact (Clopper and Pearson). The formula,
    with c held fixed, turns the ends of this interval into the ends of the interval of kappa. So
    the interval of kappa has a width above 0 even if the experts agree on all pairs.
    """
    both = by_first.isin([1, 2]) & by_second.isin([1, 2])
    first_prefers_left = by_first[both].to_numpy() == 1
    second_prefers_left = by_second[both].to_numpy() == 1
    n_pairs = len(first_prefers_left)
    if n_pairs == 0:
        # Six numbers are not defined: agreement, kappa, and the two ends of the interval of each.
        return ExpertPair(first, second, 0, *[np.nan] * 6)
    n_agree = int((first_prefers_left == second_prefers_left).sum())
    low, high = metrics.binomial_interval(np.array(n_agree), np.array(n_pairs))
    # The agreement, then the two ends of its interval. `kappa` below holds kappa, then the two ends
    # of its interval.
    agreement = np.array([n_agree / n_pairs, float(low), float(high)])
    first_share = first_prefers_left.mean()
    second_share = second_prefers_left.mean()
    by_chance = first_share * second_share + (1 - first_share) * (1 - second_share)
    if by_chance == 1:
        # Kappa and the ends of its interval would be 0 / 0.
        return ExpertPair(first, second, n_pairs, *agreement.tolist(), *[np.nan] * 3)
    kappa = (agreement - by_chance) / (1 - by_chance)
    return ExpertPair(first, second, n_pairs, *agreement.tolist(), *kappa.tolist())


# ---- Two rankings --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contest:
    """How experts decide between two rankings, on the pairs on which the rankings disagree."""

    # Number of judged pairs of questions on which the rankings disagree.
    n_pairs: int
    # Number of these pairs on which more experts agree with the first ranking than with the second.
    n_first: int
    # Number of these pairs on which more experts agree with the second ranking than with the first.
    # If as many experts agree with the first as with the second, the pair counts for neither.
    n_second: int
    # n_first / (n_first + n_second), with the ends of the 95 % interval.
    share: float
    low: float
    high: float
    # How many further judged pairs would make the difference between the rankings significant. 0 if
    # it is significant already; None if the share is exactly one half or not defined.
    n_further: int | None

    @property
    def verdict(self) -> str:
        """Say whether the judgements tell the rankings apart, or how many more pairs are needed."""
        if self.n_pairs == 0:
            return "not told apart: they agree on every pair that is judged"
        if self.n_further is None:
            return "not told apart: as many pairs speak for the one as for the other"
        if self.n_further == 0:
            return "told apart"
        if self.n_further == 1:
            return "not told apart: about one more such pair is needed"
        return f"not told apart: about {self.n_further:,} more such pairs are needed"


def contest(agrees_first: pd.DataFrame, agrees_second: pd.DataFrame) -> Contest:
    """Compare two rankings by the judgements of the pairs on which they disagree.

    The judgements that several experts make of the same pair of questions are not independent. So
    each pair counts once: for the ranking with which more of the experts agree. `Contest` says how
    many pairs count for each ranking, and how many further pairs would decide between them.

    Parameters
    ----------
    agrees_first, agrees_second
        Whether each ranking agrees with each judgement, from `ranking.agreement`: 1, 0, or NaN if
        the judgement does not count. A row is a pair of questions, a column an expert.
    """
    # For each judgement: 1 if only the first ranking agrees with it, -1 if only the second does,
    # and 0 if the rankings do not differ or the judgement does not count.
    difference = (agrees_first - agrees_second).fillna(0).to_numpy()
    # The rankings disagree on a pair if they differ in any of its judgements.
    is_contested = (difference != 0).any(axis=1)
    # For each pair, the number of experts who agree only with the first ranking, minus the number
    # of experts who agree only with the second.
    balance = difference.sum(axis=1)
    n_first = int((balance > 0).sum())
    n_second = int((balance < 0).sum())
    n = n_first + n_second
    low, high = metrics.binomial_interval(np.array(n_first), np.array(n))
    return Contest(
        n_pairs=int(is_contested.sum()),
        n_first=n_first,
        n_second=n_second,
        share=n_first / n if n else np.nan,
        low=float(low),
        high=float(high),
        n_further=count_further(n_first, n),
    )


def count_further(n_first: int, n: int) -> int | None:
    """Return how many further pairs would make the difference of two rankings significant.

    A ranking wins a pair of questions if more experts agree with it than with the other ranking.
    The difference is significant if a sign test finds that one ranking wins more pairs. In the
    further pairs, the first ranking is assumed to win as large a share as in the pairs so far.

    Parameters
    ----------
    n_first
        Number of pairs that the first ranking wins.
    n
        Number of pairs that the first or the second ranking wins.

    Returns
    -------
    int or None
        0 if the exact sign test of these pairs is significant at 5 % already. None if the share is
        one half, or `n` is 0.

    Notes
    -----
    The sample size is that of a test of one share against one half, at 5 % (two-sided) and with a
    power of 80 % (Fleiss, Levin and Paik 2003, "Statistical methods for rates and proportions",
    section 2.5), and at least as large as the exact test needs.
    """
    if n == 0 or 2 * n_first == n:
        return None
    if sign_test(n_first, n) <= 0.05:
        return 0
    share = n_first / n
    spread = _Z_TEST * 0.5 + _Z_POWER * sqrt(share * (1 - share))
    n_needed = max(_MIN_JUDGED, ceil((spread / (share - 0.5)) ** 2))
    # The sign test above is not significant with `n` pairs, so at least one further pair is needed.
    return max(n_needed - n, 1)


def sign_test(n_first: int, n: int) -> float:
    """Return the two-sided p-value of the exact sign test: is a share of `n` other than one half?

    The p-value is the probability that chance gives a share at least as far from one half.
    """
    # SciPy doubles the time that a script takes to start, and few functions need it.
    from scipy.special import bdtr

    smaller: npt.NDArray[np.float64] = bdtr(min(n_first, n - n_first), n, 0.5)
    return min(1.0, 2 * float(smaller))
