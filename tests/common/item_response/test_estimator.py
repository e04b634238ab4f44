"""Right and wrong answers: planted abilities and effects of contexts are found."""

import math
import pickle
from typing import Any

from common.item_response import ItemResponse
from common.item_response.model import expected_probability

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from planted_contexts import (
    N_CLASSES,
    N_QUIZZES,
    RNG,
    TEST,
    TRAIN,
    UNKNOWN,
    assert_calibrated,
    fit,
    groups,
    loss,
    plant,
    predict,
    split,
)

OWN_VARIANCE = 0.3


def plant_slopes(k: int, n_students: int, n_questions: int, guessing: float = 0) -> Any:
    """Return the columns of answers; their true probabilities; (slopes, intercept) of questions."""
    rng = RNG(3)
    ability = rng.standard_normal((n_students, k))
    z = rng.normal(0, 0.7, (n_questions, k + 1))
    z[:, 0] = np.exp(rng.normal(0, 0.3, n_questions))
    student, question = np.nonzero(rng.random((n_students, n_questions)) < 0.5)
    logit = (ability[student] * z[question, :k]).sum(axis=1) + z[question, k]
    p = guessing + (1 - guessing) / (1 + np.exp(-logit))
    is_correct = (rng.random(len(p)) < p).astype(np.int8)
    return (student, question, is_correct), p, z


def over_gaussian(logit: np.ndarray, variance: float) -> np.ndarray:
    """Return E[sigmoid(logit + x)] for x of N(0, variance)."""
    x, weight = np.polynomial.hermite_e.hermegauss(30)
    p = 1 / (1 + np.exp(-logit[:, None] - np.sqrt(variance) * x))
    result: np.ndarray = p @ weight / weight.sum()
    return result


# ---- Abilities and questions --------------------------------------------------------------------


def test_guessing_given_recovers_the_difficulty_behind_it() -> None:
    columns, p_right, z = plant_slopes(1, 1_500, 120, guessing=0.25)
    with_guessing = ItemResponse(n_dimensions=1, guessing=0.25).fit(*columns)
    without = ItemResponse(n_dimensions=1, guessing=0.0).fit(*columns)
    error = np.abs(with_guessing.difficulty_ + z[:, 1]).mean()
    assert error < 0.15
    assert error < np.abs(without.difficulty_ + z[:, 1]).mean() / 2
    p = with_guessing.predict_proba(*columns[:2])[:, 1]
    assert p.min() >= 0.25
    assert_calibrated(p, p_right, n_bins=7)


@pytest.mark.parametrize("k", [1, 3])
def test_further_dimensions_are_found_where_they_are_and_shrink_where_not(k: int) -> None:
    columns, _, z = plant_slopes(k, 2_000, 150)
    slopes = ItemResponse(n_dimensions=3, guessing=0.0, n_steps=15).fit(*columns).discrimination_
    size = np.linalg.norm(slopes, axis=0) / math.sqrt(150)
    # The slopes planted have a size of 0.7. A slope rests on 1,000 answers and so has a standard
    # error of 1 / √(1,000 · 0.2) = 0.07. A dimension that is not there is made of such errors, and
    # fits where they are largest: at most twice their size.
    if k == 3:
        assert (size[1:] > 0.3).all()
    else:
        assert (size[1:] < 0.15).all()
    # Slopes are identified up to a rotation: compare what they explain. That error takes
    # (0.07 / 0.7)² / 2 = 0.005 from the share explained.
    q, _ = np.linalg.qr(slopes[:, :k])
    assert np.linalg.norm(q.T @ z[:, :k]) / np.linalg.norm(z[:, :k]) > 0.97


def test_fitted_attributes_belong_to_their_ids() -> None:
    model = fit(TRAIN)
    assert_array_equal(model.student_ids_, np.unique(TRAIN.student))
    assert_array_equal(model.question_ids_, np.unique(TRAIN.question))
    n_students, n_questions = len(model.student_ids_), len(model.question_ids_)
    assert model.ability_.shape == (n_students, 2)
    assert model.ability_covariance_.shape == (n_students, 2, 2)
    assert model.discrimination_.shape == (n_questions, 2)
    assert model.difficulty_.shape == (n_questions,)
    # The logit of a pair whose parameters are all known.
    found = model.explain(model.student_ids_[[7]], model.question_ids_[[5]])
    logit = model.discrimination_[5] @ model.ability_[7] - model.difficulty_[5]
    assert found.mean[0] == pytest.approx(logit, abs=1e-5)


def test_unknown_questions_get_the_parameters_of_an_average_one() -> None:
    model = fit(TRAIN, n_dimensions=1)
    known, unknown = model.question_ids_[0], 999_999
    found = model.question_parameters([known, unknown])
    assert found.difficulty[0] == model.difficulty_[0]
    assert_array_equal(found.discrimination[0], model.discrimination_[0])
    assert found.difficulty[1] == pytest.approx(model.difficulty_.mean(), abs=0.02)
    assert found.discrimination[1] == pytest.approx(model.discrimination_.mean(axis=0), abs=0.02)


def test_a_fitted_estimator_can_be_pickled() -> None:
    model = fit(TRAIN, TRAIN.quiz, n_steps=2)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(predict(copy, TEST, TEST.quiz), predict(model, TEST, TEST.quiz))


# ---- Effects of contexts, of each student or shared ----------------------------------------------


@pytest.fixture(scope="module")
def with_quiz() -> ItemResponse:
    return fit(TRAIN, TRAIN.quiz)


def test_planted_effects_are_recovered(with_quiz: ItemResponse) -> None:
    # There are 7,700 effects with 7.5 answers each. An answer tells 0.17 (Fisher's information), so
    # an effect is known up to a variance of 1 / (7.5 · 0.17) = 0.8. Their variance then
    # has a standard error of √(2 / 7,700) · (1 + 0.8) = 0.03: five of these.
    assert with_quiz.context_variance_[0] == pytest.approx(1, abs=0.15)
    p = predict(with_quiz, TEST, TEST.quiz)
    assert_calibrated(p, TEST.p_right)
    without = predict(fit(TRAIN), TEST)
    assert loss(p, TEST.p_right) < loss(without, TEST.p_right) - 0.02


def test_no_pairs_have_no_predictions() -> None:
    assert predict(fit(TRAIN, n_steps=1), TEST[:0]).shape == (0,)


def test_explain_tells_what_predictions_consist_of(with_quiz: ItemResponse) -> None:
    parts = with_quiz.explain(TEST.student, TEST.question, context=TEST.quiz)
    mean = parts.mean + parts.effect
    variance = parts.variance + parts.effect_variance
    # But for the covariance of effect and ability, these make the predictions.
    p = predict(with_quiz, TEST, TEST.quiz)
    assert_allclose(expected_probability(mean, variance), p, atol=0.03)
    assert np.corrcoef(parts.own_effect, parts.effect)[0, 1] > 0.9
    assert np.corrcoef(parts.ability, TEST.ability)[0, 1] ** 2 > 0.4
    assert np.corrcoef(parts.easiness, TEST.known)[0, 1] > 0.9


@pytest.mark.parametrize("contexts", ["groups of quizzes", "quizzes of classes"])
def test_contexts_without_effect_cost_nothing(contexts: str) -> None:
    answers = plant(0.0)
    labels = groups(answers) if contexts == "groups of quizzes" else answers.class_quiz.to_numpy()
    train, test = split(answers)
    without = fit(train)
    found = fit(train, labels[answers.is_train])
    assert found.context_variance_.max() < 0.06
    assert found.shared_variance_ < 0.06
    for rows in (test, answers[answers.is_new]):
        p = predict(found, rows, labels[rows.index])
        assert loss(p, rows.p_right) < loss(predict(without, rows), rows.p_right) + 2e-3


@pytest.mark.parametrize("level", [0, 1])
def test_the_level_that_has_the_effect_gets_the_variance(level: int) -> None:
    """Where only the group of a quiz is known, its effect is; further down they only vary."""
    train, test = split(plant(float(level == 1), float(level == 0)))
    found = fit(train, groups(train))
    # As above, but half of the effects rest on one answer in ten: the 6,600 effects of quizzes and
    # the 4,100 of groups give a standard error of about 0.05, four of these.
    assert found.context_variance_[level] == pytest.approx(1, abs=0.2)
    assert found.context_variance_[1 - level] < 0.2
    # All is known, the quiz is not, the group is not.
    unknown = over_gaussian((test.ability + test.known).to_numpy(), 1)
    truths = {2: test.p_right, 1: unknown if level else test.p_right, 0: unknown}
    for n_known, truth in truths.items():
        contexts = np.where(np.arange(2) < n_known, groups(test), UNKNOWN)
        assert_calibrated(predict(found, test, contexts), truth, by=0.03, n_bins=8)
    # A quiz without its group is none that the student has met.
    contexts[:, 1] = test.quiz
    assert_calibrated(predict(found, test, contexts), unknown, by=0.03, n_bins=8)


def test_what_a_class_shares_tells_most_of_students_with_few_answers() -> None:
    answers = plant(OWN_VARIANCE, of_class=1.0)
    train, rest = split(answers)
    by_class, planted = fit(train, train.class_quiz), train.groupby("class_quiz").shared.first()
    # The variance of 321 effects has a standard error of √(2 / 321) = 0.08: three of these.
    assert by_class.shared_variance_ == pytest.approx(planted.var(), abs=0.25)
    # The 6,600 effects of single students are known up to a variance of 1.1, so that the standard
    # error is √(2 / 6,600) · (0.3 + 1.1) = 0.024: four of these.
    assert by_class.context_variance_[0] == pytest.approx(OWN_VARIANCE, abs=0.1)
    shared = by_class.posterior_.shared
    assert shared.variance[:-1].max() < by_class.shared_variance_
    # Neither shrunk too much nor too little. Effects deviate by 0.38 from what is found of them, so
    # the slope over 321 effects has a standard error of 0.38 / √321 = 0.02: five of these.
    found = shared.mean[:-1]
    assert np.cov(found, planted)[0, 1] / found.var() == pytest.approx(1, abs=0.1)

    alone = fit(train, train.quiz)  # Each student in a context of their own.
    new = answers[answers.is_new]
    for test, gain in ((rest[rest.knows_few], 0.03), (rest[~rest.knows_few], 0.005), (new, 0.03)):
        p = predict(by_class, test, test.class_quiz)
        other = predict(alone, test, test.quiz)
        assert loss(p, test.p_right) < loss(other, test.p_right) - gain
        assert_calibrated(p, test.p_right, by=0.04, n_bins=8)
    # No other information is there, so that it is as good as it can be, but for estimation.
    of_class = over_gaussian(new.known.to_numpy(), 1 + OWN_VARIANCE)
    p = predict(by_class, new, new.class_quiz)
    assert loss(p, new.p_right) < loss(of_class, new.p_right) + 0.012
    assert_calibrated(p, of_class)
    # Of a class that has not taken the quiz no more is known than of one that nobody has heard of.
    not_taken = np.setdiff1d(np.arange(N_CLASSES * N_QUIZZES), train.class_quiz)
    unknown = predict(by_class, new, np.full(len(new), UNKNOWN))
    assert_array_equal(predict(by_class, new, RNG(0).choice(not_taken, len(new))), unknown)
