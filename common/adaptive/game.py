"""The game of task 4: ten questions for each student; an entry never sees a hidden answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from common import metrics, schema
from common.answers import read_answers
from common.arrays import Array, BoolArray, FloatArray, IntArray
from common.errors import InputError
from common.sandbox import EntryError, InvalidEntryError, call_method

import numpy as np
import pandas as pd

N_ROUNDS = 10

# Largest number of cells, students times questions. A game needs about 20 matrices of one byte a
# cell.
_MAX_CELLS = 100_000_000


@dataclass(frozen=True)
class Rules:
    """Choices that the published rules of the challenge leave open."""

    # Whether an entry may ask for an answer that it has to predict (a target). The guide forbids
    # it; the published scorer allowed it.
    targets_queryable: bool = False
    # An entry sees this value in place of a hidden answer. The documentation says -1. The published
    # scorer uses 0, which also stands for a wrong answer.
    unobserved: int = -1

    def __str__(self) -> str:
        """Return the choices in words, for the page of a score."""
        may = "may be asked" if self.targets_queryable else "may not be asked"
        return f"targets {may}, unobserved = {self.unobserved}"


@dataclass(frozen=True)
class Reference:
    """The students to be examined, with all their answers.

    Matrices have the shape (students, questions). Column j belongs to QuestionId j.
    """

    # Name of the file of the answers, for messages.
    name: str
    # UserIds, increasing, shape (students,).
    student: IntArray
    # 1 right, 0 wrong, -1 not answered, int8.
    is_correct: IntArray
    # The option chosen, 1 to 4, int8. -1 if the option is unknown or the question is not answered.
    option: IntArray
    # For each mask, by its name such as "IsTarget_0": True for the answers to be predicted.
    targets: dict[str, BoolArray]

    def require_others(self, student: IntArray, beginning: str, hint: str) -> None:
        """Raise `InputError` if a UserId of `student` is among the students to be examined.

        `beginning` begins the message, such as ``train.csv: holds``; `hint` ends the message.
        """
        shared = np.intersect1d(self.student, student)
        if len(shared):
            raise InputError(
                f"{beginning} UserId {shared[0]} of {self.name} ({len(shared)} such students), "
                f"expected other students: {hint}"
            )


def read_reference(path: Path, n_questions: int = 0) -> Reference:
    """Read the students to be examined from a file of answers with masks.

    A mask is a column of the file, IsTarget or IsTarget_0 and so on. It is 1 for the targets, the
    answers that an entry must predict.

    Parameters
    ----------
    path
        The file of answers.
    n_questions
        The least number of columns of the matrices in the `Reference`, such as `is_correct`. They
        have more columns if the file has larger QuestionIds.

    Raises
    ------
    InputError
        If the file is not as expected, or a mask has no targets.
    """
    answers = read_answers(path, masks=True)
    masks = {}
    # `str` is for the type checker: pandas types the names of columns as Hashable.
    for name in map(str, answers):
        is_mask = schema.target_column(name) is not None
        if is_mask:
            masks[name] = answers[name]
    for name, values in masks.items():
        if not values.any():
            raise InputError(f"{path}: column '{name}': is 0 in every row, expected targets")
    return make_reference(str(path), answers, masks, n_questions)


def make_reference(
    name: str, answers: pd.DataFrame, masks: Mapping[str, Any], n_questions: int = 0
) -> Reference:
    """Build a `Reference`: the students to be examined, with matrices of their answers.

    Parameters
    ----------
    name
        Name of the file of the answers, for messages.
    answers
        A row for each answer: UserId, QuestionId, IsCorrect and, if it is known, AnswerValue.
    masks
        The masks by their names. A mask is an array with a value for each row of `answers`: 1 or
        True if the answer is a target.
    n_questions
        The least number of columns of the matrices. They have more columns if `answers` has larger
        QuestionIds.

    Raises
    ------
    InputError
        If the matrices would be too large.
    """
    student, row = np.unique(answers["UserId"].to_numpy(), return_inverse=True)
    column = answers["QuestionId"].to_numpy()
    n_columns = max(n_questions, int(column.max()) + 1)
    if len(student) * n_columns > _MAX_CELLS:
        raise InputError(
            f"{name}: {len(student):,} students and QuestionIds up to {n_columns - 1:,}, "
            f"expected at most {_MAX_CELLS:,} pairs: is this a file of task 4?"
        )

    def to_matrix(values: Any, *, not_answered: int) -> IntArray:
        """Return a matrix of the values of the answers, with `not_answered` in all other cells."""
        cells = np.full((len(student), n_columns), not_answered, np.int8)
        cells[row, column] = values
        return cells

    # Without the column AnswerValue, all options are unknown: -1.
    options = answers.get("AnswerValue", -1)
    return Reference(
        name=name,
        student=student,
        is_correct=to_matrix(answers["IsCorrect"], not_answered=-1),
        option=to_matrix(options, not_answered=-1),
        targets={
            mask: to_matrix(values, not_answered=0).astype(bool) for mask, values in masks.items()
        },
    )


class GameState:
    """A game with one mask: which answers are revealed, and which questions may be asked.

    Attributes
    ----------
    reference : Reference
        The students.
    mask : str
        Name of the mask.
    rules : Rules
        The choices that the published rules leave open.
    targets : array of bool, shape (students, questions)
        Whether an answer is to be predicted.
    truth : array of int8, shape (targets,)
        The answers to be predicted, 1 right, 0 wrong, row by row as `is_correct[targets]` gives
        them.
    can_query : array of bool, shape (students, questions)
        Whether a question may be asked now.
    chosen : list of arrays of int64, shape (students,)
        For each round so far, the QuestionIds asked.
    """

    def __init__(self, reference: Reference, mask: str, rules: Rules) -> None:
        """Begin a game in which no question has been asked and no answer is revealed."""
        self.reference = reference
        self.mask = mask
        self.rules = rules
        # The targets are the answers that the entry must predict at the end.
        self.targets = reference.targets[mask]
        self.truth = reference.is_correct[self.targets]
        # An entry may ask a question only if the student has answered it: -1 is "not answered".
        has_answered: BoolArray = reference.is_correct >= 0
        self.can_query: BoolArray = has_answered
        if not rules.targets_queryable:
            self.can_query &= ~self.targets
        self.chosen: list[IntArray] = []
        # The answers as the entry sees them: `unobserved` stands for an answer not revealed.
        self._option = np.full_like(reference.option, rules.unobserved)
        self._is_correct = np.full_like(reference.is_correct, rules.unobserved)

    def require_askable(
        self, n_questions: int, hint: str = "", rows: slice | IntArray = slice(None)
    ) -> None:
        """Raise `InputError` unless every student can be asked at least `n_questions` questions.

        `rows` are the students that are checked, by default all. `hint` ends the message.
        """
        n_askable = self.can_query.sum(axis=1)[rows]
        student = self.reference.student[rows]
        has_too_few = n_askable < n_questions
        if has_too_few.any():
            first = int(has_too_few.argmax())
            raise InputError(
                f"{self.reference.name}: UserId {student[first]} has {n_askable[first]} answers "
                f"that may be asked with mask '{self.mask}', expected at least {n_questions}{hint}"
            )

    def reveal(self, questions: IntArray) -> None:
        """Reveal to the entry one answer of each student.

        `questions` are QuestionIds that may be asked, int64, shape (students,). For a student with
        -1 nothing is revealed.
        """
        self.chosen.append(questions)
        rows = np.flatnonzero(questions >= 0)
        asked = questions[rows]
        self.can_query[rows, asked] = False
        self._is_correct[rows, asked] = self.reference.is_correct[rows, asked]
        option = self.reference.option[rows, asked]
        self._option[rows, asked] = np.where(option > 0, option, self.rules.unobserved)

    def call_entry(self, entry: Entry, when: str, method: str) -> Any:
        """Call a method of an entry with the revealed answers; check and return its result.

        Parameters
        ----------
        entry
            The entry.
        when
            The time in the game, for messages, such as ``round 1``.
        method
            `select_questions`, `update_model`, `predict` or `predict_probabilities`.

        Returns
        -------
        array or None
            For `select_questions`, the QuestionIds chosen, int64, shape (students,). For `predict`,
            the predictions of the targets, int8, shape (targets,). For `predict_probabilities`,
            the probabilities of right answers to the targets, float64, shape (targets,). For
            `update_model`, None.

        Raises
        ------
        EntryError
            If the method fails, or does not return what it should.
        """
        # The answers that are revealed so far. Every method gets these two matrices. `Entry.call`
        # copies them, so that an entry cannot change this state.
        seen = (self._option, self._is_correct)
        try:
            if method == "predict":
                return self._check_labels(entry.call(method, seen))
            if method == "predict_probabilities":
                return self._check_probabilities(entry.call(method, seen))
            # The other methods also get a matrix that is 1 for the questions that may be asked.
            can_query = self.can_query.astype(np.int8)
            returned = entry.call(method, (*seen, can_query))
            if method == "select_questions":
                return self.check_selection(returned)
            return None
        except EntryError as fault:
            # Tell the entry's author which flag requires the method.
            flag = ", which --probabilities asks for" if method == "predict_probabilities" else ""
            raise EntryError(f"{when}, {method}{flag}: {fault}") from None

    def check_selection(self, selection: Array | None) -> IntArray:
        """Check that an entry may ask the questions that it has chosen.

        Parameters
        ----------
        selection
            The result of `select_questions`: a QuestionId for each student, shape (students,) or
            (students, 1). A QuestionId is the index of the question's column in `can_query`.

        Returns
        -------
        array of int64, shape (students,)
            The same QuestionIds.

        Raises
        ------
        EntryError
            If the shape or the dtype is wrong, or a question may not be asked.
        """
        n_students, n_questions = self.can_query.shape
        expected = f"one column index for each of the {n_students} students"
        selection = _require_shape(selection, expected, (n_students,), (n_students, 1))
        if selection.dtype.kind not in "iu":
            raise EntryError(f"returned {selection.dtype} values, expected whole numbers")
        questions = selection.ravel()
        is_outside = (questions < 0) | (questions >= n_questions)
        if is_outside.any():
            row = int(is_outside.argmax())
            raise EntryError(
                f"{self._name_student(row)}: chose column {questions[row]}, "
                f"expected 0 to {n_questions - 1}"
            )
        questions = questions.astype(np.int64)
        is_forbidden = ~self.can_query[np.arange(n_students), questions]
        if is_forbidden.any():
            row = int(is_forbidden.argmax())
            question = int(questions[row])
            raise EntryError(
                f"{self._name_student(row)}: chose QuestionId {question}, which "
                f"{self._why_forbidden(row, question)} ({int(is_forbidden.sum())} such students); "
                "expected a column where can_query is 1"
            )
        return questions

    def _why_forbidden(self, row: int, question: int) -> str:
        """Return, for a message, why this question may not be asked of the student in this row."""
        asked_before = [chosen[row] for chosen in self.chosen]
        if question in asked_before:
            return f"was asked in round {asked_before.index(question) + 1} already"
        if self.reference.is_correct[row, question] < 0:
            return "the student has not answered"
        return "is a target"

    def _check_labels(self, returned: Array | None) -> IntArray:
        """Return the predictions of the targets, int8; raise `EntryError` if one is not 0 or 1."""
        values = self._take_targets(returned)
        self._require_valid(values, np.isin(values, (0, 1)), "0 or 1")
        return values.astype(np.int8)

    def _check_probabilities(self, returned: Array | None) -> FloatArray:
        """Return the probabilities of the targets, float64.

        Raises `EntryError` if one is not a number from 0 to 1.
        """
        values = self._take_targets(returned)
        # NaN fails every comparison.
        is_valid = (values >= 0) & (values <= 1)
        self._require_valid(values, is_valid, "a number from 0 to 1")
        return values.astype(np.float64)

    def _take_targets(self, returned: Array | None) -> Array:
        """Return the targets' values, shape (targets,), from an array of all questions' values."""
        shape = self.can_query.shape
        cells = "one row for each student, one column for each question"
        array = _require_shape(returned, f"an array of shape {shape}: {cells}", shape)
        targets: Array = array[self.targets]
        return targets

    def _require_valid(self, values: Array, is_valid: BoolArray, expected: str) -> None:
        """Raise `EntryError` for the first prediction that is not valid."""
        if not is_valid.all():
            first = int(np.flatnonzero(~is_valid)[0])
            row, question = np.argwhere(self.targets)[first]
            raise EntryError(
                f"{self._name_student(row)}: predicted {values[first]} for QuestionId {question} "
                f"({int((~is_valid).sum())} such targets), expected {expected}"
            )

    def _name_student(self, row: int) -> str:
        """Return the name of a student for messages."""
        return f"student {row} (UserId {self.reference.student[row]})"


def _require_shape(returned: Array | None, expected: str, *shapes: tuple[int, ...]) -> Array:
    """Return an array that an entry has returned, if it has one of the shapes."""
    if returned is None or returned.shape not in shapes:
        found = "nothing" if returned is None else f"shape {returned.shape}"
        raise EntryError(f"returned {found}, expected {expected}")
    return returned


class Entry(Protocol):
    """An entry as the game sees it, whether it runs in this process or in another one."""

    def call(self, method: str, arrays: tuple[IntArray, ...]) -> Array | None:
        """Call a method of the entry with int64 copies of arrays.

        Returns the method's result as an array, or None if the method returns nothing. Raises
        `EntryError` if the method fails, is missing, or returns anything but numbers. The method
        `update_model` may be missing, and may return anything: its result is always None.
        """


@dataclass(frozen=True)
class LocalEntry:
    """An entry that runs in this process, for tests of entries that are trusted."""

    # An instance of the entry's class `Submission`, or an object with the same methods.
    submission: Any

    def call(self, method: str, arrays: tuple[IntArray, ...]) -> Array | None:
        """Call a method, see `Entry.call`.

        `EntryError` is raised if the method is missing or returns anything but numbers, unless it
        is `update_model`. An exception that the method itself raises is not converted to
        `EntryError`: it reaches the caller.
        """
        try:
            return call_method(self.submission, method, arrays).values
        except InvalidEntryError as error:
            raise EntryError(str(error)) from None


@dataclass(frozen=True)
class Game:
    """A finished game with one mask, which marks the answers to be predicted."""

    # The QuestionIds that each student was asked, in the order of the rounds, int64, shape
    # (students, N_ROUNDS).
    chosen: IntArray
    # The targets (answers to be predicted) and their predictions: 1 right, 0 wrong, int8, shape
    # (targets,). They are in the order of `np.nonzero(reference.targets[mask])`: student by
    # student.
    truth: IntArray
    prediction: IntArray
    # Probability of a right answer, float64, shape (targets,). None if it was not asked for.
    probability: FloatArray | None = None


def play(
    entry: Entry,
    reference: Reference,
    mask: str,
    rules: Rules = Rules(),
    on_round: Callable[[], object] = lambda: None,
    with_probability: bool = False,
) -> Game:
    """Play all rounds with a fresh entry, then let the entry predict the targets.

    Parameters
    ----------
    entry
        The entry, which has played no game yet.
    reference
        The students to be examined.
    mask
        Name of one of the reference's masks.
    rules
        The choices that the published rules leave open.
    on_round
        Called after each round.
    with_probability
        Whether to ask for probabilities too.

    Raises
    ------
    EntryError
        If the entry fails or breaks a rule.
    InputError
        If a student has too few questions that may be asked.
    """
    rounds = _play_rounds(entry, reference, mask, rules)
    # `next` returns the state before round 1. The loop then plays all rounds. `rounds` yields the
    # same object each time, so `state` is up to date after the loop.
    state = next(rounds)
    for _ in rounds:
        on_round()
    end = f"after round {N_ROUNDS}"
    prediction = state.call_entry(entry, end, "predict")
    probability = None
    if with_probability:
        probability = state.call_entry(entry, end, "predict_probabilities")
    chosen = np.stack(state.chosen, axis=1)
    return Game(chosen, state.truth, prediction, probability)


def replay(
    entry: Entry, reference: Reference, mask: str, chosen: IntArray, rules: Rules = Rules()
) -> FloatArray:
    """Play a game in which `chosen`, not the entry, says which questions are asked.

    `chosen` holds the QuestionIds, shape (students, N_ROUNDS). The entry predicts before the first
    round and after each round. Returns the accuracies of these predictions, shape (N_ROUNDS + 1,).
    """
    accuracies = []
    for state in _play_rounds(entry, reference, mask, rules, chosen):
        prediction = state.call_entry(entry, f"after round {len(state.chosen)}", "predict")
        accuracies.append(metrics.accuracy(state.truth, prediction).value)
    return np.array(accuracies)


def _play_rounds(
    entry: Entry, reference: Reference, mask: str, rules: Rules, chosen: IntArray | None = None
) -> Iterator[GameState]:
    """Play all rounds; yield the state before the first round and after each round.

    Each time the same `GameState` is yielded, which each round changes. `chosen` holds the
    questions to ask, shape (students, N_ROUNDS). If `chosen` is None, the entry chooses them.
    """
    state = GameState(reference, mask, rules)
    state.require_askable(N_ROUNDS)
    yield state
    for number in range(N_ROUNDS):
        when = f"round {number + 1}"
        if chosen is None:
            questions = state.call_entry(entry, when, "select_questions")
        else:
            questions = chosen[:, number]
        state.reveal(questions)
        state.call_entry(entry, when, "update_model")
        yield state


def choose_at_random(
    reference: Reference, mask: str, rules: Rules = Rules(), seed: int = 0
) -> IntArray:
    """Choose different questions for each student at random; int64, shape (students, N_ROUNDS)."""
    state = GameState(reference, mask, rules)
    state.require_askable(N_ROUNDS)
    # Sort each student's questions by random keys, and take the first ones. The key inf puts
    # questions that may not be asked last.
    keys = np.random.default_rng(seed).random(state.can_query.shape)
    keys[~state.can_query] = np.inf
    return np.argsort(keys, axis=1)[:, :N_ROUNDS]
