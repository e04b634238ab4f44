"""Planted answers, and the sample models of tasks 1 and 2 run on them as a user runs them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import answers_frame
from run_scripts import run_script

COLUMN = {1: "IsCorrect", 2: "AnswerValue"}
KEYS, CONTEXTS = ["UserId", "QuestionId"], ["QuizId", "GroupId"]
UNKNOWN_QUESTION, UNKNOWN_STUDENT = 9_999_999, 2_000_000_001
TASKS = pytest.mark.parametrize("task", [1, 2])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def plant_abilities() -> tuple[pd.DataFrame, dict[int, float]]:
    """Return answers of students who differ in two abilities, and the best possible accuracies."""
    rng = np.random.default_rng(0)
    student, question = np.nonzero(rng.random((300, 60)) < 0.6)
    ability = rng.normal(0, 1.8, (300, 2))[student, question % 2]
    p_right = sigmoid(rng.normal(0.5, 0.7, 60)[question] + ability)
    # Who has little of the ability makes other errors than who has much.
    first = sigmoid(1 + 1.5 * ability)
    wrong = np.column_stack([first, 0.6 * (1 - first), 0.4 * (1 - first)])
    p = np.column_stack([p_right, (1 - p_right[:, None]) * wrong])
    place = (rng.random((len(p), 1)) > p.cumsum(axis=1)[:, :3]).sum(axis=1)
    # Which option is correct, and which comes next, differs from question to question.
    option = rng.permuted(np.tile(np.arange(1, 5), (60, 1)), axis=1)
    ids, right = (2_000_000_000 - 1_000 * student, 70_000 * question + 3), (place == 0).astype(int)
    frame = answers_frame(*ids, right, option[question, place], option[question, 0])
    best = {1: float(np.maximum(p_right, 1 - p_right).mean()), 2: float(p.max(axis=1).mean())}
    return frame.sample(frac=1, random_state=0, ignore_index=True), best


def split(answers: pd.DataFrame, n_train: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    return answers[:n_train], answers[n_train:].reset_index(drop=True)


ANSWERS, BEST = plant_abilities()
TRAIN, TEST = split(ANSWERS, 8_500)


def plant_quizzes(n_quizzes: int, share: float = 1, *, by_class: bool = False) -> pd.DataFrame:
    """Answers of 300 students with an effect of (student, quiz), and a habit of position there."""
    rng = np.random.default_rng(0)
    # Quizzes are blocks of ten questions, of which a student takes a share. If the effect is that
    # of the student's class, of six, the ten questions are of the student's own choice.
    shape = (300, n_quizzes, 10)
    student, place = np.indices((300, n_quizzes * 10)).reshape(2, -1)
    if by_class:
        place = rng.permuted(place.reshape(300, -1), axis=1).ravel()
    taken = np.repeat(rng.random(300 * n_quizzes) < share, 10)
    student, question, quiz = student[taken], place[taken], np.indices(shape)[1].ravel()[taken]
    easiness, key = rng.normal(0, 0.5, n_quizzes * 10), rng.integers(0, 4, n_quizzes * 10)
    effect, favourite = rng.normal(0, 1.6, shape[:2]), rng.integers(0, 4, shape[:2])
    if by_class:
        effect = effect[np.arange(300) % 6]
    logit = rng.normal(0, 0.5, 300)[student] + easiness[question] + effect[student, quiz]
    right = rng.random(len(student)) < sigmoid(logit)
    own = favourite[student, quiz]
    other = (key[question] + rng.integers(1, 4, len(student))) % 4
    wrong = np.where((own != key[question]) & (rng.random(len(student)) < 0.7), own, other)
    option = np.where(right, key[question], wrong) + 1
    frame = answers_frame(student, question, right.astype(int), option, key[question] + 1)
    frame["QuizId"] = quiz + 1_000
    if by_class:
        frame["GroupId"] = student % 6 + 50
    frame = frame.sample(frac=1, random_state=0, ignore_index=True)
    return frame.assign(AnswerId=frame.index * 3 + 5)


def command(
    script: str, folder: Path, train: pd.DataFrame = TRAIN, pairs: pd.DataFrame = TEST
) -> list[object]:
    """Write the files that a model reads; return the command that reads them."""
    train.drop(columns=CONTEXTS, errors="ignore").to_csv(folder / "train.csv", index=False)
    pairs.filter([*KEYS, "AnswerId"]).to_csv(folder / "template.csv", index=False)
    return [
        *(script, "--input_dir", folder, "--train_data", "train.csv", "--output_dir", folder),
        *("--submission_template_dir", folder, "--submission_template_file", "template.csv"),
    ]


def read_prediction(script: str, folder: Path, pairs: pd.DataFrame = TEST) -> Any:
    """Read a submission, which must fill in the template with values that are allowed."""
    task = int(script[5])
    submission = pd.read_csv(folder / f"submission_task_{task}.csv")
    expected = pairs.filter([*KEYS, "AnswerId"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(submission[[*expected.columns]], expected)
    prediction = submission[COLUMN[task]]
    assert prediction.isin([0, 1] if task == 1 else [1, 2, 3, 4]).all()
    return prediction.to_numpy()


def predict(script: str, folder: Path, *flags: object, **files: pd.DataFrame) -> Any:
    """Predict pairs: `predict("task_1/…", tmp_path, "--seed", 1, train=…, pairs=…)`."""
    done = run_script([*command(script, folder, **files), *flags])
    assert (done.returncode, done.stderr) == (0, "")
    return read_prediction(script, folder, files.get("pairs", TEST))


def accuracy(task: int, prediction: Any, truth: pd.DataFrame = TEST) -> float:
    return float(np.mean(prediction == truth[COLUMN[task]]))


def most_common(task: int, train: pd.DataFrame = TRAIN) -> "pd.Series[int]":
    """Return the most frequent answer to each QuestionId."""
    return train.groupby("QuestionId")[COLUMN[task]].agg(lambda values: values.mode()[0])


def majority_accuracy(task: int, train: pd.DataFrame = TRAIN, truth: pd.DataFrame = TEST) -> float:
    return accuracy(task, truth.QuestionId.map(most_common(task, train)), truth)


def partition(labels: Any) -> np.ndarray:
    """Number groups by their first members, so that equal partitions are equal arrays."""
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[number])


def has_level(context: np.ndarray, expected: Any) -> bool:
    """Return whether one of the levels is this partition."""
    return any(np.array_equal(partition(level), partition(expected)) for level in context.T)
