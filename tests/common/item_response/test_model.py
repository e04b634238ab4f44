"""The mathematics against numerical integration and draws; steps of the fit, threads."""

import importlib
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from common import item_response
from common.item_response import blocks, model
from common.item_response.model import Effects, Gaussians, State
from common.item_response.observations import sort_by_student

RNG = np.random.default_rng


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


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (1.5, 0.5), (-2.0, 3.0), (0.8, 0.6)])
def test_expectations_are_means_over_the_logit(mean: float, variance: float) -> None:
    sigmoid = 1 / (1 + np.exp(-RNG(0).normal(mean, math.sqrt(variance), 200_000)))
    moments = np.float32([mean]), np.float32([variance])
    found = model.expected_probability(*moments)
    assert found[0] == pytest.approx(sigmoid.mean(), abs=0.01)
    slope, curvature = model.expected_slope_and_curvature(
        *moments, np.array([True]), np.zeros(1, np.float32)
    )
    # The wider, the less exact.
    assert slope[0] == pytest.approx((1 - sigmoid).mean(), abs=0.01 * variance)
    assert curvature[0] == pytest.approx((sigmoid * (1 - sigmoid)).mean(), abs=0.01 * variance)
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
    rng = RNG(5)
    root = rng.normal(0, 0.5, (200, 3, 3)).astype(np.float32)
    students = Gaussians(rng.normal(1, 2, (200, 2)).astype("f"), (root @ root.mT)[:, :2, :2])
    items = Gaussians(rng.normal(0, 1, (200, 3)).astype("f"), root @ root.mT)
    effects = Effects(*rng.uniform(0.5, 1, (2, 200)), rng.normal(0, 0.1, (200, 2)))
    scaled = model.standardise(State(students, items, items, (effects,)))
    pairs = np.arange(200), np.arange(200)[::-1]
    for before, after in zip(
        blocks.logit_moments(students, items, *pairs, effects),
        blocks.logit_moments(scaled.students, scaled.items, *pairs, *scaled.effects),
        strict=True,
    ):
        assert_allclose(before, after, rtol=1e-3, atol=1e-3)
    mean, covariance = scaled.students.mean, scaled.students.covariance
    assert_allclose(mean.mean(axis=0), 0, atol=1e-5)
    assert_allclose(mean.T @ mean / 200 + covariance.mean(axis=0), np.eye(2), atol=1e-4)
    assert_allclose(scaled.prior.mean, scaled.items.mean)


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
