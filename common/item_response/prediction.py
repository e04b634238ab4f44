"""From a fitted model to predictions, for any pair of a student and a question."""

from dataclasses import dataclass

from common.answers import find_ids
from common.errors import InputError
from common.item_response import context as contexts
from common.item_response.blocks import in_threads, logit_moments
from common.item_response.context import ContextEffects
from common.item_response.model import FloatArray, Gaussians, IntArray, expected_probability

import numpy as np

# Pairs that a thread predicts at once.
_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class ItemResponseModel:
    """What `fit` has learned about students and questions.

    Attributes
    ----------
    student_ids, question_ids
        Those with answers, increasing.
    students
        Posteriors of the abilities, k dimensions; after the last id, a student without answers.
    items
        Posteriors of slopes and intercepts, k + 1 dimensions, in the order of the question ids;
        after the last id, a question without answers. If questions have several stages, all items
        of the first stage, then all of the second, and so on.
    guessing
        Probability of passing an item without knowing how, shape (items,), float32.
    history
        Log loss and accuracy on the answers held out for early stopping, after each step.
    effects
        Of the contexts in which the answers were given; None without contexts.
    prior
        Of the items of each stage.
    """

    student_ids: IntArray
    question_ids: IntArray
    students: Gaussians
    items: Gaussians
    guessing: FloatArray
    history: list[tuple[float, float]]
    effects: ContextEffects | None
    prior: Gaussians


def predict(
    model: ItemResponseModel,
    student: IntArray,
    question: IntArray,
    context: IntArray | None = None,
) -> FloatArray:
    """Return the probability that students answer questions correctly.

    An unknown student has average abilities, an unknown question an average intercept and slopes,
    each as uncertain as they vary.

    Parameters
    ----------
    model
        From `fit` or `student_posterior`.
    student, question
        Ids of each pair, shape (pairs,).
    context
        Labels of the contexts of each pair, shape (pairs, levels), unknown ones too; needed if
        the fit had contexts, and without effect if it had none.

    Returns
    -------
    array of float32, shape (pairs,)

    Raises
    ------
    InputError
        If contexts are needed and not given.
    """
    return predict_stages(model, student, question, context)[0]


def predict_stages(
    model: ItemResponseModel,
    student: IntArray,
    question: IntArray,
    context: IntArray | None = None,
) -> list[FloatArray]:
    """Return the probability of passing each stage, once it is reached; else as `predict`."""
    if context is None and model.effects is not None:
        raise InputError("the answers of the fit had contexts, expected those of the pairs as well")
    place = find_ids(model.student_ids, np.asarray(student))
    item = find_ids(model.question_ids, np.asarray(question))
    return predict_places(model, place, item, context)


def break_stick(passing: list[FloatArray]) -> FloatArray:
    """Return the probability of every outcome, shape (pairs, stages + 1); rows sum to 1.

    `passing` holds the probability of passing each stage, once it is reached.
    """
    outcome: FloatArray = np.ones((len(passing[0]), len(passing) + 1), np.float32)
    for stage, probability in enumerate(passing):
        outcome[:, stage] *= probability
        outcome[:, stage + 1 :] *= (1 - probability)[:, None]
    return outcome


def predict_places(
    model: ItemResponseModel, student: IntArray, item: IntArray, context: IntArray | None
) -> list[FloatArray]:
    """As `predict_stages`, for places in `model.students` and in the items of the first stage."""
    n_items = len(model.question_ids) + 1
    # By student, since what is known of a student then lies close together in memory.
    order = np.argsort(student, kind="stable")

    def work(part: tuple[int, IntArray]) -> FloatArray:
        stage, pairs = part
        of_stage = item[pairs] + np.int32(stage * n_items)
        effects = None
        if model.effects is not None:
            assert context is not None
            kind = np.full(len(pairs), stage, np.int32)
            effects = contexts.find_effects(model.effects, student[pairs], context[pairs], kind)
        moments = logit_moments(model.students, model.items, student[pairs], of_stage, effects)
        knows = expected_probability(*moments)
        knows += model.guessing[of_stage] * (1 - knows)
        return knows

    parts = [order[i : i + _PAIRS_AT_ONCE] for i in range(0, len(order), _PAIRS_AT_ONCE)]
    passing = []
    for stage in range(len(model.items) // n_items):
        probability = np.empty(len(order), np.float32)
        found = in_threads(work, [(stage, pairs) for pairs in parts])
        for pairs, own in zip(parts, found, strict=True):
            probability[pairs] = own
        passing.append(probability)
    return passing
