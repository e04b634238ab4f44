"""Options: their ranks, their probabilities, and planted habits of students in quizzes."""

from dataclasses import dataclass
from pathlib import Path

from common.errors import InputError
from common.item_response import ItemResponseOptions

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from planted_contexts import TEST, TRAIN, UNKNOWN, assert_calibrated, fit_options, options


def fit_two_questions() -> ItemResponseOptions:
    """Fit a model to six answers to question 5 and two answers to question 9.

    In question 5, option 3 is right, and the wrong options 1, 4 and 2 are chosen 3, 2 and 1 times.
    In question 9, option 2 is right, and is chosen twice.
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
    # Over both questions, options 1 to 4 were chosen 3, 3, 0 and 2 times. The model adds one choice
    # of each option, so that no option gets the probability 0.
    assert_allclose(p, np.array([[4, 4, 1, 3]] * 2) / 12, atol=1e-6)


def test_attributes_have_a_row_for_each_stage() -> None:
    """The choice among four options is modelled in three stages, each with its own parameters.

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
    """A student's wrong options in a quiz all lie at the same distance after the right option.

    The distance is 1 or 2 (see `options`). A model that knows the quiz can learn the distance from
    the student's other answers in the quiz. Without the quiz, both distances are about equally
    likely. Given that an answer is wrong, the mean probability of the chosen option is 0.72 with
    the quiz and 0.55 without. The limits of the test lie between these numbers.
    """
    model = fit_options(TRAIN, TRAIN.quiz)
    option, right_option = options(TEST)
    rows = np.arange(len(option))
    is_wrong = option != right_option

    def p_of_wrong_option(p: np.ndarray) -> float:
        """Return the mean probability of the chosen option over wrong answers, given "wrong".

        `p` has a row for each answer, and a column for each option from 1.
        """
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


@dataclass(frozen=True)
class MixedAnswers:
    """Answers to questions with different numbers of options, an element for each answer."""

    student: np.ndarray
    question: np.ndarray
    # The chosen option, from 1.
    option: np.ndarray
    right_option: np.ndarray
    # Number of options of the question.
    n_options: np.ndarray

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The first four arguments of `fit`."""
        return self.student, self.question, self.option, self.right_option


def draw_mixed() -> MixedAnswers:
    """Draw answers of 200 students to nine questions: three each with two, four and six options.

    Option 1 is right in every question, and is chosen in half of the answers. Among wrong answers,
    option 2 is chosen three times as often as option 3, option 3 three times as often as option 4,
    and so on.
    """
    rng = np.random.default_rng(0)
    student, question = np.divmod(np.arange(200 * 9), 9)
    n_options = np.array([2, 4, 6])[question % 3]
    # Probabilities of the wrong options 2 to 6, shape (answers, 5): 0 if the question lacks them.
    exists = np.arange(2, 7) <= n_options[:, None]
    popularity = np.array([1, 1 / 3, 1 / 9, 1 / 27, 1 / 81])
    p_wrong = exists * popularity
    p_wrong /= p_wrong.sum(axis=1, keepdims=True)
    # Draw a wrong option: count how many cumulative probabilities a random number exceeds. The last
    # cumulative probability is 1 and is left out.
    random_number = rng.random(len(student))[:, None]
    cumulative = p_wrong.cumsum(axis=1)[:, :4]
    n_exceeded = (random_number > cumulative).sum(axis=1)
    wrong_option = 2 + n_exceeded
    is_right = rng.random(len(student)) < 0.5
    return MixedAnswers(
        student=student,
        question=question,
        option=np.where(is_right, 1, wrong_option),
        right_option=np.ones_like(student),
        n_options=n_options,
    )


@pytest.fixture(scope="module")
def mixed_fit() -> ItemResponseOptions:
    """Fit one ability to the answers of `draw_mixed`; tests share the model and only read it."""
    answers = draw_mixed()
    model = ItemResponseOptions(n_dimensions=1, guessing=0.0)
    return model.fit(*answers.columns, n_options=answers.n_options)


def test_questions_may_have_different_numbers_of_options(
    mixed_fit: ItemResponseOptions, tmp_path: Path
) -> None:
    """Options that a question lacks get the probability 0, also from a model that was saved.

    The probabilities of the other options are near the shares with which they are chosen.
    """
    answers = draw_mixed()
    student = answers.student
    question = answers.question
    model = mixed_fit
    assert model.n_options_.tolist() == [2, 4, 6] * 3

    p = model.predict_proba(student, question)

    # A row for each answer, and a column for each option from 1.
    assert p.shape == (len(student), 6)
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    exists = np.arange(1, 7) <= answers.n_options[:, None]
    assert (p[~exists] == 0).all()
    assert (p[exists] > 0).all()
    model.save(tmp_path / "model.npz")
    saved = ItemResponseOptions.load(tmp_path / "model.npz")
    assert_array_equal(saved.predict_proba(student, question), p)
    # In questions of six options, wrong answers are distributed over the wrong options as 81 to 27
    # to 9 to 3 to 1. Among 300 wrong answers, a share has a standard error of at most 0.028. Four
    # standard errors are allowed.
    p_wrong = p[answers.n_options == 6].mean(axis=0)[1:]
    expected_shares = np.array([81, 27, 9, 3, 1]) / 121
    assert_allclose(p_wrong / p_wrong.sum(), expected_shares, atol=0.11)


def test_a_question_of_two_options_learns_nothing_at_the_second_stage(
    mixed_fit: ItemResponseOptions,
) -> None:
    """The model describes the choice of an option in stages.

    Stage 0 decides whether the answer is right, and stage 1 whether a wrong answer is the most
    popular wrong option, and so on. A question of two options is decided at stage 0, and has no
    answers at stage 1. So its slopes at stage 1 stay at the mean of the prior.
    """
    has_two_options = mixed_fit.n_options_ == 2
    slopes_at_stage_1 = mixed_fit.discrimination_[1, has_two_options]

    first_slope = np.broadcast_to(slopes_at_stage_1[0], slopes_at_stage_1.shape)
    assert_allclose(slopes_at_stage_1, first_slope, atol=1e-6)


def test_the_number_of_options_may_be_one_for_all_or_one_for_each_answer() -> None:
    student, question, *chosen = TRAIN.student, TRAIN.question, *options(TRAIN)
    expected = ItemResponseOptions(n_steps=1).fit(student, question, *chosen)
    for n_options in (4, np.full(len(student), 4, np.int8)):
        model = ItemResponseOptions(n_steps=1)
        model.fit(student, question, *chosen, n_options=n_options)
        assert_array_equal(
            model.predict_proba(student, question), expected.predict_proba(student, question)
        )


@pytest.mark.parametrize(
    ("option", "n_options", "message"),
    [
        ([1, 5], 4, "option holds 5 at position 1, expected 1 to 4"),
        ([1, 5], [8, 4], "option holds 5 at position 1, expected 1 to 4, the number of options of"),
        ([1, 2], 9, "n_options holds 9 at position 0, expected 2 to 8"),
        ([1, 2], [4], "n_options has 1 values, expected 2, as student has"),
    ],
)
def test_an_option_above_the_number_of_options_is_refused(
    option: list[int], n_options: int | list[int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ItemResponseOptions().fit([0, 1], [5, 6], option, [1, 1], n_options=n_options)


def test_a_question_with_two_numbers_of_options_is_refused() -> None:
    answers = draw_mixed()
    answers.n_options[-1] = 7
    message = "n_options holds . at position .* and 7 for another answer to question"
    with pytest.raises(InputError, match=message):
        ItemResponseOptions().fit(*answers.columns, n_options=answers.n_options)


def test_an_estimator_with_other_levels_of_contexts_gives_no_settings() -> None:
    answers = draw_mixed()
    columns = answers.columns
    n_options = answers.n_options
    without = ItemResponseOptions(n_dimensions=1, n_steps=1).fit(*columns, n_options=n_options)
    context = answers.question % 2
    with pytest.raises(InputError, match="like has 0 levels of contexts, expected 1"):
        ItemResponseOptions().fit(*columns, n_options=n_options, context=context, like=without)
