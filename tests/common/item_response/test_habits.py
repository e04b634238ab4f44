"""Habits of position: planted ones are found, none where there are none."""

from typing import NamedTuple

from common.item_response import options

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

RNG = np.random.default_rng
N_STUDENTS, N_CONTEXTS, N_OPTIONS = 400, 8, 4


class Choices(NamedTuple):
    """Options chosen, with the probabilities before and after habits."""

    student: np.ndarray
    context: np.ndarray
    choice: np.ndarray
    before: np.ndarray
    after: np.ndarray


def plant(of_student: float, of_context: float) -> tuple[Choices, Choices]:
    """Choices to learn from and held-out ones; the variances of the habits are given."""
    rng, n = RNG(0), 40_000
    student, context = rng.integers(0, N_STUDENTS, n), rng.integers(0, N_CONTEXTS, n)
    before = rng.dirichlet(np.full(N_OPTIONS, 1.5), n)
    habit = np.sqrt(of_student) * rng.standard_normal((N_STUDENTS, 1, N_OPTIONS))
    own = np.sqrt(of_context) * rng.standard_normal((N_STUDENTS, N_CONTEXTS, N_OPTIONS))
    after = before * np.exp((habit + own)[student, context])
    after /= after.sum(axis=1, keepdims=True)
    choice = (rng.random((n, 1)) > after.cumsum(axis=1)[:, :-1]).sum(axis=1)
    columns = student * 7, context * 3 + 5, choice, before.astype("f"), after
    return Choices(*(x[:30_000] for x in columns)), Choices(*(x[30_000:] for x in columns))


def fit(choices: Choices) -> options.Habits:
    return options.fit_habits(choices.student, choices.context, choices.choice, choices.before)


def apply(found: options.Habits, choices: Choices) -> np.ndarray:
    return options.with_habits(found, choices.student, choices.context, choices.before)


def loss(p: np.ndarray, choices: Choices) -> float:
    """Return the log loss expected of the held-out choices."""
    return float(-(choices.after * np.log(p)).sum(axis=1).mean())


TRAIN, TEST = plant(0.3, 0.3)
FITTED = fit(TRAIN)


@pytest.mark.parametrize(
    ("of_student", "of_context"), [(0.3, 0.0), (0.0, 0.5), (0.3, 0.3), (0.0, 0.0)]
)
def test_planted_habits_are_recovered(of_student: float, of_context: float) -> None:
    train, test = plant(of_student, of_context)
    found = fit(train)
    # The mode of few answers lies nearer to 0 than the mean, so the estimate is on the low side.
    for planted, variance in zip((of_student, of_context), found.variance, strict=True):
        assert 0.75 * planted - 0.01 < variance < 1.1 * planted + 0.04
    p = apply(found, test)
    entropy, before = loss(test.after, test), loss(test.before, test)
    assert loss(p, test) - entropy < 0.6 * (before - entropy) + 1e-3
    # The probabilities are right on average.
    bins = np.minimum((p * 10).astype(int), 9).ravel()
    for b in range(9):
        truth = test.after.ravel()[bins == b].mean()
        assert p.ravel()[bins == b].mean() == pytest.approx(truth, abs=0.02)
    if not of_student + of_context:
        assert np.abs(p - test.before).mean() < 0.01


def test_the_mode_is_that_of_the_posterior() -> None:
    """At the mode, the slope of the likelihood is that of the prior."""
    error = (np.eye(N_OPTIONS)[TRAIN.choice] - apply(FITTED, TRAIN)).astype(float)
    # Total = own + that of the student, each with a prior of its own.
    of_student, total = (values.astype(float) for values in FITTED.total)
    level = FITTED.levels[1]
    own = total - of_student[level.parent]
    student = np.searchsorted(FITTED.student_ids, TRAIN.student)
    label = np.searchsorted(FITTED.context_ids, TRAIN.context)
    node = np.searchsorted(level.parent * 100 + level.label, student * 100 + label)
    for value, place, variance in zip(
        (of_student, own), (student, node), FITTED.variance, strict=True
    ):
        expected = np.zeros_like(value)
        np.add.at(expected, place, variance * error)
        assert_allclose(value, expected, atol=0.04)
        assert np.abs(value - expected).mean() < 0.008


def test_unknown_students_keep_their_probabilities_unknown_contexts_the_students() -> None:
    unknown = TEST._replace(student=TEST.student + 1)
    assert_allclose(apply(FITTED, unknown), TEST.before, atol=1e-6)
    elsewhere = apply(FITTED, TEST._replace(context=TEST.context * 0 + 1_000_000))
    node = np.searchsorted(FITTED.student_ids, TEST.student)
    expected = TEST.before * np.exp(FITTED.total[0][node])
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(elsewhere, expected, atol=1e-5)
    assert np.abs(elsewhere - apply(FITTED, TEST)).mean() > 0.01


@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), n_options=st.integers(2, 5))
@settings(max_examples=40)
def test_rows_sum_to_1(seed: int, n: int, n_options: int) -> None:
    """Of few answers too, of options that are impossible, and of certain ones."""
    rng = RNG(seed)
    before = rng.dirichlet(np.full(n_options, 0.1), n).astype(np.float32)
    student, context = rng.integers(0, 4, n), rng.integers(0, 3, n)
    found = options.fit_habits(student, context, rng.integers(0, n_options, n), before)
    p = options.with_habits(found, student, context, before)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    assert (found.variance > 0).all()
