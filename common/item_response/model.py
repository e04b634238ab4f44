r"""The mathematics: the model, the weighted least squares that fit it, and the items' prior.

A student has a latent `ability` of k numbers. An item has k `slopes` (discriminations) and an
intercept (easiness, the negative of difficulty). Then

    logit = slopes · ability + intercept,
    P(knows) = sigmoid(logit),
    P(right) = guessing + (1 − guessing) P(knows).

A student passes an item or not. If answers are right or wrong, each question is one item; if they
are options, a question has several items, one for each stage (see `options`). Abilities are
N(0, I). The items of one stage are a group: their (slopes, intercept) are N(mean, covariance).
This mean and covariance are estimated from the same answers (empirical Bayes). So nothing has to be
tuned: items with few answers are shrunk towards the mean of the group, and dimensions that the
answers do not support are shrunk to zero. With k = 1 and no guessing, this is the two-parameter
logistic model.

Students and items get Gaussian posteriors. The product of a Gaussian and the likelihood of an
answer is not Gaussian. The product becomes Gaussian if the log likelihood is replaced by a
parabola,

    linear · logit − weight · logit² / 2.

The Gaussian closest to the posterior, in the Kullback-Leibler divergence, is found with

    weight = expected curvature of the log likelihood (its negative second derivative),
    linear = expected slope of the log likelihood + weight · E[logit],

where the expectations are those under the Gaussian itself (Opper and Archambeau 2009, "The
variational Gaussian approximation revisited"). So a step of the fit computes the expected slope and
curvature for every answer, a weighted least squares for every student, a weighted least squares for
every item, and a new prior.

Both kinds of least squares have d = k + 1 dimensions, since the logit is the scalar product of

    the student vector (ability, 1) and the item vector (slopes, intercept).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from common.arrays import BoolArray, FloatArray, IntArray

import numpy as np

# Lower bound on the curvature of an answer's log likelihood. A small curvature makes a step of the
# fit long: without the bound, some steps could overshoot.
_MIN_CURVATURE = np.float32(0.01)
# Logits are clipped to −40 and 40. The slope and the curvature of the log likelihood hardly change
# beyond these bounds.
_MAX_LOGIT = np.float32(40)
# The covariance of few items could be extreme. So the covariance of a group of items is computed as
# if the group had `_N_IMAGINED_ITEMS` more items, whose slopes and intercepts have the variance
# `_IMAGINED_VARIANCE`.
_IMAGINED_VARIANCE = 0.1
_N_IMAGINED_ITEMS = 3.0


@dataclass(frozen=True)
class Gaussians:
    """Independent Gaussian distributions, one for each student, item or group."""

    # The means of n vectors of d numbers, shape (n, d): the abilities of a student, or the slopes
    # of an item and then its intercept.
    mean: FloatArray
    # Shape (n, d, d).
    covariance: FloatArray

    def take(self, positions: IntArray | slice) -> "Gaussians":
        """Return some of the distributions."""
        return Gaussians(self.mean[positions], self.covariance[positions])

    def transform(self, matrix: FloatArray, shift: FloatArray | float = 0.0) -> "Gaussians":
        """Return the distribution of matrix @ x + shift for each of the Gaussian vectors x.

        The dtype stays the same.
        """
        n, d = self.mean.shape
        m = matrix.astype(self.mean.dtype)
        # A covariance C becomes m @ C @ mᵀ. With each C written as a row of d · d numbers, this is
        # one large product with the Kronecker product of m and m, instead of many small products.
        covariance = (self.covariance.reshape(n, d * d) @ np.kron(m, m).T).reshape(n, d, d)
        mean = self.mean @ m.T + np.asarray(shift, self.mean.dtype)
        return Gaussians(mean, covariance)


def join(parts: Iterable[Gaussians]) -> Gaussians:
    """Return the distributions of all parts in one `Gaussians`, one part after the other."""
    parts = list(parts)
    mean = np.concatenate([part.mean for part in parts])
    covariance = np.concatenate([part.covariance for part in parts])
    return Gaussians(mean, covariance)


def standard_normal(n: int, k: int) -> Gaussians:
    """Return n standard Gaussians of k dimensions: the abilities of students without answers."""
    identity = np.eye(k, dtype=np.float32)
    return Gaussians(np.zeros((n, k), np.float32), np.tile(identity, (n, 1, 1)))


# ---- One answer -------------------------------------------------------------------------------


def expected_slope_and_curvature(
    mean: FloatArray, variance: FloatArray, is_right: BoolArray, guessing: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the expected slope and curvature of each answer's log likelihood.

    The log likelihood is that of P(right) = guessing + (1 − guessing) P(knows), where P(knows) is
    sigmoid(logit). The logit is Gaussian with `mean` and `variance`. The expectations are computed
    by Gauss-Hermite quadrature with two points, one standard deviation to either side of the mean.

    The curvature is the Fisher information: the negative second derivative of the log likelihood,
    averaged over a right and a wrong answer with the weights P(right) and P(wrong). So the
    curvature is the same for right and for wrong answers, and it is never negative. All arrays have
    the shape (answers,).
    """
    deviation = np.sqrt(variance)
    weight_of_point = np.float32(0.5)
    slope_if_right, slope_if_wrong, curvature = np.zeros((3, len(mean)), np.float32)
    for logit in (mean - deviation, mean + deviation):
        # `odds` is (1 − P(knows)) / P(knows) = exp(−logit). So P(knows) = 1 / (1 + odds) and
        # P(right) = (1 + guessing · odds) / (1 + odds).
        odds = np.exp(-np.clip(logit, -_MAX_LOGIT, _MAX_LOGIT))
        knows = 1 / (1 + odds)
        # d log P(right) / d logit = (1 − guessing) odds P(knows) / (1 + guessing · odds).
        weighted_slope = weight_of_point * (1 - guessing) * odds * knows / (1 + guessing * odds)
        slope_if_right += weighted_slope
        # d log P(wrong) / d logit = −P(knows).
        slope_if_wrong -= weight_of_point * knows
        # Let r be the slope if the answer is right, and w the slope if it is wrong. The mean slope
        # P(right) r + P(wrong) w is 0. So the Fisher information P(right) r² + P(wrong) w² equals
        # −P(wrong) r w − P(right) r w = −r w. Here, w is −`knows`, and `weighted_slope` is r times
        # the weight of the point.
        curvature += weighted_slope * knows
    slope = np.where(is_right, slope_if_right, slope_if_wrong)
    return slope, np.maximum(curvature, _MIN_CURVATURE)


def expected_probability(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E[sigmoid(x)] for Gaussian x, by an approximation.

    Source: MacKay 1992, "The evidence framework applied to classification networks".
    """
    scaled = mean / np.sqrt(1 + np.float32(math.pi / 8) * variance)
    # sigmoid(x) = (1 + tanh(x / 2)) / 2, which does not overflow.
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * scaled), np.float32)


# ---- Moments -----------------------------------------------------------------------------------
#
# The least squares of students are computed from the moments of item vectors, and the least squares
# of items from the moments of student vectors. The moments are E[vector] and E[vector vectorᵀ].
#
# A row of d + d(d + 1)/2 numbers holds a vector of d numbers, then a symmetric matrix. Only the
# lower triangle of the matrix is stored, and its elements off the diagonal are multiplied by √2. So
# the scalar product of two stored triangles equals the sum of the products of all elements of the
# two matrices, in which each element off the diagonal occurs twice.


def moments(vectors: Gaussians) -> FloatArray:
    """Return E[vector] and E[vector vectorᵀ] of Gaussian vectors, shape (n, d + d(d + 1)/2).

    A row holds the vector of d numbers, then the lower triangle of the symmetric matrix. Elements
    off the diagonal are multiplied by √2, because each of them stands for two elements of the
    matrix: in a scalar product of two rows, it then counts √2 · √2 = 2 times.
    """
    n, d = vectors.mean.shape
    # The row, the column and the factor of each element of the lower triangle. The factor is 1 on
    # the diagonal and √2 off the diagonal.
    row, column, factor = _stored_triangle(d)
    # E[vector vectorᵀ] = covariance + mean meanᵀ. With each covariance written as a row of d · d
    # numbers, its element (row, column) is at row · d + column.
    flat_covariance = vectors.covariance.reshape(n, d * d)
    covariance = np.take(flat_covariance, row * d + column, axis=1) * factor
    second_moment = covariance + store_outer_products(vectors.mean, vectors.mean)
    return np.concatenate([vectors.mean, second_moment], axis=1)


def student_vector_moments(students: Gaussians) -> FloatArray:
    """Return the moments (see `moments`) of the student vectors (ability, 1)."""
    one = np.ones((len(students.mean), 1), np.float32)
    mean = np.concatenate([students.mean, one], axis=1)
    # The number 1 does not vary: it adds a row and a column of zeros to each covariance.
    n, d = mean.shape
    covariance = np.zeros((n, d, d), students.covariance.dtype)
    covariance[:, :-1, :-1] = students.covariance
    return moments(Gaussians(mean, covariance))


def weighted_sums(linear: Any, weight: Any, column_moments: FloatArray) -> FloatArray:
    """Return Σ linear · E[vector] and Σ weight · E[vector vectorᵀ] for each row of two matrices.

    A sum runs over the columns of the matrix; each column has a vector. The two sums are side by
    side in the result, shape (rows, d + d(d + 1)/2). The second sum is a symmetric matrix, stored
    as a triangle as in `moments`.

    Parameters
    ----------
    linear, weight
        Sparse matrices with the coefficients of the answers' log likelihoods, linear · logit −
        weight · logit² / 2. For example, they have a row for each student and a column for each
        item.
    column_moments
        Row j holds the `moments` of the vector that belongs to column j.
    """
    d = count_dimensions(column_moments)
    linear_sums = linear @ column_moments[:, :d]
    squares = weight @ column_moments[:, d:]
    return np.concatenate([linear_sums, squares], axis=1)


def count_dimensions(rows: FloatArray) -> int:
    """Return d, given rows of d + d(d + 1)/2 numbers.

    A row holds a vector of d numbers, then the lower triangle of a symmetric d × d matrix.
    """
    # Solve d + d(d + 1)/2 = n for d > 0, where n = rows.shape[1].
    return int(math.sqrt(2 * rows.shape[1] + 2.25) - 1.5)


def store_outer_products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the outer product left rightᵀ of each pair of rows, as its lower triangle.

    The outer products must be symmetric. `left` and `right` have shape (n, d), the result has shape
    (n, d(d + 1)/2). Elements off the diagonal are multiplied by √2 (see `_stored_triangle`).
    """
    row, column, factor = _stored_triangle(left.shape[1])
    return np.take(left, row, axis=1) * np.take(right, column, axis=1) * factor


@cache
def _stored_triangle(d: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return row, column and factor of each stored element of a symmetric d × d matrix.

    The stored elements are the lower triangle, row by row. An element off the diagonal occurs twice
    in the matrix. Its factor is √2, so that it counts √2 · √2 = 2 times in a scalar product of two
    stored triangles. The factor is 1 on the diagonal.

    The order matters to `steps.run_step`, which reads the last stored element, (d − 1, d − 1).
    """
    row, column = np.tril_indices(d)
    factor = np.where(row == column, 1, math.sqrt(2)).astype(np.float32)
    # All callers share these arrays, since the function is cached. So make them read-only.
    for array in (row, column, factor):
        array.flags.writeable = False
    return row, column, factor


def unpack_sums(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split rows of `weighted_sums` into vectors, shape (n, d), and matrices, shape (n, d, d)."""
    d = count_dimensions(sums)
    row, column, factor = _stored_triangle(d)
    matrices = np.empty((len(sums), d, d), sums.dtype)
    matrices[:, row, column] = matrices[:, column, row] = sums[:, d:] / factor
    return sums[:, :d], matrices


# ---- The two weighted least squares ------------------------------------------------------------


def update_students(sums: FloatArray, prior: Gaussians | None = None) -> Gaussians:
    """Return the posteriors of abilities, given the items.

    The logit of an answer is slopes · ability + intercept, where slopes and intercept belong to the
    item. The log likelihood of the answer is replaced by the parabola linear · logit − weight ·
    logit² / 2, whose coefficients `linear` and `weight` each answer has for itself. `sums` has a
    row for each student: the result of `weighted_sums` for the student's answers. `prior` has one
    Gaussian for each student; by default, it is N(0, I). The posterior of a student has

        precision = prior precision + Σ weight · E[slopes slopesᵀ],
        precision · mean = prior precision · prior mean
                           + Σ linear · E[slopes] − Σ weight · E[slopes · intercept].
    """
    # For each student, Σ linear · E[v] and Σ weight · E[v vᵀ], where v is (slopes, intercept): k
    # slopes, then the intercept at the position k.
    linear_sums, squares = unpack_sums(sums)
    k = linear_sums.shape[1] - 1
    # Σ weight · E[slopes slopesᵀ], which the answers add to the prior precision.
    added_precision = squares[:, :k, :k]
    # Σ weight · E[slopes · intercept].
    sum_slopes_intercept = squares[:, :k, k]
    precision_times_mean = linear_sums[:, :k] - sum_slopes_intercept
    if prior is None:
        # The prior N(0, I) has the identity matrix as its precision.
        precision = added_precision + np.eye(k, dtype=np.float32)
    else:
        prior_precision = np.linalg.inv(prior.covariance)
        precision = added_precision + prior_precision
        precision_times_mean += np.einsum("nij,nj->ni", prior_precision, prior.mean)
    covariance = np.linalg.inv(precision)
    mean = np.einsum("nij,nj->ni", covariance, precision_times_mean)
    return Gaussians(mean, covariance)


def update_items(sums: FloatArray, prior: Gaussians, group: IntArray) -> Gaussians:
    """Return the posteriors of items (slopes, intercept), given the students, float64.

    `sums` has a row for each item: the result of `weighted_sums` for the item's answers. The log
    likelihood of an answer is replaced by the parabola linear · logit − weight · logit² / 2, whose
    coefficients `linear` and `weight` each answer has for itself. `prior` has one Gaussian for each
    group of items, and `group` the number of each item's group. With the vectors v = (ability, 1)
    of the students who answered the item, the posterior has

        precision = prior precision + Σ weight · E[v vᵀ],
        precision · mean = prior precision · prior mean + Σ linear · E[v].
    """
    linear_sums, squares = unpack_sums(sums)
    prior_precision = np.linalg.inv(prior.covariance)
    prior_linear = np.einsum("gij,gj->gi", prior_precision, prior.mean)
    covariance = np.linalg.inv(prior_precision[group] + squares)
    mean = np.einsum("nij,nj->ni", covariance, prior_linear[group] + linear_sums)
    return Gaussians(mean, covariance)


def estimate_prior(
    items: Gaussians, group: IntArray, is_answered: BoolArray, old: Gaussians
) -> Gaussians:
    """Return the prior of each group of items: mean and covariance of the group's items.

    Only items with answers count. A group without such items keeps its old prior.

    The covariance of few items could be extreme. So it is computed as if the group had
    `_N_IMAGINED_ITEMS` more items, which have the covariance `_IMAGINED_VARIANCE` · I.

    Parameters
    ----------
    items
        Posteriors of the items' (slopes, intercept).
    group
        Number of each item's group, from 0, shape (items,).
    is_answered
        Whether each item has answers, shape (items,).
    old
        The present priors, one for each group.
    """
    mean = old.mean.copy()
    covariance = old.covariance.copy()
    # The sum of squares that the imagined items (see `_N_IMAGINED_ITEMS`) add to that of a group.
    imagined_sum = _N_IMAGINED_ITEMS * _IMAGINED_VARIANCE * np.eye(mean.shape[1])
    for g in np.unique(group[is_answered]):
        is_counted = is_answered & (group == g)
        mean[g] = items.mean[is_counted].mean(axis=0)
        deviation = items.mean[is_counted] - mean[g]
        # The parameters of an item are uncertain. So an item adds not only its squared deviation
        # from the mean of the group, but also its posterior covariance.
        sum_of_squares = items.covariance[is_counted].sum(axis=0) + deviation.T @ deviation
        covariance[g] = (sum_of_squares + imagined_sum) / (len(deviation) + _N_IMAGINED_ITEMS)
    return Gaussians(mean, covariance)
