"""Templates and submissions: AnswerIds are kept, and predictions may be any kind of array."""

from pathlib import Path
from typing import Any

from common.errors import InputError
from common.submission import read_template, write_predictions, write_ranking

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import Write

# ---- AnswerIds ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["12", "0", "2147483647"], [12, 0, 2147483647]),
        # An empty cell stands for an unknown AnswerId, -1.
        (["12.0", "", "7"], [12, -1, 7]),
        (["", "", ""], [-1, -1, -1]),
    ],
)
def test_answer_ids_are_read_and_written(
    write: Write, tmp_path: Path, cells: list[str], numbers: list[int]
) -> None:
    rows = "".join(f"{n},5,{n + 100},{cell}\n" for n, cell in enumerate(cells))
    template = read_template(write("t.csv", ",QuestionId,UserId,AnswerId\n" + rows))
    assert template["AnswerId"].tolist() == numbers
    path = tmp_path / "out.csv"
    write_predictions(template, 1, np.ones(3, np.int8), path)
    written = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert written.AnswerId.tolist() == ["" if n < 0 else str(n) for n in numbers]


def test_a_template_may_have_no_answer_ids(write: Write) -> None:
    assert read_template(write("t.csv", "QuestionId,UserId\n5,6\n")).shape == (1, 2)


def test_an_answer_id_that_is_no_number_is_refused(write: Write) -> None:
    path = write("t.csv", "QuestionId,UserId,AnswerId\n5,6,1\n5,7,one\n")
    with pytest.raises(InputError, match="column 'AnswerId': row 3 is 'one', expected a whole"):
        read_template(path)


# ---- Predictions -------------------------------------------------------------------------------

# A column of a nullable integer type of pandas.
NULLABLE: Any = pd.Series([1, 0], dtype="Int8")


@pytest.fixture
def template(write: Write) -> pd.DataFrame:
    """A template of two pairs of a question and a student, whose answers are to be predicted."""
    return read_template(write("t.csv", "QuestionId,UserId\n5,6\n5,7\n"))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([1, 0], id="list"),
        pytest.param([1.0, 0.0], id="list of floats"),
        pytest.param(torch.tensor([1, 0]), id="tensor"),
        pytest.param(NULLABLE, id="nullable column"),
        pytest.param(np.array([1, 0]) > 0, id="booleans"),
    ],
)
def test_predictions_may_be_any_kind_of_array(
    template: pd.DataFrame, tmp_path: Path, value: Any
) -> None:
    path = tmp_path / "out.csv"
    write_predictions(template, 1, value, path)
    assert path.read_text(encoding="utf-8") == "QuestionId,UserId,IsCorrect\n5,6,1\n5,7,0\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, r"predictions have shape \(\), expected \(2,\)", id="None"),
        pytest.param(
            ["1", "0"],
            "predictions are of type <U1, the first is '1', expected a whole number from",
            id="text",
        ),
        pytest.param(
            [1, None], "predictions are of type object, the first is '1'", id="None in a list"
        ),
        pytest.param(NULLABLE.where(NULLABLE == 1), "row 3 would be nan", id="missing value"),
    ],
)
def test_other_predictions_are_refused(
    template: pd.DataFrame, tmp_path: Path, value: Any, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        write_predictions(template, 1, value, tmp_path / "out.csv")


def test_a_ranking_needs_a_value_for_each_question(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"quality has shape \(2,\), expected \(3,\)"):
        write_ranking(np.arange(3), np.ones(2), tmp_path / "out.csv")
