"""Read the metadata of answers, students and questions.

Readers take ids and return rows in the order of the ids. A value is -1, NaN or NaT where it is
unknown or the file lacks the column. Readers raise `InputError` if a file is not as expected,
contains an id twice, or has no row for any of the ids. The same id means different students and
questions in tasks 1/2 and in tasks 3/4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from common import layout, reading, schema
from common.answers import find_rows, require_distinct
from common.arrays import IntArray
from common.errors import InputError, quote
from common.schema import ANSWER_METADATA_COLUMNS, Column

import numpy as np
import numpy.typing as npt
import pandas as pd

# The first and the last date of birth that count as known. Students born in this range were 4 to 20
# years old at the end of 2018, the first year of the answers. Other dates count as unknown: 2.6 %
# of the official ones, from 1756 to 9999, some of them of teachers who tried a quiz.
_FIRST_BIRTH = "1998-01-01"
_LAST_BIRTH = "2014-12-31"

# `_LIST` matches the list of a question's SubjectIds, and `_PARENT` matches the ParentId of a
# subject. The numbers have at most nine digits, so that they fit into 32 bits.
_LIST = re.compile(r"\[\d{1,9}(, *\d{1,9})*\]", re.ASCII)
_PARENT = re.compile(r"\d{1,9}(\.0*)?", re.ASCII)
_NO_PARENT = ("NULL", "")


def find(folder: Path | None, name: str) -> Path | None:
    """Return the path of a metadata file, or None if there is no such file.

    Parameters
    ----------
    folder
        The folder of the metadata. None if there is no such folder.
    name
        The name of the file, such as `layout.ANSWER_METADATA_TASK_1_2`.

    Returns
    -------
    Path or None
        The path; the functions of this module that read a file take it.
    """
    if folder is None or not reading.is_there(folder / name):
        return None
    return folder / name


def read_circumstances(
    path: Path, answer_id: IntArray, *, columns: Sequence[Column] | None = None
) -> pd.DataFrame:
    """Read the answer metadata of given answers.

    The official files have some rows without an AnswerId. These rows are skipped. A file of
    official size takes seconds: read it once for all answers (`np.concatenate`), then split the
    result.

    Parameters
    ----------
    path
        An `answer_metadata_task_….csv`.
    answer_id
        AnswerIds, shape (n,), -1 where unknown. Templates have them, and answers read with
        ``ids=True``.
    columns
        The columns of `common.schema` to read, which the file must have. By default, all that the
        file has.

    Returns
    -------
    DataFrame
        n rows with five columns. DateAnswered is a datetime to the minute, without a time zone.
        Confidence is float32, 0 to 100, NaN where the student stated none. GroupId, QuizId and
        SchemeOfWorkId are int32, -1 where unknown.

    Raises
    ------
    InputError
        If the file is not as expected, names an id twice, or describes none of the ids.
    """
    return _read_wanted(
        path, schema.ANSWER_ID_OR_EMPTY, answer_id, ANSWER_METADATA_COLUMNS, columns
    )


def read_student_metadata(path: Path, student_id: IntArray) -> pd.DataFrame:
    """Read the metadata of given students.

    Parameters
    ----------
    path
        A `student_metadata_task_….csv`.
    student_id
        UserIds, shape (n,).

    Returns
    -------
    DataFrame
        n rows with three columns. Gender is int8: 0 unspecified, 1 female, 2 male, 3 other, -1
        unknown. DateOfBirth is the first day of a month, NaT if unknown or impossible for a pupil.
        PremiumPupil is int8: 1 entitled, 0 not, -1 unknown.

    Raises
    ------
    InputError
        If the file is not as expected, names an id twice, or describes none of the ids.
    """
    students = _read_wanted(path, schema.USER_ID, student_id, schema.STUDENT_COLUMNS)
    birth = students["DateOfBirth"].dt.normalize()
    students["DateOfBirth"] = birth.where(birth.between(_FIRST_BIRTH, _LAST_BIRTH))
    return students


def read_subject_tree(path: Path) -> pd.DataFrame:
    """Read the tree of subjects.

    Parameters
    ----------
    path
        A `subject_metadata.csv`.

    Returns
    -------
    DataFrame
        A row for each subject, by increasing SubjectId. Name is text. parent is the row of the
        subject above, -1 for a root. Level is 0 for a root, and one more than the parent's
        otherwise.

    Raises
    ------
    InputError
        If the file is not as expected, names an id twice, or is no tree.
    """
    columns = [schema.SUBJECT_ID, schema.SUBJECT_NAME, schema.PARENT_ID, schema.LEVEL]
    tree = _read_whole(path, columns)
    parent_id = _parse_parents(path, tree.pop("ParentId"))
    # The row of each subject's parent, -1 for a root.
    parent = find_rows(tree["SubjectId"].to_numpy(), parent_id)
    is_absent = (parent_id >= 0) & (parent < 0)
    if is_absent.any():
        row = int(is_absent.argmax())
        fault = "which is no SubjectId of this file"
        raise _value_error(path, "ParentId", row, parent_id[row], fault)
    _require_levels(path, tree["Level"].to_numpy(), parent, parent_id)
    # Sort the rows by SubjectId, and the ids of the parents with them.
    tree = tree.assign(parent_id=parent_id).sort_values("SubjectId", ignore_index=True)
    sorted_parent_id = tree.pop("parent_id").to_numpy()
    # Sorting has changed the row numbers of the subjects, so find the rows of the parents again.
    parent = find_rows(tree["SubjectId"].to_numpy(), sorted_parent_id)
    return tree.assign(parent=parent)


def _parse_parents(path: Path, texts: pd.Series) -> IntArray:
    """Return the numbers in the column ParentId, -1 for a root.

    Raises `InputError` if a text is neither a number nor NULL nor empty.
    """
    texts = texts.str.strip()
    is_root = texts.isin(_NO_PARENT)
    is_wrong = (~is_root & ~texts.str.fullmatch(_PARENT)).to_numpy()
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise _value_error(path, "ParentId", row, quote(texts[row]), "expected a SubjectId or NULL")
    return pd.to_numeric(texts.mask(is_root, "-1")).to_numpy(np.int32)


def _require_levels(path: Path, level: IntArray, parent: IntArray, parent_id: IntArray) -> None:
    """Raise `InputError` unless every root has level 0 and every child its parent's level plus 1.

    If this holds, the tree has no cycle. `parent` is the row of each subject's parent, -1 for a
    root. `parent_id` is the SubjectId of the parent.
    """
    # For a root, `parent` is −1: `level[parent]` takes the level of some other subject, which
    # `np.where` does not use.
    expected = np.where(parent < 0, 0, level[parent] + 1)
    has_wrong_level = level != expected
    if has_wrong_level.any():
        row = int(has_wrong_level.argmax())
        kind = "a root" if parent[row] < 0 else f"one below SubjectId {parent_id[row]}"
        raise _value_error(path, "Level", row, level[row], f"expected {expected[row]} for {kind}")


def read_question_subjects(
    path: Path, question_id: IntArray, tree: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Read the subjects of given questions.

    Parameters
    ----------
    path
        A `question_metadata_task_….csv`.
    question_id
        QuestionIds, shape (n,).
    tree
        The tree of subjects, see `read_subject_tree`. None if there is none.

    Returns
    -------
    DataFrame
        A row for each subject that the file lists for a question. Official files list all subjects
        above as well. row, in increasing order, is the question's index in `question_id`. subject
        (int32) is the subject's row in `tree`, or its SubjectId if there is no tree.

    Raises
    ------
    InputError
        If the file is not as expected, names an id twice, describes none of the ids, or names a
        subject that the tree lacks.
    """
    data = _read_whole(path, [schema.QUESTION_ID, schema.SUBJECT_LIST])
    texts = data["SubjectId"].str.strip()
    is_wrong = ~texts.str.fullmatch(_LIST).to_numpy(bool)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        expected = "expected a list such as '[3, 71, 98, 209]'"
        raise _value_error(path, "SubjectId", row, quote(data["SubjectId"][row]), expected)
    lists = texts.str.strip("[]").str.split(",")
    # `subject` has an element for each subject in a question's list. The element's index is the row
    # of this question in the file.
    subject = lists.explode().astype(np.int32).rename("subject")
    file_row = _find_wanted(path, schema.QUESTION_ID, data["QuestionId"].to_numpy(), question_id)
    if tree is not None:
        tree_row = find_rows(tree["SubjectId"].to_numpy(), subject.to_numpy())
        is_unknown = tree_row < 0
        if is_unknown.any():
            first = int(is_unknown.argmax())
            row = int(subject.index[first])
            fault = "which is not in the tree of subjects"
            raise _value_error(path, "SubjectId", row, subject.iloc[first], fault, "holds")
        subject = pd.Series(tree_row, subject.index, name="subject")
    by_question = pd.DataFrame({"row": np.arange(len(file_row)), "file_row": file_row})
    by_file_row = subject.rename_axis("file_row").reset_index()
    return by_question.merge(by_file_row, on="file_row")[["row", "subject"]]


def find_subjects(folder: Path | None, question_id: IntArray, tasks: str = "3/4") -> pd.DataFrame:
    """Read the subjects of questions, with their names and levels.

    Parameters
    ----------
    folder
        The folder of the metadata. None if there is no such folder.
    question_id
        QuestionIds, shape (n,).
    tasks
        The tasks of the questions: "1/2" or "3/4".

    Returns
    -------
    DataFrame
        The rows of `read_question_subjects` with the columns of the tree added. No rows if either
        file is absent.

    Raises
    ------
    InputError
        As `read_question_subjects` and `read_subject_tree`.
    """
    questions = find(folder, f"question_metadata_{layout.ending_of(tasks)}")
    subjects = find(folder, layout.SUBJECT_METADATA)
    if not (questions and subjects):
        return pd.DataFrame(columns=["row", "subject", "SubjectId", "Level", "Name"], dtype=object)
    tree = read_subject_tree(subjects)
    return read_question_subjects(questions, question_id, tree).join(tree, on="subject")


def list_subject_names(
    folder: Path | None, question_id: IntArray, tasks: str = "3/4"
) -> list[list[str]]:
    """Return the names of the deepest subjects of each question; no names if none is known.

    The deepest subjects are those with the highest level that the question has.

    Parameters
    ----------
    folder
        The folder of the metadata. None if there is no such folder.
    question_id
        QuestionIds, shape (n,).
    tasks
        The tasks of the questions: "1/2" or "3/4".

    Raises
    ------
    InputError
        As `read_question_subjects` and `read_subject_tree`.
    """
    subjects = find_subjects(folder, question_id, tasks)
    deepest_level = subjects.groupby("row")["Level"].transform("max")
    deepest = subjects[subjects["Level"] == deepest_level]
    names: list[list[str]] = [[] for _ in question_id]
    for row, name in zip(deepest["row"], deepest["Name"], strict=True):
        names[row].append(name)
    return names


def name_subjects(folder: Path | None, question_id: IntArray) -> list[str]:
    """Return a text for each question: the names of its deepest subjects, joined by commas."""
    return [", ".join(names) for names in list_subject_names(folder, question_id)]


# ---- Steps of all readers: read the file, check the ids, find the wanted rows --------------------


def _read_wanted(
    path: Path,
    id_column: Column,
    wanted: IntArray,
    columns: Sequence[Column],
    to_read: Sequence[Column] | None = None,
) -> pd.DataFrame:
    """Read the row of each wanted id in a file of metadata.

    Parameters
    ----------
    path
        The file.
    id_column
        The column of the file that holds the ids.
    wanted
        The ids of the rows to return, in order.
    columns
        The columns of the result. A column that is not read holds missing values, and so does the
        row of an id that the file lacks.
    to_read
        Those of `columns` that are read, which the file must have. By default, all of `columns`
        that the file has are read, and the file must have at least one of them.
    """
    source = reading.file_source(path)
    if to_read is None:
        header = reading.read_header(source)
        to_read = [column for column in columns if column.name in header]
        if not to_read:
            # The file has none of the columns, so this call always raises `InputError`.
            reading.require_columns(source, header, columns)
    data = _read_whole(path, [id_column, *to_read])
    # For each wanted id, its row in the file, or -1 if the file lacks the id.
    rows = _find_wanted(path, id_column, data.pop(id_column.name).to_numpy(), wanted)
    values_by_name = {}
    for column in columns:
        if column.name in data:
            # `pop` frees the whole column, which may be large.
            values = data.pop(column.name).to_numpy()[rows]
            # For an id that the file lacks, the row −1 has selected the value of the file's last
            # row. Replace it by the missing value.
            values[rows < 0] = column.missing
        else:
            values = np.full(len(rows), column.missing, column.dtype)
        values_by_name[column.name] = values
    return pd.DataFrame(values_by_name, copy=False)


def _read_whole(path: Path, columns: Sequence[Column]) -> pd.DataFrame:
    """Read columns of a file, the first of which holds ids, and check that the file is complete.

    Raises `InputError` if the file holds an id twice, or does not end in a line end. The id -1
    stands for an empty cell and may repeat.
    """
    source = reading.file_source(path)
    data = reading.read_table(source, columns)
    # Official files end in a line end. Without this check, a file that is cut off within its last
    # cell would look complete.
    with source.open() as file:
        file.seek(-1, 2)
        if file.read(1) not in b"\r\n":
            row = source.row_number(len(data) - 1)
            raise InputError(f"{path}: row {row} has no line end; is the file cut off?")
    require_distinct(source, columns[0].name, data[columns[0].name].to_numpy())
    return data


def _value_error(
    path: Path, column: str, row: int, value: object, expected: str, verb: str = "is"
) -> InputError:
    """Return an `InputError` for a wrong value in a file: "row 7 is VALUE, expected ...".

    `row` counts the data rows from 0. `verb` stands before the value.
    """
    number = reading.file_source(path).row_number(int(row))
    return InputError(f"{path}: column '{column}': row {number} {verb} {value}, {expected}")


def _find_wanted(
    path: Path, column: Column, ids_in_file: IntArray, wanted: IntArray
) -> npt.NDArray[np.int32]:
    """Return the row of each wanted id in a file, shape (wanted,); -1 if the file has no such row.

    Raises `InputError` if the file has none of the ids.
    """
    rows = find_rows(ids_in_file, wanted)
    if len(rows) and (rows < 0).all():
        raise InputError(
            f"{path}: column '{column.name}': holds none of the {len(rows):,} asked for; "
            "the file belongs to other data"
        )
    return rows
