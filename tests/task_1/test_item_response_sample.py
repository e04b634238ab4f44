"""The item response sample models of tasks 1 and 2: guessing, quizzes and classes."""

from pathlib import Path

from common import item_response, layout

import numpy as np
import pandas as pd
import planted_answers as planted
from planted_answers import KEYS, TASKS, accuracy, predict, split

SCRIPT = "task_{}/sample_model_item_response.py"
GUESSING = ["--guessing", 0.1]


def write_metadata(folder: Path, answers: pd.DataFrame) -> list[object]:
    """Write the quizzes and classes of answers; return the flag that names them."""
    folder.mkdir()
    circumstances = answers.filter(["AnswerId", "QuizId", "GroupId"])
    circumstances.to_csv(folder / layout.ANSWER_METADATA_TASK_1_2, index=False)
    return ["--metadata_dir", folder]


def predict_without_context(task: int, train: pd.DataFrame, asked: pd.DataFrame) -> np.ndarray:
    """Return what the sample model with `GUESSING` would predict if it knew no contexts."""
    pairs, asked_for = ([table[name].to_numpy() for name in KEYS] for table in (train, asked))
    if task == 1:
        model = item_response.fit(*pairs, train.IsCorrect.to_numpy(), guessing=0.1)
        return (item_response.predict(model, *asked_for) > 0.5).astype(int)
    options = train.AnswerValue.to_numpy(), train.CorrectAnswer.to_numpy()
    chosen = item_response.fit_options(*pairs, *options, guessing=0.1)
    return item_response.predict_options(chosen, *asked_for).argmax(axis=1) + 1


@TASKS
def test_quizzes_of_the_metadata_raise_the_accuracy(tmp_path: Path, task: int) -> None:
    answers = planted.plant_quizzes(8, blocks=False)
    train, test = split(answers, 20_000)
    flags = [*GUESSING, *write_metadata(tmp_path / "metadata", answers)]
    known = predict(SCRIPT.format(task), tmp_path, *flags, train=train, pairs=test)
    without = predict(SCRIPT.format(task), tmp_path, *GUESSING, train=train, pairs=test)
    # All students answer all questions, so nothing else tells the quizzes.
    assert (without == predict_without_context(task, train, test)).all()
    assert accuracy(task, known, test) > accuracy(task, without, test) + 0.05


@TASKS
def test_classes_of_the_metadata_raise_the_accuracy(tmp_path: Path, task: int) -> None:
    """Students have too few answers in a quiz to tell much alone."""
    answers = planted.plant_quizzes(8, blocks=False, by_class=True)
    train, test = split(answers, 6_000)
    scores = []
    for name, table in (("quizzes", answers.drop(columns="GroupId")), ("classes", answers)):
        flags = [*GUESSING, *write_metadata(tmp_path / name, table)]
        found = predict(SCRIPT.format(task), tmp_path, *flags, train=train, pairs=test[:6_000])
        scores.append(accuracy(task, found, test[:6_000]))
    assert scores[1] > scores[0] + (0.04 if task == 1 else 0.015)


@TASKS
def test_blocks_of_questions_raise_the_accuracy_without_metadata(tmp_path: Path, task: int) -> None:
    """A folder that holds other files counts as no metadata."""
    train, test = split(planted.plant_quizzes(20, 0.4, blocks=True), 20_000)
    flags = [*GUESSING, "--metadata_dir", tmp_path]
    found = predict(SCRIPT.format(task), tmp_path, *flags, train=train, pairs=test)
    same = predict_without_context(task, train, test)
    assert accuracy(task, found, test) > accuracy(task, same, test) + 0.02
