"""Answers that come after a fit: abilities of further students, and updates of a posterior.

Nothing here fits the model anew, so all of it takes milliseconds. Answers are right or wrong.
MODEL.md in this folder explains the words: items, contexts, levels, nodes, leaves.
"""

from dataclasses import dataclass, replace

from common.answers import find_ids, number_ids
from common.arrays import BoolArray, FloatArray, IntArray
from common.item_response import model
from common.item_response.context import EFFECT_VARIANCE
from common.item_response.fitting import Answers
from common.item_response.model import Gaussians
from common.item_response.observations import Observations, observe
from common.item_response.steps import Posterior, approximate_log_likelihoods, pass_over_answers

import numpy as np

# The functions below pass over the answers again and again, until no ability, slope or intercept
# changes by more than `_MAX_CHANGE`, but at most `_MAX_PASSES` times.
_MAX_CHANGE = 1e-3
_MAX_PASSES = 50


@dataclass(frozen=True)
class Abilities:
    """Posteriors of the abilities of students, given their answers."""

    # The ids of the students, increasing, shape (students,).
    student_ids: IntArray
    # Posterior means of the abilities, shape (students, n_dimensions), float32. The average student
    # of the fit has the abilities 0.
    mean: FloatArray
    # Posterior covariances of the abilities, shape (students, n_dimensions, n_dimensions), float32.
    covariance: FloatArray

    @property
    def standard_deviation(self) -> FloatArray:
        """The standard deviations of the posteriors, shape (students, n_dimensions)."""
        variance: FloatArray = np.diagonal(self.covariance, axis1=1, axis2=2)
        return np.sqrt(variance)


# ---- Students, given the questions -------------------------------------------------------------


def find_students(posterior: Posterior, answers: Answers) -> Posterior:
    """Return the posterior of the students of `answers`, given all their answers.

    The result keeps the questions, the variances of effects and the effects that students share
    from `posterior`. The result holds only the students of `answers`. Their abilities depend only
    on `answers`, even if `posterior` holds abilities of the same students.
    """
    posterior = _add_contexts(posterior, answers.context)
    student_ids, student = number_ids(answers.student)
    n_students = len(student_ids)
    # To save time, keep only the questions of these answers while the abilities are estimated. Each
    # question that `posterior` does not know is replaced by the average question.
    item_of_answer = find_ids(posterior.question_ids, answers.question)
    item_position, item = number_ids(item_of_answer)
    labels = [
        find_ids(ids, answers.context[:, level]) for level, ids in enumerate(posterior.context_ids)
    ]
    observations = observe(
        student,
        item,
        answers.outcome == 0,
        n_students=n_students,
        n_items=len(item_position),
        labels=labels,
    )
    levels = observations.levels
    k = posterior.students.mean.shape[1]
    n_leaves = len(levels[-1].label) if levels else 0
    leaf_effects = np.zeros((n_leaves, 2 + k), np.float32)
    leaf_effects[:, EFFECT_VARIANCE] = posterior.variance.sum()
    state = replace(
        posterior,
        students=model.standard_normal(n_students, k),
        student_ids=student_ids,
        levels=levels,
        effects=(leaf_effects,),
        items=posterior.items.take(item_position),
        guessing=posterior.guessing[item_position],
    )
    for _ in range(_MAX_PASSES):
        updated, _ = pass_over_answers(observations, state, sums_items=False)
        change = np.abs(updated.students.mean - state.students.mean).max(initial=0)
        # Take only the students and their effects from `updated`. The pass has also estimated the
        # variances and the shared effects, but from these few answers alone: keep those of
        # `posterior`.
        state = replace(state, students=updated.students, effects=updated.effects)
        if change <= _MAX_CHANGE:
            break
    # Append an average student. A prediction for an unknown student uses the student at the
    # position after the last known one.
    average_student = model.standard_normal(1, k)
    return replace(
        state,
        students=model.join([state.students, average_student]),
        items=posterior.items,
        guessing=posterior.guessing,
    )


def find_ability(posterior: Posterior, question: IntArray, is_right: BoolArray) -> Gaussians:
    """Return the posterior of the ability of one student, given all the student's answers.

    The student begins as an average one. In each pass, the log likelihood of every answer is
    replaced by a parabola, linear · logit − weight · logit² / 2 (see `model`). The coefficients
    `linear` and `weight` follow from the posterior before the pass. Then the posterior is computed
    anew from the parabolas. The passes end when the ability hardly changes. The answers have no
    contexts.

    `find_students` finds the same ability, up to about `_MAX_CHANGE`. It is made for many students,
    and takes several times as long for a single student.

    Parameters
    ----------
    posterior
        The posterior of the fit, without contexts.
    question, is_right
        The id of each answer's question, and whether the answer is right, shape (answers,).
    """
    position = find_ids(posterior.question_ids, question)
    guessing = posterior.guessing[position]
    # A logit is the scalar product of the vectors (slopes, intercept) and (ability, 1), which have
    # d numbers each. The moments of a vector v are E[v] in the first d columns, and E[v vᵀ] in the
    # other columns. E[v vᵀ] is stored so that the scalar product of the rows of two independent
    # vectors is the expectation of the square of their scalar product: E[logit²] here.
    d = posterior.items.mean.shape[1]
    item_moments = model.moments(posterior.items.take(position))
    item_mean = item_moments[:, :d]
    item_second_moment = item_moments[:, d:]
    student = model.standard_normal(1, d - 1)
    for _ in range(_MAX_PASSES):
        # `model` computes arrays with a row for each student. Here the only student has row 0.
        student_moments = model.student_vector_moments(student)[0]
        logit_mean = item_mean @ student_moments[:d]
        # Var[logit] = E[logit²] − E[logit]².
        variance = item_second_moment @ student_moments[d:] - logit_mean * logit_mean
        slope, weight = model.expected_slope_and_curvature(
            logit_mean, np.maximum(variance, 0), is_right, guessing
        )
        # The slope of the parabola, linear − weight · logit, must equal `slope` at the mean logit.
        linear = slope + weight * logit_mean
        # Σ linear · E[v] and Σ weight · E[v vᵀ] over the answers, where v is (slopes, intercept).
        sums = np.concatenate([linear @ item_mean, weight @ item_second_moment])
        updated = model.update_students(sums[None, :])
        change = np.abs(updated.mean - student.mean).max()
        student = updated
        if change <= _MAX_CHANGE:
            break
    return student


def _add_contexts(posterior: Posterior, context: IntArray) -> Posterior:
    """Return a posterior that also knows the contexts of further answers.

    A context has two kinds of effects on the logits of its answers. One kind, the shared effect, is
    the same for all students. Only contexts of the last level have it (MODEL.md explains levels). A
    context that the posterior does not know gets the shared effect of unknown contexts.

    The other kind belongs to one student in one context. The result has no such effects, since
    those of `posterior` belong to the students of the fit, and not to the students of the further
    answers.

    Parameters
    ----------
    posterior
        The posterior of the fit, with or without contexts.
    context
        The ids of the contexts of the further answers, shape (answers, levels).
    """
    if not posterior.levels:
        return posterior
    old_ids = posterior.context_ids
    all_ids = tuple(np.union1d(ids, context[:, level]) for level, ids in enumerate(old_ids))
    shared = posterior.shared_effects_in(all_ids[-1])
    # Empty `levels` and `effects`, which hold the effects that belong to single students.
    return replace(posterior, context_ids=all_ids, shared=shared, levels=(), effects=())


# ---- Updates of a posterior --------------------------------------------------------------------


def learn_answers(
    posterior: Posterior, answers: Answers, *, learns_students: bool, learns_questions: bool
) -> Posterior:
    """Return the posterior after further answers, which must have no contexts.

    The posterior before the answers is the prior. Students and questions that the posterior does
    not know begin as average students and questions.

    Parameters
    ----------
    posterior
        The posterior before the answers. It must have no contexts.
    answers
        The further answers.
    learns_students, learns_questions
        Whether the posteriors of the students change, and whether the posteriors of the questions
        change.
    """
    posterior = _add_students(posterior, np.unique(answers.student))
    posterior = _add_questions(posterior, np.unique(answers.question))
    # From here on, only the students and the questions of the further answers matter. Each question
    # is one item, since answers are right or wrong.
    student_ids, student = number_ids(answers.student)
    question_ids, question = number_ids(answers.question)
    student_position = find_ids(posterior.student_ids, student_ids)
    item_position = find_ids(posterior.question_ids, question_ids)
    observations = observe(
        student,
        question,
        answers.outcome == 0,
        n_students=len(student_ids),
        n_items=len(question_ids),
    )
    students, items = _update_students_and_items(
        observations,
        old_students=posterior.students.take(student_position),
        old_items=posterior.items.take(item_position),
        guessing=posterior.guessing[item_position],
        learns_students=learns_students,
        learns_questions=learns_questions,
    )
    return replace(
        posterior,
        students=_replace_at(student_position, posterior.students, students),
        items=_replace_at(item_position, posterior.items, items),
    )


def _update_students_and_items(
    observations: Observations,
    old_students: Gaussians,
    old_items: Gaussians,
    guessing: FloatArray,
    *,
    learns_students: bool,
    learns_questions: bool,
) -> tuple[Gaussians, Gaussians]:
    """Return the posteriors of students and questions after further answers.

    In each pass, the log likelihood of every answer is replaced by a parabola,
    linear · logit − weight · logit² / 2 (see `model`). It is computed from the posteriors of the
    pass before. Then the posteriors are the solutions of weighted least squares problems: those of
    the students are computed first, then those of the questions. The passes end when the posteriors
    hardly change.

    Parameters
    ----------
    observations
        The further answers. Their students and items have the order of the next three arguments.
    old_students, old_items
        The posteriors before the answers, which are the priors here: the abilities, and the slopes
        and the intercept of each question (an item is a question).
    guessing
        The guessing of each item.
    learns_students, learns_questions
        Whether the students, and whether the questions, are updated.
    """
    students = old_students
    items = old_items
    # `update_items` gives all items of a group the same prior. Here, the prior of an item is its
    # own old posterior, so each item is a group of its own.
    group_of_item = np.arange(len(items.mean))
    for _ in range(_MAX_PASSES):
        item_moments = model.moments(items)
        linear, weight = approximate_log_likelihoods(observations, students, item_moments, guessing)
        # Store the coefficients of the parabolas in sparse matrices, with a row for each student
        # and a column for each item.
        linear_matrix = observations.matrix(linear, observations.start)
        weight_matrix = observations.matrix(weight, observations.start)
        change = 0.0
        if learns_students:
            # For each student, sums over the student's answers. `update_students` needs them.
            student_sums = model.weighted_sums(linear_matrix, weight_matrix, item_moments)
            updated = model.update_students(student_sums, prior=old_students)
            change = float(np.abs(updated.mean - students.mean).max())
            students = updated
        if learns_questions:
            # For each item, sums over the answers to the item. `update_items` needs them.
            student_moments = model.student_vector_moments(students)
            item_sums = model.weighted_sums(linear_matrix.T, weight_matrix.T, student_moments)
            updated = model.update_items(item_sums.astype(float), old_items, group_of_item)
            change = max(change, float(np.abs(updated.mean - items.mean).max()))
            items = _as_float32(updated)
        if change <= _MAX_CHANGE:
            break
    return students, items


def _as_float32(vectors: Gaussians) -> Gaussians:
    return Gaussians(vectors.mean.astype(np.float32), vectors.covariance.astype(np.float32))


def _replace_at(position: IntArray, old: Gaussians, new: Gaussians) -> Gaussians:
    """Return a copy of the distributions `old`, with the distributions `new` at the positions."""
    mean = old.mean.copy()
    covariance = old.covariance.copy()
    mean[position] = new.mean
    covariance[position] = new.covariance
    return Gaussians(mean, covariance)


def _add_students(posterior: Posterior, student_ids: IntArray) -> Posterior:
    """Return `posterior` with the students that it does not know, as average students."""
    ids = np.union1d(posterior.student_ids, student_ids)
    # `find_ids` gives every unknown id the position of the average student, so new students begin
    # as average ones. No student has the id −1: it is appended so that the average student stays
    # the last one.
    position = find_ids(posterior.student_ids, np.append(ids, -1))
    return replace(posterior, student_ids=ids, students=posterior.students.take(position))


def _add_questions(posterior: Posterior, question_ids: IntArray) -> Posterior:
    """Return `posterior` with the questions that it does not know, as average questions."""
    ids = np.union1d(posterior.question_ids, question_ids)
    # `find_ids` gives every unknown id the position of the average question, so new questions begin
    # as average ones. No question has the id −1: it is appended so that the average question stays
    # the last one.
    position = find_ids(posterior.question_ids, np.append(ids, -1))
    return replace(
        posterior,
        question_ids=ids,
        items=posterior.items.take(position),
        guessing=posterior.guessing[position],
    )
