"""From a fitted model to predictions, for any pair of a student and a question."""

from dataclasses import dataclass

from common.answers import find_ids
from common.errors import InputError
from common.item_response.blocks import in_threads, logit_moments
from common.item_response.model import Effects, FloatArray, IntArray, State, expected_probability
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
    return predict_stages(model, student, question, context)[0]


def predict_stages(
    model: ItemResponseModel, student: IntArray, question: IntArray, context: IntArray | None
) -> list[FloatArray]:
    """Return the probability of passing each stage, once it is reached; else as `predict`."""
    if context is None and model.levels:
        raise InputError("the answers of the fit had contexts, expected those of the pairs as well")
    place, item = find_ids(model.student_ids, student), find_ids(model.question_ids, question)
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
    order, *_ = sort_answers(student, [], len(model.student_ids) + 1)

    def work(part: tuple[int, IntArray]) -> FloatArray:
        stage, pairs = part
        of_stage = item[pairs] + np.int32(stage * n_items)
        effects = None
        if model.levels:
            assert context is not None
            effects = find_effects(model, student[pairs], context[pairs], stage)
        moments = logit_moments(model.students, model.items, student[pairs], of_stage, effects)
        knows = expected_probability(*moments)
        knows += model.guessing[of_stage] * (1 - knows)
        return knows

    parts = [order[i : i + _PAIRS_AT_ONCE] for i in range(0, len(order), _PAIRS_AT_ONCE)]
    passing = []
    for stage in range(len(model.prior)):
        probability = np.empty(len(order), np.float32)
        found = in_threads(work, [(stage, pairs) for pairs in parts])
        for pairs, own in zip(parts, found, strict=True):
            probability[pairs] = own
        passing.append(probability)
    return passing


def find_effects(
    model: ItemResponseModel,
    student: IntArray,
    context: IntArray,
    stage: int = 0,
    *,
    with_shared: bool = True,
) -> Effects:
    """Return the total effects of pairs of students, by their places, and contexts.

    They are those at the last node on the way from the student down to the context that has
    answers; further down, effects are only known to vary. What students share is added, if asked.
    """
    n_stages, n = len(model.prior), len(student)
    mean, variance = np.zeros((2, n), np.float32)
    found = Effects(mean, variance, np.zeros((n, model.students.mean.shape[1]), np.float32))
    labels = [
        find_ids(ids, context[:, depth]) * np.int32(n_stages) + np.int32(stage)
        for depth, ids in enumerate(model.context_ids)
    ]
    nodes = find_nodes(model.levels, student, labels)
    for node, own, prior in zip(nodes, model.effects, model.variance, strict=True):
        is_there = node >= 0
        for values, source in zip(found, own, strict=True):
            values[is_there] = source[node[is_there]]
        variance[~is_there] += prior.astype(np.float32)[stage]
    if with_shared:
        mean += model.shared.mean[labels[-1]]
        variance += model.shared.variance[labels[-1]]
    return found
