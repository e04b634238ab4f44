"""A fitted posterior for answers whose contexts the fit has not met.

The sample models fit effects of quizzes. But the share of a subject that a student knows, for
instance, does not depend on single quizzes. So the effects are replaced by noise: each answer gets
an effect of its own, with the mean 0 and the variance of all effects together.
"""

from dataclasses import replace

from common.answers import number_ids
from common.arrays import IntArray
from common.item_response.context import SharedEffects
from common.item_response.model import Gaussians
from common.item_response.observations import sort_answers
from common.item_response.steps import Posterior

import numpy as np


def without_contexts(posterior: Posterior) -> Posterior:
    """Return a posterior of right and wrong answers without contexts.

    It predicts as `posterior` does for unknown contexts. The stages of a question after the first
    one, which tell the wrong options apart, are left out.
    """
    n_items = len(posterior.question_ids) + 1
    items = posterior.items.take(slice(n_items))
    covariance = items.covariance.copy()
    if posterior.levels:
        # Add the variance of the effects to that of the intercept: predictions change in the same
        # way.
        covariance[:, -1, -1] += posterior.variance[:, 0].sum() + posterior.shared.prior[0]
    return Posterior(
        students=posterior.students,
        items=Gaussians(items.mean, covariance),
        prior=posterior.prior.take(slice(1)),
        guessing=posterior.guessing[:n_items],
        student_ids=posterior.student_ids,
        question_ids=posterior.question_ids,
    )


def add_subjects(posterior: Posterior, student: IntArray, subject: IntArray) -> Posterior:
    """Return a posterior whose contexts are the subjects of answers, all without effects.

    With this, `mastery.find_mastery` rests on the abilities alone.

    Parameters
    ----------
    posterior
        A posterior without contexts.
    student
        The position of each answer's student in `posterior.student_ids`, shape (answers,).
    subject
        The subjects of each answer, shape (answers, levels), the widest subjects first.
    """
    numbered = [number_ids(column) for column in subject.T]
    labels = [label for _, label in numbered]
    _, _, levels = sort_answers(student, labels, len(posterior.student_ids))
    k = posterior.students.mean.shape[1]
    n_subjects = len(numbered[-1][0])
    return replace(
        posterior,
        context_ids=tuple(ids for ids, _ in numbered),
        levels=levels,
        effects=tuple(np.zeros((len(level.label), 2 + k), np.float32) for level in levels),
        variance=np.zeros((len(levels), 1)),
        shared=SharedEffects(
            mean=np.zeros(n_subjects + 1, np.float32),
            variance=np.zeros(n_subjects + 1, np.float32),
            prior=np.zeros(1),
        ),
    )
