"""Predict each answer from the student's other answers.

The statistics of questions compare answers with what is expected of the student. If the ability
were estimated from the same answer, the answer would seem to be expected. So each answer is taken
out of the ability before it is predicted.

A student has the posterior N(m, V), the question the slopes a and the intercept b, and u = aᵀVa is
the variance of the logit. The fit replaces the log likelihood of the answer by a parabola with the
curvature w, whose slope at the mean logit a·m + b is s (see `model`). Without this answer, the
precision of the student is V⁻¹ − w a aᵀ. With that, the logit has

    the variance u₋ = u / (1 − w u) and the mean a·m + b − u₋ s.

For a direction e, the ability along it, e·ability, has the mean e·m − q₋ s and the covariance q₋
with the logit, where q₋ = eᵀVa / (1 − w u).

Source: Opper and Winther (2000), Gaussian processes for classification: mean-field algorithms, on
the cavity distribution.
"""

from dataclasses import dataclass, fields, replace

from common.answers import find_ids, number_ids
from common.arrays import BoolArray, FloatArray, IntArray
from common.item_response import model
from common.item_response.fitting import Answers
from common.item_response.model import Gaussians
from common.item_response.observations import number_rows, observe
from common.item_response.steps import Posterior, logit_moments, pass_over_answers
from common.threads import in_threads, run_in_threads

import numpy as np

# The abilities are found in several passes over the answers. The passes end when the root mean
# square change of the abilities is at most this, or after this many passes.
_MAX_CHANGE = 0.01
_MAX_PASSES = 10
# Upper bound on the share of the information on an answer's logit that comes from the answer
# itself. The module's docstring calls this share w u. The bound keeps quotients by 1 − w u finite.
_MAX_SHARE = np.float32(0.95)
# Answers that one thread predicts at a time.
_BLOCK = 1 << 16
# Points and weights of Gauss-Hermite quadrature: E[f(x)] for x from N(0, 1) is about the sum of
# weight · f(point).
_points, _weights = np.polynomial.hermite_e.hermegauss(5)
_POINTS = _points.astype(np.float32)
_WEIGHTS = (_weights / _weights.sum()).astype(np.float32)


@dataclass(frozen=True)
class Predictions:
    """Predictions of each answer from the student's other answers; float32, shape (answers,)."""

    # P(right), and the residual: 1 for a right answer or 0 for a wrong one, minus P(right).
    p_right: FloatArray
    residual: FloatArray
    # Derivatives of P(right) by two parameters of the question: the intercept, and the slope along
    # the overall ability.
    by_intercept: FloatArray
    by_slope: FloatArray
    # The curvature of the answer's log likelihood as a function of its logit, and the variance of
    # the logit given the student's other answers. The module's docstring calls them w and u₋.
    curvature: FloatArray
    logit_variance: FloatArray

    @property
    def residual_variance(self) -> FloatArray:
        """The variance that each residual has if the model is true."""
        variance: FloatArray = self.p_right * (1 - self.p_right)
        return variance


@dataclass(frozen=True)
class AnswersOfStudents:
    """Answers sorted by student, and the students' abilities, found from these answers alone."""

    # The answers of student i are start[i] to start[i + 1].
    start: IntArray
    # For each answer, the positions of its student in `student_ids` and of its question in
    # `question_ids`; int32, shape (answers,).
    student: IntArray
    question: IntArray
    is_right: BoolArray
    # The ids of the students and of the questions of these answers, in increasing order.
    student_ids: IntArray
    question_ids: IntArray
    # The posterior of each student's abilities, with a row for each of `student_ids`.
    students: Gaussians
    # The posterior of each question's slopes and intercept, with a row for each of `question_ids`.
    items: Gaussians
    # For each question, the probability that a student who does not know the answer gives the right
    # answer nevertheless, float32.
    guessing: FloatArray

    @property
    def direction(self) -> FloatArray:
        """The direction of the overall ability, a vector of length 1, shape (k,).

        The overall ability sums up the k abilities. It lies along the questions' mean slopes, the
        direction in which their mean logit grows fastest.
        """
        slopes = self.items.mean[:, :-1].mean(axis=0, dtype=np.float64)
        length = float(np.linalg.norm(slopes))
        if length == 0:
            # Without any slopes, the overall ability is the first ability.
            slopes[0] = 1.0
            length = 1.0
        direction: FloatArray = (slopes / length).astype(np.float32)
        return direction


def find_abilities(posterior: Posterior, answers: Answers) -> AnswersOfStudents:
    """Sort the answers and find the abilities of their students, given the questions of a fit.

    `posterior` is the result of the fit. It must have no contexts. Questions that the fit does not
    know count as average.
    """
    (student_ids, student), (question_ids, question) = in_threads(
        number_ids, [answers.student, answers.question]
    )
    # `find_ids` gives an unknown id the position after the last id. In the posterior, this is the
    # position of the average student and of the average question.
    student_position = find_ids(posterior.student_ids, student_ids)
    item_position = find_ids(posterior.question_ids, question_ids)
    observations = observe(
        student,
        question,
        answers.outcome == 0,
        n_students=len(student_ids),
        n_items=len(question_ids),
    )
    # Begin with the abilities that the fit found. The passes over the answers below replace them by
    # abilities that follow from `answers` alone.
    state = replace(
        posterior,
        students=posterior.students.take(student_position),
        items=posterior.items.take(item_position),
        guessing=posterior.guessing[item_position],
    )
    # Each pass finds the abilities anew from the answers. It replaces the log likelihood of each
    # answer by a parabola, which depends on the abilities before the pass. So several passes are
    # needed. The questions do not change, so no sums are needed to update them (`sums_items`).
    for _ in range(_MAX_PASSES):
        updated, _ = pass_over_answers(observations, state, sums_items=False)
        change = updated.students.mean - state.students.mean
        state = updated
        if np.sqrt(np.square(change).mean()) <= _MAX_CHANGE:
            break
    return AnswersOfStudents(
        start=observations.start,
        student=number_rows(observations.start),
        question=observations.item,
        is_right=observations.is_right,
        student_ids=student_ids,
        question_ids=question_ids,
        students=state.students,
        items=state.items,
        guessing=state.guessing,
    )


def predict_left_out(answers: AnswersOfStudents) -> Predictions:
    """Predict each answer from the student's other answers, in the order of `answers`.

    Also returns the derivatives of the predictions, see `Predictions`.
    """
    # Treat the parameters of the questions as known: set their covariances to 0. The callers,
    # `question_statistics` and `differential`, allow for the uncertainty of the parameters.
    items = Gaussians(answers.items.mean, np.zeros_like(answers.items.covariance))
    # A student's k abilities are summed up in one number, the overall ability: direction · ability,
    # where `direction` is a unit vector, the direction of the mean slopes of the questions.
    overall_mean = answers.students.mean @ answers.direction
    # The covariance of direction · ability with each of the k abilities is the covariance matrix of
    # the abilities times `direction`. Shape (students, k).
    overall_covariance = answers.students.covariance @ answers.direction
    # `values` has a row for each field of `Predictions`, in the order of the fields, and a column
    # for each answer.
    n_fields = len(fields(Predictions))
    values = np.empty((n_fields, len(answers.student)), np.float32)

    def predict_block(begin: int) -> None:
        """Write the predictions of the answers begin to begin + `_BLOCK` into `values`."""
        rows = slice(begin, begin + _BLOCK)
        is_right = answers.is_right[rows]
        guessing = answers.guessing[answers.question[rows]]
        # `with_answer` is the joint distribution of the logit and of the overall ability given all
        # answers of the student. `without_answer` is their distribution given the other answers.
        with_answer = _join_logit_and_ability(
            answers, rows, items, overall_mean, overall_covariance
        )
        without_answer, curvature = _leave_out(with_answer, is_right, guessing)
        p_right, by_intercept, by_slope = _p_right_and_derivatives(without_answer, guessing)
        residual = is_right - p_right
        values[:, rows] = [
            p_right,
            residual,
            by_intercept,
            by_slope,
            curvature,
            without_answer.logit_variance,
        ]

    run_in_threads(predict_block, range(0, len(answers.student), _BLOCK))
    return Predictions(*values)


@dataclass(frozen=True)
class _LogitAndAbility:
    """For each answer, the joint Gaussian of its logit and of the student's overall ability.

    All arrays have the shape (answers,).
    """

    logit_mean: FloatArray
    logit_variance: FloatArray
    ability_mean: FloatArray
    # Covariance of the overall ability with the logit.
    covariance: FloatArray


def _join_logit_and_ability(
    answers: AnswersOfStudents,
    rows: slice,
    items: Gaussians,
    overall_mean: FloatArray,
    overall_covariance: FloatArray,
) -> _LogitAndAbility:
    """Return the joint distribution of logit and overall ability for a range of answers.

    The distribution is conditional on all answers of the student, including the answer itself.

    Parameters
    ----------
    answers
        All answers.
    rows
        The range of answers.
    items
        Slopes and intercept of each question.
    overall_mean
        The mean of each student's overall ability, which sums up the k abilities in one number,
        shape (students,).
    overall_covariance
        The covariance of the overall ability with each of the k abilities, shape (students, k).
    """
    student = answers.student[rows]
    question = answers.question[rows]
    # The answers are sorted by student, so these rows need only a range of the students.
    first_student = student[0]
    students = answers.students.take(slice(first_student, student[-1] + 1))
    logit_mean, logit_variance = logit_moments(students, items, student - first_student, question)
    # The logit is slopes · ability + intercept. So its covariance with the overall ability is
    # slopes · (covariances of the abilities with the overall ability).
    slopes = items.mean[:, :-1]
    covariance = np.einsum("ij,ij->i", overall_covariance[student], slopes[question])
    return _LogitAndAbility(
        logit_mean=logit_mean,
        logit_variance=logit_variance,
        ability_mean=overall_mean[student],
        covariance=covariance,
    )


def _leave_out(
    with_answer: _LogitAndAbility, is_right: BoolArray, guessing: FloatArray
) -> tuple[_LogitAndAbility, FloatArray]:
    """For each answer, find the distributions of its logit and of the ability without the answer.

    `with_answer` holds these distributions given all answers of the student, including the answer
    itself. The fit has replaced the log likelihood of each answer by a parabola in the logit. At
    the mean of the logit, the parabola has the slope `slope` and the curvature `curvature`. Without
    this parabola, the variance and the covariance are larger, and the means differ:

        new variance = variance / (1 − curvature · variance),
        new covariance = covariance / (1 − curvature · variance),
        new mean of the logit = mean of the logit − new variance · slope,
        new mean of the ability = mean of the ability − new covariance · slope,

    where `variance` is that of the logit. The module's docstring says where the formulas come from.

    Returns
    -------
    without_answer : _LogitAndAbility
        The distributions given the student's other answers.
    curvature : array of float32, shape (answers,)
        The curvature of each answer's parabola.
    """
    slope, curvature = model.expected_slope_and_curvature(
        with_answer.logit_mean, with_answer.logit_variance, is_right, guessing
    )
    # The information on the logit is 1 / variance. `curvature` is the part that comes from the
    # answer itself, and `own_share` is the share of this part.
    own_share = np.minimum(curvature * with_answer.logit_variance, _MAX_SHARE)
    logit_variance = with_answer.logit_variance / (1 - own_share)
    covariance = with_answer.covariance / (1 - own_share)
    without_answer = _LogitAndAbility(
        logit_mean=with_answer.logit_mean - logit_variance * slope,
        logit_variance=logit_variance,
        ability_mean=with_answer.ability_mean - covariance * slope,
        covariance=covariance,
    )
    return without_answer, curvature


def _p_right_and_derivatives(
    distribution: _LogitAndAbility, guessing: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return P(right) of each answer, and its derivatives by intercept and slope of the question.

    P(right) is guessing + (1 − guessing) E[sigmoid(logit)]. The slope is the question's slope along
    the overall ability.
    """
    # The loop below adds up three expectations over the distribution of the logit: of sigmoid, and
    # of its first and its second derivative.
    p_knows, first_derivative, second_derivative = np.zeros((3, len(guessing)), np.float32)
    deviation = np.sqrt(distribution.logit_variance)
    # By Gauss-Hermite quadrature, each expectation is a weighted sum over a few points of the
    # logit's distribution. A point is a number of standard deviations from the mean.
    for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
        logit = distribution.logit_mean + point * deviation
        # sigmoid(x) = (1 + tanh(x / 2)) / 2, which does not overflow.
        sigmoid = 0.5 + 0.5 * np.tanh(0.5 * logit)
        weighted = weight * sigmoid
        p_knows += weighted
        # The derivatives of sigmoid s are s (1 − s) and s (1 − s) (1 − 2 s).
        weighted = weighted * (1 - sigmoid)
        first_derivative += weighted
        second_derivative += weighted * (1 - 2 * sigmoid)
    without_guessing = 1 - guessing
    p_right = guessing + without_guessing * p_knows
    by_intercept = without_guessing * first_derivative
    # If the slope grows by 1, two things change. The mean of the logit grows by the mean ability,
    # and the derivative of E[sigmoid(logit)] by this mean is the mean first derivative of sigmoid.
    # Half of the logit's variance grows by the covariance of ability and logit, and the derivative
    # of E[sigmoid(logit)] by half of the variance is the mean second derivative of sigmoid.
    by_slope = (
        by_intercept * distribution.ability_mean
        + without_guessing * second_derivative * distribution.covariance
    )
    return p_right, by_intercept, by_slope
