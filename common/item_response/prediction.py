"""Predict the answer to any pair of a student and a question from a posterior."""

from dataclasses import dataclass

from common.answers import find_ids
from common.arrays import FloatArray, IntArray
from common.item_response.context import (
    EFFECT_MEAN,
    EFFECT_MEAN_AND_VARIANCE,
    EFFECT_VARIANCE,
    make_label,
)
from common.item_response.model import expected_probability
from common.item_response.observations import find_nodes, sort_answers
from common.item_response.steps import Posterior, logit_moments
from common.threads import run_in_threads

import numpy as np

# Largest number of pairs that one thread predicts at a time.
_PAIRS_AT_ONCE = 1 << 19


def predict_stages(
    posterior: Posterior, student: IntArray, question: IntArray, context: IntArray
) -> FloatArray:
    """Return the probability of passing each stage if it is reached, shape (pairs, stages).

    The answer to a question goes through stages, one after the other, and ends at the first stage
    that it passes (see MODEL.md). If answers are right or wrong, there is one stage, which a right
    answer passes.

    `student`, `question` and `context` hold ids; `context` has the shape (pairs, levels). An
    unknown student or question counts as an average one, and is as uncertain as if it were drawn at
    random from all students or questions.
    """
    # `find_ids` gives an unknown id the position after the last id. In the posterior, this is the
    # position of the average student and of the average question.
    student_position = find_ids(posterior.student_ids, student)
    question_position = find_ids(posterior.question_ids, question)
    n_questions = len(posterior.question_ids) + 1
    # The result: the probability that the answer of each pair (row) passes each stage (column) if
    # it reaches the stage.
    passing = np.empty((len(student), posterior.n_stages), np.float32)

    def predict_pairs(pairs: IntArray) -> None:
        """Predict the pairs at the positions `pairs`; write the results into `passing`.

        The positions are in the order of the pairs' students.
        """
        student_of_pair = student_position[pairs]
        question_of_pair = question_position[pairs]
        # The students of these pairs lie in a range from `first_student` to `last_student`. If
        # there are no pairs, the values of `initial` make the range empty.
        first_student = student_of_pair.min(initial=len(posterior.student_ids))
        last_student = student_of_pair.max(initial=0)
        students = posterior.students.take(slice(first_student, last_student + 1))
        for stage in range(posterior.n_stages):
            effects = None
            if posterior.levels:
                effects = _effects_on_logits(posterior, student_of_pair, context[pairs], stage)
            # Each question has its own parameters in each stage: a question in one stage is an
            # item. The posterior holds the items of all questions in the first stage, then those in
            # the second stage, and so on.
            of_stage = slice(stage * n_questions, (stage + 1) * n_questions)
            items = posterior.items.take(of_stage)
            guessing = posterior.guessing[of_stage][question_of_pair]
            mean, variance = logit_moments(
                students, items, student_of_pair - first_student, question_of_pair, effects
            )
            p_knows = expected_probability(mean, variance)
            passing[pairs, stage] = p_knows + guessing * (1 - p_knows)

    # Sort the pairs by student, so that each call of `predict_pairs` needs the posteriors of a
    # small range of students only.
    order, *_ = sort_answers(student_position, [], len(posterior.student_ids) + 1)
    # At most `_PAIRS_AT_ONCE` pairs in each part. An even number of parts keeps two threads equally
    # busy.
    n_parts = 2 * (len(order) // (2 * _PAIRS_AT_ONCE) + 1)
    run_in_threads(predict_pairs, np.array_split(order, n_parts))
    return passing


def _effects_on_logits(
    posterior: Posterior, student_position: IntArray, context: IntArray, stage: int
) -> FloatArray:
    """Return by how much the context of each pair changes its logit, shape (pairs, 2 + k).

    A context is where an answer is given, such as a quiz. The change is the sum of two effects:
    that of the student alone in this context, and that of all students in it. The columns are the
    mean of the change, its variance and its covariances with the k abilities. The parameters are
    those of `find_effects`.
    """
    effects, shared = find_effects(posterior, student_position, context, stage)
    # The effect that all students share is independent of the effect of the single student. So the
    # means of the two effects add up, and so do their variances. The covariances with the student's
    # abilities stay those of the student's effect.
    effects[:, EFFECT_MEAN_AND_VARIANCE] += shared
    return effects


def outcome_probability(passing: FloatArray, n_outcomes: IntArray | None = None) -> FloatArray:
    """Return the probability of every outcome, shape (pairs, stages + 1); rows sum to 1.

    An answer goes through stages, one after the other, until it passes a stage ("stick breaking").
    Its outcome s means that it does not pass the first s stages, but passes the next one. The last
    outcome means that it passes no stage. `passing` has the probability of passing each stage if it
    is reached, shape (pairs, stages).

    `n_outcomes` is the number of outcomes that are possible for each pair, shape (pairs,). By
    default, all outcomes are possible.
    """
    if n_outcomes is not None:
        # A pair with n outcomes has the stages 0 to n − 2. An answer that passes none of these
        # stages has the last outcome, as if it passed the next stage for certain.
        n_stages_of_pair = n_outcomes[:, None] - 1
        stage = np.arange(passing.shape[1])
        is_beyond_last_stage = stage >= n_stages_of_pair
        passing = np.where(is_beyond_last_stage, np.float32(1), passing)
    one = np.ones((len(passing), 1), np.float32)
    # Column s of `reached` is the probability that the first s stages are not passed.
    reached = np.hstack([one, 1 - passing]).cumprod(axis=1)
    # Outcome s also requires that stage s is passed. After the last stage there is no further
    # condition, so the last column is multiplied by 1.
    outcome: FloatArray = reached * np.hstack([passing, one])
    return outcome


@dataclass(frozen=True)
class LogitParts:
    """The parts of the logits of pairs of a student and a question, float32, shape (pairs,)."""

    # Posterior mean and variance of slopes · ability + intercept.
    mean: FloatArray
    variance: FloatArray
    # Posterior mean and variance of the effect of the context, such as a quiz: by how much the
    # logit is higher in this context. The effect is the sum of a part of the student alone and a
    # part that all students share.
    effect: FloatArray
    effect_variance: FloatArray
    # Posterior mean of the part of the effect that belongs to the student alone.
    student_effect: FloatArray
    # Posterior mean of the question's intercept.
    easiness: FloatArray
    # Posterior mean of the student's first ability.
    ability: FloatArray
    # Euclidean norm of the question's slopes.
    slope: FloatArray


def explain(
    posterior: Posterior, student: IntArray, question: IntArray, context: IntArray
) -> LogitParts:
    """Return the parts of the logit of each pair of a student and a question.

    The probability of a right answer depends on

        logit = slopes · ability + intercept + effect of the context.

    A context is where the answer is given, such as a quiz. Its effect is the sum of a student
    effect, which the student alone has in the context, and of a shared effect, which all students
    have there. Without contexts, both are 0. The posterior must come from a fit to right and wrong
    answers, not to chosen options.

    Parameters
    ----------
    posterior
        The posterior of a fit.
    student, question
        Ids, shape (pairs,).
    context
        Ids, shape (pairs, levels).
    """
    student_position = find_ids(posterior.student_ids, student)
    question_position = find_ids(posterior.question_ids, question)
    mean, variance = logit_moments(
        posterior.students, posterior.items, student_position, question_position
    )
    # For each pair, the mean and the variance (columns) of the student's own effect in the pair's
    # context, and of the effect that all students share in this context. Without contexts, both
    # stay 0.
    student_effect: FloatArray = np.zeros((len(student), 2), np.float32)
    shared_effect: FloatArray = np.zeros((len(student), 2), np.float32)
    if posterior.levels:
        effects, shared_effect = find_effects(posterior, student_position, context)
        # A copy, since a view would keep the other columns in memory: the covariances of the
        # student effect with the abilities.
        student_effect = effects[:, EFFECT_MEAN_AND_VARIANCE].copy()
    # The student effect and the shared effect are independent, so their means add up, and so do
    # their variances.
    effect_mean, effect_variance = (student_effect + shared_effect).T
    # The last column of the posterior means is the question's intercept, the others are its slopes.
    slopes = posterior.items.mean[:, :-1]
    intercept = posterior.items.mean[:, -1]
    return LogitParts(
        mean=mean,
        variance=variance,
        effect=effect_mean,
        effect_variance=effect_variance,
        student_effect=student_effect[:, EFFECT_MEAN],
        easiness=intercept[question_position],
        ability=posterior.students.mean[student_position, 0],
        slope=np.linalg.norm(slopes, axis=1)[question_position],
    )


def find_effects(
    posterior: Posterior, student_position: IntArray, context: IntArray, stage: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return how contexts change the logits of pairs of a student and a question.

    The question of a pair has a context on each level, such as a topic and a quiz (MODEL.md
    explains levels). The student has an effect in each of these contexts, and the student effect of
    the pair is their sum. An effect in a context in which the student has no answers is N(0, prior
    variance of the level). All students share a further effect in the context of the last level.

    Parameters
    ----------
    posterior
        A posterior with at least one level of contexts.
    student_position
        The position of each pair's student in the posterior, shape (pairs,).
    context
        Ids of contexts, shape (pairs, levels), the coarsest level first.
    stage
        Effects differ between the stages of a question (see MODEL.md); right and wrong answers have
        the stage 0 alone.

    Returns
    -------
    effects : array of float32, shape (pairs, 2 + k)
        The student effect: mean, variance, and covariance with each of the k abilities.
    shared : array of float32, shape (pairs, 2)
        Mean and variance of the effect that all students share in the context of the last level.
    """
    k = posterior.students.mean.shape[1]
    effects = np.zeros((len(student_position), 2 + k), np.float32)
    # For each level of contexts, the labels of the pairs. A label is one number that stands for the
    # context of a pair and the stage (see `make_label`).
    labels = []
    for level, ids in enumerate(posterior.context_ids):
        context_number = find_ids(ids, context[:, level])
        labels.append(make_label(context_number, np.int32(stage), posterior.n_stages))
    # `posterior.effects` holds an array for each level, from the coarsest to the finest, with a row
    # for each student and context in which the student has answers. For each level, find the row
    # that belongs to each pair. The row is −1 if the student has no answers in the context.
    rows_by_level = find_nodes(posterior.levels, student_position, labels)
    for row, level_effects, prior_variance in zip(
        rows_by_level, posterior.effects, posterior.variance, strict=True
    ):
        has_answers = row >= 0
        # A row of `level_effects` already includes the student's effects on the coarser levels. So
        # it replaces the row of the level before, and is not added to it.
        effects[has_answers] = level_effects[row[has_answers]]
        # If the student has no answers in a context, the effect in this context has its prior
        # distribution: mean 0, and the prior variance of the level.
        effects[~has_answers, EFFECT_VARIANCE] += np.float32(prior_variance[stage])
    # The shared effects are stored in the order of the labels of the last level. So the label is
    # the position of the effect.
    shared_position = labels[-1]
    shared = np.stack(
        [posterior.shared.mean[shared_position], posterior.shared.variance[shared_position]], axis=1
    )
    return effects, shared
