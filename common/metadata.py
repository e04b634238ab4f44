"""What is known about answers, students and questions besides the answers themselves.

Readers take ids and return rows in their order, with -1, NaN or NaT where nothing is known or a
column is not there; `InputError` if a file is not as expected, names an id twice, or describes none
that was asked for. Ids of tasks 1/2 have nothing to do with those of tasks 3/4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from common import layout, reading, schema
from common.answers import find_rows, require_distinct
from common.arrays import IntArray
from common.errors import InputError, quote
from common.schema import CIRCUMSTANCES, Column

import numpy as np
import numpy.typing as npt
import pandas as pd

# Who was younger than four or older than twenty at the end of 2018 has given a wrong date of birth,
# as teachers do who try a quiz: 2.6 % of the official dates, which reach from 1756 to 9999.
_FIRST_BIRTH, _LAST_BIRTH = "1998-01-01", "2014-12-31"

# At most nine digits: a number that fits into 32 bits.
_LIST = re.compile(r"\[\d{1,9}(, *\d{1,9})*\]", re.ASCII)
_PARENT = re.compile(r"\d{1,9}(\.0*)?", re.ASCII)
_NO_PARENT = ("NULL", "")


def find(folder: Path | None, name: str) -> Path | None:
    """Return the path of a file of metadata; None where it, or the folder, is not there."""
    return None if folder is None or not reading.is_there(folder / name) else folder / name


def read_circumstances(
    path: Path, answer_id: IntArray, *, columns: Sequence[Column] | None = None
) -> pd.DataFrame:
    """Read the answer metadata of given answers.

    Rows without an AnswerId are skipped, as the official files have some. A file of official size
    takes seconds: read it once for all answers (`np.concatenate`), and take them apart.

    Parameters
    ----------
    path
        An `answer_metadata_task_….csv`.
    answer_id
        AnswerIds, shape (n,), -1 where unknown: of answers read with ``ids=True``, or a template.
    columns
        The columns of `common.schema` to read, which must be there; by default those that are.

    Returns
    -------
    DataFrame
        n rows: DateAnswered (to the minute, no time zone is stated), Confidence (0 to 100, float32,
        NaN where the student stated none), GroupId, QuizId and SchemeOfWorkId (int32).
    """
    return _read_described(path, schema.ANSWER_ID_OR_EMPTY, answer_id, CIRCUMSTANCES, columns)


def read_student_metadata(path: Path, student_id: IntArray) -> pd.DataFrame:
    """Read a row for each student, (n,): Gender (0 unspecified, 1 female, 2 male, 3 other, int8),
    DateOfBirth (first of a month; missing if nonsense), PremiumPupil (1 entitled, 0 not, int8).
    """
    students = _read_described(path, schema.USER_ID, student_id, schema.STUDENT_COLUMNS)
    birth = students["DateOfBirth"].dt.normalize()
    students["DateOfBirth"] = birth.where(birth.between(_FIRST_BIRTH, _LAST_BIRTH))
    return students


def read_subject_tree(path: Path) -> pd.DataFrame:
    """Read SubjectId, increasing, Name, parent (its row; -1 for a root) and Level (of a root 0)."""
    columns = [schema.SUBJECT_ID, schema.SUBJECT_NAME, schema.PARENT_ID, schema.LEVEL]
    tree = _read_whole(path, columns)
    ids, level = tree["SubjectId"].to_numpy(), tree["Level"].to_numpy()
    above = tree.pop("ParentId").str.strip()
    is_root = above.isin(_NO_PARENT)
    for row in np.flatnonzero(~is_root & ~above.str.fullmatch(_PARENT))[:1]:
        raise _refuse(path, "ParentId", row, quote(above[row]), "expected a SubjectId or NULL")
    parent_id = pd.to_numeric(above.mask(is_root, "-1")).to_numpy(np.int32)
    parent = find_rows(ids, parent_id)
    for row in np.flatnonzero((parent_id >= 0) & (parent < 0))[:1]:
        raise _refuse(path, "ParentId", row, parent_id[row], "which is no SubjectId of this file")
    # Levels that increase by one cannot lead in a circle.
    expected = np.where(parent < 0, 0, level[parent] + 1)
    for row in np.flatnonzero(level != expected)[:1]:
        place = "a root" if parent[row] < 0 else f"one below SubjectId {parent_id[row]}"
        raise _refuse(path, "Level", row, level[row], f"expected {expected[row]} for {place}")
    tree = tree.assign(parent=parent_id).sort_values("SubjectId", ignore_index=True)
    tree["parent"] = find_rows(tree["SubjectId"].to_numpy(), tree["parent"].to_numpy())
    return tree


def read_question_subjects(
    path: Path, question_id: IntArray, tree: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Read a row for each subject of questions, (n,), from the root down, along all branches: `row`
    of the question, increasing, and `subject`, int32: SubjectId or, with a tree, its row there.
    """
    data = _read_whole(path, [schema.QUESTION_ID, schema.SUBJECT_LIST])
    texts = data["SubjectId"].str.strip()
    for row in np.flatnonzero(~texts.str.fullmatch(_LIST))[:1]:
        wanted = "expected a list such as '[3, 71, 98, 209]'"
        raise _refuse(path, "SubjectId", row, quote(data["SubjectId"][row]), wanted)
    subject = texts.str.strip("[]").str.split(",").explode().astype(np.int32).rename("subject")
    rows = _find_described(path, schema.QUESTION_ID, data["QuestionId"].to_numpy(), question_id)
    if tree is not None:
        place = find_rows(tree["SubjectId"].to_numpy(), subject.to_numpy())
        for unknown in np.flatnonzero(place < 0)[:1]:
            row, number = int(subject.index[unknown]), subject.iloc[unknown]
            told = "which is not in the tree of subjects"
            raise _refuse(path, "SubjectId", row, number, told, "holds")
        subject[:] = place
    asked = pd.DataFrame({"row": np.arange(len(rows)), "listed": rows})
    listed = subject.rename_axis("listed").reset_index()
    return asked.merge(listed, on="listed")[["row", "subject"]]


def find_subjects(folder: Path | None, question_id: IntArray) -> pd.DataFrame:
    """Read subjects of tasks 3/4, if known, as `read_question_subjects`, and the tree's columns."""
    questions = find(folder, layout.QUESTION_METADATA_TASK_3_4)
    subjects = find(folder, layout.SUBJECT_METADATA)
    if not (questions and subjects):
        return pd.DataFrame(columns=["row", "subject", "Level", "Name"], dtype=object)
    tree = read_subject_tree(subjects)
    return read_question_subjects(questions, question_id, tree).join(tree, on="subject")


def name_subjects(folder: Path | None, question_id: IntArray) -> list[str]:
    """Name the most specific subjects of questions, joined by commas; empty where none is known."""
    found = find_subjects(folder, question_id)
    deepest = found[found["Level"] == found.groupby("row")["Level"].transform("max")]
    names = deepest.groupby("row")["Name"].agg(", ".join)
    return names.reindex(range(len(question_id)), fill_value="").tolist()


# ---- The steps of all readers: read, check the ids, find the rows asked for ----------------------


def _read_described(
    path: Path,
    id_column: Column,
    wanted: IntArray,
    known: Sequence[Column],
    needed: Sequence[Column] | None = None,
) -> pd.DataFrame:
    """Return a row for each wanted id; without `needed`, those columns are read that are there."""
    source = reading.file_source(path)
    if needed is None:
        header = reading.read_header(source)
        needed = [column for column in known if column.name in header]
        reading.require_columns(source, header, () if needed else known)
    data = _read_whole(path, [id_column, *needed])
    rows = _find_described(path, id_column, data.pop(id_column.name).to_numpy(), wanted)
    found = {}
    for column in known:
        if column.name in data:
            # The file's own column is no longer needed: it may be large.
            values = data.pop(column.name).to_numpy()[rows]
            values[rows < 0] = column.missing
        else:
            values = np.full(len(rows), column.missing, column.dtype)
        found[column.name] = values
    return pd.DataFrame(found, copy=False)


def _read_whole(path: Path, columns: Sequence[Column]) -> pd.DataFrame:
    """Read columns of a file that a line end ends, first the ids: -1 if unknown, else each once."""
    source = reading.file_source(path)
    data = reading.read_table(source, columns)
    # As official ones do: cut off in its last cell, a file would look complete.
    with source.open() as file:
        file.seek(-1, 2)
        if file.read(1) not in b"\r\n":
            row = source.row_number(len(data) - 1)
            raise InputError(f"{path}: row {row} has no line end; is the file cut off?")
    require_distinct(source, columns[0].name, data[columns[0].name].to_numpy())
    return data


def _refuse(
    path: Path, column: str, row: int, found: object, expected: str, verb: str = "is"
) -> InputError:
    number = reading.file_source(path).row_number(int(row))
    return InputError(f"{path}: column '{column}': row {number} {verb} {found}, {expected}")


def _find_described(
    path: Path, column: Column, described: IntArray, wanted: IntArray
) -> npt.NDArray[np.int32]:
    """Return the row that describes each wanted id, shape (wanted,); -1 where none does."""
    rows = find_rows(described, wanted)
    if len(rows) and (rows < 0).all():
        raise InputError(
            f"{path}: column '{column.name}': holds none of the {len(rows):,} asked for; "
            "the file belongs to other data"
        )
    return rows
