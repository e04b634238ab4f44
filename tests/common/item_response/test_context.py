"""Effects of the context: elimination in trees, against a dense Gaussian solve."""

from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from common.item_response import blocks, context, model
from common.item_response.model import Effects, Gaussians, SharedEffects, State
from common.item_response.observations import Observations, sort_by_student

RNG = np.random.default_rng


class Case(NamedTuple):
    """Answers in random contexts, of which few share one and few students have many."""

    observations: Observations
    items: Gaussians
    variance: np.ndarray
    shared: SharedEffects

    def fixed(self) -> np.ndarray:
        """Return the mean of what students share in the context of each answer."""
        leaves = self.observations.levels[-1]
        result: np.ndarray = self.shared.mean[leaves.label][self.observations.leaf()]
        return result


def make_case(seed: int, k: int, n_levels: int, n_kinds: int, n_answers: int) -> Case:
    rng = RNG(seed)
    n_students, n_items = rng.integers(1, 7), rng.integers(1, 6)
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
    """The joint posterior of all abilities and effects, from one large system of equations.

    To the logit of each answer something known is added, shape (answers,).
    """

    def __init__(
        self, case: Case, weight: np.ndarray, kappa: np.ndarray, fixed: np.ndarray
    ) -> None:
        observations, items, variance, _ = case
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
        leaf = observations.leaf() + self.of_level[-1].start
        for row, (student, item) in enumerate(
            zip(observations.student(), observations.item, strict=True)
        ):
            # (ability, 1, total effect) is design @ variables + constant.
            design, constant = np.zeros((k + 2, size)), np.append(np.eye(k + 1)[k], fixed[row])
            design[:k, student * k : (student + 1) * k] = np.eye(k)
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


def student_of_nodes(observations: Observations) -> list[np.ndarray]:
    return [observations.student()[level.start[:-1]] for level in observations.levels]


CASES = given(
    st.builds(
        make_case,
        seed=st.integers(0, 2**32),
        k=st.integers(1, 3),
        n_levels=st.integers(1, 3),
        n_kinds=st.integers(1, 3),
        n_answers=st.integers(1, 40),
    )
)


def assert_same_effects(found: Effects, expected: Effects) -> None:
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, atol=1e-4, rtol=1e-4)


def draw_answers(observations: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Return any w and κ."""
    rng = RNG(0)
    weight = rng.uniform(0.01, 2, len(observations.item)) * observations.is_used
    kappa = rng.normal(0, 1, len(weight)) * observations.is_used
    return weight.astype("f"), kappa.astype("f")


def solve(
    case: Case, weight: np.ndarray, kappa: np.ndarray, shared: SharedEffects
) -> tuple[list[Any], Gaussians, list[Effects], np.ndarray]:
    """Eliminate and restore the effects, with what students share as it is."""
    observations, items, variance, _ = case
    kappa = kappa - weight * case._replace(shared=shared).fixed()
    moments = model.moments(items)
    steps, *taken = context.eliminate(
        observations.levels,
        observations.leaf_matrix(weight),
        observations.leaf_matrix(kappa),
        moments,
        variance,
        observations.n_students,
    )
    matrices = observations.matrix(weight), observations.matrix(kappa)
    students = model.update_students(*matrices, moments, (taken[0], taken[1]))
    return steps, students, *context.restore(observations.levels, steps, students, variance)


@CASES
@settings(max_examples=60)
def test_elimination_gives_the_exact_posterior(case: Case) -> None:
    observations, _, _, shared = case
    weight, kappa = draw_answers(observations)
    _, students, effects, sums = solve(case, weight, kappa, shared)

    dense = Dense(case, weight, kappa, case.fixed())
    mean, covariance = dense.students()
    assert_allclose(students.mean, mean, atol=1e-4, rtol=1e-4)
    assert_allclose(students.covariance, covariance, atol=1e-4, rtol=1e-4)
    for depth, student in enumerate(student_of_nodes(observations)):
        assert_same_effects(effects[depth], dense.effects(depth, student))
    assert_allclose(sums, dense.sums(case), atol=1e-3, rtol=1e-3)


def solve_shared(
    case: Case, weight: np.ndarray, kappa: np.ndarray, ability: np.ndarray, totals: list[np.ndarray]
) -> tuple[SharedEffects, np.ndarray]:
    """Find what students share, given abilities and the total effects of all levels but the last.

    The effects of the last level and the shared ones are unknowns of one system of equations. The
    sums are those of `Dense.sums`, of what has answers.
    """
    observations, items, variance, shared = case
    leaves, leaf = observations.levels[-1], observations.leaf()
    student, item = observations.student(), observations.item
    n, n_shared, n_kinds = len(leaves), len(shared.mean), variance.shape[1]
    kind = np.arange(n_shared) % n_kinds
    design = np.eye(n)[leaf], np.eye(n_shared)[leaves.label[leaf]]
    both = np.concatenate(design, axis=1)
    known = (items.mean[item, :-1] * ability[student]).sum(axis=1) + items.mean[item, -1]
    if len(totals) > 1:
        known = known + totals[-2][leaves.parent[leaf]]
    prior = np.append(variance[-1, leaves.kind], shared.prior[kind])
    covariance = np.linalg.inv(np.diag(1 / prior) + both.T * weight @ both)
    mean = (covariance @ both.T @ (kappa - weight * known))[n:]
    of_each = np.diag(covariance)[n:].copy()
    has_answers = weight @ design[1] > 0
    removed = 1 - of_each / shared.prior[kind]
    sums = np.zeros((n_kinds, 3))
    columns = np.stack([np.ones(n_shared), mean**2 + of_each, removed**2], axis=1)
    np.add.at(sums, kind[has_answers], columns[has_answers])
    new = context.estimate_variance(sums, shared.prior)
    of_each[~has_answers] = new[kind[~has_answers]]
    return SharedEffects(mean, of_each, new), sums


def assert_same_shared(found: SharedEffects | None, expected: SharedEffects) -> None:
    assert found is not None
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, atol=1e-3, rtol=5e-3)


@pytest.mark.parametrize("own_variance", [None, 1e-6])
@CASES
@settings(max_examples=60)
def test_what_students_share_is_exact_given_the_rest(
    own_variance: float | None, case: Case
) -> None:
    """Also where nothing but rounding tells the students' own effects from 0."""
    if own_variance is not None:
        case = case._replace(variance=np.full_like(case.variance, own_variance))
    observations, _, variance, shared = case
    weight, kappa = draw_answers(observations)
    steps, students, effects, _ = solve(case, weight, kappa, shared)
    # Any other abilities and effects will do.
    rng = RNG(2)
    students = Gaussians(students.mean + rng.normal(0, 1, students.mean.shape), students.covariance)
    effects = [e._replace(mean=e.mean + rng.normal(0, 1, len(e.mean))) for e in effects]
    sums = context.sum_shared(observations.levels, steps[-1], students, effects, shared)
    found = context.update_shared(sums, shared)
    totals = [e.mean for e in effects]
    assert_same_shared(found, solve_shared(case, weight, kappa, students.mean, totals)[0])
    # The last ones are of contexts that no answer was given in.
    n_kinds = variance.shape[1]
    assert not found.mean[-2 * n_kinds :].any()
    assert_allclose(found.variance[-2 * n_kinds :], np.tile(found.prior, 2), rtol=1e-6)


@CASES
@settings(max_examples=20)
def test_steps_come_to_rest_at_the_joint_mean(case: Case) -> None:
    """There the slope of the likelihood is that of the prior, with nothing held fixed."""
    observations, items, _, shared = case
    weight, kappa = draw_answers(observations)
    prior = shared.prior
    for _ in range(300):
        steps, students, effects, _ = solve(case, weight, kappa, shared)
        sums = context.sum_shared(observations.levels, steps[-1], students, effects, shared)
        shared = context.update_shared(sums, shared)._replace(prior=prior)
    student, item, leaf = observations.student(), observations.item, observations.leaf()
    logit = (items.mean[item, :-1] * students.mean[student]).sum(axis=1) + items.mean[item, -1]
    label = observations.levels[-1].label[leaf]
    logit += effects[-1].mean[leaf] + shared.mean[label]
    slope = np.bincount(label, kappa - weight * logit, len(shared.mean))
    kind = np.arange(len(slope)) % len(prior)
    assert_allclose(slope, shared.mean / prior[kind], atol=2e-3)


@CASES
@settings(max_examples=40)
def test_a_pass_over_the_answers_is_exact_too(case: Case) -> None:
    """From what is expected of every answer to the sums that the items need."""
    observations, items, variance, shared = case
    k, rng = items.mean.shape[1] - 1, RNG(1)
    old = [
        Effects(
            rng.normal(0, 0.5, len(level)).astype("f"),
            rng.uniform(0.5, 1, len(level)).astype("f"),
            rng.normal(0, 0.1, (len(level), k)).astype("f"),
        )
        for level in observations.levels
    ]
    students = model.standard_normal(observations.n_students, k)
    state = State(students, items, items, tuple(old), variance, shared)
    guessing = np.full(observations.n_items, 0.2, np.float32)
    with mock.patch.object(
        context, "estimate_variance", wraps=context.estimate_variance
    ) as estimate:
        passed, sums = blocks.pass_over_answers(observations, state, guessing)

    student, item, leaf = observations.student(), observations.item, observations.leaf()
    mean, spread = blocks.logit_moments(students, items, student, item)
    mean += old[-1].mean[leaf] + case.fixed()
    spread += old[-1].variance[leaf] + shared.variance[observations.levels[-1].label][leaf]
    spread += 2 * (old[-1].with_ability[leaf] * items.mean[item, :k]).sum(axis=1)
    slope, curvature = model.expected_slope_and_curvature(
        mean, np.maximum(spread, 0), observations.is_right, guessing[item]
    )
    weight = curvature * observations.is_used
    kappa = (slope + curvature * mean) * observations.is_used
    dense = Dense(case, weight, kappa, case.fixed())
    ability, _ = dense.students()
    assert_allclose(passed.students.mean, ability, atol=2e-4, rtol=1e-4)
    square, of_shared = (call.args[0] for call in estimate.call_args_list)
    assert_allclose(square, dense.sums(case), atol=2e-3, rtol=2e-3)
    nodes = student_of_nodes(observations)
    totals = [dense.effects(depth, owner).mean for depth, owner in enumerate(nodes)]
    expected_shared, expected_sums = solve_shared(case, weight, kappa, ability, totals)
    assert_allclose(of_shared, expected_sums, atol=2e-3, rtol=2e-3)
    assert_same_shared(passed.shared, expected_shared)
    for depth, owner in enumerate(nodes):
        assert_same_effects(passed.effects[depth], dense.effects(depth, owner))
    effect = dense.effects(len(nodes) - 1, nodes[-1])
    for j in range(observations.n_items):
        expected = np.zeros(k + 1)
        for row in np.flatnonzero(item == j):
            t = np.append(ability[student[row]], 1)
            total = (effect.mean[leaf[row]] + case.fixed()[row]) * t
            total[:k] += effect.with_ability[leaf[row]]
            expected += kappa[row] * t - weight[row] * total
        assert_allclose(sums[j, : k + 1], expected, atol=1e-3, rtol=1e-3)


def test_moments_of_logits_are_those_of_joint_draws() -> None:
    rng, k = RNG(2), 2
    root = rng.normal(0, 0.5, (k + 1, k + 1))
    centre, joint = rng.standard_normal(k + 1), root @ root.T
    root = rng.normal(0, 0.5, (k + 1, k + 1))
    items = Gaussians(rng.standard_normal((1, k + 1)), (root @ root.T)[None])
    students = Gaussians(centre[None, :k], joint[None, :k, :k])
    effects = Effects(centre[k:], joint[k:, k], joint[k:, :k])
    draws = rng.multivariate_normal(centre, joint, 400_000)
    z = rng.multivariate_normal(items.mean[0], items.covariance[0], 400_000)
    logit = (draws[:, :k] * z[:, :k]).sum(axis=1) + z[:, k] + draws[:, k]
    zero = np.zeros(1, int)
    mean, variance = blocks.logit_moments(students, items, zero, zero, effects)
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
