r"""The mathematics: the model, the weighted least squares that fit it, and the items' prior.

A student has a latent `ability` of k numbers. An item has k `slopes` (discriminations) and an
intercept (easiness, the negative of difficulty). Then

    P(right) = guessing + (1 − guessing) sigmoid(x),    x = slopes · ability + intercept.

A student passes an item or not. If answers are right or wrong, each question is one item; if they
are options, a question has several items, one for each stage (see `options`). Abilities are
N(0, I). The items of one stage are a group: their (slopes, intercept) are N(mean, covariance).
This mean and covariance are estimated from the same answers (empirical Bayes). So nothing has to be
tuned: items with few answers are shrunk towards the mean of the group, and dimensions that the
answers do not support are shrunk to zero. With k = 1 and no guessing, this is the two-parameter
logistic model.

Students and items get Gaussian posteriors. The product of a Gaussian and the likelihood of an
answer is not Gaussian. It becomes Gaussian if the log likelihood is replaced by κx − wx²/2. The
Gaussian closest to the posterior, in the Kullback-Leibler divergence, is found with

    w = expected curvature of the log likelihood (its negative second derivative),
    κ = expected slope of the log likelihood + w E[x],

where the expectations are those under the Gaussian itself (Opper and Archambeau 2009, "The
variational Gaussian approximation revisited"). So a step of the fit computes the expected slope and
curvature for every answer, a weighted least squares for every student, a weighted least squares for
every item, and a new prior.

Below, z is (slopes, intercept) and t is (ability, 1), both of d = k + 1 dimensions: x = z · t.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from common.arrays import BoolArray, FloatArray, IntArray

import numpy as np

# Lower bound on an answer's curvature. Without it, some steps could overshoot.
_MIN_CURVATURE = np.float32(0.01)
# Logits are clipped to ± this. Beyond, slope and curvature of the log likelihood hardly change.
_MAX_LOGIT = np.float32(40)
# The prior guess about the variance of slopes and intercepts.
_PRIOR_VARIANCE = 0.1
# Weight of this guess: it counts as this many items.
_PRIOR_ITEMS = 3.0


@dataclass(frozen=True)
class Gaussians:
    """Independent Gaussian distributions, one for each student, item or group."""

    # Shape (n, d). For a student: the ability. For an item: the slopes, then the intercept.
    mean: FloatArray
    # Shape (n, d, d).
    covariance: FloatArray

    def take(self, positions: IntArray | slice) -> "Gaussians":
        """Return some of the distributions."""
        return Gaussians(self.mean[positions], self.covariance[positions])

    def transform(self, matrix: FloatArray, shift: FloatArray | float = 0.0) -> "Gaussians":
        """Return the distributions of matrix @ x + shift, in the same precision."""
        n, d = self.mean.shape
        m = matrix.astype(self.mean.dtype)
        # One large product instead of many small ones: vec(MCMᵀ) = (M ⊗ M) vec(C).
        covariance = (self.covariance.reshape(n, d * d) @ np.kron(m, m).T).reshape(n, d, d)
        mean = self.mean @ m.T + np.asarray(shift, self.mean.dtype)
        return Gaussians(mean, covariance)


def join(parts: Iterable[Gaussians]) -> Gaussians:
    """Return the distributions of several parts as one."""
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
    """Return expected slope and curvature of the log likelihood for Gaussian logits.

    The expectations are computed by Gauss-Hermite quadrature with two points, one standard
    deviation to either side of the mean. The curvature is the Fisher information. All arrays have
    shape (answers,).
    """
    deviation = np.sqrt(variance)
    weight_of_point = np.float32(0.5)
    slope_if_right, slope_if_wrong, curvature = np.zeros((3, len(mean)), np.float32)
    for logit in (mean - deviation, mean + deviation):
        # With the odds against knowing, P(knows) = 1 / (1 + odds) = sigmoid(logit) and
        # P(right) = (1 + guessing · odds) / (1 + odds).
        odds = np.exp(-np.clip(logit, -_MAX_LOGIT, _MAX_LOGIT))
        knows = 1 / (1 + odds)
        # d log P(right) / d logit = (1 − guessing) odds P(knows) / (1 + guessing · odds).
        slope = weight_of_point * (1 - guessing) * odds * knows / (1 + guessing * odds)
        slope_if_right += slope
        # d log P(wrong) / d logit = −P(knows).
        slope_if_wrong -= weight_of_point * knows
        # The Fisher information is −(slope if right) · (slope if wrong).
        curvature += slope * knows
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
# The least squares of students are computed from the moments of items, and vice versa.
#
# A row of d + d(d + 1)/2 numbers holds a vector of d numbers, then a symmetric matrix. The matrix
# is stored as one triangle whose off-diagonal elements are multiplied by √2. So the scalar product
# of two stored triangles equals the scalar product of the two matrices.


def moments(g: Gaussians) -> FloatArray:
    """Return E[z] and E[zzᵀ] of Gaussian vectors, side by side."""
    n, d = g.mean.shape
    i, j, scale = _triangle(d)
    # E[zzᵀ] = covariance + mean meanᵀ.
    second = np.take(g.covariance.reshape(n, d * d), i * d + j, axis=1) * scale
    return np.concatenate([g.mean, second + pack_products(g.mean, g.mean)], axis=1)


def moments_with_one(students: Gaussians) -> FloatArray:
    """Return the moments of t = (ability, 1)."""
    one = np.ones((len(students.mean), 1), np.float32)
    covariance = np.pad(students.covariance, [(0, 0), (0, 1), (0, 1)])
    return moments(Gaussians(np.concatenate([students.mean, one], axis=1), covariance))


def weighted_sums(kappas: Any, weights: Any, rows: FloatArray) -> FloatArray:
    """Return Σ κ E[z] and Σ w E[zzᵀ] over answers, side by side.

    `kappas` and `weights` are sparse matrices, for instance with a row for each student and a
    column for each item. Row j of `rows` holds the moments of column j.
    """
    d = count_dimensions(rows)
    return np.concatenate([kappas @ rows[:, :d], weights @ rows[:, d:]], axis=1)


def count_dimensions(rows: FloatArray) -> int:
    """Return d, given rows of d + d(d + 1)/2 numbers."""
    # The positive solution of d + d(d + 1)/2 = n for n = rows.shape[1].
    return int(math.sqrt(2 * rows.shape[1] + 2.25) - 1.5)


def pack_products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return for each row the stored triangle of the outer product left rightᵀ.

    The outer products must be symmetric. `left` and `right` have shape (n, d).
    """
    i, j, scale = _triangle(left.shape[1])
    return np.take(left, i, axis=1) * np.take(right, j, axis=1) * scale


def _triangle(d: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return rows, columns and factors of a triangle; its last element is (d − 1, d − 1)."""
    i, j = np.tril_indices(d)
    return i, j, np.where(i == j, 1, math.sqrt(2)).astype(np.float32)


def _unpack(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the vectors, shape (n, d), and the matrices, shape (n, d, d)."""
    d = count_dimensions(rows)
    i, j, scale = _triangle(d)
    matrices = np.empty((len(rows), d, d), rows.dtype)
    matrices[:, i, j] = matrices[:, j, i] = rows[:, d:] / scale
    return rows[:, :d], matrices


# ---- The two weighted least squares ------------------------------------------------------------


def update_students(sums: FloatArray) -> Gaussians:
    """Return the posteriors of abilities.

    `sums` are the `weighted_sums` over each student's answers. Let z = (a, b): slopes a and
    intercept b. Then the precision is I + Σ w E[aaᵀ], and precision · mean is Σ κ E[a] − Σ w E[ab].
    """
    linear, squares = _unpack(sums)
    k = linear.shape[1] - 1
    covariance = np.linalg.inv(squares[:, :k, :k] + np.eye(k, dtype=np.float32))
    mean = np.einsum("nij,nj->ni", covariance, linear[:, :k] - squares[:, :k, k])
    return Gaussians(mean, covariance)


def update_items(sums: FloatArray, prior: Gaussians, group: IntArray) -> Gaussians:
    """Return the posteriors of items, float64.

    `sums` are the `weighted_sums` over each item's answers. With the prior N(m, V) of the item's
    group, the precision is V⁻¹ + Σ w E[ttᵀ], and precision · mean is V⁻¹m + Σ κ E[t].
    """
    linear, squares = _unpack(sums)
    prior_precision = np.linalg.inv(prior.covariance)
    prior_linear = np.einsum("gij,gj->gi", prior_precision, prior.mean)
    covariance = np.linalg.inv(prior_precision[group] + squares)
    mean = np.einsum("nij,nj->ni", covariance, prior_linear[group] + linear)
    return Gaussians(mean, covariance)


def estimate_prior(
    items: Gaussians, group: IntArray, is_answered: BoolArray, old: Gaussians
) -> Gaussians:
    """Return the prior of each group of items: the expected moments of the group's items.

    A weak guess at the covariance, as if of `_PRIOR_ITEMS` more items, is added. Only items with
    answers count. A group without such items keeps its old prior.
    """
    mean = old.mean.copy()
    covariance = old.covariance.copy()
    guess = _PRIOR_ITEMS * _PRIOR_VARIANCE * np.eye(mean.shape[1])
    for g in np.unique(group[is_answered]):
        rows = is_answered & (group == g)
        mean[g] = items.mean[rows].mean(axis=0)
        deviation = items.mean[rows] - mean[g]
        total = items.covariance[rows].sum(axis=0) + deviation.T @ deviation
        covariance[g] = (total + guess) / (len(deviation) + _PRIOR_ITEMS)
    return Gaussians(mean, covariance)
