"""Options: their ranks, their probabilities, and planted habits of students in quizzes."""

from common.item_response import ItemResponseOptions

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from planted_contexts import TEST, TRAIN, UNKNOWN, assert_calibrated, fit_options, options


def fit_two_questions() -> ItemResponseOptions:
    """Fit six answers to question 5 and two to question 9.

    Question 5: option 3 is right; option 1 is chosen most often, then 4, then 2. Question 9: option
    2 is right.
    """
    option = np.array([1, 1, 1, 4, 4, 2, 2, 2])
    question = np.array([5, 5, 5, 5, 5, 5, 9, 9])
    key = np.where(question == 5, 3, 2)
    return ItemResponseOptions(n_dimensions=1).fit(np.arange(8), question, option, key)


def test_options_are_ranked_right_first_then_by_popularity() -> None:
    model = fit_two_questions()
    assert_array_equal(model.outcome_of_option_[0], [1, 3, 0, 2])
    assert model.outcome_of_option_[1, 1] == 0


def test_an_option_that_was_never_chosen_is_not_impossible() -> None:
    p = fit_two_questions().predict_proba([99, 99], [5, 9])
    assert p[0].argmax() == 0
    assert p[1, 1] > p[0, 2] > 0


def test_an_unknown_question_has_the_shares_of_all_answers() -> None:
    p = fit_two_questions().predict_proba([99, 0], [1, 1])
    # Options 1 to 4 were chosen 3, 3, 0 and 2 times, and count as if chosen once more.
    assert_allclose(p, np.array([[4, 4, 1, 3]] * 2) / 12, atol=1e-6)


def test_attributes_have_a_row_for_each_stage() -> None:
    """There are three stages: right; else the most popular wrong option; else the next one."""
    model = ItemResponseOptions(n_dimensions=2, n_steps=1).fit(
        TRAIN.student, TRAIN.question, *options(TRAIN), context=TRAIN.quiz
    )
    n_students, n_questions = len(model.student_ids_), len(model.question_ids_)
    assert model.ability_.shape == (n_students, 2)
    assert model.discrimination_.shape == (3, n_questions, 2)
    assert model.difficulty_.shape == (3, n_questions)
    assert model.context_variance_.shape == (1, 3)
    assert model.shared_variance_.shape == (3,)


def test_the_quiz_tells_which_wrong_option_a_student_chooses() -> None:
    model = fit_options(TRAIN, TRAIN.quiz)
    option, key = options(TEST)
    rows = np.arange(len(option))
    is_wrong = option != key

    def p_of_wrong_option(p: np.ndarray) -> float:
        """Return the mean probability of the option chosen, given that it is wrong."""
        given_wrong = p[rows, option - 1] / (1 - p[rows, key - 1])
        return float(given_wrong[is_wrong].mean())

    p = model.predict_proba(TEST.student, TEST.question, context=TEST.quiz)
    assert p.shape == (len(rows), 4)
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    assert_calibrated(p[rows, key - 1], TEST.p_right)
    assert p_of_wrong_option(p) > 0.68
    nowhere = np.full(len(TEST), UNKNOWN)
    without = model.predict_proba(TEST.student, TEST.question, context=nowhere)
    assert p_of_wrong_option(without) < 0.6
