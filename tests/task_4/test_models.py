"""The models of item_response/ and pytorch/, checked by known answers."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from task_4_models import as_answers, full_model, load_package, plain_model

PACKAGE, TRAIN = load_package("item_response", "train_model")
(PARTIAL_VAE,) = load_package("pytorch")


def simulate(n_students: int, seed: int, shift: float = 0) -> tuple[Any, Any]:
    """A true model in two dimensions and the outcomes of students who have answered everything."""
    rng = np.random.default_rng(seed)
    slopes = rng.exponential(0.9, (60, 1)) * rng.normal(1, 0.5, (60, 2))
    intercept = rng.normal(0.3, 0.8, 60)
    weights = plain_model(PACKAGE, slopes.clip(-2.5, 2.5), intercept=intercept, guessing=0.2)
    logit = rng.normal(size=(n_students, 2)) @ weights.slopes.T + weights.intercept + shift
    return weights, rng.random(logit.shape) < 0.2 + 0.8 / (1 + np.exp(-logit))


def test_training_finds_the_questions() -> None:
    """Predictions for students of whom nothing is known come near the true ones."""
    weights, right = simulate(1000, seed=6)
    fitted = TRAIN.fit(as_answers(right), 60)
    nobody = np.zeros((1, 60), bool)
    found, truth = (PACKAGE.StudentPosterior(m, nobody).probability() for m in (fitted, weights))
    # A share of 1,000 answers has a standard error of √(0.25 / 1,000) = 0.016: four of these.
    assert np.abs(found - truth).max() < 0.06
    # The covariance of two logits that the dimensions of ability give. A slope has a standard error
    # of 1 / √(1,000 · 0.15) = 0.08, and slopes deviate by 0.6. A covariance is made of two slopes,
    # so that found and true ones correlate by about 1 - (0.08 / 0.6)² = 0.98.
    found, truth = (m.slopes @ m.slopes.T for m in (fitted, weights))
    assert np.corrcoef(found.ravel(), truth.ravel())[0, 1] > 0.95


@pytest.mark.parametrize("shift", [-1.0, 1.0])
def test_a_population_that_differs_is_noticed(shift: float) -> None:
    """All students know less, or more, than those of training: most of that shows in one game."""
    weights, right = simulate(200, seed=7, shift=shift)
    posterior = PACKAGE.StudentPosterior(weights, np.zeros(right.shape, bool))
    rng, rows = np.random.default_rng(8), np.arange(200)
    for _ in range(10):
        question = rng.integers(60, size=200)
        posterior.observe(rows, question, right[rows, question].astype(int))
    # The estimate goes three steps of at most 0.2 in one game: it ends at 0.6. 200 students, whose
    # abilities deviate by 1.2, tell it up to 0.1, so that no step is shorter by chance.
    assert 0.5 < posterior.population.shift / shift < 1.2


def partial_vae(n: int, completion: float) -> Any:
    """Return a model with random weights: the more answers are hidden, the larger."""
    rng = np.random.default_rng(0)
    values = {
        "intercept": rng.normal(size=n),
        "loading": rng.normal(size=(n, 3)),
        "guessing": np.array(0.2),
        # So small that the reward and the own uncertainty of a question are of one size.
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
    """Return what it says: weights of targets, latent mean, whether targets may be asked."""
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


# By each package's name: its module, some model, what arrays it takes.
MODELS: Any = {
    "item_response": (PACKAGE, lambda n, hidden: full_model(PACKAGE, n, 12, hidden), np.asarray),
    "pytorch": (PARTIAL_VAE, partial_vae, torch.as_tensor),
}


@pytest.mark.parametrize("name", MODELS)
def test_other_widths(name: str) -> None:
    """What is known of the questions that stay does not change; a new one is like a mean one."""
    package, some_model, given = MODELS[name]
    model = some_model(30, 0.0)
    found = []
    for width in (30, 25, 35):
        nothing_known = given(np.zeros((3, width), bool))
        posterior = package.StudentPosterior(model.pad_questions(width), nothing_known)
        # The answer to a new question, if there is one, tells nothing, be it the first of all.
        posterior.observe(*map(given, np.array([[1], [width - 1], [0]])))
        posterior.observe(*map(given, np.array([[0], [3], [1]])))
        found.append(np.asarray(posterior.predict()))
        assert found[-1].shape == (3, width)
        assert found[-1][0, :25] == pytest.approx(found[0][0, :25], abs=1e-5)
    assert found[2][0, :30] == pytest.approx(found[0][0], abs=1e-5)
    assert found[2][1] == pytest.approx([*found[2][2, :-1], 0], abs=1e-5)
    middle = 0.2 + 0.8 / (1 + np.exp(-float(model.intercept.mean())))
    assert found[2][0, 30:] == pytest.approx(middle, abs=1e-5)


def begin(name: str, targets_may_be_asked: bool) -> tuple[Any, Any, Any]:
    """Return what is known of six students, what may be asked, and the weights of targets."""
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
    found, mean, slopes = map(np.asarray, known)
    assert found == pytest.approx(weight, abs=1e-5)
    assert mean == pytest.approx(latent @ slopes.T + np.asarray(model.intercept), abs=1e-4)
    return posterior, askable, weight


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_student_with_nothing_to_be_asked_disturbs_nobody(
    name: str, targets_may_be_asked: bool
) -> None:
    posterior, askable, _ = begin(name, targets_may_be_asked)
    some, given = askable & (np.arange(6)[:, None] != 2), MODELS[name][2]
    found = (np.asarray(posterior.select(given(mask))) for mask in (askable, some))
    assert np.array_equal(*(np.delete(selected, 2) for selected in found))


def reward(posterior: Any, weight: Any, row: int, question: int) -> tuple[float, float]:
    """How far the answer moves the logits of targets; how likely its own prediction is wrong."""
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
def test_selection_against_the_equation(targets_may_be_asked: bool) -> None:
    """That of item_response/ is a strategy as well, with which test_strategies.py compares it."""
    posterior, askable, weight = begin("pytorch", targets_may_be_asked)
    rng, rows, seen = np.random.default_rng(11), np.arange(6), set()
    for _ in range(3):
        selected = posterior.select(torch.tensor(askable)).numpy()
        for row in rows:
            values = {}
            for question in np.flatnonzero(askable[row]).tolist():
                value, own = reward(posterior, weight, row, question)
                values[question] = value + 20 * own * targets_may_be_asked
            best = max(values.values())
            assert values[selected[row]] == pytest.approx(best, rel=0.01)
            # So that a wrong choice would show.
            assert np.median(list(values.values())) < 0.8 * best
        seen |= set(selected)
        posterior.observe(*map(torch.tensor, (rows, selected, rng.integers(2, size=6))))
        askable[rows, selected] = False
        weight[rows, selected] = 0
    assert len(seen) > 3
