"""A small world of answers with all metadata."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import layout
from common.answer_features import Pairs, read_pairs

import pandas as pd
import pytest

Read = Callable[..., tuple[Pairs, pd.DataFrame]]
World = dict[str, pd.DataFrame]
COLUMNS = {
    "UserId": "i4", "QuestionId": "i4", "AnswerId": "i4", "IsCorrect": "i1",
    "CorrectAnswer": "i1", "AnswerValue": "i1",
}  # fmt: skip


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read answers, of which the last ones are the template, with metadata given as frames."""

    def read_world(frame: pd.DataFrame, n_template: int, **files: pd.DataFrame) -> Any:
        for name, content in files.items():
            content.to_csv(tmp_path / getattr(layout, name), index=False)
        present = {name: dtype for name, dtype in COLUMNS.items() if name in frame}
        rows = frame[[*present]].astype(present).reset_index(drop=True)
        answers, template = rows[:-n_template], rows[-n_template:]
        return read_pairs(answers, template, tmp_path), answers

    return read_world


@pytest.fixture
def world(simulated_kit: Path) -> World:
    """Answers of two simulated classes, ten minutes rounded to one, and all metadata."""
    data = simulated_kit / "data"
    names = [f"{of}_METADATA_TASK_1_2" for of in ("ANSWER", "STUDENT", "QUESTION")]
    tables = {
        name: pd.read_csv(data / "metadata" / getattr(layout, name))
        for name in (*names, "SUBJECT_METADATA")
    }
    given = tables["ANSWER_METADATA_TASK_1_2"]
    given["DateAnswered"] = pd.to_datetime(given.DateAnswered).dt.floor("10min")
    answers = pd.read_csv(data / "train_data" / layout.TRAIN_TASK_1_2)
    answers = answers[answers.AnswerId.isin(given.AnswerId[given.GroupId < 2])]
    return {"answers": answers.reset_index(drop=True), **tables}
