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
    """Return a posterior of right and wrong answers that needs no contexts to predict.

    The result predicts as `posterior` does if the context is unknown. Such a prediction treats the
    effects of contexts on the logit as noise, whose variance is the prior variance of the effects.

    `posterior` may come from a model of options, which predicts in stages (see MODEL.md). The
    result keeps only the first stage, right or wrong.
    """
    # An item is a question in one stage. Keep the items of the first stage, which come first. The
    # last item of a stage stands for unknown questions.
    n_items = len(posterior.question_ids) + 1
    items = posterior.items.take(slice(n_items))
    covariance = items.covariance.copy()
    # There are no levels if the fit used no contexts.
    if posterior.levels:
        # At each level of contexts, the logit of an answer contains an effect of the student in the
        # answer's context. It also contains an effect that all students share in the context. Add
        # up the prior variances of all these effects in the first stage (index 0).
        student_variance = posterior.variance[:, 0].sum()
        shared_variance = posterior.shared.prior[0]
        # The last parameter of an item is the intercept. The logit is the sum of the intercept, the
        # effects and other parts. So add the variance of the effects to the variance of the
        # intercept: this has the same influence on predictions.
        covariance[:, -1, -1] += student_variance + shared_variance
    return Posterior(
        students=posterior.students,
        items=Gaussians(items.mean, covariance),
        prior=posterior.prior.take(slice(1)),
        guessing=posterior.guessing[:n_items],
        student_ids=posterior.student_ids,
        question_ids=posterior.question_ids,
    )


def add_subjects(posterior: Posterior, student: IntArray, subject: IntArray) -> Posterior:
    """Return a posterior whose contexts are the subjects of answers, and whose effects are 0.

    `mastery.find_mastery` needs a posterior whose contexts are subjects. It finds what a student
    knows of a subject from two things: the student's abilities, and an effect that says how much
    better the student is in this subject than the abilities tell. With effects of 0, only the
    abilities count.

    Parameters
    ----------
    posterior
        A posterior without contexts.
    student
        The position of each answer's student in `posterior.student_ids`, shape (answers,).
    subject
        The subjects of each answer, shape (answers, levels), the widest subjects first.
    """
    subject_ids = []
    subject_numbers = []
    for subject_of_level in subject.T:
        ids, number = number_ids(subject_of_level)
        subject_ids.append(ids)
        subject_numbers.append(number)
    # Each level has a node for each student and each subject in which the student has answers.
    _, _, levels = sort_answers(student, subject_numbers, len(posterior.student_ids))
    # Each node gets an effect of 0. A row describes the effect of one node by its mean, its
    # variance, and its covariance with each of the k abilities.
    k = posterior.students.mean.shape[1]
    effects = tuple(np.zeros((len(level.label), 2 + k), np.float32) for level in levels)
    # A posterior also has effects that all students share: one for each of the narrowest subjects,
    # and one for all unknown subjects. These effects are 0 too.
    n_shared = len(subject_ids[-1]) + 1
    # The prior variances are 0 as well: `variance` holds those of the effects of nodes, and `prior`
    # that of the shared effects. Right and wrong answers have a single stage (see MODEL.md), so a
    # single value is needed for each level, and one for the shared effects.
    return replace(
        posterior,
        context_ids=tuple(subject_ids),
        levels=levels,
        effects=effects,
        variance=np.zeros((len(levels), 1)),
        shared=SharedEffects(
            mean=np.zeros(n_shared, np.float32),
            variance=np.zeros(n_shared, np.float32),
            prior=np.zeros(1),
        ),
    )
