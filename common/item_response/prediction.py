"""From a fitted model to predictions, for any pair of a student and a question."""

from dataclasses import dataclass

from common.answers import find_ids
from common.errors import InputError
from common.item_response.blocks import in_threads, logit_moments
from common.item_response.model import FloatArray, IntArray, State, expected_probability
from common.item_response.observations import Level, find_nodes, sort_answers

import numpy as np

# Pairs that a thread predicts at once.
_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ItemResponseModel(State):
    """What `fit` has learned about students and questions.

    After the last student comes one without answers; after the last question, in each stage, one
    without answers.
    """

    student_ids: IntArray  # Those with answers, increasing.
    question_ids: IntArray
    context_ids: tuple[IntArray, ...]  # Labels that have answers, increasing, for each level.
    levels: tuple[Level, ...]  # The nodes of all students' trees, to which `effects` belong.
    # Log loss and accuracy on the answers held out for early stopping, after each step.
    history: list[tuple[float, float]]


def predict(
    model: ItemResponseModel, student: IntArray, question: IntArray, context: IntArray | None = None
) -> FloatArray:
    """Return the probability that students answer questions correctly.

    An unknown student has average abilities, an unknown question an average intercept and slopes,
    each as uncertain as they vary.

    Parameters
    ----------
    model
        From `fit`.
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
    return predict_stages(model, student, question, context)[:, 0]


def predict_stages(
    model: ItemResponseModel, student: IntArray, question: IntArray, context: IntArray | None
) -> FloatArray:
    """Return the probability of passing each stage, once it is reached, shape (pairs, stages)."""
    if context is None and model.levels:
        raise InputError("the answers of the fit had contexts, expected those of the pairs as well")
    place, item = find_ids(model.student_ids, student), find_ids(model.question_ids, question)
    return predict_places(model, place, item, context)


def predict_places(
    model: ItemResponseModel, student: IntArray, item: IntArray, context: IntArray | None
) -> FloatArray:
    """As `predict_stages`, for places in `model.students` and in the items of the first stage."""
    n_items, n_stages = len(model.question_ids) + 1, len(model.prior)
    passing = np.empty((len(student), n_stages), np.float32)

    def work(pairs: IntArray) -> None:
        for stage in range(n_stages):
            own = item[pairs] + np.int32(stage * n_items)
            effects = None
            if model.levels:
                assert context is not None
                effects = find_effects(model, student[pairs], context[pairs], stage)
            moments = logit_moments(model.students, model.items, student[pairs], own, effects)
            knows = expected_probability(*moments)
            passing[pairs, stage] = knows + model.guessing[own] * (1 - knows)

    # By student, since what is known of a student then lies close together in memory.
    order, *_ = sort_answers(student, [], len(model.student_ids) + 1)
    list(in_threads(work, np.array_split(order, len(order) // _PAIRS_AT_ONCE + 1)))
    return passing


def break_stick(passing: FloatArray) -> FloatArray:
    """Return the probability of every outcome from those of passing; rows sum to 1."""
    one = np.ones((len(passing), 1), np.float32)
    reached = np.hstack([one, 1 - passing]).cumprod(axis=1)
    outcome: FloatArray = reached * np.hstack([passing, one])
    return outcome


def find_effects(
    model: ItemResponseModel,
    student: IntArray,
    context: IntArray,
    stage: int = 0,
    *,
    with_shared: bool = True,
) -> FloatArray:
    """Return the total effects of pairs of students, by their places, and contexts (see `State`).

    They are those at the last node on the way from the student down to the context that has
    answers; further down, effects are only known to vary. What students share is added, if asked.
    """
    n_stages = len(model.prior)
    found = np.zeros((len(student), 2 + model.students.mean.shape[1]), np.float32)
    labels = [
        find_ids(ids, context[:, depth]) * np.int32(n_stages) + np.int32(stage)
        for depth, ids in enumerate(model.context_ids)
    ]
    nodes = find_nodes(model.levels, student, labels)
    for node, own, prior in zip(nodes, model.effects, model.variance, strict=True):
        is_there = node >= 0
        found[is_there] = own[node[is_there]]
        found[~is_there, 1] += np.float32(prior[stage])
    if with_shared:
        found[:, 0] += model.shared.mean[labels[-1]]
        found[:, 1] += model.shared.variance[labels[-1]]
    return found
