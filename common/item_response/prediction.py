"""From a fitted model to predictions, for any pair of a student and a question."""

from common.answers import find_ids
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.item_response import blocks
from common.item_response.blocks import ItemResponseModel
from common.item_response.model import expected_probability

import numpy as np

_PAIRS_AT_ONCE = 1 << 20


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
    n_items, n_stages = len(model.question_ids) + 1, len(model.prior.mean)
    passing = np.empty((len(place), n_stages), np.float32)

    def work(pairs: IntArray) -> None:
        own, asked = place[pairs], item[pairs]
        first = own.min(initial=len(model.student_ids))
        students = model.students.take(slice(first, own.max(initial=0) + 1))
        for stage in range(n_stages):
            of_stage, effects = slice(stage * n_items, (stage + 1) * n_items), None
            if model.levels and context is not None:
                effects, shared = find_effects(model, own, context[pairs], stage)
                effects[:, :2] += shared
            items, guessing = model.items.take(of_stage), model.guessing[of_stage]
            moments = blocks.logit_moments(students, items, own - first, asked, effects)
            knows = expected_probability(*moments)
            passing[pairs, stage] = knows + guessing[asked] * (1 - knows)

    # By student, since what is known of a student then lies close together in memory.
    order, *_ = blocks.sort_answers(place, [], len(model.student_ids) + 1)
    list(blocks.in_threads(work, np.array_split(order, 2 * (len(order) // _PAIRS_AT_ONCE + 1))))
    return passing


def explain(
    model: ItemResponseModel, student: IntArray, question: IntArray, context: IntArray
) -> dict[str, FloatArray]:
    """Return what the predictions of `predict` consist of, by name, shape (pairs,) each."""
    place, item = find_ids(model.student_ids, student), find_ids(model.question_ids, question)
    mean, variance = blocks.logit_moments(model.students, model.items, place, item)
    own: FloatArray = np.zeros((len(place), 2), np.float32)
    shared = own
    if model.levels:
        found, shared = find_effects(model, place, context)
        # A copy, or all covariances would stay in memory.
        own = found[:, :2].copy()
    effects = own + shared
    return {
        "mean": mean,
        "variance": variance,
        "effect": effects[:, 0],
        "effect_variance": effects[:, 1],
        "own_effect": own[:, 0],
        "easiness": model.items.mean[item, -1],
        "ability": model.students.mean[place, 0],
        "slope": np.linalg.norm(model.items.mean[:, :-1], axis=1)[item],
    }


def break_stick(passing: FloatArray) -> FloatArray:
    """Return the probability of every outcome from those of passing; rows sum to 1."""
    one = np.ones((len(passing), 1), np.float32)
    reached = np.hstack([one, 1 - passing]).cumprod(axis=1)
    outcome: FloatArray = reached * np.hstack([passing, one])
    return outcome


def find_effects(
    model: ItemResponseModel, student: IntArray, context: IntArray, stage: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return total effects of pairs, (pairs, 2 + k), at their last node that has answers; and what
    students share in the last level's context, mean and variance, (pairs, 2).
    """
    n_stages = len(model.prior.mean)
    found = np.zeros((len(student), 2 + model.students.mean.shape[1]), np.float32)
    places = [find_ids(ids, context[:, depth]) for depth, ids in enumerate(model.context_ids)]
    labels = [place * np.int32(n_stages) + np.int32(stage) for place in places]
    nodes = blocks.find_nodes(model.levels, student, labels)
    for node, own, prior in zip(nodes, model.effects, model.variance, strict=True):
        is_there = node >= 0
        found[is_there] = own[node[is_there]]
        found[~is_there, 1] += np.float32(prior[stage])
    shared = [values[labels[-1]] for values in (model.shared.mean, model.shared.variance)]
    return found, np.stack(shared, axis=1)
