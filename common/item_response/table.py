"""Fit a table of answers, a DataFrame whose ids are of any type, and get tables back."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.arrays import FloatArray, IntArray
from common.errors import InputError

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    # `estimator` imports this module.
    from common.item_response.estimator import ItemResponse


@dataclass(frozen=True)
class FittedTable:
    """An estimator that was fitted to a table, with the table's own ids.

    `ItemResponse.from_table` makes it.
    """

    # The estimator. It knows a student or question by the position in `student_ids` or
    # `question_ids`.
    model: "ItemResponse"
    # The ids of the students and of the questions, in the order of their first rows in the table.
    student_ids: pd.Index
    question_ids: pd.Index
    # Names of the columns.
    student: str
    question: str
    correct: str

    def abilities(self) -> pd.DataFrame:
        """Return a row for each student: mean and standard deviation of each ability.

        The columns are ability_1, ability_2, …, then sd_1, sd_2, …
        """
        return _as_table(self.model, self.student_ids.rename(self.student))

    def questions(self) -> pd.DataFrame:
        """Return a row for each question: difficulty, then discrimination_1, discrimination_2, …

        An average student knows the answer with the probability sigmoid(−difficulty).
        """
        slopes = self.model.discrimination_
        columns = {"difficulty": self.model.difficulty_}
        for dimension in range(slopes.shape[1]):
            columns[f"discrimination_{dimension + 1}"] = slopes[:, dimension]
        return pd.DataFrame(columns, index=self.question_ids.rename(self.question))

    def predict(self, table: pd.DataFrame) -> pd.Series:
        """Return the probability of a right answer for each row of a table.

        The table needs the columns of students and questions. An unknown student or question counts
        as average. The result has the index of the table.
        """
        student = _find(self.student_ids, _column(table, self.student))
        question = _find(self.question_ids, _column(table, self.question))
        p_right = self.model.predict_proba(student, question)[:, 1]
        return pd.Series(p_right, index=table.index, name="p_right")

    def abilities_of(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the abilities of the students of another table, from their answers in it.

        The result has the columns of `abilities`. A question that the fit does not know counts as
        average.
        """
        student, student_ids = _number(table, self.student)
        question = _find(self.question_ids, _column(table, self.question))
        extended = self.model.for_students(student, question, _outcomes(table, self.correct))
        return _as_table(extended, student_ids.rename(self.student))


def fit_table(
    model: "ItemResponse", table: pd.DataFrame, student: str, question: str, correct: str
) -> FittedTable:
    """Fit an estimator to a table; `ItemResponse.from_table` explains the other arguments."""
    student_number, student_ids = _number(table, student)
    question_number, question_ids = _number(table, question)
    model.fit(student_number, question_number, _outcomes(table, correct))
    return FittedTable(model, student_ids, question_ids, student, question, correct)


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table.columns:
        columns = ", ".join(map(str, table.columns))
        raise InputError(f"the table has no column {name!r}, it has {columns}")
    column: pd.Series = table[name]
    return column


def _number(table: pd.DataFrame, name: str) -> tuple[IntArray, pd.Index]:
    """Number the ids in a column from 0; return each row's number, and the ids in this order."""
    number, ids = pd.factorize(_column(table, name))
    if (number < 0).any():
        row = int(np.argmax(number < 0))
        raise InputError(f"column {name!r} has no id in row {row}, expected one")
    return number, pd.Index(ids)


def _find(ids: pd.Index, wanted: pd.Series) -> IntArray:
    """Return the position of each wanted id in `ids`; for an unknown id, the length of `ids`."""
    number = ids.get_indexer(pd.Index(wanted))
    return np.where(number < 0, len(ids), number)


def _outcomes(table: pd.DataFrame, name: str) -> IntArray:
    """Return 1 for each right answer and 0 for each wrong one."""
    column = _column(table, name)
    is_outcome = column.isin([0, 1])
    if not is_outcome.all():
        row = int(np.argmin(is_outcome))
        raise InputError(
            f"column {name!r} holds {column.iloc[row]!r} in row {row}, expected 0, 1, False or True"
        )
    return column.to_numpy().astype(np.int8)


def _as_table(model: "ItemResponse", index: pd.Index) -> pd.DataFrame:
    """Return a table with this index: means and standard deviations of the abilities."""
    abilities = model.abilities()
    columns: dict[str, FloatArray] = {}
    for dimension in range(abilities.mean.shape[1]):
        columns[f"ability_{dimension + 1}"] = abilities.mean[:, dimension]
    for dimension in range(abilities.mean.shape[1]):
        columns[f"sd_{dimension + 1}"] = abilities.standard_deviation[:, dimension]
    return pd.DataFrame(columns, index=index)
