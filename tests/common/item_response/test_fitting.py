"""How a fit begins and ends: early stopping, a warm start, degenerate answers."""

from typing import Any
from unittest.mock import patch

from common.item_response import fitting

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from planted_contexts import (
    N_QUESTIONS,
    TEST,
    TRAIN,
    UNKNOWN,
    fit,
    fit_options,
    groups,
    loss,
    options,
    predict,
)

# ---- Early stopping -----------------------------------------------------------------------------


def test_the_fit_ends_when_the_held_out_loss_hardly_falls_in_two_steps() -> None:
    losses = [score.loss for score in fit(TRAIN).history_]
    falls = [(before - now) / before for before, now in zip(losses, losses[2:], strict=False)]
    assert falls[-1] < 1.25e-3 <= min(falls[:-1])


def test_each_step_is_logged_with_its_score() -> None:
    events: list[dict[str, Any]] = []
    model = fit(TRAIN, log_event=lambda name, **values: events.append({"name": name, **values}))
    assert events == [
        {
            "name": "step",
            "step": step,
            "held_out_loss": score.loss,
            "held_out_accuracy": score.accuracy,
        }
        for step, score in enumerate(model.history_, start=1)
    ]


def test_many_answers_are_fitted_in_fewer_steps_and_equally_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = fit(TRAIN, n_dimensions=6)
    monkeypatch.setattr(fitting, "_MANY_ANSWERS", 0)
    many = fit(TRAIN, n_dimensions=6)
    assert len(many.history_) < len(few.history_)
    # Both losses are expectations over the same true probabilities, without random errors.
    assert loss(predict(many, TEST), TEST.p_right) < loss(predict(few, TEST), TEST.p_right) + 5e-4


def test_in_the_end_the_fit_learns_from_held_out_answers_too() -> None:
    n = 2_000
    # Further questions with a single answer each, some of which are held out. If the fit never
    # learned from a held-out answer, its question would keep the covariance of the prior.
    rows = pd.concat([TRAIN, TRAIN[:n].assign(question=np.arange(n) + UNKNOWN)])
    # The last covariance, that of unknown questions, is the prior's.
    *known, unknown = fit(rows, n_dimensions=1).posterior_.items.covariance[:, 1, 1]
    assert len(known) == N_QUESTIONS + n
    assert max(known) < unknown


# ---- Warm start --------------------------------------------------------------------------------


@pytest.mark.parametrize("has_contexts", [False, True])
def test_a_warm_start_spares_steps(has_contexts: bool) -> None:
    """The first model lacks some of the students, questions and contexts."""

    def context(rows: pd.DataFrame) -> np.ndarray | None:
        return groups(rows) if has_contexts else None

    known = TRAIN[(TRAIN.student % 7 > 0) & (TRAIN.question % 10 > 0) & (TRAIN.quiz > 1)]
    start = fit(known, context(known))
    models = {
        "cold": fit(TRAIN, context(TRAIN)),
        "warm, 2 steps": fit(TRAIN, context(TRAIN), start=start, n_steps=2),
        "cold, 2 steps": fit(TRAIN, context(TRAIN), n_steps=2),
    }
    losses = {
        name: loss(predict(model, TEST, context(TEST)), TEST.p_right)
        for name, model in models.items()
    }
    assert losses["warm, 2 steps"] < losses["cold"] + 1e-3
    assert losses["warm, 2 steps"] < losses["cold, 2 steps"] - 1e-3


def test_control_c_in_the_first_step_leaves_no_model() -> None:
    stop = patch.object(fitting, "run_step", side_effect=KeyboardInterrupt)
    with stop, pytest.raises(KeyboardInterrupt):
        fit(TRAIN, start=fit(TRAIN, n_steps=1))


def test_control_c_in_a_later_step_leaves_the_last_complete_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With many answers, a step begins with items that are moved ahead; they are dropped."""
    monkeypatch.setattr(fitting, "_MANY_ANSWERS", 0)
    run_step = fitting.run_step
    steps = iter([run_step, run_step, run_step])

    def run_three_steps(*arguments: Any) -> Any:
        for step in steps:
            return step(*arguments)
        raise KeyboardInterrupt

    with patch.object(fitting, "run_step", run_three_steps):
        interrupted = fit(TRAIN, n_steps=4)
    complete = fit(TRAIN, n_steps=3)
    assert np.array_equal(interrupted.difficulty_, complete.difficulty_)
    assert np.array_equal(interrupted.discrimination_, complete.discrimination_)


# ---- Degenerate answers --------------------------------------------------------------------------

# The columns that are constant in each case. The case "one answer" has a single row instead.
DEGENERATE = {
    "one answer": {},
    "one student": {"student": 2_000_000_000},
    "one question": {"question": 7},
    "all right": {"is_right": 1},
    "all wrong": {"is_right": 0},
}


@pytest.mark.parametrize("predicts", ["is_correct", "option"])
@pytest.mark.parametrize("n_levels", [0, 3])
@pytest.mark.parametrize("what", DEGENERATE)
def test_degenerate_answers_have_sane_predictions(predicts: str, n_levels: int, what: str) -> None:
    n = 1 if what == "one answer" else 400
    rows = TRAIN.iloc[np.linspace(0, len(TRAIN) - 1, n).astype(int)].assign(**DEGENERATE[what])
    labels = np.stack([rows.quiz // 4, rows.quiz // 2, rows.quiz], axis=1)[:, :n_levels]
    # Three further pairs: an unknown student, an unknown question, and both; in unknown contexts.
    first = rows.iloc[0]
    student = np.append(rows.student, [123_456, first.student, 123_456])
    question = np.append(rows.question, [first.question, 9_999_998, 9_999_998])
    asked = np.concatenate([labels, np.full((3, n_levels), UNKNOWN)])
    model = fit(rows, labels) if predicts == "is_correct" else fit_options(rows, labels)
    p = model.predict_proba(student, question, context=asked)
    assert np.isfinite(p).all()
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    if predicts == "is_correct":
        p_right = p[:n, 1]
    else:
        _, key = options(rows)
        p_right = p[np.arange(n), key - 1]
    # The standard error of a share is at most 0.5 / √n. Predictions may also be shrunk a little.
    assert p_right.mean() == pytest.approx(rows.is_right.mean(), abs=0.5 / np.sqrt(n) + 0.05)
