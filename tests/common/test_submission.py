"""Templates and submissions: AnswerIds pass through, predictions may be any kind of array."""

from pathlib import Path
from typing import Any

from common.errors import InputError
from common.submission import read_template, write_predictions, write_ranking

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import Write


def test_answer_ids(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    for cells in (["12", "0", "2147483647"], ["12.0", "", "7"], ["", "", ""]):
        rows = "".join(f"{n},5,{n + 100},{cell}\n" for n, cell in enumerate(cells))
        template = read_template(write("t.csv", ",QuestionId,UserId,AnswerId\n" + rows))
        numbers = [int(float(cell)) if cell else -1 for cell in cells]
        assert template["AnswerId"].tolist() == numbers
        write_predictions(template, 1, np.ones(3, np.int8), path)
        written = pd.read_csv(path, dtype=str, keep_default_na=False)
        assert written.AnswerId.tolist() == ["" if n < 0 else str(n) for n in numbers]
    assert read_template(write("t.csv", "QuestionId,UserId\n5,6\n")).shape == (1, 2)
    path = write("t.csv", "QuestionId,UserId,AnswerId\n5,6,1\n5,7,one\n")
    with pytest.raises(InputError, match="column 'AnswerId': row 3 is 'one', expected a whole"):
        read_template(path)


def test_predictions_of_any_kind_of_array(write: Write, tmp_path: Path) -> None:
    """A model of one's own may leave a list, a column of pandas, or a tensor."""
    template = read_template(write("t.csv", "QuestionId,UserId\n5,6\n5,7\n"))
    path = tmp_path / "out.csv"
    nullable: Any = pd.Series([1, 0], dtype="Int8")
    kinds: list[Any] = [[1, 0], torch.tensor([1, 0]), nullable, np.array([1, 0]) > 0, [1.0, 0.0]]
    for value in kinds:
        write_predictions(template, 1, value, path)
        assert path.read_text(encoding="utf-8") == "QuestionId,UserId,IsCorrect\n5,6,1\n5,7,0\n"
    wrong: list[tuple[Any, str]] = [
        (None, r"predictions have shape \(\), expected \(2,\)"),
        (["1", "0"], "predictions are of type <U1, the first is '1', expected a whole number from"),
        ([1, None], "predictions are of type object, the first is '1'"),
        (nullable.where(nullable == 1), "row 3 would be nan"),
    ]
    for value, expected in wrong:
        with pytest.raises(InputError, match=expected):
            write_predictions(template, 1, value, path)
    with pytest.raises(InputError, match=r"quality has shape \(2,\), expected \(3,\)"):
        write_ranking(np.arange(3), np.ones(2), path)
