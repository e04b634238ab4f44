"""An estimator without the contexts of its fit predicts as the fit does in unknown contexts."""

from common.errors import InputError
from common.item_response import ItemResponse

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from planted_contexts import TEST, TRAIN, UNKNOWN, fit, fit_options, groups, options, predict

# For each answer in TEST, a group of quizzes (column 0) and a quiz (column 1) that occur in no
# training answer.
_UNKNOWN = np.full((len(TEST), 2), UNKNOWN)


def test_contexts_become_chance() -> None:
    model = fit(TRAIN, groups(TRAIN), n_steps=4)
    expected = predict(model, TEST, _UNKNOWN)
    without = model.without_contexts()
    assert_allclose(without.predict_proba(TEST.student, TEST.question)[:, 1], expected, atol=1e-5)
    # `without_contexts` has not changed the estimator `model`.
    assert_array_equal(predict(model, TEST, _UNKNOWN), expected)


def test_an_estimator_without_contexts_stays_as_it_is() -> None:
    model = fit(TRAIN, n_steps=3)
    assert_array_equal(predict(model.without_contexts(), TEST), predict(model, TEST))


def test_an_estimator_of_options_tells_which_answers_are_right() -> None:
    model = fit_options(TRAIN)
    p_option = model.predict_proba(TEST.student, TEST.question)
    _, correct = options(TEST)
    expected = p_option[np.arange(len(TEST)), correct - 1]
    p_right = model.right_or_wrong().predict_proba(TEST.student, TEST.question)[:, 1]
    assert_allclose(p_right, expected, atol=1e-5)


def test_mastery_by_abilities_alone_is_the_mean_of_the_predictions() -> None:
    """Mastery is the share of a subject's questions that a student is expected to answer right.

    `with_subjects` returns an estimator with subjects as contexts, whose effects are all 0. So its
    `mastery` depends on the student's abilities alone. `without_contexts` returns an estimator that
    predicts by abilities alone. So the share must be the mean of these predictions. The subject of
    a question is a number from 0 to 4 here: the question's id modulo 5.
    """
    model = fit(TRAIN, groups(TRAIN), n_steps=4)
    questions = model.question_ids_
    subject_of_question = questions % 5
    subject_of_answer = TRAIN.question % 5

    table = model.with_subjects(TRAIN.student, subject_of_answer).mastery(subject_of_question)

    n_answers = TRAIN.groupby([TRAIN.student, subject_of_answer]).size()
    assert_array_equal(table.n_answers, n_answers)
    # Check one row of the table, here the eighth. It is about a student and a subject.
    row = table.iloc[7]
    questions_of_subject = questions[subject_of_question == row.subject]
    student = np.full(len(questions_of_subject), int(row.student))
    p = model.without_contexts().predict_proba(student, questions_of_subject)
    p_right = p[:, 1]
    # `mastery` computes the share from 20 questions that represent the subject.
    assert row.share == pytest.approx(p_right.mean(), abs=0.02)
    assert row.low < row.share < row.high


def test_mastery_needs_students_of_the_fit() -> None:
    model = fit(TRAIN, n_steps=1)
    with pytest.raises(InputError, match="student holds 1000000, whom the fit does not know"):
        model.with_subjects([UNKNOWN], [0])
    with pytest.raises(InputError, match="not fitted"):
        ItemResponse().with_subjects([1], [0])
