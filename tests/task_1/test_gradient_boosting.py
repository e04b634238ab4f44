"""Gradient boosting on features, tasks 1 and 2: which features there are, and what they find."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import planted_answers as planted
from conftest import Run
from planted_answers import COLUMN, TASKS, accuracy, plant_quizzes, split

SCRIPT = "task_{}/sample_model_gradient_boosting.py"
OF_ANSWERS = "quiz, order, classes, time, confidence"
TRAIN, TEST = split(plant_quizzes(6, 0.7, blocks=True).drop(columns="QuizId"), 7_000)


def predict(
    run: Run, task: int, folder: Path, *flags: object, **files: pd.DataFrame
) -> tuple[Any, str]:
    """Return what is predicted, and the groups of features that the script says to have used."""
    files = {"train": TRAIN, "pairs": TEST, **files}
    done = run([*planted.command(SCRIPT.format(task), folder, **files), *flags])
    assert (done.returncode, done.stderr) == (0, "")
    first = done.stdout.splitlines()[0]
    return planted.read_prediction(SCRIPT.format(task), folder, files["pairs"]), first[
        len("features: ") :
    ]


@TASKS
def test_it_finds_context_and_habits(run: Run, tmp_path: Path, task: int) -> None:
    scores = {}
    for groups in (["rates"], ["rates", "context"], ["rates", "context", "habits"]):
        prediction, used = predict(run, task, tmp_path, "--features", *groups)
        assert used == ", ".join(groups)
        scores[groups[-1]] = accuracy(task, prediction, TEST)
    if task == 1:
        assert scores["rates"] > planted.majority_accuracy(task, TRAIN, TEST) + 0.02
        assert scores["context"] > scores["rates"] + 0.05
        assert scores["habits"] > scores["context"] - 0.015
    else:  # Who does not know clicks anywhere, unless it is known where.
        assert scores["habits"] > scores["context"] + 0.03


@TASKS
def test_all_metadata_or_what_is_there_of_them(
    split_kit: Path, run: Run, tmp_path: Path, task: int
) -> None:
    """Few answers, of which two options of every question are never chosen; unknown ids."""
    train = pd.read_csv(split_kit / "data/test_input/train_task_1_2.csv")[:500]
    is_wrong = train.IsCorrect == 0
    train.loc[is_wrong, "AnswerValue"] = train.CorrectAnswer[is_wrong] % 4 + 1
    pairs = pd.read_csv(split_kit / "data/test_input/test_submission_task_1_2.csv")[:50]
    pairs.loc[0, "UserId"], pairs.loc[1, "QuestionId"] = 2_000_000_001, 9_999_999
    files, metadata = {"train": train, "pairs": pairs}, split_kit / "data/metadata"
    flags = ["--metadata_dir", metadata, "--probabilities", tmp_path / "p.parquet"]
    _, groups = predict(run, task, tmp_path, *flags, **files)
    first = "model" if task == 1 else "options"
    habits = "context, habits"
    assert groups == f"{first}, rates, subjects, {habits}, students, {OF_ANSWERS}"
    p = pd.read_parquet(tmp_path / "p.parquet").filter(like="Probability")
    assert (p.to_numpy() > 0).all()
    assert (p.to_numpy() < 1).all()

    some = tmp_path / "metadata"
    some.mkdir()
    for name in ("question_metadata_task_1_2.csv", "student_metadata_task_1_2.csv"):
        shutil.copy(metadata / name, some)
    flags = ["--metadata_dir", some, "--features", "rates", "students", "subjects"]
    _, groups = predict(run, task, tmp_path, *flags, **files)
    assert groups == "rates, students, subjects"


def test_right_and_wrong_are_enough_for_task_1(run: Run, tmp_path: Path) -> None:
    few = TRAIN[["QuestionId", "UserId", "AnswerId", "IsCorrect"]][:500]
    assert predict(run, 1, tmp_path, train=few)[1] == "model, rates, context"


@TASKS
def test_a_feature_that_is_hardly_ever_known_does_no_harm(
    run: Run, tmp_path: Path, task: int
) -> None:
    of_students = pd.DataFrame({"UserId": range(300), "Gender": 1, "PremiumPupil": np.nan})
    of_students.loc[3, "PremiumPupil"] = 1.0
    of_students.to_csv(tmp_path / "student_metadata_task_1_2.csv", index=False)
    flags = ("--metadata_dir", tmp_path, "--features", "rates", "students")
    prediction, groups = predict(run, task, tmp_path, *flags)
    assert groups == "rates, students"
    chance = TEST[COLUMN[task]].value_counts(normalize=True).max()
    assert accuracy(task, prediction, TEST) > chance + 0.03
