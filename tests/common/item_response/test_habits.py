"""Habits of position: planted ones are found, none where there are none."""

from typing import Any

from common.item_response.options import Habits, fit_habits, with_habits

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

RNG = np.random.default_rng
N_STUDENTS, N_CONTEXTS, N_OPTIONS = 400, 8, 4
BEFORE, AFTER = ([f"{word}_{o}" for o in range(N_OPTIONS)] for word in ("before", "after"))


def plant(of_student: float, of_context: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Choices to learn from, and held-out ones, with their probabilities, by habits' variances."""
    rng, n = RNG(0), 40_000
    student, context = rng.integers(0, N_STUDENTS, n), rng.integers(0, N_CONTEXTS, n)
    before = rng.dirichlet(np.full(N_OPTIONS, 1.5), n)
    habit = np.sqrt(of_student) * rng.standard_normal((N_STUDENTS, 1, N_OPTIONS))
    own = np.sqrt(of_context) * rng.standard_normal((N_STUDENTS, N_CONTEXTS, N_OPTIONS))
    after = before * np.exp((habit + own)[student, context])
    after /= after.sum(axis=1, keepdims=True)
    choice = (rng.random((n, 1)) > after.cumsum(axis=1)[:, :-1]).sum(axis=1)
    rows = pd.DataFrame({"student": student * 7, "context": context * 3 + 5, "choice": choice})
    rows[BEFORE], rows[AFTER] = before.astype("f"), after
    return rows[:30_000], rows[30_000:]


def fit(rows: pd.DataFrame) -> Habits:
    columns: Any = (rows[name].to_numpy() for name in ("student", "context", "choice"))
    return fit_habits(*columns, rows[BEFORE].to_numpy())


def apply(found: Habits, rows: pd.DataFrame) -> np.ndarray:
    pairs: Any = (rows[name].to_numpy() for name in ("student", "context"))
    return with_habits(found, *pairs, rows[BEFORE].to_numpy())


@pytest.mark.parametrize(
    ("of_student", "of_context"), [(0.3, 0.0), (0.0, 0.5), (0.3, 0.3), (0.0, 0.0)]
)
def test_planted_habits_are_recovered(of_student: float, of_context: float) -> None:
    train, test = plant(of_student, of_context)
    found = fit(train)
    # The mode of few answers lies nearer to 0 than the mean, so the estimate is on the low side.
    for planted, variance in zip((of_student, of_context), found.variance, strict=True):
        assert 0.75 * planted - 0.01 < variance < 1.1 * planted + 0.04
    p, before, after = apply(found, test), test[BEFORE].to_numpy(), test[AFTER].to_numpy()
    # The log loss expected of the held-out choices.
    loss, of_before, least = (-(after * np.log(q)).sum(axis=1).mean() for q in (p, before, after))
    assert loss - least < 0.6 * (of_before - least) + 1e-3
    # The probabilities are right on average. A bin holds 400 of 40,000 or more, which deviate from
    # what is planted by up to 0.1: a standard error of 0.1 / √400 = 0.005, four of these.
    bins = np.minimum((p * 10).astype(int), 9)
    for b in range(9):
        assert p[bins == b].mean() == pytest.approx(after[bins == b].mean(), abs=0.02)
    if not of_student + of_context:
        assert np.abs(p - before).mean() < 0.01
    # Unknown students keep their probabilities, those in unknown contexts have their own habits.
    assert_allclose(apply(found, test.assign(student=test.student + 1)), before, atol=1e-6)
    node = np.searchsorted(found.student_ids, test.student)
    expected = before * np.exp(found.total[0][node])
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(apply(found, test.assign(context=1_000_000)), expected, atol=1e-5)


def test_impossible_choices_and_certain_ones() -> None:
    rows = plant(0.3, 0.3)[0][:60]
    rows[BEFORE] = RNG(0).dirichlet(np.full(N_OPTIONS, 0.05), 60).astype("f")
    found = fit(rows)
    assert_allclose(apply(found, rows).sum(axis=1), 1, atol=1e-5)
    assert (found.variance > 0).all()
