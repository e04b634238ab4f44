"""The mathematics: against numerical integration, and against a dense Gaussian solve."""

import os
from typing import Any, NamedTuple

from common import item_response
from common.item_response import ItemResponseModel as Model
from common.item_response import blocks, context, model
from common.item_response.blocks import Observations, number_rows, sort_answers
from common.item_response.context import SharedEffects
from common.item_response.model import Gaussians

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    effects = np.column_stack([own, variance, rng.normal(0, 0.1, (200, 2))])
    state = Model(
        students=students,
        items=items,
        prior=items,
        guessing=np.zeros(200),
        student_ids=np.arange(200),
        question_ids=np.arange(200),
        effects=(effects.copy(),),
    )
    scaled = blocks.standardise(state)
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


class Case(NamedTuple):
    """Answers in random contexts, of which few share one and few students have many; a state."""

    observations: Observations
    state: Model
    leaf: Any  # Node of the last level of each answer, its label there,
    label: np.ndarray
    fixed: np.ndarray  # and the mean of what students share in that context.


def make_case(
    seed: int, k: int, n_levels: int, n_kinds: int, n_answers: int, own_variance: float | None
) -> Case:
    rng = RNG(seed)
    n_students, n_items = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    student = rng.integers(0, n_students, n_answers)
    kind = rng.integers(0, n_kinds, n_answers).astype(np.int32)
    item = rng.integers(0, n_items, n_answers)
    is_right, is_used = rng.random(n_answers) < 0.6, rng.random(n_answers) < 0.8
    labels = [rng.integers(0, 3, n_answers) * n_kinds + kind for _ in range(n_levels)]
    order, start, levels = sort_answers(student, labels, n_students + 1)
    columns = (column[order] for column in (item, is_right, is_used))
    root = rng.normal(0, 0.4, (n_items, k + 1, k + 1)).astype("f")
    # One label more than there are, and what is known of contexts without answers.
    mean, spread = rng.normal(0, 0.7, 5 * n_kinds), rng.uniform(0.1, 1, 5 * n_kinds)
    leaf = label = np.zeros(n_answers, int)
    if n_levels:
        leaf = number_rows(levels[-1].start)
        label = levels[-1].label[leaf]
    n_leaves = len(levels[-1].label) if n_levels else 0
    effects = rng.normal(0, [0.5, 0.2, *[0.1] * k], (n_leaves, 2 + k)).astype("f")
    effects[:, 1] += 1
    state = Model(
        students=model.standard_normal(n_students + 1, k),
        items=Gaussians(rng.normal(0.3, 0.8, (n_items, k + 1)).astype("f"), root @ root.mT),
        prior=Gaussians(np.full((1, k + 1), 0.3), np.eye(k + 1)[None]),
        guessing=np.full(n_items, 0.2, np.float32),
        student_ids=np.arange(n_students),
        question_ids=np.arange(n_items),
        effects=(effects,),
        variance=np.exp(rng.uniform(-4, 1, (n_levels, n_kinds))),
        shared=SharedEffects(
            mean.astype("f"), spread.astype("f"), np.exp(rng.uniform(-3, 1, n_kinds))
        ),
    )
    if own_variance is not None:
        state.variance[:] = own_variance
    observations = Observations(start, *columns, n_items, levels)
    return Case(observations, state, leaf, label, bool(n_levels) * mean[label])


def expand(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return w of every answer, and κ, from what is expected of its logit."""
    observations, state, *_ = case
    student, item = number_rows(observations.start), observations.item
    mean, spread = blocks.logit_moments(state.students, state.items, student, item)
    if observations.levels:
        old = state.effects[-1][case.leaf]
        mean += old[:, 0] + case.fixed
        spread += old[:, 1] + state.shared.variance[case.label]
        spread += 2 * (old[:, 2:] * state.items.mean[item, :-1]).sum(axis=1)
    slope, curvature = model.expected_slope_and_curvature(
        mean, np.maximum(spread, 0), observations.is_right, state.guessing[item]
    )
    used = observations.is_used
    return curvature * used, (slope + curvature * mean) * used


def solve(
    precision: np.ndarray, design: np.ndarray, square: np.ndarray, linear: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of unknowns, by what each answer tells of `design` @ unknowns."""
    terms = (design.mT @ square @ design).sum(axis=0)
    covariance = np.linalg.inv(np.diag(precision) + terms)
    return covariance @ (design.mT @ linear[:, :, None]).sum(axis=0)[:, 0], covariance


def estimate_variance(
    mean: np.ndarray, variance: np.ndarray, kind: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    """Return the new prior variance of each kind of effects, given those that answers tell of."""
    columns = np.stack([np.ones(len(mean)), mean**2, variance, (1 - variance / prior[kind]) ** 2])
    return context.estimate_variance((columns @ np.eye(len(prior))[kind]).T, prior)


def dense_students(
    case: Case, weight: np.ndarray, kappa: np.ndarray
) -> tuple[Gaussians, list[np.ndarray], list[np.ndarray]]:
    """Find abilities and effects, unknowns of one system, and variances, given shared effects."""
    observations, items, levels = case.observations, case.state.items, case.observations.levels
    n_kinds = case.state.variance.shape[1]
    k, n = items.mean.shape[1] - 1, len(observations.start) - 1
    student, item = number_rows(observations.start), observations.item
    kinds = [level.label % n_kinds for level in levels]
    of_levels = list(zip(kinds, case.state.variance, strict=True))
    parts = [np.ones(n * k), *(1 / prior[kind] for kind, prior in of_levels)]
    precision = np.concatenate(parts)
    abilities, *own = np.split(
        np.eye(len(precision)), np.cumsum([len(part) for part in parts[:-1]])
    )
    ability = abilities.reshape(n, k, -1)
    totals: list[np.ndarray] = []
    for level, nodes in zip(levels, own, strict=True):
        totals.append(nodes + totals[-1][level.parent] if totals else nodes)
    # (ability, 1, total effect) is design @ unknowns + constant.
    design = np.zeros((len(item), k + 2, len(precision)))
    design[:, :k] = ability[student]
    if levels:
        design[:, k + 1] = totals[-1][case.leaf]
    constant = np.eye(k + 2)[k] + case.fixed[:, None] * np.eye(k + 2)[k + 1]
    slopes = np.pad(items.mean, [(0, 0), (0, 1)], constant_values=1)
    square = np.pad(items.covariance, [(0, 0), (0, 1), (0, 1)])
    square = weight[:, None, None] * (square + slopes[:, :, None] * slopes[:, None])[item]
    linear = kappa[:, None] * slopes[item] - (square @ constant[:, :, None])[:, :, 0]
    mean, covariance = solve(precision, design, square, linear)

    effects, variances = [], []
    for level, (kind, prior), nodes, total in zip(levels, of_levels, own, totals, strict=True):
        with_all = total @ covariance
        with_ability = ability[student[level.start[:-1]]] @ with_all[:, :, None]
        of_total = (with_all * total).sum(axis=1)
        effects.append(np.column_stack([total @ mean, of_total, with_ability[:, :, 0]]))
        own_variance = np.diag(nodes @ covariance @ nodes.T)
        variances.append(estimate_variance(nodes @ mean, own_variance, kind, prior))
    return Gaussians(ability @ mean, ability @ covariance @ ability.mT), effects, variances


def dense_shared(
    case: Case, weight: np.ndarray, kappa: np.ndarray, known: np.ndarray
) -> SharedEffects:
    """Find shared effects, and with them each student's of the last level, given all but these."""
    leaves, old = case.observations.levels[-1], case.state.shared
    n, n_shared = len(leaves.label), len(old.mean)
    kind = np.arange(n_shared) % len(old.prior)
    of_label = np.eye(n_shared)[case.label]
    design = np.concatenate([np.eye(n)[case.leaf], of_label], axis=1)[:, None]
    prior = np.append(case.state.variance[-1, kind[leaves.label]], old.prior[kind])
    linear = (kappa - weight * known)[:, None]
    mean, covariance = solve(1 / prior, design, weight[:, None, None], linear)
    mean, variance = mean[n:], np.diag(covariance)[n:]
    answered = weight @ of_label > 0
    prior = estimate_variance(mean[answered], variance[answered], kind[answered], old.prior)
    return SharedEffects(mean, np.where(answered, variance, prior[kind]), prior)


def assert_same(found: Any, expected: Any, by: float) -> None:
    """Compare several arrays."""
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
    case = make_case(seed, k, n_levels, n_kinds, n_answers, own_variance)
    observations, state, *_ = case
    passed, sums = blocks.pass_over_answers(observations, state)

    weight, kappa = expand(case)
    students, effects, variances = dense_students(case, weight, kappa)
    assert_same(vars(passed.students).values(), vars(students).values(), 2e-4)
    student, item = number_rows(observations.start), observations.item
    effect: Any = case.fixed
    with_ability: Any = np.zeros((n_answers, k))
    if n_levels:
        assert_same(passed.effects, effects, 1e-4)
        assert_allclose(passed.variance, variances, rtol=0.02)
        slopes = state.items.mean[item]
        known = (slopes[:, :-1] * students.mean[student]).sum(axis=1) + slopes[:, -1]
        if n_levels > 1:
            known += effects[-2][:, 0][observations.levels[-1].parent][case.leaf]
        assert_same(passed.shared, dense_shared(case, weight, kappa, known), 1e-3)
        # The last ones are of contexts that no answer was given in.
        assert not passed.shared.mean[-2 * n_kinds :].any()
        assert_allclose(passed.shared.variance[-2 * n_kinds :], np.tile(passed.shared.prior, 2))
        own = effects[-1][case.leaf]
        effect, with_ability = effect + own[:, 0], own[:, 2:]
    # Given all that, the items' (slopes, intercept), each by itself, with its prior.
    found_items = model.update_items(sums, state.prior, np.zeros(observations.n_items, int))
    t = np.pad(students.mean[student], [(0, 0), (0, 1)], constant_values=1)
    square = np.pad(students.covariance[student], [(0, 0), (0, 1), (0, 1)])
    square = weight[:, None, None] * (square + t[:, :, None] * t[:, None])
    linear = kappa[:, None] * t
    linear -= weight[:, None] * (effect[:, None] * t + np.pad(with_ability, [(0, 0), (0, 1)]))
    for j in range(observations.n_items):
        rows, prior = item == j, np.ones(k + 1)
        design = np.tile(np.eye(k + 1), (rows.sum(), 1, 1))
        mean, covariance = solve(prior, design, square[rows], linear[rows])
        assert_allclose(found_items.mean[j], mean + covariance @ (0.3 * prior), atol=1e-3)
        assert_allclose(found_items.covariance[j], covariance, atol=1e-3)
