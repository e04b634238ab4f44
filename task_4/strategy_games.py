"""Play the game of task 4 with any strategy and the model of `item_response/`."""

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from common.adaptive.game import GameState, Reference, Rules
from common.errors import InputError
from common.source_code import load_module

import numpy as np
import strategies
from strategies import BoolArray, FloatArray, IntArray, Posterior
from strategy_scores import PlayedGame

PACKAGE = Path(__file__).parent / "item_response"
CHECKPOINTS = (0, 1, 3, 5, 10, 20)
OWN = "most_right_predictions"

Strategy = Callable[[Posterior, BoolArray, FloatArray], IntArray]


@dataclass(frozen=True)
class Setting:
    """How long a test is, and how often a question may be asked.

    Attributes
    ----------
    n_questions
        Length of a test; the maximum if `stop_at_error` ends it earlier.
    max_exposure
        Share of the students of a mask whom the same question may be asked, above 0, at most 1;
        rounded down to whole students, at least one.
    stop_at_error
        Standard error of the overall ability at which the test of a student ends; 0: never.
    """

    n_questions: int = 20
    max_exposure: float = 1.0
    stop_at_error: float = 0.0

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Numbers of questions after which predictions are scored."""
        return (*(n for n in CHECKPOINTS if n < self.n_questions), self.n_questions)


@dataclass(frozen=True)
class Calibrated:
    """The fitted model of `item_response/`, and how many students answered each question.

    Attributes
    ----------
    package
        The module `item_response/model.py`.
    model
        Its `Model`.
    popularity
        Number of training students, shape (questions,).
    """

    package: ModuleType
    model: Any
    popularity: IntArray


def find_strategies() -> dict[str, Strategy]:
    """Return the public functions of `strategies.py`, in their order there."""
    return {
        name: value
        for name, value in vars(strategies).items()
        if not name.startswith("_")
        and callable(value)
        and not isinstance(value, type)
        and value.__module__ == strategies.__name__
    }


def load_package() -> tuple[ModuleType, ModuleType]:
    """Import `model.py` and `train_model.py` of `item_response/`, which has no `__init__.py`."""
    # In this order: train_model.py imports the model by its name.
    model, train_model = (
        load_module(PACKAGE / f"{name}.py", name) for name in ("model", "train_model")
    )
    return model, train_model


# ---- What is known of the students ---------------------------------------------------------------


class Knowledge:
    """The posterior of `item_response/`, with the abilities and the overall ability besides.

    They are questions nobody answers, in further columns: the logit of ability d is the ability
    itself, that of the overall ability the mean over all questions.
    """

    def __init__(self, calibrated: Calibrated, askable: BoolArray, seed: int) -> None:
        self.n_questions = askable.shape[1]
        model = _add_abilities(calibrated.model.pad_questions(self.n_questions))
        self.n_abilities = model.slopes.shape[1]
        nobody = np.zeros((len(askable), self.n_abilities + 1), bool)
        self.inner = calibrated.package.StudentPosterior(model, np.hstack([askable, nobody]))
        self.seed = seed
        popularity = calibrated.popularity[: self.n_questions]
        self.popularity = np.pad(popularity, (0, self.n_questions - len(popularity)))
        # Of the training students, before any answer.
        self.deviation = float(np.sqrt(self.inner.covariance[-1, -1]))

    def observe(self, student: IntArray, question: IntArray, is_right: IntArray) -> None:
        """Learn from one answer of each of these students."""
        self.inner.observe(student, question, is_right)

    def predict(self) -> FloatArray:
        """Return P(right), 1 or 0 for what has been seen."""
        return np.asarray(self.inner.predict()[:, : self.n_questions])

    def hidden(self) -> FloatArray:
        """Return how probably each answer is to be predicted, up to a factor."""
        return np.asarray(self.inner.target_weight[:, : self.n_questions])

    def standard_error(self) -> FloatArray:
        """Return that of the overall ability, in its standard deviations over students."""
        return np.asarray(np.sqrt(self.inner.variance[:, -1]) / self.deviation)

    def view(self, n_asked: int) -> Posterior:
        """Return what strategies may know."""
        inner, q = self.inner, self.n_questions
        abilities = slice(q, q + self.n_abilities)
        factors = inner.factors
        of_abilities = factors[:, :, abilities].transpose(0, 2, 1)
        covariance = inner.covariance[abilities] - of_abilities @ factors
        view = Posterior(
            mean=inner.mean[:, :q],
            variance=inner.variance[:, :q],
            prior_covariance=inner.covariance[:q, :q],
            factors=factors[:, :, :q],
            # The shift of the mean logits is no ability.
            ability_mean=inner.mean[:, abilities] - np.float32(inner.population.shift),
            ability_covariance=covariance[:, :, abilities],
            cross_covariance=covariance[:, :, :q].transpose(0, 2, 1),
            slopes=inner.model.slopes[:q],
            guessing=float(inner.model.guessing),
            n_answers=inner.n_answers.copy(),
            popularity=self.popularity,
            targets_may_be_asked=inner.targets_may_be_asked,
            seed=np.arange(len(inner.mean)) + len(inner.mean) * (n_asked + 1000 * self.seed),
        )
        # A strategy that changes them in place would change the predictions.
        for array in vars(view).values():
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        return view


def _add_abilities(model: Any) -> Any:
    """Append columns for the abilities and for the mean over all questions to a model."""
    k = model.slopes.shape[1]
    wide = model.pad_questions(len(model.intercept) + k + 1)
    q = len(model.intercept)
    wide.intercept[q:] = 0
    wide.intercept[-1] = model.intercept.mean()
    wide.slopes[q:-1] = np.eye(k)
    wide.slopes[-1] = model.slopes.mean(axis=0)
    of_mean = model.quiz_covariance.mean(axis=0)
    wide.quiz_covariance[-1, :q] = wide.quiz_covariance[:q, -1] = of_mean
    wide.quiz_covariance[-1, -1] = of_mean.mean()
    return wide


# ---- The game ----------------------------------------------------------------------------------


def play(
    calibrated: Calibrated,
    reference: Reference,
    mask: str,
    rules: Rules,
    strategy: Strategy,
    setting: Setting,
    seed: int = 0,
) -> PlayedGame:
    """Ask every student with one strategy; the choice of each answer sees only those before.

    Parameters
    ----------
    calibrated
        The model that all strategies share.
    reference, mask, rules
        The students, as in `common.adaptive.game.play`.
    strategy
        From `strategies.py`.
    setting
        Length and limits.
    seed
        For strategies that draw, and for who comes first where a question is scarce.

    Raises
    ------
    InputError
        If a student cannot be asked as many questions as the setting says.
    """
    targets = reference.targets[mask]
    state = GameState(reference, mask, rules)
    askable = state.can_query
    hint = ": choose a smaller --questions"
    state.require_askable(setting.n_questions, hint)
    knowledge = Knowledge(calibrated, askable, seed)
    rng = np.random.default_rng(seed)
    n_students = len(askable)
    # The small number: 0.29 · 100 is a little less than 29.
    limit = max(1, int(setting.max_exposure * n_students + 1e-9))
    bank = int(askable.any(axis=0).sum())
    chosen = np.full((n_students, setting.n_questions), -1)
    n_asked = np.zeros(askable.shape[1], np.int64)
    n_over_limit = 0
    goes_on = np.ones(n_students, bool)
    probability = [knowledge.predict()[targets]]
    for number in range(setting.n_questions):
        # Later answers of others may change an error; the test is over nevertheless.
        goes_on &= knowledge.standard_error() > setting.stop_at_error
        rows = np.flatnonzero(goes_on)
        if len(rows):
            view = knowledge.view(number)
            left = limit - n_asked
            question, n_over = choose(
                strategy, view, askable, knowledge.hidden(), rng.permutation(rows), left
            )
            n_over_limit += n_over
            question = question[rows]
            knowledge.observe(rows, question, reference.is_correct[rows, question])
            chosen[rows, number] = question
            askable[rows, question] = False
            n_asked += np.bincount(question, minlength=len(n_asked))
        if number + 1 in setting.checkpoints:
            probability.append(knowledge.predict()[targets])
    return PlayedGame(
        chosen=chosen,
        probability=np.array(probability),
        truth=reference.is_correct[targets],
        student=reference.student[np.nonzero(targets)[0]],
        n_askable=bank,
        n_over_limit=n_over_limit,
    )


def choose(
    strategy: Strategy,
    view: Posterior,
    askable: BoolArray,
    hidden: FloatArray,
    order: IntArray,
    left: IntArray,
) -> tuple[IntArray, int]:
    """Let a strategy choose for every student, no question more often than is left of it.

    All choose at once. Where more students want a question than may get it, the first ones do, and
    the others choose again among what is left: a hard limit, which holds exactly as long as every
    student has a question left. (Sympson and Hetter 1985 hold theirs only on average, and need
    simulated students to set a probability for each question.)

    Parameters
    ----------
    strategy, view, askable, hidden
        As in `strategies.py`, of all students.
    order
        Rows of the students to be asked, those first who come first.
    left
        How often each question may still be asked, shape (questions,).

    Returns
    -------
    question : array of int64, shape (students,)
        -1 for students who are not asked.
    n_over : int
        How many had to be asked a question of which nothing was left.

    Raises
    ------
    InputError
        If the strategy chooses what may not be asked.
    """
    chosen = np.full(len(askable), -1)
    place_in_line = np.empty(len(askable), np.int64)
    place_in_line[order] = np.arange(len(order))
    n_over = 0
    waiting = np.sort(order)
    while len(waiting):
        free = askable[waiting] & (left > 0)
        stuck = ~free.any(axis=1)
        free[stuck] = askable[waiting[stuck]]
        some = view if len(waiting) == len(askable) else view.take(waiting)
        # A copy: what is free is checked afterwards.
        wish = strategy(some, free.copy(), hidden[waiting])
        _require_free(strategy, wish, free)
        # How many who wish for the same question come before.
        by_question = np.lexsort((place_in_line[waiting], wish))
        before = np.empty(len(wish), np.int64)
        wishes = wish[by_question]
        before[by_question] = np.arange(len(wish)) - np.searchsorted(wishes, wishes)
        gets = (before < left[wish]) | stuck
        chosen[waiting[gets]] = wish[gets]
        n_over += int(stuck.sum())
        left = left - np.bincount(wish[gets], minlength=len(left))
        waiting = waiting[~gets]
    return chosen, n_over


def _require_free(strategy: Strategy, wish: IntArray, free: BoolArray) -> None:
    """Raise `InputError` unless a strategy has chosen for every student what may be asked."""
    name = f"strategies.py: {strategy.__name__}"
    n_students, n_questions = free.shape
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
