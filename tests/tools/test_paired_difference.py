"""Paired differences: hand-computed tests, intervals that cover what they promise to cover."""

import re
from functools import partial
from typing import Any

from common import metrics
from common.evaluation import outcomes
from tools.compare import Scored, describe

import numpy as np
import pytest


def scored(right: Any, student: Any, part: Any = None, question: Any = None) -> Scored:
    value = np.asarray(right, np.int8)
    questions = np.array(question or range(len(value)), np.int32)
    parts = None if part is None else np.array(part)
    students = np.asarray(student, np.int32)
    kept = outcomes.of_predictions(students, questions, np.ones_like(value), value, parts)
    return Scored("it", 4 if part else 1, "somewhere", lambda: kept)


def planted(seed: int, n_students: int, gain: float) -> tuple[Scored, Scored]:
    """Return two entries, the second better by a known amount on average, answers clustered."""
    rng = np.random.default_rng(seed)
    student = np.repeat(np.arange(n_students), rng.integers(1, 30, n_students))
    # What makes one better differs between students, so that answers are no independent trials.
    own = rng.normal(0, 0.15, n_students)[student]
    chance = rng.random(len(student))
    a, b = chance < 0.6, chance < np.clip(0.6 + gain + own, 0, 1)
    return scored(a, student), scored(b, student)


def interval(a: Scored, b: Scored) -> tuple[str, float, float]:
    """Return the verdict and the interval in it."""
    pattern = r"(\w is better|no difference).*\(95 % interval (\S+)\s+to\s+([^)]+)\)"
    said = re.search(pattern, describe(a, b), re.DOTALL)
    assert said
    return said[1], float(said[2]), float(said[3])


def test_mcnemar_by_hand() -> None:
    """Only A is right on 1 answer, only B on 5: p = 2 (1 + 6) / 2^6."""
    a = scored([1, 0, 0, 0, 0, 0, 1, 0], [1] * 8)
    b = scored([0, 1, 1, 1, 1, 1, 1, 0], [1] * 8)
    text = " ".join(describe(a, b).split())
    assert "p = 0.2188; only A is right on 1 answers, only B on 5" in text
    assert "independent" in text
    assert "p = 1.0000" in describe(a, a)
    # One student tells nothing about students.
    assert "no difference can be told: B - A = 0.5000 (no interval: a single one" in text
    assert "trust the interval" not in text
    # Answers that count twice get no test.
    twice = scored([1, 0], [1, 1], [0, 1], [1, 1])
    assert "no test by McNemar" in describe(twice, twice)


def test_the_score_is_the_mean_of_the_parts() -> None:
    """Two of two right, and one of four: 0.625, where all answers together would give 0.5."""
    right, part = [1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1]
    assert scored(right, [1] * 6, part).score == pytest.approx(0.625)


def test_the_interval_said_covers_a_known_difference_as_often_as_it_says() -> None:
    """It is 1.96 standard errors to either side; taking answers for independent, far fewer."""
    covered, errors = 0, []
    for seed in range(40):
        a, b = planted(seed, 150, 0.03)
        _, low, high = interval(a, b)
        covered += low <= 0.03 <= high
        difference = b.outcomes.right.astype(float) - a.outcomes.right
        student = np.repeat(np.arange(150), a.outcomes.counts[0])
        errors.append((high - low) / 2 / metrics.clustered_standard_error(difference, student))
    assert 35 <= covered <= 40
    assert np.mean(errors) == pytest.approx(1.96, rel=0.03)


def test_the_verdict_in_words() -> None:
    a, b = planted(3, 400, 0.1)
    verdict, low, high = interval(a, b)
    assert verdict == "B is better"
    assert 0 < low <= b.score - a.score <= high
    assert interval(b, a) == ("A is better", low, high)
    assert interval(a, a) == ("no difference", 0, 0)
    first, second, *others = describe(a, b).splitlines()
    assert first.startswith(f"A  {a.score:.4f}  ") and second.startswith(f"B  {b.score:.4f}  ")
    assert max(map(len, others)) <= 80
    assert f"{len(a.outcomes.right):,} answers of 400 students" in " ".join(others)


def test_task_3_draws_pairs_and_says_that_they_are_few() -> None:
    rng = np.random.default_rng(0)
    judgements = np.where(rng.random((5, 25)) < 0.1, np.nan, rng.integers(1, 3, (5, 25)))
    ids = np.arange(25)
    rankings = []
    for name in ("one", "other"):
        agrees = np.where(np.isnan(judgements), np.nan, rng.integers(2, size=(5, 25)))
        kept = outcomes.of_judgements(ids, ids + 25, judgements, agrees)
        rankings.append(Scored(name, 3, "public test", partial(lambda kept: kept, kept)))
    text = describe(*rankings)
    assert "no difference can be told" in text
    assert "the pairs drawn again 2,000 times" in text
    (about,) = re.findall(r"so few pairs tell only rankings apart that differ by about (\S+)", text)
    _, low, high = interval(*rankings)
    assert float(about) == pytest.approx((high - low) / 2, abs=0.0051)
    assert "McNemar" not in text
    assert "of 25 pairs" in text
