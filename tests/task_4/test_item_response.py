"""The item response package of task 4: its model checked by known answers."""

from typing import Any

import numpy as np
import pytest
from task_4_models import as_answers, as_reference, full_model, load_package, plain_model, read_mask

from common.adaptive.game import LocalEntry, Rules, choose_at_random, play, replay

PACKAGE, SUBMISSION, TRAIN = load_package("item_response", "submission_model_task_4", "train_model")


def simulate(n_students: int, seed: int) -> tuple[Any, Any]:
    """A true model in two dimensions and the outcomes of students who have answered everything."""
    rng = np.random.default_rng(seed)
    slopes = rng.exponential(0.9, (60, 1)) * rng.normal(1, 0.5, (60, 2))
    intercept = rng.normal(0.3, 0.8, 60)
    weights = plain_model(PACKAGE, slopes.clip(-2.5, 2.5), intercept=intercept, guessing=0.2)
    logit = rng.normal(size=(n_students, 2)) @ weights.slopes.T + weights.intercept
    return weights, rng.random(logit.shape) < 0.2 + 0.8 / (1 + np.exp(-logit))


# ---- Simulated students ------------------------------------------------------------------------


def test_choices_beat_chance() -> None:
    weights, right = simulate(1000, seed=1)
    reference = as_reference(right, np.random.default_rng(2).random(right.shape) < 0.3)
    for rules in (Rules(), Rules(targets_queryable=True)):
        entry = LocalEntry(SUBMISSION.Submission(weights))
        adaptive = play(entry, reference, "mask", rules).accuracy
        chosen = choose_at_random(reference, "mask", rules, 3)
        entry = LocalEntry(SUBMISSION.Submission(weights))
        random = replay(entry, reference, "mask", chosen, rules)
        assert adaptive > random[-1] + 0.005
        # After each answer more is known.
        assert random[-1] > random[0] + 0.01


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
    weights, _ = simulate(1, seed=7)
    rng = np.random.default_rng(8)
    logit = rng.normal(size=(200, 2)) @ weights.slopes.T + weights.intercept + shift
    right = rng.random(logit.shape) < 0.2 + 0.8 / (1 + np.exp(-logit))
    posterior = PACKAGE.StudentPosterior(weights, np.zeros(right.shape, bool))
    rows = np.arange(200)
    for _ in range(10):
        question = rng.integers(60, size=200)
        posterior.observe(rows, question, right[rows, question].astype(int))
    assert 0.5 < posterior.population.shift / shift < 1.2


# ---- Known answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("guessing", [0.0, 0.2])
@pytest.mark.parametrize("is_right", [0, 1])
def test_one_answer_against_numerical_integration(guessing: float, is_right: int) -> None:
    """Student i answers question i: mean and variance of its logit, of any size, afterwards."""
    rng = np.random.default_rng(3)
    mean, variance = rng.uniform(-3, 3, 40), rng.uniform(0.05, 3, 40)
    slopes = variance[:, None] ** 0.5
    model = plain_model(PACKAGE, slopes, intercept=mean, guessing=guessing)
    posterior = PACKAGE.StudentPosterior(model, np.zeros((40, 40), bool))
    rows = np.arange(40)
    posterior.observe(rows, rows, np.full(40, is_right))
    x = mean + np.linspace(-10, 10, 20_001)[:, None] * variance**0.5
    right = guessing + (1 - guessing) / (1 + np.exp(-x))
    density = np.exp(-((x - mean) ** 2) / (2 * variance)) * (right if is_right else 1 - right)
    density /= density.sum(axis=0)
    new_mean = (x * density).sum(axis=0)
    new_variance = ((x - new_mean) ** 2 * density).sum(axis=0)
    assert posterior.mean[rows, rows] == pytest.approx(new_mean, abs=5e-3)
    # A right answer that looks guessed would make it larger.
    expected = np.minimum(new_variance, variance)
    assert posterior.variance[rows, rows] == pytest.approx(expected, abs=1e-2)


def test_posterior_against_brute_force() -> None:
    """Two answers; the ability and a quiz effect on a fine grid give the exact probabilities."""
    slopes = np.array([[1.2], [0.8], [1.5], [0.5]])
    intercept = [0.5, -0.4, 0.1, 1.0]
    in_quiz = np.array([1, 0, 1, 0])
    quiz = 0.6 * np.outer(in_quiz, in_quiz)
    weights = plain_model(PACKAGE, slopes, intercept=intercept, quiz_covariance=quiz, guessing=0.2)
    posterior = PACKAGE.StudentPosterior(weights, np.ones((4, 4), bool))
    outcomes = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    for question, is_right in enumerate(outcomes.T):
        posterior.observe(np.arange(4), np.full(4, question), is_right)

    ability, effect = np.meshgrid(*[np.linspace(-6, 6, 401)] * 2)
    prior = np.exp(-(ability**2 + effect**2) / 2)
    logits = [
        slope * ability + 0.6**0.5 * effect * shared + middle
        for slope, shared, middle in zip(slopes[:, 0], in_quiz, intercept, strict=True)
    ]
    probability = [0.2 + 0.8 / (1 + np.exp(-logit)) for logit in logits]
    expected = np.empty((4, 4))
    for row, (first, second) in enumerate(outcomes):
        density = prior * (probability[0] if first else 1 - probability[0])
        density = density * (probability[1] if second else 1 - probability[1])
        expected[row] = [(density * p).sum() / density.sum() for p in probability]
    assert np.abs(posterior.probability() - expected).max() < 0.01
    assert np.array_equal(posterior.predict()[:, :2], outcomes)
    assert np.array_equal(posterior.predict()[:, 2:], posterior.probability()[:, 2:])


def test_other_widths() -> None:
    """What is known of the questions that stay does not change; a new one is independent."""
    weights, _ = simulate(1, seed=10)
    found = []
    for width in (60, 55, 65):
        posterior = PACKAGE.StudentPosterior(
            weights.pad_questions(width), np.ones((1, width), bool)
        )
        posterior.observe(np.array([0]), np.array([3]), np.array([1]))
        found.append(posterior.probability()[0])
        assert len(found[-1]) == width
        assert found[-1][:55] == pytest.approx(found[0][:55], abs=1e-5)
    middle = 0.2 + 0.8 / (1 + np.exp(-weights.intercept.mean()))
    assert found[2][60:] == pytest.approx(middle, abs=1e-5)
    assert found[2][:60] == pytest.approx(found[0], abs=1e-5)


def promise_by_hand(
    weights: Any, mean: Any, target_weight: Any, question: int, answers: Any, rounds_left: int
) -> tuple[float, float]:
    """The promise of a question, from whole covariance matrices and sums over one target at a time.

    `answers` are those observed so far, in order: pairs of a question and right or wrong. At most
    two of them: later ones change the estimate of the population. Beside the promise, the chance
    that the prediction for the question itself would have been wrong.
    """
    covariance = weights.slopes.astype(float) @ weights.slopes.T + weights.quiz_covariance
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


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
def test_selection_against_the_equation(targets_may_be_asked: bool) -> None:
    """Of all questions, the selected one has the largest promise; no other student plays a part."""
    rng = np.random.default_rng(11)
    weights = full_model(PACKAGE, 30, seed=12, completion=1.4)
    mask = rng.random((6, 30)) < (0.97 if targets_may_be_asked else 0.5)
    mask[3] = True
    posterior = PACKAGE.StudentPosterior(weights, mask)
    weight, latent, may_be_asked = read_mask(mask, weights)
    assert may_be_asked == targets_may_be_asked
    mean = weights.intercept + latent @ weights.slopes.T

    askable, answers = mask.copy(), [[] for _ in range(6)]  # type: ignore[var-annotated]
    rows = np.arange(6)
    seen = set()
    for rounds_left in (10, 9, 1):
        # As if the others had been answered: late in the game only what is left to learn counts.
        posterior.n_answers[:] = 10 - rounds_left
        selected = posterior.select(askable)
        for row in rows:
            given = weights, mean[row], weight[row]
            promise = {}
            for question in np.flatnonzero(askable[row]).tolist():
                of_others, own = promise_by_hand(*given, question, answers[row], rounds_left)
                promise[question] = of_others + 20 * own * targets_may_be_asked
            best = max(promise.values())
            assert promise[selected[row]] == pytest.approx(best, rel=0.02)
            # So that a wrong choice would show.
            assert np.median(list(promise.values())) < 0.8 * best
        seen |= set(selected)
        is_right = rng.integers(2, size=6)
        if len(answers[0]) < 2:
            posterior.observe(rows, selected, is_right)
            askable[rows, selected] = False
            weight[rows, selected] = 0
            for row in rows:
                answers[row].append((selected[row], is_right[row]))
    assert len(seen) > 3
    # A student with nothing to be asked gets some column, and disturbs nobody.
    askable[2] = False
    again = posterior.select(askable)
    assert np.array_equal(np.delete(again, 2), np.delete(selected, 2))
