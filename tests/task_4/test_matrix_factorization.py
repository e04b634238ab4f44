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
    # No answer of student 3 is revealed.
    revealed[3] = False
    return revealed, rng.integers(2, size=shape)


def condition(model: Any, revealed: Any, is_right: Any) -> tuple[Any, Any]:
    """Return mean and covariance of one student's expected answers, given the revealed answers.

    The answers are jointly normal. So this function uses the formula for conditional normal
    distributions, and computes no abilities. With revealed answers y, the formula is

        mean + C V⁻¹ (y - mean of y)   and   covariance - C V⁻¹ Cᵀ,

    where C is the covariance of the expected answers with y, and V is the covariance of y.

    Parameters
    ----------
    model
        The model, of 20 questions.
    revealed
        Whether each answer is revealed, shape (20,).
    is_right
        1 for a right and 0 for a wrong answer, shape (20,).
    """
    loading = model.loading.astype(float)
    # Mean and covariance of the expected answers before any answer is revealed.
    prior_mean = model.intercept
    prior_covariance = loading @ loading.T
    # V is the covariance of the revealed answers. A revealed answer is its expectation plus noise,
    # so V is the covariance of the expectations, with the variance of the noise added on the
    # diagonal.
    noise_covariance = float(model.noise) * np.eye(revealed.sum())
    revealed_covariance = prior_covariance[np.ix_(revealed, revealed)] + noise_covariance
    # `covariance_with_revealed` is Cᵀ, and `gain` is C V⁻¹. As V is symmetric, C V⁻¹ = (V⁻¹ Cᵀ)ᵀ,
    # which `solve` computes.
    covariance_with_revealed = prior_covariance[revealed]
    gain = np.linalg.solve(revealed_covariance, covariance_with_revealed).T
    mean = prior_mean + gain @ (is_right[revealed] - prior_mean[revealed])
    return mean, prior_covariance - gain @ covariance_with_revealed


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
    # The choice depends on the revealed answers and on which questions may be asked.
    assert len({*chosen.tolist()}) > 1


def test_probabilities_lie_between_0_and_1() -> None:
    """A predicted probability stays below 1, even where the formula of `condition` exceeds 1.

    The formula exceeds 1 after many right answers.
    """
    model = random_model(seed=6)
    revealed = np.arange(N_QUESTIONS) < 15
    is_right = np.ones(N_QUESTIONS, int)
    mean, _ = condition(model, revealed, is_right)
    assert mean.max() > 1

    prediction = PACKAGE.Students(model, revealed[None], is_right[None]).predict()[0]
    assert prediction[~revealed].max() < 1
    assert prediction[~revealed].min() > 0


@pytest.mark.parametrize("n_questions", [15, 25])
def test_a_model_of_20_questions_can_be_used_for_fewer_or_more(n_questions: int) -> None:
    """If the model is cut to 15 questions or extended to 25, its predictions do not change.

    A student has answered questions 0 and 3 right. With 25 questions, the student has also answered
    question 20, which the model does not know: this must change no prediction. The other unknown
    questions, 21 to 24, are predicted like an average question.
    """
    model = random_model(seed=7)
    answered = [0, 3] if n_questions == 15 else [0, 3, 20]
    # Arrays with one row, for one student. All answers are right.
    revealed = np.zeros((1, n_questions), bool)
    revealed[0, answered] = True
    is_right = np.ones((1, n_questions), int)

    changed_model = model.pad_questions(n_questions)
    (prediction,) = PACKAGE.Students(changed_model, revealed, is_right).predict()

    # The predictions by the formula, for the 20 questions of the unchanged model.
    revealed_of_20 = np.isin(np.arange(N_QUESTIONS), [0, 3])
    expected, _ = condition(model, revealed_of_20, np.ones(N_QUESTIONS, int))
    # Compare the questions that both models have, except the answered ones.
    n_common = min(n_questions, N_QUESTIONS)
    compared = [question for question in range(n_common) if question not in answered]
    assert prediction[compared] == pytest.approx(expected[compared], abs=1e-5)
    # The predictions for questions 21 to 24, which the model does not know. If it was cut to 15
    # questions, this array is empty.
    unknown = prediction[21:]
    assert unknown == pytest.approx(float(model.intercept.mean()), abs=1e-5)


@needs_blocks("task_4/matrix_factorization/train_model.py")
def test_training_recovers_the_parameters_of_the_questions() -> None:
    """Answers are drawn from a known model, and training must find its parameters again.

    The probability of a right answer is intercept + loading · ability. The third parameter of the
    model is the noise, the variance of an answer around this probability.
    """
    n_students, n_questions = 2000, 40
    rng = np.random.default_rng(8)
    ability = rng.normal(size=(n_students, 2))
    intercept = rng.uniform(0.4, 0.7, n_questions)
    loading_size = rng.uniform(0.02, 0.12, (n_questions, 2))
    # About 30 % of the loadings are negative.
    loading_sign = rng.choice([1, -1], (n_questions, 2), p=[0.7, 0.3])
    loading = loading_size * loading_sign
    p_right = (intercept + ability @ loading.T).clip(0, 1)
    is_right = rng.random(p_right.shape) < p_right

    fitted = TRAIN.fit(as_answers(is_right), n_questions=n_questions)

    # A share of 2,000 answers has a standard error of at most √(0.25 / 2,000) = 0.011. The
    # tolerance is four standard errors.
    assert np.abs(fitted.intercept - intercept).max() < 0.045
    # An answer is 0 or 1, so its variance around its expectation p is p (1 - p). The noise of the
    # model is the mean of these variances.
    mean_variance = np.mean(p_right * (1 - p_right))
    assert float(fitted.noise) == pytest.approx(mean_variance, abs=0.01)
    # The loadings are determined only up to a rotation of the abilities. A rotation does not change
    # the covariances of the answers to two questions, so these are compared.
    #
    # Without a model, the answers of the 2,000 students to two questions give an estimate of their
    # covariance, with a standard error of 0.25 / √2,000 = 0.006. Over all pairs of questions, the
    # true covariances have a standard deviation of 0.008. So such estimates would have a
    # correlation of 0.008 / √(0.008² + 0.006²) = 0.8 with the true covariances. The model has fewer
    # parameters than there are covariances, so its correlation must be higher.
    pairs_of_questions = np.triu_indices(n_questions, k=1)
    fitted_covariance = (fitted.loading @ fitted.loading.T)[pairs_of_questions]
    true_covariance = (loading @ loading.T)[pairs_of_questions]
    assert np.corrcoef(fitted_covariance, true_covariance)[0, 1] > 0.8


@needs_blocks("task_4/matrix_factorization/train_model.py")
def test_a_question_without_answers_is_an_average_one() -> None:
    right = np.random.default_rng(9).random((50, 6)) < 0.7
    fitted = TRAIN.fit(as_answers(right), n_questions=8)
    assert fitted.intercept[6:] == pytest.approx(right.mean(), abs=1e-5)
    assert fitted.loading[6:] == pytest.approx(np.array([[0.2, 0, 0, 0]] * 2), abs=1e-5)
