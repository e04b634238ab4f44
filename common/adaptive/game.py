"""The game of task 4: ask each student ten questions one after the other, then predict.

An entry never sees a hidden answer: in every call it gets fresh copies of what has been revealed so
far. The rules are the challenge's; where its published material is ambiguous, `Rules` names both
readings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from common import io, metrics, schema
from common.adaptive import entry_runner
from common.answers import IntArray, as_frame, read_answer_table
from common.errors import InputError

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

N_ROUNDS = 10

# Students times questions; at most some 20 matrices of one byte each exist at a time.
_MAX_CELLS = 100_000_000


class EntryError(InputError):
    """An entry broke a rule, or its process failed; the message names the call and the fault."""


@dataclass(frozen=True)
class Rules:
    """How the challenge's rules are read.

    Attributes
    ----------
    targets_queryable
        Whether a question whose answer is to be predicted may be asked. The guide forbids it; the
        scorer with ten masks that was published allowed it.
    unobserved
        Value in the arrays for an answer that is not revealed: -1 as documented, or 0 as in the
        published evaluator (in the right/wrong array 0 then means wrong or unobserved).
    """

    targets_queryable: bool = False
    unobserved: int = -1


@dataclass(frozen=True)
class Reference:
    """The students to be examined, with all their answers.

    Attributes
    ----------
    name
        The file, for messages.
    student
        UserId of every row, in increasing order, shape (students,).
    is_correct
        1 right, 0 wrong, -1 not answered, int8, shape (students, questions); column j is
        QuestionId j.
    option
        The option chosen, 1 to 4, -1 not answered or not known, int8, same shape.
    targets
        For each mask of the file, by its column's name, which answers are to be predicted; same
        shape.
    """

    name: str
    student: IntArray
    is_correct: IntArray
    option: IntArray
    targets: dict[str, BoolArray]


class Entry(Protocol):
    """An entry as the game sees it, in this process or in one of its own."""

    def call(self, method: str, arrays: tuple[IntArray, ...]) -> npt.NDArray[Any] | None:
        """Call a method of the entry with its own int64 copies of the arrays.

        Parameters
        ----------
        method
            ``select_questions``, ``update_model``, ``predict`` or ``predict_probabilities``.
        arrays
            Arguments of the method, int8.

        Returns
        -------
        array of numbers, or None for `update_model`

        Raises
        ------
        EntryError
            If the entry cannot be called, or returns something else.
        """


class LocalEntry:
    """An entry in this process, for cross-validation and tests of a trusted entry.

    Parameters
    ----------
    submission
        An object with the methods of `Submission` in
        `submission_templates/submission_model_task_4.py`.
    """

    def __init__(self, submission: Any) -> None:
        self.submission = submission

    def call(self, method: str, arrays: tuple[IntArray, ...]) -> npt.NDArray[Any] | None:
        """Call a method, as in `Entry`; what the method raises passes through."""
        try:
            return entry_runner.call(self.submission, method, arrays)[0]
        except entry_runner.UnfitError as error:
            raise EntryError(str(error)) from None


@dataclass(frozen=True)
class Game:
    """What an entry did with one mask.

    Attributes
    ----------
    chosen
        QuestionIds in the order asked, int64, shape (students, N_ROUNDS).
    truth, prediction
        1 right, 0 wrong for every target, int8, shape (targets,).
    probability
        P(right) for every target, float64; None unless it was asked for.
    """

    chosen: IntArray
    truth: IntArray
    prediction: IntArray
    probability: FloatArray | None = None

    @property
    def accuracy(self) -> float:
        """Share of the targets that are predicted correctly."""
        return metrics.accuracy(self.truth, self.prediction)


def read_reference(path: Path, n_questions: int = 0) -> Reference:
    """Read the students to be examined.

    Parameters
    ----------
    path
        CSV with UserId, QuestionId, IsCorrect, possibly CorrectAnswer and AnswerValue, and the
        masks: IsTarget, or IsTarget_0, IsTarget_1 and so on.
    n_questions
        Minimum number of columns; there are more if the file holds larger QuestionIds.

    Raises
    ------
    InputError
        If a value is wrong, there is no mask, or a mask marks no answer.
    """
    table = read_answer_table(path, ids=False, masks=True)
    names = [name for name in table.column_names if schema.is_target_name(name)]
    masks = io.to_arrays(table, [schema.is_target(name) for name in names])
    for name, values in masks.items():
        if not values.any():
            raise InputError(f"{path}: column '{name}': is 0 in every row, expected targets")
    return make_reference(str(path), as_frame(table), masks, n_questions)


def make_reference(
    name: str, answers: pd.DataFrame, masks: Mapping[str, npt.NDArray[Any]], n_questions: int = 0
) -> Reference:
    """Build the students to be examined from their answers.

    Parameters
    ----------
    name
        The file, for messages.
    answers
        All answers of these students.
    masks
        By name, 1 or True for every answer that is to be predicted.
    n_questions
        As in `read_reference`.

    Raises
    ------
    InputError
        If there are too many students and questions for whole matrices.
    """
    student, row = np.unique(answers["UserId"].to_numpy(), return_inverse=True)
    width = max(n_questions, int(answers["QuestionId"].max()) + 1)
    if len(student) * width > _MAX_CELLS:
        raise InputError(
            f"{name}: {len(student):,} students and QuestionIds up to {width - 1:,}, "
            f"expected at most {_MAX_CELLS:,} pairs: is this a file of task 4?"
        )

    def matrix(values: npt.NDArray[Any], elsewhere: int) -> IntArray:
        cells = np.full((len(student), width), elsewhere, np.int8)
        cells[row, answers["QuestionId"].to_numpy()] = values
        return cells

    is_correct = matrix(answers["IsCorrect"].to_numpy(), -1)
    return Reference(
        name=name,
        student=student,
        is_correct=is_correct,
        option=(
            matrix(answers["AnswerValue"].to_numpy(), -1)
            if "AnswerValue" in answers
            else np.full_like(is_correct, -1)
        ),
        targets={mask: matrix(values, 0).astype(bool) for mask, values in masks.items()},
    )


def find_askable(reference: Reference, mask: str, rules: Rules) -> BoolArray:
    """Return which questions may be asked at first, shape (students, questions)."""
    is_answered: BoolArray = reference.is_correct >= 0
    return is_answered if rules.targets_queryable else is_answered & ~reference.targets[mask]


def require_askable(
    reference: Reference, mask: str, askable: BoolArray, n_questions: int, hint: str = ""
) -> None:
    """Raise `InputError` if a student cannot be asked so many questions.

    Parameters
    ----------
    reference, mask
        The students.
    askable
        Which questions may be asked, shape (students, questions).
    n_questions
        Length of the test.
    hint
        What to do, as the end of the message.
    """
    n_askable = askable.sum(axis=1)
    if (n_askable < n_questions).any():
        row = int((n_askable < n_questions).argmax())
        raise InputError(
            f"{reference.name}: UserId {reference.student[row]} has {n_askable[row]} answers "
            f"that may be asked with mask '{mask}', expected at least {n_questions}{hint}"
        )


class GameState:
    """What is revealed, and what may be asked, in a game.

    Parameters
    ----------
    reference
        The students and their answers.
    mask
        Name of the mask.
    rules
        How the rules are read.

    Attributes
    ----------
    can_query
        Which questions may be asked now, bool, shape (students, questions).
    chosen
        QuestionIds asked so far, one array of shape (students,) for each round.
    truth
        1 right, 0 wrong for every target, int8, shape (targets,).

    Raises
    ------
    InputError
        If a student cannot be asked as many questions as there are rounds.
    """

    def __init__(self, reference: Reference, mask: str, rules: Rules) -> None:
        self.reference = reference
        targets = reference.targets[mask]
        self._targets = np.flatnonzero(targets)
        self.truth = reference.is_correct.ravel()[self._targets]
        self.can_query = find_askable(reference, mask, rules)
        require_askable(reference, mask, self.can_query, N_ROUNDS)
        self.chosen: list[IntArray] = []
        self._option = np.full_like(reference.option, rules.unobserved)
        self._is_correct = np.full_like(reference.is_correct, rules.unobserved)

    def visible(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return masked_data, masked_binary_data and can_query as int8 copies."""
        return self._option.copy(), self._is_correct.copy(), self.can_query.astype(np.int8)

    def reveal(self, questions: IntArray) -> None:
        """Reveal the answer of every student to the question chosen, which must be askable."""
        rows = np.arange(len(questions))
        self.chosen.append(questions)
        self.can_query[rows, questions] = False
        self._is_correct[rows, questions] = self.reference.is_correct[rows, questions]
        option = self.reference.option[rows, questions]
        known = option > 0
        self._option[rows[known], questions[known]] = option[known]

    def check_selection(self, selection: npt.NDArray[Any] | None) -> IntArray:
        """Check what an entry chose to ask.

        Parameters
        ----------
        selection
            What it returned: shape (students,) or (students, 1).

        Returns
        -------
        array of int64, shape (students,)

        Raises
        ------
        EntryError
            If the type or shape is wrong, or a question may not be asked.
        """
        n_students, n_questions = self.can_query.shape
        expected = f"one column index for each of the {n_students} students"
        if selection is None:
            raise EntryError(f"returned nothing, expected {expected}")
        if selection.shape not in ((n_students,), (n_students, 1)):
            raise EntryError(f"returned shape {selection.shape}, expected {expected}")
        if selection.dtype.kind not in "iu":
            raise EntryError(f"returned {selection.dtype} values, expected whole numbers")
        outside = (selection < 0) | (selection >= n_questions)
        if outside.any():
            row = int(outside.ravel().argmax())
            raise EntryError(
                f"{self._name(row)}: chose column {selection.ravel()[row]}, "
                f"expected 0 to {n_questions - 1}"
            )
        questions = selection.ravel().astype(np.int64)
        forbidden = ~self.can_query[np.arange(n_students), questions]
        if forbidden.any():
            row = int(forbidden.argmax())
            raise EntryError(
                f"{self._name(row)}: chose QuestionId {questions[row]}, which "
                f"{self._why_not(row, int(questions[row]))} ({int(forbidden.sum())} such students);"
                " expected a column where can_query is 1"
            )
        return questions

    def check_prediction(self, prediction: npt.NDArray[Any] | None) -> IntArray:
        """Check what an entry predicts, and return what counts of it.

        Parameters
        ----------
        prediction
            What it returned: shape (students, questions).

        Returns
        -------
        array of int8, shape (targets,)
            0 or 1 for each target, in the order of `truth`.

        Raises
        ------
        EntryError
            If the shape is wrong, or the value for a target is neither 0 nor 1.
        """
        values = self._at_targets(prediction)
        self._require(np.isin(values, (0, 1)), values, "0 or 1")
        return values.astype(np.int8)

    def check_probability(self, probability: npt.NDArray[Any] | None) -> FloatArray:
        """As `check_prediction`, for P(right) of each target, float64, from 0 to 1."""
        values = self._at_targets(probability)
        # NaN fails every comparison.
        self._require((values >= 0) & (values <= 1), values, "a number from 0 to 1")
        return values.astype(np.float64)

    def _at_targets(self, values: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        shape = self.reference.is_correct.shape
        if values is None:
            raise EntryError(f"returned nothing, expected an array of shape {shape}")
        if values.shape != shape:
            raise EntryError(
                f"returned shape {values.shape}, expected {shape}: "
                "one row for each student, one column for each question"
            )
        return values.ravel()[self._targets]

    def _require(self, valid: BoolArray, values: npt.NDArray[Any], expected: str) -> None:
        if not valid.all():
            place = int(np.argmin(valid))
            row, question = divmod(int(self._targets[place]), self.can_query.shape[1])
            raise EntryError(
                f"{self._name(row)}: predicted {values[place]} for QuestionId {question} "
                f"({int((~valid).sum())} such targets), expected {expected}"
            )

    def _name(self, row: int) -> str:
        return f"student {row} (UserId {self.reference.student[row]})"

    def _why_not(self, row: int, question: int) -> str:
        for number, asked in enumerate(self.chosen, start=1):
            if asked[row] == question:
                return f"was asked in round {number} already"
        if self.reference.is_correct[row, question] < 0:
            return "the student has not answered"
        return "is a target"


def play(
    entry: Entry,
    reference: Reference,
    mask: str,
    rules: Rules = Rules(),
    on_round: Callable[[], object] = lambda: None,
    *,
    with_probability: bool = False,
) -> Game:
    """Play the ten rounds and score the predictions, exactly as the challenge does.

    Parameters
    ----------
    entry
        A fresh entry.
    reference
        The students.
    mask
        Name of the mask.
    rules
        How the rules are read.
    on_round
        Called after every round, for a progress bar.
    with_probability
        Whether to ask for probabilities too, once the predictions are made.

    Raises
    ------
    EntryError
        If the entry fails or breaks a rule.
    """
    state = GameState(reference, mask, rules)
    for number in range(1, N_ROUNDS + 1):
        method = "select_questions"
        try:
            state.reveal(state.check_selection(entry.call(method, state.visible())))
            method = "update_model"
            entry.call(method, state.visible())
        except EntryError as fault:
            raise EntryError(f"round {number}, {method}: {fault}") from None
        on_round()
    probability = None
    method = "predict"
    try:
        prediction = state.check_prediction(entry.call(method, state.visible()[:2]))
        if with_probability:
            # For what it is asked, an entry that lacks it should be told.
            method = "predict_probabilities, which --probabilities asks for"
            result = entry.call("predict_probabilities", state.visible()[:2])
            probability = state.check_probability(result)
    except EntryError as fault:
        raise EntryError(f"after round {N_ROUNDS}, {method}: {fault}") from None
    return Game(np.stack(state.chosen, axis=1), state.truth, prediction, probability)


def replay(
    entry: Entry,
    reference: Reference,
    mask: str,
    chosen: IntArray,
    rules: Rules = Rules(),
) -> FloatArray:
    """Reveal given questions instead of the entry's own choices, and score it after every round.

    Parameters
    ----------
    entry
        A fresh entry.
    reference
        The students.
    mask
        Name of the mask.
    chosen
        QuestionIds in the order asked, shape (students, N_ROUNDS).
    rules
        How the rules are read.

    Returns
    -------
    array of float64, shape (N_ROUNDS + 1,)
        Accuracy on the targets after 0, 1, … questions.

    Raises
    ------
    EntryError
        If the entry fails or breaks a rule.
    """
    state = GameState(reference, mask, rules)
    scores = []
    for number in range(N_ROUNDS + 1):
        method = "update_model"
        try:
            if number:
                state.reveal(chosen[:, number - 1])
                entry.call(method, state.visible())
            method = "predict"
            prediction = state.check_prediction(entry.call(method, state.visible()[:2]))
        except EntryError as fault:
            raise EntryError(f"after round {number}, {method}: {fault}") from None
        scores.append(metrics.accuracy(state.truth, prediction))
    return np.array(scores)


def choose_at_random(
    reference: Reference,
    mask: str,
    rules: Rules = Rules(),
    seed: int = 0,
) -> IntArray:
    """Choose ten questions for each student at random among those that may be asked.

    Parameters
    ----------
    reference
        The students.
    mask
        Name of the mask.
    rules
        How the rules are read.
    seed
        The same seed gives the same choice.

    Returns
    -------
    array of int64, shape (students, N_ROUNDS)
    """
    can_query = GameState(reference, mask, rules).can_query
    keys = np.where(can_query, np.random.default_rng(seed).random(can_query.shape), np.inf)
    return np.argsort(keys, axis=1)[:, :N_ROUNDS]
