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
    right_option = np.where(question == 5, 3, 2)
    return ItemResponseOptions(n_dimensions=1).fit(np.arange(8), question, option, right_option)


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
    """An answer with four options is modelled in three stages, each with its own parameters.

    The first stage decides whether the answer is right. The second one decides whether a wrong
    answer is the most popular wrong option, and the third one chooses among the other two.
    """
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
    """The simulated students prefer one of two wrong options, which depends on the quiz."""
    model = fit_options(TRAIN, TRAIN.quiz)
    option, right_option = options(TEST)
    rows = np.arange(len(option))
    is_wrong = option != right_option

    def p_of_wrong_option(p: np.ndarray) -> float:
        """Return the mean probability of the wrong options chosen, given that these are wrong."""
        p_right = p[rows, right_option - 1]
        p_given_wrong = p[rows, option - 1] / (1 - p_right)
        return float(p_given_wrong[is_wrong].mean())

    p = model.predict_proba(TEST.student, TEST.question, context=TEST.quiz)
    assert p.shape == (len(rows), 4)
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    assert_calibrated(p[rows, right_option - 1], TEST.p_right)
    assert p_of_wrong_option(p) > 0.68

    unknown_quiz = np.full(len(TEST), UNKNOWN)
    p_without_quiz = model.predict_proba(TEST.student, TEST.question, context=unknown_quiz)
    assert p_of_wrong_option(p_without_quiz) < 0.6
