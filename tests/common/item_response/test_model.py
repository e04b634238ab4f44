"""The mathematics: against numerical integration and draws, and against a dense Gaussian solve."""

import importlib
import math
import os
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from common import item_response
from common.item_response import blocks, context, model
from common.item_response.model import Effects, Gaussians, SharedEffects, State
from common.item_response.observations import Observations, sort_by_student

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
        likelihood: np.ndarray = np.log(p if right else 1 - p)
        return likelihood

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
    moments = np.array([mean], np.float32), np.array([variance], np.float32)
    found = model.expected_probability(*moments)
    assert found[0] == pytest.approx(sigmoid.mean(), abs=0.01)
    slope, curvature = model.expected_slope_and_curvature(
        *moments, np.array([True]), np.zeros(1, np.float32)
    )
    # The wider, the less exact.
    assert slope[0] == pytest.approx((1 - sigmoid).mean(), abs=0.01 * variance)
    assert curvature[0] == pytest.approx((sigmoid * (1 - sigmoid)).mean(), abs=0.01 * variance)
    far = model.expected_probability(np.array([-1e4, 1e4]), np.zeros(2))
    assert_array_equal(far, [0, 1])


def test_the_prior_is_that_of_the_answered_items_of_each_group() -> None:
    rng, group = RNG(4), np.repeat([0, 1, 2], [4000, 4000, 10])
    centre = np.array([[1.0, 0.5], [-1.0, 2.0], [9.0, 9.0]])
    items = Gaussians(
        centre[group] + rng.normal(0, [0.5, 1.0], (8010, 2)), np.tile(0.1 * np.eye(2), (8010, 1, 1))
    )
    old = Gaussians(np.full((3, 2), 7.0), np.tile(np.eye(2), (3, 1, 1)))
    prior = model.estimate_prior(items, group, group < 2, old)
    assert_allclose(prior.mean, np.append(centre[:2], [[7, 7]], axis=0), atol=0.1)
    # What the items vary by, and what is not known about each.
    assert_allclose(prior.covariance[:2], np.tile(np.diag([0.35, 1.1]), (2, 1, 1)), atol=0.1)
    assert_array_equal(prior.covariance[2], np.eye(2))


def test_scaling_the_latent_space_changes_no_prediction() -> None:
    rng = RNG(5)
    root = rng.normal(0, 0.5, (200, 3, 3)).astype(np.float32)
    students = Gaussians(rng.normal(1, 2, (200, 2)).astype("f"), (root @ root.mT)[:, :2, :2])
    items = Gaussians(rng.normal(0, 1, (200, 3)).astype("f"), root @ root.mT)
    own, variance = rng.uniform(0.5, 1, (2, 200))
    effects = Effects(own, variance, rng.normal(0, 0.1, (200, 2)))
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


# ---- A pass over the answers, with effects of the context or none -------------------------------


class Case(NamedTuple):
    """Answers in random contexts, of which few share one and few students have many."""

    observations: Observations
    items: Gaussians
    variance: np.ndarray
    shared: SharedEffects

    def fixed(self) -> np.ndarray:
        """Return the mean of what students share in the context of each answer."""
        if not self.observations.levels:
            return np.zeros(len(self.observations.item))
        result: np.ndarray = self.shared.mean[self.label_of_answers()]
        return result

    def label_of_answers(self) -> np.ndarray:
        """Return the label in the last level."""
        result: np.ndarray = self.observations.levels[-1].label[self.observations.leaf()]
        return result


def make_case(seed: int, k: int, n_levels: int, n_kinds: int, n_answers: int) -> Case:
    rng = RNG(seed)
    n_students, n_items = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    student = rng.integers(0, n_students, n_answers)
    kind = rng.integers(0, n_kinds, n_answers).astype(np.int8)
    observations = sort_by_student(
        student,
        rng.integers(0, n_items, n_answers),
        rng.random(n_answers) < 0.6,
        rng.random(n_answers) < 0.8,
        (n_students + 1, n_items),
        [rng.integers(0, 3, n_answers) * n_kinds + kind for _ in range(n_levels)],
        kind,
    )
    root = rng.normal(0, 0.4, (n_items, k + 1, k + 1)).astype(np.float32)
    items = Gaussians(rng.normal(0.3, 0.8, (n_items, k + 1)).astype(np.float32), root @ root.mT)
    variance = np.exp(rng.uniform(-4, 1, (n_levels, n_kinds)))
    # One label more than there are, and what is known of contexts without answers.
    n_shared = 5 * n_kinds
    shared = SharedEffects(
        rng.normal(0, 0.7, n_shared).astype("f"),
        rng.uniform(0.1, 1, n_shared).astype("f"),
        np.exp(rng.uniform(-3, 1, n_kinds)),
    )
    return Case(observations, items, variance, shared)


class Dense:
    """The joint posterior of all abilities and effects, from one large system of equations."""

    def __init__(self, case: Case, weight: np.ndarray, kappa: np.ndarray) -> None:
        observations, items, variance, _ = case
        fixed = case.fixed()
        d = items.mean.shape[1]
        k, n = d - 1, observations.n_students
        levels = observations.levels
        self.k, self.n, self.sizes = k, n, [len(level) for level in levels]
        size = n * k + sum(self.sizes)
        # Row j of `total`: which variables add up to the total effect at node j.
        self.total = np.zeros((sum(self.sizes), size))
        prior = np.ones(size)
        self.of_level, above = [], slice(0, 0)
        for depth, level in enumerate(levels):
            nodes = slice(above.stop, above.stop + len(level))
            if depth:
                self.total[nodes] = self.total[above][level.parent]
            self.total[nodes, n * k + nodes.start : n * k + nodes.stop] += np.eye(len(level))
            prior[n * k :][nodes] = 1 / variance[depth, level.kind]
            self.of_level.append(nodes)
            above = nodes
        precision, linear = np.diag(prior), np.zeros(size)
        second = items.covariance + items.mean[:, :, None] * items.mean[:, None, :]
        if levels:
            leaf = observations.leaf() + self.of_level[-1].start
        for row, (student, item) in enumerate(
            zip(observations.student(), observations.item, strict=True)
        ):
            # (ability, 1, total effect) is design @ variables + constant.
            design, constant = np.zeros((k + 2, size)), np.append(np.eye(k + 1)[k], fixed[row])
            design[:k, student * k : (student + 1) * k] = np.eye(k)
            if levels:
                design[k + 1] = self.total[leaf[row]]
            slopes = np.append(items.mean[item], 1)
            square = np.block([[second[item], slopes[:-1, None]], [slopes[None]]])
            precision += weight[row] * design.T @ square @ design
            linear += design.T @ (kappa[row] * slopes - weight[row] * square @ constant)
        self.covariance = np.linalg.inv(precision)
        self.mean = self.covariance @ linear

    def students(self) -> tuple[np.ndarray, np.ndarray]:
        shape = self.n, self.k, self.n, self.k
        abilities = self.n * self.k
        own = np.arange(self.n)
        covariance = self.covariance[:abilities, :abilities].reshape(shape)[own, :, own]
        return self.mean[:abilities].reshape(self.n, self.k), covariance

    def effects(self, depth: int, student: np.ndarray) -> Effects:
        total = self.total[self.of_level[depth]]
        with_all = total @ self.covariance
        ability = student[:, None] * self.k + np.arange(self.k)
        return Effects(
            total @ self.mean,
            np.einsum("ij,ij->i", with_all, total),
            np.take_along_axis(with_all, ability, axis=1),
        )

    def sums(self, case: Case) -> np.ndarray:
        """Number of nodes, Σ E[u²], Σ (share of the prior variance removed)²."""
        result = np.zeros((*case.variance.shape, 3))
        own = slice(self.n * self.k, None)
        mean, own_variance = self.mean[own], np.diag(self.covariance)[own]
        for depth, level in enumerate(case.observations.levels):
            for node, kind in enumerate(level.kind):
                m, v = (x[self.of_level[depth]][node] for x in (mean, own_variance))
                removed = 1 - v / case.variance[depth, kind]
                result[depth, kind] += 1, m * m + v, removed * removed
        return result


def dense_shared(
    case: Case, weight: np.ndarray, kappa: np.ndarray, ability: np.ndarray, total_above: np.ndarray
) -> SharedEffects:
    """Find what students share, given abilities and total effects above those of the last level.

    The effects of the last level and the shared ones are unknowns of one system of equations.
    """
    observations, items, variance, shared = case
    leaves, leaf = observations.levels[-1], observations.leaf()
    student, item = observations.student(), observations.item
    n, n_shared, n_kinds = len(leaves), len(shared.mean), variance.shape[1]
    kind = np.arange(n_shared) % n_kinds
    design = np.eye(n)[leaf], np.eye(n_shared)[case.label_of_answers()]
    both = np.concatenate(design, axis=1)
    known = (items.mean[item, :-1] * ability[student]).sum(axis=1) + items.mean[item, -1]
    known += total_above[leaf]
    prior = np.append(variance[-1, leaves.kind], shared.prior[kind])
    covariance = np.linalg.inv(np.diag(1 / prior) + both.T * weight @ both)
    mean = (covariance @ both.T @ (kappa - weight * known))[n:]
    of_each = np.diag(covariance)[n:].copy()
    has_answers = weight @ design[1] > 0
    removed = 1 - of_each / shared.prior[kind]
    sums = np.zeros((n_kinds, 3))
    columns = np.stack([np.ones(n_shared), mean**2 + of_each, removed**2], axis=1)
    np.add.at(sums, kind[has_answers], columns[has_answers])
    prior = context.estimate_variance(sums, shared.prior)
    of_each[~has_answers] = prior[kind[~has_answers]]
    return SharedEffects(mean, of_each, prior)


def begin(case: Case) -> State:
    """Any state with the case's items, variances and shared effects."""
    observations, items, variance, shared = case
    k, rng = items.mean.shape[1] - 1, RNG(1)
    prior = Gaussians(np.full((1, k + 1), 0.3), np.eye(k + 1)[None])
    state = State(model.standard_normal(observations.n_students, k), items, prior)
    if not observations.levels:
        return state
    effects = tuple(
        Effects(
            rng.normal(0, 0.5, len(level)).astype("f"),
            rng.uniform(0.5, 1, len(level)).astype("f"),
            rng.normal(0, 0.1, (len(level), k)).astype("f"),
        )
        for level in observations.levels
    )
    return replace(state, effects=effects, variance=variance, shared=shared)


def expand(case: Case, state: State, guessing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return w of every answer, and κ, from what is expected of its logit."""
    observations, items, _, shared = case
    student, item = observations.student(), observations.item
    mean, spread = blocks.logit_moments(state.students, items, student, item)
    if observations.levels:
        old, leaf = state.effects[-1], observations.leaf()
        mean += old.mean[leaf] + case.fixed()
        spread += old.variance[leaf] + shared.variance[case.label_of_answers()]
        spread += 2 * (old.with_ability[leaf] * items.mean[item, :-1]).sum(axis=1)
    slope, curvature = model.expected_slope_and_curvature(
        mean, np.maximum(spread, 0), observations.is_right, guessing[item]
    )
    used = observations.is_used
    return curvature * used, (slope + curvature * mean) * used


def assert_same(found: Any, expected: Any, by: float) -> None:
    """Compare all arrays of two posteriors."""
    if isinstance(found, Gaussians):
        found, expected = vars(found).values(), vars(expected).values()
    for values, of_dense in zip(found, expected, strict=True):
        assert_allclose(values, of_dense, atol=by, rtol=5 * by)


@pytest.mark.parametrize("own_variance", [None, 1e-6])
@given(
    seed=st.integers(0, 2**32),
    k=st.integers(1, 3),
    n_levels=st.integers(0, 3),
    n_kinds=st.integers(1, 3),
    n_answers=st.integers(1, 40),
)
@settings(max_examples=60)
def test_a_pass_over_the_answers_is_exact(
    own_variance: float | None, seed: int, k: int, n_levels: int, n_kinds: int, n_answers: int
) -> None:
    """Also where nothing but rounding tells the students' own effects from 0."""
    case = make_case(seed, k, n_levels, n_kinds, n_answers)
    if own_variance is not None:
        case = case._replace(variance=np.full_like(case.variance, own_variance))
    observations, variance = case.observations, case.variance
    state, guessing = begin(case), np.full(observations.n_items, 0.2, np.float32)
    passed, sums = blocks.pass_over_answers(observations, state, guessing)

    weight, kappa = expand(case, state, guessing)
    dense = Dense(case, weight, kappa)
    ability, covariance = dense.students()
    assert_same(passed.students, Gaussians(ability, covariance), 2e-4)
    student, item = observations.student(), observations.item
    total = Effects(case.fixed(), np.zeros(n_answers), np.zeros((n_answers, k)))
    if n_levels:
        owner = [observations.student()[level.start[:-1]] for level in observations.levels]
        effects = [dense.effects(depth, of_nodes) for depth, of_nodes in enumerate(owner)]
        for found, expected in zip(passed.effects, effects, strict=True):
            assert_same(found, expected, 1e-4)
        expected_variance = context.estimate_variance(dense.sums(case), variance)
        assert passed.variance is not None
        assert_allclose(passed.variance, expected_variance, rtol=0.02)
        above: np.ndarray = np.zeros(len(owner[-1]))
        if n_levels > 1:
            above = effects[-2].mean[observations.levels[-1].parent]
        assert passed.shared is not None
        assert_same(passed.shared, dense_shared(case, weight, kappa, ability, above), 1e-3)
        # The last ones are of contexts that no answer was given in.
        assert not passed.shared.mean[-2 * n_kinds :].any()
        assert_allclose(passed.shared.variance[-2 * n_kinds :], np.tile(passed.shared.prior, 2))
        leaf = observations.leaf()
        own = effects[-1]
        total = Effects(total.mean + own.mean[leaf], own.variance[leaf], own.with_ability[leaf])
    # Given all that, the items' (slopes, intercept), each by itself, with its prior.
    found_items = model.update_items(sums, state.prior, np.zeros(observations.n_items, int))
    t = np.pad(ability[student], [(0, 0), (0, 1)], constant_values=1)
    of_t = np.pad(covariance[student], [(0, 0), (0, 1), (0, 1)])
    with_total = total.mean[:, None] * t + np.pad(total.with_ability, [(0, 0), (0, 1)])
    for j in range(observations.n_items):
        rows = item == j
        second = of_t[rows] + t[rows, :, None] * t[rows, None]
        precision = np.eye(k + 1) + (weight[rows, None, None] * second).sum(axis=0)
        linear = 0.3 + kappa[rows] @ t[rows] - weight[rows] @ with_total[rows]
        assert_allclose(found_items.mean[j], np.linalg.solve(precision, linear), atol=1e-3)
        assert_allclose(found_items.covariance[j], np.linalg.inv(precision), atol=1e-3)


@pytest.mark.parametrize("has_effects", [False, True])
def test_moments_of_logits_are_those_of_joint_draws(has_effects: bool) -> None:
    rng, k = RNG(2), 2
    root, centre = rng.normal(0, 0.5, (2, k + 1, k + 1)), rng.standard_normal((2, k + 1))
    joint, of_item = root @ root.mT
    items = Gaussians(centre[1:], of_item[None])
    students = Gaussians(centre[:1, :k], joint[None, :k, :k])
    effects = Effects(centre[0, k:], joint[k:, k], joint[k:, :k])
    draws = rng.multivariate_normal(centre[0], joint, 400_000)
    z = rng.multivariate_normal(centre[1], of_item, 400_000)
    logit = (draws[:, :k] * z[:, :k]).sum(axis=1) + z[:, k] + has_effects * draws[:, k]
    zero = np.zeros(1, int)
    mean, variance = blocks.logit_moments(
        students, items, zero, zero, effects if has_effects else None
    )
    assert mean[0] == pytest.approx(logit.mean(), abs=0.02)
    assert variance[0] == pytest.approx(logit.var(), rel=0.02)


def test_variances_come_to_rest_where_they_are_those_of_the_effects() -> None:
    """Where many contexts have the same few answers, the estimate is the likelihood's maximum."""
    n, w, planted = 100_000, 0.5, 0.3
    # The likelihood of one context is a Gaussian: kappa / w = effect + noise of variance 1 / w.
    kappa = w * RNG(0).normal(0, np.sqrt(planted + 1 / w), n)
    variance = np.full((1, 1), 0.05)
    for _ in range(40):
        precision = 1 / variance[0, 0] + w
        square = (kappa / precision) ** 2 + 1 / precision
        removed = 1 - 1 / precision / variance[0, 0]
        sums = np.array([[[n, square.sum(), n * removed * removed]]])
        variance = context.estimate_variance(sums, variance)
    assert variance[0, 0] == pytest.approx(planted, abs=0.02)
