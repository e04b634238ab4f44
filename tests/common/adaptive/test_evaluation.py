"""The page of an entry's games: two students, two masks."""

from pathlib import Path

from common import pages
from common.adaptive.evaluation import describe, figures_of, show_sequences
from common.adaptive.game import Game, Reference, make_reference
from common.adaptive.playing import Curves, Setting

import numpy as np
import pytest
from conftest import answers_frame
from page_reading import read_page

# Questions chosen, truth, prediction: three of four and one of two targets are predicted right.
GAMES = {
    "IsTarget_0": Game(*map(np.array, ([[1, 2], [3, 0]], [1, 1, 0, 0], [1, 1, 1, 0]))),
    "IsTarget_1": Game(*map(np.array, ([[0, 1], [2, 1]], [0, 0], [1, 0]))),
}
CURVES = Curves(
    entry=np.array([[0.5, 0.6, 0.75], [0.3, 0.4, 0.5]]),
    random=np.array([[0.5, 0.5, 0.6], [0.3, 0.3, 0.4]]),
)


@pytest.fixture
def students() -> Reference:
    """Student 7 answered questions 1 and 3 right, student 9 questions 2 and 3."""
    row, question = np.divmod(np.arange(8, dtype=np.int32), 4)
    right = np.array([0, 1, 0, 1, 0, 0, 1, 1])
    masks = {name: np.arange(8) < len(game.truth) for name, game in GAMES.items()}
    return make_reference("students.csv", answers_frame(7 + 2 * row, question, right), masks)


@pytest.mark.parametrize("whole", [True, False])
def test_what_the_page_says(students: Reference, tmp_path: Path, whole: bool) -> None:
    """With a curve and what was asked, or without."""
    curves = CURVES if whole else "not asked for"
    setting = Setting(tmp_path, tmp_path, None, tmp_path)
    sequences = show_sequences(setting, students, GAMES) if whole else ""
    figures = figures_of(GAMES, curves)
    _, body = describe(setting, figures, [], phase="local", seconds=1, sequences=sequences)
    page = read_page(pages.page("Scores", body))
    if not whole:
        assert "No curve: not asked for." in page.text and "UserId" not in page.text
        return
    titles = page.chart("Accuracy with each mask").titles
    assert [title for title in titles if "IsTarget" in title] == [
        "IsTarget_0: 0.7500", "IsTarget_1: 0.5000",
    ]  # fmt: skip
    curve = page.table("Mean over the masks")
    assert curve.columns == ["Questions", "entry's choice", "random choice"]
    assert curve.rows == [
        ["0", "0.4000", "0.4000"], ["1", "0.5000", "0.4000"], ["2", "0.6250", "0.5000"],
    ]  # fmt: skip
    # Only the games of the first mask are shown.
    assert "Questions chosen for some students (IsTarget_0)" in page.headings
    asked = {7: [["1", "1", "", "right"], ["2", "2", "", "wrong"]],
             9: [["1", "3", "", "right"], ["2", "0", "", "wrong"]]}  # fmt: skip
    for student, rows in asked.items():
        table = page.table(f"UserId {student}")
        assert table.columns == ["Round", "QuestionId", "Subject", "Answer"]
        assert table.rows == rows
    assert page.table("Confusion matrix").rows[1:] == [
        ["wrong", "50.0%2", "50.0%2"], ["right", "0.0%0", "100.0%2"],
    ]  # fmt: skip
