"""Strategies of task 4, compared with their formulas, and games that are played with them."""

import sys
from dataclasses import replace
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
# A model with quiz effects, guessing, and inference from which questions a student has answered.
BANK = Bank(PACKAGE, full_model(PACKAGE, N_QUESTIONS, 1, 2.4), POPULARITY)


def play(reference: Reference, strategy: Any, rules: Rules = STRICT, **setting: Any) -> Any:
    """Return the game of a strategy with `BANK`; `setting` holds fields of `GameLimits`."""
    limits = GameLimits(**setting)
    return strategy_games.play(BANK, reference, "mask", rules, strategy, limits)


def some_answers(seed: int, shape: tuple[int, int], share: float) -> pd.DataFrame:
    """Return random answers; `shape` is (students, questions), `share` that of answered pairs."""
    rng = np.random.default_rng(seed)
    student, question = np.nonzero(rng.random(shape) < share)
    is_correct = (rng.random(len(student)) < rng.beta(2, 2, shape[0])[student]).astype(np.int8)
    return answers_frame((100 + student).astype(np.int32), question.astype(np.int32), is_correct)


def some_students(seed: int, share: float = 0.7) -> Reference:
    """Return forty students with random answers, a fifth of them hidden."""
    answers = some_answers(seed, (40, N_QUESTIONS), share)
    targets = np.random.default_rng(seed).random(len(answers)) < 0.2
    return make_reference("students.csv", answers, {"mask": targets}, N_QUESTIONS)


@cache
def positions() -> list[tuple[Posterior, Any, Any]]:
    """Return the arguments of a strategy in four rounds of a game, for ten of the students."""
    arguments = []
    rows = np.arange(0, 40, 4)

    def record(posterior: Posterior, askable: Any, hidden: Any) -> Any:
        arguments.append((posterior.take(rows), askable[rows], hidden[rows].copy()))
        return strategies.random(posterior, askable, hidden)

    play(some_students(2), record, n_questions=4)
    return arguments


# ---- The formulas ------------------------------------------------------------------------------


def right(x: Any) -> Any:
    """Return P(right) at these logits."""
    return GUESSING + (1 - GUESSING) / (1 + np.exp(-x))


def fisher(x: float) -> float:
    """Return (dP/dx)² / (P (1 − P)), with the derivative by finite differences."""
    slope = (right(x + 1e-4) - right(x - 1e-4)) / 2e-4
    return float(slope**2 / (right(x) * (1 - right(x))))


def usual_logit(posterior: Posterior, row: int, question: int) -> float:
    """Return the logit whose P(right) is about the mean of P(right) over the posterior.

    The approximation is MacKay's (1992).
    """
    mean, variance = posterior.mean[row, question], posterior.variance[row, question]
    return float(mean / np.sqrt(1 + np.pi / 8 * variance))


def determinant(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return by how much the answer raises the determinant of the abilities' precision."""
    a = posterior.slopes[question]
    before = np.linalg.inv(posterior.ability_covariance[row])
    after = before + fisher(posterior.mean[row, question]) * np.outer(a, a)
    return float(np.linalg.det(after) / np.linalg.det(before)) - 1


def divergence(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return the mean KL divergence over abilities drawn from their posterior, as in the paper."""
    rng = np.random.default_rng(0)
    shift = rng.multivariate_normal([0, 0], posterior.ability_covariance[row], 20_000)
    x = posterior.mean[row, question]
    p, q = right(x), right(x + shift @ posterior.slopes[question])
    return float(np.mean(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))))


def movement(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return how far an answer moves the abilities, by integrating over the logit."""
    deviation = posterior.variance[row, question] ** 0.5
    step, weight = np.polynomial.hermite_e.hermegauss(99)
    p = right(posterior.mean[row, question] + deviation * step)
    # The expected movement is zero, so that a right and a wrong answer have the same product of
    # probability and movement: hence the factor 2.
    moved = 2 * float((weight * p) @ step / weight.sum())
    return moved * float(np.linalg.norm(posterior.cross_covariance[row, question])) / deviation


def own_uncertainty(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return the probability that the prediction of the answer itself is wrong."""
    p = float(right(usual_logit(posterior, row, question)))
    return min(p, 1 - p)


def mutual_information(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Return the mutual information of the answer j and the hidden answers h.

    It is ½ log |S_j| |S_h| / |S_jh|, with the answers as Gaussian vectors.
    """
    target = np.flatnonzero(hidden[row])
    columns = np.concatenate([[question], target])
    noise = [1 / max(fisher(usual_logit(posterior, row, column)), 0.005) for column in columns]
    noise[1:] = [n / hidden[row, column] for n, column in zip(noise[1:], target, strict=True)]
    covariance = posterior.covariance(row, columns, columns) + np.diag(noise)
    _, log_of_answer = np.linalg.slogdet(covariance[:1, :1])
    _, log_of_hidden = np.linalg.slogdet(covariance[1:, 1:])
    _, log_of_all = np.linalg.slogdet(covariance)
    return float(log_of_answer + log_of_hidden - log_of_all) / 2


FORMULAS: Any = {
    "most_popular": lambda posterior, row, question, hidden: posterior.popularity[question],
    "maximum_information": determinant,
    "kullback_leibler": divergence,
    "model_change": movement,
    "uncertainty": own_uncertainty,
    "eddi": mutual_information,
}


WITH_FORMULA = sorted(ALL.keys() - {"random", strategy_games.OWN})


@pytest.mark.parametrize("name", WITH_FORMULA)
def test_the_question_chosen_has_the_largest_value(name: str) -> None:
    for posterior, askable, hidden in positions():
        chosen = ALL[name](posterior, askable, hidden)
        for row, question in enumerate(chosen):
            columns = np.flatnonzero(askable[row])
            values = [FORMULAS[name](posterior, row, int(column), hidden) for column in columns]
            value_of_chosen = values[columns.tolist().index(question)]
            # Some formulas are approximations or are integrated with random numbers: hence 5 %.
            assert value_of_chosen >= 0.95 * max(values)
            # The worst question is clearly worse, so that this test can detect a wrong choice.
            assert min(values) < 0.9 * value_of_chosen


@pytest.mark.parametrize("name", WITH_FORMULA)
def test_the_choice_for_a_student_does_not_depend_on_other_students(name: str) -> None:
    rows = np.array([3, 1])
    for posterior, askable, hidden in positions():
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


def test_abilities_and_their_standard_error_agree_with_the_logits() -> None:
    """Without quiz effects, a logit is slopes · ability + intercept.

    Therefore the mean and the covariance of the logits follow from those of the abilities.
    """
    left_out = {name: 0 * getattr(BANK.model, name) for name in ("quiz_covariance", "completion")}
    bank = Bank(PACKAGE, replace(BANK.model, **left_out))
    reference = some_students(4)
    known = start_posterior(bank, reference.is_correct >= 0)
    rows, questions = np.arange(len(reference.student)), np.arange(N_QUESTIONS)
    before = Posterior(known, POPULARITY, rows).prior_covariance.mean()
    # The first four questions that each student has answered.
    first_answered = np.argsort(reference.is_correct < 0, axis=1, kind="stable")[:, :4]
    for column in first_answered.T:
        known.observe(rows, column, reference.is_correct[rows, column])
        assert not known.target_weight[rows, column].any()
    seen, population = Posterior(known, POPULARITY, rows), known.population
    # After four answers the population has been estimated anew.
    assert population.log_variance != 0
    logit_at_ability_0 = np.exp(population.log_stretch) * bank.model.intercept + population.shift
    expected_logit = seen.ability_mean @ seen.slopes.T + logit_at_ability_0
    assert seen.mean == pytest.approx(expected_logit, abs=2e-3)
    cross = seen.slopes @ seen.ability_covariance
    assert seen.cross_covariance == pytest.approx(cross, abs=2e-3)
    assert (cross * seen.slopes).sum(axis=2) == pytest.approx(seen.variance, abs=2e-3)
    covariance = seen.covariance(3, questions, questions)
    assert np.diagonal(covariance) == pytest.approx(seen.variance[3], abs=2e-3)
    error = (covariance.mean() / before) ** 0.5
    _, standard_errors = bank.overall_ability(known)
    assert standard_errors[3] == pytest.approx(error, abs=1e-3)


@pytest.mark.parametrize("name", ["most_popular", "random"])
def test_exposure_stays_within_its_limit(name: str) -> None:
    reference, strategy = some_students(6), getattr(strategies, name)
    largest = {}
    for limit in (1.0, 0.4, 0.3):
        game = play(reference, strategy, n_questions=8, max_exposure=limit)
        largest[limit] = np.bincount(game.chosen.ravel()).max() / len(reference.student)
        assert largest[limit] <= limit
        assert game.n_over_limit == 0
    assert (largest[1.0] > 0.4) == (name == "most_popular")


@pytest.mark.parametrize("name", ["most_popular", "random"])
def test_exposure_beyond_a_limit_that_cannot_hold_is_counted(name: str) -> None:
    """The limit lets one of the 40 students be asked each of the 60 questions.

    The students need 40 · 8 = 320 questions, so that at least 260 of them exceed the limit.
    """
    reference, strategy = some_students(6), getattr(strategies, name)
    game = play(reference, strategy, n_questions=8, max_exposure=0.01)
    n_students_asked = np.bincount(game.chosen.ravel())
    assert game.n_over_limit == (n_students_asked - 1).clip(0).sum()
    assert game.n_over_limit >= 320 - 60


def test_a_test_ends_at_its_standard_error() -> None:
    lengths = []
    for error in (1.1, 0.8, 0.6, 0.0):
        strategy = strategies.maximum_information
        game = play(some_students(7), strategy, n_questions=12, stop_at_error=error)
        lengths.append((game.chosen >= 0).sum(axis=1))
        # No student is asked anything after the end.
        assert ((game.chosen >= 0) == (np.arange(12) < lengths[-1][:, None])).all()
    assert not lengths[0].any()
    assert (lengths[-1] == 12).all()
    assert (np.diff([length.mean() for length in lengths]) > 0).all()
    assert len(set(lengths[1]) | set(lengths[2])) > 2


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        # The first choice is a hidden answer, the second one is asked twice.
        (lambda known, askable, hidden: hidden.argmax(axis=1), "chooses column 3 for a student"),
        (lambda known, askable, hidden: np.zeros(40, int), "chooses column 0 for a student"),
        (lambda known, askable, hidden: np.zeros(40), "returns array.*whole numbers"),
        (lambda known, askable, hidden: np.zeros(39, int), "returns array.*whole .*each of 40"),
        (lambda known, askable, hidden: 1 / 0, r"raises ZeroDivisionError \(line \d+: division by"),
        (lambda known, askable, hidden: sys.exit(3), r"raises SystemExit \(line \d+: 3\)"),
        (lambda known, askable, hidden: known.mean.fill(2), "raises ValueError .*read-only"),
    ],
)
def test_a_strategy_asks_only_what_it_may_and_changes_nothing(choice: Any, message: str) -> None:
    targets = np.tile(np.arange(N_QUESTIONS) == 3, (40, 1))

    def wrong(posterior: Any, askable: Any, hidden: Any) -> Any:
        """Overwrite `askable`, which must have no effect; column 3 is the target."""
        askable[:] = True
        return choice(posterior, askable, targets)

    reference = as_reference(np.ones(targets.shape), targets)
    with pytest.raises(InputError, match=rf"^strategies.py: wrong {message}"):
        play(reference, wrong, n_questions=5)


# ---- Scores ------------------------------------------------------------------------------------


def some_game(chosen: Any, probability: Any) -> PlayedGame:
    """Return the game of two students with two hidden answers each.

    Only the second answer of the first student is wrong. `probability` holds P(right) of the hidden
    answers after 0, 1, … questions.
    """
    return PlayedGame(
        chosen=np.array(chosen),
        probability=dict(enumerate(np.array(probability))),
        truth=np.array([1, 0, 1, 1]),
        student=np.array([7, 7, 8, 8]),
        n_askable=5,
        n_over_limit=0,
    )


@pytest.fixture
def scores_by_hand() -> pd.DataFrame:
    """Return the scores of a game in which the second student's test ended after one question."""
    game = some_game(
        [[0, 1], [0, -1]],
        [[0.5, 0.5, 0.5, 0.5], [0.6, 0.4, 0.8, 0.3], [0.9, 0.4, 0.2, 0.3]],
    )
    return strategy_games.score({"some": {"mask": game}})


def test_accuracy_auc_and_log_loss_by_hand(scores_by_hand: pd.DataFrame) -> None:
    assert scores_by_hand.accuracy.tolist() == [0.25, 0.75, 0.5]
    # There are three pairs of a right and a wrong answer.
    assert scores_by_hand.auc.tolist() == pytest.approx([0.5, 2 / 3, 1 / 3])
    assert scores_by_hand.log_loss[2] == pytest.approx(-np.log([0.9, 0.6, 0.2, 0.3]).mean())


def test_exposure_use_of_the_bank_length_and_overlap_by_hand(scores_by_hand: pd.DataFrame) -> None:
    assert scores_by_hand.exposure.tolist() == [0, 1, 1]
    assert scores_by_hand.bank.tolist() == [0, 0.2, 0.4]
    assert scores_by_hand.length.tolist() == [0, 1, 1.5]
    # The two tests share one question; at the end their mean length is 1.5.
    assert scores_by_hand.overlap.tolist() == pytest.approx([0, 1, 1 / 1.5])


def test_mean_overlap_of_three_tests_by_hand() -> None:
    """Each pair of tests with two questions shares the first one."""
    assert strategy_games.mean_overlap(np.array([3, 1, 1, 1]), 3) == pytest.approx(0.5)


def test_tables_show_means_over_the_masks_and_the_deviation_at_the_end(
    scores_by_hand: pd.DataFrame,
) -> None:
    two_masks = pd.concat([scores_by_hand, scores_by_hand.assign(mask="other", accuracy=0.6)])
    table = compare_strategies.score_tables(two_masks, stops=False)["Accuracy after n questions"]
    assert table.loc["some"].to_dict() == {"1": "0.6750", "2": "0.5500", "± (2)": "0.0707"}


@pytest.mark.parametrize(
    ("probability_of_other", "n_masks", "expected"),
    [
        # The gains per answer are 1, 0, 0, 1. Both students gain equally, so that nothing varies.
        ([0.1, 0.9, 0.9, 0.1], 1, (0.5, 0)),
        # The gains are 0, 1, -1, 0 in each mask, and the sums of the two students are 2 and -2. The
        # standard error is √(n / (n - 1) · (2² + 2²)) / 8, with n = 2 students and 8 answers.
        ([0.9, 0.1, 0.1, 0.9], 2, (0, 0.5)),
    ],
)
def test_paired_difference_by_hand(
    probability_of_other: list[float], n_masks: int, expected: tuple[float, float]
) -> None:
    first = some_game([[0], [0]], [[0.9, 0.9, 0.9, 0.9]])
    second = some_game([[0], [0]], [probability_of_other])
    masks = [f"mask {number}" for number in range(n_masks)]
    difference = strategy_games.compare(
        dict.fromkeys(masks, first), dict.fromkeys(masks, second), 0
    )
    assert difference == pytest.approx(expected)


# ---- Protocols ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "learned_share"), [("bobcat", 0.6), ("ncat", 0.7)])
def test_protocols_split_students_and_answers(name: str, learned_share: float) -> None:
    answers = some_answers(9, (53, 90), 0.7)
    protocol = compare_strategies.PROTOCOLS[name]
    parts = list(compare_strategies.splits(answers, protocol, 5, 10, 90))
    again = list(compare_strategies.splits(answers, protocol, 5, 10, 90))
    for (learned, reference), (_, same) in zip(parts, again, strict=True):
        students = set(learned["UserId"])
        targets = reference.targets[reference.name]
        assert len(students) == pytest.approx(learned_share * 53, abs=1)
        assert not students & set(reference.student.tolist())
        answered = (reference.is_correct >= 0).sum(axis=1)
        assert np.array_equal(targets.sum(axis=1), np.ceil(protocol.target_share * answered))
        assert (reference.is_correct[targets] >= 0).all()
        assert np.array_equal(same.targets[same.name], targets)
    if name == "bobcat":
        examined = np.concatenate([reference.student for _, reference in parts])
        assert sorted(examined) == list(range(100, 153))


@pytest.mark.parametrize(("name", "n_questions"), [("bobcat", 50), ("ncat", 32)])
def test_protocols_do_not_examine_students_with_too_few_answers(
    name: str, n_questions: int
) -> None:
    answers = some_answers(9, (53, 90), 0.7)
    protocol = compare_strategies.PROTOCOLS[name]
    _, all_examined = next(compare_strategies.splits(answers, protocol, 1, 10, 90))
    _, reference = next(compare_strategies.splits(answers, protocol, 1, n_questions, 90))
    assert 0 < len(reference.student) < len(all_examined.student)
    with pytest.raises(InputError, match="choose a smaller --questions"):
        next(compare_strategies.splits(answers, protocol, 1, 80, 90))
