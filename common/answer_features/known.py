"""The outcomes that features may use, and the statistics of them that several groups share."""

from common import answer_options
from common.answer_features.pairs import Pairs
from common.arrays import BoolArray, FloatArray, IntArray
from common.item_response import ItemResponse, ItemResponseOptions
from common.item_response.options import count_options, order_options

import numpy as np
import pandas as pd

# Weight of the prior mean in `shrunk_mean`: a mean is computed as if this many more values were
# equal to the prior mean. The winners of task 1 shrank means in the same way.
_PRIOR_COUNT = 5
# Expected probabilities of a right answer are clipped to the range from this number to 1 minus it.
_MIN_EXPECTED = 0.05
# Number of steps in `Known.fit_model` if the fit continues from another model.
_STEPS_FROM_START = 3


class Known:
    """The training answers whose outcomes may be used: all that are not held out.

    Parameters
    ----------
    pairs
        From `read_pairs`, with these training answers.
    answers
        All training answers: IsCorrect, and possibly AnswerValue and CorrectAnswer.
    held_out
        Whether each training answer is held out, shape (training answers,). By default none is.
    first
        A `Known` that holds some of these known answers and no others, and whose models are fitted
        already. `fit_model` continues from the `model` of `first`. `fit_options` takes the settings
        of the `options_model` of `first`.

    Attributes
    ----------
    rows : array of int32, shape (known answers,)
        The rows of the known answers in `pairs`.
    student, question : array of int32, shape (known answers,)
        Numbers of students and questions, as in `pairs`.
    is_correct : array of int, shape (known answers,)
        1 right, 0 wrong.
    question_rate : array of float32, shape (questions,)
        Share of right answers, shrunk towards the share among all known answers.
    student_rate : array of float32, shape (students,)
        Mean of `is_correct` minus the question's rate over a student's answers, shrunk towards 0.
    residual : array of float32, shape (known answers,)
        `is_correct` minus its expectation: question rate + student rate, clipped to 0.05 to 0.95.
    option, correct_option : array of int8, shape (known answers,)
        The option chosen and the right one, from 1. Empty if `answers` does not have them.
    n_options : int
        Largest number of options of a question.
    n_options_of_question : array of int8, shape (questions,)
        Number of options of each question; `n_options` for a question without training answers.
    option_share : array of float32, shape (questions, options)
        Share of each option among the answers to a question, shrunk towards the option's share
        among all known answers. No columns without options in the answers.
    outcome_of_option : array of int, shape (questions, options)
        The outcome of an answer that chooses this option: the rank of the option in its question,
        0 for the right one, 1 for the most popular wrong one, and so on. Empty without options in
        the answers.
    model : ItemResponse or None
        The model that `fit_model` has fitted. None before.
    options_model : ItemResponseOptions or None
        The model that `fit_options` has fitted. None before.
    """

    def __init__(
        self,
        pairs: Pairs,
        answers: pd.DataFrame,
        held_out: BoolArray | None = None,
        first: "Known | None" = None,
    ) -> None:
        """Select the known answers and compute all attributes except the models.

        The known answers are the rows of `answers` that are not `held_out`. The models are fitted
        later: `fit_model` then continues from the model of `first`, and `fit_options` takes only
        the settings from its other model.
        """
        if held_out is None:
            rows = np.arange(len(answers))
            known_answers = answers
        else:
            rows = np.flatnonzero(~held_out)
            known_answers = answers.iloc[rows]
        self.rows = rows.astype(np.int32)
        self.student = pairs.numbers["student"][self.rows]
        self.question = pairs.numbers["question"][self.rows]
        self.is_correct: IntArray = known_answers["IsCorrect"].to_numpy()
        self._first = first
        self.model: ItemResponse | None = None
        self.options_model: ItemResponseOptions | None = None
        self._compute_rates(pairs)

        # These attributes stay empty if the answers do not say which options were chosen.
        self.option: IntArray = np.empty(0, np.int8)
        self.correct_option: IntArray = np.empty(0, np.int8)
        self.outcome_of_option: IntArray = np.empty(0, np.int8)
        self.option_share: FloatArray = np.empty((pairs.n_questions, 0), np.float32)
        self.n_options = answer_options.count_options(answers)
        # The first rows of `pairs` are the training answers. The pairs to be predicted follow.
        question_of_answer = pairs.numbers["question"][: len(answers)]
        self.n_options_of_question = answer_options.number_by_question(
            answers, question_of_answer, pairs.n_questions
        )
        if "AnswerValue" in known_answers:
            self.option = known_answers["AnswerValue"].to_numpy()
            self.correct_option = known_answers["CorrectAnswer"].to_numpy()
            self._compute_option_statistics(pairs.n_questions)

    def _compute_rates(self, pairs: Pairs) -> None:
        """Compute the attributes `question_rate`, `student_rate` and `residual`."""
        right = self.is_correct.astype(np.float32)
        overall_rate = right.mean()
        self.question_rate, _ = shrunk_mean(self.question, right, pairs.n_questions, overall_rate)
        p_of_average_student = self.question_rate[self.question]
        excess = right - p_of_average_student
        self.student_rate, _ = shrunk_mean(self.student, excess, pairs.n_students)
        expected = p_of_average_student + self.student_rate[self.student]
        self.residual = right - np.clip(expected, _MIN_EXPECTED, 1 - _MIN_EXPECTED)

    def _compute_option_statistics(self, n_questions: int) -> None:
        """Compute `option_share` and `outcome_of_option`.

        `option_share` is the share of each option among the known answers to its question.
        `outcome_of_option` is the rank of each option in its question. The right option has rank 0,
        the most popular wrong one rank 1, and so on.
        """
        # How often each option of each question was chosen, shape (questions, options).
        n_chosen = count_options(self.question, self.option, n_questions, self.n_options)
        n_answers = n_chosen.sum(axis=1, keepdims=True)
        overall_share = n_chosen.sum(axis=0) / len(self.rows)
        # Move the shares in each question towards the shares among all known answers, as if each
        # question had `_PRIOR_COUNT` more answers with these shares.
        share = (n_chosen + _PRIOR_COUNT * overall_share) / (n_answers + _PRIOR_COUNT)
        # Whether a question lacks an option, shape (questions, options).
        is_absent = np.arange(self.n_options) >= self.n_options_of_question[:, None]
        if is_absent.any():
            # The line above has also given a share to options that the question does not have. Set
            # these shares to 0, and scale the others so that their sum is 1 again.
            share[is_absent] = 0
            share /= share.sum(axis=1, keepdims=True)
        self.option_share = share.astype(np.float32)
        rank = order_options(
            self.question, self.option, self.correct_option, n_questions, self.n_options
        )
        # The right option of a question without known answers is unknown. Rank the options of such
        # a question by their shares among all known answers.
        is_unanswered = n_answers[:, 0] == 0
        rank[is_unanswered] = _rank_by_share(overall_share, is_absent[is_unanswered])
        self.outcome_of_option = rank

    @property
    def has_options(self) -> bool:
        """Whether the options chosen are known."""
        return len(self.option) > 0

    def fit_model(self, pairs: Pairs) -> ItemResponse:
        """Return an item response model that is fitted to the known answers.

        Beside the abilities of students, the model knows how much better or worse a student does in
        a context, such as a quiz; `pairs` holds the contexts of each answer. The first call fits
        the model, later calls return the same model. If this object was made with the argument
        `first`, the fit continues from the model of `first`, which takes only a few steps.
        """
        if self.model is None:
            start = None if self._first is None else self._first.model
            n_steps = None if start is None else _STEPS_FROM_START
            # `fit` chooses the settings that are None. Without `start`, it tries several settings:
            # it holds out some of the known answers, and keeps the settings that predict these
            # best. With `start`, it takes the settings of `start`.
            self.model = ItemResponse(n_dimensions=None, guessing=None, n_steps=n_steps).fit(
                self.student,
                self.question,
                self.is_correct,
                context=pairs.context[self.rows],
                start=start,
            )
        return self.model

    def fit_options(self, pairs: Pairs) -> ItemResponseOptions:
        """Return an item response model of the options chosen, fitted to the known answers.

        The first call fits the model, later calls return the same model. If this object was made
        with the argument `first`, the model gets the same settings as the model of `first`, such as
        the number of dimensions. But the fit does not start from the parameters of that model.
        """
        if self.options_model is None:
            # `fit` chooses the settings that are None. Without `like`, it tries several settings:
            # it holds out some of the known answers, and keeps the settings that predict these
            # best. With `like`, it takes the settings of the model `like`.
            like = None if self._first is None else self._first.options_model
            self.options_model = ItemResponseOptions(n_dimensions=None, guessing=None).fit(
                self.student,
                self.question,
                self.option,
                self.correct_option,
                n_options=self.n_options_of_question[self.question],
                context=pairs.context[self.rows],
                like=like,
            )
        return self.options_model


def _rank_by_share(share: FloatArray, is_absent: BoolArray) -> IntArray:
    """Return the rank of each option in each question, shape (questions, options).

    The option with the largest share has rank 0. Options that a question does not have come last.

    Parameters
    ----------
    share
        The share of each option, the same for all questions, shape (options,).
    is_absent
        Whether a question lacks an option, shape (questions, options).
    """
    sort_key = np.where(is_absent, np.inf, -share)
    # Column r of `option_of_rank` holds the option of rank r. Each row is a permutation, and the
    # argsort of a permutation is its inverse: the rank of each option.
    option_of_rank = np.argsort(sort_key, axis=1, kind="stable")
    return np.argsort(option_of_rank, axis=1)


def shrunk_mean(
    group: IntArray, value: FloatArray, n_groups: int, prior: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Average values within groups, and pull the means of small groups towards a prior mean.

    Parameters
    ----------
    group
        The group of each value, from 0; a value of group -1 does not count.
    value
        Shape (values,).
    n_groups
        The number of groups.
    prior
        The prior mean.

    Returns
    -------
    mean : array of float32, shape (groups,)
        (sum + `_PRIOR_COUNT` · prior) / (count + `_PRIOR_COUNT`).
    count : array of float32, shape (groups,)
        The number of values in each group.
    """
    is_grouped = group >= 0
    if not is_grouped.all():
        value = value[is_grouped]
        group = group[is_grouped]
    count = np.bincount(group, minlength=n_groups)
    total = np.bincount(group, value, minlength=n_groups)
    mean = (total + _PRIOR_COUNT * prior) / (count + _PRIOR_COUNT)
    return mean.astype(np.float32), count.astype(np.float32)
