"""The partial VAE of task 4: its model and its reward checked by known answers."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from task_4_models import load_package, read_mask

(PACKAGE,) = load_package("pytorch")
N_QUESTIONS = 40


def some_model(completion: float) -> Any:
    """Return a model with random weights: the more answers are hidden, the larger."""
    generator = torch.Generator().manual_seed(0)
    n, k = N_QUESTIONS, 3

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return PACKAGE.Model(
        intercept=normal(n),
        loading=normal(n, k),
        guessing=torch.tensor(0.2),
        # So small that the reward and the own uncertainty of a question are of one size.
        score=0.2 * normal(n, 2, k),
        precision=0.1 + normal(n, 2, k).square(),
        prior_precision=0.5 + normal(k).square(),
        mask_mean=0.1 * normal(n),
        mask_weights=normal(n, k),
        completion=completion / n * torch.rand((n, n), generator=generator),
    )


def test_other_widths() -> None:
    """What is known of the questions that stay does not change; a new one is like a mean one."""
    model = some_model(0)
    found = []
    for width in (N_QUESTIONS, 25, 60):
        nothing_known = torch.zeros(2, width, dtype=torch.bool)
        posterior = PACKAGE.StudentPosterior(model.pad_questions(width), nothing_known)
        before = posterior.predict()
        # The second student answers a new question, which tells nothing, if there is one.
        posterior.observe(torch.tensor([0, 1]), torch.tensor([3, width - 1]), torch.tensor([1, 0]))
        found.append(posterior.predict())
        assert found[-1].shape == (2, width)
        torch.testing.assert_close(found[-1][0, :25], found[0][0, :25])
    assert found[2][1, -1] == 0
    torch.testing.assert_close(found[2][1, :-1], before[1, :-1])
    middle = 0.2 + 0.8 * model.intercept.mean().sigmoid()
    torch.testing.assert_close(found[2][0, 40:], middle.expand(20))


def value_by_hand(
    arrays: Any, score: Any, precision: Any, target_weight: Any, question: int
) -> tuple[float, float]:
    """The reward of a question for one student, summed over targets and outcomes, one at a time.

    Beside it, the chance that the prediction for the question itself would have been wrong.
    """
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


@pytest.mark.parametrize("targets_may_be_asked", [False, True])
def test_selection_against_the_reward_of_each_question_by_itself(
    targets_may_be_asked: bool,
) -> None:
    """No question and no student plays a part in the value of another."""
    n_students = 8
    model = some_model(1.4)
    arrays = {name: np.asarray(array, float) for name, array in vars(model).items()}
    rng = np.random.default_rng(1)
    askable = rng.random((n_students, N_QUESTIONS)) < (0.97 if targets_may_be_asked else 0.6)
    weight, latent, may_be_asked = read_mask(askable, model)
    assert may_be_asked == targets_may_be_asked
    precision = np.tile(arrays["prior_precision"], (n_students, 1))
    score = latent * precision

    posterior = PACKAGE.StudentPosterior(model, torch.from_numpy(askable.copy()))
    rows = np.arange(n_students)
    for is_right in (rows % 2, None):
        selected = posterior.select(torch.from_numpy(askable)).numpy()
        for row in rows:
            given = arrays, score[row], precision[row], weight[row]
            values = {}
            for question in np.flatnonzero(askable[row]).tolist():
                reward, own = value_by_hand(*given, question)
                values[question] = reward + 20 * own * targets_may_be_asked
            best = max(values.values())
            assert values[selected[row]] == pytest.approx(best, rel=1e-4)
            assert np.median(list(values.values())) < 0.9 * best
        if is_right is not None:
            posterior.observe(*(torch.from_numpy(a) for a in (rows, selected, is_right)))
            score += arrays["score"][selected, is_right]
            precision += arrays["precision"][selected, is_right]
            weight[rows, selected] = 0
            askable[rows, selected] = False
