"""Which option a student chooses, by stick breaking.

Is the answer right? If not, is it the most popular distractor? If not, the next one? Each of these
stages is an item with slopes of its own on the same abilities, so that the fit for right and wrong
answers works here too (Linderman, Johnson and Adams 2015, "Dependent multinomial models made
easy"). Only the first stage can be guessed: choosing a distractor means not knowing the answer.
"""

from typing import NamedTuple, Unpack

from common import schema
from common.answers import find_ids, number_ids
from common.item_response.fitting import Settings, fit_stages, require_answers
from common.item_response.habits import Habits, fit_habits, with_habits
from common.item_response.model import FloatArray, IntArray
from common.item_response.prediction import ItemResponseModel, break_stick, predict_stages

import numpy as np

N_OPTIONS = len(schema.OPTIONS)


class OptionModel(NamedTuple):
    """What `fit_options` has learned."""

    stages: ItemResponseModel  # Every question has `N_OPTIONS` − 1 stages.
    # For each question of `stages.question_ids`, and each option, the stage at which it is chosen:
    # 0 for the right option, 1 for the most popular distractor, …; shape (questions, `N_OPTIONS`).
    outcome_of_option: IntArray
    option_shares: FloatArray  # How often each is chosen over all questions, (`N_OPTIONS`,).
    habits: Habits | None  # Of the students, in the contexts of their answers; None without any.


def _context_of_habits(context: IntArray) -> IntArray:
    """Return the level, of shape (pairs,), in which students have habits of their own."""
    return np.ascontiguousarray(context[:, (context.shape[1] - 1) // 2])


def fit_options(
    student: IntArray,
    question: IntArray,
    option: IntArray,
    correct_option: IntArray,
    **settings: Unpack[Settings],
) -> OptionModel:
    """Fit the item response model to the options chosen.

    Parameters
    ----------
    student, question
        Ids, shape (answers,).
    option, correct_option
        The option chosen and the right one, 1 to `N_OPTIONS`, shape (answers,).
    settings
        As in `fit`, which also lists the errors; but for `start`.
    """
    require_answers(question)
    question_ids, number = number_ids(question)
    outcome_of_option = order_options(number, option, correct_option, len(question_ids))
    outcome = outcome_of_option[number, option - 1]
    stages = fit_stages(student, question, outcome, N_OPTIONS - 1, **settings)
    # As if each had been chosen once more: what is rare is not impossible.
    shares = (np.bincount(option - 1, minlength=N_OPTIONS) + 1) / (len(option) + N_OPTIONS)
    model = OptionModel(stages, outcome_of_option, shares.astype(np.float32), None)
    context = settings.get("context")
    if context is None or not context.shape[1]:
        return model
    probability = predict_options(model, student, question, context)
    habits = fit_habits(student, _context_of_habits(context), option - 1, probability)
    return model._replace(habits=habits)


def predict_options(
    model: OptionModel, student: IntArray, question: IntArray, context: IntArray | None = None
) -> FloatArray:
    """Return the probability of every option.

    Parameters
    ----------
    model
        From `fit_options`.
    student, question
        Ids of each pair, shape (pairs,), unknown ones too.
    context
        As in `predict`.

    Returns
    -------
    array of float32, shape (pairs, `N_OPTIONS`)
        Rows sum to 1. Of an unknown question, how often each option is chosen over all questions.
    """
    probability = break_stick(predict_stages(model.stages, student, question, context))
    number = find_ids(model.stages.question_ids, np.asarray(question))
    is_known = number < len(model.outcome_of_option)
    result = np.tile(model.option_shares, (len(number), 1))
    result[is_known] = np.take_along_axis(
        probability[is_known], model.outcome_of_option[number[is_known]], axis=1
    )
    if model.habits is None:
        return result
    assert context is not None
    return with_habits(model.habits, student, _context_of_habits(context), result)


def order_options(
    question: IntArray, option: IntArray, correct_option: IntArray, n_questions: int
) -> IntArray:
    """Rank the options of each question: the right one, then the others by popularity.

    Questions are numbered from 0, options from 1; both options have shape (answers,). Returned is
    the rank of each option of each question, int8, shape (questions, `N_OPTIONS`).
    """

    def count(options: IntArray) -> IntArray:
        cells = question * np.int32(N_OPTIONS) + (options - 1)
        return np.bincount(cells, minlength=n_questions * N_OPTIONS).reshape(-1, N_OPTIONS)

    popularity = count(option)
    # A few questions have had two right options; the more frequent one is meant.
    right = count(correct_option).argmax(axis=1)
    popularity[np.arange(n_questions), right] = len(option) + 1
    order = np.argsort(-popularity, axis=1, kind="stable")
    return np.argsort(order, axis=1).astype(np.int8)
