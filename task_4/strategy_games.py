"""Play the game of task 4 with any strategy and the model of `item_response/`, and score it."""

import reprlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import isfunction
from pathlib import Path
from typing import Any

from common import metrics
from common.adaptive.game import GameState, Reference, Rules
from common.arrays import BoolArray, FloatArray, IntArray
from common.errors import InputError

import numpy as np
import pandas as pd
import strategies
from ability import Bank, load_module, reveal
from strategies import Posterior

PACKAGE = Path(__file__).parent / "item_response"
# The kit's own strategy, which is compared with the others.
OWN = "most_right_predictions"
# In each round of a game, each student is asked a question. Predictions are scored after these
# numbers of rounds, and at the end.
_SCORED_AFTER = (0, 1, 3, 5, 10, 20)

Strategy = Callable[[Posterior, BoolArray, FloatArray], IntArray]


@dataclass(frozen=True)
class GameLimits:
    """How many questions a student is asked, and how many students are asked a question."""

    # The number of questions after which a student's test ends, unless it has ended before.
    n_questions: int
    # No question is asked of more than this share of the students, unless a student has no other
    # question left.
    max_exposure: float = 1.0
    # A student's test ends as soon as the standard error of the student's overall ability is at
    # most this. 0: no test ends for this reason.
    stop_at_error: float = 0.0


@dataclass(frozen=True)
class PlayedGame:
    """How a strategy played with one mask.

    The mask hides T answers. They are the targets, the answers to be predicted. By some rules they
    may be asked too.
    """

    # For each student, the questions that were asked, in this order, shape (students, n_questions).
    # A question is named by its column in the table of answers. After the end of a student's test,
    # the entries are -1.
    chosen: IntArray
    # Maps a number of questions to the predictions after so many questions: P(right) of each
    # target, shape (T,).
    probability: dict[int, FloatArray]
    # 1 for a right and 0 for a wrong answer to a target, shape (T,).
    truth: IntArray
    # UserId of each target, shape (T,).
    student: IntArray
    # Number of the questions that at least one student may be asked.
    n_askable: int
    # How often a student was asked a question that had reached its limit: as many other students as
    # `GameLimits.max_exposure` allows had been asked it before.
    n_over_limit: int


# Maps the name of a strategy, then the name of a mask, to the game that was played with both.
Games = dict[str, dict[str, PlayedGame]]


def find_strategies() -> dict[str, Strategy]:
    """Return the public functions of `strategies.py` by name, in the order of the file."""
    found: dict[str, Strategy] = {}
    for function in filter(isfunction, vars(strategies).values()):
        is_imported = function.__module__ != strategies.__name__
        is_private = function.__name__.startswith("_")
        if not is_imported and not is_private:
            found[function.__name__] = function
    return found


def calibrate(answers: pd.DataFrame, n_questions: int) -> Bank:
    """Fit the model of `item_response/`, which all strategies share.

    Parameters
    ----------
    answers
        UserId, QuestionId and IsCorrect of each training answer.
    n_questions
        The number of questions; all QuestionIds are smaller.
    """
    model = load_module(PACKAGE / "model.py", "model")
    # train_model.py imports the module that has just been loaded as `model`.
    trainer = load_module(PACKAGE / "train_model.py", "train_model")
    popularity = np.bincount(answers["QuestionId"], minlength=n_questions)
    return Bank(model, trainer.fit(answers, n_questions), popularity)


# ---- The game ----------------------------------------------------------------------------------


def start_posterior(bank: Bank, askable: BoolArray) -> Any:
    """Return a `StudentPosterior` of `item_response/` before any answer, extended by the abilities.

    A `StudentPosterior` holds the distribution of the logits of questions, but not of the k
    abilities. So the model gets an artificial question for each ability. The logit of an artificial
    question equals the ability, and no student may be asked this question. The posterior has Q + k
    columns; `strategies.Posterior` separates the questions from the abilities. `askable` says which
    questions may be asked, shape (students, Q).
    """
    n_students, q = askable.shape
    k = bank.model.slopes.shape[1]
    # Bring the bank to the Q questions of `askable`: cut questions off or add unknown ones.
    model = bank.model.pad_questions(q)
    # Add the artificial questions.
    model = model.pad_questions(q + k)
    # The logit of a question is slopes · abilities + intercept. For the logit to equal one ability,
    # the slope on this ability must be 1, and all other slopes and the intercept must be 0.
    model.intercept[q:] = 0
    model.slopes[q:] = np.eye(k)
    not_askable = np.zeros((n_students, k), bool)
    return bank.module.StudentPosterior(model, np.hstack([askable, not_askable]))


def play(
    bank: Bank,
    reference: Reference,
    mask: str,
    rules: Rules,
    strategy: Strategy,
    limits: GameLimits,
    seed: int = 0,
) -> PlayedGame:
    """Play the game with one strategy: each round asks all students whose test has not ended.

    `seed` is the seed of the order in which students choose, and of strategies that choose at
    random. Raises `InputError` if a student has too few answers that may be asked, or if the
    strategy fails.
    """
    state = GameState(reference, mask, rules)
    state.require_askable(limits.n_questions, ": choose a smaller --questions")
    student_posterior = start_posterior(bank, state.can_query)
    n_students, n_columns = state.can_query.shape
    n_askable = int(state.can_query.any(axis=0).sum())
    rng = np.random.default_rng(seed)
    # 1e-9 makes up for rounding: 0.29 · 100 is a little less than 29.
    most_students = max(1, int(limits.max_exposure * n_students + 1e-9))
    # How many more students may be asked each question.
    n_left = np.full(n_columns, most_students)
    is_playing = np.ones(n_students, bool)
    probability = {}
    for n_asked in range(limits.n_questions):
        if n_asked in _SCORED_AFTER:
            probability[n_asked] = _predict_targets(student_posterior, state.targets)
        # A student whose test has ended is not asked again, even if later answers of other students
        # raise the standard error.
        _, error = bank.overall_ability(student_posterior)
        is_playing[error <= limits.stop_at_error] = False
        order = rng.permutation(np.flatnonzero(is_playing))
        # Make a seed for each student in each round. No two of these seeds are equal, also not for
        # two values of `seed`, as long as a test has at most 1000 rounds.
        seeds = np.arange(n_students) + n_students * (n_asked + 1000 * seed)
        posterior = Posterior(student_posterior, bank.popularity, seeds)
        hidden = student_posterior.target_weight[:, :n_columns]
        chosen = choose(strategy, posterior, state.can_query, hidden, order, n_left)
        reveal(state, chosen, student_posterior)
    probability[limits.n_questions] = _predict_targets(student_posterior, state.targets)
    return PlayedGame(
        chosen=np.stack(state.chosen, axis=1),
        probability=probability,
        truth=state.truth,
        student=reference.student[np.nonzero(state.targets)[0]],
        n_askable=n_askable,
        n_over_limit=int(np.maximum(-n_left, 0).sum()),
    )


def _predict_targets(student_posterior: Any, targets: BoolArray) -> FloatArray:
    """Return the predicted P(right) of each target, shape (targets,).

    `student_posterior` comes from `start_posterior`, and has learned from the answers so far.
    `targets` says which answers are targets, shape (students, questions).
    """
    n_questions = targets.shape[1]
    prediction: FloatArray = student_posterior.predict()[:, :n_questions]
    return prediction[targets].astype(np.float64)


def choose(
    strategy: Strategy,
    posterior: Posterior,
    askable: BoolArray,
    hidden: FloatArray,
    order: IntArray,
    n_left: IntArray,
) -> IntArray:
    """Let a strategy choose a question for each student, within the limit of exposure.

    All students choose at once. If more students want a question than may get it, those who are
    first in `order` get it, and the others choose again among the questions that are left. A
    student without a free question is asked a question that has reached its limit.

    Parameters
    ----------
    strategy
        The function that chooses; strategies.py describes it and its arguments.
    posterior
        What is known of the students.
    askable
        Which questions may be asked, shape (students, questions).
    hidden
        Probability that the answer is hidden and has to be predicted, same shape.
    order
        The rows of the students to be asked, in the order in which they get questions.
    n_left
        How often each question may still be asked, shape (questions,). It is counted down in place.
        If students have no other question left, it falls below 0: -2 means that the question was
        asked twice beyond its limit.

    Returns
    -------
    array of int64, shape (students,)
        The column chosen for each student, -1 for students who are not asked.
    """
    chosen = np.full(len(askable), -1)
    # Maps the row of a student to the student's place in `order`.
    place_in_order = pd.Series(np.arange(len(order)), index=order)
    waiting = np.sort(order)
    while len(waiting):
        free = askable[waiting] & (n_left > 0)
        # A student is stuck if all questions that the student may be asked have reached the limit.
        # These students are asked such a question all the same.
        is_stuck = ~free.any(axis=1)
        free[is_stuck] = askable[waiting[is_stuck]]
        # `take` would copy the posterior. If all students are waiting, use the posterior itself.
        all_wait = len(waiting) == len(askable)
        known_of_waiting = posterior if all_wait else posterior.take(waiting)
        wanted = _ask_strategy(strategy, known_of_waiting, free, hidden[waiting])
        # Students who want the same question form a queue, sorted by `order`. The first has rank 1.
        rank_in_queue = place_in_order[waiting].groupby(wanted).rank().to_numpy()
        is_within_limit = rank_in_queue <= n_left[wanted]
        is_served = is_within_limit | is_stuck
        chosen[waiting[is_served]] = wanted[is_served]
        n_left -= np.bincount(wanted[is_served], minlength=len(n_left))
        waiting = waiting[~is_served]
    return chosen


def _ask_strategy(
    strategy: Strategy, posterior: Posterior, free: BoolArray, hidden: FloatArray
) -> IntArray:
    """Return the columns that a strategy chooses among the `free` ones, shape (students,).

    The students are those who wait for a question. `free` says which questions each of them may be
    asked. `posterior` and `hidden` are arguments of every strategy; strategies.py describes them.

    Raises `InputError` if the strategy fails, or returns anything but a free column for each
    student.
    """
    name = f"strategies.py: {strategy.__name__}"
    try:
        # The strategy gets a copy, because the choice is checked against `free` afterwards.
        wanted = strategy(posterior, free.copy(), hidden)
    except (Exception, SystemExit) as error:
        # The first frame of the traceback belongs to this function, the second one to the strategy.
        # The line number of the second frame says where the strategy failed.
        frames = traceback.extract_tb(error.__traceback__)
        line = f"line {frames[1].lineno}: " if len(frames) > 1 else ""
        raise InputError(
            f"{name} raises {type(error).__name__} ({line}{error}), expected a column for each "
            "student"
        ) from None
    if getattr(wanted, "shape", None) != (len(free),) or wanted.dtype.kind not in "iu":
        raise InputError(
            f"{name} returns {reprlib.repr(wanted)}, expected an array of whole numbers, one for "
            f"each of {len(free)} students"
        )
    # Compare `wanted` with all column numbers. Indexing `free` by `wanted` would accept a negative
    # column, and would fail at a column that is too large.
    is_wanted = np.arange(free.shape[1]) == wanted[:, None]
    is_allowed = (is_wanted & free).any(axis=1)
    if not is_allowed.all():
        raise InputError(
            f"{name} chooses column {wanted[~is_allowed][0]} for a student who may not be asked "
            "it, expected one of those where askable is True"
        )
    return wanted


# ---- Scores ------------------------------------------------------------------------------------


def score(games: Games) -> pd.DataFrame:
    """Score games.

    Returns
    -------
    DataFrame
        A row for each strategy, mask and number n of questions. Accuracy, AUC and log loss judge
        the predictions of the hidden answers; the AUC is NaN if all hidden answers are right, or
        all are wrong. `exposure` is the largest share of students who were asked the same question.
        `overlap` is the result of `mean_overlap`. `bank` is the share of the askable questions that
        at least one student was asked. `length` is the mean number of questions asked of a student.
    """
    rows = []
    for name, game_by_mask in games.items():
        for mask, game in game_by_mask.items():
            for n in game.probability:
                labels = {"strategy": name, "mask": mask, "n": n}
                rows.append(labels | _score_game(game, n))
    return pd.DataFrame(rows)


def _score_game(game: PlayedGame, n: int) -> dict[str, float]:
    """Return the scores of a game after n questions; the keys are column names of `score`.

    `accuracy`, `auc` and `log_loss` judge the predictions of the hidden answers. The other scores
    say how the questions were used. `exposure` is the largest share of students who were asked the
    same question. `overlap` is the mean share of questions that two students have in common. `bank`
    is the share of the askable questions that at least one student was asked. `length` is the mean
    number of questions asked of a student.
    """
    # The predicted P(right) of each hidden answer.
    right = game.probability[n]
    probabilities = np.stack([1 - right, right], axis=1)
    scores = metrics.score_probabilities(game.truth, probabilities)
    # The questions asked, shape (students, n); -1 where a student was not asked.
    asked = game.chosen[:, :n]
    n_students = len(game.chosen)
    # How many students were asked each question. The array has no elements for questions above the
    # largest QuestionId that anybody was asked.
    counts = np.bincount(asked[asked >= 0])
    return {
        "accuracy": metrics.accuracy(game.truth, right > 0.5).value,
        "auc": np.nan if scores.auc is None else scores.auc,
        "log_loss": scores.log_loss,
        "exposure": counts.max(initial=0) / n_students,
        "overlap": mean_overlap(counts, n_students),
        "bank": (counts > 0).sum() / game.n_askable,
        "length": counts.sum() / n_students,
    }


def mean_overlap(counts: IntArray, n_students: int) -> float:
    """Return the mean share of questions that the tests of two students have in common.

    `counts` says how many students were asked each question. With N students, L questions in a test
    and the count m of a question, the share is Σ m (m − 1) / (L N (N − 1)), where the sum is over
    the questions (Chen, Ankenmann and Spray 2003).
    """
    # The number of questions in common, summed over all ordered pairs of students.
    n_common = (counts * (counts - 1)).sum()
    if n_common == 0:
        return 0.0
    # The sum of the counts is L N, the number of questions in all tests. If tests end early, L is
    # their mean length.
    return float(n_common / (counts.sum() * (n_students - 1)))


def compare(
    own: Mapping[str, PlayedGame], other: Mapping[str, PlayedGame], n: int
) -> tuple[float, float]:
    """Compare the accuracies of two strategies after n questions.

    Parameters
    ----------
    own, other
        The strategies' games by mask, with the same masks and students.
    n
        The number of questions.

    Returns
    -------
    difference
        By how much `own` is more accurate.
    standard_error
        Its standard error, with all answers of a student as a cluster.
    """
    difference = _is_hit(own, n).astype(np.int64) - _is_hit(other, n)
    student = np.concatenate([game.student for game in own.values()])
    standard_error = metrics.clustered_standard_error(difference, student)
    return float(difference.mean()), standard_error


def _is_hit(games: Mapping[str, PlayedGame], n: int) -> BoolArray:
    """Return whether each target of all games is predicted correctly after n questions."""
    hits = []
    for game in games.values():
        prediction = game.probability[n] > 0.5
        hits.append(prediction == (game.truth == 1))
    return np.concatenate(hits)
