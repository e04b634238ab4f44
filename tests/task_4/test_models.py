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
# Weight of a question's own uncertainty in its reward, if targets may be asked.
UNCERTAINTY_WEIGHT = 20


def simulate(n_students: int, seed: int, shift: float = 0) -> tuple[Any, Any]:
    """Return a model in two dimensions and the outcomes of students who have answered everything.

    `shift` is added to all logits.
    """
    rng = np.random.default_rng(seed)
    slopes = rng.exponential(0.9, (60, 1)) * rng.normal(1, 0.5, (60, 2))
    intercept = rng.normal(0.3, 0.8, 60)
    model = plain_model(PACKAGE, slopes.clip(-2.5, 2.5), intercept=intercept, guessing=0.2)
    logit = rng.normal(size=(n_students, 2)) @ model.slopes.T + model.intercept + shift
    return model, rng.random(logit.shape) < 0.2 + 0.8 / (1 + np.exp(-logit))


def test_training_recovers_the_parameters_of_the_questions() -> None:
    """Predictions for students of whom nothing is known come near the true probabilities."""
    true_model, right = simulate(1000, seed=6)
    fitted = TRAIN.fit(as_answers(right), 60)
    nobody = np.zeros((1, 60), bool)
    predicted = PACKAGE.StudentPosterior(fitted, nobody).probability()
    truth = PACKAGE.StudentPosterior(true_model, nobody).probability()
    # A share of 1,000 answers has a standard error of √(0.25 / 1,000) = 0.016. The tolerance is
    # four standard errors.
    assert np.abs(predicted - truth).max() < 0.06
    # Slopes are determined only up to a rotation, which does not change slopes · slopesᵀ, the
    # covariance of the logits. A slope has a standard error of 1 / √(1,000 · 0.15) = 0.08, and the
    # slopes have a standard deviation of 0.6. A covariance is a product of two slopes, so that
    # fitted and true covariances correlate by about 1 - (0.08 / 0.6)² = 0.98.
    fitted_covariance = fitted.slopes @ fitted.slopes.T
    true_covariance = true_model.slopes @ true_model.slopes.T
    assert np.corrcoef(fitted_covariance.ravel(), true_covariance.ravel())[0, 1] > 0.95


@pytest.mark.parametrize("shift", [-1.0, 1.0])
def test_most_of_a_common_shift_is_estimated_within_one_game(shift: float) -> None:
    """All students know less, or more, than the training students."""
    model, right = simulate(200, seed=7, shift=shift)
    posterior = PACKAGE.StudentPosterior(model, np.zeros(right.shape, bool))
    rng, rows = np.random.default_rng(8), np.arange(200)
    for _ in range(10):
        question = rng.integers(60, size=200)
        posterior.observe(rows, question, right[rows, question].astype(int))
    # The model updates its estimate of the shift three times a game, each time by at most 0.2, so
    # that the estimate reaches 0.6 of a shift of 1. With 200 students, whose logits have a standard
    # deviation of 1.2, the standard error is below 0.1: no update is smaller by chance.
    assert 0.5 < posterior.population.shift / shift < 1.2


def partial_vae(n: int, completion: float) -> Any:
    """Return a partial VAE with random weights.

    `completion` scales the weights by which the model infers which answers are hidden.
    """
    rng = np.random.default_rng(0)
    values = {
        "intercept": rng.normal(size=n),
        "loading": rng.normal(size=(n, 3)),
        "guessing": np.array(0.2),
        # A question is chosen for how far its answer moves the targets and for how uncertain that
        # answer is. The scores are so small that the two terms are similar in size: otherwise a
        # mistake in the smaller one would change no choice.
        "score": 0.2 * rng.normal(size=(n, 2, 3)),
        "precision": 0.1 + rng.normal(size=(n, 2, 3)) ** 2,
        "prior_precision": 0.5 + rng.normal(size=3) ** 2,
        "mask_mean": 0.1 * rng.normal(size=n),
        "mask_weights": rng.normal(size=(n, 3)),
        "completion": rng.uniform(0, completion / n, (n, n)),
    }
    arrays = {name: torch.from_numpy(array).float() for name, array in values.items()}
    return PARTIAL_VAE.Model(**arrays)


def read_mask(mask: Any, model: Any) -> tuple[Any, Any, bool]:
    """Infer from which questions a student has answered (the answered mask), as the packages do.

    Returns
    -------
    weight : ndarray, shape (students, questions)
        How likely each question is a target, one of those to be predicted.
    prior_mean : ndarray, shape (students, dimensions)
        Mean of the abilities before any answer is seen.
    targets_may_be_asked : bool
        Whether the masks hold the targets as well.
    """
    names = ("completion", "mask_mean", "mask_weights")
    completion, mask_mean, mask_weights = (np.asarray(getattr(model, n), float) for n in names)
    # The probability that an answer exists although the mask hides it; small ones count as 0.
    hidden = np.where(mask, 0, mask @ completion).clip(max=1)
    hidden[hidden < 0.3] = 0
    # If hardly any answer seems to be hidden, the targets are among the answers of the mask.
    targets_may_be_asked = hidden.sum() < 0.05 * mask.sum()
    if targets_may_be_asked:
        hidden[:] = 0
    answered = mask | (hidden > 0.5)
    relative = answered / np.sqrt(answered.sum(axis=1, keepdims=True)) - mask_mean
    weight = np.where(hidden.any(axis=1, keepdims=True), hidden, mask)
    return weight, relative @ mask_weights, bool(targets_may_be_asked)


class ModelPackage(NamedTuple):
    """A package in task_4/ and how it is tested."""

    module: Any
    # Makes a model from a number of questions and a value of `completion`.
    make_model: Callable[[int, float], Any]
    # Converts a NumPy array for the model.
    convert: Callable[[Any], Any]


def full_item_response(n_questions: int, completion: float) -> Any:
    return full_model(PACKAGE, n_questions, 12, completion)


PACKAGES = {
    "item_response": ModelPackage(PACKAGE, full_item_response, np.asarray),
    "pytorch": ModelPackage(PARTIAL_VAE, partial_vae, torch.as_tensor),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_fewer_or_more_questions_do_not_change_predictions_of_the_others(name: str) -> None:
    """A question that the model has not seen is predicted like a mean one."""
    package = PACKAGES[name]
    model = package.make_model(30, 0.0)

    def predict(n_questions: int) -> np.ndarray:
        """Return the predictions after an answer of student 1 and one of student 0."""
        nothing_known = package.convert(np.zeros((3, n_questions), bool))
        posterior = package.module.StudentPosterior(model.pad_questions(n_questions), nothing_known)
        # Each answer is a student, a question and an outcome. Student 1 answers the last question,
        # of which the model knows nothing if there are 35.
        for answer in ([1, n_questions - 1, 0], [0, 3, 1]):
            posterior.observe(*(package.convert(np.array([value])) for value in answer))
        prediction = np.asarray(posterior.predict())
        assert prediction.shape == (3, n_questions)
        return prediction

    all_questions, fewer, more = predict(30), predict(25), predict(35)
    assert fewer[0] == pytest.approx(all_questions[0, :25], abs=1e-5)
    assert more[0, :30] == pytest.approx(all_questions[0], abs=1e-5)
    # The wrong answer to the new question is known. It changes no other prediction for student 1,
    # so that they equal those for student 2, who has answered nothing.
    assert more[1] == pytest.approx([*more[2, :-1], 0], abs=1e-5)
    middle = 0.2 + 0.8 / (1 + np.exp(-float(model.intercept.mean())))
    assert more[0, 30:] == pytest.approx(middle, abs=1e-5)


def begin(name: str, targets_may_be_asked: bool) -> tuple[Any, Any, Any]:
    """Return the posterior of six students, the askable questions, and the weights of targets.

    The package's weights and mean logits must agree with those of `read_mask`.
    """
    package = PACKAGES[name]
    model = package.make_model(30, 1.4)
    askable = np.random.default_rng(11).random((6, 30)) < (0.97 if targets_may_be_asked else 0.5)
    askable[3] = True
    posterior = package.module.StudentPosterior(model, package.convert(askable.copy()))
    weight, prior_mean, inferred = read_mask(askable, model)
    assert inferred == targets_may_be_asked
    if name == "item_response":
        target_weight = posterior.target_weight
        mean_logits = posterior.mean
        slopes = model.slopes
    else:
        target_weight = posterior._target_weight
        mean_logits = posterior.logits()[0]
        slopes = model.loading
    assert np.asarray(target_weight) == pytest.approx(weight, abs=1e-5)
    expected_logits = prior_mean @ np.asarray(slopes).T + np.asarray(model.intercept)
    assert np.asarray(mean_logits) == pytest.approx(expected_logits, abs=1e-4)
    return posterior, askable, weight


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
@pytest.mark.parametrize("name", PACKAGES)
def test_choices_do_not_change_if_another_student_cannot_be_asked_anything(
    name: str, targets_may_be_asked: bool
) -> None:
    posterior, askable, _ = begin(name, targets_may_be_asked)
    convert = PACKAGES[name].convert
    without_student_2 = askable & (np.arange(6)[:, None] != 2)
    selected = np.asarray(posterior.select(convert(askable)))
    selected_without = np.asarray(posterior.select(convert(without_student_2)))
    assert np.array_equal(np.delete(selected, 2), np.delete(selected_without, 2))


def reward(posterior: Any, weight: Any, row: int, question: int) -> tuple[float, float]:
    """Return how far an answer is expected to move the targets, and how uncertain the answer is.

    The first value is half the expected squared movement of the targets' logits. A logit counts
    more if it is close to the logit at which P(right) = 1/2. The second value is the probability
    that the answer is predicted wrong.
    """
    mean, variance = (array[row].numpy().astype(float) for array in posterior.logits())
    spread = 0.5 * variance + 0.05
    # With a guessing probability of 0.2, P(right) = 0.2 + 0.8 · sigmoid(logit) is 1/2 here.
    boundary = np.log(0.3 / 0.5)
    density = np.exp(-((mean - boundary) ** 2) / (2 * spread)) / spread**0.5
    p = float(posterior.predict()[row, question])
    total = 0.0
    for outcome, share in enumerate((1 - p, p)):
        after = copy.deepcopy(posterior)
        after.observe(*torch.tensor([[row], [question], [outcome]]))
        moved = after.logits()[0][row].numpy() - mean
        total += share * float(weight[row] * density @ moved**2) / 2
    return total, min(p, 1 - p)


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
def test_the_partial_vae_selects_the_question_with_the_largest_reward(
    targets_may_be_asked: bool,
) -> None:
    """`item_response/` chooses by a function in strategies.py, which test_strategies.py tests."""
    posterior, askable, weight = begin("pytorch", targets_may_be_asked)
    rng = np.random.default_rng(11)
    rows = np.arange(6)
    seen: set[int] = set()
    for _ in range(3):
        selected = posterior.select(torch.tensor(askable)).numpy()
        for row in rows:
            values = {}
            for question in np.flatnonzero(askable[row]).tolist():
                value, uncertainty = reward(posterior, weight, row, question)
                if targets_may_be_asked:
                    # The question may be a target itself, and is then no longer to be predicted.
                    value += UNCERTAINTY_WEIGHT * uncertainty
                values[question] = value
            best = max(values.values())
            assert values[selected[row]] == pytest.approx(best, rel=0.01)
            # The best question stands out: choosing another one would fail the assertion above.
            assert np.median(list(values.values())) < 0.8 * best
        seen |= set(selected)
        posterior.observe(*map(torch.tensor, (rows, selected, rng.integers(2, size=6))))
        askable[rows, selected] = False
        weight[rows, selected] = 0
    assert len(seen) > 3
