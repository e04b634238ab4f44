"""The outcomes that features may use, and what follows from them at once."""

from common.answer_features.pairs import Pairs
from common.arrays import Array, BoolArray, FloatArray, IntArray
from common.item_response import ItemResponse
from common.item_response.options import count_options, order_options

import numpy as np
import pandas as pd

Columns = dict[str, Array]

# Answers that a rate is shrunk by towards what is expected, as task 1's winners did.
_SMOOTHING = 5
# Answers held out in all, at most: more teach little. Where all are, features rest on nine tenths.
_ENOUGH = 125_000
_N_PARTS, _N_PARTS_OF_MANY = 10, 5
# What is expected of an answer is never taken to be surer than this.
_MIN_EXPECTED = 0.05


class Known:
    """The outcomes that may be used: of training answers not `held_out`; `start` knows no other."""

    def __init__(
        self,
        pairs: Pairs,
        answers: pd.DataFrame,
        held_out: BoolArray | None = None,
        start: ItemResponse | None = None,
    ) -> None:
        rows = np.arange(len(answers)) if held_out is None else np.flatnonzero(~held_out)
        rows = rows.astype(np.int32)
        own = answers if held_out is None else answers.iloc[rows]
        student, question = (pairs.numbers[name][rows] for name in ("student", "question"))
        # Their places in the pairs, and their numbers there.
        self.rows, self.student, self.question = rows, student, question
        self.start = start
        # Of these answers, once it has been fitted.
        self.model: ItemResponse | None = None
        self.is_correct: IntArray = own["IsCorrect"].to_numpy()
        right = self.is_correct.astype(np.float32)
        # The smoothed share of right answers to each question, and by how much students exceed it.
        self.question_rate = shrunk_mean(question, right, pairs.n_questions, right.mean())[0]
        above = right - self.question_rate[question]
        self.student_rate = shrunk_mean(student, above, pairs.n_students)[0]
        # `is_correct` minus what the two let expect.
        expected = self.question_rate[question] + self.student_rate[student]
        self.residual = right - np.clip(expected, _MIN_EXPECTED, 1 - _MIN_EXPECTED)
        # What `look_near` has found for the rows asked for.
        self.near: Columns = {}
        # Options chosen and right, from 1; by question, (questions, `N_OPTIONS`), smoothed share,
        # and outcome, 0 right, 1 the most popular wrong one, …; all empty if not told.
        self.option: IntArray = np.empty(0, np.int8)
        self.correct_option = self.outcome_of_option = self.option
        self.option_share: FloatArray = np.empty((pairs.n_questions, 0), np.float32)
        if "AnswerValue" in own:
            self.option = own["AnswerValue"].to_numpy()
            self.correct_option = own["CorrectAnswer"].to_numpy()
            n = pairs.n_questions
            count = count_options(question, self.option, n)
            total = count.sum(axis=1, keepdims=True)
            overall = count.sum(axis=0) / len(rows)
            share = (count + _SMOOTHING * overall) / (total + _SMOOTHING)
            self.option_share = share.astype(np.float32)
            outcome = order_options(question, self.option, self.correct_option, n)
            # Nobody knows which option is right: the one that most often is chosen comes first.
            outcome[total[:, 0] == 0] = np.argsort(np.argsort(-overall, kind="stable"))
            self.outcome_of_option = outcome


def cut(n_answers: int, seed: int) -> tuple[IntArray, int]:
    """Return each answer's part, from 0, at random, and how many, the first ones, to hold out."""
    n_parts = _N_PARTS if n_answers <= _ENOUGH else max(_N_PARTS_OF_MANY, n_answers // _ENOUGH)
    part = np.random.default_rng(seed).permutation(n_answers) % n_parts
    return part, min(max(1, _ENOUGH * n_parts // max(n_answers, 1)), n_parts)


def shrunk_mean(
    group: IntArray, value: FloatArray, n_groups: int, prior: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return means of groups from 0, shrunk towards `prior`, and their sizes; -1 is no group."""
    if (group < 0).any():
        value, group = value[group >= 0], group[group >= 0]
    count = np.bincount(group, minlength=n_groups)
    total = np.bincount(group, value, minlength=n_groups)
    mean = (total + _SMOOTHING * prior) / (count + _SMOOTHING)
    return mean.astype(np.float32), count.astype(np.float32)
