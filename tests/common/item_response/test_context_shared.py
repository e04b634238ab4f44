"""What the students of a class share in a quiz: planted effects, and who gains from them."""

from typing import NamedTuple

import numpy as np
import pytest
from calibration import bin_means, loss, over_gaussian
from numpy.testing import assert_allclose, assert_array_equal

from common import item_response

N_CLASSES, CLASS_SIZE, N_QUIZZES, QUIZ_SIZE = 20, 30, 30, 10
OWN_VARIANCE = 0.3
UNKNOWN = 1_000_000


class Classes(NamedTuple):
    """Answers of classes that each take half of the quizzes, in whole."""

    student: np.ndarray
    question: np.ndarray
    quiz: np.ndarray
    of_class: np.ndarray  # The quiz of the class.
    p_right: np.ndarray
    p_of_class: np.ndarray  # Of a student of whom only the class is known.
    is_right: np.ndarray
    is_train: np.ndarray
    is_new: np.ndarray  # The student has no training answers.
    knows_few: np.ndarray  # One in ten of the student's answers in the quiz is a training answer.

    def take(self, rows: np.ndarray) -> "Classes":
        return Classes(*(column[rows] for column in self))


def plant(variance: float) -> tuple[Classes, np.ndarray]:
    """Return answers, and the effect of each quiz of a class, of the given variance."""
    rng = np.random.default_rng(5)
    n = N_CLASSES * CLASS_SIZE
    ability = rng.standard_normal(n)
    easiness = rng.normal(0.2, 0.8, N_QUIZZES * QUIZ_SIZE)
    own = rng.normal(0, np.sqrt(OWN_VARIANCE), (n, N_QUIZZES))
    shared = rng.normal(0, np.sqrt(variance), (N_CLASSES, N_QUIZZES))
    group = np.arange(n) // CLASS_SIZE
    taken = np.repeat(rng.random((N_CLASSES, N_QUIZZES)) < 0.5, QUIZ_SIZE, axis=1)
    student, question = np.nonzero(taken[group])
    quiz = question // QUIZ_SIZE
    of_class = group[student] * N_QUIZZES + quiz
    known = easiness[question] + shared.ravel()[of_class]
    p = 1 / (1 + np.exp(-known - ability[student] - own[student, quiz]))
    few = (rng.random((n, N_QUIZZES)) < 0.5)[student, quiz]
    new = student % CLASS_SIZE >= 25
    answers = Classes(
        student,
        question,
        quiz,
        of_class,
        p,
        over_gaussian(known, 1 + OWN_VARIANCE),
        (rng.random(len(p)) < p).astype(np.int8),
        (rng.random(len(p)) < np.where(few, 0.1, 0.8)) & ~new,
        new,
        few,
    )
    return answers, shared.ravel()


def fit(answers: Classes, contexts: np.ndarray) -> item_response.ItemResponseModel:
    train = answers.is_train
    columns = answers.student[train], answers.question[train], answers.is_right[train]
    return item_response.fit(*columns, n_dimensions=2, context=contexts[train, None])


def predict(
    fitted: item_response.ItemResponseModel, asked: Classes, contexts: np.ndarray
) -> np.ndarray:
    return item_response.predict(fitted, asked.student, asked.question, contexts[:, None])


PLANTED, SHARED = plant(1.0)


@pytest.fixture(scope="module")
def fitted() -> item_response.ItemResponseModel:
    return fit(PLANTED, PLANTED.of_class)


@pytest.fixture(scope="module")
def without() -> item_response.ItemResponseModel:
    """Each student in a context of their own."""
    return fit(PLANTED, PLANTED.quiz)


def test_what_a_class_shares_is_recovered(fitted: item_response.ItemResponseModel) -> None:
    assert fitted.effects is not None
    labels, shared = fitted.effects.labels[-1], fitted.effects.shared
    assert_array_equal(labels, np.unique(PLANTED.of_class[PLANTED.is_train]))
    planted, found = SHARED[labels], shared.mean[:-1]
    assert shared.prior[0] == pytest.approx(planted.var(), abs=0.25)
    assert fitted.effects.variance[0, 0] == pytest.approx(OWN_VARIANCE, abs=0.1)
    assert np.corrcoef(found, planted)[0, 1] > 0.88
    assert np.mean((found - planted) ** 2) < 0.2 * planted.var()
    # Neither shrunk too much nor too little.
    slope = np.cov(found, planted)[0, 1] / found.var()
    assert slope == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("knows_few", "gain"), [(True, 0.03), (False, 0.005)])
def test_students_gain_most_where_they_have_few_answers(
    fitted: item_response.ItemResponseModel,
    without: item_response.ItemResponseModel,
    knows_few: bool,
    gain: float,
) -> None:
    held_out = ~PLANTED.is_train & ~PLANTED.is_new
    test = PLANTED.take(held_out & (PLANTED.knows_few == knows_few))
    p, other = predict(fitted, test, test.of_class), predict(without, test, test.quiz)
    assert loss(p, test.p_right) < loss(other, test.p_right) - gain
    assert_allclose(*bin_means(p, test.p_right, n_bins=8), atol=0.04)


def test_new_students_gain_from_their_class(
    fitted: item_response.ItemResponseModel, without: item_response.ItemResponseModel
) -> None:
    new = PLANTED.take(PLANTED.is_new)
    assert not np.isin(new.student, fitted.student_ids).any()
    p = predict(fitted, new, new.of_class)
    for other in (
        predict(without, new, new.quiz),
        predict(fitted, new, np.full_like(new.of_class, UNKNOWN)),
    ):
        assert loss(p, new.p_right) < loss(other, new.p_right) - 0.03
    # No other information is there, so that it is as good as it can be, but for estimation.
    assert loss(p, new.p_right) < loss(new.p_of_class, new.p_right) + 0.01
    assert_allclose(*bin_means(p, new.p_of_class), atol=0.025)


def test_classes_that_share_nothing_cost_nothing() -> None:
    answers, _ = plant(0.0)
    one, other = fit(answers, answers.of_class), fit(answers, answers.quiz)
    assert one.effects is not None
    assert one.effects.shared.prior[0] < 0.05
    for rows in (~answers.is_train & ~answers.is_new, answers.is_new):
        test = answers.take(rows)
        p, base = predict(one, test, test.of_class), predict(other, test, test.quiz)
        assert loss(p, test.p_right) < loss(base, test.p_right) + 2e-3


def test_a_class_without_answers_in_the_quiz_is_only_known_to_vary(
    fitted: item_response.ItemResponseModel,
) -> None:
    """Predictions are as uncertain as that of a class of which the effect is not known."""
    test = PLANTED.take(~PLANTED.is_train & ~PLANTED.is_new)
    assert fitted.effects is not None
    # A class that has not taken the quiz, and one that nobody has heard of.
    no_answers = np.setdiff1d(np.arange(N_CLASSES * N_QUIZZES), fitted.effects.labels[-1])
    rng = np.random.default_rng(0)
    p = predict(fitted, test, rng.choice(no_answers, len(test.student)))
    assert_array_equal(p, predict(fitted, test, np.full_like(test.quiz, UNKNOWN)))
    known = predict(fitted, test, test.of_class)
    assert np.abs(p - 0.5).mean() < np.abs(known - 0.5).mean() - 0.02
