"""Read what is known about answers and questions besides the answers themselves."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from common import io, schema
from common.errors import InputError, quote
from common.schema import Column

IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Circumstances:
    """How answers came about, one row for each answer asked for.

    Attributes
    ----------
    confidence
        0 to 100, float32; NaN where the student stated none.
    group, quiz
        GroupId and QuizId, int32; -1 where missing.
    """

    confidence: npt.NDArray[np.float32]
    group: IntArray
    quiz: IntArray


def _read_whole(path: Path, columns: Sequence[Column]) -> io.Columns:
    """Read columns of a file that must end with a line end, as all official ones do.

    A file cut off in its last cell would otherwise look complete: any part of a date or of a text
    is a valid one, and so is an empty cell.
    """
    source = io.file_source(path)
    data = io.to_arrays(io.read_table(source, columns), columns)
    with source.open() as file:
        file.seek(-1, 2)
        if file.read(1) not in b"\r\n":
            row = source.row_number(len(data[columns[0].name]) - 1)
            raise InputError(f"{path}: row {row} has no line end; is the file cut off?")
    return data


def read_circumstances(path: Path, answers: pa.Table) -> Circumstances:
    """Read the answer metadata that belong to given answers.

    Rows without an AnswerId are skipped, as the official files have some; of several rows with the
    same AnswerId the first one counts.

    Parameters
    ----------
    path
        An `answer_metadata_task_….csv`.
    answers
        Table with the column AnswerId, from `common.answers.read_answer_table`.

    Raises
    ------
    InputError
        If the file is not as expected or describes none of the answers, or if the answers have no
        AnswerId.
    """
    if "AnswerId" not in answers.column_names:
        raise InputError(f"{path}: needs the column 'AnswerId' in the training answers too")
    data = _read_whole(
        path, [schema.ANSWER_ID_OR_EMPTY, schema.CONFIDENCE, schema.GROUP_ID, schema.QUIZ_ID]
    )
    described = np.nan_to_num(data["AnswerId"], nan=-1).astype(np.int64)
    place = pc.index_in(
        answers["AnswerId"].cast(pa.int64()).combine_chunks(), value_set=pa.array(described)
    )
    found = place.is_valid().to_numpy(zero_copy_only=False)
    if not found.any():
        raise InputError(
            f"{path}: column 'AnswerId': holds none of the {len(found):,} training answers; "
            "the two files belong to different data"
        )
    rows = place.fill_null(0).to_numpy()

    def column(name: str) -> npt.NDArray[np.float32]:
        return np.where(found, data[name][rows], np.float32(np.nan))

    def ids(name: str) -> IntArray:
        value = column(name)
        return np.where(np.isnan(value), -1, value).astype(np.int32)

    return Circumstances(column("Confidence"), ids("GroupId"), ids("QuizId"))


def read_subject_lists(path: Path) -> dict[int, list[int]]:
    """Read the SubjectIds of every question, by QuestionId.

    Parameters
    ----------
    path
        A `question_metadata_task_….csv`, whose SubjectId is a list in text, ``[3, 71, 98, 209]``.

    Raises
    ------
    InputError
        If the file is not as expected or lists a question twice.
    """
    data = _read_whole(path, [schema.QUESTION_ID, schema.SUBJECT_LIST])
    lists: dict[int, list[int]] = {}
    for index, (question, subjects) in enumerate(
        zip(data["QuestionId"].tolist(), data["SubjectId"].tolist(), strict=True)
    ):
        # At most nine digits: a number that fits into 32 bits.
        if not re.fullmatch(r"\[\d{1,9}(, *\d{1,9})*\]", subjects.strip(), re.ASCII):
            row = io.file_source(path).row_number(index)
            raise InputError(
                f"{path}: column 'SubjectId': row {row} is {quote(subjects)}, expected a list such "
                "as '[3, 71, 98, 209]'"
            )
        if question in lists:
            row = io.file_source(path).row_number(index)
            raise InputError(f"{path}: column 'QuestionId': row {row} repeats {question}")
        lists[question] = [int(number) for number in re.findall(r"\d+", subjects)]
    return lists


def count_subjects(path: Path, question_id: IntArray) -> npt.NDArray[np.float64]:
    """Count the subjects of questions, along all branches of the subject tree.

    Parameters
    ----------
    path
        A `question_metadata_task_….csv`; the errors are those of `read_subject_lists`.
    question_id
        QuestionIds, shape (questions,).

    Returns
    -------
    array of float64, shape (questions,)
        NaN where the question is not listed.
    """
    lists = read_subject_lists(path)
    counts = {question: float(len(subjects)) for question, subjects in lists.items()}
    return np.array([counts.get(question, np.nan) for question in question_id.tolist()])


def name_subjects(questions: Path, subjects: Path) -> dict[int, str]:
    """Name the most specific subjects of every question, by QuestionId.

    Parameters
    ----------
    questions
        A `question_metadata_task_….csv`.
    subjects
        `subject_metadata.csv`.

    Raises
    ------
    InputError
        If a file is not as expected, or a question has a subject that is not listed.
    """
    data = _read_whole(subjects, [schema.SUBJECT_ID, schema.SUBJECT_NAME, schema.LEVEL])
    ids = data["SubjectId"].tolist()
    name = dict(zip(ids, data["Name"].tolist(), strict=True))
    level = dict(zip(ids, data["Level"].tolist(), strict=True))
    names = {}
    for question, own in read_subject_lists(questions).items():
        unknown = [subject for subject in own if subject not in name]
        if unknown:
            raise InputError(
                f"{questions}: column 'SubjectId': QuestionId {question} has the subject "
                f"{unknown[0]}, expected one of {subjects.name}"
            )
        deepest = max(level[subject] for subject in own)
        names[question] = ", ".join(name[subject] for subject in own if level[subject] == deepest)
    return names
