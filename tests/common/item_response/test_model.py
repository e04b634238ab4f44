"""The mathematics: against numerical integration, and against a dense Gaussian solve."""

import os
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

from common import item_response
from common.item_response import blocks, context, model
from common.item_response.blocks import ItemResponseModel as Model
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


class Case(NamedTuple):
    """Answers in random contexts, of which few share one and few students have many; a state.

    An effect is one more ability of the student, on which only the answers in its context depend.
    So the same is known without effects: of all abilities of the students and a last one that is 1
    for all, and of the slopes of every answer on them.
    """

    observations: Observations
    state: Model
    students: Gaussians
    answers: Gaussians
    slopes: Any  # Of the answers, due to each level, a list.
    label: np.ndarray  # Of the context of each answer on the last level.


def random_gaussians(rng: np.random.Generator, n: int, d: int) -> Gaussians:
    root = rng.normal(0, 0.4, (n, d, d)).astype("f")
    return Gaussians(rng.normal(0.3, 0.7, (n, d)).astype("f"), root @ root.mT)


def with_one(students: Gaussians) -> Gaussians:
    mean = np.pad(students.mean, [(0, 0), (0, 1)], constant_values=1)
    return Gaussians(mean, np.pad(students.covariance, [(0, 0), (0, 1), (0, 1)]))


def second_moments(g: Gaussians) -> np.ndarray:
    return np.asarray(g.covariance + g.mean[:, :, None] * g.mean[:, None])


def effects_of(slopes: np.ndarray, students: Gaussians, k: int) -> np.ndarray:
    """Return mean and variance of slopes · abilities, and covariances with the first k of these."""
    with_all = np.einsum("nij,nj->ni", students.covariance, slopes)
    mean, variance = np.vecdot(slopes, students.mean), np.vecdot(slopes, with_all)
    return np.column_stack([mean, variance, with_all[:, :k]])


def make_case(seed: int, n_levels: int) -> Case:
    rng = RNG(seed)
    n_students, n_items, k, n_kinds, n_answers = rng.integers(1, (7, 6, 4, 4, 41)).tolist()
    kind = rng.integers(0, n_kinds, n_answers).astype(np.int32)
    labels = [rng.integers(0, 3, n_answers) * n_kinds + kind for _ in range(n_levels)]
    student = rng.integers(0, n_students, n_answers)
    _, start, levels = sort_answers(student, labels, n_students + 1)
    student, item = number_rows(start), rng.integers(0, n_items, n_answers)
    is_right, is_used = rng.random(n_answers) < 0.6, rng.random(n_answers) < 0.8
    # Also so small that nothing but rounding tells the students' own effects from 0.
    variance = np.exp(rng.choice([-4, -16]) + rng.uniform(0, 5, (n_levels, n_kinds)))
    # One label more than there are, and what is known of contexts without answers.
    mean, spread = rng.normal(0, 0.7, 5 * n_kinds), rng.uniform(0.1, 1, 5 * n_kinds)

    n_abilities = k + sum(len(level.label) for level in levels)
    students = random_gaussians(rng, n_students + 1, n_abilities)
    items = random_gaussians(rng, n_items, k + 1)
    own = [*range(k), n_abilities]
    square = np.zeros((n_answers, n_abilities + 1, n_abilities + 1))
    square[np.ix_(range(n_answers), own, own)] = items.covariance[item]
    answers = Gaussians(np.zeros((n_answers, n_abilities + 1)), square)
    answers.mean[:, own] = items.mean[item]
    slopes: Any = []
    effects, label, first = [], np.zeros(n_answers, int), k
    for level, prior in zip(levels, variance, strict=True):
        node = number_rows(level.start)
        label = level.label[node]
        root = np.sqrt(prior[label % n_kinds])[:, None]
        slopes.append(root * np.eye(n_abilities + 1)[first + node])
        first += len(level.label)
    if levels:
        leaf = levels[-1].start[:-1]
        old = with_one(students).take(student[leaf])
        effects = [effects_of(sum(slopes)[leaf], old, k).astype("f")]
        answers.mean[:] += sum(slopes)
        answers.mean[:, -1] += mean[label]
        answers.covariance[:, -1, -1] += spread[label]
    state = Model(
        students=Gaussians(students.mean[:, :k], students.covariance[:, :k, :k]),
        items=items,
        prior=Gaussians(np.full((1, k + 1), 0.3), np.eye(k + 1)[None]),
        guessing=np.full(n_items, 0.2, np.float32),
        student_ids=np.arange(n_students),
        question_ids=np.arange(n_items),
        effects=tuple(effects),
        variance=variance,
        shared=SharedEffects(
            mean.astype("f"), spread.astype("f"), np.exp(rng.uniform(-3, 1, n_kinds))
        ),
    )
    observations = Observations(start, item, is_right, is_used, n_items, levels)
    return Case(observations, state, with_one(students), answers, slopes, label)


def pass_plainly(case: Case) -> tuple[np.ndarray, np.ndarray, Gaussians]:
    """Return w and κ of every answer, and by them all abilities of the students."""
    observations, answers = case.observations, case.answers
    student, squares = number_rows(observations.start), second_moments(answers)
    old = case.students.take(student)
    mean = np.vecdot(answers.mean, old.mean)
    variance = (squares * second_moments(old)).sum(axis=(1, 2)) - mean**2
    guessing = case.state.guessing[observations.item]
    slope, weight = model.expected_slope_and_curvature(
        mean, np.maximum(variance, 0), observations.is_right, guessing
    )
    weight, kappa = (values * observations.is_used for values in (weight, slope + weight * mean))
    squares, linear = weight[:, None, None] * squares, kappa[:, None] * answers.mean
    of_student = np.eye(len(case.students.mean))[student].T
    total, linear = np.tensordot(of_student, squares, 1), of_student @ linear
    covariance = np.linalg.inv(np.eye(linear.shape[1] - 1) + total[:, :-1, :-1])
    mean = np.einsum("nij,nj->ni", covariance, linear[:, :-1] - total[:, :-1, -1])
    return weight, kappa, with_one(Gaussians(mean, covariance))


def estimate_variance(
    mean: np.ndarray, variance: np.ndarray, kind: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    """Return the new prior variance of each kind of effects, given those that answers tell of."""
    columns = np.stack([np.ones(len(mean)), mean**2, variance, (1 - variance / prior[kind]) ** 2])
    return context.estimate_variance((columns @ np.eye(len(prior))[kind]).T, prior)


def share_plainly(
    case: Case, weight: np.ndarray, kappa: np.ndarray, known: np.ndarray
) -> SharedEffects:
    """Find shared effects, and with them each student's of the last level, given all but these."""
    leaves, old = case.observations.levels[-1], case.state.shared
    n, n_shared = len(leaves.label), len(old.mean)
    kind = np.arange(n_shared) % len(old.prior)
    of_label = np.eye(n_shared)[case.label]
    design = np.hstack([np.eye(n)[number_rows(leaves.start)], of_label])
    prior = np.append(case.state.variance[-1, kind[leaves.label]], old.prior[kind])
    covariance = np.linalg.inv(np.diag(1 / prior) + design.T * weight @ design)
    mean = (covariance @ design.T @ (kappa - weight * known))[n:]
    variance, answered = np.diag(covariance)[n:], weight @ of_label > 0
    prior = estimate_variance(mean[answered], variance[answered], kind[answered], old.prior)
    return SharedEffects(mean, np.where(answered, variance, prior[kind]), prior)


def assert_same(found: Any, expected: Any, by: float) -> None:
    """Compare several arrays."""
    for values, plain in zip(found, expected, strict=True):
        assert_allclose(values, plain, atol=by, rtol=5 * by)


# Variances of so few answers nearly all change by the most that a step may change them.
@patch.multiple(context, _MAX_RATIO=np.inf)
@given(seed=st.integers(0, 2**32), n_levels=st.integers(0, 3))
@settings(max_examples=120)
def test_a_pass_over_the_answers_is_exact(seed: int, n_levels: int) -> None:
    case = make_case(seed, n_levels)
    observations, state, slopes = case.observations, case.state, case.slopes
    levels, student = observations.levels, number_rows(observations.start)
    k, n_kinds = state.students.mean.shape[1], state.variance.shape[1]
    old = deepcopy(state.effects)
    passed, sums = blocks.pass_over_answers(observations, state)
    # One that is interrupted leaves what was there.
    assert_same(state.effects, old, 0)
    weight, kappa, new = pass_plainly(case)
    assert_same(vars(passed.students).values(), (new.mean[:, :k], new.covariance[:, :k, :k]), 2e-4)
    place = k
    for depth, (level, prior) in enumerate(zip(levels, state.variance, strict=True)):
        first, own = level.start[:-1], place + np.arange(len(level.label))
        of_first, of_total = student[first], sum(slopes[: depth + 1])[first]
        place += len(own)
        assert_same(passed.effects[depth], effects_of(of_total, new.take(of_first), k), 1e-4)
        kind = level.label % n_kinds
        mean, variance = new.mean[of_first, own], new.covariance[of_first, own, own]
        variance = estimate_variance(
            np.sqrt(prior[kind]) * mean, prior[kind] * variance, kind, prior
        )
        assert_allclose(passed.variance[depth], variance, rtol=3e-3)
    # Given all that, the items' slopes and intercepts, each by itself, with its prior.
    own, t = [*range(k), -1], new.take(student)
    items, rest = state.items.mean[observations.item], case.answers.mean.copy()
    rest[:, own] -= items
    squares = weight[:, None, None] * second_moments(t)
    linear = kappa[:, None] * t.mean - np.einsum("nij,nj->ni", squares, rest)
    found = model.update_items(sums, state.prior, np.zeros(observations.n_items, int))
    for j in range(observations.n_items):
        rows = observations.item == j
        precision = np.eye(k + 1) + squares[rows].sum(axis=0)[np.ix_(own, own)]
        mean = np.linalg.solve(precision, 0.3 + linear[rows].sum(axis=0)[own])
        assert_allclose(found.mean[j], mean, atol=1e-3)
        assert_allclose(found.covariance[j], np.linalg.inv(precision), atol=1e-3)
    if n_levels:
        known = np.vecdot(items, t.mean[:, own]) + np.vecdot(sum(slopes) - slopes[-1], t.mean)
        assert_same(passed.shared, share_plainly(case, weight, kappa, known), 1e-3)
        # The last ones are of contexts that no answer was given in.
        assert not passed.shared.mean[-2 * n_kinds :].any()
        assert_allclose(passed.shared.variance[-2 * n_kinds :], np.tile(passed.shared.prior, 2))


def test_scaling_the_latent_space_changes_no_prediction() -> None:
    observations, state, *_ = make_case(7, 1)
    state = replace(state, prior=state.items)
    student, leaf = (number_rows(part.start) for part in (observations, observations.levels[0]))
    old = state, state.effects[0][leaf]  # A copy: they are scaled in place.
    scaled = blocks.standardise(state)
    before, after = (
        blocks.logit_moments(one.students, one.items, student, observations.item, effects)
        for one, effects in (old, (scaled, scaled.effects[0][leaf]))
    )
    assert_same(after, before, 1e-3)
    mean, covariance = scaled.students.mean, scaled.students.covariance
    assert_allclose(mean.mean(axis=0), 0, atol=1e-5)
    assert_allclose(
        mean.T @ mean / len(mean) + covariance.mean(axis=0), np.eye(mean.shape[1]), atol=1e-4
    )
    assert_allclose(scaled.prior.mean, scaled.items.mean)
