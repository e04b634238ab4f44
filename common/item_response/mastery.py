"""The mastery of subjects by students, from an estimator whose contexts are subjects.

Subjects form a tree, for instance areas of mathematics, and topics in them. If the path from the
area to the topic is the context of each answer, the effects of a student in contexts say in which
subjects the student is better or worse than the abilities tell. The variance of these effects is
estimated, so a subject with few answers is shrunk towards the subject above it.

The mastery of a subject is the share of the subject's questions that the student is expected to
answer correctly.
"""

from dataclasses import dataclass

from common.answers import find_ids
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.item_response.context import (
    EFFECT_COVARIANCES,
    EFFECT_MEAN,
    EFFECT_VARIANCE,
    Level,
)
from common.item_response.model import expected_probability
from common.item_response.significance import QUANTILE_90
from common.item_response.steps import Posterior

import numpy as np
import pandas as pd

# Mastery of a subject is the share of its questions that a student is expected to answer correctly.
# To save time, this share is computed from at most this many of the questions.
_MAX_QUESTIONS = 20
# Largest number of students whose shares of one subject are computed at a time.
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class _Shares:
    """Expected shares of right answers at some nodes: mean and variance, shape (nodes,)."""

    mean: FloatArray
    variance: FloatArray


def find_mastery(posterior: Posterior, subject: IntArray) -> pd.DataFrame:
    """Return what students are expected to know of the subjects in which they have answers.

    `ItemResponse.mastery` explains the table. `posterior` is the posterior of a fit whose contexts
    are subjects: a level of contexts is a level of subjects, the widest first. A node of a level is
    a student together with a subject in which the student has answers. The parent of the node is
    the same student together with the subject above it in the tree of subjects.

    `subject` has a row for each of `posterior.question_ids`, and a column for each level.
    """
    _require_questions(posterior, subject)
    easiness = _easiness_of_questions(posterior, subject)
    students = _students_of_nodes(posterior.levels)
    tables = []
    # Go from the narrowest subjects to the widest, since the share of a wide subject depends on the
    # shares of the subjects below it. `narrower` has a row for each node of the level below, which
    # the loop has handled before.
    narrower: pd.DataFrame | None = None
    for number, level in reversed(list(enumerate(posterior.levels))):
        # The student and the subject of each node, and the number of the subject's questions.
        student = students[number]
        subject_id = posterior.context_ids[number][level.label]
        n_questions = _count_questions(subject[:, number], subject_id)
        shares = _shares_by_own_effects(posterior, number, student, subject[:, number], easiness)
        mean = shares.mean
        if narrower is not None:
            # For questions of a narrower subject in which the student has answers, use the share of
            # the narrower subject.
            mean = _include_subjects_below(mean, n_questions, narrower)
        narrower = pd.DataFrame({"parent": level.parent, "n": n_questions, "mean": mean})
        low, high = _interval(mean, shares.variance)
        tables.append(
            pd.DataFrame(
                {
                    "student": posterior.student_ids[student],
                    "level": np.int8(number),
                    "subject": subject_id,
                    "n_answers": np.diff(level.start).astype(np.int32),
                    "share": mean,
                    "low": low,
                    "high": high,
                }
            )
        )
    table = pd.concat(tables, ignore_index=True)
    return table.sort_values(["student", "level", "subject"], ignore_index=True)


def _require_questions(posterior: Posterior, subject: IntArray) -> None:
    """Raise `InputError` if students have answers in a subject that no question has.

    `subject` holds the subjects of all questions, with a column for each level of subjects.
    """
    for number, level in enumerate(posterior.levels):
        answered = posterior.context_ids[number][level.label]
        is_missing = ~np.isin(answered, subject[:, number])
        if is_missing.any():
            raise InputError(
                f"students have answers in subject {answered[is_missing][0]}, which is not among "
                f"the subjects of the questions at level {number}, expected the subjects of every "
                "answer's question"
            )


def _easiness_of_questions(posterior: Posterior, subject: IntArray) -> FloatArray:
    """Return how easy each question is for an average student, as a logit.

    It is the intercept of the question, plus the shared effect of the question's narrowest subject.
    A shared effect says how much easier the questions of a subject are, for all students, than
    their intercepts tell. `subject` has a row for each question, and a column for each level of
    subjects, the widest first.
    """
    # `shared.mean` has the shared effect of each of the narrowest subjects, in the order of their
    # ids in `context_ids[-1]`. `find_ids` finds the position of each question's subject among them.
    shared_effect = posterior.shared.mean[find_ids(posterior.context_ids[-1], subject[:, -1])]
    # The last row of `items.mean` stands for unknown questions: leave it out. The last column is
    # the intercept.
    easiness: FloatArray = posterior.items.mean[:-1, -1] + shared_effect
    return easiness


def _students_of_nodes(levels: tuple[Level, ...]) -> list[IntArray]:
    """Return the student of each node: for each level, positions in `Posterior.student_ids`.

    A node is a student together with a subject in which the student has answers.
    """
    # The parents of the first level's nodes are the students.
    students = [levels[0].parent]
    for level in levels[1:]:
        # The student of a node is the student of its parent.
        students.append(students[-1][level.parent])
    return students


def _shares_by_own_effects(
    posterior: Posterior, level: int, student: IntArray, subject: IntArray, easiness: FloatArray
) -> _Shares:
    """Return the share of a subject's questions that a student is expected to answer correctly.

    There is a share for each node of one level of subjects. The effect of a node says how much
    better the student is in the subject than the abilities tell. It is applied to all questions of
    the subject: effects in narrower subjects do not count here. At most `_MAX_QUESTIONS` questions
    represent all questions of a subject.

    Parameters
    ----------
    posterior
        The posterior of a fit whose contexts are subjects. A node of the level is a student
        together with a subject in which the student has answers.
    level
        The number of the level.
    student
        The position of each node's student in `posterior.student_ids`.
    subject
        The subject of each question at this level.
    easiness
        The easiness of each question, as a logit.
    """
    # For each node, a student together with a subject, the position of the subject in
    # `subject_ids`.
    subject_of_node = posterior.levels[level].label
    subject_ids = posterior.context_ids[level]
    effects = posterior.effects[level]
    mean = np.empty(len(subject_of_node), np.float32)
    variance = np.empty(len(subject_of_node), np.float32)
    # Sort the nodes by subject, and find where each subject begins. The nodes of subject i are
    # order[bounds[i] : bounds[i + 1]].
    order = np.argsort(subject_of_node, kind="stable")
    bounds = np.searchsorted(subject_of_node[order], np.arange(len(subject_ids) + 1))
    for i, subject_id in enumerate(subject_ids):
        questions = _representative_questions(np.flatnonzero(subject == subject_id), easiness)
        nodes_of_subject = order[bounds[i] : bounds[i + 1]]
        # To save memory, compute the shares of at most `_ROWS_AT_ONCE` nodes at a time.
        for begin in range(0, len(nodes_of_subject), _ROWS_AT_ONCE):
            nodes = nodes_of_subject[begin : begin + _ROWS_AT_ONCE]
            shares = _expected_shares(
                posterior, student[nodes], effects[nodes], questions, easiness[questions]
            )
            mean[nodes] = shares.mean
            variance[nodes] = shares.variance
    return _Shares(mean, variance)


def _representative_questions(questions: IntArray, easiness: FloatArray) -> IntArray:
    """Return at most `_MAX_QUESTIONS` of the questions, evenly spaced in order of easiness."""
    by_easiness = questions[np.argsort(easiness[questions], kind="stable")]
    n_chosen = min(len(questions), _MAX_QUESTIONS)
    # Cut the order into equal parts and take the question in the middle of each part.
    position = (np.arange(n_chosen) + 0.5) * len(questions) / n_chosen
    representative: IntArray = by_easiness[position.astype(int)]
    return representative


def _expected_shares(
    posterior: Posterior,
    student: IntArray,
    effects: FloatArray,
    questions: IntArray,
    easiness: FloatArray,
) -> _Shares:
    """Return mean and variance of each student's expected share of right answers to some questions.

    For each student and question,

        logit = slopes · ability + effect + easiness,
        P(right) = guessing + (1 − guessing) sigmoid(logit).

    The questions have a subject in common. The effect says how much better the student is in this
    subject than the abilities tell. The share is the mean of P(right) over the questions. It is
    uncertain because the ability, the effect and the parameters of the questions are.

    Parameters
    ----------
    posterior
        The posterior of the fit.
    student
        The position of each student in the posterior, shape (students,).
    effects
        The effect of each student, the same for all questions: posterior mean, variance, and
        covariance with each of the k abilities, shape (students, 2 + k).
    questions
        The positions of the questions in the posterior.
    easiness
        The easiness of these questions.
    """
    ability = posterior.students.mean[student]
    ability_covariance = posterior.students.covariance[student]
    slopes = posterior.items.mean[questions, :-1]
    guessing = posterior.guessing[questions]
    # The slopes and the intercept of a question are uncertain, which adds this variance to the
    # logit. For an average student, whose abilities are N(0, I), it is the sum of the variances of
    # the slopes and of the intercept.
    question_variance = np.trace(posterior.items.covariance[questions], axis1=1, axis2=2)

    logit = ability @ slopes.T + easiness + effects[:, [EFFECT_MEAN]]
    # The variance of slopes · ability + effect, for each student n and question q, is
    #     slopesᵀ Cov[ability] slopes + Var[effect] + 2 Cov[effect, ability] · slopes.
    # The next line computes the first term, in which i and j number the abilities. The line after
    # it adds the other two terms.
    variance = np.einsum("qi,nij,qj->nq", slopes, ability_covariance, slopes, optimize=True)
    variance += effects[:, [EFFECT_VARIANCE]] + 2 * effects[:, EFFECT_COVARIANCES] @ slopes.T
    variance += question_variance
    p_knows = expected_probability(logit, np.maximum(variance, 0))
    share = (guessing + (1 - guessing) * p_knows).mean(axis=1)

    # The derivative of each student's share by the logit of each question, shape (students,
    # questions).
    by_logit = (1 - guessing) * p_knows * (1 - p_knows) / len(questions)
    share_variance = _variance_of_shares(
        by_logit, slopes, ability_covariance, effects, question_variance
    )
    return _Shares(share, np.maximum(share_variance, 0))


def _variance_of_shares(
    by_logit: FloatArray,
    slopes: FloatArray,
    ability_covariance: FloatArray,
    effects: FloatArray,
    question_variance: FloatArray,
) -> FloatArray:
    """Return the variance of each student's share of right answers, by the delta method.

    Near its mean, the share is a linear function of the logits slopes · ability + effect +
    easiness, one for each question. The result is the variance of this linear function.

    Parameters
    ----------
    by_logit
        The derivative of the share by the logit of each question, shape (students, questions).
    slopes
        Shape (questions, k).
    ability_covariance
        Posterior covariance of the k abilities, shape (students, k, k).
    effects
        The effect of each student, the same for all questions: mean, variance and covariance with
        each ability, shape (students, 2 + k).
    question_variance
        The variance that each question adds to its logit, shape (questions,).
    """
    # The effect and the abilities enter the logits of all questions. So the derivative of the share
    # by the effect, or by an ability, is a sum over the questions. The derivative of a logit by the
    # effect is 1. The derivative by an ability is the slope on this ability.
    by_effect = by_logit.sum(axis=1)
    by_ability = by_logit @ slopes
    variance: FloatArray = (
        # The variance of the part that depends on the abilities.
        np.einsum("ni,nij,nj->n", by_ability, ability_covariance, by_ability, optimize=True)
        # The variance of the part that depends on the effect.
        + by_effect**2 * effects[:, EFFECT_VARIANCE]
        # The variance of a sum also contains twice the covariance of the two parts above.
        + 2 * by_effect * np.einsum("ni,ni->n", by_ability, effects[:, EFFECT_COVARIANCES])
        # The variances from the uncertain slopes and intercepts, which are independent of each
        # other.
        + np.einsum("nq,q->n", by_logit**2, question_variance)
    )
    return variance


def _count_questions(subject: IntArray, wanted: IntArray) -> IntArray:
    """Return the number of questions of each wanted subject."""
    subjects, counts = np.unique(subject, return_counts=True)
    count: IntArray = counts[np.searchsorted(subjects, wanted)]
    return count


def _include_subjects_below(
    mean: FloatArray, n_questions: IntArray, below: pd.DataFrame
) -> FloatArray:
    """Return the expected share of right answers at each node, a mean over the node's questions.

    A node is a student together with a subject in which the student has answers. If the student
    also has answers in a narrower subject below this subject, the questions of the narrower subject
    count with the share that is expected there. All other questions count with `mean`.

    Parameters
    ----------
    mean
        The share at each node if the effect of its own subject counts for all questions of the
        subject, shape (nodes,).
    n_questions
        The number of questions of each node's subject.
    below
        A row for each node of the next narrower level: `parent` is the position of its parent among
        the nodes, `n` its number of questions, and `mean` its expected share.
    """
    n_below = np.bincount(below["parent"], below["n"], minlength=len(mean))
    sum_below = np.bincount(below["parent"], below["n"] * below["mean"], minlength=len(mean))
    share: FloatArray = (sum_below + (n_questions - n_below) * mean) / n_questions
    return share.astype(np.float32)


def _interval(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the low and high ends of the 90 % intervals of shares.

    The interval is symmetric around the logit of the mean, and so it lies between 0 and 1.
    """
    logit = np.log(mean) - np.log1p(-mean)
    # The derivative of a share by its logit is share · (1 − share). Near the mean, the deviation of
    # the logit is the deviation of the share, divided by this derivative (delta method).
    share_by_logit = mean * (1 - mean)
    half_width = QUANTILE_90 * np.sqrt(variance) / share_by_logit
    # Turn the ends logit − half_width and logit + half_width into shares by the sigmoid,
    # 1 / (1 + exp(−end)).
    low = 1 / (1 + np.exp(half_width - logit))
    high = 1 / (1 + np.exp(-half_width - logit))
    return low, high
