"""Habits of position: planted ones are found, none where there are none."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from common.item_response import blocks, context, habits, observations

RNG = np.random.default_rng
N_STUDENTS, N_CONTEXTS, N_OPTIONS = 400, 8, 4


class Choices(NamedTuple):
    """Options chosen, with the probabilities before and after habits."""

    student: np.ndarray
    context: np.ndarray
    choice: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def take(self, rows: np.ndarray) -> "Choices":
        return Choices(*(column[rows] for column in self))


def plant(of_student: float, of_context: float, seed: int = 0) -> tuple[Choices, Choices]:
    """Choices to learn from and held-out ones; the variances of the habits are given."""
    rng = RNG(seed)
    n = 40_000
    student, context = rng.integers(0, N_STUDENTS, n), rng.integers(0, N_CONTEXTS, n)
    before = rng.dirichlet(np.full(N_OPTIONS, 1.5), n)
    habit = np.sqrt(of_student) * rng.standard_normal((N_STUDENTS, 1, N_OPTIONS))
    own = np.sqrt(of_context) * rng.standard_normal((N_STUDENTS, N_CONTEXTS, N_OPTIONS))
    after = before * np.exp((habit + own)[student, context])
    after /= after.sum(axis=1, keepdims=True)
    choice = (rng.random((n, 1)) > after.cumsum(axis=1)[:, :-1]).sum(axis=1)
    everything = Choices(student * 7, context * 3 + 5, choice, before.astype("f"), after)
    rows = rng.permutation(n)
    return everything.take(rows[:30_000]), everything.take(rows[30_000:])


def fit(choices: Choices) -> habits.Habits:
    return habits.fit_habits(choices.student, choices.context, choices.choice, choices.before)


def apply(found: habits.Habits, choices: Choices) -> np.ndarray:
    return habits.with_habits(found, choices.student, choices.context, choices.before)


def loss(p: np.ndarray, choices: Choices) -> float:
    """Return the log loss expected of the held-out choices."""
    return float(-(choices.after * np.log(p)).sum(axis=1).mean())


PLANTED = plant(0.3, 0.3)


@pytest.mark.parametrize(("of_student", "of_context"), [(0.3, 0.0), (0.0, 0.5), (0.3, 0.3)])
def test_planted_habits_are_recovered(of_student: float, of_context: float) -> None:
    train, test = plant(of_student, of_context)
    found = fit(train)
    # The mode of few answers lies nearer to 0 than the mean, so the estimate is on the low side.
    for planted, variance in zip((of_student, of_context), found.variance, strict=True):
        assert 0.75 * planted - 0.01 < variance < 1.1 * planted + 0.04
    p = apply(found, test)
    entropy, before = loss(test.after, test), loss(test.before, test)
    assert loss(p, test) - entropy < 0.6 * (before - entropy)
    # The probabilities are right on average.
    bins = np.minimum((p * 10).astype(int), 9).ravel()
    for b in range(9):
        assert p.ravel()[bins == b].mean() == pytest.approx(
            test.after.ravel()[bins == b].mean(), abs=0.02
        )


def test_where_there_are_no_habits_hardly_anything_changes() -> None:
    train, test = plant(0, 0)
    found = fit(train)
    assert found.variance.max() < 0.04
    p = apply(found, test)
    assert np.abs(p - test.before).mean() < 0.01
    assert loss(p, test) < loss(test.before, test) + 1e-3


@given(seed=st.integers(0, 2**32), n_levels=st.integers(1, 3), n=st.integers(1, 30))
@settings(max_examples=40)
def test_elimination_is_exact(seed: int, n_levels: int, n: int) -> None:
    """Against one large system of equations for each option."""
    rng = RNG(seed)
    nothing, labels = np.zeros(n, bool), list(rng.integers(0, 3, (n_levels, n)))
    levels = observations.sort_by_student(
        rng.integers(0, 4, n), np.arange(n), nothing, nothing, (4, n), labels
    ).levels
    sizes = np.cumsum([0, *map(len, levels)])
    weight, kappa = rng.uniform(0, 2, (len(levels[-1]), 3)), rng.normal(0, 1, (len(levels[-1]), 3))
    prior = np.exp(rng.uniform(-3, 1, n_levels))
    steps = habits._eliminate(levels, weight, kappa, prior)
    totals, sums = habits._restore(levels, steps, prior, 4)

    # Row j: which terms add up to the total at node j.
    path = np.eye(sizes[-1])
    for depth in range(1, n_levels):
        own = slice(sizes[depth], sizes[depth + 1])
        path[own] += path[sizes[depth - 1] + levels[depth].parent]
    depth_of = np.repeat(np.arange(n_levels), np.diff(sizes))
    expected = np.zeros((n_levels, 2))
    for option in range(3):
        leaf = path[sizes[-2] :]
        precision = np.diag(1 / prior[depth_of]) + leaf.T * weight[:, option] @ leaf
        covariance = np.linalg.inv(precision)
        mean, variance = covariance @ leaf.T @ kappa[:, option], np.diag(covariance)
        found = np.concatenate([total[:, option] for total in totals])
        assert_allclose(found, path @ mean, atol=1e-4, rtol=1e-4)
        removed = 1 - variance / prior[depth_of]
        np.add.at(expected, depth_of, np.stack([mean**2 * 1.5 + variance, removed**2], axis=1))
    assert_allclose(sums, expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("scale", [0.02, 1.0])
def test_the_mode_is_that_of_the_posterior(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the mode, the slope of the likelihood is that of the prior."""
    monkeypatch.setattr(habits, "_START_VARIANCE", scale)
    monkeypatch.setattr(context, "_MAX_RATIO", 1.0)
    monkeypatch.setattr(habits, "_N_STEPS", 300)
    train = PLANTED[0].take(np.flatnonzero(PLANTED[0].student < 70))
    found = fit(train)
    assert_array_equal(found.variance, scale)
    error = (np.eye(N_OPTIONS)[train.choice] - apply(found, train)).astype(float)
    # Total = own + that of the student; both have the same prior.
    of_student, total = (values.astype(float) for values in found.total)
    own = total - of_student[found.levels[1].parent]
    for row, student in enumerate(found.student_ids):
        slope = error[train.student == student].sum(axis=0)
        assert_allclose(of_student[row] / scale, slope, atol=0.02)
    for node, (parent, label) in enumerate(
        zip(found.levels[1].parent, found.levels[1].label, strict=True)
    ):
        rows = (train.student == found.student_ids[parent]) & (
            train.context == found.context_ids[label]
        )
        assert_allclose(own[node] / scale, error[rows].sum(axis=0), atol=0.02)


def test_unknown_students_keep_their_probabilities_unknown_contexts_the_students() -> None:
    train, test = PLANTED
    found = fit(train)
    unknown = test._replace(student=test.student + 1)
    assert_allclose(apply(found, unknown), test.before, atol=1e-6)
    elsewhere = apply(found, test._replace(context=test.context * 0 + 1_000_000))
    node = np.searchsorted(found.student_ids, test.student)
    expected = test.before * np.exp(found.total[0][node])
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(elsewhere, expected, atol=1e-5)
    assert np.abs(elsewhere - apply(found, test)).mean() > 0.01


@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), n_options=st.integers(2, 5))
@settings(max_examples=40)
def test_rows_sum_to_1(seed: int, n: int, n_options: int) -> None:
    """Of few answers too, of options that are impossible, and of certain ones."""
    rng = RNG(seed)
    before = rng.dirichlet(np.full(n_options, 0.1), n).astype(np.float32)
    student, context = rng.integers(0, 4, n), rng.integers(0, 3, n)
    found = habits.fit_habits(student, context, rng.integers(0, n_options, n), before)
    p = habits.with_habits(found, student, context, before)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    assert (found.variance > 0).all()


def test_ids_are_only_names() -> None:
    train, test = PLANTED
    one = apply(fit(train), test)
    far = [
        part._replace(student=part.student * 700_001 + 9, context=part.context * 999_983)
        for part in PLANTED
    ]
    assert_array_equal(apply(fit(far[0]), far[1]), one)


def test_the_number_of_threads_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = PLANTED
    monkeypatch.setattr(observations, "_MIN_CHUNK", 2_000)
    found = []
    for n_threads in (1, 3):
        monkeypatch.setattr(blocks, "N_THREADS", n_threads)
        found.append(apply(fit(train), test))
    assert_array_equal(*found)


def test_chunks_change_hardly_any_result(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = PLANTED
    one = apply(fit(train), test)
    monkeypatch.setattr(observations, "_MIN_CHUNK", 100)
    monkeypatch.setattr(observations, "_N_CHUNKS", 1_000)
    assert_allclose(apply(fit(train), test), one, atol=1e-4)
