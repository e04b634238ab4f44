"""What is known about pairs that were scored in tasks 1 and 2: training answers and metadata.

None of it is needed for a score. Whatever is not there, or cannot be read, is left out, with the
reason.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from common import cli, io, layout, made, metadata, schema
from common.answers import IntArray, find_rows, number_ids, pair_keys
from common.errors import InputError
from common.submission import Pairs

import numpy as np
import numpy.typing as npt

QUIZ_GROUPS = (
    "other answers in the quiz known",
    "no other answer in the quiz known",
    "quiz not known",
)
_QUIZ_KNOWN, _QUIZ_NEW, _NO_QUIZ = range(3)


@dataclass(frozen=True)
class Place:
    """Where to look for what is known: the true answers, the training answers, the metadata."""

    reference: Path
    train: Path
    metadata: Path


@dataclass(frozen=True)
class Training:
    """What the training answers tell about each pair scored, as equally long columns.

    Attributes
    ----------
    n_of_student, n_of_question
        Training answers of its student, and to its question.
    share_right
        Share of right ones among those to the question, float64; NaN without any.
    majority
        IsCorrect or AnswerValue of most of them, as the majority model predicts.
    correct_option
        The right option, 1 to 4, or 0 where it is not known; None in task 1.
    """

    n_of_student: IntArray
    n_of_question: IntArray
    share_right: npt.NDArray[np.float64]
    majority: IntArray
    correct_option: IntArray | None


@dataclass(frozen=True)
class Subjects:
    """The subjects of each distinct question, as places in the tree."""

    tree: metadata.SubjectTree
    of_question: metadata.QuestionSubjects


@dataclass(frozen=True)
class LeftOut:
    """What a page leaves out, why, and whether that is a fault of a file that is there."""

    what: str
    why: str
    is_fault: bool


@dataclass
class PairFacts:
    """What is known about the pairs scored; None for what is not there.

    Attributes
    ----------
    student_ids, question_ids
        The distinct UserIds and QuestionIds, increasing.
    student, question
        Place of each pair's student and question among them, int32, shape (pairs,).
    training
        What the training answers tell.
    quiz
        Number of each pair's group in `QUIZ_GROUPS`.
    subjects
        Of each distinct question.
    students
        Metadata of each distinct student.
    left_out
        What could not be read.
    """

    student_ids: IntArray
    question_ids: IntArray
    student: IntArray
    question: IntArray
    training: Training | None = None
    quiz: IntArray | None = None
    subjects: Subjects | None = None
    students: metadata.StudentMetadata | None = None
    left_out: list[LeftOut] = field(default_factory=list)


class _MissingError(InputError):
    """A file is not there."""


def read_facts(place: Place, pairs: Pairs, task: int) -> PairFacts:
    """Read what is known about the pairs scored.

    Parameters
    ----------
    place
        Where to look.
    pairs
        The pairs, in the order of the reference.
    task
        1 or 2.
    """
    student_ids, student = number_ids(pairs.student)
    question_ids, question = number_ids(pairs.question)
    facts = PairFacts(student_ids, question_ids, student, question)
    answers: io.Columns | None = None
    with _left_out(facts, "The majority, and accuracy by what is known of question and student"):
        answers = _read_training(place, task)
        facts.training = _count_training(answers, facts, task)
    answer_path = place.metadata / layout.ANSWER_METADATA_TASK_1_2
    with _left_out(facts, "Accuracy by quiz"):
        facts.quiz = _find_known_quizzes(_require(answer_path), place.reference, answers, facts)
    # The largest columns are no longer needed.
    answers = None
    with _left_out(facts, "Accuracy by subject"):
        questions = _require(place.metadata / layout.QUESTION_METADATA_TASK_1_2)
        tree = metadata.read_subject_tree(_require(place.metadata / layout.SUBJECT_METADATA))
        facts.subjects = Subjects(
            tree, metadata.read_question_subjects(questions, question_ids, tree)
        )
    with _left_out(facts, "Accuracy by gender, pupil premium and age"):
        students = _require(place.metadata / layout.STUDENT_METADATA_TASK_1_2)
        facts.students = metadata.read_student_metadata(students, student_ids)
    return facts


@contextmanager
def _left_out(facts: PairFacts, what: str) -> Iterator[None]:
    """Note what is left out if a file is not there or cannot be read."""
    try:
        yield
    except InputError as fault:
        facts.left_out.append(LeftOut(what, str(fault), not isinstance(fault, _MissingError)))


def _require(path: Path) -> Path:
    if not io.is_there(path):
        raise _MissingError(f"{cli.show(path)} is not there")
    return path


def _read_training(place: Place, task: int) -> io.Columns:
    """Read the columns of the training answers that are needed."""
    path = _require(place.train)
    made.require_current([path])
    columns = [schema.USER_ID, schema.QUESTION_ID, schema.IS_CORRECT]
    if task == 2:
        columns += [schema.CORRECT_ANSWER, schema.ANSWER_VALUE]
    has_metadata = io.is_there(place.metadata / layout.ANSWER_METADATA_TASK_1_2)
    if has_metadata and schema.ANSWER_ID.name in io.read_header(io.file_source(path)):
        columns.append(schema.ANSWER_ID)
    return io.read_columns(path, columns)


def _count_training(answers: io.Columns, facts: PairFacts, task: int) -> Training:
    """Count the training answers of the students and questions scored."""
    n_questions = len(facts.question_ids)
    of_student = np.bincount(
        find_rows(facts.student_ids, answers["UserId"]) + 1, minlength=len(facts.student_ids) + 1
    )[1:]
    question = find_rows(facts.question_ids, answers["QuestionId"])

    def count(name: str, low: int, high: int) -> npt.NDArray[np.int64]:
        """Count every value for every question; shape (questions, values)."""
        n_values = high - low + 1
        # Those of other questions, -1, go to a row of their own, which is dropped.
        cell = (question + 1) * np.int32(n_values) + (answers[name] - low)
        counts = np.bincount(cell, minlength=(n_questions + 1) * n_values)
        return counts.reshape(-1, n_values)[1:]

    rights = count("IsCorrect", 0, 1)
    of_question = rights.sum(axis=1)
    with np.errstate(invalid="ignore"):
        share_right = rights[:, 1] / of_question
    column = schema.PREDICTED_COLUMN[task]
    values = rights if task == 1 else count(column.name, column.low, column.high)
    overall = np.bincount(answers[column.name] - column.low, minlength=values.shape[1])
    # As the majority models do it: what most of all answers are where a question has none, or in
    # task 1 as many of one as of the other.
    undecided = values.sum(axis=1) == 0 if task == 2 else values[:, 0] == values[:, 1]
    majority = column.low + np.where(undecided[:, None], overall, values).argmax(axis=1)
    correct_option = None
    if task == 2:
        corrects = count("CorrectAnswer", 1, 4)
        known = corrects.sum(axis=1) > 0
        correct_option = np.where(known, 1 + corrects.argmax(axis=1), 0)[facts.question]
    return Training(
        n_of_student=of_student[facts.student],
        n_of_question=of_question[facts.question],
        share_right=share_right[facts.question],
        majority=majority[facts.question],
        correct_option=correct_option,
    )


def _find_known_quizzes(
    path: Path, reference: Path, answers: io.Columns | None, facts: PairFacts
) -> IntArray:
    """Find whether other answers of the student in the quiz are known; see `QUIZ_GROUPS`."""
    name = schema.ANSWER_ID.name
    if answers is None:
        raise _MissingError("the training answers are not known")
    if name not in answers or name not in io.read_header(io.file_source(reference)):
        raise _MissingError(f"training and true answers do not both have a column {name}")
    own = io.to_ids(io.read_columns(reference, [schema.ANSWER_ID_OR_EMPTY])[name])
    n = len(answers[name])
    answer_id = np.concatenate([answers.pop(name), own])
    quiz = metadata.read_circumstances(path, answer_id, columns=[schema.QUIZ_ID]).quiz
    student = find_rows(facts.student_ids, answers.pop("UserId"))
    is_known = (student >= 0) & (quiz[:n] >= 0)
    known = pair_keys(student[is_known], quiz[:n][is_known])
    found = are_among(pair_keys(facts.student, quiz[n:]), known)
    return np.select([quiz[n:] < 0, found], [_NO_QUIZ, _QUIZ_KNOWN], _QUIZ_NEW)


def are_among(keys: npt.NDArray[np.int64], known: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return whether each key is among known ones: `numpy.isin`, but faster for millions."""
    if not len(known):
        return np.zeros(len(keys), bool)
    known, order = np.sort(known), np.argsort(keys)
    # Sorted, as looking up millions of keys in random order takes ten times as long.
    keys = keys[order]
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found = np.empty(len(keys), bool)
    found[order] = known[place] == keys
    return found
