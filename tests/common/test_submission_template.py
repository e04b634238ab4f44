"""Templates of tasks 1 and 2: AnswerIds are read, and pass through as they were written."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from common.submission import read_template, write_predictions

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
