"""What students are expected to know of each subject, by an estimator whose contexts are subjects.

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
from common.item_response.context import EFFECT_COVARIANCES, EFFECT_MEAN, EFFECT_VARIANCE
from common.item_response.model import expected_probability
from common.item_response.steps import Posterior

import numpy as np
import pandas as pd

# At most this many questions stand for all questions of a subject.
_MAX_QUESTIONS = 20
# Ends of the interval that holds 90 % of a normal distribution, in standard deviations.
_QUANTILE = 1.645
# Rows of one subject that are computed at a time.
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class _Shares:
    """Expected shares of right answers at some nodes: mean and variance, shape (nodes,)."""

    mean: FloatArray
    variance: FloatArray


def find_mastery(posterior: Posterior, subject: IntArray) -> pd.DataFrame:
    """Return what each student is expected to know of each subject with answers of the student.

    `ItemResponse.mastery` explains the table. `subject` has a row for each of
    `posterior.question_ids`, and a column for each level of contexts of the fit.
    """
    # In each subject of the last level, all students share an effect. It belongs to the subject's
    # questions, and so is a part of their easiness.
    shared = posterior.shared.mean[find_ids(posterior.context_ids[-1], subject[:, -1])]
    intercept = posterior.items.mean[:-1, -1] + shared
    levels = []
    student: IntArray = np.zeros(0, np.int64)
    for number, level in enumerate(posterior.levels):
        # The parents of the first level's nodes are the students.
        student = level.parent if number == 0 else student[level.parent]
        shares = _shares_by_effect(posterior, number, student, subject[:, number], intercept)
        levels.append((student, shares))

    tables = []
    below: pd.DataFrame | None = None
    for number in reversed(range(len(levels))):
        student, shares = levels[number]
        level = posterior.levels[number]
        subject_id = posterior.context_ids[number][level.label]
        n_questions = _count_questions(subject[:, number], subject_id)
        mean = shares.mean
        if below is not None:
            mean = _include_subjects_below(mean, n_questions, below)
        below = pd.DataFrame({"parent": level.parent, "n": n_questions, "mean": mean})
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


def _shares_by_effect(
    posterior: Posterior, level: int, student: IntArray, subject: IntArray, intercept: FloatArray
) -> _Shares:
    """Return the expected share at each node of a level, from the effect of that node alone.

    `student` is the position of each node's student, `subject` the subject of each question at this
    level, `intercept` the easiness of each question.
    """
    nodes = posterior.levels[level]
    effects = posterior.effects[level]
    mean = np.empty(len(nodes.label), np.float32)
    variance = np.empty(len(nodes.label), np.float32)
    order = np.argsort(nodes.label, kind="stable")
    bounds = np.searchsorted(nodes.label[order], np.arange(len(posterior.context_ids[level]) + 1))
    for number, subject_id in enumerate(posterior.context_ids[level]):
        questions = _representative_questions(np.flatnonzero(subject == subject_id), intercept)
        of_subject = order[bounds[number] : bounds[number + 1]]
        for begin in range(0, len(of_subject), _ROWS_AT_ONCE):
            rows = of_subject[begin : begin + _ROWS_AT_ONCE]
            shares = _expected_shares(
                posterior, student[rows], effects[rows], questions, intercept[questions]
            )
            mean[rows] = shares.mean
            variance[rows] = shares.variance
    return _Shares(mean, variance)


def _representative_questions(questions: IntArray, intercept: FloatArray) -> IntArray:
    """Return at most `_MAX_QUESTIONS` of the questions, evenly spaced by their easiness."""
    by_easiness = questions[np.argsort(intercept[questions], kind="stable")]
    n_chosen = min(len(questions), _MAX_QUESTIONS)
    # The middles of n equal parts of the order.
    position = (np.arange(n_chosen) + 0.5) * len(questions) / n_chosen
    representative: IntArray = by_easiness[position.astype(int)]
    return representative


def _expected_shares(
    posterior: Posterior,
    student: IntArray,
    effects: FloatArray,
    questions: IntArray,
    intercept: FloatArray,
) -> _Shares:
    """Return mean and variance of the share of right answers to some questions.

    `student` has the position of a student for each row. `effects` has the total effect of the row:
    mean, variance, covariance with each ability; it acts on all questions. `intercept` is the
    easiness of the questions.
    """
    ability = posterior.students.mean[student]
    covariance = posterior.students.covariance[student]
    slopes = posterior.items.mean[questions, :-1]
    guessing = posterior.guessing[questions]
    logit = ability @ slopes.T + intercept + effects[:, [EFFECT_MEAN]]
    # Variance of each logit, from the student, the effect and the question.
    variance = np.einsum("qi,nij,qj->nq", slopes, covariance, slopes, optimize=True)
    variance += effects[:, [EFFECT_VARIANCE]] + 2 * effects[:, EFFECT_COVARIANCES] @ slopes.T
    # How uncertain the question is, for an average student: abilities have the covariance I, so
    # this is the sum of the variances of the slopes and of the intercept.
    of_question = np.trace(posterior.items.covariance[questions], axis1=1, axis2=2)
    variance += of_question
    knows = expected_probability(logit, np.maximum(variance, 0))
    mean = (guessing + (1 - guessing) * knows).mean(axis=1)

    # The delta method: the derivative of the share in each logit, in the effect, in the abilities.
    derivative = (1 - guessing) * knows * (1 - knows) / len(questions)
    by_effect = derivative.sum(axis=1)
    by_ability = derivative @ slopes
    share_variance = (
        np.einsum("ni,nij,nj->n", by_ability, covariance, by_ability, optimize=True)
        + by_effect**2 * effects[:, EFFECT_VARIANCE]
        + 2 * by_effect * np.einsum("ni,ni->n", by_ability, effects[:, EFFECT_COVARIANCES])
        + np.einsum("nq,q->n", derivative**2, of_question)
    )
    return _Shares(mean, np.maximum(share_variance, 0))


def _count_questions(subject: IntArray, wanted: IntArray) -> IntArray:
    """Return the number of questions of each wanted subject."""
    subjects, counts = np.unique(subject, return_counts=True)
    count: IntArray = counts[np.searchsorted(subjects, wanted)]
    return count


def _include_subjects_below(
    mean: FloatArray, n_questions: IntArray, below: pd.DataFrame
) -> FloatArray:
    """Return the share of each node, with the subjects below it counted by their own shares.

    `mean` is the share by the node's own effect, which stands for the questions of subjects in
    which the student has no answers. `below` has the nodes of the next level: position of the
    parent, number of questions, share.
    """
    n_below = np.bincount(below["parent"], below["n"], minlength=len(mean))
    sum_below = np.bincount(below["parent"], below["n"] * below["mean"], minlength=len(mean))
    share: FloatArray = (sum_below + (n_questions - n_below) * mean) / n_questions
    return share.astype(np.float32)


def _interval(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the 90 % interval of shares; the interval is symmetric in the logit."""
    spread = mean * (1 - mean)
    logit = np.log(mean) - np.log1p(-mean)
    half_width = _QUANTILE * np.sqrt(variance) / spread
    low = 1 / (1 + np.exp(half_width - logit))
    high = 1 / (1 + np.exp(-half_width - logit))
    return low, high
