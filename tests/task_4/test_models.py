"""The models of item_response/ and pytorch/, compared with known answers and with formulas."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from task_4_models import as_answers, full_model, load_package, plain_model

PACKAGE, TRAIN = load_package("item_response", "train_model")
(PARTIAL_VAE,) = load_package("pytorch")
# The partial VAE asks the question with the largest reward. If targets (the answers to predict) may
# be asked, the reward has a second term: this weight times the probability that the answer to the
# question is predicted wrongly.
UNCERTAINTY_WEIGHT = 20


def simulate(n_students: int, seed: int, shift: float = 0) -> tuple[Any, Any]:
    """Return an item response model, and the outcomes of simulated students.

    The model has 60 questions, two abilities of each student, and a guessing probability of 0.2.
    Every student has answered all questions; the outcomes have the shape (students, 60). The
    outcomes are drawn from the logits of the model plus `shift`. With a `shift` above 0, the
    students are better than the model expects.
    """
    rng = np.random.default_rng(seed)
    # Questions differ in the size of their two slopes: an exponential number multiplies both.
    slopes = rng.exponential(0.9, (60, 1)) * rng.normal(1, 0.5, (60, 2))
    intercept = rng.normal(0.3, 0.8, 60)
    model = plain_model(PACKAGE, slopes.clip(-2.5, 2.5), intercept=intercept, guessing=0.2)
    ability = rng.normal(size=(n_students, 2))
    logit = ability @ model.slopes.T + model.intercept + shift
    p_right = 0.2 + 0.8 / (1 + np.exp(-logit))
    is_right = rng.random(logit.shape) < p_right
    return model, is_right


def test_training_recovers_the_parameters_of_the_questions() -> None:
    """The answers of 1,000 students are drawn from a known model.

    A model that is trained on these answers must have about the same P(right) of each question and
    the same covariances of the questions' logits.
    """
    true_model, is_right = simulate(1000, seed=6)
    fitted_model = TRAIN.fit(as_answers(is_right), n_questions=60)

    # Compare the predictions for a student without answers.
    nothing_known = np.zeros((1, 60), bool)
    fitted_p_right = PACKAGE.StudentPosterior(fitted_model, nothing_known).probability()
    true_p_right = PACKAGE.StudentPosterior(true_model, nothing_known).probability()
    # A share of 1,000 answers has a standard error of √(0.25 / 1,000) = 0.016. The tolerance is
    # four standard errors.
    assert np.abs(fitted_p_right - true_p_right).max() < 0.06

    # Compare the covariances of the logits, slopes · slopesᵀ. The slopes themselves are determined
    # only up to a rotation of the abilities, which does not change the covariances.
    fitted_covariance = fitted_model.slopes @ fitted_model.slopes.T
    true_covariance = true_model.slopes @ true_model.slopes.T
    correlation = np.corrcoef(fitted_covariance.ravel(), true_covariance.ravel())[0, 1]
    # An answer has a Fisher information of about 0.15 on its logit. Without guessing, the
    # information would be p (1 - p), which is at most 0.25; guessing lowers it. So a slope that is
    # estimated from 1,000 answers has a standard error of 1 / √(1,000 · 0.15) = 0.08. The slopes
    # have a standard deviation of 0.6. The expected correlation of the fitted covariances with the
    # true ones, which are sums of products of two slopes, is about 1 - (0.08 / 0.6)² = 0.98.
    assert correlation > 0.95


@pytest.mark.parametrize("shift", [-1.0, 1.0])
def test_most_of_a_common_shift_is_estimated_within_one_game(shift: float) -> None:
    """If all students know less, or more, than the training students, the model notices.

    All logits of the students are higher than in the model by `shift`. In a game of ten questions,
    the model must estimate more than half of the shift.
    """
    n_students = 200
    model, is_right = simulate(n_students, seed=7, shift=shift)
    nothing_known = np.zeros(is_right.shape, bool)
    posterior = PACKAGE.StudentPosterior(model, nothing_known)

    # Each student answers ten random questions.
    rng = np.random.default_rng(8)
    students = np.arange(n_students)
    for _ in range(10):
        question = rng.integers(60, size=n_students)
        posterior.observe(students, question, is_right[students, question].astype(int))

    # The true shift is 1 or -1. The model updates its estimate of the shift three times in a game,
    # each time by at most 0.2. So before every update, the estimate differs from the true shift by
    # at least 0.6. This is much more than the standard error, which is below 0.1 with 200 students
    # whose logits have a standard deviation of 1.2. So every update takes the full step of 0.2, and
    # the last estimate is 0.6 or -0.6.
    estimated_share = posterior.population.shift / shift
    assert 0.5 < estimated_share < 1.2


def partial_vae(n_questions: int, completion: float) -> Any:
    """Return a partial VAE with random weights, to test which questions it chooses.

    The model describes a student by a latent vector z of three numbers. It knows which questions a
    student may be asked, because the student has answered them. The student may also have answered
    other questions, whose answers are hidden. With `completion` 0, the model expects no hidden
    answers; the larger the number, the more it expects.
    """
    rng = np.random.default_rng(0)
    values = {
        # P(right) = guessing + (1 - guessing) · sigmoid(loading · z + intercept).
        "intercept": rng.normal(size=n_questions),
        "loading": rng.normal(size=(n_questions, 3)),
        "guessing": np.array(0.2),
        # Each answer has a score and a precision. The model adds those of a student's answers to
        # those of the prior. The mean of z is the sum of the scores divided by the sum of the
        # precisions. The second axis is the outcome: 0 for a wrong answer and 1 for a right one.
        #
        # The reward of a question is a sum of two terms: how far its answer moves the predictions
        # of the targets, and how uncertain the answer is. The scores are so small that both terms
        # are similar in size. Otherwise, a mistake in the smaller term would change no choice.
        "score": 0.2 * rng.normal(size=(n_questions, 2, 3)),
        "precision": 0.1 + rng.normal(size=(n_questions, 2, 3)) ** 2,
        # The precision of z before any answer.
        "prior_precision": 0.5 + rng.normal(size=3) ** 2,
        # The model knows which questions a student has answered. Before it sees any answer, it
        # infers two things from this: the mean of z, by `mask_mean` and `mask_weights`, and the
        # further questions to which the student has hidden answers, by `completion`.
        "mask_mean": 0.1 * rng.normal(size=n_questions),
        "mask_weights": rng.normal(size=(n_questions, 3)),
        "completion": rng.uniform(0, completion / n_questions, (n_questions, n_questions)),
    }
    arrays = {name: torch.from_numpy(array).float() for name, array in values.items()}
    return PARTIAL_VAE.Model(**arrays)


class Inference(NamedTuple):
    """What a model infers before it sees any answer: it knows only which questions are answered."""

    # How likely it is that a student's answer to a question must be predicted (that it is a
    # target), shape (students, questions).
    target_weight: Any
    # Expected abilities of each student, shape (students, dimensions).
    mean_ability: Any
    # Whether the model concludes that a student may be asked the questions of the targets.
    targets_may_be_asked: bool


def infer_from_mask(mask: Any, model: Any) -> Inference:
    """Return what a model infers from the mask alone, before it sees any answer.

    In task 4, a model asks students questions, and must predict some of their answers, the targets.
    The mask says which questions a student may be asked; the student has answered all of these.
    There are two rules. By one rule, the targets are answers to questions in the mask, so that the
    model may ask for them. By the other rule, the targets are hidden: they are answers to further
    questions, outside the mask. The model is not told which rule holds, and must infer it.

    Parameters
    ----------
    mask
        Which questions each student may be asked, bool, shape (students, questions).
    model
        A model of either package. Its field `completion`, of shape (questions, questions), is a
        linear regression: `mask @ completion` predicts which further questions are answered.
    """
    completion = np.asarray(model.completion, float)
    mask_mean = np.asarray(model.mask_mean, float)
    mask_weights = np.asarray(model.mask_weights, float)

    # The probability that a student has a hidden answer to a question outside the mask. In both
    # packages, a probability below 0.3 counts as 0.
    p_hidden = np.where(mask, 0, mask @ completion).clip(max=1)
    p_hidden[p_hidden < 0.3] = 0
    # Hidden answers would be the targets. If hardly any are expected, the targets must be in the
    # mask instead. "Hardly any" is less than 5 % of the number of answers in the mask, in both
    # packages.
    targets_may_be_asked = p_hidden.sum() < 0.05 * mask.sum()
    if targets_may_be_asked:
        p_hidden[:] = 0
    # A student's targets are the hidden answers. If no hidden answers are expected of a student,
    # each answer in the student's mask is equally likely to be a target.
    has_hidden = p_hidden.any(axis=1, keepdims=True)
    target_weight = np.where(has_hidden, p_hidden, mask)

    # A linear regression predicts a student's abilities from the questions that the student has
    # answered or probably answered. Its input is a vector with 1 for these questions and 0 for all
    # others, scaled to the length 1.
    probably_answered = mask | (p_hidden > 0.5)
    n_answered = probably_answered.sum(axis=1, keepdims=True)
    scaled_mask = probably_answered / np.sqrt(n_answered)
    mean_ability = (scaled_mask - mask_mean) @ mask_weights
    return Inference(target_weight, mean_ability, bool(targets_may_be_asked))


class ModelPackage(NamedTuple):
    """A package in task_4/ and how it is tested."""

    module: Any
    # Makes a model, given its number of questions and a number `completion`. Besides the questions
    # that a student may be asked, the student may have answered further ones, whose answers are
    # hidden. With `completion` 0, the model expects no hidden answers; the larger the number, the
    # more it expects.
    make_model: Callable[[int, float], Any]
    # Turns a NumPy array into an array of the model's library, NumPy or PyTorch.
    convert: Callable[[Any], Any]


def full_item_response(n_questions: int, completion: float) -> Any:
    return full_model(PACKAGE, n_questions, seed=12, completion=completion)


PACKAGES = {
    "item_response": ModelPackage(PACKAGE, full_item_response, np.asarray),
    "pytorch": ModelPackage(PARTIAL_VAE, partial_vae, torch.as_tensor),
}


def predict_three_students(package: ModelPackage, model: Any, n_questions: int) -> np.ndarray:
    """Return predictions for three students, by the model cut or extended to `n_questions`.

    If the model has more questions, it loses its last ones. If it has fewer, it gets new questions
    about which it knows nothing. Student 0 answers question 3 correctly. Student 1 answers the last
    question wrongly. Student 2 answers no question. The result has the shape (3, n_questions).
    """
    changed_model = model.pad_questions(n_questions)
    nothing_known = package.convert(np.zeros((3, n_questions), bool))
    posterior = package.module.StudentPosterior(changed_model, nothing_known)

    def observe(student: int, question: int, is_right: int) -> None:
        """Let the model observe one answer."""
        posterior.observe(
            package.convert(np.array([student])),
            package.convert(np.array([question])),
            package.convert(np.array([is_right])),
        )

    observe(student=1, question=n_questions - 1, is_right=0)
    observe(student=0, question=3, is_right=1)
    prediction = np.asarray(posterior.predict())
    assert prediction.shape == (3, n_questions)
    return prediction


@pytest.mark.parametrize("name", PACKAGES)
def test_fewer_or_more_questions_do_not_change_predictions_of_the_others(name: str) -> None:
    """A model of 30 questions is cut to 25 and extended to 35.

    A new question, about which the model knows nothing, is predicted like an average question.
    """
    package = PACKAGES[name]
    # With 0.0 as `completion`, the model expects that a student has answered no questions besides
    # those that may be asked.
    model = package.make_model(30, 0.0)

    by_30_questions = predict_three_students(package, model, n_questions=30)
    by_25_questions = predict_three_students(package, model, n_questions=25)
    by_35_questions = predict_three_students(package, model, n_questions=35)

    # Student 0 has answered question 3, which all three models have.
    assert by_25_questions[0] == pytest.approx(by_30_questions[0, :25], abs=1e-5)
    assert by_35_questions[0, :30] == pytest.approx(by_30_questions[0], abs=1e-5)

    # An answer to a new question does not change the predictions for other questions. So students
    # 1 and 2 have the same predictions, except for the last question, which is new. The model knows
    # that student 1 has answered it wrongly, so this prediction is 0.
    _, student_1, student_2 = by_35_questions
    assert student_1 == pytest.approx([*student_2[:-1], 0], abs=1e-5)

    # The intercept of a new question is the mean of all intercepts. Both models have a guessing
    # probability of 0.2.
    average_question = 0.2 + 0.8 / (1 + np.exp(-float(model.intercept.mean())))
    assert by_35_questions[0, 30:] == pytest.approx(average_question, abs=1e-5)


class Beginning(NamedTuple):
    """What a model knows of six students before it sees any answer."""

    posterior: Any
    # Whether each student may be asked each of 30 questions, shape (6, 30).
    askable: Any
    # How likely it is that a student's answer to a question must be predicted (that it is a
    # target), shape (6, 30).
    target_weight: Any


def check_beginning(name: str, model: Any, posterior: Any, expected: Inference) -> None:
    """Check what a model infers before any answer, only from which questions may be asked.

    `posterior` is what the model infers, and `expected` what it must infer (see `infer_from_mask`).
    Two results are compared: how likely each answer is a target, and the mean logits. The mean
    logits must follow from the mean abilities.
    """
    # The two packages have different names for the slopes and for the two results.
    if name == "item_response":
        target_weight = posterior.target_weight
        mean_logits = posterior.mean
        slopes = model.slopes
    else:
        target_weight = posterior._target_weight
        mean_logits, _ = posterior.logits()
        slopes = model.loading
    assert np.asarray(target_weight) == pytest.approx(expected.target_weight, abs=1e-5)
    expected_logits = expected.mean_ability @ np.asarray(slopes).T + np.asarray(model.intercept)
    assert np.asarray(mean_logits) == pytest.approx(expected_logits, abs=1e-4)


def begin_with_six_students(name: str, targets_may_be_asked: bool) -> Beginning:
    """Return what the model of a package knows of six students before it sees any answer.

    The targets are the answers that the model must predict. It is not told whether it may ask the
    questions of the targets. It concludes this from the questions that it may ask each student. For
    the six students here, the conclusion must be `targets_may_be_asked`.
    """
    package = PACKAGES[name]
    # With 1.4 as `completion`, the model expects that a student has answered many questions besides
    # the askable ones. Those answers are hidden.
    model = package.make_model(30, 1.4)
    # If 97 % of the questions are askable, hardly any other question is left. So the model must
    # conclude that the targets are answers to askable questions. If 50 % of the questions are
    # askable, it must conclude that the targets are hidden. Student 3 may be asked all questions,
    # so this student certainly has no hidden answer.
    share_askable = 0.97 if targets_may_be_asked else 0.5
    askable = np.random.default_rng(11).random((6, 30)) < share_askable
    askable[3] = True

    posterior = package.module.StudentPosterior(model, package.convert(askable.copy()))

    expected = infer_from_mask(askable, model)
    assert expected.targets_may_be_asked == targets_may_be_asked
    check_beginning(name, model, posterior, expected)
    return Beginning(posterior, askable, expected.target_weight)


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
@pytest.mark.parametrize("name", PACKAGES)
def test_choices_do_not_change_if_another_student_cannot_be_asked_anything(
    name: str, targets_may_be_asked: bool
) -> None:
    posterior, askable, _ = begin_with_six_students(name, targets_may_be_asked)
    convert = PACKAGES[name].convert
    askable_without_student_2 = askable.copy()
    askable_without_student_2[2] = False

    selected = np.asarray(posterior.select(convert(askable)))
    selected_without = np.asarray(posterior.select(convert(askable_without_student_2)))

    others = [0, 1, 3, 4, 5]
    assert np.array_equal(selected[others], selected_without[others])


def weight_of_crossing(mean: Any, variance: Any) -> Any:
    """Return how much a change of each logit matters to the prediction.

    A change of a logit matters only if the logit crosses the boundary above which a right answer is
    predicted. So the weight is the density, at the boundary, of a normal distribution around the
    mean logit, without its constant factor. The variance of this distribution follows the rule of
    thumb in task_4/pytorch/model.py.
    """
    # At the boundary, P(right) is 1/2. With the guessing probability 0.2, P(right) is
    # 0.2 + 0.8 · sigmoid(logit). So sigmoid(logit) is 0.3 / 0.8, and the logit is log(0.3 / 0.5).
    boundary = np.log(0.3 / 0.5)
    density_variance = 0.5 * variance + 0.05
    squared_distance = (mean - boundary) ** 2
    return np.exp(-squared_distance / (2 * density_variance)) / density_variance**0.5


def reward_terms(
    posterior: Any, target_weight: Any, row: int, question: int
) -> tuple[float, float]:
    """Return the two terms of the reward by which the partial VAE chooses a question.

    The first term is the movement: how far an answer to the question is expected to move the
    predictions of the targets, the answers that must be predicted. It is half the expected square
    of the change of a logit, as a weighted sum over all questions. The weight is large if the
    answer to the question is likely to be a target (`target_weight`, of shape (students,
    questions)). It is also large if the logit is near the boundary above which a right answer is
    predicted.

    The second term is the probability that the answer to the question itself is predicted wrongly.
    """
    means, variances = posterior.logits()
    mean = means[row].numpy().astype(float)
    variance = variances[row].numpy().astype(float)
    weight_of_change = target_weight[row] * weight_of_crossing(mean, variance)

    p_right = float(posterior.predict()[row, question])
    movement = 0.0
    # To find the expectation, let a copy of the posterior observe each of the two outcomes.
    for is_right, p_outcome in ((0, 1 - p_right), (1, p_right)):
        after = copy.deepcopy(posterior)
        after.observe(torch.tensor([row]), torch.tensor([question]), torch.tensor([is_right]))
        means_after, _ = after.logits()
        change = means_after[row].numpy() - mean
        squared_change = float(weight_of_change @ change**2)
        movement += p_outcome * squared_change / 2
    p_wrong_prediction = min(p_right, 1 - p_right)
    return movement, p_wrong_prediction


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
def test_the_partial_vae_selects_the_question_with_the_largest_reward(
    targets_may_be_asked: bool,
) -> None:
    """Three questions are chosen for each of six students, by the formula of `reward_terms`.

    The targets are the answers that must be predicted. The reward of a question is how far its
    answer is expected to move these predictions. If targets may be asked, the uncertainty of the
    answer is added. test_strategies.py tests the questions that the item response model chooses.
    """
    posterior, askable, target_weight = begin_with_six_students("pytorch", targets_may_be_asked)
    rng = np.random.default_rng(11)
    rows = np.arange(6)
    questions_asked: set[int] = set()

    def expected_reward(row: int, question: int) -> float:
        """Return the reward of asking a student a question."""
        movement, uncertainty = reward_terms(posterior, target_weight, row, question)
        if not targets_may_be_asked:
            return movement
        # The answer to the question may be a target itself. Once it is known, its prediction is
        # certain. This helps most if the answer is uncertain before.
        return movement + UNCERTAINTY_WEIGHT * uncertainty

    for _ in range(3):
        selected = posterior.select(torch.tensor(askable)).numpy()

        for row in rows:
            askable_questions = np.flatnonzero(askable[row]).tolist()
            rewards = {question: expected_reward(row, question) for question in askable_questions}
            largest_reward = max(rewards.values())
            assert rewards[selected[row]] == pytest.approx(largest_reward, rel=0.01)
            # At least half of the questions have a clearly lower reward, so the assertion above
            # would fail if one of them were chosen.
            assert np.median(list(rewards.values())) < 0.8 * largest_reward

        # Reveal random outcomes of the chosen questions. A known answer need not be predicted, so
        # its target weight becomes 0.
        questions_asked |= set(selected)
        outcomes = rng.integers(2, size=6)
        posterior.observe(torch.tensor(rows), torch.tensor(selected), torch.tensor(outcomes))
        askable[rows, selected] = False
        target_weight[rows, selected] = 0

    # If all students got the same question in each of the three rounds, only three questions would
    # be chosen.
    assert len(questions_asked) > 3
