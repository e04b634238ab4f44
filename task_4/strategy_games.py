"""Play the game of task 4 with any strategy and the model of `item_response/`."""

import reprlib
import traceback
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from common.adaptive.game import GameState, Reference, Rules, rounds
from common.errors import InputError
from common.source_code import load_module

import numpy as np
import pandas as pd
import strategies
from ability import Bank, learn
from strategies import BoolArray, FloatArray, IntArray, Posterior

PACKAGE = Path(__file__).parent / "item_response"
OWN = "most_right_predictions"

Strategy = Callable[[Posterior, BoolArray, FloatArray], IntArray]


class Setting(NamedTuple):
    """How long a test is, fewer questions if `stop_at_error`, a standard error of the overall
    ability, ends it earlier; which share of the students of a mask may be asked the same question.
    """

    n_questions: int = 20
    max_exposure: float = 1.0
    stop_at_error: float = 0.0

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Numbers of questions after which predictions are scored."""
        return (*(n for n in (0, 1, 3, 5, 10, 20) if n < self.n_questions), self.n_questions)


class PlayedGame(NamedTuple):
    """What a strategy did with one mask; T targets, C checkpoints.

    `chosen` holds the questions in the order asked, -1 after the end of a student's test, shape
    (students, n_questions); `probability` P(right) of every target at every checkpoint, (C, T),
    `truth` 1 right, 0 wrong and `student` the UserId of every target, (T,). Of `n_askable`
    questions each may be asked of somebody; `n_over_limit` times one had to be asked beyond the
    limit of exposure, since nothing else was left.
    """

    chosen: IntArray
    probability: FloatArray
    truth: IntArray
    student: IntArray
    n_askable: int
    n_over_limit: int


def find_strategies() -> dict[str, Strategy]:
    """Return the public functions of `strategies.py`, in their order there."""
    functions = filter(isfunction, vars(strategies).values())
    own = [found for found in functions if found.__module__ == strategies.__name__]
    return {found.__name__: found for found in own if not found.__name__.startswith("_")}


def load_package() -> tuple[ModuleType, ModuleType]:
    """Import `model.py` and `train_model.py` of `item_response/`, which has no `__init__.py`."""
    # In this order: train_model.py imports the model by its name.
    model, trainer = (
        load_module(PACKAGE / f"{name}.py", name) for name in ("model", "train_model")
    )
    return model, trainer


def know_nothing(bank: Bank, askable: BoolArray) -> Any:
    """Return the posterior of `item_response/`, with the abilities besides.

    They are questions that nobody answers, in further columns: the logit of ability d is the
    ability itself.
    """
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
    setting: Setting,
    seed: int = 0,
) -> PlayedGame:
    """Ask every student with one strategy; the choice of each answer sees only those before.

    The bank is shared by all strategies; the seed is for those that draw, and for who comes first
    where a question is scarce.
    """
    state = GameState(reference, mask, rules)
    state.require_askable(setting.n_questions, ": choose a smaller --questions")
    known = know_nothing(bank, state.can_query)
    n_students, n_questions = state.can_query.shape
    n_askable = int(state.can_query.any(axis=0).sum())
    rng = np.random.default_rng(seed)
    # How often each question may still be asked; 0.29 · 100 is a little less than 29.
    left = np.full(n_questions, max(1, int(setting.max_exposure * n_students + 1e-9)))
    goes_on = np.ones(n_students, bool)
    n_over_limit = 0

    def ask(number: int) -> IntArray:
        nonlocal n_over_limit
        # Later answers of others may change an error; the test is over nevertheless.
        goes_on[bank.overall_ability(known)[1] <= setting.stop_at_error] = False
        order = rng.permutation(np.flatnonzero(goes_on))
        seeds = np.arange(n_students) + n_students * (number - 1 + 1000 * seed)
        posterior = Posterior(known, bank.popularity, seeds)
        hidden = known.target_weight[:, :n_questions]
        question, n_over = choose(strategy, posterior, state.can_query, hidden, order, left)
        n_over_limit += n_over
        left[:] -= np.bincount(question[order], minlength=n_questions)
        return question

    probability = []
    for n_asked in rounds(state, ask, lambda number: learn(known, state), setting.n_questions):
        if n_asked in setting.checkpoints:
            probability.append(known.predict()[:, :n_questions][state.targets])
    return PlayedGame(
        chosen=np.stack(state.chosen, axis=1),
        probability=np.array(probability),
        truth=state.truth,
        student=reference.student[np.nonzero(state.targets)[0]],
        n_askable=n_askable,
        n_over_limit=n_over_limit,
    )


def choose(
    strategy: Strategy,
    posterior: Posterior,
    askable: BoolArray,
    hidden: FloatArray,
    order: IntArray,
    left: IntArray,
) -> tuple[IntArray, int]:
    """Let a strategy choose for every student, no question more often than is left of it.

    All choose at once. Where more students want a question than may get it, the first ones do, and
    the others choose again among what is left: a hard limit, which holds exactly as long as every
    student has a question left.

    `order` holds the rows of the students to be asked, those first who come first; `left` tells how
    often each question may still be asked, shape (questions,). Returns the questions, int64, shape
    (students,), -1 for students who are not asked, and how many students had to be asked a question
    of which nothing was left.
    """
    chosen = np.full(len(askable), -1)
    place_in_line = pd.Series(np.arange(len(order)), index=order)
    waiting, n_over = np.sort(order), 0
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
        n_over += int(stuck.sum())
        left = left - np.bincount(wish[gets], minlength=len(left))
        waiting = waiting[~gets]
    return chosen, n_over


def _wish(
    strategy: Strategy, posterior: Posterior, free: BoolArray, hidden: FloatArray
) -> IntArray:
    """Return what a strategy chooses, `InputError` unless every student may be asked it."""
    name, (n_students, n_questions) = f"strategies.py: {strategy.__name__}", free.shape
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
    if getattr(wish, "shape", None) != (n_students,) or wish.dtype.kind not in "iu":
        raise InputError(
            f"{name} returns {reprlib.repr(wish)}, expected an array of whole numbers, one for "
            f"each of {n_students} students"
        )
    fits = (wish >= 0) & (wish < n_questions)
    fits[fits] = free[fits, wish[fits]]
    if not fits.all():
        raise InputError(
            f"{name} chooses column {wish[~fits][0]} for a student who may not be asked it, "
            "expected one of those where askable is True"
        )
    return wish
