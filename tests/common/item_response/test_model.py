"""The mathematics and its fast pass, against numerical integration and draws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from common.item_response import blocks, model
from common.item_response.model import Gaussians, State
from common.item_response.observations import Observations, sort_by_student

RNG = np.random.default_rng


def observe(n_students: int, n_items: int, n_answers: int, k: int) -> Observations:
    """Answers of a known model, each pair once."""
    rng = RNG(0)
    ability, z = rng.standard_normal((n_students, k)), rng.normal(0.3, 0.7, (n_items, k + 1))
    pairs = rng.choice(n_students * n_items, n_answers, replace=False)
    student, item = pairs // n_items, pairs % n_items
    logit = (ability[student] * z[item, :k]).sum(axis=1) + z[item, k]
    is_right = rng.random(n_answers) < 1 / (1 + np.exp(-logit))
    used = np.ones(n_answers, bool)
    return sort_by_student(student, item, is_right, used, (n_students, n_items))


def begin(observations: Observations, k: int) -> State:
    """Any state, the same every time."""
    n_items, rng = observations.n_items, RNG(1)
    items = Gaussians(
        rng.normal(0.3, 0.5, (n_items, k + 1)).astype(np.float32),
        np.tile(0.1 * np.eye(k + 1, dtype=np.float32), (n_items, 1, 1)),
    )
    prior = Gaussians(np.zeros((1, k + 1)), np.eye(k + 1)[None])
    return State(model.standard_normal(observations.n_students, k), items, prior)


def run(observations: Observations, state: State, n_steps: int) -> State:
    n_items = observations.n_items
    for _ in range(n_steps):
        state = blocks.run_step(
            observations, state, np.zeros(n_items, int), np.full(n_items, 0.1, np.float32)
        )
    return state


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.booleans()), max_size=40))
@settings(deadline=None)
def test_sorting_is_stable_and_loses_nothing(rows: list[tuple[int, int, bool]]) -> None:
    student, item, right = np.array(rows, np.int32).reshape(-1, 3).T
    observations = sort_by_student(student, item, right == 1, item == 2, (6, 4))
    order = np.argsort(student, kind="stable")
    assert_array_equal(observations.student(), student[order])
    assert_array_equal(observations.item, item[order])
    assert_array_equal(observations.is_right, right[order] == 1)
    assert_array_equal(observations.is_used, item[order] == 2)


@pytest.mark.parametrize("guessing", [0.0, 0.2])
@pytest.mark.parametrize("right", [True, False])
def test_slopes_are_those_of_the_log_likelihood_and_finite_far_out(
    guessing: float, right: bool
) -> None:
    logit = np.array([-3, -0.5, 0, 2, -60, 60, -1e4], np.float32)

    def log_likelihood(x: np.ndarray) -> np.ndarray:
        p = guessing + (1 - guessing) / (1 + np.exp(-x))
        return np.log(p if right else 1 - p)

    slope, curvature = model.expected_slope_and_curvature(
        logit, np.zeros(7, np.float32), np.full(7, right), np.full(7, guessing, np.float32)
    )
    assert np.isfinite(slope).all()
    assert (curvature > 0).all()
    near = logit[:4].astype(np.float64)
    expected = (log_likelihood(near + 1e-5) - log_likelihood(near - 1e-5)) / 2e-5
    assert_allclose(slope[:4], expected, atol=1e-4)
    # Fisher's information, Σ P(outcome) (d log P(outcome) / dx)².
    sigmoid = 1 / (1 + np.exp(-near))
    p = guessing + (1 - guessing) * sigmoid
    information = ((1 - guessing) * sigmoid * (1 - sigmoid)) ** 2 / (p * (1 - p))
    assert_allclose(curvature[:4], np.maximum(information, 0.01), atol=1e-4)


def test_expected_slope_is_a_mean_over_the_logit() -> None:
    mean, variance = np.float32(0.8), np.float32(0.6)
    x = RNG(0).normal(mean, math.sqrt(variance), 400_000)
    slope, curvature = model.expected_slope_and_curvature(
        np.full(1, mean), np.full(1, variance), np.array([True]), np.zeros(1, np.float32)
    )
    sigmoid = 1 / (1 + np.exp(-x))
    assert slope[0] == pytest.approx((1 - sigmoid).mean(), abs=0.005)
    assert curvature[0] == pytest.approx((sigmoid * (1 - sigmoid)).mean(), abs=0.005)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (1.5, 0.5), (-2.0, 3.0), (0.7, 0.0)])
def test_probability_agrees_with_numerical_integration(mean: float, variance: float) -> None:
    x = RNG(0).normal(mean, math.sqrt(variance), 200_000)
    expected = (1 / (1 + np.exp(-x))).mean()
    found = model.expected_probability(np.float32([mean]), np.float32([variance]))
    assert found[0] == pytest.approx(expected, abs=0.01)
    far = model.expected_probability(np.float32([-1e4, 1e4]), np.float32([0, 0]))
    assert_array_equal(far, [0, 1])


def test_moments_of_logits_are_those_of_independent_draws() -> None:
    rng = RNG(2)

    def gaussians(d: int) -> Gaussians:
        root = rng.normal(0, 0.5, (2, d, d)).astype(np.float32)
        return Gaussians(rng.standard_normal((2, d)).astype(np.float32), root @ root.mT)

    students, items = gaussians(3), gaussians(4)
    a = rng.multivariate_normal(students.mean[1], students.covariance[1], 400_000)
    z = rng.multivariate_normal(items.mean[0], items.covariance[0], 400_000)
    logit = (a * z[:, :3]).sum(axis=1) + z[:, 3]
    mean, variance = blocks.logit_moments(students, items, np.array([1]), np.array([0]))
    assert mean[0] == pytest.approx(logit.mean(), abs=0.02)
    assert variance[0] == pytest.approx(logit.var(), rel=0.02)


def test_the_fast_pass_solves_the_weighted_least_squares() -> None:
    """A pass in blocks and threads against the equations, student by student, item by item."""
    k, n_items = 2, 30
    observations = observe(40, n_items, 700, k)
    observations = replace(observations, is_used=RNG(3).random(700) < 0.9)
    state = begin(observations, k)
    guessing = np.full(n_items, 0.1, np.float32)
    passed, sums = blocks.pass_over_answers(observations, state, guessing)
    students = passed.students
    items = model.update_items(sums, state.prior, np.zeros(n_items, int))

    student, item = observations.student(), observations.item
    mean, variance = blocks.logit_moments(state.students, state.items, student, item)
    slope, w = model.expected_slope_and_curvature(
        mean, variance, observations.is_right, guessing[item]
    )
    kappa = slope + w * mean
    for i in range(40):
        rows = (student == i) & observations.is_used
        z, c = state.items.mean[item[rows]], state.items.covariance[item[rows]]
        second = (w[rows, None, None] * (c + z[:, :, None] * z[:, None, :])).sum(axis=0)
        precision = np.eye(k) + second[:k, :k]
        linear = kappa[rows] @ z[:, :k] - second[:k, k]
        assert_allclose(students.mean[i], np.linalg.solve(precision, linear), atol=1e-4)
        assert_allclose(students.covariance[i], np.linalg.inv(precision), atol=1e-4)
    for j in range(n_items):
        rows = (item == j) & observations.is_used
        t = np.pad(students.mean[student[rows]], [(0, 0), (0, 1)], constant_values=1)
        c = np.pad(students.covariance[student[rows]], [(0, 0), (0, 1), (0, 1)])
        precision = np.eye(k + 1) + (w[rows, None, None] * (c + t[:, :, None] * t[:, None])).sum(0)
        assert_allclose(items.mean[j], np.linalg.solve(precision, kappa[rows] @ t), atol=1e-4)
        assert_allclose(items.covariance[j], np.linalg.inv(precision), atol=1e-4)


def test_the_prior_is_that_of_the_answered_items_of_each_group() -> None:
    rng, group = RNG(4), np.repeat([0, 1, 2], [4000, 4000, 10])
    centre = np.array([[1.0, 0.5], [-1.0, 2.0], [9.0, 9.0]])
    items = Gaussians(
        centre[group] + rng.normal(0, [0.5, 1.0], (8010, 2)), np.tile(0.1 * np.eye(2), (8010, 1, 1))
    )
    old = Gaussians(np.full((3, 2), 7.0), np.tile(np.eye(2), (3, 1, 1)))
    prior = model.estimate_prior(items, group, group < 2, old)
    assert_allclose(prior.mean, [[1, 0.5], [-1, 2], [7, 7]], atol=0.1)
    # What the items vary by, and what is not known about each.
    assert_allclose(prior.covariance[:2], np.tile(np.diag([0.35, 1.1]), (2, 1, 1)), atol=0.1)
    assert_array_equal(prior.covariance[2], np.eye(2))


def test_scaling_the_latent_space_changes_no_prediction() -> None:
    observations = observe(200, 40, 4_000, 2)
    fit = run(observations, begin(observations, 2), 2)
    bent = replace(fit, students=Gaussians(fit.students.mean * 2 + 1, fit.students.covariance * 4))
    scaled = model.standardise(bent)
    pairs = np.arange(200), np.arange(200) % 40
    for before, after in zip(
        blocks.logit_moments(bent.students, bent.items, *pairs),
        blocks.logit_moments(scaled.students, scaled.items, *pairs),
        strict=True,
    ):
        assert_allclose(before, after, rtol=1e-3, atol=1e-3)
    mean, covariance = scaled.students.mean, scaled.students.covariance
    assert_allclose(mean.mean(axis=0), 0, atol=1e-5)
    assert_allclose(mean.T @ mean / 200 + covariance.mean(axis=0), np.eye(2), atol=1e-4)


def test_answers_left_out_have_no_influence() -> None:
    observations = observe(200, 40, 4_000, 2)
    used = RNG(0).random(4_000) < 0.9
    flipped = np.where(used, observations.is_right, ~observations.is_right)
    state = begin(observations, 2)
    one = run(replace(observations, is_used=used), state, 3)
    other = run(replace(observations, is_used=used, is_right=flipped), state, 3)
    assert_array_equal(one.items.mean, other.items.mean)
    assert_array_equal(one.students.mean, other.students.mean)
    assert np.abs(run(observations, state, 3).items.mean - one.items.mean).max() > 0.01


def test_an_item_without_answers_has_the_prior() -> None:
    observations = replace(observe(200, 40, 4_000, 1), n_items=41)
    fit = run(observations, begin(observations, 1), 6)
    # The prior is estimated from the items, so it is one step ahead.
    assert_allclose(fit.items.mean[40], fit.prior.mean[0], atol=0.1)
    assert_allclose(fit.items.covariance[40], fit.prior.covariance[0], atol=0.1)


def test_the_number_of_threads_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    observations = observe(2000, 60, 60_000, 2)
    assert len(observations.chunks()) > 2
    fits = []
    for n_threads in (1, 3):
        monkeypatch.setattr(blocks, "N_THREADS", n_threads)
        fits.append(run(observations, begin(observations, 2), 3))
    for part in ("students", "items", "prior"):
        one, three = (getattr(fit, part) for fit in fits)
        assert_array_equal(one.mean, three.mean)
        assert_array_equal(one.covariance, three.covariance)


@pytest.mark.parametrize(
    ("given", "expected"), [("3", 3), ("2,4", 2), ("", None), ("0", None), ("all", None)]
)
def test_threads_as_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, given: str, expected: int | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr(blocks.os, "cpu_count", lambda: 5)
    assert blocks._count_threads() == (expected or 5)
