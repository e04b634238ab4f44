"""The item response engine against numerical integration, known moments and simulated truth."""

import itertools
import math
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from common.models import item_response as ir


def simulate(
    n_students: int, n_questions: int, n_answers: int, k: int, seed: int = 0
) -> tuple[ir.Observations, np.ndarray, np.ndarray]:
    """Answers of a known model: observations, true abilities, true slopes and intercepts."""
    rng = np.random.default_rng(seed)
    ability = rng.standard_normal((n_students, k)).astype(np.float32)
    z = rng.normal(0, 0.7, (n_questions, k + 1)).astype(np.float32)
    z[:, 0] = np.exp(rng.normal(0, 0.3, n_questions))
    pairs = rng.choice(n_students * n_questions, n_answers, replace=False)
    student, question = pairs // n_questions, pairs % n_questions
    logit = (ability[student] * z[question, :k]).sum(axis=1) + z[question, k]
    correct = rng.random(n_answers) < 1 / (1 + np.exp(-logit))
    observations, _ = ir.sort_by_student(student, question, correct, n_students, n_questions)
    return observations, ability, z


def last_fit(observations: ir.Observations, k: int, steps: int, **options: object) -> ir.Fit:
    *_, fit = islice(ir.fit(observations, k, **options), steps)  # type: ignore[arg-type]
    return fit


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 1)), max_size=40))
@settings(deadline=None)
def test_sorting_is_stable_and_loses_nothing(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int32).reshape(-1, 3)
    student, question, correct = columns.T
    observations, order = ir.sort_by_student(student, question, correct, 6, 4)
    assert_array_equal(order, np.argsort(student, kind="stable"))
    assert_array_equal(np.diff(observations.start), np.bincount(student, minlength=6))
    assert_array_equal(observations.question, question[order])
    assert_array_equal(observations.correct, correct[order])


@pytest.mark.parametrize("guessing", [0.0, 0.25])
def test_posterior_of_a_student_agrees_with_numerical_integration(guessing: float) -> None:
    rng = np.random.default_rng(1)
    slopes, intercepts = rng.uniform(0.5, 2, 20), rng.normal(0, 1, 20)
    correct = (rng.random(20) < 0.6).astype(np.int8)
    questions = ir.Gaussians(
        np.stack([slopes, intercepts], axis=1).astype(np.float32), np.zeros((20, 2, 2), np.float32)
    )
    zeros = np.zeros(20, np.int32)
    observations, _ = ir.sort_by_student(zeros, np.arange(20), correct, 2, 20)
    posterior = ir.student_posterior(observations, questions, guessing=guessing)

    grid = np.linspace(-6, 6, 2001)
    knows = 1 / (1 + np.exp(-slopes[:, None] * grid - intercepts[:, None]))
    right = guessing + (1 - guessing) * knows
    likelihood = np.where(correct[:, None], right, 1 - right)
    log_density = -(grid**2) / 2 + np.log(likelihood).sum(axis=0)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = (grid * density).sum()
    deviation = math.sqrt(((grid - mean) ** 2 * density).sum())
    assert posterior.mean[0, 0] == pytest.approx(mean, abs=0.01)
    assert math.sqrt(posterior.covariance[0, 0, 0]) == pytest.approx(deviation, rel=0.03)
    # The second student has no answers and keeps the prior.
    assert posterior.mean[1, 0] == 0
    assert posterior.covariance[1, 0, 0] == 1


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (1.5, 0.5), (-2.0, 3.0), (0.7, 0.0)])
def test_probability_agrees_with_numerical_integration(mean: float, variance: float) -> None:
    x = np.random.default_rng(0).normal(mean, math.sqrt(variance), 200_000)
    expected = (1 / (1 + np.exp(-x))).mean()
    found = ir.probability(np.array([mean], np.float32), np.array([variance], np.float32))
    assert found[0] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("guessing", [0.0, 0.2])
@pytest.mark.parametrize("right", [True, False])
def test_slopes_are_those_of_the_log_likelihood_and_finite_far_out(
    guessing: float, right: bool
) -> None:
    logit = np.array([-3, -0.5, 0, 2, -60, 60, -1e4], np.float32)

    def log_likelihood(x: np.ndarray) -> np.ndarray:
        p = guessing + (1 - guessing) / (1 + np.exp(-x))
        return np.log(p if right else 1 - p)

    zeros, rights = np.zeros(len(logit), np.float32), np.full(len(logit), right)
    kappa, weight = ir._expected_terms(logit, zeros, rights, np.array(guessing, np.float32))
    assert np.isfinite(kappa).all() and (weight > 0).all()
    near = logit[:4].astype(np.float64)
    slope = (log_likelihood(near + 1e-5) - log_likelihood(near - 1e-5)) / 2e-5
    assert_allclose(kappa[:4] - weight[:4] * near, slope, atol=1e-4)
    # Fisher's information of an answer: the derivative of the sigmoid if nothing is guessed.
    if guessing == 0:
        assert_allclose(weight[1:3], [0.2350, 0.25], atol=1e-4)


@pytest.mark.parametrize("logit", [0.0, 1.0, -4.0])
def test_polya_gamma_draws_have_the_known_moments(logit: float) -> None:
    """Moments of PG(1, c): Polson, Scott and Windle (2013), section 2."""
    rng = np.random.default_rng(0)
    draws = ir._polya_gamma(np.full(200_000, logit, np.float32), rng)
    c = abs(logit)
    mean = math.tanh(c / 2) / (2 * c) if c else 1 / 4
    variance = (math.sinh(c) - c) / (4 * c**3 * math.cosh(c / 2) ** 2) if c else 1 / 24
    assert draws.min() > 0
    assert draws.mean() == pytest.approx(mean, rel=0.005)
    assert draws.var() == pytest.approx(variance, rel=0.02)


def test_moments_of_logits_are_those_of_independent_draws() -> None:
    rng = np.random.default_rng(2)

    def gaussians(d: int) -> ir.Gaussians:
        root = rng.normal(0, 0.5, (1, d, d)).astype(np.float32)
        return ir.Gaussians(
            rng.standard_normal((1, d)).astype(np.float32), root @ root.transpose(0, 2, 1)
        )

    students, questions = gaussians(3), gaussians(4)
    a = rng.multivariate_normal(students.mean[0], students.covariance[0], 400_000)
    z = rng.multivariate_normal(questions.mean[0], questions.covariance[0], 400_000)
    logit = (a * z[:, :3]).sum(axis=1) + z[:, 3]
    zero = np.zeros(1, np.int32)
    mean, variance = ir.logit_moments(students, questions, zero, zero)
    assert mean[0] == pytest.approx(logit.mean(), abs=0.02)
    assert variance[0] == pytest.approx(logit.var(), rel=0.02)


def test_one_dimension_recovers_the_two_parameter_model() -> None:
    observations, ability, z = simulate(1500, 120, 90_000, 1)
    fit = last_fit(observations, 1, 12)
    assert np.corrcoef(fit.students.mean[:, 0], ability[:, 0])[0, 1] > 0.95
    assert np.corrcoef(fit.questions.mean[:, 1], z[:, 1])[0, 1] > 0.99
    assert np.corrcoef(fit.questions.mean[:, 0], z[:, 0])[0, 1] > 0.93
    # Not only in order, but on the scale of N(0, 1) abilities.
    assert np.polyfit(z[:, 1], fit.questions.mean[:, 1], 1)[0] == pytest.approx(1, abs=0.1)
    # The deviations are those of the errors.
    score = (fit.students.mean[:, 0] - ability[:, 0]) / np.sqrt(fit.students.covariance[:, 0, 0])
    assert 0.9 < score.std() < 1.1


def test_further_dimensions_are_found_where_they_are_and_shrink_where_not() -> None:
    for k_true in (1, 3):
        observations, _, z = simulate(2000, 150, 150_000, k_true, seed=3)
        fit = last_fit(observations, 3, 15)
        spread = np.sqrt(np.diagonal(fit.prior.covariance[0])[1:3])
        assert (spread > 0.3).all() if k_true == 3 else (spread < 0.15).all()
        # Slopes are identified up to a rotation: compare what they explain.
        q, _ = np.linalg.qr(fit.questions.mean[:, :k_true])
        explained = np.linalg.norm(q.T @ z[:, :k_true]) / np.linalg.norm(z[:, :k_true])
        assert explained > 0.97


def test_kinds_of_questions_are_found_and_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question measures one of three abilities; the last one has no answers."""
    rng = np.random.default_rng(4)
    n_students, n_questions, n_answers = 1_500, 330, 60_000
    kind = np.arange(n_questions) % 3
    ability = rng.standard_normal((n_students, 3)).astype(np.float32)
    z = rng.normal(0, 0.1, (n_questions, 4)).astype(np.float32)
    z[np.arange(n_questions), kind] += 1.2 * np.exp(rng.normal(0, 0.3, n_questions))
    z[:, 3] += rng.normal(0, 1, n_questions)
    pairs = rng.choice(n_students * n_questions, n_answers, replace=False)
    student, question = pairs // n_questions, pairs % n_questions
    correct = rng.random(n_answers) < ir.sigmoid(ir.logits(ability, z, student, question))
    observations, _ = ir.sort_by_student(student, question, correct, n_students, n_questions + 1)

    everyone, every = (x.ravel() for x in np.indices((n_students, n_questions)))
    truth = ir.sigmoid(ir.logits(ability, z, everyone, every))

    def loss(fit: ir.Fit) -> float:
        p = ir.probability(*ir.logit_moments(fit.students, fit.questions, everyone, every))
        return float(-(truth * np.log(p) + (1 - truth) * np.log(1 - p)).mean())

    fit = last_fit(observations, 3, 15)
    assert fit.kind.shape == (n_questions + 1, 3)
    assert_allclose(fit.kind.sum(axis=1), 1, atol=1e-5)
    found = fit.kind[:-1].argmax(axis=1)
    agreement = max(np.mean(np.array(p)[found] == kind) for p in itertools.permutations(range(3)))
    assert agreement > 0.95
    # Without answers, every kind is about as probable as it is frequent.
    assert_allclose(fit.kind[-1], 1 / 3, atol=0.05)
    monkeypatch.setattr(ir, "_MOST_KINDS", 1)
    one_kind = last_fit(observations, 3, 15)
    assert one_kind.kind.shape == (n_questions + 1, 1)
    assert loss(fit) < loss(one_kind)


def test_a_fit_can_be_continued() -> None:
    observations, _, _ = simulate(400, 250, 12_000, 2)
    for step in (2, 5):
        *_, state, following = islice(ir.fit(observations, 2, guessing=0.2), step + 1)
        again = next(ir.fit(observations, 2, guessing=0.2, start=state, first_step=step))
        assert_array_equal(again.questions.mean, following.questions.mean)
        assert_array_equal(again.kind, following.kind)


def test_answers_left_out_have_no_influence() -> None:
    observations, _, _ = simulate(200, 40, 4_000, 2)
    used = np.random.default_rng(0).random(4_000) < 0.9
    flipped = np.where(used, observations.correct, 1 - observations.correct).astype(np.int8)
    one = last_fit(replace(observations, used=used), 2, 4)
    other = last_fit(replace(observations, used=used, correct=flipped), 2, 4)
    assert_allclose(one.questions.mean, other.questions.mean, atol=1e-5)
    assert_allclose(one.students.mean, other.students.mean, atol=1e-5)
    everything = last_fit(observations, 2, 4)
    assert np.abs(everything.questions.mean - one.questions.mean).max() > 0.01


def test_scaling_the_latent_space_changes_no_prediction() -> None:
    observations, _, _ = simulate(200, 40, 4_000, 2)
    fit = last_fit(observations, 2, 2)
    bent = replace(
        fit, students=ir.Gaussians(fit.students.mean * 2 + 1, fit.students.covariance * 4)
    )
    scaled = ir._standardise(bent, np.arange(200), ir._alone)
    pairs = np.arange(200), np.arange(200) % 40
    for before, after in zip(
        ir.logit_moments(bent.students, bent.questions, *pairs),
        ir.logit_moments(scaled.students, scaled.questions, *pairs),
        strict=True,
    ):
        assert_allclose(before, after, rtol=1e-3, atol=1e-3)
    assert_allclose(scaled.students.mean.mean(axis=0), 0, atol=1e-5)


def test_a_question_without_answers_has_the_prior() -> None:
    observations, _, _ = simulate(200, 40, 4_000, 1)
    fit = last_fit(replace(observations, n_questions=41), 1, 4)
    scale = np.sqrt(np.diagonal(fit.prior.covariance[0]))
    # The prior is estimated from the questions, so it is one step ahead.
    assert_allclose(fit.questions.mean[40], fit.prior.mean[0], atol=0.1)
    assert_allclose(np.sqrt(np.diagonal(fit.questions.covariance[40])), scale, rtol=0.2)


def test_more_dimensions_than_questions_or_students() -> None:
    observations, _, _ = simulate(3, 2, 6, 1)
    fit = last_fit(observations, 5, 3)
    assert np.isfinite(fit.questions.mean).all()
    assert fit.students.mean.shape == (3, 5)


@pytest.mark.parametrize("n_answers", [6_000, 12_000])
def test_samples_predict_better_than_shares_and_with_few_answers_than_the_variational_fit(
    n_answers: int,
) -> None:
    observations, ability, z = simulate(400, 150, n_answers, 3, seed=5)
    fit = last_fit(observations, 3, 15)
    student, question = (x.ravel() for x in np.indices((400, 150)))
    truth = ir.sigmoid(ir.logits(ability, z, student, question))

    def loss(p: np.ndarray) -> float:
        return float(-(truth * np.log(p) + (1 - truth) * np.log(1 - p)).mean())

    total = np.zeros(len(truth))
    for draw in islice(ir.sample(observations, fit), 40, 160):
        total += ir.sigmoid(ir.logits(draw.ability, draw.question, student, question))
    excess = loss(total / 120) - loss(truth)
    if n_answers == 6_000:
        moments = ir.logit_moments(fit.students, fit.questions, student, question)
        assert excess < 0.98 * (loss(ir.probability(*moments)) - loss(truth))
        return
    # Much better than shares of right answers alone.
    share = np.bincount(observations.question, observations.correct, 150) / 80
    assert excess < 0.5 * (loss(share[question].clip(0.02, 0.98)) - loss(truth))


def test_sampling_repeats_and_can_be_continued() -> None:
    observations, _, _ = simulate(100, 30, 1_500, 2)
    fit = last_fit(observations, 2, 5)
    draws = list(islice(ir.sample(observations, fit, seed=3), 4))
    again = list(islice(ir.sample(observations, fit, seed=3), 2))
    assert_array_equal(again[1].ability, draws[1].ability)
    state = replace(
        fit,
        students=replace(fit.students, mean=draws[1].ability),
        questions=replace(fit.questions, mean=draws[1].question),
        prior=draws[1].prior,
    )
    rest = list(islice(ir.sample(observations, state, seed=3, first_sweep=2), 2))
    assert_array_equal(rest[1].ability, draws[3].ability)
    assert_array_equal(rest[1].question, draws[3].question)
    other = next(ir.sample(observations, fit, seed=4))
    assert (other.ability != draws[0].ability).any()


def test_the_number_of_threads_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    observations, _, _ = simulate(2000, 60, 60_000, k=2, seed=8)
    fits = []
    for n_threads in (1, 3):
        monkeypatch.setattr(ir, "N_THREADS", n_threads)
        fits.append(last_fit(observations, 2, 3))
    for part in ("students", "questions", "prior"):
        one, three = (getattr(fit, part) for fit in fits)
        assert_array_equal(one.mean, three.mean)
        assert_array_equal(one.covariance, three.covariance)


@pytest.mark.parametrize(
    ("given", "expected"), [("3", 3), ("2,4", 2), ("", None), ("0", None), ("all", None)]
)
def test_threads_as_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, given: str, expected: int | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr(ir.os, "cpu_count", lambda: 5)
    assert ir._count_threads() == (expected or 5)
