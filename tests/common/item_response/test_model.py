"""The mathematics: expectations, threads, a pass over answers with effects of contexts, scaling."""

import os
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from common import item_response
from common.item_response import blocks, context, model
from common.item_response.blocks import ItemResponseModel as Model
from common.item_response.blocks import Observations, number_rows, sort_answers
from common.item_response.context import SharedEffects
from common.item_response.model import Gaussians

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

RNG = np.random.default_rng


@pytest.mark.parametrize("guessing", [0.0, 0.2])
@pytest.mark.parametrize("right", [True, False])
def test_expectations_are_means_over_the_logit(guessing: float, right: bool) -> None:
    """Of knowing, and of slope and curvature of the log likelihood; those far out are finite."""
    mean = np.array([-3, -0.5, 0, 2, 0, 1.5, -2, 0.8, -60, 60, -1e4, 1e4], np.float32)
    variance = np.array([0, 0, 0, 0, 1, 0.5, 3, 0.6, 0, 0, 0, 0], np.float32)
    p_knows = model.expected_probability(mean, variance)
    slope, curvature = model.expected_slope_and_curvature(
        mean, variance, np.full(12, right), np.full(12, guessing, np.float32)
    )
    assert_array_equal(p_knows[-2:], [0, 1])
    assert np.isfinite(slope).all()
    assert (curvature > 0).all()
    x, weight = np.polynomial.hermite_e.hermegauss(40)
    knows = 1 / (1 + np.exp(-mean[:8, None] - np.sqrt(variance[:8, None]) * x))
    p = guessing + (1 - guessing) * knows
    change = (1 - guessing) * knows * (1 - knows)
    slopes = change / p if right else -change / (1 - p)
    # Fisher's information, Σ P(outcome) (d log P(outcome) / dx)².
    values = np.stack([knows, slopes, change**2 / (p * (1 - p))])
    of_knowing, of_slope, information = values @ weight / weight.sum()
    assert_allclose(p_knows[:8], of_knowing, atol=0.005)
    # The wider, the less exact.
    tolerance = 1e-4 + 0.01 * variance[:8]
    assert (np.abs(slope[:8] - of_slope) < tolerance).all()
    assert (np.abs(curvature[:8] - np.maximum(information, 0.01)) < tolerance).all()


def test_threads_are_those_given_and_change_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers and contexts that make several chunks, right or wrong and as options."""
    student, question = (a.ravel() for a in np.indices((800, 60)))
    option, key = RNG(0).integers(1, 5, len(student)), question % 4 + 1
    asked = student, question, (question // 10)[:, None]
    settings: dict[str, Any] = {"context": asked[2], "n_dimensions": 2, "n_steps": 3}
    found = []
    for n_threads in (1, 3):
        monkeypatch.setattr(blocks, "N_THREADS", n_threads)
        fitted = item_response.fit(student, question, option == key, **settings)
        options = item_response.fit_options(student, question, option, key, **settings)
        predicted = item_response.predict(fitted, *asked)
        found.append((predicted, item_response.predict_options(options, *asked)))
    for one, three in zip(*found, strict=True):
        assert_array_equal(one, three)
    n_cores = min(os.cpu_count() or 1, 8)
    for value, expected in {"3": 3, "2,4": 2, "": n_cores, "0": n_cores, "all": n_cores}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert blocks._count_threads() == expected


# ---- A pass over the answers, with effects of the context or none -------------------------------


def make_case(seed: int, n_levels: int) -> tuple[Observations, Model]:
    """Return answers in random contexts, of which few share one, and a state to begin with."""
    rng = RNG(seed)
    n_students, n_items, k, n_stages, n_answers = rng.integers(1, (7, 6, 4, 4, 41)).tolist()
    stage = rng.integers(0, n_stages, n_answers)
    labels = [rng.integers(0, 3, n_answers) * n_stages + stage for _ in range(n_levels)]
    student, item = (rng.integers(0, n, n_answers) for n in (n_students, n_items))
    _, start, levels = sort_answers(student, labels, n_students)
    is_right, is_used = (rng.random(n_answers) < share for share in (0.6, 0.8))
    root, n_shared = rng.normal(0, 0.4, (n_items, k + 1, k + 1)).astype("f"), 3 * n_stages
    state = Model(
        students=model.standard_normal(n_students, k),
        items=Gaussians(rng.normal(0.3, 0.7, (n_items, k + 1)).astype("f"), root @ root.mT),
        prior=Gaussians(np.zeros((1, k + 1)), np.eye(k + 1)[None]),
        guessing=np.full(n_items, 0.2, np.float32),
        student_ids=np.arange(n_students),
        question_ids=np.arange(n_items),
        effects=tuple(np.zeros((len(level.label), 2 + k)) for level in levels),
        variance=np.exp(rng.uniform(-4, 1, (n_levels, n_stages))),
        shared=SharedEffects(
            rng.normal(0, 0.7, n_shared), rng.uniform(0.1, 1, n_shared), np.ones(n_stages)
        ),
    )
    if levels:
        state.effects[-1][:, 1] = state.variance.sum(axis=0)[levels[-1].label % n_stages]
    return Observations(start, item, is_right, is_used, n_items, levels), state


def expand(observations: Observations, state: Model) -> Gaussians:
    """Return an item for each answer: effects are abilities, on which it has slopes."""
    items, k = state.items.take(observations.item), state.students.mean.shape[1]
    slopes, shared = [items.mean[:, :k]], np.zeros((2, len(items.mean)))
    for level, variance in zip(observations.levels, state.variance, strict=True):
        node = number_rows(level.start)
        slopes.append(np.diag(np.sqrt(variance[level.label % len(variance)]))[node])
        shared = np.array(state.shared[:2])[:, level.label[node]]
    mean = np.column_stack([*slopes, items.mean[:, k] + shared[0]])
    covariance = np.zeros((*mean.shape, mean.shape[1]))
    own = [*range(k), -1]
    covariance[np.ix_(range(len(mean)), own, own)] = items.covariance
    covariance[:, -1, -1] += shared[1]
    return Gaussians(mean.astype("f"), covariance.astype("f"))


# Variances are estimated from so few answers that nothing would stay comparable.
@patch.object(context, "estimate_variance", lambda _, old: old)
@pytest.mark.parametrize("n_levels", range(4))
@pytest.mark.parametrize("seed", range(12))
def test_effects_of_contexts_are_found_as_abilities_are(seed: int, n_levels: int) -> None:
    """Two passes: only then do the effects that the last one has found matter."""
    observations, state = make_case(seed, n_levels)
    item, levels, n = observations.item, observations.levels, len(observations.item)
    rows, student = np.arange(n, dtype=np.int32), number_rows(observations.start)
    plain = replace(observations, item=rows, n_items=n, levels=())
    k, own = state.students.mean.shape[1], [*range(state.students.mean.shape[1]), -1]
    ends = np.cumsum([k, *(len(level.label) for level in levels)])
    students = model.standard_normal(len(state.students.mean), ends[-1])
    whole = replace(state, students=students, guessing=state.guessing[item], effects=())
    for _ in range(2):
        whole = replace(whole, items=expand(observations, state))
        rest = whole.items.mean.copy()
        rest[:, own] -= state.items.mean[item]
        whole, of_answers = blocks.pass_over_answers(plain, whole)
        state, of_items = blocks.pass_over_answers(observations, state)
    assert_allclose(state.students.mean, whole.students.mean[:, :k], atol=2e-4)
    assert_allclose(state.students.covariance, whole.students.covariance[:, :k, :k], atol=2e-4)
    # What the items of all answers to a question need, less what is known of effects.
    linear, squares = model._unpack(of_answers)
    linear = linear - np.einsum("nij,nj->ni", squares, rest)
    by_item = np.eye(observations.n_items)[:, item]
    for found, expected in zip(
        model._unpack(of_items), (linear[:, own], squares[:, own][:, :, own]), strict=True
    ):
        assert_allclose(found, np.tensordot(by_item, expected, 1), atol=1e-3)
    # The logits with the effects of the first levels, and of all; none that are shared.
    items = expand(observations, replace(state, shared=SharedEffects(*np.zeros((3, 99)))))
    for level, effects, end in zip(levels, state.effects, ends[1:], strict=True):
        part = Gaussians(items.mean.copy(), items.covariance)
        part.mean[:, end:-1] = 0
        assert_allclose(
            blocks.logit_moments(
                state.students, state.items, student, item, effects[number_rows(level.start)]
            ),
            blocks.logit_moments(whole.students, part, student, rows),
            atol=1e-3,
        )


def test_scaling_the_latent_space_changes_no_prediction() -> None:
    observations, state = make_case(7, 1)
    state, _ = blocks.pass_over_answers(observations, replace(state, prior=state.items))
    student, leaf = (number_rows(part.start) for part in (observations, observations.levels[0]))
    old = state, state.effects[0][leaf]  # A copy: they are scaled in place.
    scaled = blocks.standardise(state)
    before, after = (
        blocks.logit_moments(one.students, one.items, student, observations.item, effects)
        for one, effects in (old, (scaled, scaled.effects[0][leaf]))
    )
    assert_allclose(after, before, atol=1e-3)
    mean, covariance = scaled.students.mean, scaled.students.covariance
    assert_allclose(mean.mean(axis=0), 0, atol=1e-5)
    spread = mean.T @ mean / len(mean) + covariance.mean(axis=0)
    assert_allclose(spread, np.eye(mean.shape[1]), atol=1e-4)
    assert_allclose(scaled.prior.mean, scaled.items.mean)
