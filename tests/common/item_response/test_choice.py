"""Settings that a fit chooses: abilities, guessing, and whether contexts are used."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.arrays import BoolArray, FloatArray, IntArray
from common.item_response import (
    DEFAULT_DIMENSIONS,
    DEFAULT_GUESSING,
    ItemResponse,
    ItemResponseOptions,
    fitting,
)

import numpy as np
import pytest
from numpy.testing import assert_array_equal

N_STUDENTS = 400
N_QUESTIONS = 30


@dataclass(frozen=True)
class Drawn:
    """Answers of all students to all questions, drawn from the model with one ability."""

    student: IntArray
    question: IntArray
    is_right: BoolArray
    context: IntArray

    def fit(self, n_answers: int | None = None) -> ItemResponse:
        """Fit an estimator to the first `n_answers` answers, by default to all.

        The fit chooses the settings: the number of abilities, the guessing, and whether to use
        contexts.
        """
        rows = slice(n_answers)
        return ItemResponse(n_dimensions=None, guessing=None).fit(
            self.student[rows],
            self.question[rows],
            self.is_right[rows],
            context=self.context[rows],
        )


def draw(guessing: float, effect: float = 0.0, seed: int = 1) -> Drawn:
    """Draw an answer of each student to each question.

    A student who does not know the answer guesses right with the probability `guessing`. Each
    question belongs to one of five contexts. In each context, a student is better or worse than
    elsewhere: `effect` is the standard deviation of these differences on the scale of logits.
    """
    rng = np.random.default_rng(seed)
    # Each element of these arrays belongs to one answer.
    student, question = np.divmod(np.arange(N_STUDENTS * N_QUESTIONS), N_QUESTIONS)
    context = question % 5
    ability = rng.normal(size=N_STUDENTS)[student]
    slope = rng.lognormal(0.3, 0.3, N_QUESTIONS)[question]
    effects = effect * rng.normal(size=(N_STUDENTS, 5))[student, context]
    # The questions are hard, because guessing shows only where students do not know the answer. An
    # average student knows the answer to an average question with probability sigmoid(-0.5) = 38 %.
    intercept = rng.normal(-0.5, 1, N_QUESTIONS)[question]
    logit: FloatArray = slope * ability + intercept + effects
    # A student knows the answer with the probability sigmoid(logit). This is the probability that a
    # random number with the logistic distribution is below the logit.
    knows = rng.logistic(size=len(student)) < logit
    guesses = rng.random(len(student)) < guessing
    # Contexts may be divided further, level by level. The fit takes a column for each level; here,
    # there is one level.
    column_of_contexts = context[:, None]
    return Drawn(student, question, knows | guesses, column_of_contexts)


def settings(model: ItemResponse | ItemResponseOptions) -> tuple[int, float, bool]:
    """Return the settings of a fit: number of abilities, guessing, whether it uses contexts."""
    return model.n_dimensions_, model.guessing_, model.uses_context


@pytest.fixture(scope="module")
def open_answers() -> Drawn:
    """Draw answers without guessing, in contexts that make no difference."""
    return draw(guessing=0.0)


@pytest.fixture(scope="module")
def fitted(open_answers: Drawn) -> ItemResponse:
    """Return an estimator that has chosen its settings from `open_answers`."""
    return open_answers.fit()


def test_the_fit_chooses_the_guessing_probability_by_the_answers(fitted: ItemResponse) -> None:
    # The random answers influence the guessing probability that the fit chooses. With the seeds 0
    # to 11 of `draw`, it always chose 0 for answers without guessing. For answers with the guessing
    # probability 0.3, it chose 0.3 nine times, 0.2 twice and 0.1 once.
    assert fitted.guessing_ == 0.0
    assert draw(guessing=0.3).fit().guessing_ > 0.0


def test_contexts_without_effects_are_left_out_and_few_abilities_chosen(
    fitted: ItemResponse,
) -> None:
    assert not fitted.uses_context
    assert fitted.n_dimensions_ < DEFAULT_DIMENSIONS


def test_contexts_with_effects_are_used_with_the_default_number_of_abilities() -> None:
    fitted = draw(guessing=0.2, effect=1.5).fit()
    assert settings(fitted) == (DEFAULT_DIMENSIONS, DEFAULT_GUESSING, True)


def test_few_answers_choose_nothing(open_answers: Drawn) -> None:
    fitted = open_answers.fit(n_answers=900)
    assert settings(fitted) == (DEFAULT_DIMENSIONS, DEFAULT_GUESSING, True)


def test_a_fit_that_leaves_contexts_out_predicts_pairs_with_contexts(
    open_answers: Drawn, fitted: ItemResponse, tmp_path: Path
) -> None:
    """`fitted` was given contexts, but does not use them, because they have no effects.

    When it predicts pairs with contexts, it ignores the contexts, and predicts as a fit without
    contexts does. An estimator that is loaded from a file ignores them, too. An estimator that is
    extended by further students accepts contexts.
    """
    assert not fitted.uses_context
    # Student 0 answers question 2 in context 2. Student 1 answers question 3 in context 99, which
    # does not occur in the fit.
    students, questions = [0, 1], [2, 3]
    contexts = np.array([[2], [99]])

    predicted = fitted.predict_proba(students, questions, context=contexts)

    without_contexts = ItemResponse(fitted.n_dimensions_, guessing=fitted.guessing_)
    without_contexts.fit(open_answers.student, open_answers.question, open_answers.is_right)
    assert (predicted == without_contexts.predict_proba(students, questions)).all()

    fitted.save(tmp_path / "fit.npz")
    loaded = ItemResponse.load(tmp_path / "fit.npz")
    assert (predicted == loaded.predict_proba(students, questions, context=contexts)).all()
    assert settings(loaded) == settings(fitted)

    # The new student 7 has answered question 2 right and question 3 wrong.
    extended = fitted.for_students([7, 7], [2, 3], [1, 0], context=contexts)
    # The prediction is a row with two probabilities, of a wrong and of a right answer.
    assert extended.predict_proba([7], [4], context=contexts[:1]).shape == (1, 2)


def test_a_fit_that_continues_keeps_the_settings(open_answers: Drawn, fitted: ItemResponse) -> None:
    continued = ItemResponse(n_dimensions=None, guessing=None, n_steps=1).fit(
        open_answers.student,
        open_answers.question,
        open_answers.is_right,
        context=open_answers.context,
        start=fitted,
    )
    assert settings(continued) == settings(fitted)


def test_options_take_the_settings_of_another_fit(open_answers: Drawn) -> None:
    rows = slice(3_000)
    correct_option = 1 + open_answers.question[rows] % 4
    option = np.where(open_answers.is_right[rows], correct_option, 1 + correct_option % 4)
    columns = open_answers.student[rows], open_answers.question[rows], option, correct_option
    other = ItemResponseOptions(n_dimensions=3, guessing=0.05, n_steps=1).fit(*columns)

    like_other = ItemResponseOptions(n_dimensions=None, guessing=None, n_steps=1)
    like_other.fit(*columns, like=other)

    assert settings(like_other) == settings(other) == (3, 0.05, False)
    assert (like_other.discrimination_ == other.discrimination_).all()


def test_further_answers_need_no_contexts_if_the_fit_left_them_out(
    open_answers: Drawn, fitted: ItemResponse
) -> None:
    assert not fitted.uses_context
    student, question, is_right = [7_000] * 3, [0, 1, 2], [1, 0, 1]
    ability = fitted.transform(student, question, is_right).mean
    context = open_answers.context[[0, 1, 2]]
    assert_array_equal(fitted.transform(student, question, is_right, context=context).mean, ability)
    learned = open_answers.fit().partial_fit(student, question, is_right, learn="students")
    assert 7_000 in learned.student_ids_


def test_control_c_while_settings_are_chosen_ends_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Control-C during a short fit that chooses the settings ends the program.

    `Drawn.fit` leaves the number of abilities and the guessing open, so short fits choose them. A
    long fit follows. Control-C during the long fit keeps what was learned so far. A short fit is of
    no use to the user, so there Control-C (KeyboardInterrupt) is passed on. The third step of the
    program belongs to a short fit.
    """
    run_step = fitting.run_step
    step_numbers = itertools.count(1)

    def interrupt_third_step(*arguments: Any) -> Any:
        if next(step_numbers) == 3:
            raise KeyboardInterrupt
        return run_step(*arguments)

    monkeypatch.setattr(fitting, "run_step", interrupt_third_step)
    with pytest.raises(KeyboardInterrupt):
        draw(guessing=0.2).fit()
