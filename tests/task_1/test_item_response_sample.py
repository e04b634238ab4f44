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
# The probability of guessing right, as in `predict_without_context`.
GUESSING: list[object] = ["--guessing", 0.1]
QUIZ = CONTEXTS[:1]


def predict_without_context(task: int, train: pd.DataFrame, asked: pd.DataFrame) -> np.ndarray:
    """Return the predictions of the class in common/item_response, fitted without contexts.

    Contexts are the quizzes and classes of the answers.
    """
    if task == 1:
        model = ItemResponse(n_dimensions=None, guessing=0.1)
        model.fit(train.UserId, train.QuestionId, train.IsCorrect)
        p_right = model.predict_proba(asked.UserId, asked.QuestionId)[:, 1]
        return (p_right > 0.5).astype(int)
    option_model = ItemResponseOptions(n_dimensions=None, guessing=0.1).fit(
        train.UserId, train.QuestionId, train.AnswerValue, train.CorrectAnswer
    )
    return option_model.predict_proba(asked.UserId, asked.QuestionId).argmax(axis=1) + 1


def score_with_metadata(
    task: int, folder: Path, answers: pd.DataFrame, n_train: int, contexts: list[str]
) -> float:
    """Return the accuracy of the sample model with `n_train` training answers.

    The model gets answer metadata with the columns `contexts`. If `contexts` is empty, it gets no
    metadata. In this case, its predictions must equal those of `predict_without_context`.
    """
    train, test = split(answers, n_train)
    # Predict at most 6,000 answers, to save time.
    asked = test[:6_000]
    flags = [*GUESSING]
    if contexts:
        metadata = answers[["AnswerId", *contexts]]
        metadata.to_csv(folder / layout.ANSWER_METADATA_TASK_1_2, index=False)
        flags += ["--metadata_dir", folder]
    prediction = predict(SCRIPT.format(task), folder, *flags, train=train, pairs=asked)
    if not contexts:
        prediction_of_class = predict_without_context(task, train, asked)
        assert (prediction == prediction_of_class).all()
    return accuracy(task, prediction, asked)


@TASKS
def test_quizzes_of_the_metadata_raise_the_accuracy(tmp_path: Path, task: int) -> None:
    """With the quizzes of the answers, the model is more accurate.

    All students answer all questions, so only the metadata tell which questions form a quiz.
    """
    answers = planted.plant_quizzes(8, by_class=True)

    without_metadata = score_with_metadata(task, tmp_path, answers, 20_000, [])
    with_quizzes = score_with_metadata(task, tmp_path, answers, 20_000, QUIZ)

    # Two models differ in at most a third of the 6,000 predictions. So a gain in accuracy has a
    # standard error of at most √(1 / 3 / 6,000) = 0.0075. The gain is 0.14 in task 1 and 0.08 in
    # task 2, at least four standard errors above the limit.
    assert with_quizzes > without_metadata + 0.05


@TASKS
def test_classes_of_the_metadata_raise_the_accuracy(tmp_path: Path, task: int) -> None:
    """With the classes of the students, the model is more accurate than with the quizzes alone.

    There are only 6,000 training answers of 300 students in 8 quizzes. So a student has few
    training answers in a quiz, and the answers of classmates help to predict others.
    """
    answers = planted.plant_quizzes(8, by_class=True)

    with_quizzes = score_with_metadata(task, tmp_path, answers, 6_000, QUIZ)
    with_classes = score_with_metadata(task, tmp_path, answers, 6_000, CONTEXTS)

    # The standard error of the gain in accuracy is at most 0.0075, as for the gain by quizzes. The
    # measured gain is 0.057 in task 1 and 0.033 in task 2, at least two standard errors above
    # `least`.
    least = {1: 0.04, 2: 0.015}[task]
    assert with_classes > with_quizzes + least


@TASKS
def test_blocks_of_questions_raise_the_accuracy_without_metadata(tmp_path: Path, task: int) -> None:
    """Without metadata, the model finds the quizzes: blocks of questions for the same students.

    A simulated student takes each of 20 quizzes with probability 0.4, and answers all questions of
    the quiz or none. A student is better in some quizzes than in others.
    """
    answers = planted.plant_quizzes(20, share=0.4)
    train, test = split(answers, n_train=20_000)
    folder_without_metadata = tmp_path
    flags = [*GUESSING, "--metadata_dir", folder_without_metadata]

    with_blocks = predict(SCRIPT.format(task), tmp_path, *flags, train=train, pairs=test)
    without_blocks = predict_without_context(task, train, test)

    # The gain of a prediction is 1 if only the model with blocks is right, −1 if only the other
    # model is, and 0 otherwise. The models differ in at most a third of about 4,000 predictions, so
    # the variance of this gain is at most 1/3. So the mean, the gain in accuracy, has a standard
    # error of at most √(1 / 3 / 4,000) = 0.009. The gain in accuracy is 0.05 in task 1 and 0.037
    # in task 2. So both gains are about two standard errors or more above the limit, 0.02.
    assert accuracy(task, with_blocks, test) > accuracy(task, without_blocks, test) + 0.02
