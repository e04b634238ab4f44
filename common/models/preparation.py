"""What every model does with answers before it learns, and with ids before it predicts."""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from common import schema
from common.answers import Answers
from common.errors import InputError

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.integer[Any]]

N_OPTIONS = len(schema.OPTIONS)

# Answers to stop on: this share, but never more than so many; so few would tell nothing.
_HELD_OUT_SHARE, _MOST_HELD_OUT, _LEAST_HELD_OUT = 0.05, 100_000, 50


def require_categories(answers: Answers, predicts: str) -> None:
    """Check that every answer is one of the categories that a model knows.

    Parameters
    ----------
    answers
        What to learn from.
    predicts
        "is_correct" or "option".

    Raises
    ------
    InputError
        If there are no answers, no options although these are predicted, or a value is none of the
        categories: names the first such answer.
    """
    if len(answers) == 0:
        raise InputError("there are no answers to learn from")
    columns = [(schema.IS_CORRECT, answers.is_correct)]
    if predicts == "option":
        if answers.option is None or answers.correct_option is None:
            raise InputError(
                "the answers have no options; expected AnswerValue and CorrectAnswer to learn from"
            )
        columns += [
            (schema.ANSWER_VALUE, answers.option),
            (schema.CORRECT_ANSWER, answers.correct_option),
        ]
    for column, values in columns:
        wrong = (values < column.low) | (values > column.high)
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"answer {row}: {column.name} is {values[row]}, expected {column.expected}"
            )


def checksum(answers: Answers) -> int:
    """Tell one set of answers from another: a number of 32 bits."""
    total = 0
    for column in (answers.student, answers.question, answers.is_correct, answers.option):
        if column is not None:
            total = zlib.crc32(np.ascontiguousarray(column).data, total)
    return total


def hold_out_to_stop(n_answers: int, seed: int) -> npt.NDArray[np.int64]:
    """Choose the training answers that tell when to stop.

    Returns
    -------
    array of int64
        Row numbers, in no order: 5 % of the answers but at most 100,000; none if that is too few.
    """
    n = min(round(_HELD_OUT_SHARE * n_answers), _MOST_HELD_OUT)
    if n < _LEAST_HELD_OUT:
        return np.empty(0, np.int64)
    return np.random.default_rng(seed).choice(n_answers, n, replace=False, shuffle=False)


def order_options(
    question: IntArray, option: IntArray, correct_option: IntArray, n_questions: int
) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Order the options of each question: the right one, then the others as often as chosen.

    Parameters
    ----------
    question
        Number of the question of every answer, from 0 to n_questions - 1.
    option, correct_option
        The option chosen and the right one of every answer, 1 to 4.
    n_questions
        How many questions there are.

    Returns
    -------
    rank_of_option : array of int8, shape (n_questions, 4)
        0 for the right option, 1 for the most popular distractor, and so on.
    option_shares : array of float32, shape (4,)
        How often each option is chosen over all questions.
    """

    def count(options: IntArray) -> IntArray:
        cells = question * np.int32(N_OPTIONS) + (options - 1)
        return np.bincount(cells, minlength=n_questions * N_OPTIONS).reshape(-1, N_OPTIONS)

    n_chosen, n_right = count(option), count(correct_option)
    popularity = n_chosen.copy()
    # A few questions have had two right options; the more frequent one is meant.
    popularity[np.arange(n_questions), n_right.argmax(axis=1)] = len(option) + 1
    order = np.argsort(-popularity, axis=1, kind="stable")
    rank_of_option = np.argsort(order, axis=1).astype(np.int8)
    return rank_of_option, (n_chosen.sum(axis=0) / len(option)).astype(np.float32)
