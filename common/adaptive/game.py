"""The game of task 4: ten questions for each student; an entry never sees a hidden answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from common import metrics, schema
from common.answers import read_answers
from common.arrays import Array, BoolArray, FloatArray, IntArray
from common.errors import InputError
from common.sandbox import EntryError, UnfitError, call_method

import numpy as np
import pandas as pd

N_ROUNDS = 10

# Students times questions; at most some 20 matrices of one byte each exist at a time.
_MAX_CELLS = 100_000_000


@dataclass(frozen=True)
class Rules:
    """How the challenge's rules are read, where what was published is ambiguous."""

    # Whether a target may be asked: the guide forbids it, the published scorer allowed it.
    targets_queryable: bool = False
    # Of an answer that is not revealed: -1 as documented; 0, like wrong, in the published scorer.
    unobserved: int = -1

    def __str__(self) -> str:
        """Return how the rules are read, in words."""
        asked = "may be asked" if self.targets_queryable else "may not be asked"
        return f"targets {asked}, unobserved = {self.unobserved}"


@dataclass(frozen=True)
class Reference:
    """The students to be examined, UserIds increasing, with all their answers: matrices (students,
    questions), column j being QuestionId j, `is_correct` 1 right, 0 wrong, -1 not answered,
    `option` 1 to 4, -1 not answered or unknown, both int8, and `targets` by their column.
    """

    name: str
    student: IntArray
    is_correct: IntArray
    option: IntArray
    targets: dict[str, BoolArray]

    def require_others(self, student: IntArray, holder: str, hint: str) -> None:
        """Raise `InputError` if a student to be examined is known, as in ``train.csv: holds``."""
        if len(known := np.intersect1d(self.student, student)):
            raise InputError(
                f"{holder} UserId {known[0]} of {self.name} ({len(known)} such students), expected "
                f"other students: {hint}"
            )


def read_reference(path: Path, n_questions: int = 0) -> Reference:
    """Read students and masks (IsTarget, or IsTarget_0, …) of at least `n_questions` questions."""
    answers = read_answers(path, masks=True)
    masks = {f"{name}": answers[name] for name in answers if schema.target_column(f"{name}")}
    for name, values in masks.items():
        if not values.any():
            raise InputError(f"{path}: column '{name}': is 0 in every row, expected targets")
    return make_reference(str(path), answers, masks, n_questions)


def make_reference(
    name: str, answers: pd.DataFrame, masks: Mapping[str, Any], n_questions: int = 0
) -> Reference:
    """Build the students to be examined from their answers; a mask is 1 or True for a target."""
    student, row = np.unique(answers["UserId"].to_numpy(), return_inverse=True)
    width = max(n_questions, int(answers["QuestionId"].max()) + 1)
    if len(student) * width > _MAX_CELLS:
        raise InputError(
            f"{name}: {len(student):,} students and QuestionIds up to {width - 1:,}, "
            f"expected at most {_MAX_CELLS:,} pairs: is this a file of task 4?"
        )

    def matrix(values: Any, elsewhere: int) -> IntArray:
        cells = np.full((len(student), width), elsewhere, np.int8)
        cells[row, answers["QuestionId"].to_numpy()] = values
        return cells

    is_correct = matrix(answers["IsCorrect"], -1)
    option = matrix(answers.get("AnswerValue", -1), -1)
    targets = {mask: matrix(values, 0).astype(bool) for mask, values in masks.items()}
    return Reference(name, student, is_correct, option, targets)


class GameState:
    """What is revealed in a game with one mask; `can_query`, bool, (students, questions), tells
    what may be asked, `chosen` holds QuestionIds by round, `truth` is 1 right, 0 wrong, by target.
    """

    def __init__(self, reference: Reference, mask: str, rules: Rules) -> None:
        self.reference, self.mask, self.rules = reference, mask, rules
        self.targets = reference.targets[mask]
        self.truth = reference.is_correct[self.targets]
        self.can_query: BoolArray = reference.is_correct >= 0
        if not rules.targets_queryable:
            self.can_query &= ~self.targets
        self.chosen: list[IntArray] = []
        self._option = np.full_like(reference.option, rules.unobserved)
        self._is_correct = np.full_like(reference.is_correct, rules.unobserved)

    def require_askable(
        self, n_questions: int, hint: str = "", rows: slice | IntArray = slice(None)
    ) -> None:
        """Raise `InputError` if one of the students in some rows cannot be asked so many."""
        n_askable, student = self.can_query.sum(axis=1)[rows], self.reference.student[rows]
        if (n_askable < n_questions).any():
            first = int((n_askable < n_questions).argmax())
            raise InputError(
                f"{self.reference.name}: UserId {student[first]} has {n_askable[first]} answers "
                f"that may be asked with mask '{self.mask}', expected at least {n_questions}{hint}"
            )

    def reveal(self, questions: IntArray) -> None:
        """Reveal each student's answer to the question chosen, which must be askable; -1: none."""
        self.chosen.append(questions)
        rows = np.flatnonzero(questions >= 0)
        asked = questions[rows]
        self.can_query[rows, asked] = False
        self._is_correct[rows, asked] = self.reference.is_correct[rows, asked]
        option = self.reference.option[rows, asked]
        self._option[rows, asked] = np.where(option > 0, option, self.rules.unobserved)

    def ask(self, entry: Entry, when: str, method: str) -> Any:
        """Call a method of an entry with what it may see, and return what it returned, checked."""
        # What an entry gets are copies: see `Entry.call`.
        arrays = self._option, self._is_correct, self.can_query.astype(np.int8)
        as_probability = method == "predict_probabilities"
        try:
            if method.startswith("predict"):
                return self._check_prediction(entry.call(method, arrays[:2]), as_probability)
            returned = entry.call(method, arrays)
            return self.check_selection(returned) if method == "select_questions" else None
        except EntryError as fault:
            # For what it is asked, an entry that lacks it should be told.
            asked_for = ", which --probabilities asks for" if as_probability else ""
            raise EntryError(f"{when}, {method}{asked_for}: {fault}") from None

    def check_selection(self, selection: Array | None) -> IntArray:
        """Return what an entry chose to ask as int64 of shape (students,), if it may."""
        n_students, n_questions = self.can_query.shape
        expected = f"one column index for each of the {n_students} students"
        selection = _require_shape(selection, expected, (n_students,), (n_students, 1))
        if selection.dtype.kind not in "iu":
            raise EntryError(f"returned {selection.dtype} values, expected whole numbers")
        questions = selection.ravel()
        outside = (questions < 0) | (questions >= n_questions)
        if outside.any():
            row = int(outside.argmax())
            fault = f"chose column {questions[row]}, expected 0 to {n_questions - 1}"
            raise EntryError(f"{self._name(row)}: {fault}")
        questions = questions.astype(np.int64)
        forbidden = ~self.can_query[np.arange(n_students), questions]
        if forbidden.any():
            row = int(forbidden.argmax())
            question, asked_before = questions[row], [chosen[row] for chosen in self.chosen]
            why = "is a target"
            if question in asked_before:
                why = f"was asked in round {asked_before.index(question) + 1} already"
            elif self.reference.is_correct[row, question] < 0:
                why = "the student has not answered"
            raise EntryError(
                f"{self._name(row)}: chose QuestionId {question}, which {why} "
                f"({int(forbidden.sum())} such students); expected a column where can_query is 1"
            )
        return questions

    def _check_prediction(self, returned: Array | None, as_probability: bool) -> Array:
        shape = self.can_query.shape
        cells = "one row for each student, one column for each question"
        array = _require_shape(returned, f"an array of shape {shape}: {cells}", shape)
        values, expected = array[self.targets], "0 or 1"
        valid = np.isin(values, (0, 1))
        if as_probability:
            # NaN fails every comparison.
            valid, expected = (values >= 0) & (values <= 1), "a number from 0 to 1"
        if not valid.all():
            place = int(valid.argmin())
            row, question = np.argwhere(self.targets)[place]
            raise EntryError(
                f"{self._name(row)}: predicted {values[place]} for QuestionId {question} "
                f"({int((~valid).sum())} such targets), expected {expected}"
            )
        return values.astype(np.float64 if as_probability else np.int8)

    def _name(self, row: int) -> str:
        return f"student {row} (UserId {self.reference.student[row]})"


def _require_shape(returned: Array | None, expected: str, *shapes: tuple[int, ...]) -> Array:
    if returned is None or returned.shape not in shapes:
        found = "nothing" if returned is None else f"shape {returned.shape}"
        raise EntryError(f"returned {found}, expected {expected}")
    return returned


class Entry(Protocol):
    """An entry as the game sees it, in this process or in one of its own."""

    def call(self, method: str, arrays: tuple[IntArray, ...]) -> Array | None:
        """Call a method with int64 copies of arrays; `EntryError` if it returns no numbers."""


class LocalEntry(NamedTuple):
    """An entry in this process, for tests of a trusted one: it has the methods of `Submission`."""

    submission: Any

    def call(self, method: str, arrays: tuple[IntArray, ...]) -> Array | None:
        """Call a method, as in `Entry`; what the method raises passes through."""
        try:
            return call_method(self.submission, method, arrays).values
        except UnfitError as error:
            raise EntryError(str(error)) from None


class Game(NamedTuple):
    """What an entry did with one mask: the QuestionIds in the order asked, int64, shape (students,
    N_ROUNDS); 1 right, 0 wrong, int8, and possibly P(right), float64, of all targets, (targets,).
    """

    chosen: IntArray
    truth: IntArray
    prediction: IntArray
    probability: FloatArray | None = None


def play(
    entry: Entry,
    reference: Reference,
    mask: str,
    rules: Rules = Rules(),
    on_round: Callable[[], object] = lambda: None,
    with_probability: bool = False,
) -> Game:
    """Play the rounds with a fresh entry, then let it predict; `EntryError` if it breaks a rule."""
    for state in _states(entry, reference, mask, rules):
        if state.chosen:
            on_round()
    end = f"after round {N_ROUNDS}"
    prediction = state.ask(entry, end, "predict")
    probability = state.ask(entry, end, "predict_probabilities") if with_probability else None
    return Game(np.stack(state.chosen, axis=1), state.truth, prediction, probability)


def replay(
    entry: Entry, reference: Reference, mask: str, chosen: IntArray, rules: Rules = Rules()
) -> FloatArray:
    """Reveal given questions, (students, N_ROUNDS); return the accuracies before and after each."""
    scores = []
    for state in _states(entry, reference, mask, rules, chosen):
        prediction = state.ask(entry, f"after round {len(state.chosen)}", "predict")
        scores.append(metrics.accuracy(state.truth, prediction).value)
    return np.array(scores)


def _states(
    entry: Entry, reference: Reference, mask: str, rules: Rules, chosen: IntArray | None = None
) -> Iterator[GameState]:
    """Yield the state before and after each round; an entry chooses itself, unless it is told."""
    state = GameState(reference, mask, rules)
    state.require_askable(N_ROUNDS)
    yield state
    for number in range(N_ROUNDS):
        when = f"round {number + 1}"
        own = state.ask(entry, when, "select_questions") if chosen is None else chosen[:, number]
        state.reveal(own)
        state.ask(entry, when, "update_model")
        yield state


def choose_at_random(
    reference: Reference, mask: str, rules: Rules = Rules(), seed: int = 0
) -> IntArray:
    """Choose ten questions for each student at random, int64 of shape (students, N_ROUNDS)."""
    state = GameState(reference, mask, rules)
    state.require_askable(N_ROUNDS)
    random = np.random.default_rng(seed).random(state.can_query.shape)
    return np.argsort(np.where(state.can_query, random, np.inf), axis=1)[:, :N_ROUNDS]
