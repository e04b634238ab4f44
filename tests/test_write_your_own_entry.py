"""The guide leads a newcomer from the end of the quickstart to a checked zip."""

import json
import re
import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common import layout
from common.arrays import FloatArray, IntArray
from common.metadata import read_circumstances

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, blocks, commands, copy_tests, run_page_command, succeeds
from recorded import recorded_doubts
from run_scripts import run_process
from sample_blocks import needs_blocks

GUIDE = ROOT / "WRITE_YOUR_OWN_ENTRY.md"
# The test files that hold tests marked `files`. pytest is given only these files, because reading
# all other test files would take longer than running the marked tests.
TESTS_OF_FILES = (
    "tests/test_code_quality.py",
    "tests/test_kit_files.py",
    "tests/test_plain_clone.py",
    "tests/test_readmes.py",
    "tests/tools/test_new_entry.py",
    "tests/tools/test_script_flags.py",
)


def apply_diff(diff: str, text: str) -> str:
    """Return a text after the changes of a diff.

    Each part of the diff consists of lines to remove (-) and then of lines that replace them (+).
    """
    parts = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE)
    # The diff has no lines outside of its parts.
    assert "".join(removed + added for removed, added in parts) == diff
    for removed, added in parts:
        old = without_first_characters(removed)
        new = without_first_characters(added)
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def without_first_characters(lines: str) -> str:
    """Return a text without the first character of each line, which is - or + in a diff."""
    return re.sub("^.", "", lines, flags=re.MULTILINE)


def apply_first_diff(path: Path) -> None:
    """Change a sample model, or a copy of it, by the first diff of the guide."""
    first_diff, *_ = blocks(GUIDE, "diff")
    text = apply_diff(first_diff, path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class AfterGuide:
    """A kit in which all commands of the guide were run in its order."""

    kit: Path
    # The output of each command. The keys are the words after `python`.
    printed: dict[str, str]

    def score(self, task: int, phase: str, model: str) -> float:
        """Return the score that results.jsonl, the record of scores, has for a model."""
        lines = (self.kit / "data/test_output/results.jsonl").read_text().splitlines()
        results = [json.loads(line) for line in lines]
        scores = {
            (result["task"], result["phase"], result["model"]): float(result["score"])
            for result in results
        }
        return scores[task, phase, model]


@pytest.fixture(scope="module")
def after_guide(scored_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> AfterGuide:
    """Run the commands of the guide, and edit task_1/my_idea.py as the guide says.

    The guide begins where the quickstart ends: the kit has scores. One command of the guide makes
    task_1/my_idea.py, a copy of a sample model. The guide then shows how to change this copy.
    """
    kit = Path(shutil.copytree(scored_kit, tmp_path_factory.mktemp("guide") / "Käthes kit"))
    printed = {}
    for command, *arguments in commands(GUIDE):
        assert command == "python"
        done = run_page_command(GUIDE.relative_to(ROOT), arguments, kit)
        assert (done.returncode, done.stderr) == (0, ""), f"{arguments}\n{done.stdout}{done.stderr}"
        printed[" ".join(arguments)] = done.stdout
        if arguments[-2:] == ["task_1", "my_idea"]:
            apply_first_diff(kit / "task_1/my_idea.py")
    return AfterGuide(kit, printed)


follows_guide = needs_blocks("task_1/sample_model_majority.py")


@pytest.mark.slow
@follows_guide
def test_scores_of_the_guide_have_no_doubts(after_guide: AfterGuide) -> None:
    assert recorded_doubts(after_guide.kit) == []


@pytest.mark.slow
@follows_guide
def test_the_change_of_the_guide_improves_its_model(after_guide: AfterGuide) -> None:
    score_of_sample = after_guide.score(1, "local", "majority")
    assert after_guide.score(1, "local", "my_idea") > score_of_sample + 0.03


@pytest.mark.slow
@follows_guide
@pytest.mark.parametrize(
    ("task", "phase", "copy", "sample"),
    [(3, "public", "my_ranking", "entropy"), (4, "local", "my_questions", "numpy")],
)
def test_copies_that_are_not_edited_score_as_their_samples(
    after_guide: AfterGuide, task: int, phase: str, copy: str, sample: str
) -> None:
    assert after_guide.score(task, phase, copy) == after_guide.score(task, phase, sample)


@pytest.mark.slow
@follows_guide
@pytest.mark.parametrize("task", [1, 3, 4])
def test_the_guide_leads_to_zips_that_the_checker_accepts(
    after_guide: AfterGuide, task: int
) -> None:
    check = f"-m tools.check_submission submissions/submission_task_{task}.zip"
    assert f"valid for task {task}" in after_guide.printed[check]


@pytest.mark.slow
@follows_guide
def test_new_entry_prints_the_commands_that_the_guide_gives(after_guide: AfterGuide) -> None:
    for command, output in after_guide.printed.items():
        if "tools.new_entry" in command:
            named = re.findall(r"^  python (.*?)(?:  |$)", output, re.MULTILINE)
            assert len(named) >= 3
            assert set(named) <= set(after_guide.printed), command


@pytest.mark.slow
@follows_guide
def test_the_kits_files_pass_their_tests_beside_those_of_a_user(
    after_guide: AfterGuide, tmp_path: Path
) -> None:
    """Tests marked `files` check the kit's own files, such as the links in its pages.

    These tests must also pass in a user's kit: with the files that the commands of the guide have
    made, with faulty files of the user, and with a sample model that the user has edited.
    """
    kit = Path(shutil.copytree(after_guide.kit, tmp_path / "Käthes kit"))
    add_own_files(kit)
    apply_first_diff(kit / "task_1/sample_model_majority.py")
    copy_tests(kit)
    command = ["-m", "pytest", "-q", "-m", "files", *TESTS_OF_FILES]
    # If the variable KIT_AS_PUBLISHED is set, one more test runs. It requires that no sample model
    # was edited, so it would fail here.
    environment = {"KIT_AS_PUBLISHED": ""}
    done = run_process(command, kit=kit, cwd=kit, environment=environment)
    assert done.returncode == 0, done.stdout


def add_own_files(kit: Path) -> None:
    """Add files as users do in a clone; they name modules and pages that do not exist."""
    for folder in (".", "data", "task_1", "task_4", "related_challenges/cloze", "experiments"):
        (kit / folder).mkdir(exist_ok=True)
        (kit / folder / "my_code.py").write_text("import os,task_2.a,no_such_library\n")
        page = "[none](no_such_page.md)\n\n```bash\npython no_such_script.py\n```\n"
        (kit / folder / "MY_NOTES.md").write_text(page)
    (kit / "data/mine.csv").write_text("a,b\n")
    (kit / "my_walkthrough.ipynb").write_text("{}")
    (kit / "submissions/old.csv").write_text("a,b\n")


# ---- The feature of the guide --------------------------------------------------------------------
#
# The guide shows how to add a feature of an answer, the rate: the share of right answers of the
# same student in the same quiz. The training answers are dealt into five folds. The rate of an
# answer comes from the other four folds, because the model must not learn from the answer itself.


@follows_guide
def test_the_feature_of_the_guide_improves_the_score(tiny_kit: Path) -> None:
    add_model_with_quiz_feature(tiny_kit)
    succeeds(["task_1/local_data_split.py"], kit=tiny_kit)

    def score(script: str) -> float:
        succeeds([f"task_1/{script}.py", "--local"], kit=tiny_kit)
        succeeds(["task_1/local_evaluation.py"], kit=tiny_kit)
        text = (tiny_kit / "data/test_output/scores_task_1.txt").read_text()
        return float(text.removeprefix("score:"))

    assert score("my_quiz") > score("sample_model_majority") + 0.02


def add_model_with_quiz_feature(kit: Path) -> None:
    """Make task_1/my_quiz.py from the majority model, with all changes that the guide shows."""
    _, flags, prediction = blocks(GUIDE, "diff")
    (feature_code,) = blocks(GUIDE, "python")
    text = (kit / "task_1/sample_model_majority.py").read_text(encoding="utf-8")
    text = apply_diff(prediction, apply_diff(flags, text))
    # Insert the code of the feature at the beginning of the block that users replace.
    position = text.index("    counts = ")
    text = text[:position] + textwrap.indent(feature_code, "    ") + text[position:]
    (kit / "task_1/my_quiz.py").write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Rates:
    """A feature of answers, the rate, and what it depends on.

    The rate of an answer is the share of right ones among the student's answers in the same quiz,
    without those in the answer's own fold. It is computed for each row: first the training answers
    of the local split, then the answers that the template lists for prediction.
    """

    answers: pd.DataFrame
    template: pd.DataFrame
    # The rate and the fold of each row. All answers to predict are together in one more fold.
    rate: FloatArray
    fold: IntArray
    # A number that is equal for two rows if their student and their quiz are the same.
    student_quiz: IntArray


@pytest.fixture(scope="module")
def rates(split_kit: Path) -> Rates:
    """Compute the feature of the guide on the local split, by the code in the guide."""
    split_dir = split_kit / "data/test_input"
    answers = pd.read_csv(split_dir / layout.TRAIN_TASK_1_2)
    template = pd.read_csv(split_dir / layout.LOCAL_TEMPLATE_TASK_1_2)
    rate, fold = run_feature_code(split_kit, answers, template)
    metadata = pd.read_csv(split_kit / "data/metadata" / layout.ANSWER_METADATA_TASK_1_2)
    quiz = metadata.set_index("AnswerId")["QuizId"]
    rows = pd.concat([answers, template]).join(quiz, on="AnswerId")
    student_quiz = rows.groupby(["UserId", "QuizId"]).ngroup().to_numpy()
    return Rates(answers, template, rate, fold, student_quiz)


def test_no_rate_depends_on_the_outcome_of_its_own_answer(split_kit: Path, rates: Rates) -> None:
    """The feature of the guide, the rate, comes from answers of the same student in the same quiz.

    The training answers are divided into folds. The rate of an answer leaves out all answers in its
    own fold. So if the outcome of one answer changes, only these rates may change: those of the
    same student in the same quiz, but in other folds.
    """
    for row in range(20):
        changed = rates.answers.copy()
        changed.loc[row, "IsCorrect"] ^= 1
        rate, _ = run_feature_code(split_kit, changed, rates.template)
        is_same_student_and_quiz = rates.student_quiz == rates.student_quiz[row]
        may_change = is_same_student_and_quiz & (rates.fold != rates.fold[row])
        assert np.array_equal(rate != rates.rate, may_change)


def test_the_rate_of_an_answer_to_predict_comes_from_all_training_answers(rates: Rates) -> None:
    """The feature of the guide, the rate, is (right answers + 1) / (answers + 2).

    The test checks the last row to predict. Its rate counts all training answers of its student in
    its quiz.
    """
    # The first rows are the training answers, and the last rows are the answers to predict.
    student_quiz_of_train = rates.student_quiz[: len(rates.answers)]
    is_same_student_and_quiz = student_quiz_of_train == rates.student_quiz[-1]
    outcomes = rates.answers["IsCorrect"][is_same_student_and_quiz]
    assert rates.rate[-1] == (outcomes.sum() + 1) / (len(outcomes) + 2)


def run_feature_code(
    kit: Path, answers: pd.DataFrame, template: pd.DataFrame
) -> tuple[FloatArray, IntArray]:
    """Run the code that the guide shows for its feature; return the feature and fold of every row.

    The rows are first the rows of `answers`, then the rows of `template`. The feature is a rate:
    the share of right answers of the same student in the same quiz, in other folds.
    """
    (feature_code,) = blocks(GUIDE, "python")
    # In the guide, the code is inserted into a sample model, and uses these variables of the model.
    # The folder of metadata is the only path of the model that it needs.
    names_of_sample: dict[str, Any] = {
        "answers": answers,
        "template": template,
        "paths": SimpleNamespace(metadata=kit / "data/metadata"),
        "np": np,
        "pd": pd,
        "layout": layout,
        "read_circumstances": read_circumstances,
    }
    new_names: dict[str, Any] = {}
    exec(feature_code, names_of_sample, new_names)
    # The code of the guide calls the folds `part`.
    return new_names["rate"], new_names["part"]
