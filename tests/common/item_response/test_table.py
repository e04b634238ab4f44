"""A DataFrame with ids of any type is fitted, and tables with the same ids come back."""

import datetime
from typing import Any

from common.errors import InputError
from common.item_response import FittedTable, ItemResponse

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from planted_contexts import TEST, TRAIN, fit, predict


def fit_with_ids(student_id: Any, question_id: Any) -> tuple[FittedTable, pd.DataFrame]:
    """Fit a table of answers, and return the fit with a table of test answers.

    `student_id` and `question_id` are functions. They turn the numbers of students and questions in
    `TRAIN` and `TEST` into the ids of the tables.
    """

    def with_ids(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "user": rows.student.map(student_id),
                "item": rows.question.map(question_id),
                "right": rows.is_right == 1,
                "another column": "text",
            }
        )

    fitted = ItemResponse.from_table(
        with_ids(TRAIN),
        student="user",
        question="item",
        correct="right",
        n_dimensions=2,
        guessing=0.0,
    )
    return fitted, with_ids(TEST)


@pytest.mark.parametrize(
    ("student_id", "question_id"),
    [
        ("student {}".format, "Q{}".format),
        (lambda number: number - 5_000, lambda number: float(number) / 4),
        (lambda number: ("class", number), lambda number: datetime.date.fromordinal(number + 1)),
    ],
    ids=["text", "negative and fractions", "tuples and dates"],
)
def test_ids_of_any_type_are_predicted_as_numbers_are(student_id: Any, question_id: Any) -> None:
    fitted, test = fit_with_ids(student_id, question_id)
    p_right = fitted.predict(test)
    assert p_right.index.equals(test.index)
    # The fit starts from random numbers, which depend on the order of the ids. So its predictions
    # differ a little from those of a fit to the plain numbers.
    assert_allclose(p_right, predict(fit(TRAIN), TEST), atol=0.05)


def test_tables_of_students_and_questions_have_the_ids_of_the_table() -> None:
    fitted, _ = fit_with_ids("student {}".format, "Q{}".format)
    abilities = fitted.abilities()
    questions = fitted.questions()
    assert list(abilities) == ["ability_1", "ability_2", "sd_1", "sd_2"]
    assert list(questions) == ["difficulty", "discrimination_1", "discrimination_2"]
    assert abilities.index.name == "user"
    assert set(questions.index) == {f"Q{number}" for number in TRAIN.question}
    share_right = TRAIN.groupby("question").is_right.mean()
    difficulty = questions.difficulty.loc[[f"Q{number}" for number in share_right.index]]
    assert np.corrcoef(share_right, difficulty)[0, 1] < -0.9


def test_students_of_another_table_get_abilities() -> None:
    fitted, test = fit_with_ids("student {}".format, "Q{}".format)
    others = test.assign(user=test.user + " of another school")
    abilities = fitted.abilities_of(others)
    assert list(abilities.index) == list(others.user.unique())
    share_right = others.groupby("user").right.mean().loc[abilities.index]
    assert abs(np.corrcoef(share_right, abilities.ability_1)[0, 1]) > 0.8


def test_unknown_ids_are_average() -> None:
    fitted, _ = fit_with_ids("student {}".format, "Q{}".format)
    unknown = pd.DataFrame({"user": ["nobody", "no one"], "item": ["Q?", "Q!"]})
    p_right = fitted.predict(unknown)
    assert p_right[0] == p_right[1]
    assert abs(p_right[0] - TRAIN.is_right.mean()) < 0.05


ANSWERS = pd.DataFrame({"UserId": ["a", "b"], "QuestionId": [1, 2], "IsCorrect": [1, 0]})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            ANSWERS.drop(columns="IsCorrect"),
            "the table has no column 'IsCorrect', it has UserId, QuestionId",
        ),
        (ANSWERS.assign(UserId=["a", np.nan]), "column 'UserId' has no id in row 1, expected one"),
        (
            ANSWERS.assign(IsCorrect=[1, 2]),
            "column 'IsCorrect' holds .*2.* in row 1, expected 0, 1",
        ),
        (ANSWERS.assign(IsCorrect=["yes", "no"]), "column 'IsCorrect' holds 'yes' in row 0"),
        (ANSWERS.assign(IsCorrect=[1, np.nan]), "column 'IsCorrect' holds .*nan.* in row 1"),
        (ANSWERS.iloc[:0], "there are no answers to learn from"),
    ],
)
def test_faults_name_column_and_row(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ItemResponse.from_table(table)
