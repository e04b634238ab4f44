"""A small world of answers with all metadata, whose features can be counted by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import layout
from common.answer_features import Pairs, read_pairs

import numpy as np
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
def world() -> World:
    """Random answers of 60 students to 30 questions in quizzes of five, and all metadata."""
    rng = np.random.default_rng(0)
    student, question = (a.ravel() for a in np.indices((60, 30)))
    taken = rng.random((60, 6))[student, question // 5] < 0.6
    student, question = rng.permutation(np.stack([student, question])[:, taken], axis=1)
    n, key, is_odd = len(student), rng.integers(1, 5, 30), np.arange(60) % 2
    option, answer_id = rng.integers(1, 5, n), rng.permutation(n)
    minute = rng.integers(0, 90, n) + 1440 * (question // 5)
    date = pd.Timestamp("2019-10-01 09:00") + pd.to_timedelta(minute, unit="min")
    tables = {
        "answers": {
            "UserId": student + 1000,
            "QuestionId": question * 3,
            "AnswerId": answer_id,
            "IsCorrect": (option == key[question]).astype(int),
            "CorrectAnswer": key[question],
            "AnswerValue": option,
        },
        "ANSWER_METADATA_TASK_1_2": {
            "AnswerId": answer_id,
            "DateAnswered": date.strftime("%Y-%m-%d %H:%M:00.000"),
            "Confidence": np.where(rng.random(n) < 0.5, np.nan, 25 * rng.integers(0, 5, n)),
            "GroupId": student // 20,
            "QuizId": question // 5,
            "SchemeOfWorkId": np.where(question < 15, 7.0, np.nan),
        },
        "STUDENT_METADATA_TASK_1_2": {
            "UserId": np.arange(60) + 1000,
            "Gender": np.arange(60) % 3,
            "DateOfBirth": np.where(is_odd, "2007-01-01 00:00:00.000", ""),
            "PremiumPupil": np.where(is_odd, "1.0", ""),
        },
        "QUESTION_METADATA_TASK_1_2": {
            "QuestionId": np.arange(30) * 3,
            "SubjectId": [f"[3, {10 + q % 2}, {20 + q % 4}, 30]" for q in range(30)],
        },
        "SUBJECT_METADATA": {
            "SubjectId": [3, 10, 11, 20, 21, 22, 23, 30],
            "Name": list("abcdefgh"),
            "ParentId": ["NULL", 3, 3, 10, 11, 10, 11, 20],
            "Level": [0, 1, 1, 2, 2, 2, 2, 3],
        },
    }
    return {name: pd.DataFrame(columns) for name, columns in tables.items()}
