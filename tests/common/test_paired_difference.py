"""Paired differences: hand-computed tests, intervals that cover what they promise to cover."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import paired_difference
from common.paired_difference import Scored
from common.scores import outcomes


def scored(
    right: list[int] | np.ndarray,  # type: ignore[type-arg]
    student: list[int] | np.ndarray,  # type: ignore[type-arg]
    part: list[int] | None = None,
    *,
    task: int = 1,
    name: str = "it",
) -> Scored:
    value = np.asarray(right, np.int8)
    student = np.asarray(student, np.int32)
    question = np.arange(len(value), dtype=np.int32)
    parts = None if part is None else np.array(part)
    kept = outcomes.of_predictions(student, question, np.ones_like(value), value, parts)
    return Scored(name, task, "somewhere", kept)


def test_mcnemar_by_hand() -> None:
    """Only A is right on 1 answer, only B on 5: p = 2 (1 + 6) / 2^6."""
    a = scored([1, 0, 0, 0, 0, 0, 1, 0], [1] * 8)
    b = scored([0, 1, 1, 1, 1, 1, 1, 0], [1] * 8)
    only_a, only_b, p = paired_difference.mcnemar(a.outcomes, b.outcomes)
    assert (only_a, only_b) == (1, 5)
    assert p == pytest.approx(14 / 64)
    text = paired_difference.describe_mcnemar(a.outcomes, b.outcomes)
    assert "p = 0.2188; only A is right on 1 answers, only B on 5" in text
    assert "independent" in text
    assert paired_difference.mcnemar(a.outcomes, a.outcomes)[2] == 1


def test_answers_that_count_twice_get_no_test_by_mcnemar() -> None:
    value = np.array([1, 0], np.int8)
    ids = np.array([1, 1], np.int32)
    kept = outcomes.of_predictions(ids, ids, np.ones_like(value), value, np.array([0, 1]))
    assert "no test by McNemar" in paired_difference.describe_mcnemar(kept, kept)


def test_the_score_is_the_mean_of_the_parts_and_the_best_of_the_experts() -> None:
    """Two of two right, and one of four: 0.625, where all answers together would give 0.5."""
    right, part = [1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1]
    assert scored(right, [1] * 6, part, task=4).score == pytest.approx(0.625)
    judgements = np.array([[1, 1], [1, np.nan], [np.nan, np.nan]])
    agrees = np.array([[1, 0], [1, np.nan], [np.nan, np.nan]])
    kept = outcomes.of_judgements(np.array([1, 2]), np.array([3, 4]), judgements, agrees)
    assert Scored("it", 3, "", kept).score == 1.0


def planted(seed: int, n_students: int, gain: float) -> tuple[Scored, Scored]:
    """Return two entries, the second better by a known amount on average, answers clustered."""
    rng = np.random.default_rng(seed)
    student = np.repeat(np.arange(n_students), rng.integers(1, 30, n_students))
    # What makes one better differs between students, so that answers are no independent trials.
    own = rng.normal(0, 0.15, n_students)[student]
    chance = rng.random(len(student))
    a, b = chance < 0.6, chance < np.clip(0.6 + gain + own, 0, 1)
    return scored(a, student), scored(b, student)


def test_the_interval_covers_a_known_difference() -> None:
    """In about 95 of 100 samples; taking answers for independent, far fewer."""
    covered = naive = 0
    for seed in range(100):
        a, b = planted(seed, 150, 0.03)
        low, high = np.percentile(paired_difference.bootstrap_difference(a, b), (2.5, 97.5))
        covered += low <= 0.03 <= high
        d = b.outcomes.right.astype(float) - a.outcomes.right
        naive += abs(d.mean() - 0.03) <= 1.96 * d.std() / np.sqrt(len(d))
    assert 90 <= covered <= 100
    assert naive < 75


@pytest.mark.parametrize(
    ("gain", "expected"),
    [(0.1, "B is better by 0.1"), (-0.1, "A is better by 0."), (0.0, "no difference can be told")],
)
def test_the_verdict_in_words(gain: float, expected: str) -> None:
    a, b = planted(3, 400, gain)
    if gain == 0:
        b = a
    text = paired_difference.describe(a, b)
    line = next(line for line in text.splitlines() if line.startswith(expected))
    low, high = map(float, re.findall(r"interval (\S+) to ([^)]+)\)", line)[0])
    assert low <= abs(b.score - a.score) <= high
    assert max(map(len, text.splitlines())) <= 80
    assert f"{len(a.outcomes.right):,} answers of 400 students" in text


@given(st.integers(0, 1000))
def test_a_and_b_change_places(seed: int) -> None:
    a, b = planted(seed, 20, 0.05)
    one = paired_difference.bootstrap_difference(a, b)
    assert np.allclose(one, -paired_difference.bootstrap_difference(b, a))
    assert np.array_equal(one, paired_difference.bootstrap_difference(a, b))
    assert not paired_difference.bootstrap_difference(a, a).any()


def test_one_student_tells_nothing_about_students() -> None:
    a, b = scored([1, 0, 0], [5, 5, 5]), scored([1, 1, 1], [5, 5, 5])
    text = " ".join(paired_difference.describe(a, b).split())
    assert "no difference can be told: B - A = 0.6667 (no interval: a single one" in text
    assert "is better" not in text
    assert "trust the interval" not in text


def test_task_3_draws_pairs_and_says_that_they_are_few() -> None:
    rng = np.random.default_rng(0)
    judgements = np.where(rng.random((5, 25)) < 0.1, np.nan, rng.integers(1, 3, (5, 25)))
    ids = np.arange(25)
    rankings = []
    for name in ("one", "other"):
        agrees = np.where(np.isnan(judgements), np.nan, rng.integers(2, size=(5, 25)))
        kept = outcomes.of_judgements(ids, ids + 25, judgements, agrees)
        rankings.append(Scored(name, 3, "public test", kept))
    text = paired_difference.describe(*rankings)
    assert "no difference can be told" in text
    assert "the pairs drawn again 2,000 times" in text
    assert re.search(r"so few pairs tell only rankings apart that differ by about 0\.[12]", text)
    assert "McNemar" not in text
    assert "of 25 pairs" in text
