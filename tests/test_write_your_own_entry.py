"""The guide leads a newcomer from the end of the quickstart to a checked zip."""

import json
import re
import shutil
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common import layout
from common.arrays import FloatArray, IntArray
from common.metadata import read_circumstances

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, blocks, commands, copy_kit, run_page_command, succeeds
from recorded import recorded_doubts
from run_scripts import run_process
from sample_blocks import needs_blocks

GUIDE = ROOT / "WRITE_YOUR_OWN_ENTRY.md"
# The files with tests that are marked `files`. Only these are collected, because collecting all
# other tests takes longer than running these.
TESTS_OF_FILES = (
    "tests/test_code_quality.py",
    "tests/test_kit_files.py",
    "tests/test_plain_clone.py",
    "tests/test_readmes.py",
    "tests/tools/test_new_entry.py",
    "tests/tools/test_script_flags.py",
)


def apply(diff: str, text: str) -> str:
    """Return a text changed by a diff; each part of the diff removes lines and then adds some."""
    parts = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE)
    assert "".join(removed + added for removed, added in parts) == diff
    for part in parts:
        old, new = (re.sub("^.", "", lines, flags=re.MULTILINE) for lines in part)
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.slow
@needs_blocks("task_1/sample_model_majority.py")
def test_the_guide_leads_from_scored_samples_to_checked_zips(
    scored_kit: Path, tmp_path: Path
) -> None:
    """All commands of the guide run in its order, because they build on each other."""
    # The guide begins where the quickstart ends: the kit has scores.
    kit = Path(shutil.copytree(scored_kit, tmp_path / "Käthes kit"))
    printed = {}
    for command, *arguments in commands(GUIDE):
        assert command == "python"
        done = run_page_command(GUIDE.relative_to(ROOT), arguments, kit)
        assert (done.returncode, done.stderr) == (0, ""), f"{arguments}\n{done.stdout}{done.stderr}"
        printed[" ".join(arguments)] = done.stdout
        if arguments[-2:] == ["task_1", "my_idea"]:
            entry = kit / "task_1" / "my_idea.py"
            text = apply(blocks(GUIDE, "diff")[0], entry.read_text(encoding="utf-8"))
            entry.write_text(text, encoding="utf-8")

    # `my_idea` was edited by the guide's diff, which makes it better. `my_ranking` and
    # `my_questions` were not edited, and score as the samples that they are copies of.
    assert recorded_doubts(kit) == []
    lines = (kit / "data/test_output/results.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    scores = {
        (result["task"], result["phase"], result["model"]): result["score"] for result in results
    }
    assert scores[1, "local", "my_idea"] > scores[1, "local", "majority"] + 0.03
    assert scores[3, "public", "my_ranking"] == scores[3, "public", "entropy"]
    assert scores[4, "local", "my_questions"] == scores[4, "local", "numpy"]
    for task in (1, 3, 4):
        path = f"submissions/submission_task_{task}.zip"
        assert f"valid for task {task}" in printed[f"-m tools.check_submission {path}"]

    # new_entry prints the commands that the guide gives.
    for command, output in printed.items():
        if "tools.new_entry" in command:
            named = re.findall(r"^  python (.*?)(?:  |$)", output, re.MULTILINE)
            assert len(named) >= 3
            assert set(named) <= set(printed), command

    # The tests that check the kit's files pass, although the guide's commands and the user have
    # added files, and the user has edited a sample model.
    add_own_files(kit)
    edit_majority_model(kit)
    copy_kit(tmp_path / "with tests", with_tests=True)
    shutil.move(tmp_path / "with tests/tests", kit)
    command = ["-m", "pytest", "-q", "-m", "files", *TESTS_OF_FILES]
    # Switch off a test of the published kit: it requires that no sample model is edited.
    not_as_published = {"KIT_AS_PUBLISHED": ""}
    done = run_process(command, kit=kit, cwd=kit, environment=not_as_published)
    assert done.returncode == 0, done.stdout


def add_own_files(kit: Path) -> None:
    """Add files as users do in a clone; their imports and links lead nowhere."""
    for folder in (".", "data", "task_1", "task_4", "related_challenges/cloze", "experiments"):
        (kit / folder).mkdir(exist_ok=True)
        (kit / folder / "my_code.py").write_text("import os,task_2.a,no_such_library\n")
        page = "[none](no_such_page.md)\n\n```bash\npython no_such_script.py\n```\n"
        (kit / folder / "MY_NOTES.md").write_text(page)
    (kit / "data/mine.csv").write_text("a,b\n")
    (kit / "my_walkthrough.ipynb").write_text("{}")
    (kit / "submissions/old.csv").write_text("a,b\n")


def edit_majority_model(kit: Path) -> None:
    """Apply the guide's first diff to the sample model itself, not to a copy."""
    sample = kit / "task_1/sample_model_majority.py"
    text = apply(blocks(GUIDE, "diff")[0], sample.read_text(encoding="utf-8"))
    sample.write_text(text, encoding="utf-8")


@needs_blocks("task_1/sample_model_majority.py")
def test_the_feature_of_the_guide_helps_and_does_not_leak(tiny_kit: Path) -> None:
    """The feature of an answer is the student's rate of right answers in the same quiz.

    The training answers are dealt into five folds. The rate for an answer comes from the other
    folds only: otherwise, the model would learn from the answer itself.
    """
    add_model_with_quiz_feature(tiny_kit)
    succeeds(["task_1/local_data_split.py"], kit=tiny_kit)

    scores = []
    for script in ("sample_model_majority", "my_quiz"):
        succeeds([f"task_1/{script}.py", "--local"], kit=tiny_kit)
        succeeds(["task_1/local_evaluation.py"], kit=tiny_kit)
        score = (tiny_kit / "data/test_output/scores_task_1.txt").read_text()
        scores.append(float(score.removeprefix("score:")))

    assert scores[1] > scores[0] + 0.02
    check_that_the_rates_do_not_leak(tiny_kit)


def add_model_with_quiz_feature(kit: Path) -> None:
    """Make task_1/my_quiz.py from the majority model, with all changes that the guide shows."""
    _, flags, prediction = blocks(GUIDE, "diff")
    (feature_code,) = blocks(GUIDE, "python")
    text = (kit / "task_1/sample_model_majority.py").read_text(encoding="utf-8")
    text = apply(prediction, apply(flags, text))
    # The code of the feature goes to the beginning of the marked block.
    position = text.index("    counts = ")
    text = text[:position] + textwrap.indent(feature_code, "    ") + text[position:]
    (kit / "task_1/my_quiz.py").write_text(text, encoding="utf-8")


def check_that_the_rates_do_not_leak(kit: Path) -> None:
    """Check that no answer has a rate that was computed from its own outcome.

    A rate is the share of right answers of a student in a quiz, computed for an answer from the
    answers in other folds. So if the outcome of a training answer changes, the rates of the same
    student in the same quiz must change, except in the answer's own fold; no other rate may change.
    """
    split_dir = kit / "data/test_input"
    answers = pd.read_csv(split_dir / layout.TRAIN_TASK_1_2)
    template = pd.read_csv(split_dir / layout.LOCAL_TEMPLATE_TASK_1_2)
    before, fold = run_feature_code(kit, answers, template)
    metadata = pd.read_csv(kit / "data/metadata" / layout.ANSWER_METADATA_TASK_1_2)
    quiz = metadata.set_index("AnswerId")["QuizId"]
    rows = pd.concat([answers, template]).join(quiz, on="AnswerId")
    # Each pair of a student and a quiz has a number.
    sitting = rows.groupby(["UserId", "QuizId"]).ngroup().to_numpy()

    for row in range(20):
        changed = answers.copy()
        changed.loc[row, "IsCorrect"] ^= 1
        rate, _ = run_feature_code(kit, changed, template)
        may_depend_on_row = (sitting == sitting[row]) & (fold != fold[row])
        assert np.array_equal(rate != before, may_depend_on_row)

    # A rate in a row of the template comes from all training answers of the student in the quiz:
    # (right answers + 1) / (answers + 2). The last row stands for all.
    outcomes = answers["IsCorrect"][sitting[: len(answers)] == sitting[-1]]
    assert before[-1] == (outcomes.sum() + 1) / (len(outcomes) + 2)


def run_feature_code(
    kit: Path, answers: pd.DataFrame, template: pd.DataFrame
) -> tuple[FloatArray, IntArray]:
    """Run the guide's code for the feature; return rate and fold of every row.

    The rows are those of `answers`, then those of `template`.
    """
    (feature_code,) = blocks(GUIDE, "python")
    names: dict[str, Any] = {
        "answers": answers,
        "template": template,
        "paths": SimpleNamespace(metadata=kit / "data/metadata"),
        "np": np,
        "pd": pd,
        "layout": layout,
        "read_circumstances": read_circumstances,
    }
    results: dict[str, Any] = {}
    exec(feature_code, names, results)
    return results["rate"], results["part"]
