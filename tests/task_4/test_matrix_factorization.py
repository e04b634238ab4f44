"""The model of task_4/matrix_factorization/, compared with formulas and with known parameters."""

from typing import Any

import numpy as np
import pytest
from sample_blocks import needs_blocks
from task_4_models import as_answers, load_package

PACKAGE, TRAIN = load_package("matrix_factorization", "train_model")
N_QUESTIONS = 20


def random_model(seed: int) -> Any:
    """Return a model of 20 questions and three abilities."""
    rng = np.random.default_rng(seed)
    return PACKAGE.Model(
        intercept=rng.uniform(0.3, 0.8, N_QUESTIONS).astype(np.float32),
        loading=rng.normal(0.1, 0.1, (N_QUESTIONS, 3)).astype(np.float32),
        noise=np.array(0.18, np.float32),
    )


def random_students(seed: int) -> tuple[Any, Any]:
    """Return which answers of four students are revealed, and which answers are right."""
    rng = np.random.default_rng(seed)
    shape = 4, N_QUESTIONS
    revealed = rng.random(shape) < 0.4
    # Nothing is known of student 3.
    revealed[3] = False
    return revealed, rng.integers(2, size=shape)


def condition(model: Any, revealed: Any, is_right: Any) -> tuple[Any, Any]:
    """Return mean and covariance of one student's expected answers, given the revealed answers.

    The answers are jointly normal, and the formula for conditional normal distributions needs no
    abilities.
    """
    loading = model.loading.astype(float)
    prior = loading @ loading.T
    measured = prior[np.ix_(revealed, revealed)] + float(model.noise) * np.eye(revealed.sum())
    gain = np.linalg.solve(measured, prior[revealed]).T
    mean = model.intercept + gain @ (is_right[revealed] - model.intercept[revealed])
    return mean, prior - gain @ prior[revealed]


def test_predictions_are_the_conditional_means_of_the_answers() -> None:
    model = random_model(seed=1)
    revealed, is_right = random_students(seed=2)
    prediction = PACKAGE.Students(model, revealed, is_right).predict()

    for student in range(4):
        known = revealed[student]
        mean, _ = condition(model, known, is_right[student])
        assert prediction[student, ~known] == pytest.approx(mean[~known], abs=1e-5)
        assert np.array_equal(prediction[student, known], is_right[student, known])


def test_the_most_uncertain_expected_answer_is_asked() -> None:
    model = random_model(seed=3)
    revealed, is_right = random_students(seed=4)
    askable = ~revealed & (np.random.default_rng(5).random(revealed.shape) < 0.7)

    chosen = PACKAGE.Students(model, revealed, is_right).select(askable)

    for student in range(4):
        _, covariance = condition(model, revealed[student], is_right[student])
        variance = np.where(askable[student], np.diagonal(covariance), -1)
        assert chosen[student] == variance.argmax()
    # The choice depends on the revealed answers and on what may be asked.
    assert len({*chosen.tolist()}) > 1


def test_probabilities_lie_between_0_and_1() -> None:
    """Many right answers would raise the expected answers above 1."""
    model = random_model(seed=6)
    revealed = np.arange(N_QUESTIONS) < 15
    is_right = np.ones(N_QUESTIONS, int)
    mean, _ = condition(model, revealed, is_right)
    assert mean.max() > 1

    prediction = PACKAGE.Students(model, revealed[None], is_right[None]).predict()[0]
    assert prediction[~revealed].max() < 1
    assert prediction[~revealed].min() > 0


@pytest.mark.parametrize("n_questions", [15, 25])
def test_fewer_or_more_questions_do_not_change_predictions_of_the_others(n_questions: int) -> None:
    """A new question is predicted like an average one, and its answer changes no prediction."""
    model = random_model(seed=7)
    n_known = min(n_questions, N_QUESTIONS)
    revealed = np.zeros((1, n_questions), bool)
    revealed[0, [0, 3]] = True
    if n_questions > N_QUESTIONS:
        revealed[0, N_QUESTIONS] = True
    is_right = np.ones((1, n_questions), int)

    padded = PACKAGE.Students(model.pad_questions(n_questions), revealed, is_right).predict()[0]

    first = np.isin(np.arange(N_QUESTIONS), [0, 3])
    mean, _ = condition(model, first, np.ones(N_QUESTIONS, int))
    others = ~first[:n_known]
    assert padded[:n_known][others] == pytest.approx(mean[:n_known][others], abs=1e-5)
    assert padded[N_QUESTIONS + 1 :] == pytest.approx(float(model.intercept.mean()), abs=1e-5)


@needs_blocks("task_4/matrix_factorization/train_model.py")
def test_training_recovers_the_parameters_of_the_questions() -> None:
    """Answers are drawn from the model: right with the probability that the model expects."""
    n_students = 2000
    rng = np.random.default_rng(8)
    ability = rng.normal(size=(n_students, 2))
    intercept = rng.uniform(0.4, 0.7, 40)
    loading = rng.uniform(0.02, 0.12, (40, 2)) * rng.choice([1, -1], (40, 2), p=[0.7, 0.3])
    expected = (intercept + ability @ loading.T).clip(0, 1)
    right = rng.random(expected.shape) < expected

    fitted = TRAIN.fit(as_answers(right), n_questions=40)

    # A share of 2,000 answers has a standard error of at most √(0.25 / 2,000) = 0.011. The
    # tolerance is four standard errors.
    assert np.abs(fitted.intercept - intercept).max() < 0.045
    # The noise is the mean variance of an answer around its expectation.
    assert float(fitted.noise) == pytest.approx(np.mean(expected * (1 - expected)), abs=0.01)
    # The loadings are determined only up to a rotation of the abilities, which does not change the
    # covariances of the answers. These have a standard deviation of 0.008. The sample covariance of
    # two questions has a standard error of 0.25 / √2,000 = 0.006. So the sample covariances have a
    # correlation of 1 / √(1 + (0.006 / 0.008)²) = 0.8 with the true ones. The model has fewer
    # parameters than there are covariances, so its covariances must correlate more.
    pairs = np.triu_indices(40, 1)
    fitted_covariance = (fitted.loading @ fitted.loading.T)[pairs]
    true_covariance = (loading @ loading.T)[pairs]
    assert np.corrcoef(fitted_covariance, true_covariance)[0, 1] > 0.8


@needs_blocks("task_4/matrix_factorization/train_model.py")
def test_a_question_without_answers_is_an_average_one() -> None:
    right = np.random.default_rng(9).random((50, 6)) < 0.7
    fitted = TRAIN.fit(as_answers(right), n_questions=8)
    assert fitted.intercept[6:] == pytest.approx(right.mean(), abs=1e-5)
    assert fitted.loading[6:] == pytest.approx(np.array([[0.2, 0, 0, 0]] * 2), abs=1e-5)
