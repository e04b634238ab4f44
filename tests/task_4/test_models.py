"""The models of item_response/ and pytorch/, compared with known answers and with formulas."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from task_4_models import as_answers, full_model, load_package, plain_model

PACKAGE, TRAIN = load_package("item_response", "train_model")
(PARTIAL_VAE,) = load_package("pytorch")


def simulate(n_students: int, seed: int, shift: float = 0) -> tuple[Any, Any]:
    """Return a model in two dimensions and the outcomes of students who have answered everything.

    `shift` is added to all logits.
    """
    rng = np.random.default_rng(seed)
    slopes = rng.exponential(0.9, (60, 1)) * rng.normal(1, 0.5, (60, 2))
    intercept = rng.normal(0.3, 0.8, 60)
    weights = plain_model(PACKAGE, slopes.clip(-2.5, 2.5), intercept=intercept, guessing=0.2)
    logit = rng.normal(size=(n_students, 2)) @ weights.slopes.T + weights.intercept + shift
    return weights, rng.random(logit.shape) < 0.2 + 0.8 / (1 + np.exp(-logit))


def test_training_recovers_the_parameters_of_the_questions() -> None:
    """Predictions for students of whom nothing is known come near the true probabilities."""
    weights, right = simulate(1000, seed=6)
    fitted = TRAIN.fit(as_answers(right), 60)
    nobody = np.zeros((1, 60), bool)
    predicted = PACKAGE.StudentPosterior(fitted, nobody).probability()
    truth = PACKAGE.StudentPosterior(weights, nobody).probability()
    # A share of 1,000 answers has a standard error of √(0.25 / 1,000) = 0.016: four of these.
    assert np.abs(predicted - truth).max() < 0.06
    # The abilities give two logits a covariance. A slope has a standard error of
    # 1 / √(1,000 · 0.15) = 0.08, and slopes deviate by 0.6. A covariance is made of two slopes, so
    # that fitted and true covariances correlate by about 1 - (0.08 / 0.6)² = 0.98.
    fitted_covariance = fitted.slopes @ fitted.slopes.T
    true_covariance = weights.slopes @ weights.slopes.T
    assert np.corrcoef(fitted_covariance.ravel(), true_covariance.ravel())[0, 1] > 0.95


@pytest.mark.parametrize("shift", [-1.0, 1.0])
def test_most_of_a_shift_of_all_students_is_estimated_in_one_game(shift: float) -> None:
    """All students know less, or more, than those of training."""
    weights, right = simulate(200, seed=7, shift=shift)
    posterior = PACKAGE.StudentPosterior(weights, np.zeros(right.shape, bool))
    rng, rows = np.random.default_rng(8), np.arange(200)
    for _ in range(10):
        question = rng.integers(60, size=200)
        posterior.observe(rows, question, right[rows, question].astype(int))
    # The estimate takes three steps of at most 0.2 in one game and ends at 0.6. With 200 students,
    # whose abilities deviate by 1.2, its standard error is below 0.1, so that no step is shorter by
    # chance.
    assert 0.5 < posterior.population.shift / shift < 1.2


def partial_vae(n: int, completion: float) -> Any:
    """Return a partial VAE with random weights.

    The larger `completion`, the more answers the model takes to be hidden.
    """
    rng = np.random.default_rng(0)
    values = {
        "intercept": rng.normal(size=n),
        "loading": rng.normal(size=(n, 3)),
        "guessing": np.array(0.2),
        # Small scores make a question's reward as large as the uncertainty of its own answer.
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
    """Return what an answered mask tells, by the formulas of the packages.

    These are the weights of targets, the latent mean, and whether targets may be asked.
    """
    names = ("completion", "mask_mean", "mask_weights")
    completion, mask_mean, mask_weights = (np.asarray(getattr(model, n), float) for n in names)
    hidden = np.where(mask, 0, mask @ completion).clip(max=1)
    hidden[hidden < 0.3] = 0
    may_be_asked = hidden.sum() < 0.05 * mask.sum()
    hidden *= not may_be_asked
    answered = mask | (hidden > 0.5)
    relative = answered / np.sqrt(answered.sum(axis=1, keepdims=True)) - mask_mean
    weight = np.where(hidden.any(axis=1, keepdims=True), hidden, mask)
    return weight, relative @ mask_weights, bool(may_be_asked)


# For each package its module, a function that makes a model, and one that converts an array.
MODELS: Any = {
    "item_response": (PACKAGE, lambda n, hidden: full_model(PACKAGE, n, 12, hidden), np.asarray),
    "pytorch": (PARTIAL_VAE, partial_vae, torch.as_tensor),
}


@pytest.mark.parametrize("name", MODELS)
def test_fewer_or_more_questions_do_not_change_predictions_of_the_others(name: str) -> None:
    """A question that the model has not seen is predicted like a mean one."""
    package, some_model, given = MODELS[name]
    model = some_model(30, 0.0)
    predictions = []
    for width in (30, 25, 35):
        nothing_known = given(np.zeros((3, width), bool))
        posterior = package.StudentPosterior(model.pad_questions(width), nothing_known)
        # The answer to a new question, if there is one, tells nothing, be it the first of all.
        posterior.observe(*map(given, np.array([[1], [width - 1], [0]])))
        posterior.observe(*map(given, np.array([[0], [3], [1]])))
        prediction = np.asarray(posterior.predict())
        assert prediction.shape == (3, width)
        predictions.append(prediction)
    of_all, of_fewer, of_more = predictions
    assert of_fewer[0] == pytest.approx(of_all[0, :25], abs=1e-5)
    assert of_more[0, :30] == pytest.approx(of_all[0], abs=1e-5)
    assert of_more[1] == pytest.approx([*of_more[2, :-1], 0], abs=1e-5)
    middle = 0.2 + 0.8 / (1 + np.exp(-float(model.intercept.mean())))
    assert of_more[0, 30:] == pytest.approx(middle, abs=1e-5)


def begin(name: str, targets_may_be_asked: bool) -> tuple[Any, Any, Any]:
    """Return the posterior of six students, what may be asked, and the weights of targets."""
    package, some_model, given = MODELS[name]
    model = some_model(30, 1.4)
    askable = np.random.default_rng(11).random((6, 30)) < (0.97 if targets_may_be_asked else 0.5)
    askable[3] = True
    posterior = package.StudentPosterior(model, given(askable.copy()))
    weight, latent, may_be_asked = read_mask(askable, model)
    assert may_be_asked == targets_may_be_asked
    if name == "item_response":
        known = posterior.target_weight, posterior.mean, model.slopes
    else:
        known = posterior._target_weight, posterior.logits()[0], model.loading
    target_weight, mean, slopes = map(np.asarray, known)
    assert target_weight == pytest.approx(weight, abs=1e-5)
    assert mean == pytest.approx(latent @ slopes.T + np.asarray(model.intercept), abs=1e-4)
    return posterior, askable, weight


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_choices_do_not_change_if_another_student_cannot_be_asked_anything(
    name: str, targets_may_be_asked: bool
) -> None:
    posterior, askable, _ = begin(name, targets_may_be_asked)
    given = MODELS[name][2]
    without_student_2 = askable & (np.arange(6)[:, None] != 2)
    selected = np.asarray(posterior.select(given(askable)))
    selected_without = np.asarray(posterior.select(given(without_student_2)))
    assert np.array_equal(np.delete(selected, 2), np.delete(selected_without, 2))


def reward(posterior: Any, weight: Any, row: int, question: int) -> tuple[float, float]:
    """Return how far the answer moves the logits of targets, and P(its own prediction is wrong)."""
    mean, variance = (array[row].numpy().astype(float) for array in posterior.logits())
    spread = 0.5 * variance + 0.05
    density = np.exp(-((mean - np.log(0.3 / 0.5)) ** 2) / (2 * spread)) / spread**0.5
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
    """The choice of item_response/ is a strategy, too, and is tested in test_strategies.py."""
    posterior, askable, weight = begin("pytorch", targets_may_be_asked)
    rng = np.random.default_rng(11)
    rows = np.arange(6)
    seen: set[int] = set()
    for _ in range(3):
        selected = posterior.select(torch.tensor(askable)).numpy()
        for row in rows:
            values = {}
            for question in np.flatnonzero(askable[row]).tolist():
                value, own = reward(posterior, weight, row, question)
                values[question] = value + 20 * own * targets_may_be_asked
            best = max(values.values())
            assert values[selected[row]] == pytest.approx(best, rel=0.01)
            # Otherwise a wrong choice would not show.
            assert np.median(list(values.values())) < 0.8 * best
        seen |= set(selected)
        posterior.observe(*map(torch.tensor, (rows, selected, rng.integers(2, size=6))))
        askable[rows, selected] = False
        weight[rows, selected] = 0
    assert len(seen) > 3
