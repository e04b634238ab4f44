"""The games of `compare_strategies.py`: what strategies get to know, the limits, the scores."""

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import strategies
import strategy_games
import strategy_protocols
import strategy_scores
from hypothesis import given
from hypothesis import strategies as st
from strategy_games import Calibrated, Setting
from task_4_models import as_reference, full_model, load_package

from common.adaptive.game import LocalEntry, Reference, Rules, make_reference
from common.adaptive.game import play as play_entry
from common.answers import Answers
from common.errors import InputError

N_QUESTIONS = 60
STRICT = Rules()
PACKAGE, SUBMISSION = load_package("item_response", "submission_model_task_4")
POPULARITY = np.random.default_rng(1).permutation(N_QUESTIONS)
# A model of which every part matters: quizzes, and what the answered mask reveals.
CALIBRATED = Calibrated(PACKAGE, full_model(PACKAGE, N_QUESTIONS, 1, 2.4), POPULARITY)


def play(reference: Reference, strategy: Any, rules: Rules = STRICT, **setting: Any) -> Any:
    return strategy_games.play(CALIBRATED, reference, "mask", rules, strategy, Setting(**setting))


def some_answers(seed: int, shape: tuple[int, int], share: float) -> Answers:
    rng = np.random.default_rng(seed)
    student, question = np.nonzero(rng.random(shape) < share)
    is_correct = (rng.random(len(student)) < rng.beta(2, 2, shape[0])[student]).astype(np.int8)
    return Answers((100 + student).astype(np.int32), question.astype(np.int32), is_correct)


def some_students(seed: int, share: float = 0.7) -> Reference:
    answers = some_answers(seed, (40, N_QUESTIONS), share)
    targets = np.random.default_rng(seed).random(len(answers)) < 0.2
    return make_reference("students.csv", answers, {"mask": targets}, N_QUESTIONS)


# ---- What strategies get to know ---------------------------------------------------------------


@pytest.mark.parametrize("targets_queryable", [False, True])
def test_own_strategy_asks_and_predicts_as_the_package(targets_queryable: bool) -> None:
    rules = Rules(targets_queryable)
    for seed, share in ((2, 0.6), (3, 1.0)):
        reference = some_students(seed, share=share)
        entry = LocalEntry(SUBMISSION.Submission(CALIBRATED.model))
        expected = play_entry(entry, reference, "mask", rules)
        found = play(reference, strategies.most_right_predictions, rules, n_questions=10)
        assert np.array_equal(found.chosen, expected.chosen)
        assert np.array_equal(found.probability[-1] > 0.5, expected.prediction == 1)
        assert np.array_equal(found.truth, expected.truth)


def test_view_of_abilities_agrees_with_that_of_logits() -> None:
    """Without quiz effects a logit is slopes · ability + intercept, in mean and covariance."""
    model = replace(CALIBRATED.model, quiz_covariance=0 * CALIBRATED.model.quiz_covariance)
    reference = some_students(4)
    knowledge = strategy_games.Knowledge(
        Calibrated(PACKAGE, model, POPULARITY), reference.is_correct >= 0, seed=0
    )
    rows, questions = np.arange(len(reference.student)), np.arange(N_QUESTIONS)
    for number in range(5):
        view = knowledge.view(number)
        population = knowledge.inner.population
        of_ability = view.ability_mean @ view.slopes.T
        rest = np.exp(population.log_stretch) * model.intercept + population.shift
        assert view.mean == pytest.approx(of_ability + rest, abs=2e-3)
        cross = view.slopes @ view.ability_covariance
        assert view.cross_covariance == pytest.approx(cross, abs=2e-3)
        assert (cross * view.slopes).sum(axis=2) == pytest.approx(view.variance, abs=2e-3)
        covariance = view.covariance(3, questions, questions)
        assert np.diagonal(covariance) == pytest.approx(view.variance[3], abs=2e-3)
        question = strategies.random(view, reference.is_correct >= 0, knowledge.hidden())
        knowledge.observe(rows, question, reference.is_correct[rows, question])
    # Four answers: the population has been estimated anew.
    assert knowledge.inner.population.log_variance != 0


def test_standard_error_is_that_of_the_mean_logit() -> None:
    reference = some_students(5)
    knowledge = strategy_games.Knowledge(CALIBRATED, reference.is_correct >= 0, seed=0)
    assert knowledge.standard_error() == pytest.approx(1)
    rows, questions = np.arange(len(reference.student)), np.arange(N_QUESTIONS)
    before = knowledge.view(0).prior_covariance.mean()
    for number in range(2):
        knowledge.observe(rows, rows % 7 + 7 * number, rows % 2)
        view = knowledge.view(number + 1)
        for row in (0, 11):
            variance = view.covariance(row, questions, questions).mean()
            expected = (variance / before) ** 0.5
            assert knowledge.standard_error()[row] == pytest.approx(expected, abs=1e-3)
    assert knowledge.standard_error().max() < 1


# ---- The limits --------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), n_left=st.integers(0, 4))
def test_no_question_is_chosen_more_often_than_is_left(seed: int, n_left: int) -> None:
    rng = np.random.default_rng(seed)
    taste = rng.random((12, 8)) + 2 * rng.random(8)
    askable = rng.random(taste.shape) < 0.6
    askable[:, 0] |= ~askable.any(axis=1)
    left = rng.integers(0, n_left + 1, 8)
    order = rng.permutation(12)[: rng.integers(1, 13)]
    view: Any = SimpleNamespace(take=lambda rows: None)

    def strategy(posterior: Any, free: Any, hidden: Any) -> Any:
        return np.where(free, hidden, -1).argmax(axis=1)

    chosen, n_over = strategy_games.choose(strategy, view, askable, taste, order, left)
    assert (np.delete(chosen, order) == -1).all()
    assert askable[order, chosen[order]].all()
    counts = np.bincount(chosen[order], minlength=8)
    assert np.maximum(counts - left, 0).sum() == n_over
    if n_over == 0:
        # Who comes first gets what is liked best of what is left.
        first = order[0]
        assert chosen[first] == np.where(askable[first] & (left > 0), taste[first], -1).argmax()


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
    assert game.n_over_limit >= 320 - 60


def test_a_test_ends_at_its_standard_error() -> None:
    lengths = []
    for error in (1.1, 0.8, 0.6, 0.0):
        strategy = strategies.maximum_information
        game = play(some_students(7), strategy, n_questions=12, stop_at_error=error)
        asked = game.chosen >= 0
        # Nobody goes on after the end.
        assert (asked[:, 1:] <= asked[:, :-1]).all()
        lengths.append(asked.sum(axis=1))
    assert not lengths[0].any()
    assert (lengths[-1] == 12).all()
    for shorter, longer in itertools.pairwise(lengths):
        assert shorter.mean() < longer.mean()
    assert len(set(lengths[1]) | set(lengths[2])) > 2


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        # What is hidden, what is asked already, what is none of the questions.
        (lambda askable, hidden: hidden.argmax(axis=1), "chooses column 3 for a student who"),
        (lambda askable, hidden: np.zeros(len(askable), int), "chooses column 0 for a student who"),
        (lambda askable, hidden: np.full(len(askable), -1), "chooses column -1 for a student who"),
        (lambda askable, hidden: askable.argmax(axis=1) * 1.0, "returns array.*of whole numbers"),
        (lambda askable, hidden: askable[1:].argmax(axis=1), "returns array.*for each of 40"),
        (lambda askable, hidden: None, "returns None, expected an array of whole numbers"),
    ],
)
def test_a_strategy_asks_only_what_it_may(choice: Any, message: str) -> None:
    targets = np.tile(np.arange(N_QUESTIONS) == 3, (40, 1))

    def wrong(posterior: Any, askable: Any, hidden: Any) -> Any:
        """Let it think that everything may be asked; column 3 is to be predicted."""
        askable[:] = True
        return choice(askable, targets[: len(hidden)])

    reference = as_reference(np.ones(targets.shape), targets)
    with pytest.raises(InputError, match=rf"^strategies.py: wrong {message}"):
        play(reference, wrong, n_questions=5)


@pytest.mark.parametrize("name", ["mean", "variance", "factors", "n_answers", "slopes"])
def test_a_strategy_cannot_change_what_is_known(name: str) -> None:
    def careless(posterior: Any, askable: Any, hidden: Any) -> Any:
        array = getattr(posterior, name)
        array *= 2
        return askable.argmax(axis=1)

    with pytest.raises(ValueError, match="read-only"):
        play(some_students(6), careless, n_questions=5)


def test_too_few_answers_are_named() -> None:
    with pytest.raises(InputError, match=r"^students.csv: UserId 1\d\d has \d+ answers that may"):
        play(some_students(8, share=0.3), strategies.random, n_questions=20)


# ---- Scores ------------------------------------------------------------------------------------


def some_game(chosen: Any, probability: Any, truth: Any, student: Any) -> Any:
    values: Any = [*map(np.array, (chosen, probability, truth, student)), 5, 0]
    return strategy_scores.PlayedGame(*values)


def test_scores_by_hand() -> None:
    # Two students: the second one's test ended after one question.
    game = some_game(
        [[0, 1], [0, -1]],
        [[0.5, 0.5, 0.5, 0.5], [0.6, 0.4, 0.8, 0.3], [0.9, 0.4, 0.2, 0.3]],
        [1, 0, 1, 1],
        [7, 7, 8, 8],
    )
    scores = strategy_scores.score_games({"mask": game}, (0, 1, 2))
    assert scores.accuracy.tolist() == [[0.25, 0.75, 0.5]]
    # Of the three pairs of a right and a wrong answer, so many are in order.
    assert scores.auc[0] == pytest.approx([0.5, 2 / 3, 1 / 3])
    expected = -np.log([0.9, 0.6, 0.2, 0.3]).mean()
    assert scores.log_loss[0, 2] == pytest.approx(expected)
    assert scores.largest_exposure.tolist() == [[0, 1, 1]]
    assert scores.bank_used.tolist() == [[0, 0.2, 0.4]]
    assert scores.n_questions.tolist() == [[0, 1, 1.5]]
    # One question in common, of one and a half on average.
    assert scores.overlap[0] == pytest.approx([0, 1, 1 / 1.5])


@given(seed=st.integers(0, 1000))
def test_overlap_is_the_mean_over_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tests = [set(rng.permutation(12)[:4].tolist()) for _ in range(7)]
    counts = np.bincount([question for test in tests for question in test])
    shared = [len(one & other) / 4 for one, other in itertools.combinations(tests, 2)]
    assert strategy_scores.mean_overlap(counts, 7) == pytest.approx(np.mean(shared))


@pytest.mark.parametrize(
    ("other", "n_masks", "difference", "error"),
    [
        # Per answer 1, 0, 0, 1: each student's sum is the mean, nothing varies between students.
        ([0.1, 0.9, 0.9, 0.1], 1, 0.5, 0),
        # 0, 1, -1, 0 in each mask; the sum of each student differs from 0 by 2: √(8 · 2) / 8.
        ([0.9, 0.1, 0.1, 0.9], 2, 0.0, 0.5),
        # Two masks: sums of 0 and 4 of 8; deviations -2 and 2, squared 8, times 2 / 1, root 4.
        ([0.9, 0.9, 0.1, 0.1], 2, 0.5, 0.5),
    ],
)
def test_paired_difference_by_hand(
    other: list[float], n_masks: int, difference: float, error: float
) -> None:
    games = [
        some_game([[0], [0]], [probability], [1, 0, 1, 1], [7, 7, 8, 8])
        for probability in ([0.9] * 4, other)
    ]
    own, others = ({f"mask {k}": game for k in range(n_masks)} for game in games)
    assert strategy_scores.compare(own, others, 0) == pytest.approx((difference, error))


# ---- Protocols ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "learned_share"), [("bobcat", 0.6), ("ncat", 0.7)])
def test_protocols_split_students_and_answers(name: str, learned_share: float) -> None:
    answers, protocol = some_answers(9, (53, 90), 0.7), strategy_protocols.PROTOCOLS[name]
    parts = list(strategy_protocols.splits(answers, protocol, 5, 10, 90))
    for learned, reference in parts:
        students = set(learned.student.tolist())
        assert len(students) == pytest.approx(learned_share * 53, abs=1)
        assert not students & set(reference.student.tolist())
        answered = (reference.is_correct >= 0).sum(axis=1)
        hidden = reference.targets["targets"].sum(axis=1)
        assert np.array_equal(hidden, np.ceil(protocol.target_share * answered))
        assert (reference.is_correct[reference.targets["targets"]] >= 0).all()
    if name == "bobcat":
        examined = np.concatenate([reference.student for _, reference in parts])
        assert sorted(examined) == list(range(100, 153))
    again = list(strategy_protocols.splits(answers, protocol, 5, 10, 90))
    for (_, one), (_, other) in zip(parts, again, strict=True):
        assert np.array_equal(one.targets["targets"], other.targets["targets"])
    # Those with too few answers are not examined.
    n_many = 50 if name == "bobcat" else 32
    _, reference = next(strategy_protocols.splits(answers, protocol, 1, n_many, 90))
    assert 0 < len(reference.student) < len(parts[0][1].student)
    with pytest.raises(InputError, match="choose a smaller --questions"):
        next(strategy_protocols.splits(answers, protocol, 1, 80, 90))
