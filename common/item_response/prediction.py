"""Predict the answer to any pair of a student and a question from a posterior."""

from dataclasses import dataclass

from common.answers import find_ids
from common.arrays import FloatArray, IntArray
from common.item_response.model import expected_probability
from common.item_response.observations import find_nodes, sort_answers
from common.item_response.steps import Posterior, logit_moments
from common.threads import in_threads

import numpy as np

# Largest number of pairs that one thread predicts at a time.
_PAIRS_AT_ONCE = 1 << 19


def predict_stages(
    posterior: Posterior, student: IntArray, question: IntArray, context: IntArray
) -> FloatArray:
    """Return the probability of passing each stage if it is reached, shape (pairs, stages).

    `student` and `question` are ids, `context` holds labels, shape (pairs, levels). An unknown
    student or question counts as average, with the variance of all students or questions.
    """
    # `find_ids` gives an unknown id the position after the last id. There is the average student or
    # question.
    student_position = find_ids(posterior.student_ids, student)
    question_position = find_ids(posterior.question_ids, question)
    n_questions = len(posterior.question_ids) + 1
    passing = np.empty((len(student), posterior.n_stages), np.float32)

    def predict_pairs(pairs: IntArray) -> None:
        student_of_pair = student_position[pairs]
        question_of_pair = question_position[pairs]
        # `order` below sorts the pairs by student, so these pairs need only a range of students.
        first = student_of_pair.min(initial=len(posterior.student_ids))
        last = student_of_pair.max(initial=0)
        students = posterior.students.take(slice(first, last + 1))
        for stage in range(posterior.n_stages):
            effects = None
            if posterior.levels:
                effects, shared = find_effects(posterior, student_of_pair, context[pairs], stage)
                effects[:, :2] += shared
            of_stage = slice(stage * n_questions, (stage + 1) * n_questions)
            items = posterior.items.take(of_stage)
            guessing = posterior.guessing[of_stage][question_of_pair]
            mean, variance = logit_moments(
                students, items, student_of_pair - first, question_of_pair, effects
            )
            p_knows = expected_probability(mean, variance)
            passing[pairs, stage] = p_knows + guessing * (1 - p_knows)

    # In the order of students, the posteriors that are read lie close together in memory.
    order, *_ = sort_answers(student_position, [], len(posterior.student_ids) + 1)
    # An even number of parts, of at most `_PAIRS_AT_ONCE` pairs each.
    n_parts = 2 * (len(order) // (2 * _PAIRS_AT_ONCE) + 1)
    for _ in in_threads(predict_pairs, np.array_split(order, n_parts)):
        pass
    return passing


def outcome_probability(passing: FloatArray) -> FloatArray:
    """Return the probability of every outcome from those of passing each stage; rows sum to 1.

    Outcome s means that the first s stages are not passed, and the next one is, if there is one
    ("stick breaking").
    """
    one = np.ones((len(passing), 1), np.float32)
    reached = np.hstack([one, 1 - passing]).cumprod(axis=1)
    outcome: FloatArray = reached * np.hstack([passing, one])
    return outcome


@dataclass(frozen=True)
class LogitParts:
    """The parts of the logits of pairs, float32, shape (pairs,)."""

    # Posterior mean and variance of slopes · ability + intercept.
    mean: FloatArray
    variance: FloatArray
    # Posterior mean and variance of the sum of the student's and the shared effect of the context.
    effect: FloatArray
    effect_variance: FloatArray
    # Posterior mean of the student's part of `effect`, without the shared part.
    own_effect: FloatArray
    # Posterior mean of the question's intercept.
    easiness: FloatArray
    # Posterior mean of the student's first ability.
    ability: FloatArray
    # Euclidean norm of the question's slopes.
    slope: FloatArray


def explain(
    posterior: Posterior, student: IntArray, question: IntArray, context: IntArray
) -> LogitParts:
    """Return the parts of the predictions of right and wrong answers."""
    student_position = find_ids(posterior.student_ids, student)
    question_position = find_ids(posterior.question_ids, question)
    mean, variance = logit_moments(
        posterior.students, posterior.items, student_position, question_position
    )
    own: FloatArray = np.zeros((len(student), 2), np.float32)
    shared = own
    if posterior.levels:
        effects, shared = find_effects(posterior, student_position, context)
        # A copy, since a view would keep all covariances in memory.
        own = effects[:, :2].copy()
    effect = own + shared
    slope_norm = np.linalg.norm(posterior.items.mean[:, :-1], axis=1)
    return LogitParts(
        mean=mean,
        variance=variance,
        effect=effect[:, 0],
        effect_variance=effect[:, 1],
        own_effect=own[:, 0],
        easiness=posterior.items.mean[question_position, -1],
        ability=posterior.students.mean[student_position, 0],
        slope=slope_norm[question_position],
    )


def find_effects(
    posterior: Posterior, student_position: IntArray, context: IntArray, stage: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return the effects of the context of pairs, in one stage.

    Returns
    -------
    effects : array of float32, shape (pairs, 2 + k)
        Mean, variance, and covariance with the ability, of the student's total effect. Levels at
        which the student has no answers in the context add their prior variance.
    shared : array of float32, shape (pairs, 2)
        Mean and variance of the effect that students share in the last level's context.
    """
    k = posterior.students.mean.shape[1]
    effects = np.zeros((len(student_position), 2 + k), np.float32)
    labels = []
    for level, ids in enumerate(posterior.context_ids):
        position = find_ids(ids, context[:, level])
        labels.append(position * np.int32(posterior.n_stages) + np.int32(stage))
    nodes = find_nodes(posterior.levels, student_position, labels)
    # A node's total includes the levels above it. So the deepest node that is found counts, and
    # each level below adds its prior variance.
    for node, level_effects, prior in zip(
        nodes, posterior.effects, posterior.variance, strict=True
    ):
        has_answers = node >= 0
        effects[has_answers] = level_effects[node[has_answers]]
        effects[~has_answers, 1] += np.float32(prior[stage])
    shared = np.stack(
        [posterior.shared.mean[labels[-1]], posterior.shared.variance[labels[-1]]], axis=1
    )
    return effects, shared
