"""Strategies of task 4, compared with their formulas, and games that strategies play."""

import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from common.adaptive.game import LocalEntry, Reference, Rules, make_reference
from common.adaptive.game import play as play_entry
from common.errors import InputError

import compare_strategies
import numpy as np
import pandas as pd
import pytest
import strategies
import strategy_games
from ability import Bank
from conftest import answers_frame
from strategies import Posterior
from strategy_games import GameLimits, PlayedGame, start_posterior
from task_4_models import as_reference, full_model, load_package

GUESSING = 0.2
STRICT = Rules()
PACKAGE, SUBMISSION = load_package("item_response", "submission_model_task_4")
ALL = strategy_games.find_strategies()
N_QUESTIONS = 60
POPULARITY = np.random.default_rng(1).permutation(N_QUESTIONS)
# The questions that strategies choose from, and an item response model of these questions. The
# model has quiz effects and a guessing probability. It infers abilities not only from answers, but
# also from which questions a student has answered.
BANK = Bank(PACKAGE, full_model(PACKAGE, N_QUESTIONS, seed=1, completion=2.4), POPULARITY)


def play(reference: Reference, strategy: Any, rules: Rules = STRICT, **setting: Any) -> Any:
    """Play a strategy with the questions and the model of `BANK`; return the game.

    The strategy must predict the hidden answers of the students in `reference`. The table
    `reference.targets["mask"]` says which answers are hidden. `setting` sets limits of the game,
    such as `n_questions`: it holds fields of `GameLimits`.
    """
    limits = GameLimits(**setting)
    return strategy_games.play(BANK, reference, "mask", rules, strategy, limits)


def some_answers(seed: int, shape: tuple[int, int], share: float) -> pd.DataFrame:
    """Return random answers of students with the UserIds 100, 101 and so on.

    `shape` is (students, questions). Each student answers about `share` of the questions. The
    probability of right answers differs between students.
    """
    rng = np.random.default_rng(seed)
    student, question = np.nonzero(rng.random(shape) < share)
    draw = rng.random(len(student))
    p_right = rng.beta(2, 2, shape[0])
    is_correct = (draw < p_right[student]).astype(np.int8)
    return answers_frame((100 + student).astype(np.int32), question.astype(np.int32), is_correct)


def some_students(seed: int, share: float = 0.7) -> Reference:
    """Return random answers of forty students; a fifth of the answers is hidden."""
    answers = some_answers(seed, (40, N_QUESTIONS), share)
    targets = np.random.default_rng(seed).random(len(answers)) < 0.2
    return make_reference("students.csv", answers, {"mask": targets}, N_QUESTIONS)


@cache
def recorded_arguments() -> list[tuple[Posterior, Any, Any]]:
    """Return the arguments that a strategy gets in each of four rounds of a game.

    The arguments are (posterior, askable, hidden), for ten of the forty students.
    """
    arguments = []
    rows = np.arange(0, 40, 4)

    def record(posterior: Posterior, askable: Any, hidden: Any) -> Any:
        arguments.append((posterior.take(rows), askable[rows], hidden[rows].copy()))
        return strategies.random(posterior, askable, hidden)

    play(some_students(2), record, n_questions=4)
    return arguments


# ---- The formulas ------------------------------------------------------------------------------
#
# Each function returns the value of asking one student (`row`) a question, computed in another way
# than in strategies.py. All functions take the same arguments, although some do not use all of
# them.

# Gaussian quadrature: the mean of a function f of a normally distributed number is about
# WEIGHTS @ f(mean + deviation * STEPS).
STEPS, WEIGHTS = np.polynomial.hermite_e.hermegauss(99)
WEIGHTS /= WEIGHTS.sum()


def right(logit: Any) -> Any:
    """Return P(right) at these logits."""
    return GUESSING + (1 - GUESSING) / (1 + np.exp(-logit))


def wrong(logit: Any) -> Any:
    """Return P(wrong) at these logits; unlike 1 − P(right), it is never rounded to 0."""
    return (1 - GUESSING) / (1 + np.exp(logit))


def fisher_information(logit: float) -> float:
    """Return the Fisher information of an answer about its logit.

    It is (dP/dx)² / (P (1 − P)), where P is P(right) at the logit x. The derivative dP/dx is
    approximated by a quotient of small differences.
    """
    slope = (right(logit + 1e-4) - right(logit - 1e-4)) / 2e-4
    return float(slope**2 / (right(logit) * wrong(logit)))


def logit_of_mean_probability(posterior: Posterior, row: int, question: int) -> float:
    """Return a logit that stands for the whole posterior of a student's logit at a question.

    P(right) at this logit is about the mean of P(right) over the posterior, by MacKay's
    approximation (1992).
    """
    mean, variance = posterior.mean[row, question], posterior.variance[row, question]
    return float(mean / np.sqrt(1 + np.pi / 8 * variance))


def gain_in_determinant(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return the D-optimal value: how much an answer raises the determinant of the precision.

    The precision is the inverse of the covariance matrix of the abilities. The value is the rise of
    its determinant, divided by the determinant before the answer.
    """
    slopes = posterior.slopes[question]
    before = np.linalg.inv(posterior.ability_covariance[row])
    information = fisher_information(posterior.mean[row, question])
    after = before + information * np.outer(slopes, slopes)
    return float(np.linalg.det(after) / np.linalg.det(before)) - 1


def divergence(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return how well an answer would tell the estimated abilities from other possible abilities.

    At other abilities, the answer is right with another probability. The Kullback-Leibler
    divergence measures how much the two distributions of the outcome differ. The result is the mean
    divergence over the posterior of the abilities (Chang and Ying 1996).
    """
    slopes = posterior.slopes[question]
    # The abilities are normally distributed, and the logit is a linear function of them. So the
    # mean is taken over a normally distributed logit, by Gaussian quadrature (STEPS, WEIGHTS).
    deviation = np.sqrt(slopes @ posterior.ability_covariance[row] @ slopes)
    estimated_logit = posterior.mean[row, question]
    other_logits = estimated_logit + deviation * STEPS
    # A divergence is the sum of P · log(P / P') over the two outcomes. P is the probability of the
    # outcome at the estimated logit, and P' its probability at another logit.
    term_of_right = right(estimated_logit) * np.log(right(estimated_logit) / right(other_logits))
    term_of_wrong = wrong(estimated_logit) * np.log(wrong(estimated_logit) / wrong(other_logits))
    return float(WEIGHTS @ (term_of_right + term_of_wrong))


def movement(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return the expected distance by which an answer moves the mean of the abilities.

    An answer first moves the mean of the question's logit, by a distance that follows from Bayes'
    rule. The abilities and the logit are jointly normal. So if the mean of the logit moves by d,
    the mean of the abilities moves by d · covariance / variance. Here `covariance` is the
    covariance of the abilities and the logit, and `variance` is the variance of the logit.
    """
    # First, find how far the answer moves the mean of the logit, in standard deviations. The mean
    # over the normally distributed logit is computed by Gaussian quadrature: STEPS are distances of
    # the logit from its mean, in standard deviations.
    deviation = posterior.variance[row, question] ** 0.5
    p_right = right(posterior.mean[row, question] + deviation * STEPS)
    # P(right answer) times the distance that a right answer moves the mean of the logit.
    movement_by_right = float((WEIGHTS * p_right) @ STEPS)
    # Before the answer is known, the expected movement is 0. So a wrong answer contributes the same
    # distance in the opposite direction, and the expected distance is twice this product.
    logit_movement = 2 * movement_by_right
    # Then, find how far the mean of the abilities moves. If the mean of the logit moves by its
    # standard deviation, d is `deviation`, and the mean of the abilities moves by
    # deviation · covariance / deviation² = covariance / deviation.
    covariance = posterior.cross_covariance[row, question]
    ability_movement_by_deviation = float(np.linalg.norm(covariance)) / deviation
    return logit_movement * ability_movement_by_deviation


def own_uncertainty(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return the probability that the answer to the question itself is predicted wrongly."""
    p = float(right(logit_of_mean_probability(posterior, row, question)))
    return min(p, 1 - p)


def mutual_information(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return how much the answer tells about the student's hidden answers: the mutual information.

    Each answer is treated as a measurement of its logit with normally distributed noise. Then the
    answers are jointly normal. The mutual information is ½ log(det A · det H / det T). Here A is
    the variance of the answer, H is the covariance matrix of the hidden answers, and T is the
    covariance matrix of the answer and the hidden answers together.

    `hidden` is the probability that an answer is hidden, shape (students, questions).
    """
    hidden_questions = np.flatnonzero(hidden[row])
    # Column 0 is the question that is asked, and the other columns are the hidden answers.
    columns = np.concatenate([[question], hidden_questions])
    logits = [logit_of_mean_probability(posterior, row, column) for column in columns]
    # The variance of the noise is 1 / Fisher information. As in strategies.py, the information is
    # taken as at least 0.005, so that the noise stays finite for an answer that is nearly certain.
    noise = np.array([1 / max(fisher_information(logit), 0.005) for logit in logits])
    # It is not certain that the student has each of the hidden answers. Divide the noise by the
    # probability: the less probable the hidden answer, the more noise it has and the less it
    # counts.
    noise[1:] /= hidden[row, hidden_questions]
    covariance = posterior.covariance(row, columns, columns) + np.diag(noise)
    _, log_determinant_of_answer = np.linalg.slogdet(covariance[:1, :1])
    _, log_determinant_of_hidden = np.linalg.slogdet(covariance[1:, 1:])
    _, log_determinant_of_all = np.linalg.slogdet(covariance)
    return float(log_determinant_of_answer + log_determinant_of_hidden - log_determinant_of_all) / 2


FORMULAS: Any = {
    "most_popular": lambda posterior, row, question, hidden: posterior.popularity[question],
    "maximum_information": gain_in_determinant,
    "kullback_leibler": divergence,
    "model_change": movement,
    "uncertainty": own_uncertainty,
    "eddi": mutual_information,
}


WITH_FORMULA = sorted(ALL.keys() - {"random", strategy_games.OWN})


@pytest.mark.parametrize("name", WITH_FORMULA)
def test_the_question_chosen_has_the_largest_value(name: str) -> None:
    """A strategy asks each student the askable question that has the largest value.

    FORMULAS holds the formula of the value for each strategy. `recorded_arguments` returns what a
    strategy gets in each of the four rounds of a game, for ten students.
    """
    for posterior, askable, hidden in recorded_arguments():
        chosen = ALL[name](posterior, askable, hidden)
        for row, chosen_question in enumerate(chosen):
            value_by_question = {}
            for question in np.flatnonzero(askable[row]).tolist():
                value_by_question[question] = FORMULAS[name](posterior, row, question, hidden)
            value_of_chosen = value_by_question[chosen_question]
            # The tolerance is 5 %, because some strategies only approximate their formula.
            assert value_of_chosen >= 0.95 * max(value_by_question.values())
            # The worst question is clearly worse, so that this test can detect a wrong choice.
            assert min(value_by_question.values()) < 0.9 * value_of_chosen


@pytest.mark.parametrize("name", WITH_FORMULA)
def test_the_choice_for_a_student_does_not_depend_on_other_students(name: str) -> None:
    rows = np.array([3, 1])
    for posterior, askable, hidden in recorded_arguments():
        chosen = ALL[name](posterior, askable, hidden)
        chosen_alone = ALL[name](posterior.take(rows), askable[rows], hidden[rows])
        assert np.array_equal(chosen_alone, chosen[rows])


@pytest.mark.parametrize("targets_queryable", [False, True])
@pytest.mark.parametrize(("seed", "share"), [(2, 0.6), (3, 1.0)])
def test_the_kits_own_strategy_asks_and_predicts_as_the_package(
    seed: int, share: float, targets_queryable: bool
) -> None:
    rules = Rules(targets_queryable)
    reference = some_students(seed, share=share)
    entry = LocalEntry(SUBMISSION.Submission(BANK.model))

    expected = play_entry(entry, reference, "mask", rules)
    game = play(reference, strategies.most_right_predictions, rules, n_questions=10)

    assert np.array_equal(game.chosen, expected.chosen)
    assert np.array_equal(game.probability[10] > 0.5, expected.prediction == 1)
    assert np.array_equal(game.truth, expected.truth)


@dataclass(frozen=True)
class AfterFourAnswers:
    """Forty students after four answers each, with a model without quiz effects.

    Without quiz effects, a logit is slopes · ability + intercept. Therefore the mean and the
    covariance of the logits follow from those of the abilities.
    """

    bank: Bank
    # The students' posterior distribution, as the `StudentPosterior` of the model.
    model_posterior: Any
    # The same posterior distribution, as the object that a strategy takes.
    posterior: Posterior
    # The variance of a student's mean logit over all questions, before any answer.
    prior_variance: float


@pytest.fixture(scope="module")
def after_four_answers() -> AfterFourAnswers:
    """Let a model observe four answers of each of forty students; return what it then knows.

    The model observes the answers to the first four questions that the student has answered. It is
    the model of BANK with two changes: it has no quiz effects, and it expects no hidden answers
    (`completion` is 0).
    """
    without_quizzes = replace(
        BANK.model,
        quiz_covariance=0 * BANK.model.quiz_covariance,
        completion=0 * BANK.model.completion,
    )
    bank = Bank(PACKAGE, without_quizzes)
    reference = some_students(4)
    # The row of each student in the table of answers.
    rows = np.arange(len(reference.student))
    # A number below 0 stands for a question without an answer.
    is_answered = reference.is_correct >= 0
    # The posterior before any answer. The model computes it only from which questions each student
    # has answered, and updates it below with each answer.
    model_posterior = start_posterior(bank, is_answered)
    # `Posterior` holds the same for strategies. Only strategies that choose at random use `seed`.
    before_answers = Posterior(model_posterior, POPULARITY, seed=rows)
    prior_variance = float(before_answers.prior_covariance.mean())

    # The first four questions that each student has answered, shape (students, 4). The sort puts
    # answered questions (False) before other questions (True). It is stable, so the answered
    # questions keep their order.
    first_answered = np.argsort(~is_answered, axis=1, kind="stable")[:, :4]
    # The model observes one answer of each student at a time. `questions` has a question for each
    # student.
    for questions in first_answered.T:
        model_posterior.observe(rows, questions, reference.is_correct[rows, questions])
        # A known answer need not be predicted, so it is no target.
        assert not model_posterior.target_weight[rows, questions].any()
    after_answers = Posterior(model_posterior, POPULARITY, seed=rows)
    return AfterFourAnswers(bank, model_posterior, after_answers, prior_variance)


def test_the_mean_logits_follow_from_the_abilities(after_four_answers: AfterFourAnswers) -> None:
    """The mean logit of a question is slopes · (mean of the abilities) + (logit at ability 0).

    The logit at ability 0 is the question's intercept. After four answers, the model also estimates
    how these students differ as a group from the students that it was trained on: it multiplies the
    intercepts by a factor (the stretch) and adds a number (the shift).
    """
    posterior = after_four_answers.posterior
    population = after_four_answers.model_posterior.population
    assert population.log_variance != 0
    intercept = after_four_answers.bank.model.intercept
    logit_at_ability_0 = np.exp(population.log_stretch) * intercept + population.shift
    expected_logit = posterior.ability_mean @ posterior.slopes.T + logit_at_ability_0
    assert posterior.mean == pytest.approx(expected_logit, abs=2e-3)


def test_the_covariances_follow_from_those_of_the_abilities(
    after_four_answers: AfterFourAnswers,
) -> None:
    """The covariances of a logit follow from the slopes and from the covariance of the abilities.

    Let the row vector s be the slopes of a question, and Σ the covariance matrix of the abilities.
    The covariance of the logit and the abilities is s · Σ. The variance of the logit is s · Σ · sᵀ.
    """
    posterior = after_four_answers.posterior
    cross_covariance = posterior.slopes @ posterior.ability_covariance
    assert posterior.cross_covariance == pytest.approx(cross_covariance, abs=2e-3)
    variance = (cross_covariance * posterior.slopes).sum(axis=2)
    assert posterior.variance == pytest.approx(variance, abs=2e-3)


def test_the_diagonal_of_the_covariance_holds_the_variances(
    after_four_answers: AfterFourAnswers,
) -> None:
    posterior = after_four_answers.posterior
    questions = np.arange(N_QUESTIONS)
    covariance = posterior.covariance(3, questions, questions)
    assert np.diagonal(covariance) == pytest.approx(posterior.variance[3], abs=2e-3)


def test_the_standard_error_of_the_ability_is_that_of_the_mean_logit(
    after_four_answers: AfterFourAnswers,
) -> None:
    """The unit of the overall ability is the standard deviation of the mean logit before answers.

    The overall ability of a student is the student's mean logit over all questions, in this unit.
    So the standard error of the ability is the standard deviation of the mean logit after the
    answers, divided by the standard deviation of the mean logit before any answer. The variance of
    the mean logit is the mean of all entries of the covariance matrix of the logits.
    """
    student = 3
    questions = np.arange(N_QUESTIONS)
    covariance = after_four_answers.posterior.covariance(student, questions, questions)
    expected = (covariance.mean() / after_four_answers.prior_variance) ** 0.5
    bank = after_four_answers.bank
    _, standard_errors = bank.overall_ability(after_four_answers.model_posterior)
    assert standard_errors[student] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("name", ["most_popular", "random"])
def test_exposure_stays_within_its_limit(name: str) -> None:
    reference = some_students(6)
    largest_exposure = {}
    for limit in (1.0, 0.4, 0.3):
        game = play(reference, ALL[name], n_questions=8, max_exposure=limit)
        n_asked = np.bincount(game.chosen.ravel()).max()
        largest_exposure[limit] = n_asked / len(reference.student)
        assert largest_exposure[limit] <= limit
        assert game.n_over_limit == 0
    # Without a limit (1.0), only `most_popular` asks many students the same question.
    assert (largest_exposure[1.0] > 0.4) == (name == "most_popular")


@pytest.mark.parametrize("name", ["most_popular", "random"])
def test_exposure_beyond_a_limit_that_cannot_hold_is_counted(name: str) -> None:
    """A limit of 1 % of 40 students is less than one student, but it is rounded up to one.

    So each of the 60 questions may be asked once. The students are asked 40 · 8 = 320 questions, so
    at least 260 of these exceed the limit.
    """
    game = play(some_students(6), ALL[name], n_questions=8, max_exposure=0.01)
    n_students_asked = np.bincount(game.chosen.ravel())
    assert game.n_over_limit == (n_students_asked - 1).clip(0).sum()
    assert game.n_over_limit >= 320 - 60


def test_a_test_ends_at_its_standard_error() -> None:
    """A student's test ends once the standard error of the ability is small enough.

    The test has at most twelve questions. It is longer if it ends at a smaller standard error.
    """
    # The key is the standard error at which the tests end. The value is the number of questions in
    # each student's test.
    lengths_by_error = {}
    for error in (1.1, 0.8, 0.6, 0.0):
        strategy = strategies.maximum_information
        game = play(some_students(7), strategy, n_questions=12, stop_at_error=error)
        # Whether a question is asked, of each student in each of the twelve rounds. The number -1
        # stands for no question.
        is_asked = game.chosen >= 0
        lengths = is_asked.sum(axis=1)
        # A student whose test has n questions is asked in the first n rounds, and not afterwards.
        is_in_first_rounds = np.arange(12) < lengths[:, None]
        assert np.array_equal(is_asked, is_in_first_rounds)
        lengths_by_error[error] = lengths

    # The standard error is 1 before any answer, so tests that end at 1.1 have no questions. The
    # error never reaches 0, so tests that end at 0.0 have all twelve questions.
    assert not lengths_by_error[1.1].any()
    assert (lengths_by_error[0.0] == 12).all()
    # The smaller the standard error at which the tests end, the longer they are.
    mean_lengths = [lengths.mean() for lengths in lengths_by_error.values()]
    assert (np.diff(mean_lengths) > 0).all()
    # Tests that end at the same error differ in length. If all had the same length, the two errors
    # 0.8 and 0.6 would give at most two lengths.
    different_lengths = set(lengths_by_error[0.8]) | set(lengths_by_error[0.6])
    assert len(different_lengths) > 2


@pytest.mark.parametrize(
    ("choose_wrongly", "message"),
    [
        # This strategy asks column 3, the question with the hidden answer.
        (lambda known, askable, hidden: hidden.argmax(axis=1), "chooses column 3 for a student"),
        # This strategy asks column 0 in every round, although it may be asked only once.
        (lambda known, askable, hidden: np.zeros(40, int), "chooses column 0 for a student"),
        # These strategies do not return a whole number for each student.
        (lambda known, askable, hidden: np.zeros(40), "returns array.*whole numbers"),
        (lambda known, askable, hidden: np.zeros(39, int), "returns array.*whole .*each of 40"),
        # These strategies raise errors. The last one tries to change the posterior that it gets.
        (lambda known, askable, hidden: 1 / 0, r"raises ZeroDivisionError \(line \d+: division by"),
        (lambda known, askable, hidden: sys.exit(3), r"raises SystemExit \(line \d+: 3\)"),
        (lambda known, askable, hidden: known.mean.fill(2), "raises ValueError .*read-only"),
    ],
)
def test_a_strategy_asks_only_what_it_may_and_changes_nothing(
    choose_wrongly: Any, message: str
) -> None:
    """A strategy that asks a forbidden question, or fails, is refused with its name and the reason.

    Forty students have answered all questions; the answer to question 3 is hidden, so question 3
    may not be asked. `choose_wrongly` is the faulty part of the strategy: a function that should
    return the question for each student. Its third argument says which answers are hidden.
    """
    is_hidden = np.tile(np.arange(N_QUESTIONS) == 3, (40, 1))

    def wrong(posterior: Any, askable: Any, hidden: Any) -> Any:
        """Cheat: mark all questions as permitted, then choose.

        `askable` says which questions the strategy may ask. The game must judge the choice by a
        copy that the strategy cannot change. `choose_wrongly` gets the true hidden answers, which
        the game does not show to a strategy.
        """
        askable[:] = True
        return choose_wrongly(posterior, askable, is_hidden)

    all_right = np.ones(is_hidden.shape)
    reference = as_reference(all_right, is_hidden)
    # The message names the strategy by its function, `wrong`.
    with pytest.raises(InputError, match=rf"^strategies.py: wrong {message}"):
        play(reference, wrong, n_questions=5)


# ---- Scores ------------------------------------------------------------------------------------


def some_game(chosen: Any, probability: Any) -> PlayedGame:
    """Return a game of two students, 7 and 8, with two hidden answers each.

    The hidden answers must be predicted. Only the second one of student 7 is wrong. Each row of
    `chosen` holds the questions that a student is asked, in this order; -1 stands for no question.
    Row n of `probability` holds P(right) of the four hidden answers after n questions. Five
    questions may be asked.
    """
    return PlayedGame(
        chosen=np.array(chosen),
        probability=dict(enumerate(np.array(probability))),
        truth=np.array([1, 0, 1, 1]),
        student=np.array([7, 7, 8, 8]),
        n_askable=5,
        # No question is asked more often than the limit of exposure allows.
        n_over_limit=0,
    )


@pytest.fixture
def scores_by_hand() -> pd.DataFrame:
    """Return the scores of a game after 0, 1 and 2 questions.

    Both students are asked question 0. Then the first student is asked question 1, and the test of
    the second student ends.
    """
    game = some_game(
        chosen=[[0, 1], [0, -1]],
        probability=[[0.5, 0.5, 0.5, 0.5], [0.6, 0.4, 0.8, 0.3], [0.9, 0.4, 0.2, 0.3]],
    )
    return strategy_games.score({"some": {"mask": game}})


def test_accuracy_auc_and_log_loss_by_hand(scores_by_hand: pd.DataFrame) -> None:
    """The hidden answers are right, wrong, right, right.

    P(right) of these four answers is 0.5 before any question. It is 0.6, 0.4, 0.8 and 0.3 after one
    question, and 0.9, 0.4, 0.2 and 0.3 after two questions.
    """
    # A P(right) of 0.5 counts as the prediction of a wrong answer.
    assert scores_by_hand.accuracy.tolist() == [0.25, 0.75, 0.5]
    # The AUC is the share of pairs of a right and a wrong answer in which the right one has the
    # larger P(right). There are three pairs; ties count half.
    assert scores_by_hand.auc.tolist() == pytest.approx([0.5, 2 / 3, 1 / 3])
    assert scores_by_hand.log_loss[2] == pytest.approx(-np.log([0.9, 0.6, 0.2, 0.3]).mean())


def test_exposure_use_of_the_bank_length_and_overlap_by_hand(scores_by_hand: pd.DataFrame) -> None:
    """One student is asked questions 0 and 1, and the other student only question 0."""
    # The exposure is the largest share of students who are asked the same question. After the first
    # round, both students have been asked question 0.
    assert scores_by_hand.exposure.tolist() == [0, 1, 1]
    # The use of the bank is the share of the five questions that any student has been asked: none
    # before the first round, one after it, and two after the second round.
    assert scores_by_hand.bank.tolist() == [0, 0.2, 0.4]
    assert scores_by_hand.length.tolist() == [0, 1, 1.5]
    # The overlap is the number of questions that the two tests share, divided by the mean length.
    assert scores_by_hand.overlap.tolist() == pytest.approx([0, 1, 1 / 1.5])


def test_mean_overlap_of_three_tests_by_hand() -> None:
    """The tests ask {0, 1}, {0, 2} and {0, 3}: any two tests share one of their two questions."""
    n_students_by_question = np.array([3, 1, 1, 1])
    overlap = strategy_games.mean_overlap(n_students_by_question, n_students=3)
    assert overlap == pytest.approx(0.5)


def test_tables_show_means_over_the_masks_and_the_deviation_at_the_end(
    scores_by_hand: pd.DataFrame,
) -> None:
    two_masks = pd.concat([scores_by_hand, scores_by_hand.assign(mask="other", accuracy=0.6)])
    table = compare_strategies.score_tables(two_masks, stops=False)["Accuracy after n questions"]
    assert table.loc["some"].to_dict() == {"1": "0.6750", "2": "0.5500", "± (2)": "0.0707"}


@pytest.mark.parametrize(
    ("probability_of_other", "n_masks", "expected"),
    [
        # The answers 0 and 1 are by one student, 2 and 3 by the other. The first strategy predicts
        # answers 0, 2 and 3 correctly, and the other strategy only answer 2. So the gains are 1, 0,
        # 0, 1. Both students have the same gain, 1, so the standard error is 0.
        ([0.1, 0.9, 0.9, 0.1], 1, (0.5, 0)),
        # The gains are 0, -1, 1, 0 in each of two masks. Over both masks, one student has the gain
        # -2 and the other student the gain 2. With n students, the standard error is
        # √(n / (n - 1) · sum of their squared gains) / (number of answers). With two students and
        # eight answers, this is √(2 / 1 · (2² + 2²)) / 8 = 0.5.
        ([0.9, 0.1, 0.1, 0.9], 2, (0, 0.5)),
    ],
)
def test_paired_difference_by_hand(
    probability_of_other: list[float], n_masks: int, expected: tuple[float, float]
) -> None:
    """`compare` returns the mean gain of one strategy over another, and its standard error.

    The gain on an answer is 1 if only the first strategy predicts it correctly, -1 if only the
    other strategy does, and 0 otherwise.

    There are two students with two hidden answers each: right, wrong; right, right. Both strategies
    predict the four answers before any question is asked (n=0). For the first strategy, P(right) of
    each answer is 0.9, so it predicts that all answers are right. For the other strategy, P(right)
    of the four answers is `probability_of_other`. `expected` is the mean gain of the first strategy
    over the other strategy, and its standard error.
    """
    # `probability` has only one row, since all predictions are made before any question. So it does
    # not matter which question each student is asked (`chosen`).
    first = some_game(chosen=[[0], [0]], probability=[[0.9, 0.9, 0.9, 0.9]])
    other = some_game(chosen=[[0], [0]], probability=[probability_of_other])
    # A strategy plays a game with each mask, which says which answers are hidden. `compare` takes
    # all games of both strategies. Here a strategy's game is the same with all masks.
    masks = [f"mask {number}" for number in range(n_masks)]
    games_of_first = dict.fromkeys(masks, first)
    games_of_other = dict.fromkeys(masks, other)
    difference = strategy_games.compare(games_of_first, games_of_other, n=0)
    assert difference == pytest.approx(expected)


# ---- Protocols ---------------------------------------------------------------------------------


def some_splits(
    name: str, n_splits: int, n_questions: int = 10
) -> list[tuple[pd.DataFrame, Reference]]:
    """Split 53 students, with the UserIds 100 to 152, by a paper's protocol.

    Each student has answered about 70 % of 90 questions. `n_questions` is the length of a test.
    """
    answers = some_answers(seed=9, shape=(53, 90), share=0.7)
    protocol = compare_strategies.PROTOCOLS[name]
    return list(compare_strategies.splits(answers, protocol, n_splits, n_questions, n_columns=90))


@pytest.mark.parametrize(("name", "learned_share"), [("bobcat", 0.6), ("ncat", 0.7)])
def test_protocols_split_students_and_answers(name: str, learned_share: float) -> None:
    """Each of five splits divides 53 students into training students and examined ones.

    `learned_share` is the share of the students that a paper's protocol trains on. The protocol
    also says which share of the answers of an examined student is hidden. The number of hidden
    answers is this share of the student's answers, rounded up.
    """
    hidden_share = compare_strategies.PROTOCOLS[name].target_share
    for learned_answers, examined in some_splits(name, n_splits=5):
        learned_students = set(learned_answers["UserId"])
        # The tolerance is one student, because the share of 53 students is no whole number.
        assert len(learned_students) == pytest.approx(learned_share * 53, abs=1)
        assert not learned_students & set(examined.student.tolist())

        # True where an answer is hidden, shape (students, questions). A split has only one such
        # table; its key in `targets` is the name of the split.
        is_hidden = examined.targets[examined.name]
        # A number below 0 stands for a question without an answer.
        is_answered = examined.is_correct >= 0
        n_hidden = is_hidden.sum(axis=1)
        n_answered = is_answered.sum(axis=1)
        assert np.array_equal(n_hidden, np.ceil(hidden_share * n_answered))
        assert is_answered[is_hidden].all()


@pytest.mark.parametrize("name", ["bobcat", "ncat"])
def test_protocols_hide_the_same_answers_in_every_run(name: str) -> None:
    first_run = some_splits(name, n_splits=5)
    second_run = some_splits(name, n_splits=5)
    for (_, first), (_, second) in zip(first_run, second_run, strict=True):
        assert np.array_equal(first.targets[first.name], second.targets[second.name])


def test_the_five_splits_of_bobcat_examine_every_student_once() -> None:
    splits = some_splits("bobcat", n_splits=5)
    examined = np.concatenate([reference.student for _, reference in splits])
    assert sorted(examined) == list(range(100, 153))


@pytest.mark.parametrize(("name", "n_questions"), [("bobcat", 50), ("ncat", 32)])
def test_protocols_do_not_examine_students_with_too_few_answers(
    name: str, n_questions: int
) -> None:
    """A longer test leaves out students who have too few answers for it.

    A test of ten questions leaves out no student, a test of `n_questions` some students, and a test
    of 80 questions all students.
    """
    [(_, all_examined)] = some_splits(name, n_splits=1)
    [(_, reference)] = some_splits(name, n_splits=1, n_questions=n_questions)
    assert 0 < len(reference.student) < len(all_examined.student)
    with pytest.raises(InputError, match="choose a smaller --questions"):
        some_splits(name, n_splits=1, n_questions=80)
