"""Habits of choosing options by their position: only planted habits are found."""

from dataclasses import dataclass

from common.item_response.habits import Habits, add_habits, fit_habits

import numpy as np
import pytest
from numpy.testing import assert_allclose

RNG = np.random.default_rng
N_STUDENTS = 400
N_CONTEXTS = 8
N_OPTIONS = 4
# Number of simulated choices to learn from.
N_TRAIN = 30_000


@dataclass
class Choices:
    """Students' choices of options, with the true probabilities of all options."""

    student: np.ndarray
    context: np.ndarray
    choice: np.ndarray
    # The probabilities of the options if students had no habits, shape (choices, options).
    p_without_habits: np.ndarray
    # The probabilities with which the options are chosen, given the students' habits; same shape.
    p_with_habits: np.ndarray

    def take(self, rows: slice) -> "Choices":
        return Choices(*(column[rows] for column in vars(self).values()))


def simulate(student_variance: float, context_variance: float) -> Choices:
    """Simulate choices of students with habits.

    A habit is a student's preference for some options. It has a number for each option, which is
    added to the option's log probability. Each student has a general habit, drawn with the variance
    `student_variance`, and a further habit in each context, drawn with the variance
    `context_variance`.
    """
    rng = RNG(0)
    n = N_TRAIN + 10_000
    student = rng.integers(0, N_STUDENTS, n)
    context = rng.integers(0, N_CONTEXTS, n)
    p_without = rng.dirichlet(np.full(N_OPTIONS, 1.5), n)

    # Draw habits with the variance 1, and then scale them to the given variances.
    general = rng.standard_normal((N_STUDENTS, 1, N_OPTIONS))
    in_context = rng.standard_normal((N_STUDENTS, N_CONTEXTS, N_OPTIONS))
    habit = np.sqrt(student_variance) * general + np.sqrt(context_variance) * in_context
    p_with = p_without * np.exp(habit[student, context])
    p_with /= p_with.sum(axis=1, keepdims=True)

    # Draw an option for each row. Option k is drawn if the random number lies between the sum of
    # the probabilities of the options before k, and this sum plus the probability of k. So k is the
    # number of options whose upper bound is below the random number.
    draw = rng.random((n, 1))
    upper_bound = p_with.cumsum(axis=1)
    # The upper bound of the last option is 1, which no random number exceeds.
    choice = (draw > upper_bound[:, :-1]).sum(axis=1)
    return Choices(
        # The factors 7 and 3 make gaps between the ids. So code that takes ids for positions fails.
        student=student * 7,
        context=context * 3 + 5,
        choice=choice,
        p_without_habits=p_without.astype(np.float32),
        p_with_habits=p_with,
    )


def split(choices: Choices) -> tuple[Choices, Choices]:
    """Return choices to learn from, and held-out ones."""
    return choices.take(slice(N_TRAIN)), choices.take(slice(N_TRAIN, None))


def fit(choices: Choices) -> Habits:
    return fit_habits(choices.student, choices.context, choices.choice, choices.p_without_habits)


def predict(habits: Habits, choices: Choices) -> np.ndarray:
    return add_habits(habits, choices.student, choices.context, choices.p_without_habits)


# An upper limit of the standard error of the mean of the predictions in a bin, such as 0.1 to 0.2.
# A bin holds at least 400 predictions. Each deviates from the true probability by up to 0.1.
ERROR_OF_BIN = 0.1 / np.sqrt(400)
VARIANCES = pytest.mark.parametrize(
    ("student_variance", "context_variance"), [(0.3, 0.0), (0.0, 0.5), (0.3, 0.3), (0.0, 0.0)]
)


@VARIANCES
def test_planted_variances_are_recovered(student_variance: float, context_variance: float) -> None:
    train, _ = split(simulate(student_variance, context_variance))
    planted = (student_variance, context_variance)
    # The fit estimates a habit (a student's preference for options) by the mode of its posterior,
    # and not by the mean. With few answers, the mode is nearer to 0 than the mean. So the estimated
    # variances of habits are slightly too small.
    for true_variance, variance in zip(planted, fit(train).variance, strict=True):
        assert 0.75 * true_variance - 0.01 < variance < 1.1 * true_variance + 0.04


@VARIANCES
def test_habits_make_probabilities_better_and_calibrated(
    student_variance: float, context_variance: float
) -> None:
    """With the habits that the fit finds, predictions are nearer to the true probabilities.

    They are also right on average: for example, among predictions of about 0.3, the mean of the
    true probabilities is about 0.3.
    """
    train, test = split(simulate(student_variance, context_variance))

    p = predict(fit(train), test)

    def expected_loss(p: np.ndarray) -> float:
        """Return the log loss that is expected if choices are drawn with the true probabilities."""
        return float(-(test.p_with_habits * np.log(p)).sum(axis=1).mean())

    # Predictions with the true probabilities have the least expected loss. Predictions without
    # habits have a larger loss; a perfect fit would avoid the whole difference. The fit must avoid
    # at least 40 % of it. If no habits were planted, the difference is 0, and small errors of the
    # fit may add 0.001.
    least_loss = expected_loss(test.p_with_habits)
    avoidable_loss = expected_loss(test.p_without_habits) - least_loss
    remaining_loss = expected_loss(p) - least_loss
    assert remaining_loss < 0.6 * avoidable_loss + 1e-3

    # Divide the predictions into ten bins: 0 to 0.1, 0.1 to 0.2 and so on. Leave out the last bin,
    # because it holds too few predictions.
    bin_of_prediction = (p * 10).astype(int)
    for number in range(9):
        is_in_bin = bin_of_prediction == number
        true_mean = test.p_with_habits[is_in_bin].mean()
        assert p[is_in_bin].mean() == pytest.approx(true_mean, abs=4 * ERROR_OF_BIN)


def test_without_habits_none_are_found() -> None:
    train, test = split(simulate(0.0, 0.0))
    assert np.abs(predict(fit(train), test) - test.p_without_habits).mean() < 0.01


def test_unknown_students_have_no_habits() -> None:
    train, test = split(simulate(0.3, 0.3))
    test.student = test.student + 1
    assert_allclose(predict(fit(train), test), test.p_without_habits, atol=1e-6)


def test_in_unknown_contexts_students_have_the_habits_of_all_their_contexts() -> None:
    train, test = split(simulate(0.3, 0.3))
    habits = fit(train)
    test.context = np.full_like(test.context, 1_000_000)
    student = np.searchsorted(habits.student_ids, test.student)
    expected = test.p_without_habits * np.exp(habits.total[0][student])
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(predict(habits, test), expected, atol=1e-5)


def test_improbable_and_certain_choices_have_finite_habits() -> None:
    choices = simulate(0.3, 0.3).take(slice(60))
    choices.p_without_habits = RNG(0).dirichlet(np.full(N_OPTIONS, 0.05), 60).astype(np.float32)
    habits = fit(choices)
    assert_allclose(predict(habits, choices).sum(axis=1), 1, atol=1e-5)
    assert (habits.variance > 0).all()


@pytest.mark.parametrize("p_chosen", [0.0, 1e-30, 1e-6, 1 - 1e-6, 1.0])
def test_a_choice_that_a_student_makes_thousands_of_times_does_not_overflow(
    p_chosen: float,
) -> None:
    """A habit is a preference of a student for an option, learned from the student's choices.

    One student makes the same choice 20,000 times. If students had no habits, this choice would
    have the probability `p_chosen`, which may be 0 or 1. Neither the learned habits nor the
    probabilities overflow.
    """
    n = 20_000
    # The choice, any of the four options.
    chosen = 2
    p_other = (1 - p_chosen) / (N_OPTIONS - 1)
    p_without_habits = np.full((n, N_OPTIONS), p_other, np.float32)
    p_without_habits[:, chosen] = p_chosen
    # Student 0 makes all choices in one context (0), for instance one quiz.
    student = np.zeros(n, int)
    context = np.zeros(n, int)

    habits = fit_habits(student, context, np.full(n, chosen), p_without_habits)

    # The student's habit over all contexts, and the habit in the one context.
    everywhere, in_context = habits.total
    assert np.isfinite(everywhere).all()
    assert np.isfinite(in_context).all()
    # All rows are equal, so it is enough to predict one of them.
    p = add_habits(habits, student[:1], context[:1], p_without_habits[:1])
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1, abs=1e-5)
