"""The page of an entry's games: two students, two masks."""

from pathlib import Path
from typing import Any

from common import pages
from common.adaptive.entry_process import EntryProcess, Limits
from common.adaptive.evaluation import describe, figures_of, list_asked, list_targets
from common.adaptive.game import Game, make_reference
from common.adaptive.playing import Setting

import numpy as np
import pytest
from conftest import answers_frame
from page_reading import read_page

# Questions chosen, truth, prediction: three of four and one of two targets are predicted right.
GAMES = {
    "IsTarget_0": Game(*map(np.array, ([[1, 2], [3, 0]], [1, 1, 0, 0], [1, 1, 1, 0]))),
    "IsTarget_1": Game(*map(np.array, ([[0, 1], [2, 1]], [0, 0], [1, 0]))),
}
# Of each mask for the entry's choices and random ones, after 0, 1 and 2 questions.
CURVES = np.array([[[0.5, 0.6, 0.75], [0.5, 0.5, 0.6]], [[0.3, 0.4, 0.5], [0.3, 0.3, 0.4]]])


@pytest.mark.parametrize("curves", [CURVES, "not asked for"])
def test_what_the_page_says(tmp_path: Path, curves: Any) -> None:
    """Student 7 answered questions 1 and 3 right, student 9 questions 2 and 3."""
    row, question = np.divmod(np.arange(8, dtype=np.int32), 4)
    right = np.array([0, 1, 0, 1, 0, 0, 1, 1])
    masks = {name: np.arange(8) < len(game.truth) for name, game in GAMES.items()}
    answers = answers_frame(7 + 2 * row, question, right)
    students = make_reference("students.csv", answers, masks)
    setting = Setting(tmp_path, tmp_path, None, tmp_path)
    entry = EntryProcess(tmp_path, {}, Limits(), tmp_path)
    targets = list_targets(students, GAMES)
    figures = figures_of(setting, students, targets, entry, curves, 1.0, None)
    asked = None if isinstance(curves, str) else list_asked(students, GAMES)
    evaluation, shown = describe(setting, figures, phase="local", asked=asked)
    score = {"evaluation": evaluation, "error": None, "facts": [], "title": "Scores", "tab": ""}
    page = read_page(pages.render("games.html", **score, **shown))
    assert evaluation.score == (0.75 + 0.5) / 2
    if asked is None:
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
    of_students = {7: [["1", "1", "", "right"], ["2", "2", "", "wrong"]],
                   9: [["1", "3", "", "right"], ["2", "0", "", "wrong"]]}  # fmt: skip
    for student, rows in of_students.items():
        table = page.table(f"UserId {student}")
        assert table.columns == ["Round", "QuestionId", "Subject", "Answer"]
        assert table.rows == rows
    assert page.table("Confusion matrix").rows[1:] == [
        ["wrong", "50.0%2", "50.0%2"], ["right", "0.0%0", "100.0%2"],
    ]  # fmt: skip
