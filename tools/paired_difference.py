"""The difference between two scores of the same answers, and how sure it is."""

import textwrap
from dataclasses import dataclass

from common.evaluation.outcomes import Outcomes

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

N_DRAWS = 2000
_DRAWS_AT_ONCE = 50
_WIDTH = 80


@dataclass(frozen=True)
class Scored:
    """What is compared: one score, and what it was made of.

    Attributes
    ----------
    name
        For people: the model and its options, or the file.
    task
        Number of the task.
    where
        Phase and rules, in words.
    outcomes
        What was predicted right.
    """

    name: str
    task: int
    where: str
    outcomes: Outcomes

    @property
    def score(self) -> float:
        """The score, as the evaluation computes it."""
        counts = self.outcomes.counts.sum(axis=1)
        shares = self.outcomes.count_right().sum(axis=1) / np.where(counts, counts, np.nan)
        return float(combine(self.task, shares))


def combine(task: int, shares: FloatArray) -> FloatArray:
    """Return the score from the shares of all parts, in the last axis.

    The best expert's in task 3, else the mean of the masks or folds; NaN is a part without answers.
    """
    known = np.where(np.isnan(shares), -np.inf if task == 3 else 0, shares)
    if task == 3:
        return np.asarray(known.max(axis=-1))
    return np.asarray(known.sum(axis=-1) / (~np.isnan(shares)).sum(axis=-1))


def bootstrap_difference(a: Scored, b: Scored, *, seed: int = 0) -> FloatArray:
    """Draw the units again, and return by how much B is better in each draw.

    As many units are drawn, with replacement, as there are (Efron 1979), the same for A and B; a
    unit brings its answers in all parts along.

    Parameters
    ----------
    a, b
        Of the same answers.
    seed
        Seed of the draws.

    Returns
    -------
    array of float64, shape (N_DRAWS,)
    """
    counts = a.outcomes.counts
    n_parts, n_units = counts.shape
    columns = np.concatenate([a.outcomes.count_right(), b.outcomes.count_right(), counts])
    columns = np.ascontiguousarray(columns.T, np.float32)
    rng = np.random.default_rng(seed)
    sums = np.empty((N_DRAWS, 3 * n_parts), np.float64)
    times = np.empty((_DRAWS_AT_ONCE, n_units), np.float32)
    for start in range(0, N_DRAWS, _DRAWS_AT_ONCE):
        for row in times:
            row[:] = np.bincount(
                rng.integers(n_units, size=n_units, dtype=np.int32), minlength=n_units
            )
        sums[start : start + _DRAWS_AT_ONCE] = times @ columns
    right_a, right_b, drawn = np.split(sums, 3, axis=1)
    drawn = np.where(drawn, drawn, np.nan)
    return combine(b.task, right_b / drawn) - combine(a.task, right_a / drawn)


def describe(a: Scored, b: Scored) -> str:
    """Compare two scores of the same answers, in words."""
    difference = b.score - a.score
    lines = [f"{side}  {s.score:.4f}  {s.name}" for side, s in (("A", a), ("B", b))]
    lines.append(f"task {a.task}, {a.where}: {describe_size(a)}")
    lines += _describe_interval(a, b, difference)
    if a.task != 3:
        lines.append(describe_mcnemar(a.outcomes, b.outcomes))
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent="  ") for line in lines)


def _describe_interval(a: Scored, b: Scored, difference: float) -> list[str]:
    """Say which one is better, and how sure that is."""
    units = "pairs" if a.task == 3 else "students"
    if a.outcomes.counts.shape[1] == 1:
        # Drawn again and again, it would give an interval of no width.
        return [
            f"no difference can be told: B - A = {difference:.4f} (no interval: a single one of "
            f"the {units} says nothing about others)"
        ]
    low, high = np.percentile(bootstrap_difference(a, b), (2.5, 97.5)).tolist()
    lines = []
    if low <= 0 <= high:
        lines.append(
            f"no difference can be told: B - A = {difference:.4f} "
            f"(95 % interval {low:.4f} to {high:.4f})"
        )
    else:
        better, sign = ("B", 1) if difference > 0 else ("A", -1)
        ends = sorted((sign * low, sign * high))
        lines.append(
            f"{better} is better by {abs(difference):.4f} "
            f"(95 % interval {ends[0]:.4f} to {ends[1]:.4f})"
        )
    lines.append(f"interval: percentile bootstrap, the {units} drawn again {N_DRAWS:,} times")
    if a.task == 3:
        lines.append(
            f"so few pairs tell only rankings apart that differ by about {(high - low) / 2:.2f}"
        )
    return lines


def describe_size(scored: Scored) -> str:
    """Return how many answers of how many students were predicted, in words."""
    n_units = scored.outcomes.counts.shape[1]
    n = len(scored.outcomes.right)
    if scored.task == 3:
        return f"{n:,} judgements of {n_units} pairs"
    kind = "targets" if scored.task == 4 else "answers"
    return f"{n:,} {kind} of {n_units:,} students"


def mcnemar(a: Outcomes, b: Outcomes) -> tuple[int, int, float]:
    """Return what McNemar's exact test says (McNemar 1947).

    Returns
    -------
    only_a, only_b : int
        Number of answers that only one of them predicts right.
    p : float
        Probability of numbers as unequal as these, if both predicted equally well.
    """
    # SciPy takes a second to load, and only this function needs it.
    from scipy.stats import binomtest

    only_a, only_b = int((a.right & ~b.right).sum()), int((b.right & ~a.right).sum())
    n = only_a + only_b
    return only_a, only_b, float(binomtest(only_a, n, 0.5).pvalue) if n else 1.0


def describe_mcnemar(a: Outcomes, b: Outcomes) -> str:
    """Return what McNemar's test says, in words, and why it may say too much."""
    only_a, only_b, p = mcnemar(a, b)
    found = f"only A is right on {only_a:,} answers, only B on {only_b:,}"
    if not a.distinct:
        return f"{found}; no test by McNemar: the same answers are counted several times"
    shown = "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
    advice = ": trust the interval" if a.counts.shape[1] > 1 else ""
    return (
        f"McNemar's exact test: {shown}; {found}; it takes all answers for independent, which "
        f"those of one student are not{advice}"
    )
