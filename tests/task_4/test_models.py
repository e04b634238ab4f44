"""The models of item_response/ and pytorch/, checked by known answers."""

import itertools
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


# ---- Simulated students ------------------------------------------------------------------------


def test_training_finds_the_questions() -> None:
    """Predictions for students of whom nothing is known come near the true ones."""
    weights, right = simulate(1000, seed=6)
    fitted = TRAIN.fit(as_answers(right), 60)
    nobody = np.zeros((1, 60), bool)
    found, truth = (PACKAGE.StudentPosterior(m, nobody).probability() for m in (fitted, weights))
    assert np.abs(found - truth).max() < 0.06
    # The covariance of two logits that the dimensions of ability give, up to sampling error.
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
    assert 0.5 < posterior.population.shift / shift < 1.2


# ---- What both models do -----------------------------------------------------------------------


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


def reward_by_hand(
    model: Any, latent: Any, target_weight: Any, question: int, answers: Any, rounds_left: int
) -> tuple[float, float]:
    """The reward of a question for one student, summed over targets and outcomes, one at a time.

    `answers` are those observed so far: pairs of a question and right or wrong. Beside the reward,
    the chance that the prediction for the question itself would have been wrong.
    """
    arrays = {name: np.asarray(array, float) for name, array in vars(model).items()}
    asked, outcomes = np.array(answers, int).reshape(-1, 2).T
    precision = arrays["prior_precision"] + arrays["precision"][asked, outcomes].sum(axis=0)
    score = latent * arrays["prior_precision"] + arrays["score"][asked, outcomes].sum(axis=0)
    mean = arrays["loading"] @ (score / precision) + arrays["intercept"]
    variance = arrays["loading"] ** 2 @ (1 / precision)
    p = 0.2 + 0.8 / (1 + np.exp(-mean[question] / np.sqrt(1 + np.pi / 8 * variance[question])))
    total = 0.0
    for target, outcome in itertools.product(np.flatnonzero(target_weight), range(2)):
        spread = 0.5 * variance[target] + 0.05
        density = np.exp(-((mean[target] - np.log(0.3 / 0.5)) ** 2) / (2 * spread)) / spread**0.5
        later = (score + arrays["score"][question, outcome]) / (
            precision + arrays["precision"][question, outcome]
        )
        moved = arrays["loading"][target] @ (later - score / precision)
        share = p if outcome else 1 - p
        total += share * target_weight[target] * density * moved**2 / 2
    return total, min(p, 1 - p)


def promise_by_hand(
    model: Any, latent: Any, target_weight: Any, question: int, answers: Any, rounds_left: int
) -> tuple[float, float]:
    """The same of item_response/, from whole covariance matrices.

    At most two answers, in order: later ones change the estimate of the population.
    """
    mean = model.intercept + model.slopes @ latent
    covariance = model.slopes.astype(float) @ model.slopes.T + model.quiz_covariance
    grid = np.linspace(-12, 12, 4001)
    p = 0.2 + 0.8 / (1 + np.exp(-grid))
    for asked, is_right in answers:
        # The mean and variance of this logit given the answer, by integration; the others follow.
        variance = covariance[asked, asked]
        density = np.exp(-((grid - mean[asked]) ** 2) / (2 * variance)) * (p if is_right else 1 - p)
        density /= density.sum()
        new_mean = (density * grid).sum()
        new_variance = min((density * (grid - new_mean) ** 2).sum(), variance)
        row = covariance[asked] / variance
        mean = mean + row * (new_mean - mean[asked])
        covariance = covariance - np.outer(row, row) * (variance - new_variance)

    variance = np.diagonal(covariance)
    knows = 1 / (1 + np.exp(-mean[question] / np.sqrt(1 + np.pi / 8 * variance[question])))
    right = 0.2 + 0.8 * knows
    noise = right * (1 - right) / (0.8 * knows * (1 - knows)) ** 2
    total = 0.0
    for target, weight in enumerate(target_weight):
        spread = 0.7 * rounds_left / 10 * variance[target] + 0.05
        distance = mean[target] - np.log(0.3 / 0.5)
        importance = weight * np.exp(-(distance**2) / (2 * spread)) / np.sqrt(spread)
        total += importance * covariance[question, target] ** 2 / (variance[question] + noise)
    return total, min(right, 1 - right)


def read_mask(mask: Any, model: Any) -> tuple[Any, Any, bool]:
    """Return what an answered mask says by the rules that the packages' models document.

    The weights of targets, the latent mean before any answer, whether targets may be asked.
    """
    arrays = {
        name: np.asarray(getattr(model, name), float)
        for name in ("completion", "mask_mean", "mask_weights")
    }
    hidden = np.where(mask, 0, mask @ arrays["completion"]).clip(max=1)
    hidden[hidden < 0.3] = 0
    may_be_asked = hidden.sum() < 0.05 * mask.sum()
    hidden *= not may_be_asked
    answered = mask | (hidden > 0.5)
    relative = answered / np.sqrt(answered.sum(axis=1, keepdims=True)) - arrays["mask_mean"]
    weight = np.where(hidden.any(axis=1, keepdims=True), hidden, mask)
    return weight, relative @ arrays["mask_weights"], bool(may_be_asked)


# By each package's name: its module, some models, what arrays it takes, the value of a question.
MODELS: Any = {
    "item_response": (
        PACKAGE,
        lambda n, completion: full_model(PACKAGE, n, 12, completion),
        np.asarray,
        promise_by_hand,
    ),
    "pytorch": (PARTIAL_VAE, partial_vae, torch.as_tensor, reward_by_hand),
}


@pytest.mark.parametrize("name", MODELS)
def test_other_widths(name: str) -> None:
    """What is known of the questions that stay does not change; a new one is like a mean one."""
    package, some_model, given, _ = MODELS[name]
    model = some_model(30, 0.0)
    found = []
    for width in (30, 25, 35):
        nothing_known = given(np.zeros((2, width), bool))
        posterior = package.StudentPosterior(model.pad_questions(width), nothing_known)
        posterior.observe(*map(given, np.array([[0, 1], [3, 3], [1, 1]])))
        before = np.asarray(posterior.predict())
        # The second student answers a new question too, which tells nothing, if there is one.
        posterior.observe(*map(given, np.array([[1], [width - 1], [0]])))
        found.append(np.asarray(posterior.predict()))
        assert found[-1].shape == (2, width)
        assert found[-1][0, :25] == pytest.approx(found[0][0, :25], abs=1e-5)
    assert found[2][0, :30] == pytest.approx(found[0][0], abs=1e-5)
    assert found[2][1] == pytest.approx([*before[1, :-1], 0], abs=1e-5)
    middle = 0.2 + 0.8 / (1 + np.exp(-float(model.intercept.mean())))
    assert found[2][0, 30:] == pytest.approx(middle, abs=1e-5)
    # Also as the first answer of all.
    posterior = package.StudentPosterior(model.pad_questions(35), given(np.zeros((1, 35), bool)))
    posterior.observe(*map(given, np.array([[0], [34], [0]])))
    assert np.isfinite(np.asarray(posterior.predict())).all()


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_selection_against_the_equation(name: str, targets_may_be_asked: bool) -> None:
    """The selected question has the largest value of all; no other student plays a part."""
    package, some_model, given, value_by_hand = MODELS[name]
    rng = np.random.default_rng(11)
    model = some_model(30, 1.4)
    askable = rng.random((6, 30)) < (0.97 if targets_may_be_asked else 0.5)
    askable[3] = True
    posterior = package.StudentPosterior(model, given(askable.copy()))
    weight, latent, may_be_asked = read_mask(askable, model)
    assert may_be_asked == targets_may_be_asked
    answers: list[list[tuple[int, int]]] = [[] for _ in range(6)]
    rows = np.arange(6)
    seen = set()
    for rounds_left in (10, 9, 1):
        # As if the others had been answered: late in the game only what is left to learn counts.
        posterior.n_answers = np.full(6, 10 - rounds_left)
        selected = np.asarray(posterior.select(given(askable)))
        for row in rows:
            values = {}
            for question in np.flatnonzero(askable[row]).tolist():
                known = answers[row], rounds_left
                value, own = value_by_hand(model, latent[row], weight[row], question, *known)
                values[question] = value + 20 * own * targets_may_be_asked
            best = max(values.values())
            assert values[selected[row]] == pytest.approx(best, rel=0.01)
            # So that a wrong choice would show.
            assert np.median(list(values.values())) < 0.8 * best
        seen |= set(selected)
        if rounds_left > 1 and len(answers[0]) < 2:
            is_right = rng.integers(2, size=6)
            posterior.observe(*map(given, (rows, selected, is_right)))
            askable[rows, selected] = False
            weight[rows, selected] = 0
            for row in rows:
                answers[row].append((selected[row], is_right[row]))
    assert len(seen) > 3
    # A student with nothing to be asked gets some column, and disturbs nobody.
    again = np.asarray(posterior.select(given(askable & (rows[:, None] != 2))))
    assert np.array_equal(np.delete(again, 2), np.delete(selected, 2))
