"""A step of a fit gives the same result with any number of threads.

Effects of contexts have the same result as further abilities, and scaling changes no prediction.
"""

from dataclasses import dataclass, replace
from itertools import product
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
    option = RNG(0).integers(1, 5, len(student))
    key = question % 4 + 1
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


# ---- A pass over the answers, with 0 to 3 levels of contexts ------------------------------------


def make_case(seed: int, n_levels: int) -> tuple[Observations, State]:
    """Return a few answers in random contexts, and a state to begin with.

    The numbers of students, items, dimensions k, stages and answers are random: at most 6, 5, 3, 3
    and 40.
    """
    rng = RNG(seed)
    n_students, n_items, k, n_stages, n_answers = rng.integers(1, [7, 6, 4, 4, 41]).tolist()
    stage = rng.integers(0, n_stages, n_answers)
    # A label encodes context and stage: the stage is label % n_stages. See `context.Level`.
    labels = [rng.integers(0, 3, n_answers) * n_stages + stage for _ in range(n_levels)]
    student = rng.integers(0, n_students, n_answers)
    item = rng.integers(0, n_items, n_answers)
    _, start, levels = sort_answers(student, labels, n_students)
    is_right = rng.random(n_answers) < 0.6
    is_used = rng.random(n_answers) < 0.8
    root = rng.normal(0, 0.4, (n_items, k + 1, k + 1)).astype("f")
    # There are three contexts, each in every stage.
    n_shared = 3 * n_stages
    state = State(
        students=model.standard_normal(n_students, k),
        items=Gaussians(rng.normal(0.3, 0.7, (n_items, k + 1)).astype("f"), root @ root.mT),
        prior=Gaussians(np.zeros((1, k + 1)), np.eye(k + 1)[None]),
        guessing=np.full(n_items, 0.2, np.float32),
        # Mean, variance and the k covariances with the abilities.
        effects=tuple(np.zeros((len(level.label), 2 + k)) for level in levels),
        variance=np.exp(rng.uniform(-4, 1, (n_levels, n_stages))),
        shared=SharedEffects(
            mean=rng.normal(0, 0.7, n_shared),
            variance=rng.uniform(0.1, 1, n_shared),
            prior=np.ones(n_stages),
        ),
    )
    if levels:
        # Effects of leaves begin with the prior variance of all levels together.
        state.effects[-1][:, 1] = state.variance.sum(axis=0)[levels[-1].label % n_stages]
    return Observations(start, item, is_right, is_used, n_items, levels), state


def expand(observations: Observations, state: State) -> Gaussians:
    """Return one item for each answer, as if effects of contexts were abilities of the student.

    Its slopes on the first k abilities are those of the answer's own item. For each effect, it has
    one more slope: the standard deviation of the effect if the answer is in its context, else 0.
    """
    items = state.items.take(observations.item)
    k = state.students.mean.shape[1]
    slopes = [items.mean[:, :k]]
    shared = np.zeros((2, len(items.mean)))
    for level, variance in zip(observations.levels, state.variance, strict=True):
        # Each answer lies in one context of this level, its node. Only this node's effect has a
        # slope for the answer; the slopes of all other effects are 0.
        node = number_rows(level.start)
        slopes.append(np.diag(np.sqrt(variance[level.label % len(variance)]))[node])
        # Mean and variance of the shared effect of each answer. Those of the last level remain, as
        # only this level has shared effects.
        shared = np.array(state.shared[:2])[:, level.label[node]]
    # A shared effect adds to the intercept.
    mean = np.column_stack([*slopes, items.mean[:, k] + shared[0]])
    # Slopes and intercept of the own item have its covariance. Slopes on effects are known exactly.
    covariance = np.zeros((*mean.shape, mean.shape[1]))
    of_item = [*range(k), -1]
    covariance[np.ix_(range(len(mean)), of_item, of_item)] = items.covariance
    covariance[:, -1, -1] += shared[1]
    return Gaussians(mean.astype("f"), covariance.astype("f"))


@dataclass(frozen=True)
class TwoWays:
    """The same answers, fitted in two ways that have the same result.

    The first way uses effects of contexts. The second way takes each effect as an ability on which
    only the answers in its context have a slope.
    """

    observations: Observations
    # Result of the first way, and the sums of each item.
    state: State
    item_sums: np.ndarray
    # Result of the second way, in which each answer has an item of its own, and the sums of these
    # items.
    expanded: State
    answer_sums: np.ndarray
    # Means of the expanded items minus those of the original items, which leaves the effects.
    from_effects: np.ndarray

    @property
    def k(self) -> int:
        """Number of abilities without effects."""
        return int(self.state.students.mean.shape[1])

    @property
    def own_dimensions(self) -> list[int]:
        """The dimensions of an expanded item that the item itself has: slopes and intercept."""
        return [*range(self.k), -1]


@pytest.fixture(scope="module", params=product(range(12), range(4)), ids=str)
def two_ways(request: pytest.FixtureRequest) -> TwoWays:
    """Make two passes over random answers in both ways, for each seed and number of levels."""
    seed, n_levels = request.param
    observations, state = make_case(seed, n_levels)
    item = observations.item
    n_answers = len(item)
    without_contexts = replace(
        observations, item=np.arange(n_answers, dtype=np.int32), n_items=n_answers, levels=()
    )
    k = state.students.mean.shape[1]
    own_dimensions = [*range(k), -1]
    n_effects = sum(len(level.label) for level in observations.levels)
    students = model.standard_normal(len(state.students.mean), k + n_effects)
    expanded = replace(state, students=students, guessing=state.guessing[item], effects=())
    # The variances of effects stay fixed: estimates from so few answers would differ too much.
    with patch.object(context, "estimate_variance", lambda _, old: old):
        # The effects that the first pass finds matter only in the second pass.
        for _ in range(2):
            expanded = replace(expanded, items=expand(observations, state))
            from_effects = expanded.items.mean.copy()
            from_effects[:, own_dimensions] -= state.items.mean[item]
            expanded, answer_sums = steps.pass_over_answers(without_contexts, expanded)
            state, item_sums = steps.pass_over_answers(observations, state)
    return TwoWays(
        observations=observations,
        state=state,
        item_sums=item_sums,
        expanded=expanded,
        answer_sums=answer_sums,
        from_effects=from_effects,
    )


def test_abilities_are_the_same_with_effects_as_abilities(two_ways: TwoWays) -> None:
    k = two_ways.k
    students = two_ways.state.students
    expanded = two_ways.expanded.students
    assert_allclose(students.mean, expanded.mean[:, :k], atol=2e-4)
    assert_allclose(students.covariance, expanded.covariance[:, :k, :k], atol=2e-4)


def test_sums_of_an_item_are_those_of_its_answers_without_the_part_of_effects(
    two_ways: TwoWays,
) -> None:
    """The sums are the linear terms b and the matrices A of quadratic log likelihoods.

    Taking the effects out of an answer's parameters subtracts A · from_effects from its b.
    """
    own = two_ways.own_dimensions
    linear, squares = model.unpack_sums(two_ways.answer_sums)
    linear = linear - np.einsum("nij,nj->ni", squares, two_ways.from_effects)
    is_of_item = np.eye(two_ways.observations.n_items)[:, two_ways.observations.item]
    expected_linear = np.tensordot(is_of_item, linear[:, own], 1)
    expected_squares = np.tensordot(is_of_item, squares[:, own][:, :, own], 1)
    item_linear, item_squares = model.unpack_sums(two_ways.item_sums)
    assert_allclose(item_linear, expected_linear, atol=1e-3)
    assert_allclose(item_squares, expected_squares, atol=1e-3)


def test_logits_with_effects_of_the_first_levels_are_the_same(two_ways: TwoWays) -> None:
    """Logits with the effects of the first 1, 2, … levels agree in both ways.

    No effects are shared here. In the second way, slopes on the effects of deeper levels are 0.
    """
    observations = two_ways.observations
    levels = observations.levels
    state = two_ways.state
    student = number_rows(observations.start)
    rows = np.arange(len(observations.item), dtype=np.int32)
    # Zeros for 99 labels, which is more than there are.
    without_shared = replace(state, shared=SharedEffects(*np.zeros((3, 99))))
    items = expand(observations, without_shared)
    # For each level, the position in the dimensions after its last effect.
    ends = two_ways.k + np.cumsum([len(level.label) for level in levels])
    for level, effects, end in zip(levels, state.effects, ends, strict=True):
        first_levels = Gaussians(items.mean.copy(), items.covariance)
        first_levels.mean[:, end:-1] = 0
        assert_allclose(
            steps.logit_moments(
                state.students,
                state.items,
                student,
                observations.item,
                effects[number_rows(level.start)],
            ),
            steps.logit_moments(two_ways.expanded.students, first_levels, student, rows),
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
    mean = scaled.students.mean
    covariance = scaled.students.covariance
    assert_allclose(mean.mean(axis=0), 0, atol=1e-5)
    spread = mean.T @ mean / len(mean) + covariance.mean(axis=0)
    assert_allclose(spread, np.eye(mean.shape[1]), atol=1e-4)
    # The prior, which was set to the items above, is scaled in the same way.
    assert_allclose(scaled.prior.mean, scaled.items.mean)
