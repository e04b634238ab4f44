"""Gradient boosting on features, tasks 1 and 2: which features there are, and what they find."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import planted_answers as planted
import pytest
from conftest import fails, run
from planted_answers import COLUMN, TASKS, accuracy, plant_quizzes, split
from sample_blocks import needs_blocks
from sklearn.ensemble import HistGradientBoostingClassifier

SCRIPT = "task_{}/sample_model_gradient_boosting.py"
pytestmark = needs_blocks(SCRIPT.format(1), SCRIPT.format(2))
# The groups of features that come from answer metadata.
OF_ANSWERS = "quiz, order, classes, time, confidence"
TRAIN, TEST = split(plant_quizzes(6, 0.7), 7_000)


def predict(folder: Path, task: int, *flags: object, **files: pd.DataFrame) -> Any:
    """Return the predictions, and the groups of features that the script says it has used."""
    files = {"train": TRAIN, "pairs": TEST, **files}
    script = SCRIPT.format(task)
    done = run([*planted.command(script, folder, **files), *flags])
    assert (done.returncode, done.stderr) == (0, "")
    used = done.stdout.splitlines()[0].removeprefix("features: ")
    return planted.read_prediction(script, folder, files["pairs"]), used


@TASKS
def test_context_raises_the_accuracy_of_task_1_and_habits_that_of_task_2(
    tmp_path: Path, task: int
) -> None:
    # Student metadata that are constant or almost all empty must not break the fit.
    of_students = pd.DataFrame({"UserId": range(300), "Gender": 1, "PremiumPupil": np.nan})
    of_students.loc[3, "PremiumPupil"] = 1.0
    of_students.to_csv(tmp_path / "student_metadata_task_1_2.csv", index=False)
    # The accuracy by the last of the groups of features.
    scores = {}
    for groups in (["rates", "students"], ["rates", "context"], ["rates", "context", "habits"]):
        flags = ["--metadata_dir", tmp_path, "--features", *groups]
        prediction, used = predict(tmp_path, task, *flags)
        assert used == ", ".join(groups)
        scores[groups[-1]] = accuracy(task, prediction, TEST)

    chance = TEST[COLUMN[task]].value_counts(normalize=True).max()
    # Two models differ in at most a third of the 5,390 predictions, so that a gain in accuracy has
    # a standard error of √(1 / 3 / 5,390) = 0.008. The measured gains are 2.5 to 20 standard errors
    # above the limits below.
    assert scores["students"] > chance + 0.03
    if task == 1:
        assert scores["students"] > planted.majority_accuracy(task, TRAIN, TEST) + 0.02
        assert scores["context"] > scores["students"] + 0.05
        # Habits do not help to predict whether an answer is right: the gain is 0 but for chance,
        # and the limit two standard errors below 0.
        assert scores["habits"] > scores["context"] - 0.015
    else:
        # The option of a wrong answer can be predicted only from the student's habits.
        assert scores["habits"] > scores["context"] + 0.03


@pytest.fixture
def train(split_kit: Path) -> pd.DataFrame:
    """Return answers in which every wrong answer is the option after the correct one.

    Two options of every question are therefore never chosen.
    """
    answers = pd.read_csv(split_kit / "data/test_input/train_task_1_2.csv")[:3_000]
    is_wrong = answers.IsCorrect == 0
    answers.loc[is_wrong, "AnswerValue"] = answers.CorrectAnswer[is_wrong] % 4 + 1
    return answers


@pytest.fixture
def pairs(split_kit: Path) -> pd.DataFrame:
    """Return pairs of which one has an unknown student and one an unknown question."""
    table = pd.read_csv(split_kit / "data/test_input/test_submission_task_1_2.csv")[:50]
    table.loc[0, "UserId"] = planted.UNKNOWN_STUDENT
    table.loc[1, "QuestionId"] = planted.UNKNOWN_QUESTION
    return table


@TASKS
def test_all_groups_of_features_are_used_if_all_metadata_are_there(
    split_kit: Path, tmp_path: Path, train: pd.DataFrame, pairs: pd.DataFrame, task: int
) -> None:
    """The script lists all groups. Options that nobody chose get a small probability, not 0."""
    flags = ["--metadata_dir", split_kit / "data/metadata"]
    flags += ["--probabilities", tmp_path / "p.parquet"]
    _, groups = predict(tmp_path, task, *flags, train=train, pairs=pairs)
    first = "model, rates" if task == 1 else "model, rates, distractors"
    assert groups == f"{first}, subjects, context, habits, students, {OF_ANSWERS}"

    p = pd.read_parquet(tmp_path / "p.parquet").filter(like="Probability").to_numpy()
    assert 0 < p.min() <= p.max() < 1
    if task == 2:
        # The two smallest probabilities are those of the options that nobody chose.
        assert (np.sort(p, axis=1)[:, 1] < 0.01).all()


@TASKS
def test_groups_that_are_asked_for_need_only_their_own_metadata(
    split_kit: Path, tmp_path: Path, train: pd.DataFrame, pairs: pd.DataFrame, task: int
) -> None:
    for name in ("question_metadata_task_1_2.csv", "student_metadata_task_1_2.csv"):
        shutil.copy(split_kit / "data/metadata" / name, tmp_path)
    flags = ["--metadata_dir", tmp_path, "--features", "rates", "students", "subjects"]
    _, groups = predict(tmp_path, task, *flags, train=train, pairs=pairs)
    assert groups == "rates, students, subjects"


NO_OPTIONS = ["QuestionId", "UserId", "IsCorrect"]
ONLY_IDS_OF_ANSWERS = ["QuestionId", "UserId", "AnswerId", "IsCorrect"]
WITHOUT_ANSWER_METADATA = "model, rates, subjects, context, students"


@pytest.mark.parametrize(
    ("columns", "has_metadata", "expected"),
    [
        (NO_OPTIONS, False, "model, rates, context"),
        # Without AnswerId, metadata of answers cannot be used.
        (NO_OPTIONS, True, WITHOUT_ANSWER_METADATA),
        (ONLY_IDS_OF_ANSWERS, True, f"{WITHOUT_ANSWER_METADATA}, {OF_ANSWERS}"),
    ],
)
def test_groups_that_need_missing_columns_are_left_out(
    split_kit: Path,
    tmp_path: Path,
    train: pd.DataFrame,
    pairs: pd.DataFrame,
    columns: list[str],
    has_metadata: bool,
    expected: str,
) -> None:
    flags = ["--metadata_dir", split_kit / "data/metadata"] if has_metadata else []
    _, groups = predict(tmp_path, 1, *flags, train=train[columns], pairs=pairs)
    assert groups == expected


def test_a_group_that_is_asked_for_and_needs_missing_columns_is_an_error(
    tmp_path: Path, train: pd.DataFrame, pairs: pd.DataFrame
) -> None:
    command = planted.command(SCRIPT.format(1), tmp_path, train[ONLY_IDS_OF_ANSWERS], pairs)
    error = fails([*command, "--features", "habits"])
    assert "'habits' need AnswerValue and CorrectAnswer of the training ans" in error


@TASKS
def test_the_probability_is_the_mean_of_two_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: int
) -> None:
    """The script writes the mean of the probabilities that two fits give to a right answer.

    In task 1 this probability does not fall if the first feature rises, which is the probability by
    an item response model.
    """
    # The probabilities of each call of `predict_proba`, and whether they rise with the feature.
    probabilities: list[np.ndarray] = []
    never_falls: list[np.ndarray] = []

    class Recorded(HistGradientBoostingClassifier):
        """A model that records its predictions, and those for a first feature greater by 1."""

        def predict_proba(self, x: np.ndarray) -> np.ndarray:
            probability = super().predict_proba(x)[:, 1]
            is_first_feature = np.arange(x.shape[1]) == 0
            with_first_raised = super().predict_proba(x + is_first_feature)[:, 1]
            probabilities.append(probability)
            never_falls.append(with_first_raised >= probability)
            return super().predict_proba(x)

    monkeypatch.setattr("sklearn.ensemble.HistGradientBoostingClassifier", Recorded)
    flags = ["--features", "model", "rates", "--probabilities", tmp_path / "p.parquet"]
    predict(tmp_path, task, *flags)

    first, second = probabilities[:2]
    # The two fits have different seeds, so that their probabilities differ, but only a little.
    assert 0.001 < np.abs(first - second).mean() < 0.1
    mean = (first + second) / 2
    if task == 1:
        p_right = mean
        assert np.all(never_falls)
    else:
        # In task 2 the first two fits predict whether the answer is wrong.
        p_right = 1 - mean

    written = pd.read_parquet(tmp_path / "p.parquet").filter(like="Probability").to_numpy()
    # The file of task 1 has one column, the probability of a right answer. The file of task 2 has a
    # column for each option, and the right option differs from row to row: `p_right` must be the
    # probability of one of the four.
    assert np.isclose(written, p_right[:, None], atol=1e-6).any(axis=1).all()
