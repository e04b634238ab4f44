"""How a fit begins and ends: early stopping, a warm start, degenerate answers."""

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

from common.item_response import ItemResponse, ItemResponseOptions, fitting

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
    """A fit reports an event for each step; `history_` holds the same scores, a score a step."""
    events: list[dict[str, Any]] = []

    def log_event(name: str, **values: Any) -> None:
        events.append({"name": name, **values})

    model = fit(TRAIN, log_event=log_event)

    expected = []
    for step, score in enumerate(model.history_, start=1):
        event = {"step": step, "held_out_loss": score.loss, "held_out_accuracy": score.accuracy}
        expected.append({"name": "step", **event})
    assert events == expected


def test_many_answers_are_fitted_in_fewer_steps_and_equally_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fit ends earlier if there are many answers (more than `_MANY_ANSWERS`).

    The same answers are fitted twice, with the usual limit and with the limit 0.
    """
    fitted_as_few = fit(TRAIN, n_dimensions=6)
    monkeypatch.setattr(fitting, "_MANY_ANSWERS", 0)
    fitted_as_many = fit(TRAIN, n_dimensions=6)

    # The history has an entry for each step.
    assert len(fitted_as_many.history_) < len(fitted_as_few.history_)
    # The losses have no sampling error: they compare predictions with the true probabilities,
    # `p_right`, instead of random outcomes.
    loss_as_few = loss(predict(fitted_as_few, TEST), TEST.p_right)
    loss_as_many = loss(predict(fitted_as_many, TEST), TEST.p_right)
    # The losses of the fits are about 0.59. The lowest possible loss, that of the true
    # probabilities, is 0.51. The tolerance is less than 1 % of the difference, 0.08.
    assert loss_as_many < loss_as_few + 5e-4


def test_in_the_end_the_fit_learns_from_held_out_answers_too() -> None:
    """A fit holds some answers out to decide when to stop; in the end, it learns from them too.

    Here some questions have a single answer. If that answer is held out and the fit never learned
    from it, the intercept of the question would keep the variance of the prior. This variance is in
    the last row of the fitted items, which stands for unknown questions.
    """
    n = 2_000
    # Add n new questions with a single answer each. The fit holds out some of these answers.
    rows = pd.concat([TRAIN, TRAIN[:n].assign(question=np.arange(n) + UNKNOWN)])
    *known, unknown = fit(rows, n_dimensions=1).posterior_.items.covariance[:, 1, 1]
    assert len(known) == N_QUESTIONS + n
    assert max(known) < unknown


# ---- Warm start --------------------------------------------------------------------------------


@pytest.mark.parametrize("has_contexts", [False, True])
def test_a_warm_start_spares_steps(has_contexts: bool) -> None:
    """Two steps from an earlier model (a warm start) are as good as a whole fit from scratch.

    Two steps from scratch are worse. The earlier model lacks some of the students, questions and
    contexts.
    """

    def context(rows: pd.DataFrame) -> np.ndarray | None:
        """Return each answer's group of quizzes and quiz; None in the case without contexts."""
        return groups(rows) if has_contexts else None

    def loss_of_fit(**settings: Any) -> float:
        """Fit all training answers; return the loss of the predictions."""
        model = fit(TRAIN, context(TRAIN), **settings)
        return loss(predict(model, TEST, context(TEST)), TEST.p_right)

    # Leave out some students, some questions, and the quizzes 0 and 1.
    is_known = (TRAIN.student % 7 > 0) & (TRAIN.question % 10 > 0) & (TRAIN.quiz > 1)
    known = TRAIN[is_known]
    earlier_model = fit(known, context(known))

    whole_fit = loss_of_fit()
    two_steps = loss_of_fit(n_steps=2)
    two_warm_steps = loss_of_fit(n_steps=2, start=earlier_model)
    assert two_warm_steps < whole_fit + 1e-3
    assert two_warm_steps < two_steps - 1e-3


def test_control_c_in_the_first_step_leaves_no_model() -> None:
    stop = patch.object(fitting, "run_step", side_effect=KeyboardInterrupt)
    with stop, pytest.raises(KeyboardInterrupt):
        fit(TRAIN, start=fit(TRAIN, n_steps=1))


def test_control_c_in_a_later_step_leaves_the_last_complete_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With many answers, a step begins by extrapolating the items (momentum).

    An interrupted step must not leave the extrapolated items. Here the fourth step is interrupted,
    so the fit must end with the items of the third step.
    """
    # A fit with more answers than this limit counts as a fit with many answers.
    monkeypatch.setattr(fitting, "_MANY_ANSWERS", 0)
    run_step = fitting.run_step
    step_numbers = itertools.count(1)

    def interrupt_the_fourth_step(*arguments: Any) -> Any:
        if next(step_numbers) == 4:
            raise KeyboardInterrupt
        return run_step(*arguments)

    with patch.object(fitting, "run_step", interrupt_the_fourth_step):
        interrupted = fit(TRAIN, n_steps=4)
    complete = fit(TRAIN, n_steps=3)
    assert np.array_equal(interrupted.difficulty_, complete.difficulty_)
    assert np.array_equal(interrupted.discrimination_, complete.discrimination_)


# ---- Degenerate answers --------------------------------------------------------------------------

# For each case, the value that a column has in all rows. The case "one answer" has a single row.
DEGENERATE = {
    "one answer": {},
    "one student": {"student": 2_000_000_000},
    "one question": {"question": 7},
    "all right": {"is_right": 1},
    "all wrong": {"is_right": 0},
}


PREDICTED = pytest.mark.parametrize("predicted", ["is_correct", "option"])
N_LEVELS = pytest.mark.parametrize("n_levels", [0, 3])
CASES = pytest.mark.parametrize("case", DEGENERATE)


@dataclass(frozen=True)
class DegenerateFit:
    """Degenerate answers, and a model that is fitted to them."""

    rows: pd.DataFrame
    # The contexts of each answer, from the widest to the narrowest: its group of four quizzes, its
    # pair of quizzes and its quiz. With fewer levels, only the first columns.
    contexts: np.ndarray
    model: ItemResponse | ItemResponseOptions


@cache
def fit_degenerate(predicted: str, n_levels: int, case: str) -> DegenerateFit:
    """Make degenerate answers, and fit a model of right answers or of options to them.

    Take 400 training answers, or one in the case "one answer". `DEGENERATE[case]` says which column
    gets the same value in all rows. `n_levels` is the number of levels of contexts.
    """
    n = 1 if case == "one answer" else 400
    evenly_spaced = np.linspace(0, len(TRAIN) - 1, n).astype(int)
    rows = TRAIN.iloc[evenly_spaced].assign(**DEGENERATE[case])
    contexts = np.stack([rows.quiz // 4, rows.quiz // 2, rows.quiz], axis=1)[:, :n_levels]
    model = fit(rows, contexts) if predicted == "is_correct" else fit_options(rows, contexts)
    return DegenerateFit(rows, contexts, model)


@PREDICTED
@N_LEVELS
@CASES
def test_predictions_of_degenerate_answers_are_right_on_average(
    predicted: str, n_levels: int, case: str
) -> None:
    """The mean predicted probability of a right answer is the share of right answers.

    This holds even for degenerate answers, such as those of a single student, which do not suffice
    to determine all parameters of the model. `case` is one of `DEGENERATE`.
    """
    fitted = fit_degenerate(predicted, n_levels, case)
    rows = fitted.rows

    p = fitted.model.predict_proba(rows.student, rows.question, context=fitted.contexts)

    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    n = len(rows)
    if predicted == "is_correct":
        # Column 1 holds the probability of a right answer.
        p_right = p[:, 1]
    else:
        # There is a column for each option. Options are numbered from 1, columns from 0.
        _, right_option = options(rows)
        p_right = p[np.arange(n), right_option - 1]
    # The standard error of a share among n answers is at most 0.5 / √n. The prior may draw the
    # predictions away from the share by another 0.05.
    tolerance = 0.5 / np.sqrt(n) + 0.05
    assert p_right.mean() == pytest.approx(rows.is_right.mean(), abs=tolerance)


@PREDICTED
@N_LEVELS
@CASES
def test_unknown_students_and_questions_have_probabilities_after_a_degenerate_fit(
    predicted: str, n_levels: int, case: str
) -> None:
    """A model of degenerate answers, such as those of a single student, predicts such pairs, too.

    The pairs have an unknown student, an unknown question, or both, in unknown contexts. Their
    probabilities must be finite and add up to 1.
    """
    fitted = fit_degenerate(predicted, n_levels, case)
    unknown_student = 123_456
    unknown_question = 9_999_998
    known = fitted.rows.iloc[0]

    p = fitted.model.predict_proba(
        [unknown_student, known.student, unknown_student],
        [known.question, unknown_question, unknown_question],
        context=np.full((3, n_levels), UNKNOWN),
    )

    assert np.isfinite(p).all()
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
