"""Strategies of task 4, each against its formula worked out another way; the games they play."""

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
# A model of which every part matters: quizzes, and what the answered mask reveals.
BANK = Bank(PACKAGE, full_model(PACKAGE, N_QUESTIONS, 1, 2.4), POPULARITY)


def play(reference: Reference, strategy: Any, rules: Rules = STRICT, **setting: Any) -> Any:
    limits = GameLimits(**setting)
    return strategy_games.play(BANK, reference, "mask", rules, strategy, limits)


def some_answers(seed: int, shape: tuple[int, int], share: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    student, question = np.nonzero(rng.random(shape) < share)
    is_correct = (rng.random(len(student)) < rng.beta(2, 2, shape[0])[student]).astype(np.int8)
    return answers_frame((100 + student).astype(np.int32), question.astype(np.int32), is_correct)


def some_students(seed: int, share: float = 0.7) -> Reference:
    answers = some_answers(seed, (40, N_QUESTIONS), share)
    targets = np.random.default_rng(seed).random(len(answers)) < 0.2
    return make_reference("students.csv", answers, {"mask": targets}, N_QUESTIONS)


@cache
def positions() -> list[tuple[Posterior, Any, Any]]:
    """What strategies are given in the first four rounds of a game, of some of the students."""
    given, some = [], np.arange(0, 40, 4)

    def look(posterior: Posterior, askable: Any, hidden: Any) -> Any:
        given.append((posterior.take(some), askable[some], hidden[some].copy()))
        return strategies.random(posterior, askable, hidden)

    play(some_students(2), look, n_questions=4)
    return given


def right(x: Any) -> Any:
    return GUESSING + (1 - GUESSING) / (1 + np.exp(-x))


def fisher(x: float) -> float:
    """(dP/dx)² / (P (1 − P)), the derivative by finite differences."""
    slope = (right(x + 1e-4) - right(x - 1e-4)) / 2e-4
    return float(slope**2 / (right(x) * (1 - right(x))))


def usual_logit(posterior: Posterior, row: int, question: int) -> float:
    """The logit at which P(right) is what it is on average (MacKay 1992)."""
    mean, variance = posterior.mean[row, question], posterior.variance[row, question]
    return float(mean / np.sqrt(1 + np.pi / 8 * variance))


def determinant(posterior: Any, row: int, question: int, hidden: Any) -> float:
    a = posterior.slopes[question]
    before = np.linalg.inv(posterior.ability_covariance[row])
    after = before + fisher(posterior.mean[row, question]) * np.outer(a, a)
    return float(np.linalg.det(after) / np.linalg.det(before)) - 1


def divergence(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Averaged over abilities drawn from their posterior, as in the paper."""
    rng = np.random.default_rng(0)
    shift = rng.multivariate_normal([0, 0], posterior.ability_covariance[row], 20_000)
    x = posterior.mean[row, question]
    p, q = right(x), right(x + shift @ posterior.slopes[question])
    return float(np.mean(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))))


def movement(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """Where the abilities move after either answer, by integrating over the logit."""
    deviation = posterior.variance[row, question] ** 0.5
    step, weight = np.polynomial.hermite_e.hermegauss(99)
    p = right(posterior.mean[row, question] + deviation * step)
    # A right and a wrong answer move them equally far, each times its probability.
    moved = 2 * float((weight * p) @ step / weight.sum())
    return moved * float(np.linalg.norm(posterior.cross_covariance[row, question])) / deviation


def own_uncertainty(posterior: Any, row: int, question: int, hidden: Any) -> float:
    p = float(right(usual_logit(posterior, row, question)))
    return min(p, 1 - p)


def mutual_information(posterior: Any, row: int, question: int, hidden: Any) -> float:
    """½ log |S_j| |S_h| / |S_jh| of the answer and the hidden answers, as Gaussian vectors."""
    target = np.flatnonzero(hidden[row])
    of = np.concatenate([[question], target])
    noise = [1 / max(fisher(usual_logit(posterior, row, q)), 0.005) for q in of]
    noise[1:] = [n / hidden[row, q] for n, q in zip(noise[1:], target, strict=True)]
    together = posterior.covariance(row, of, of) + np.diag(noise)
    determinants = [np.linalg.slogdet(s)[1] for s in (together[:1, :1], together[1:, 1:], together)]
    return float(determinants[0] + determinants[1] - determinants[2]) / 2


FORMULAS: Any = {
    "most_popular": lambda posterior, row, question, hidden: posterior.popularity[question],
    "maximum_information": determinant,
    "kullback_leibler": divergence,
    "model_change": movement,
    "uncertainty": own_uncertainty,
    "eddi": mutual_information,
}


@pytest.mark.parametrize("name", sorted(ALL.keys() - {"random", strategy_games.OWN}))
def test_the_choice_has_the_largest_value(name: str) -> None:
    for posterior, askable, hidden in positions():
        chosen = ALL[name](posterior, askable, hidden)
        for row, question in enumerate(chosen):
            columns = np.flatnonzero(askable[row])
            value = [FORMULAS[name](posterior, row, int(q), hidden) for q in columns]
            best = value[columns.tolist().index(question)]
            # Some formulas hold up to an approximation, or were integrated with random numbers.
            assert best >= 0.95 * max(value)
            # So that a wrong choice would show.
            assert min(value) < 0.9 * best
        # No other student matters.
        rows = np.array([3, 1])
        alone = ALL[name](posterior.take(rows), askable[rows], hidden[rows])
        assert np.array_equal(alone, chosen[rows])


@pytest.mark.parametrize("targets_queryable", [False, True])
def test_own_strategy_asks_and_predicts_as_the_package(targets_queryable: bool) -> None:
    rules = Rules(targets_queryable)
    for seed, share in ((2, 0.6), (3, 1.0)):
        reference = some_students(seed, share=share)
        entry = LocalEntry(SUBMISSION.Submission(BANK.model))
        expected = play_entry(entry, reference, "mask", rules)
        found = play(reference, strategies.most_right_predictions, rules, n_questions=10)
        assert np.array_equal(found.chosen, expected.chosen)
        assert np.array_equal(found.probability[10] > 0.5, expected.prediction == 1)
        assert np.array_equal(found.truth, expected.truth)


def test_view_of_abilities_and_the_standard_error_agree_with_the_view_of_logits() -> None:
    """Without quiz effects a logit is slopes · ability + intercept, in mean and covariance."""
    left_out = {name: 0 * getattr(BANK.model, name) for name in ("quiz_covariance", "completion")}
    bank = Bank(PACKAGE, replace(BANK.model, **left_out))
    reference = some_students(4)
    known = start_posterior(bank, reference.is_correct >= 0)
    rows, questions = np.arange(len(reference.student)), np.arange(N_QUESTIONS)
    before = Posterior(known, POPULARITY, rows).prior_covariance.mean()
    for column in np.argsort(reference.is_correct < 0, axis=1, kind="stable").T[:4]:
        known.observe(rows, column, reference.is_correct[rows, column])
        assert not known.target_weight[rows, column].any()
    seen, population = Posterior(known, POPULARITY, rows), known.population
    # Four answers: the population has been estimated anew.
    assert population.log_variance != 0
    rest = np.exp(population.log_stretch) * bank.model.intercept + population.shift
    assert seen.mean == pytest.approx(seen.ability_mean @ seen.slopes.T + rest, abs=2e-3)
    cross = seen.slopes @ seen.ability_covariance
    assert seen.cross_covariance == pytest.approx(cross, abs=2e-3)
    assert (cross * seen.slopes).sum(axis=2) == pytest.approx(seen.variance, abs=2e-3)
    covariance = seen.covariance(3, questions, questions)
    assert np.diagonal(covariance) == pytest.approx(seen.variance[3], abs=2e-3)
    error = (covariance.mean() / before) ** 0.5
    assert bank.overall_ability(known)[1][3] == pytest.approx(error, abs=1e-3)


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
    # Forty students need 320 questions and may have 60: the limit cannot hold.
    game = play(reference, strategy, n_questions=8, max_exposure=0.01)
    assert game.n_over_limit == (np.bincount(game.chosen.ravel()) - 1).clip(0).sum() >= 320 - 60


def test_a_test_ends_at_its_standard_error() -> None:
    lengths = []
    for error in (1.1, 0.8, 0.6, 0.0):
        strategy = strategies.maximum_information
        game = play(some_students(7), strategy, n_questions=12, stop_at_error=error)
        lengths.append((game.chosen >= 0).sum(axis=1))
        # Nobody goes on after the end.
        assert ((game.chosen >= 0) == (np.arange(12) < lengths[-1][:, None])).all()
    assert not lengths[0].any()
    assert (lengths[-1] == 12).all()
    assert (np.diff([length.mean() for length in lengths]) > 0).all()
    assert len(set(lengths[1]) | set(lengths[2])) > 2


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        # What is hidden, what is asked already.
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
        """Let it think that everything may be asked; column 3 is to be predicted."""
        askable[:] = True
        return choice(posterior, askable, targets)

    reference = as_reference(np.ones(targets.shape), targets)
    with pytest.raises(InputError, match=rf"^strategies.py: wrong {message}"):
        play(reference, wrong, n_questions=5)


def some_game(*values: Any) -> PlayedGame:
    """From chosen, probability after 0, 1, … questions, truth and student."""
    chosen, probability, truth, student = map(np.array, values)
    scored = dict(enumerate(probability))
    return PlayedGame(chosen, scored, truth, student, n_askable=5, n_over_limit=0)


def test_scores_by_hand() -> None:
    # Two students: the second one's test ended after one question.
    game = some_game(
        [[0, 1], [0, -1]],
        [[0.5, 0.5, 0.5, 0.5], [0.6, 0.4, 0.8, 0.3], [0.9, 0.4, 0.2, 0.3]],
        [1, 0, 1, 1],
        [7, 7, 8, 8],
    )
    scores = strategy_games.score({"some": {"mask": game}})
    assert scores.accuracy.tolist() == [0.25, 0.75, 0.5]
    # Of the three pairs of a right and a wrong answer, so many are in order.
    assert scores.auc.tolist() == pytest.approx([0.5, 2 / 3, 1 / 3])
    assert scores.log_loss[2] == pytest.approx(-np.log([0.9, 0.6, 0.2, 0.3]).mean())
    assert scores.exposure.tolist() == [0, 1, 1]
    assert scores.bank.tolist() == [0, 0.2, 0.4]
    assert scores.length.tolist() == [0, 1, 1.5]
    # One question in common, of one and a half on average.
    assert scores.overlap.tolist() == pytest.approx([0, 1, 1 / 1.5])
    # Of three tests with two questions, each pair shares the first one.
    assert strategy_games.mean_overlap(np.array([3, 1, 1, 1]), 3) == pytest.approx(0.5)
    # Shown are means over the masks, and their deviation at the end.
    both = pd.concat([scores, scores.assign(mask="other", accuracy=0.6)])
    table = compare_strategies.score_tables(both, stops=False)["Accuracy after n questions"]
    assert table.loc["some"].to_dict() == {"1": "0.6750", "2": "0.5500", "± (2)": "0.0707"}


def test_paired_difference_by_hand() -> None:
    for other, n_masks, expected in (
        # Per answer 1, 0, 0, 1: each student's sum is the mean, nothing varies between students.
        ([0.1, 0.9, 0.9, 0.1], 1, (0.5, 0)),
        # 0, 1, -1, 0 in each mask; the sum of each student differs from 0 by 2: √(8 · 2) / 8.
        ([0.9, 0.1, 0.1, 0.9], 2, (0, 0.5)),
    ):
        games = [
            some_game([[0], [0]], [probability], [1, 0, 1, 1], [7, 7, 8, 8])
            for probability in ([0.9] * 4, other)
        ]
        own, others = ({f"mask {k}": game for k in range(n_masks)} for game in games)
        assert strategy_games.compare(own, others, 0) == pytest.approx(expected)


@pytest.mark.parametrize(("name", "learned_share"), [("bobcat", 0.6), ("ncat", 0.7)])
def test_protocols_split_students_and_answers(name: str, learned_share: float) -> None:
    answers, protocol = some_answers(9, (53, 90), 0.7), compare_strategies.PROTOCOLS[name]
    parts, again = (list(compare_strategies.splits(answers, protocol, 5, 10, 90)) for _ in "ab")
    for (learned, reference), (_, same) in zip(parts, again, strict=True):
        students, targets = set(learned["UserId"]), reference.targets[reference.name]
        assert len(students) == pytest.approx(learned_share * 53, abs=1)
        assert not students & set(reference.student.tolist())
        answered = (reference.is_correct >= 0).sum(axis=1)
        assert np.array_equal(targets.sum(axis=1), np.ceil(protocol.target_share * answered))
        assert (reference.is_correct[targets] >= 0).all()
        assert np.array_equal(same.targets[same.name], targets)
    if name == "bobcat":
        examined = np.concatenate([reference.student for _, reference in parts])
        assert sorted(examined) == list(range(100, 153))
    # Those with too few answers are not examined.
    n_many = 50 if name == "bobcat" else 32
    _, reference = next(compare_strategies.splits(answers, protocol, 1, n_many, 90))
    assert 0 < len(reference.student) < len(parts[0][1].student)
    with pytest.raises(InputError, match="choose a smaller --questions"):
        next(compare_strategies.splits(answers, protocol, 1, 80, 90))
