"""The item response sample models of tasks 1 and 2: guessing, quizzes and classes."""

from pathlib import Path

from common import layout
from common.item_response import ItemResponse, ItemResponseOptions

import numpy as np
import pandas as pd
import planted_answers as planted
from planted_answers import CONTEXTS, TASKS, accuracy, predict, split
from sample_blocks import needs_blocks

SCRIPT = "task_{}/sample_model_item_response.py"
pytestmark = needs_blocks(SCRIPT.format(1), SCRIPT.format(2))
GUESSING: list[object] = ["--guessing", 0.1]
QUIZ = CONTEXTS[:1]


def predict_without_context(task: int, train: pd.DataFrame, asked: pd.DataFrame) -> np.ndarray:
    """Return what the sample model with `GUESSING` would predict if it knew no contexts."""
    if task == 1:
        model = ItemResponse(guessing=0.1).fit(train.UserId, train.QuestionId, train.IsCorrect)
        p_right = model.predict_proba(asked.UserId, asked.QuestionId)[:, 1]
        return (p_right > 0.5).astype(int)
    option_model = ItemResponseOptions(guessing=0.1).fit(
        train.UserId, train.QuestionId, train.AnswerValue, train.CorrectAnswer
    )
    return option_model.predict_proba(asked.UserId, asked.QuestionId).argmax(axis=1) + 1


@TASKS
def test_quizzes_and_classes_of_the_metadata_raise_the_accuracy(tmp_path: Path, task: int) -> None:
    """All students answer all questions, so that quizzes cannot be inferred without metadata."""
    answers = planted.plant_quizzes(8, by_class=True)

    def score(n_train: int, contexts: list[str]) -> float:
        """Return the accuracy with so many training answers and these columns of metadata."""
        train, test = split(answers, n_train)
        pairs = test[:6_000]
        flags = list(GUESSING)
        if contexts:
            metadata = answers[["AnswerId", *contexts]]
            metadata.to_csv(tmp_path / layout.ANSWER_METADATA_TASK_1_2, index=False)
            flags += ["--metadata_dir", tmp_path]
        prediction = predict(SCRIPT.format(task), tmp_path, *flags, train=train, pairs=pairs)
        if not contexts:
            assert (prediction == predict_without_context(task, train, pairs)).all()
        return accuracy(task, prediction, pairs)

    without_metadata = score(20_000, [])
    with_quizzes = score(20_000, QUIZ)
    # With 6,000 answers, a student has so few in a quiz that the classmates' answers help.
    few_with_quizzes = score(6_000, QUIZ)
    few_with_classes = score(6_000, CONTEXTS)
    # Two models differ in at most a third of the 6,000 predictions. So a gain in accuracy has a
    # standard error of at most √(1 / 3 / 6,000) = 0.0075. The first gain is 0.14 in task 1 and 0.08
    # in task 2, and its limit 0.05. The second gain is 0.057 with the limit 0.04 in task 1, and
    # 0.033 with the limit 0.015 in task 2. So every limit is at least two standard errors below.
    assert with_quizzes > without_metadata + 0.05
    assert few_with_classes > few_with_quizzes + (0.04 if task == 1 else 0.015)


@TASKS
def test_blocks_of_questions_raise_the_accuracy_without_metadata(tmp_path: Path, task: int) -> None:
    """The folder of metadata holds other files only, which counts as no metadata."""
    train, test = split(planted.plant_quizzes(20, 0.4), 20_000)
    flags = [*GUESSING, "--metadata_dir", tmp_path]
    with_blocks = predict(SCRIPT.format(task), tmp_path, *flags, train=train, pairs=test)
    without_blocks = predict_without_context(task, train, test)
    # For some 4,000 answers, a gain has a standard error of √(1 / 3 / 4,000) = 0.009. The gains are
    # 0.05 and 0.037.
    assert accuracy(task, with_blocks, test) > accuracy(task, without_blocks, test) + 0.02
