"""The mathematics against numerical integration and draws; steps of the fit, threads."""

import importlib
import math
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from common import item_response
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


def test_threads_are_those_of_the_environment_and_change_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Answers and contexts that make several chunks, right or wrong and as options."""
    rng = RNG(0)
    student, question = (a.ravel() for a in np.indices((800, 60)))
    option, key = rng.integers(1, 5, len(student)), question % 4 + 1
    columns = student, question, option, key
    quiz = (question // 10)[:, None]
    found, counts = {}, {}
    try:
        for given in ("3", "1", "2,4", "", "0", "all"):
            monkeypatch.setenv("OMP_NUM_THREADS", given)
            importlib.reload(blocks)
            counts[given] = blocks.N_THREADS
            if given in ("3", "1"):
                fitted = item_response.fit(
                    student, question, option == key, n_dimensions=2, context=quiz, n_steps=3
                )
                options = item_response.fit_options(*columns, n_dimensions=2, context=quiz)
                found[given] = (
                    item_response.predict(fitted, student, question, quiz),
                    item_response.predict_options(options, student, question, quiz),
                )
    finally:
        monkeypatch.undo()
        importlib.reload(blocks)
    default = min(os.cpu_count() or 1, 8)
    assert list(counts.values()) == [3, 1, 2, default, default, default]
    for one, three in zip(found["1"], found["3"], strict=True):
        assert_array_equal(one, three)
