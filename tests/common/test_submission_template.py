"""Templates of tasks 1 and 2: AnswerIds are read, and pass through as they were written."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from common.errors import InputError
from common.submission import rank_by_quality, read_template, write_predictions

Write = Callable[[str, str | bytes], Path]


@pytest.mark.parametrize("cells", [["12", "0", "2147483647"], ["12.0", "", "7"], ["", "", ""]])
def test_answer_ids(write: Write, tmp_path: Path, cells: list[str]) -> None:
    rows = "".join(f"{n},5,{n + 100},{cell}\n" for n, cell in enumerate(cells))
    template = read_template(write("template.csv", ",QuestionId,UserId,AnswerId\n" + rows))
    assert template.answer_id is not None
    assert template.answer_id.tolist() == [int(float(cell)) if cell else -1 for cell in cells]
    assert template.answer_id.dtype == np.int32
    path = tmp_path / "out.csv"
    write_predictions(template, 1, np.ones(3, np.int8), path)
    written = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert written.AnswerId.tolist() == cells


def test_a_template_without_answer_ids(write: Write) -> None:
    assert read_template(write("t.csv", "QuestionId,UserId\n5,6\n")).answer_id is None


def test_an_answer_id_that_is_none(write: Write) -> None:
    path = write("t.csv", "QuestionId,UserId,AnswerId\n5,6,1\n5,7,one\n")
    with pytest.raises(InputError, match="column 'AnswerId': row 3 is 'one', expected a whole"):
        read_template(path)


def test_predictions_of_any_kind_of_array(write: Write, tmp_path: Path) -> None:
    """A model of one's own may leave a list, a column of pandas, or a tensor."""
    template = read_template(write("t.csv", "QuestionId,UserId\n5,6\n5,7\n"))
    path = tmp_path / "out.csv"
    nullable = pd.Series([1, 0], dtype="Int8")
    for value in ([1, 0], torch.tensor([1, 0]), nullable, np.array([True, False]), [1.0, 0.0]):
        write_predictions(template, 1, value, path)
        assert path.read_text(encoding="utf-8") == "QuestionId,UserId,IsCorrect\n5,6,1\n5,7,0\n"
    for value, expected in (
        (None, r"predictions have shape \(\), expected \(2,\)"),
        (["1", "0"], "predictions are of type <U1, the first is '1', expected a whole number from"),
        ([1, None], "predictions are of type object, the first is '1'"),
        (nullable.where(nullable == 1), "row 3 would be nan"),
    ):
        with pytest.raises(InputError, match=expected):
            write_predictions(template, 1, value, path)


def test_a_quality_for_every_question() -> None:
    with pytest.raises(InputError, match=r"quality has shape \(2,\), expected \(3,\)"):
        rank_by_quality(np.arange(3), np.ones(2))
