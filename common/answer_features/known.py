"""The outcomes that features may use, and what follows from them at once."""

from dataclasses import dataclass
from typing import Any

from common import schema
from common.answer_features.pairs import Pairs
from common.answers import IntArray
from common.item_response import ItemResponseModel, order_options

import numpy as np
import numpy.typing as npt
import pandas as pd

FloatArray = npt.NDArray[np.floating[Any]]
BoolArray = npt.NDArray[np.bool_]

N_OPTIONS = len(schema.OPTIONS)
# A rate is shrunk towards what is expected, as if so many more answers had turned out like that:
# the smoothing that the winners of task 1 used.
SMOOTHING = 5
# How many training answers are enough in all to be held out: a model of features learns little from
# more.
_ENOUGH = 120_000
# What is expected of an answer is never taken to be surer than this.
_MIN_EXPECTED = 0.05


@dataclass
class Known:
    """Answers whose outcomes may be used: arrays with one row each, and others by question."""

    # Their places in the pairs, and their numbers there.
    rows: IntArray
    student: IntArray
    question: IntArray
    is_correct: IntArray
    # Smoothed share of right answers to each question; by how much each student exceeds these; and
    # `is_correct` minus what the two let expect.
    question_rate: FloatArray
    student_rate: FloatArray
    residual: FloatArray
    # A model of some of these answers, from which that of all may go on.
    start: ItemResponseModel | None
    # The option chosen and the right one, from 1, and of each question, shape (questions,
    # `N_OPTIONS`): the smoothed share of each option; 0 for the right one, 1 for the most popular
    # wrong one, and so on. All empty where the file does not tell the options.
    option: IntArray
    correct_option: IntArray
    option_share: FloatArray
    outcome_of_option: IntArray
    # Rows asked for, and the known answers near to them: found once for all groups of features.
    near: tuple[IntArray, list[Any]] | None = None


def know(
    pairs: Pairs,
    answers: pd.DataFrame,
    held_out: BoolArray | None = None,
    start: ItemResponseModel | None = None,
) -> Known:
    """Say which outcomes are known: of the training answers all but those `held_out`.

    A `start` has learned from none of those, nor from others that are to be asked for.
    """
    rows = np.arange(len(answers)) if held_out is None else np.flatnonzero(~held_out)
    own = answers if held_out is None else answers.iloc[rows]
    student, question = (pairs.numbers[name][rows] for name in ("student", "question"))
    is_correct = own["IsCorrect"].to_numpy()
    right = is_correct.astype(np.float32)
    question_rate = shrunk_mean(question, right, pairs.n_questions, right.mean())[0]
    above = right - question_rate[question]
    student_rate = shrunk_mean(student, above, pairs.n_students)[0]
    expected = question_rate[question] + student_rate[student]
    residual = right - np.clip(expected, _MIN_EXPECTED, 1 - _MIN_EXPECTED)
    option: IntArray = np.empty(0, np.int8)
    correct_option, outcome, share = option, option, option.astype(np.float32)
    if "AnswerValue" in own:
        option, correct_option = own["AnswerValue"].to_numpy(), own["CorrectAnswer"].to_numpy()
        cells = question * np.int32(N_OPTIONS) + (option - 1)
        count = np.bincount(cells, minlength=pairs.n_questions * N_OPTIONS).reshape(-1, N_OPTIONS)
        total = count.sum(axis=1, keepdims=True)
        overall = count.sum(axis=0) / len(rows)
        share = ((count + SMOOTHING * overall) / (total + SMOOTHING)).astype(np.float32)
        outcome = order_options(question, option, correct_option, pairs.n_questions)
        # Nobody knows which option is right: the one that most often is chosen comes first.
        outcome[total[:, 0] == 0] = np.argsort(np.argsort(-overall, kind="stable"))
    numbers, rates = (rows, student, question), (question_rate, student_rate, residual)
    return Known(*numbers, is_correct, *rates, start, option, correct_option, share, outcome)


def cut(n_answers: int, seed: int, n_parts: int) -> tuple[IntArray, int]:
    """Cut the training answers into parts at random, and say how many of these to hold out.

    Into as many as asked for, or more that hold 120,000 each. The numbers of the parts, shape
    (answers,), are from 0; the first ones are to be held out, one at a time: as many as come
    nearest to 120,000 answers.
    """
    n_parts = max(n_parts, n_answers // _ENOUGH)
    part = np.random.default_rng(seed).permutation(n_answers) % n_parts
    return part, min(max(1, round(_ENOUGH * n_parts / max(n_answers, 1))), n_parts)


def shrunk_mean(
    group: IntArray, value: FloatArray, n_groups: int, prior: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return the mean of each group, shrunk towards `prior`, and its number of values; float32.

    Groups are numbered from 0; values of group -1 count for none.
    """
    if (group < 0).any():
        value, group = value[group >= 0], group[group >= 0]
    count = np.bincount(group, minlength=n_groups)
    total = np.bincount(group, value, minlength=n_groups)
    mean = (total + SMOOTHING * prior) / (count + SMOOTHING)
    return mean.astype(np.float32), count.astype(np.float32)
