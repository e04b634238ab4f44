"""A step of a fit: a pass over the answers, effects of contexts, scaling, several threads."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from common import threads
from common.item_response import ItemResponse, ItemResponseOptions, context, model, steps
from common.item_response.context import SharedEffects
from common.item_response.model import Gaussians
from common.item_response.observations import Observations, number_rows, sort_answers
from common.item_response.steps import State

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

RNG = np.random.default_rng


@pytest.mark.parametrize("predicts", ["is_correct", "option"])
def test_the_number_of_threads_changes_no_result(
    monkeypatch: pytest.MonkeyPatch, predicts: str
) -> None:
    # So many answers and contexts make several chunks.
    student, question = (a.ravel() for a in np.indices((800, 60)))
    option, key = RNG(0).integers(1, 5, len(student)), question % 4 + 1
    quiz = question // 10

    def fit_and_predict(n_threads: int) -> np.ndarray:
        monkeypatch.setattr(threads, "N_THREADS", n_threads)
        settings: dict[str, Any] = {"n_dimensions": 2, "n_steps": 3, "guessing": 0.0}
        if predicts == "is_correct":
            right_or_wrong = ItemResponse(**settings)
            right_or_wrong.fit(student, question, option == key, context=quiz)
            return right_or_wrong.predict_proba(student, question, context=quiz)
        options = ItemResponseOptions(**settings)
        options.fit(student, question, option, key, context=quiz)
        return options.predict_proba(student, question, context=quiz)

    assert_array_equal(fit_and_predict(1), fit_and_predict(3))


# ---- A pass over the answers, with effects of the context or none -------------------------------


def make_case(seed: int, n_levels: int) -> tuple[Observations, State]:
    """Return a few answers in random contexts, and a state to begin with.

    Numbers of students, items, dimensions k, stages and answers are drawn up to 6, 5, 3, 3 and 40.
    """
    rng = RNG(seed)
    n_students, n_items, k, n_stages, n_answers = rng.integers(1, [7, 6, 4, 4, 41]).tolist()
    stage = rng.integers(0, n_stages, n_answers)
    labels = [rng.integers(0, 3, n_answers) * n_stages + stage for _ in range(n_levels)]
    student = rng.integers(0, n_students, n_answers)
    item = rng.integers(0, n_items, n_answers)
    _, start, levels = sort_answers(student, labels, n_students)
    is_right = rng.random(n_answers) < 0.6
    is_used = rng.random(n_answers) < 0.8
    root = rng.normal(0, 0.4, (n_items, k + 1, k + 1)).astype("f")
    n_shared = 3 * n_stages
    state = State(
        students=model.standard_normal(n_students, k),
        items=Gaussians(rng.normal(0.3, 0.7, (n_items, k + 1)).astype("f"), root @ root.mT),
        prior=Gaussians(np.zeros((1, k + 1)), np.eye(k + 1)[None]),
        guessing=np.full(n_items, 0.2, np.float32),
        effects=tuple(np.zeros((len(level.label), 2 + k)) for level in levels),
        variance=np.exp(rng.uniform(-4, 1, (n_levels, n_stages))),
        shared=SharedEffects(
            rng.normal(0, 0.7, n_shared), rng.uniform(0.1, 1, n_shared), np.ones(n_stages)
        ),
    )
    if levels:
        state.effects[-1][:, 1] = state.variance.sum(axis=0)[levels[-1].label % n_stages]
    return Observations(start, item, is_right, is_used, n_items, levels), state


def expand(observations: Observations, state: State) -> Gaussians:
    """Return an item for each answer, for which effects are further abilities of the student.

    The slope on such an ability is the standard deviation of the effect. It is 0 if the answer is
    not in the context of the effect.
    """
    items = state.items.take(observations.item)
    k = state.students.mean.shape[1]
    slopes = [items.mean[:, :k]]
    shared = np.zeros((2, len(items.mean)))
    for level, variance in zip(observations.levels, state.variance, strict=True):
        node = number_rows(level.start)
        slopes.append(np.diag(np.sqrt(variance[level.label % len(variance)]))[node])
        shared = np.array(state.shared[:2])[:, level.label[node]]
    mean = np.column_stack([*slopes, items.mean[:, k] + shared[0]])
    covariance = np.zeros((*mean.shape, mean.shape[1]))
    of_item = [*range(k), -1]
    covariance[np.ix_(range(len(mean)), of_item, of_item)] = items.covariance
    covariance[:, -1, -1] += shared[1]
    return Gaussians(mean.astype("f"), covariance.astype("f"))


# The variances of effects stay fixed: estimates from so few answers would differ too much.
@patch.object(context, "estimate_variance", lambda _, old: old)
@pytest.mark.parametrize("n_levels", range(4))
@pytest.mark.parametrize("seed", range(12))
def test_effects_of_contexts_are_found_as_abilities_are(seed: int, n_levels: int) -> None:
    """An effect is an ability on which only the answers in its context have a slope.

    A pass without contexts, for which effects are abilities, therefore finds the same.
    """
    observations, state = make_case(seed, n_levels)
    item = observations.item
    levels = observations.levels
    n_answers = len(item)
    rows = np.arange(n_answers, dtype=np.int32)
    student = number_rows(observations.start)
    plain = replace(observations, item=rows, n_items=n_answers, levels=())
    k = state.students.mean.shape[1]
    # The dimensions of an expanded item that are those of the item itself: slopes and intercept.
    of_item = [*range(k), -1]
    # The dimensions of the abilities, and of the effects of each level, end here.
    ends = np.cumsum([k, *(len(level.label) for level in levels)])
    students = model.standard_normal(len(state.students.mean), ends[-1])
    whole = replace(state, students=students, guessing=state.guessing[item], effects=())
    # The effects that the first pass finds matter only in the second pass.
    for _ in range(2):
        whole = replace(whole, items=expand(observations, state))
        rest = whole.items.mean.copy()
        rest[:, of_item] -= state.items.mean[item]
        whole, of_answers = steps.pass_over_answers(plain, whole)
        state, of_items = steps.pass_over_answers(observations, state)
    assert_allclose(state.students.mean, whole.students.mean[:, :k], atol=2e-4)
    assert_allclose(state.students.covariance, whole.students.covariance[:, :k, :k], atol=2e-4)
    # An item's sums are those of the expanded items of its answers, without the part that effects
    # explain.
    linear, squares = model._unpack(of_answers)
    linear = linear - np.einsum("nij,nj->ni", squares, rest)
    by_item = np.eye(observations.n_items)[:, item]
    for found, expected in zip(
        model._unpack(of_items),
        (linear[:, of_item], squares[:, of_item][:, :, of_item]),
        strict=True,
    ):
        assert_allclose(found, np.tensordot(by_item, expected, 1), atol=1e-3)
    # Logits with the effects of the first level, of the first two levels, and so on. Shared effects
    # are left out.
    items = expand(observations, replace(state, shared=SharedEffects(*np.zeros((3, 99)))))
    for level, effects, end in zip(levels, state.effects, ends[1:], strict=True):
        part = Gaussians(items.mean.copy(), items.covariance)
        part.mean[:, end:-1] = 0
        assert_allclose(
            steps.logit_moments(
                state.students, state.items, student, item, effects[number_rows(level.start)]
            ),
            steps.logit_moments(whole.students, part, student, rows),
            atol=1e-3,
        )


def test_scaling_the_latent_space_changes_no_prediction() -> None:
    observations, state = make_case(7, 1)
    state, _ = steps.pass_over_answers(observations, replace(state, prior=state.items))
    student = number_rows(observations.start)
    leaf = number_rows(observations.levels[0].start)

    def logit_moments(state: State) -> tuple[np.ndarray, np.ndarray]:
        effects = state.effects[0][leaf]
        return steps.logit_moments(state.students, state.items, student, observations.item, effects)

    # Scaling changes effects in place.
    before = logit_moments(state)
    scaled = steps.standardise(state)
    assert_allclose(logit_moments(scaled), before, atol=1e-3)
    mean, covariance = scaled.students.mean, scaled.students.covariance
    assert_allclose(mean.mean(axis=0), 0, atol=1e-5)
    spread = mean.T @ mean / len(mean) + covariance.mean(axis=0)
    assert_allclose(spread, np.eye(mean.shape[1]), atol=1e-4)
    assert_allclose(scaled.prior.mean, scaled.items.mean)
