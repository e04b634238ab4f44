"""Habits of choosing options by their position: planted habits are found, and no others."""

from dataclasses import dataclass

from common.item_response.habits import Habits, add_habits, fit_habits

import numpy as np
import pytest
from numpy.testing import assert_allclose

RNG = np.random.default_rng
N_STUDENTS = 400
N_CONTEXTS = 8
N_OPTIONS = 4


@dataclass
class Choices:
    """Choices of options, with the true probabilities of all options."""

    student: np.ndarray
    context: np.ndarray
    choice: np.ndarray
    # Probabilities without habits and with them, shape (choices, options).
    before: np.ndarray
    after: np.ndarray

    def take(self, rows: slice) -> "Choices":
        return Choices(*(column[rows] for column in vars(self).values()))


def plant(of_student: float, of_context: float) -> Choices:
    """Simulate choices of students with habits.

    A student has a habit, with the variance `of_student`, and a further one in each context, with
    the variance `of_context`. The ids of students and contexts have gaps.
    """
    rng = RNG(0)
    n = 40_000
    student = rng.integers(0, N_STUDENTS, n)
    context = rng.integers(0, N_CONTEXTS, n)
    before = rng.dirichlet(np.full(N_OPTIONS, 1.5), n)
    habit = np.sqrt(of_student) * rng.standard_normal((N_STUDENTS, 1, N_OPTIONS))
    own = np.sqrt(of_context) * rng.standard_normal((N_STUDENTS, N_CONTEXTS, N_OPTIONS))
    after = before * np.exp((habit + own)[student, context])
    after /= after.sum(axis=1, keepdims=True)
    choice = (rng.random((n, 1)) > after.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Choices(student * 7, context * 3 + 5, choice, before.astype(np.float32), after)


def split(choices: Choices) -> tuple[Choices, Choices]:
    """Return choices to learn from, and held-out ones."""
    return choices.take(slice(30_000)), choices.take(slice(30_000, None))


def fit(choices: Choices) -> Habits:
    return fit_habits(choices.student, choices.context, choices.choice, choices.before)


def predict(habits: Habits, choices: Choices) -> np.ndarray:
    return add_habits(habits, choices.student, choices.context, choices.before)


VARIANCES = pytest.mark.parametrize(
    ("of_student", "of_context"), [(0.3, 0.0), (0.0, 0.5), (0.3, 0.3), (0.0, 0.0)]
)


@VARIANCES
def test_planted_variances_are_recovered(of_student: float, of_context: float) -> None:
    train, _ = split(plant(of_student, of_context))
    # Estimated habits are modes of the posterior. With few answers, the mode lies nearer to 0 than
    # the mean, so that the variances are slightly underestimated.
    for planted, variance in zip((of_student, of_context), fit(train).variance, strict=True):
        assert 0.75 * planted - 0.01 < variance < 1.1 * planted + 0.04


@VARIANCES
def test_habits_make_probabilities_better_and_calibrated(
    of_student: float, of_context: float
) -> None:
    train, test = split(plant(of_student, of_context))
    p = predict(fit(train), test)

    def expected_loss(p: np.ndarray) -> float:
        return float(-(test.after * np.log(p)).sum(axis=1).mean())

    # At least 40 % of the loss that could be avoided is gone.
    least = expected_loss(test.after)
    assert expected_loss(p) - least < 0.6 * (expected_loss(test.before) - least) + 1e-3
    # A bin holds at least 400 of the 40,000 probabilities. They deviate from the true ones by up to
    # 0.1, so that a mean has a standard error of 0.1 / √400 = 0.005. Four are allowed.
    bins = np.minimum((p * 10).astype(int), 9)
    # The tenth bin has too few probabilities.
    for number in range(9):
        is_in_bin = bins == number
        assert p[is_in_bin].mean() == pytest.approx(test.after[is_in_bin].mean(), abs=0.02)


def test_without_habits_none_are_found() -> None:
    train, test = split(plant(0.0, 0.0))
    assert np.abs(predict(fit(train), test) - test.before).mean() < 0.01


def test_unknown_students_have_no_habits() -> None:
    train, test = split(plant(0.3, 0.3))
    test.student = test.student + 1
    assert_allclose(predict(fit(train), test), test.before, atol=1e-6)


def test_in_unknown_contexts_students_have_the_habits_of_all_their_contexts() -> None:
    train, test = split(plant(0.3, 0.3))
    habits = fit(train)
    test.context = np.full_like(test.context, 1_000_000)
    student = np.searchsorted(habits.student_ids, test.student)
    expected = test.before * np.exp(habits.total[0][student])
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(predict(habits, test), expected, atol=1e-5)


def test_improbable_and_certain_choices_have_finite_habits() -> None:
    choices = plant(0.3, 0.3).take(slice(60))
    choices.before = RNG(0).dirichlet(np.full(N_OPTIONS, 0.05), 60).astype(np.float32)
    habits = fit(choices)
    assert_allclose(predict(habits, choices).sum(axis=1), 1, atol=1e-5)
    assert (habits.variance > 0).all()


@pytest.mark.parametrize("p_chosen", [0.0, 1e-30, 1e-6, 1 - 1e-6, 1.0])
def test_a_choice_that_a_student_makes_thousands_of_times_does_not_overflow(
    p_chosen: float,
) -> None:
    n = 20_000
    p_other = (1 - p_chosen) / (N_OPTIONS - 1)
    before = np.full((n, N_OPTIONS), p_other, np.float32)
    before[:, 2] = p_chosen
    same = np.zeros(n, int)
    habits = fit_habits(same, same, np.full(n, 2), before)
    assert all(np.isfinite(total).all() for total in habits.total)
    p = add_habits(habits, same[:1], same[:1], before[:1])
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1, abs=1e-5)
