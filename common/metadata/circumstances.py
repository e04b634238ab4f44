"""How answers came about: when, how sure the student was, in which class and quiz."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import io, schema
from common.answers import IntArray
from common.metadata.reading import find_described, read_whole, take
from common.schema import Column

import numpy as np
import numpy.typing as npt

COLUMNS = (
    schema.DATE_ANSWERED,
    schema.CONFIDENCE,
    schema.GROUP_ID,
    schema.QUIZ_ID,
    schema.SCHEME_ID,
)


@dataclass(frozen=True)
class Circumstances:
    """How answers came about, one row for each answer asked for, as equally long columns.

    Attributes
    ----------
    date_answered
        DateAnswered, datetime64[m], to the minute, no time zone is stated; NaT where missing.
    confidence
        Confidence, 0 to 100, float32; NaN where the student stated none.
    group, quiz, scheme
        GroupId, QuizId and SchemeOfWorkId, int32; -1 where missing.
    """

    date_answered: npt.NDArray[np.datetime64]
    confidence: npt.NDArray[np.float32]
    group: npt.NDArray[np.int32]
    quiz: npt.NDArray[np.int32]
    scheme: npt.NDArray[np.int32]

    def take(self, rows: npt.NDArray[np.bool_] | IntArray | slice) -> "Circumstances":
        """Return those of some answers.

        Parameters
        ----------
        rows
            Row numbers, a boolean for every answer, or a slice.
        """
        return Circumstances(**{name: column[rows] for name, column in vars(self).items()})


def read_circumstances(
    path: Path, answer_id: IntArray, *, columns: Sequence[Column] | None = None
) -> Circumstances:
    """Read the answer metadata of given answers.

    Rows without an AnswerId are skipped, as the official files have some. A file of official size
    takes seconds: read it once for all answers (`np.concatenate`), and `take` them apart.

    Parameters
    ----------
    path
        An `answer_metadata_task_….csv`.
    answer_id
        AnswerIds, shape (n,), -1 where unknown: the column AnswerId of answers read with
        ``ids=True``, or of a template.
    columns
        The columns to read beside AnswerId, some of `COLUMNS`; they must be there. None: those that
        are there. What is not read is missing for every answer.

    Returns
    -------
    Circumstances
        n rows, in the order of `answer_id`; all values missing for an answer that is not listed.

    Raises
    ------
    InputError
        If the file is not as expected, names an AnswerId twice, or describes none of the answers.
    """
    id_column = schema.ANSWER_ID_OR_EMPTY
    if columns is None:
        data = read_whole(path, [id_column], COLUMNS)
    else:
        data = read_whole(path, [id_column, *columns])
    rows = find_described(path, id_column, io.to_ids(data.pop(id_column.name)), answer_id)

    def column(column: Column, missing: Any) -> npt.NDArray[Any]:
        if column.name not in data:
            return np.full(len(rows), missing, column.dtype)
        # The file's own column is no longer needed: it may be large.
        return take(data.pop(column.name), rows, missing)

    return Circumstances(
        date_answered=column(schema.DATE_ANSWERED, np.datetime64("NaT")),
        confidence=column(schema.CONFIDENCE, np.nan),
        group=io.to_ids(column(schema.GROUP_ID, np.nan)),
        quiz=io.to_ids(column(schema.QUIZ_ID, np.nan)),
        scheme=io.to_ids(column(schema.SCHEME_ID, np.nan)),
    )
