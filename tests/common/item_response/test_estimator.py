"""Right and wrong answers: planted abilities, questions and effects of contexts are recovered.

Planted parameters are those from which the answers are simulated. A context is a quiz, a group of
quizzes, or the quiz of a class.
"""

import math
import pickle
from dataclasses import dataclass
from functools import cache
from typing import Any

from common.item_response import ItemResponse
from common.item_response.model import expected_probability

import numpy as np
import pandas as pd
import pytest
import scipy.stats
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
    predict,
    simulate_answers,
    split,
    standard_error_of_variance,
)

# An effect is a number that a quiz adds to the logits of some answers. In the fixture
# `shared_effects`, a quiz has one effect on all students of a class, and a further effect on each
# single student. This is the variance of the effects on single students.
STUDENT_VARIANCE = 0.3


@dataclass(frozen=True)
class Planted:
    """Answers of students whose abilities and questions are known."""

    student: np.ndarray
    question: np.ndarray
    is_correct: np.ndarray
    # True probability of a right answer.
    p_right: np.ndarray
    # Slopes of the questions on the abilities, shape (questions, k).
    slopes: np.ndarray
    # Intercepts of the questions, shape (questions,).
    intercept: np.ndarray

    def fit(self, **settings: Any) -> ItemResponse:
        return ItemResponse(**settings).fit(self.student, self.question, self.is_correct)


def plant_slopes(k: int, n_students: int, n_questions: int, guessing: float = 0) -> Planted:
    """Simulate answers that depend on k planted abilities of the students.

    The slopes of the questions on the first ability are positive; all other slopes, and the
    intercepts, may have either sign.
    """
    rng = RNG(3)
    ability = rng.standard_normal((n_students, k))
    parameters = rng.normal(0, 0.7, (n_questions, k + 1))
    slopes = parameters[:, :k]
    intercept = parameters[:, k]
    # Replace the slopes on the first ability by positive ones, near 1.
    slopes[:, 0] = np.exp(rng.normal(0, 0.3, n_questions))
    # A student answers each question with probability 1/2.
    student, question = np.nonzero(rng.random((n_students, n_questions)) < 0.5)
    logit = (ability[student] * slopes[question]).sum(axis=1) + intercept[question]
    p = guessing + (1 - guessing) / (1 + np.exp(-logit))
    is_correct = (rng.random(len(p)) < p).astype(np.int8)
    return Planted(student, question, is_correct, p, slopes, intercept)


# The standard error of a slope that is estimated from 1,000 answers, 0.07: it is 1 / √(n · I) for n
# answers with Fisher's information I each. For answers of `plant_slopes`, I is about 0.2, the mean
# of p (1 − p), where p is the probability of a right answer.
ERROR_OF_SLOPE = 1 / math.sqrt(1_000 * 0.2)


def share_in_space_of(fitted: np.ndarray, planted: np.ndarray) -> float:
    """Return how well fitted slopes span the planted ones, from 0 to 1 (perfectly).

    Both have the shape (questions, k). A fit may rotate its dimensions, so columns cannot be
    compared one by one. Instead the planted columns are projected on the space that the fitted
    columns span. The result is the share of their length that the projection keeps.
    """
    basis, _ = np.linalg.qr(fitted)
    return float(np.linalg.norm(basis.T @ planted) / np.linalg.norm(planted))


def mean_probability(logit: np.ndarray, variance: float) -> np.ndarray:
    """Return E[sigmoid(logit + x)] for x of the distribution N(0, variance)."""
    # Gauss-Hermite quadrature with 30 points.
    x, weight = np.polynomial.hermite_e.hermegauss(30)
    p = 1 / (1 + np.exp(-logit[:, None] - np.sqrt(variance) * x))
    result: np.ndarray = p @ weight / weight.sum()
    return result


# ---- Abilities and questions --------------------------------------------------------------------


def test_difficulties_are_recovered_if_the_probability_of_guessing_is_given() -> None:
    """Students who do not know the answer guess, and are right with probability 0.25.

    A fit without guessing takes the guessed answers for knowledge, so its difficulties are wrong.
    """
    planted = plant_slopes(k=1, n_students=1_500, n_questions=120, guessing=0.25)
    true_difficulty = -planted.intercept

    with_guessing = planted.fit(n_dimensions=1, guessing=0.25)
    without_guessing = planted.fit(n_dimensions=1, guessing=0.0)

    def mean_error(model: ItemResponse) -> float:
        """Return the mean absolute error of the difficulties."""
        return float(np.abs(model.difficulty_ - true_difficulty).mean())

    assert mean_error(with_guessing) < 0.15
    assert mean_error(with_guessing) < mean_error(without_guessing) / 2
    p = with_guessing.predict_proba(planted.student, planted.question)[:, 1]
    assert p.min() >= 0.25
    # `assert_calibrated` sorts the predictions into ten bins from 0 to 1. No prediction is below
    # 0.25, so the two lowest bins are empty. Another bin may have too few predictions to count. So
    # at least seven bins must count.
    assert_calibrated(p, planted.p_right, n_bins=7)


@pytest.mark.parametrize("k", [1, 3])
def test_three_dimensions_are_found_if_they_are_planted_and_shrink_otherwise(k: int) -> None:
    """Answers that depend on k abilities are fitted with three abilities (dimensions).

    If k is 3, the fit finds slopes on all three. If k is 1, the slopes on the other two shrink.
    """
    n_questions = 150
    planted = plant_slopes(k, n_students=2_000, n_questions=n_questions)

    slopes = planted.fit(n_dimensions=3, guessing=0.0, n_steps=15).discrimination_

    # The size of the slopes on each dimension: their root mean square.
    size = np.linalg.norm(slopes, axis=0) / math.sqrt(n_questions)
    if k == 3:
        # The planted slopes have a size of 0.7 or more on each dimension, and the prior shrinks the
        # fitted slopes a little. The limit, 0.3, is clearly larger than estimation errors (0.07).
        assert (size[1:] > 0.3).all()
    else:
        # Only dimension 0 was planted, so the slopes on dimensions 1 and 2 are estimation errors.
        # The fit chooses the dimensions on which these errors are largest, so twice the standard
        # error is allowed.
        assert (size[1:] < 2 * ERROR_OF_SLOPE).all()
    # The standard error of a fitted slope is 0.07. The size of the planted slopes is 0.7 or more.
    # So a column of planted slopes is at an angle of about 0.1 radians to the space of the fitted
    # columns. Its projection on this space is shorter by a share of 1 − cos(0.1) = 0.005. Six times
    # this loss is allowed.
    assert share_in_space_of(slopes[:, :k], planted.slopes) > 0.97


def test_fitted_attributes_belong_to_their_ids() -> None:
    """Abilities have a row for each of `student_ids_`, and slopes for each of `question_ids_`."""
    n_dimensions = 2
    model = fit(TRAIN, n_dimensions=n_dimensions)
    assert_array_equal(model.student_ids_, np.unique(TRAIN.student))
    assert_array_equal(model.question_ids_, np.unique(TRAIN.question))
    n_students, n_questions = len(model.student_ids_), len(model.question_ids_)
    assert model.ability_.shape == (n_students, n_dimensions)
    assert model.ability_covariance_.shape == (n_students, n_dimensions, n_dimensions)
    assert model.discrimination_.shape == (n_questions, n_dimensions)
    assert model.difficulty_.shape == (n_questions,)
    # The logit of a pair is discrimination · ability − difficulty. Check this for one pair, that of
    # any student and any question.
    student, question = 7, 5
    parts = model.explain(model.student_ids_[[student]], model.question_ids_[[question]])
    logit = model.discrimination_[question] @ model.ability_[student] - model.difficulty_[question]
    assert parts.mean[0] == pytest.approx(logit, abs=1e-5)


def test_unknown_questions_get_the_parameters_of_an_average_one() -> None:
    model = fit(TRAIN, n_dimensions=1)
    known = model.question_ids_[0]
    unknown = 999_999
    parameters = model.question_parameters([known, unknown])
    assert parameters.difficulty[0] == model.difficulty_[0]
    assert_array_equal(parameters.discrimination[0], model.discrimination_[0])
    assert parameters.difficulty[1] == pytest.approx(model.difficulty_.mean(), abs=0.02)
    mean_discrimination = model.discrimination_.mean(axis=0)
    assert parameters.discrimination[1] == pytest.approx(mean_discrimination, abs=0.02)


def test_a_fitted_estimator_can_be_pickled() -> None:
    model = fit(TRAIN, TRAIN.quiz, n_steps=2)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(predict(copy, TEST, TEST.quiz), predict(model, TEST, TEST.quiz))


# ---- Effects of contexts, of each student or shared ----------------------------------------------


@pytest.fixture(scope="module")
def with_quiz() -> ItemResponse:
    return fit(TRAIN, TRAIN.quiz)


def test_planted_effects_are_recovered(with_quiz: ItemResponse) -> None:
    error = standard_error_of_variance(1, n_effects=7_700, answers_each=7.5)
    assert with_quiz.context_variance_[0] == pytest.approx(1, abs=5 * error)
    p = predict(with_quiz, TEST, TEST.quiz)
    assert_calibrated(p, TEST.p_right)
    without = predict(fit(TRAIN), TEST)
    assert loss(p, TEST.p_right) < loss(without, TEST.p_right) - 0.02


def test_no_pairs_have_no_predictions() -> None:
    assert predict(fit(TRAIN, n_steps=1), TEST[:0]).shape == (0,)


def test_explain_returns_the_parts_of_a_prediction(with_quiz: ItemResponse) -> None:
    """The logit of a prediction is a part from ability and question, plus the effect of the quiz.

    The first part has the mean `parts.mean` and the variance `parts.variance`. The effect has the
    mean `parts.effect` and the variance `parts.effect_variance`. A quiz may have an effect on all
    students and a further effect on each single student, `parts.student_effect`. Here only effects
    on single students are planted, so `parts.student_effect` is almost all of `parts.effect`.
    `parts.easiness` is the intercept of the question.
    """
    parts = with_quiz.explain(TEST.student, TEST.question, context=TEST.quiz)

    def correlation(left: Any, right: Any) -> float:
        return float(np.corrcoef(left, right)[0, 1])

    mean = parts.mean + parts.effect
    variance = parts.variance + parts.effect_variance
    # The prediction is the expected P(right) if the logit is normal with this mean and variance.
    # The tolerance is 0.03, because the variance is not exact: the sum of the two variances
    # neglects the covariance of effect and ability.
    p = predict(with_quiz, TEST, TEST.quiz)
    assert_allclose(expected_probability(mean, variance), p, atol=0.03)
    assert correlation(parts.student_effect, parts.effect) > 0.9
    # The fitted ability may have the opposite sign of the planted one; the square has no sign.
    assert correlation(parts.ability, TEST.ability) ** 2 > 0.4
    # No effects of classes were planted, so the column `easiness_and_class` is the easiness alone.
    planted_easiness = TEST.easiness_and_class
    assert correlation(parts.easiness, planted_easiness) > 0.9


@pytest.mark.parametrize("contexts", ["groups of quizzes", "quizzes of classes"])
def test_contexts_without_effect_make_predictions_hardly_worse(contexts: str) -> None:
    """No quiz has an effect on the simulated students.

    Yet a fit is given contexts: groups of quizzes and quizzes, or the quizzes of each class. It
    finds that their effects have almost no variance. Its predictions are nearly as good as those of
    a fit without contexts.
    """
    answers = simulate_answers(quiz_variance=0.0)
    # A row for each answer: its contexts, either group of quizzes and quiz, or quiz of a class.
    has_groups = contexts == "groups of quizzes"
    context = groups(answers) if has_groups else answers.class_quiz.to_numpy()
    train, test = split(answers)
    of_new_students = answers[answers.is_new]

    without_contexts = fit(train)
    with_contexts = fit(train, context[train.index])

    # The true variances of effects are 0. For comparison: effects that are planted in other tests
    # have a variance of 0.3 or 1.
    assert with_contexts.context_variance_.max() < 0.06
    assert with_contexts.shared_variance_ < 0.06
    for rows in (test, of_new_students):
        loss_with = loss(predict(with_contexts, rows, context[rows.index]), rows.p_right)
        loss_without = loss(predict(without_contexts, rows), rows.p_right)
        assert loss_with < loss_without + 2e-3


@dataclass(frozen=True)
class EffectsOfOneLevel:
    """A model with contexts on two levels: groups of quizzes (0) and single quizzes (1).

    In the simulated answers, only the contexts of one level have effects on the students.
    """

    model: ItemResponse
    # Answers that the model has not seen.
    test: pd.DataFrame


@cache
def fit_effects_of(level: int) -> EffectsOfOneLevel:
    """Simulate answers in which the contexts of one level have effects, and fit a model to them.

    Each student has an effect in each group of quizzes (level 0) or in each single quiz (level 1).
    """
    if level == 0:
        answers = simulate_answers(quiz_variance=0.0, group_variance=1.0)
    else:
        answers = simulate_answers(quiz_variance=1.0, group_variance=0.0)
    train, test = split(answers)
    return EffectsOfOneLevel(fit(train, groups(train)), test)


@pytest.mark.parametrize("level", [0, 1])
def test_the_level_that_has_the_effect_gets_the_variance(level: int) -> None:
    """The contexts are groups of quizzes (level 0) and single quizzes (level 1).

    The effects of one level, `level`, are planted with the variance 1. The other level has no
    effects, so their variance is 0. The fit finds both variances.
    """
    model = fit_effects_of(level).model
    variance = model.context_variance_[level]
    variance_of_other_level = model.context_variance_[1 - level]
    # On level 0, there is an effect for each student in each group of quizzes; on level 1, for each
    # student in each quiz. `n_effects` is the number of effects, and `answers_each` is the mean
    # number of answers with the same effect. Both numbers belong to the training answers of
    # `fit_effects_of`.
    standard_error = [
        standard_error_of_variance(variance=1, n_effects=4_100, answers_each=8.6),
        standard_error_of_variance(variance=1, n_effects=6_600, answers_each=5.4),
    ][level]
    # This standard error holds if all effects have the same number of answers. Many effects have
    # fewer and are known less exactly, so the true standard error is larger. So allow four standard
    # errors.
    assert variance == pytest.approx(1, abs=4 * standard_error)
    # No effects of the other level were planted: their variance comes from estimation errors alone.
    assert variance_of_other_level < 0.2


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize(
    ("knows_group", "knows_quiz"), [(True, True), (True, False), (False, False), (False, True)]
)
def test_an_unknown_context_has_no_effect(level: int, knows_group: bool, knows_quiz: bool) -> None:
    """Contexts of the pairs to predict are hidden from the model.

    Students have effects either in groups of quizzes (`level` 0) or in single quizzes (`level` 1).
    If only the quiz is unknown, the model predicts with the effect of the group. If the group is
    unknown, the model predicts without effects, because a quiz is identified only within its group.
    """
    fitted = fit_effects_of(level)
    test = fitted.test
    # Column 0 holds the group of quizzes of each answer, and column 1 the quiz.
    context = groups(test)
    if not knows_group:
        context[:, 0] = UNKNOWN
    if not knows_quiz:
        context[:, 1] = UNKNOWN

    p = predict(fitted.model, test, context)

    knows_effect = knows_group if level == 0 else knows_group and knows_quiz
    if knows_effect:
        # The best prediction is the true probability.
        best = test.p_right
    else:
        # The best prediction is the mean probability over all effects, which have the variance 1.
        # No effects of classes were planted here, so the column `easiness_and_class` is the
        # easiness alone.
        logit_without_effect = test.ability + test.easiness_and_class
        best = mean_probability(logit_without_effect.to_numpy(), variance=1)
    # In each of at least 8 bins, the mean of the model's predictions must be within 5 standard
    # errors of the mean of the best predictions.
    assert_calibrated(p, best, errors=5, n_bins=8)


@dataclass(frozen=True)
class SharedEffects:
    """Answers in which the students of a class share an effect in each quiz, and a model of them.

    Each single student has a further effect in each quiz.
    """

    answers: pd.DataFrame
    # A context of this model is the quiz of a class. So the model finds the effects that the
    # students of a class share.
    by_class: ItemResponse

    @property
    def train(self) -> pd.DataFrame:
        return split(self.answers)[0]

    @property
    def new(self) -> pd.DataFrame:
        """The answers of students who have no training answers."""
        return self.answers[self.answers.is_new]


@pytest.fixture(scope="module")
def shared_effects() -> SharedEffects:
    answers = simulate_answers(STUDENT_VARIANCE, class_variance=1.0)
    train, _ = split(answers)
    return SharedEffects(answers, fit(train, train.class_quiz))


def test_planted_variances_of_effects_of_classes_and_of_students_are_recovered(
    shared_effects: SharedEffects,
) -> None:
    by_class = shared_effects.by_class
    planted = shared_effects.train.groupby("class_quiz").class_effect.first()
    # There are 321 effects on classes, each in 110 answers on average.
    error = standard_error_of_variance(1, n_effects=321, answers_each=110)
    assert by_class.shared_variance_ == pytest.approx(planted.var(), abs=3 * error)
    # There are 6,600 effects on single students, each in 5.4 answers on average.
    error = standard_error_of_variance(STUDENT_VARIANCE, n_effects=6_600, answers_each=5.4)
    assert by_class.context_variance_[0] == pytest.approx(STUDENT_VARIANCE, abs=4 * error)


def test_planted_effects_of_classes_are_shrunk_neither_too_much_nor_too_little(
    shared_effects: SharedEffects,
) -> None:
    """A regression of the planted effects on their posterior means has the slope 1.

    Each class has an effect in each quiz, which all students of the class share. The fit shrinks
    an effect towards 0, because its answers do not determine it exactly. If it shrank too much, the
    planted effects would be larger than their posterior means, so that the slope would exceed 1.
    """
    planted = shared_effects.train.groupby("class_quiz").class_effect.first()
    posterior = shared_effects.by_class.posterior_.shared
    prior_variance = shared_effects.by_class.shared_variance_
    # Leave out the last element, which stands for all quizzes of classes without answers.
    mean = posterior.mean[:-1]
    variance = posterior.variance[:-1]
    # The answers narrow the posterior of each effect: it has a smaller variance than the prior.
    assert variance.max() < prior_variance

    regression = scipy.stats.linregress(mean, planted)

    # The slope is allowed to deviate by five standard errors. If the standard error were large,
    # almost any slope would pass, so check first that it is small.
    assert regression.stderr < 0.03
    assert regression.slope == pytest.approx(1, abs=5 * regression.stderr)


def test_effects_of_classes_improve_predictions_most_for_students_with_few_answers(
    shared_effects: SharedEffects,
) -> None:
    """The answers have an effect of each class in each quiz.

    One model has a context for each class in each quiz, another model a context for each quiz. Only
    the first model can learn the effect of a class from the classmates of a student, which helps
    most if the student has few answers or none.
    """
    train, rest = split(shared_effects.answers)
    by_class = shared_effects.by_class
    by_quiz = fit(train, train.quiz)
    of_students_with_few_answers = rest[rest.has_few_training_answers]
    of_students_with_many_answers = rest[~rest.has_few_training_answers]
    # Answers of students without any training answers.
    of_new_students = shared_effects.new
    # For each set of answers, the effects of classes must lower the loss by at least `gain`.
    for test, gain in (
        (of_students_with_few_answers, 0.03),
        (of_students_with_many_answers, 0.005),
        (of_new_students, 0.03),
    ):
        p = predict(by_class, test, test.class_quiz)
        p_by_quiz = predict(by_quiz, test, test.quiz)
        assert loss(p, test.p_right) < loss(p_by_quiz, test.p_right) - gain
        # In each of at least 8 bins, the mean prediction must be within 7 standard errors of the
        # mean true probability. Other tests allow fewer standard errors. But here many students
        # have few answers.
        assert_calibrated(p, test.p_right, errors=7, n_bins=8)


def test_predictions_for_new_students_are_nearly_as_good_as_possible(
    shared_effects: SharedEffects,
) -> None:
    """A new student has no answers, so the ability and the effects on this student are unknown.

    The best possible prediction is the mean probability over all abilities, which have the variance
    1, and over all effects on single students. The effects on the class are known from classmates.
    """
    new = shared_effects.new
    best = mean_probability(new.easiness_and_class.to_numpy(), 1 + STUDENT_VARIANCE)
    p = predict(shared_effects.by_class, new, new.class_quiz)
    assert loss(p, new.p_right) < loss(best, new.p_right) + 0.012
    assert_calibrated(p, best)


def test_a_class_that_has_not_taken_the_quiz_is_like_an_unknown_one(
    shared_effects: SharedEffects,
) -> None:
    new = shared_effects.new
    taken = shared_effects.train.class_quiz
    not_taken = np.setdiff1d(np.arange(N_CLASSES * N_QUIZZES), taken)
    drawn = RNG(0).choice(not_taken, len(new))
    unknown = np.full(len(new), UNKNOWN)
    assert_array_equal(
        predict(shared_effects.by_class, new, drawn), predict(shared_effects.by_class, new, unknown)
    )
