"""Play the game of task 4 with any strategy and the model of `item_response/`, and score it."""

import reprlib
import traceback
from collections.abc import Callable, Mapping
from inspect import isfunction
from pathlib import Path
from typing import Any, NamedTuple

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
OWN = "most_right_predictions"
# After so many questions, and at the end of a test, predictions are scored.
_SCORED_AFTER = (0, 1, 3, 5, 10, 20)

Strategy = Callable[[Posterior, BoolArray, FloatArray], IntArray]


class PlayedGame(NamedTuple):
    """What a strategy did with one mask of T targets: questions `chosen` in order, -1 after the end
    of a test, (students, n_questions); P(right) by number of questions, `truth` and UserId, (T,);
    how many questions may be asked of somebody, how often one was beyond the limit of exposure.
    """

    chosen: IntArray
    probability: dict[int, FloatArray]
    truth: IntArray
    student: IntArray
    n_askable: int
    n_over_limit: int


Games = dict[str, dict[str, PlayedGame]]  # by strategy, then by mask


def find_strategies() -> dict[str, Strategy]:
    """Return the public functions of `strategies.py`, in their order there."""
    functions = filter(isfunction, vars(strategies).values())
    own = [found for found in functions if found.__module__ == strategies.__name__]
    return {found.__name__: found for found in own if not found.__name__.startswith("_")}


def calibrate(answers: pd.DataFrame, n_questions: int) -> Bank:
    """Fit the model of `item_response/`, which is one for all strategies."""
    model = load_module(PACKAGE / "model.py", "model")
    # This file imports the model by the name `model`, under which it is now loaded.
    trainer = load_module(PACKAGE / "train_model.py", "train_model")
    popularity = np.bincount(answers["QuestionId"], minlength=n_questions)
    return Bank(model, trainer.fit(answers, n_questions), popularity)


# ---- The game ----------------------------------------------------------------------------------


def know_nothing(bank: Bank, askable: BoolArray) -> Any:
    """Return the posterior of `item_response/`, abilities as further questions, never asked."""
    n_students, q = askable.shape
    k = bank.model.slopes.shape[1]
    model = bank.model.pad_questions(q).pad_questions(q + k)
    model.intercept[q:] = 0
    model.slopes[q:] = np.eye(k)
    nobody = np.zeros((n_students, k), bool)
    return bank.module.StudentPosterior(model, np.hstack([askable, nobody]))


def play(
    bank: Bank,
    reference: Reference,
    mask: str,
    rules: Rules,
    strategy: Strategy,
    n_questions: int,
    max_exposure: float = 1.0,
    stop_at_error: float = 0.0,
    seed: int = 0,
) -> PlayedGame:
    """Ask every student with one strategy, no question more than a share `max_exposure` of them,
    until the overall ability's standard error is `stop_at_error`; `seed` also says who is first.
    """
    state = GameState(reference, mask, rules)
    state.require_askable(n_questions, ": choose a smaller --questions")
    known = know_nothing(bank, state.can_query)
    n_students, n_columns = state.can_query.shape
    n_askable = int(state.can_query.any(axis=0).sum())
    rng = np.random.default_rng(seed)
    # How often each question may still be asked; 0.29 · 100 is a little less than 29.
    left = np.full(n_columns, max(1, int(max_exposure * n_students + 1e-9)))
    goes_on = np.ones(n_students, bool)
    probability = {}
    for n_asked in range(n_questions + 1):
        if n_asked in (*_SCORED_AFTER, n_questions):
            of_targets = known.predict()[:, :n_columns][state.targets]
            probability[n_asked] = of_targets.astype(np.float64)
        if n_asked == n_questions:
            break
        # Later answers of others may change an error; the test is over nevertheless.
        goes_on[bank.overall_ability(known)[1] <= stop_at_error] = False
        order = rng.permutation(np.flatnonzero(goes_on))
        seeds = np.arange(n_students) + n_students * (n_asked + 1000 * seed)
        posterior = Posterior(known, bank.popularity, seeds)
        hidden = known.target_weight[:, :n_columns]
        chosen = choose(strategy, posterior, state.can_query, hidden, order, left)
        reveal(state, chosen, known)
    return PlayedGame(
        chosen=np.stack(state.chosen, axis=1),
        probability=probability,
        truth=state.truth,
        student=reference.student[np.nonzero(state.targets)[0]],
        n_askable=n_askable,
        n_over_limit=int(np.maximum(-left, 0).sum()),
    )


def choose(
    strategy: Strategy,
    posterior: Posterior,
    askable: BoolArray,
    hidden: FloatArray,
    order: IntArray,
    left: IntArray,
) -> IntArray:
    """Let a strategy choose for the students in `order`, no question more often than is `left` of
    it, (questions,), which is counted down; the last ones choose again, and only who has nothing
    left gets any, below 0; int64 (students,), -1 for students who are not asked.
    """
    chosen = np.full(len(askable), -1)
    place_in_line = pd.Series(np.arange(len(order)), index=order)
    waiting = np.sort(order)
    while len(waiting):
        free = askable[waiting] & (left > 0)
        stuck = ~free.any(axis=1)
        free[stuck] = askable[waiting[stuck]]
        some = posterior if len(waiting) == len(askable) else posterior.take(waiting)
        wish = _wish(strategy, some, free, hidden[waiting])
        # The how-manieth in line each is among those who wish for the same question.
        place = place_in_line[waiting].groupby(wish).rank().to_numpy()
        gets = (place <= left[wish]) | stuck
        chosen[waiting[gets]] = wish[gets]
        left -= np.bincount(wish[gets], minlength=len(left))
        waiting = waiting[~gets]
    return chosen


def _wish(
    strategy: Strategy, posterior: Posterior, free: BoolArray, hidden: FloatArray
) -> IntArray:
    """Return what a strategy chooses, `InputError` unless every student may be asked it."""
    name = f"strategies.py: {strategy.__name__}"
    try:
        # A copy: what is free is checked afterwards.
        wish = strategy(posterior, free.copy(), hidden)
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = f"line {frames[1].lineno}: " if len(frames) > 1 else ""
        raise InputError(
            f"{name} raises {type(error).__name__} ({line}{error}), expected a column for each "
            "student"
        ) from None
    if getattr(wish, "shape", None) != (len(free),) or wish.dtype.kind not in "iu":
        raise InputError(
            f"{name} returns {reprlib.repr(wish)}, expected an array of whole numbers, one for "
            f"each of {len(free)} students"
        )
    is_wished = np.arange(free.shape[1]) == wish[:, None]
    fits = (is_wished & free).any(axis=1)
    if not fits.all():
        raise InputError(
            f"{name} chooses column {wish[~fits][0]} for a student who may not be asked it, "
            "expected one of those where askable is True"
        )
    return wish


# ---- Scores ------------------------------------------------------------------------------------


def score(games: Games) -> pd.DataFrame:
    """Score games by strategy, mask and number of questions, as STRATEGIES.md; AUC may be NaN."""
    rows = []
    for name, played in games.items():
        for mask, game in played.items():
            for n, right in game.probability.items():
                beliefs = np.stack([1 - right, right], axis=1)
                scores = metrics.score_probabilities(game.truth, beliefs)
                asked, n_students = game.chosen[:, :n], len(game.chosen)
                counts = np.bincount(asked[asked >= 0])
                row = {
                    "strategy": name,
                    "mask": mask,
                    "n": n,
                    "accuracy": metrics.accuracy(game.truth, right > 0.5).value,
                    "auc": np.nan if scores.auc is None else scores.auc,
                    "log_loss": scores.log_loss,
                    "exposure": counts.max(initial=0) / n_students,
                    "overlap": mean_overlap(counts, n_students),
                    "bank": (counts > 0).sum() / game.n_askable,
                    "length": counts.sum() / n_students,
                }
                rows.append(row)
    return pd.DataFrame(rows)


def mean_overlap(counts: IntArray, n_students: int) -> float:
    """Return the mean share that two tests have in common (Chen, Ankenmann and Spray 2003)."""
    n_common = (counts * (counts - 1)).sum()
    return float(n_common / (counts.sum() * (n_students - 1))) if n_common else 0.0


def compare(
    own: Mapping[str, PlayedGame], other: Mapping[str, PlayedGame], n: int
) -> tuple[float, float]:
    """Return by how much `own` is more accurate, and the standard error, students as clusters."""
    right, other_right = (
        np.concatenate([(g.probability[n] > 0.5) == (g.truth == 1) for g in games.values()])
        for games in (own, other)
    )
    difference = right.astype(np.int64) - other_right
    cluster = pd.factorize(np.concatenate([game.student for game in own.values()]))[0]
    return float(difference.mean()), metrics.clustered_standard_error(difference, cluster)
