"""The outcomes that features may use, and what follows from them at once."""

from threading import Lock
from typing import Any

from common import schema
from common.answer_features.pairs import Pairs
from common.answers import IntArray
from common.item_response import ItemResponseModel, order_options
from common.item_response.model import BoolArray, FloatArray

import numpy as np
import numpy.typing as npt
import pandas as pd

Columns = dict[str, npt.NDArray[Any]]

N_OPTIONS = len(schema.OPTIONS)
# A rate is shrunk towards what is expected, as if so many more answers had turned out like that:
# the smoothing that the winners of task 1 used.
_SMOOTHING = 5
# How many training answers are held out in all, at most: a model of features learns little from
# more. Where all are, a tenth at a time, so that features of a part rest on most of the answers.
_ENOUGH = 125_000
_N_PARTS, _N_PARTS_OF_MANY = 10, 5
# What is expected of an answer is never taken to be surer than this.
_MIN_EXPECTED = 0.05


class Known:
    """Answers whose outcomes may be used: of the training answers all but those `held_out`.

    Arrays with one row each, and others by student or question. A `start` is an item response model
    from which that of these answers may go on; it has learned from none of those held out.
    """

    def __init__(
        self,
        pairs: Pairs,
        answers: pd.DataFrame,
        held_out: BoolArray | None = None,
        start: ItemResponseModel | None = None,
    ) -> None:
        """Find what follows from the outcomes, whatever is asked."""
        rows = np.arange(len(answers)) if held_out is None else np.flatnonzero(~held_out)
        rows = rows.astype(np.int32)
        own = answers if held_out is None else answers.iloc[rows]
        student, question = (pairs.numbers[name][rows] for name in ("student", "question"))
        # Their places in the pairs, and their numbers there.
        self.rows, self.student, self.question = rows, student, question
        self.start = start
        # Of these answers, once it has been fitted.
        self.model: ItemResponseModel | None = None
        self.is_correct: IntArray = own["IsCorrect"].to_numpy()
        right = self.is_correct.astype(np.float32)
        # The smoothed share of right answers to each question, and by how much students exceed it.
        self.question_rate = shrunk_mean(question, right, pairs.n_questions, right.mean())[0]
        above = right - self.question_rate[question]
        self.student_rate = shrunk_mean(student, above, pairs.n_students)[0]
        # `is_correct` minus what the two let expect.
        expected = self.question_rate[question] + self.student_rate[student]
        self.residual = right - np.clip(expected, _MIN_EXPECTED, 1 - _MIN_EXPECTED)
        # What is near to the rows asked for, found once for all groups of features, which may be
        # at work at the same time.
        self.near: tuple[IntArray, Columns] | None = None
        self.looking = Lock()
        # The option chosen and the right one, from 1, and of each question, shape (questions,
        # `N_OPTIONS`): the smoothed share of each option; 0 for the right one, 1 for the most
        # popular wrong one, and so on. All empty where the file does not tell the options.
        self.option: IntArray = np.empty(0, np.int8)
        self.correct_option = self.outcome_of_option = self.option
        self.option_share: FloatArray = np.empty((pairs.n_questions, 0), np.float32)
        if "AnswerValue" in own:
            self.option = own["AnswerValue"].to_numpy()
            self.correct_option = own["CorrectAnswer"].to_numpy()
            n = pairs.n_questions
            cells = question * np.int32(N_OPTIONS) + (self.option - 1)
            count = np.bincount(cells, minlength=n * N_OPTIONS).reshape(n, N_OPTIONS)
            total = count.sum(axis=1, keepdims=True)
            overall = count.sum(axis=0) / len(rows)
            share = (count + _SMOOTHING * overall) / (total + _SMOOTHING)
            self.option_share = share.astype(np.float32)
            outcome = order_options(question, self.option, self.correct_option, n)
            # Nobody knows which option is right: the one that most often is chosen comes first.
            outcome[total[:, 0] == 0] = np.argsort(np.argsort(-overall, kind="stable"))
            self.outcome_of_option = outcome


def cut(n_answers: int, seed: int) -> tuple[IntArray, int]:
    """Cut the training answers into parts at random, and say how many of these to hold out.

    Ten; of more than 125,000 answers five, or more that hold 125,000 each. The numbers of the
    parts, shape (answers,), are from 0; the first ones are to be held out, one at a time: as many
    as hold 125,000 answers together, or fewer.
    """
    n_parts = _N_PARTS if n_answers <= _ENOUGH else max(_N_PARTS_OF_MANY, n_answers // _ENOUGH)
    part = np.random.default_rng(seed).permutation(n_answers) % n_parts
    return part, min(max(1, _ENOUGH * n_parts // max(n_answers, 1)), n_parts)


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
    mean = (total + _SMOOTHING * prior) / (count + _SMOOTHING)
    return mean.astype(np.float32), count.astype(np.float32)
