"""A newcomer's way, from the quickstart's end to a checked zip, as the guide describes it."""

import json
import re
import shutil
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common import layout
from common.metadata import read_circumstances

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from conftest import ROOT, Write, blocks, commands, run_as_on, succeeds

GUIDE = ROOT / "WRITE_YOUR_OWN_ENTRY.md"


def apply(diff: str, text: str) -> str:
    """Change a text as a diff says, of which each part removes lines and then adds some."""
    parts = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE)
    assert "".join(removed + added for removed, added in parts) == diff
    for part in parts:
        old, new = (re.sub("^.", "", lines, flags=re.MULTILINE) for lines in part)
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def score(printed: str) -> float:
    return float(re.findall(r"score (\d\.\d+)", printed)[0])


@pytest.mark.slow
def test_the_guide_leads_from_scored_samples_to_checked_zips(
    scored_kit: Path, tmp_path: Path
) -> None:
    """One test, since all of it follows from one walk."""
    # As after the quickstart, which has a test of its own.
    kit, printed = Path(shutil.copytree(scored_kit, tmp_path / "kit")), {}
    for command, *arguments in commands(GUIDE):
        assert command == "python"
        done = run_as_on(GUIDE.relative_to(ROOT), arguments, kit)
        assert (done.returncode, done.stderr) == (0, ""), f"{arguments}\n{done.stdout}{done.stderr}"
        printed[" ".join(arguments)] = done.stdout
        if arguments[-2:] == ["task_1", "my_idea"]:
            diff = blocks(GUIDE, "diff")[0]
            entry = kit / "task_1" / "my_idea.py"
            entry.write_text(apply(diff, entry.read_text(encoding="utf-8")), encoding="utf-8")

    # The edit makes the model better, and copies that were not edited score what they were.
    lines = (kit / "data/test_output/results.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    scores = {(r["task"], r["phase"], r["model"]): r["score"] for r in results}
    assert score(printed["task_1/local_evaluation.py"]) > scores[1, "local", "majority"] + 0.03
    assert scores[3, "public", "my_ranking"] == scores[3, "public", "entropy"]
    assert scores[4, "local", "my_questions"] == scores[4, "local", "numpy"]
    board = printed["-m tools.scoreboard"]
    assert board.index(" my_idea ") < board.index(" majority ")

    for task in (1, 3, 4):
        path = f"submissions/submission_task_{task}.zip"
        assert f"valid for task {task}" in printed[f"-m tools.check_submission {path}"]

    # new_entry prints the commands that the guide gives.
    for command, output in printed.items():
        if "tools.new_entry" in command:
            named = re.findall(r"^  python (.*?)(?:  |$)", output, re.MULTILINE)
            assert len(named) >= 3
            assert set(named) <= set(printed), command


def test_the_block_on_metadata_makes_the_majority_model_better(tiny_kit: Path) -> None:
    _, flags, prediction = blocks(GUIDE, "diff")
    (block,) = blocks(GUIDE, "python")
    text = (tiny_kit / "task_1/sample_model_majority.py").read_text(encoding="utf-8")
    text = apply(prediction, apply(flags, text))
    place = text.index("    question = ")
    text = text[:place] + textwrap.indent(block, "    ") + text[place:]
    (tiny_kit / "task_1/my_quiz.py").write_text(text, encoding="utf-8")
    scores = []
    for script in ("sample_model_majority", "my_quiz"):
        for command in (["task_1/local_data_split.py"], [f"task_1/{script}.py", "--local"]):
            succeeds(command, kit=tiny_kit)
        scores.append(score(succeeds(["task_1/local_evaluation.py"], kit=tiny_kit)))
    assert scores[1] > scores[0] + 0.02


def test_the_feature_of_the_guide_does_not_leak(tmp_path: Path, write: Write) -> None:
    """An outcome counts for other answers of its student and quiz, never for its own part."""
    rng = np.random.default_rng(1)
    n, n_train = 6000, 5000
    quiz, student = rng.integers(20, size=n), rng.integers(50, size=n)
    rows = "".join(f"{row},{number}\n" for row, number in enumerate(quiz))
    write("answer_metadata_task_1_2.csv", "AnswerId,QuizId\n" + rows)
    is_correct = rng.integers(2, size=n_train).astype(np.int8)
    pairs = pd.DataFrame({"UserId": student, "AnswerId": np.arange(n)})
    template = pairs[n_train:].reset_index(drop=True)

    def run_block(is_correct: npt.NDArray[np.int8]) -> dict[str, Any]:
        names: dict[str, Any] = {
            "answers": pairs[:n_train].assign(IsCorrect=is_correct),
            "template": template,
            "paths": SimpleNamespace(metadata=tmp_path),
            **{"np": np, "pd": pd, "layout": layout, "read_circumstances": read_circumstances},
        }
        exec(blocks(GUIDE, "python")[0], names)
        return names

    before = run_block(is_correct)
    part, sitting = before["part"], student * 20 + quiz
    for row in range(20):
        changed = is_correct.copy()
        changed[row] ^= 1
        differs = run_block(changed)["rate"] != before["rate"]
        assert np.array_equal(differs, (sitting == sitting[row]) & (part != part[row]))
    # The template's rates are those of all training answers, a little towards one half.
    row = n_train
    same = is_correct[sitting[:n_train] == sitting[row]]
    assert before["rate"][row] == (same.sum() + 1) / (len(same) + 2)
