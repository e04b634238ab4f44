"""Answers that come after a fit: new students, known students, new questions."""

from copy import copy
from typing import Any

from common.errors import InputError
from common.item_response import ItemResponse

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from planted_contexts import TEST, TRAIN, fit, groups, loss, predict

# A third of the students come only after the fit: the later students. The models are fitted to the
# training answers of the other students: the first answers.
LATER_STUDENTS = TRAIN.student.unique()[::3]
LATER_ANSWERS = TRAIN[TRAIN.student.isin(LATER_STUDENTS)]
FIRST_ANSWERS = TRAIN[~TRAIN.student.isin(LATER_STUDENTS)]
LATER_TEST = TEST[TEST.student.isin(LATER_STUDENTS)]


def columns(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series, pd.Series]:
    """Return students, questions and outcomes of some answers: the first arguments of `fit`."""
    return rows.student, rows.question, rows.is_right


def expected_loss(model: ItemResponse, rows: pd.DataFrame, context: Any = None) -> float:
    """Return the log loss that is expected if outcomes are drawn with the true probabilities."""
    return loss(predict(model, rows, context), rows.p_right.to_numpy())


# A model is almost as good as another one if its log loss is at most this much higher.
HARDLY_WORSE = 0.002


def draw_answers_of_each_student(rows: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return n answers of each student, chosen at random."""
    return rows.sample(frac=1, random_state=1).groupby("student").head(n)


# ---- New students ------------------------------------------------------------------------------


@pytest.mark.parametrize("has_contexts", [False, True])
@pytest.mark.parametrize("n_known", [1, 10, 50])
def test_new_students_are_predicted_as_well_as_after_a_new_fit(
    n_known: int, has_contexts: bool
) -> None:
    """`for_students` adds students to a fit, and learns from `n_known` answers of each student.

    It fits nothing but the new students. Yet it predicts their held-out answers almost as well as
    a new fit to all answers, and better than the earlier fit, which does not know the students.
    """

    def context(rows: pd.DataFrame) -> Any:
        """Return each answer's group of quizzes and quiz; None in the case without contexts."""
        return groups(rows) if has_contexts else None

    known = draw_answers_of_each_student(LATER_ANSWERS, n_known)
    model = fit(FIRST_ANSWERS, context(FIRST_ANSWERS))
    extended = model.for_students(*columns(known), context=context(known))
    everything = pd.concat([FIRST_ANSWERS, known])
    refitted = fit(everything, context(everything))

    loss_before = expected_loss(model, LATER_TEST, context(LATER_TEST))
    loss_extended = expected_loss(extended, LATER_TEST, context(LATER_TEST))
    loss_refitted = expected_loss(refitted, LATER_TEST, context(LATER_TEST))
    assert loss_extended < loss_before
    assert loss_extended < loss_refitted + HARDLY_WORSE


def test_an_estimator_for_new_students_knows_the_contexts_of_the_fit() -> None:
    """All students of a class may do better or worse in a quiz: this is the class's effect there.

    The fit finds it if other students of the class took the quiz. When `for_students` adds new
    students, the effect must stay. To show this, the known answers of the new students are put into
    a quiz that does not occur in the fit, so that they tell nothing about the quizzes of the test.
    There, the effects must be those of the fit.
    """
    context = FIRST_ANSWERS.class_quiz.to_numpy()
    model = fit(FIRST_ANSWERS, context)
    known = draw_answers_of_each_student(LATER_ANSWERS, 3)
    # Any id above those in the fit will do.
    unknown_quiz = int(context.max()) + 7

    extended = model.for_students(*columns(known), context=np.full(len(known), unknown_quiz))

    pairs = LATER_TEST.student, LATER_TEST.question
    effect_before = model.explain(*pairs, context=LATER_TEST.class_quiz).effect
    effect_after = extended.explain(*pairs, context=LATER_TEST.class_quiz).effect
    # If all effects were 0, the comparison below would not show that they are kept.
    assert np.abs(effect_before).max() > 0.1
    assert_allclose(effect_after, effect_before, atol=1e-5)


def test_the_students_of_the_fit_get_the_abilities_of_the_fit() -> None:
    model = fit(TRAIN, n_steps=30)
    abilities = model.transform(*columns(TRAIN))
    assert_array_equal(abilities.student_ids, model.student_ids_)
    assert_allclose(abilities.mean, model.ability_, atol=0.02)
    assert_allclose(abilities.covariance, model.ability_covariance_, atol=0.02)


def test_a_students_ability_depends_on_nothing_but_the_students_answers() -> None:
    """A student gets the same ability whether the answers of other students come along or not.

    `transform` takes the answers of all later students. `ability_of` takes the answers of a single
    student, who gets the id 0. Neither method changes the students of the fit.
    """
    model = fit(FIRST_ANSWERS)
    abilities_of_fit = model.ability_.copy()
    abilities = model.transform(*columns(LATER_ANSWERS))
    any_student = LATER_STUDENTS[4]
    own = LATER_ANSWERS[LATER_ANSWERS.student == any_student]
    # The order of the answers does not matter, so reverse it.
    own = own.iloc[::-1]
    ability = model.ability_of(own.question, own.is_right)

    row = np.searchsorted(abilities.student_ids, any_student)
    # Both methods repeat passes over the answers until no ability changes by more than 0.001. They
    # may end after different numbers of passes, so the abilities differ a little.
    assert_allclose(ability.mean[0], abilities.mean[row], atol=0.005)
    assert_allclose(ability.standard_deviation[0], abilities.standard_deviation[row], atol=0.005)
    assert_array_equal(model.ability_, abilities_of_fit)
    assert_array_equal(ability.student_ids, [0])


@pytest.mark.parametrize("guessing", [0.0, 0.2])
def test_one_student_gets_the_ability_that_many_students_at_once_get(guessing: float) -> None:
    model = ItemResponse(3, guessing=guessing, n_steps=5).fit(*columns(FIRST_ANSWERS))
    own = LATER_ANSWERS[LATER_ANSWERS.student == LATER_STUDENTS[0]]
    alone = model.ability_of(own.question, own.is_right)
    among_many = model.transform(*columns(own))
    # Both methods compute the same, but add up the numbers in another order.
    assert_allclose(alone.mean, among_many.mean, atol=1e-4)
    assert_allclose(alone.covariance, among_many.covariance, atol=1e-4)


def test_a_student_without_answers_is_average_and_each_answer_narrows_the_ability() -> None:
    """A student without answers has the prior N(0, 1) in each of the model's two abilities.

    Five right answers raise the first ability. 40 right answers raise it more, and make the
    standard deviations smaller.
    """
    model = fit(FIRST_ANSWERS)
    without_answers = model.ability_of([], [])
    assert_array_equal(without_answers.mean, np.zeros((1, 2)))
    assert_array_equal(without_answers.standard_deviation, np.ones((1, 2)))
    questions = model.question_ids_[:40]
    after_5 = model.ability_of(questions[:5], np.ones(5, int))
    after_40 = model.ability_of(questions, np.ones(40, int))
    assert after_5.standard_deviation.min() > after_40.standard_deviation.min()
    # The slopes on the first ability are all positive, or all negative: a fit does not determine
    # the sign of an ability.
    sign = np.sign(model.discrimination_[:, 0].mean())
    assert 0 < sign * after_5.mean[0, 0] < sign * after_40.mean[0, 0]


def test_answers_to_unknown_questions_count_as_answers_to_average_questions() -> None:
    model = fit(FIRST_ANSWERS)
    unknown = int(model.question_ids_.max()) + np.arange(1, 31)
    sign = np.sign(model.discrimination_[:, 0].mean())
    right = model.ability_of(unknown, np.ones(30, int))
    wrong = model.ability_of(unknown, np.zeros(30, int))
    assert sign * right.mean[0, 0] > 0.5
    assert sign * wrong.mean[0, 0] < -0.5


# ---- Updates -----------------------------------------------------------------------------------


def test_answers_that_come_in_parts_teach_as_much_as_all_at_once() -> None:
    """`partial_fit` updates a model with the answers of new students, here in three parts.

    It updates the questions, too. In the end, the model is almost as good as a fit to `TRAIN`,
    which holds the first and the later answers together.
    """
    model = fit(FIRST_ANSWERS)
    shuffled = LATER_ANSWERS.sample(frac=1, random_state=2)
    # Divide the answers into three parts: every third answer, from the first, second or third on.
    parts = [shuffled.iloc[start::3] for start in range(3)]
    # The log losses after the model has learned from 0, 1, 2 and 3 parts.
    losses = [expected_loss(model, LATER_TEST)]
    for part in parts:
        model.partial_fit(*columns(part))
        losses.append(expected_loss(model, LATER_TEST))
    loss_of_new_fit = expected_loss(fit(TRAIN), LATER_TEST)
    # Each part makes the predictions better.
    assert losses[0] > losses[1] > losses[2] > losses[3]
    assert losses[3] < loss_of_new_fit + HARDLY_WORSE
    assert_array_equal(model.student_ids_, np.unique(TRAIN.student))


def test_a_new_question_is_learned_from_students_who_are_known() -> None:
    """`partial_fit` with `learn="questions"` adds new questions, and keeps the students' abilities.

    Each new question gets the difficulty that a fit with all answers finds.
    """
    every_tenth_question = np.unique(TRAIN.question)[::10]
    is_new = TRAIN.question.isin(every_tenth_question)
    model = fit(TRAIN[~is_new])
    abilities_before = model.ability_.copy()

    model.partial_fit(*columns(TRAIN[is_new]), learn="questions")

    assert_array_equal(model.ability_, abilities_before)
    refitted = fit(TRAIN)
    new_difficulty = model.question_parameters(every_tenth_question).difficulty
    expected = refitted.question_parameters(every_tenth_question).difficulty
    # The questions differ in difficulty by much more than the tolerance of 0.2.
    assert np.ptp(expected) > 1
    # The difficulties agree only roughly. Each new question has about 200 answers, and the answers
    # to new questions also change the students' abilities, but only in the new fit (`refitted`).
    assert_allclose(new_difficulty, expected, atol=0.2)


def test_what_is_not_to_be_learned_stays() -> None:
    model = fit(FIRST_ANSWERS)
    students_only = copy(model).partial_fit(*columns(LATER_ANSWERS), learn="students")
    assert_array_equal(students_only.difficulty_, model.difficulty_)
    assert len(students_only.student_ids_) > len(model.student_ids_)
    known_students = np.isin(students_only.student_ids_, model.student_ids_)
    assert_array_equal(students_only.ability_[known_students], model.ability_)
    both = copy(model).partial_fit(*columns(LATER_ANSWERS))
    assert np.abs(both.difficulty_ - model.difficulty_).max() > 0.01


# ---- Faults ------------------------------------------------------------------------------------


def test_faults_of_the_arguments_are_named() -> None:
    """An argument that a method cannot use raises an error that says what was expected."""
    model = fit(FIRST_ANSWERS)
    with pytest.raises(InputError, match=r"learn is 'all', expected 'both', 'students' or"):
        model.partial_fit([1], [1], [1], learn="all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"is_correct holds 2 at position 0, expected 0 to 1"):
        model.transform([1], [1], [2])
    with pytest.raises(InputError, match=r"question has 1 values, expected 2"):
        model.for_students([1, 2], [1], [1])
    with pytest.raises(InputError, match=r"is not fitted, call fit first"):
        ItemResponse().ability_of([1], [1])
    with_contexts = fit(FIRST_ANSWERS, FIRST_ANSWERS.quiz)
    with pytest.raises(InputError, match=r"context is missing"):
        with_contexts.transform([1], [1], [1])
    with pytest.raises(InputError, match=r"was fitted with contexts, expected none"):
        with_contexts.partial_fit([1], [1], [1])
