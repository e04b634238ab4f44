"""The difference between two scores of the same answers, and how sure it is."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from common.evaluation.outcomes import Outcomes

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

N_DRAWS = 2000
_DRAWS_AT_ONCE = 50
_WIDTH = 80


@dataclass(frozen=True)
class Scored:
    """What is compared: a score, and what was predicted right.

    The name is that of the model with its options, or of the file; `where` says on what it was
    scored, which `test` tells apart.
    """

    name: str
    task: int
    where: str
    read: Callable[[], Outcomes]
    test: tuple[str, ...] = ()

    @cached_property
    def outcomes(self) -> Outcomes:
        """What was predicted right."""
        return self.read()

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
    unit brings its answers in all parts along. Shape of what is returned: (N_DRAWS,).
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
    lines = [f"{side}  {s.score:.4f}  {s.name}" for side, s in (("A", a), ("B", b))]
    lines += [f"task {a.task}, {a.where}: {describe_size(a)}", *_describe_interval(a, b)]
    if a.task != 3:
        lines.append(describe_mcnemar(a.outcomes, b.outcomes))
    return "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent="  ") for line in lines)


def _describe_interval(a: Scored, b: Scored) -> list[str]:
    """Say which one is better, and how sure that is."""
    difference = b.score - a.score
    units = "pairs" if a.task == 3 else "students"
    none = f"no difference can be told: B - A = {difference:.4f}"
    if a.outcomes.counts.shape[1] == 1:
        # Drawn again and again, it would give an interval of no width.
        return [f"{none} (no interval: a single one of the {units} says nothing about others)"]
    low, high = np.percentile(bootstrap_difference(a, b), (2.5, 97.5)).tolist()
    said = f"{none} (95 % interval {low:.4f} to {high:.4f})"
    if not low <= 0 <= high:
        ends = sorted((abs(low), abs(high)))
        said = (
            f"{'B' if difference > 0 else 'A'} is better by {abs(difference):.4f} "
            f"(95 % interval {ends[0]:.4f} to {ends[1]:.4f})"
        )
    lines = [said, f"interval: percentile bootstrap, the {units} drawn again {N_DRAWS:,} times"]
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


def describe_mcnemar(a: Outcomes, b: Outcomes) -> str:
    """Return what McNemar's exact test (1947) says, in words, and why it may say too much."""
    # SciPy takes a second to load, and only this function needs it.
    from scipy.stats import binomtest

    only_a, only_b = int((a.right & ~b.right).sum()), int((b.right & ~a.right).sum())
    found = f"only A is right on {only_a:,} answers, only B on {only_b:,}"
    if not a.distinct:
        return f"{found}; no test by McNemar: the same answers are counted several times"
    # Of numbers as unequal as these, if both predicted equally well.
    p = float(binomtest(only_a, only_a + only_b, 0.5).pvalue) if only_a + only_b else 1.0
    shown = "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
    advice = ": trust the interval" if a.counts.shape[1] > 1 else ""
    return (
        f"McNemar's exact test: {shown}; {found}; it takes all answers for independent, which "
        f"those of one student are not{advice}"
    )
