r"""The mathematics: the model, the weighted least squares that fit it, and the prior of the items.

A student has a latent `ability` (k numbers), an item k `slopes` (discriminations) and an intercept
(easiness, the negative of difficulty), and

    P(right) = guessing + (1 − guessing) sigmoid(x),    x = slopes · ability + intercept.

An item is something that a student passes or not: a question, if answers are right or wrong.
Abilities are N(0, I). The (slopes, intercept) of the items of a group are N(mean, covariance), and
these two are estimated from the same answers (empirical Bayes). So nothing has to be tuned: an item
with few answers is shrunk towards the others, a dimension without support in the answers to zero.
With k = 1 and no guessing this is the two-parameter logistic model.

Students and items get Gaussian posteriors. A Gaussian times the likelihood of an answer is no
Gaussian, but it is if the log likelihood is replaced by κx − wx²/2. The Gaussian that is closest to
the posterior (in the Kullback-Leibler divergence) has for w the expected curvature of the log
likelihood, and κ = expected slope + w E[x] (Opper and Archambeau 2009, "The variational Gaussian
approximation revisited"). So a step of the fit is: expectations of slope and curvature for every
answer, a weighted least squares for every student, another for every item, a new prior.

Below, z is (slopes, intercept) and t is (ability, 1), both of d = k + 1 dimensions: x = z · t.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]
Known = TypeVar("Known", bound="State")

# The curvature of an answer is taken as at least this, or a few steps could overshoot.
_MIN_CURVATURE = np.float32(0.01)
# Slope and curvature of the log likelihood hardly change beyond.
_MAX_LOGIT = np.float32(40)
# The prior guess about the variance of slopes and intercepts, and its weight in items.
_PRIOR_VARIANCE, _PRIOR_ITEMS = 0.1, 3.0


@dataclass(frozen=True)
class Gaussians:
    """Independent Gaussian distributions, one for each student, item or group."""

    mean: FloatArray  # Shape (n, d). Of a student: ability. Of an item: slopes, then intercept.
    covariance: FloatArray  # Shape (n, d, d).

    def __len__(self) -> int:
        """Count the distributions."""
        return len(self.mean)

    def take(self, places: IntArray | slice) -> "Gaussians":
        """Return some of the distributions."""
        return Gaussians(self.mean[places], self.covariance[places])

    def transform(self, matrix: FloatArray, shift: FloatArray | float = 0.0) -> "Gaussians":
        """Return the distributions of matrix @ x + shift, in the same precision."""
        n, d = self.mean.shape
        m = matrix.astype(self.mean.dtype)
        # One large product instead of many small ones: vec(MCMᵀ) = (M ⊗ M) vec(C).
        covariance = (self.covariance.reshape(n, d * d) @ np.kron(m, m).T).reshape(n, d, d)
        mean = self.mean @ m.T + np.asarray(shift, self.mean.dtype)
        return Gaussians(mean, covariance)


class SharedEffects(NamedTuple):
    """What all students have in common in a context of the last level: effects, independent.

    Mean and variance have shape (labels + stages,), float32; those of contexts without answers come
    last. The prior variance has shape (stages,).
    """

    mean: FloatArray
    variance: FloatArray
    prior: FloatArray


@dataclass(frozen=True, kw_only=True)
class State:
    """What is known after a step.

    If questions have several stages, their items are all of the first stage, then all of the
    second, and so on.
    """

    students: Gaussians  # Posteriors of the abilities, k dimensions.
    items: Gaussians  # Posteriors of slopes and intercepts, k + 1 dimensions.
    prior: Gaussians  # Of the items of each stage.
    guessing: FloatArray  # Probability of passing without knowing how, shape (items,), float32.
    # With contexts (see `context`): for each level, the coarsest first, the posterior of the total
    # effect at its nodes, float32, shape (nodes, 2 + k): mean, variance, and covariances with the
    # student's ability; the prior variance of effects, shape (levels, stages); and shared effects.
    effects: tuple[FloatArray, ...] = ()
    variance: FloatArray = field(default_factory=lambda: np.zeros((0, 1)))
    shared: SharedEffects = field(default_factory=lambda: SharedEffects(*np.zeros((3, 1))))

    @property
    def stage(self) -> IntArray:
        """The stage of each item, shape (items,)."""
        n_stages = len(self.prior)
        return np.repeat(np.arange(n_stages), len(self.items) // n_stages)


def join(parts: Iterable[Gaussians]) -> Gaussians:
    """Return all distributions of several."""
    means, covariances = zip(*((part.mean, part.covariance) for part in parts), strict=True)
    return Gaussians(np.concatenate(means), np.concatenate(covariances))


def standard_normal(n: int, k: int) -> Gaussians:
    """Return n standard Gaussians of k dimensions: students without answers."""
    identity = np.eye(k, dtype=np.float32)
    return Gaussians(np.zeros((n, k), np.float32), np.tile(identity, (n, 1, 1)))


# ---- One answer -------------------------------------------------------------------------------


def expected_slope_and_curvature(
    mean: FloatArray, variance: FloatArray, is_right: BoolArray, guessing: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return expected slope and curvature of the log likelihood of answers, for Gaussian logits.

    Expectations are means over the two points one deviation away from the mean: Gauss-Hermite
    quadrature, exact for polynomials up to the third degree. The curvature is that of an answer not
    seen yet, Fisher's information, which is never negative. All arrays have shape (answers,).
    """
    deviation = np.sqrt(variance)
    half = np.float32(0.5)
    slope_if_right, slope_if_wrong, curvature = np.zeros((3, len(mean)), np.float32)
    for logit in (mean - deviation, mean + deviation):
        odds = np.exp(-np.clip(logit, -_MAX_LOGIT, _MAX_LOGIT))
        # P(knows) = 1 / (1 + odds) and P(right) = (1 + guessing odds) / (1 + odds).
        knows = 1 / (1 + odds)
        slope = half * (1 - guessing) * odds * knows / (1 + guessing * odds)
        slope_if_right += slope
        slope_if_wrong -= half * knows
        curvature += slope * knows
    slope = np.where(is_right, slope_if_right, slope_if_wrong)
    return slope, np.maximum(curvature, _MIN_CURVATURE)


def expected_probability(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return E[sigmoid(x)] for Gaussian x, by an approximation.

    Source: MacKay (1992), "The evidence framework applied to classification networks".
    """
    scaled = mean / np.sqrt(1 + np.float32(math.pi / 8) * variance)
    # sigmoid(x) = (1 + tanh(x / 2)) / 2, which does not overflow.
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * scaled), np.float32)


# ---- Moments, which are all that the least squares need of the other side ----------------------


class Moments(NamedTuple):
    """First and second moments of random vectors z, float32.

    Of each matrix E[zzᵀ] one triangle, its elements off the diagonal multiplied by √2, so that the
    scalar product of two matrices is that of their triangles.
    """

    mean: FloatArray  # Shape (n, d).
    second: FloatArray  # Shape (n, d(d + 1)/2).


def moments(g: Gaussians) -> Moments:
    """Return the moments of Gaussian vectors."""
    n, d = g.mean.shape
    i, j, scale = _triangle(d)
    second = np.take(g.covariance.reshape(n, d * d), i * d + j, axis=1)
    return Moments(g.mean, second * scale + pack(g.mean, g.mean))


def pack(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the triangles of the symmetric matrices left @ rightᵀ, as in `Moments.second`."""
    i, j, scale = _triangle(left.shape[1])
    return np.take(left, i, axis=1) * np.take(right, j, axis=1) * scale


def append_one(students: Gaussians) -> Gaussians:
    """Return the distributions of t = (ability, 1)."""
    one = np.ones((len(students), 1), np.float32)
    covariance = np.pad(students.covariance, [(0, 0), (0, 1), (0, 1)])
    return Gaussians(np.concatenate([students.mean, one], axis=1), covariance)


def _triangle(d: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return rows, columns and factors of a triangle; the last is that of (d − 1, d − 1)."""
    i, j = np.tril_indices(d)
    return i, j, np.where(i == j, 1, math.sqrt(2)).astype(np.float32)


def _unpack(triangles: FloatArray, d: int) -> FloatArray:
    """Return symmetric matrices, shape (n, d, d), from their triangles."""
    i, j, scale = _triangle(d)
    matrices = np.empty((len(triangles), d, d), triangles.dtype)
    matrices[:, i, j] = matrices[:, j, i] = triangles / scale
    return matrices


# ---- The two weighted least squares ------------------------------------------------------------


def update_students(
    weights: Any, kappas: Any, items: Moments, taken: FloatArray | float = 0.0
) -> Gaussians:
    """Return the posterior of the students' abilities.

    precision = I + Σ w E[aaᵀ] and precision @ mean = Σ κ E[a] − w E[ab], with the slopes a and the
    intercept b of the items that the student answered. `weights` and `kappas`, w and κ, are sparse
    matrices of students × items; `taken` is what effects of the context take away from the sums
    (see `context.eliminate`).
    """
    d = items.mean.shape[1]
    k = d - 1
    sums = np.concatenate([kappas @ items.mean, weights @ items.second], axis=1) - taken
    squares = _unpack(sums[:, d:], d)
    precision = squares[:, :k, :k] + np.eye(k, dtype=np.float32)
    linear = sums[:, :k] - squares[:, :k, k]
    covariance = np.linalg.inv(precision)
    return Gaussians(np.einsum("nij,nj->ni", covariance, linear), covariance)


def sum_for_items(weights: Any, kappas: Any, students: Moments) -> FloatArray:
    """Return Σ κ E[t] and the triangle of Σ w E[ttᵀ] for every item, side by side.

    These sums over the students are all that `update_items` needs, so that parts of the students
    can be processed separately. The last column, Σ w, is positive for an item with answers.
    """
    return np.concatenate([kappas.T @ students.mean, weights.T @ students.second], axis=1)


def update_items(sums: FloatArray, prior: Gaussians, group: IntArray) -> Gaussians:
    """Return the posterior of the items' slopes and intercepts, float64.

    precision = V⁻¹ + Σ w E[ttᵀ] and precision @ mean = V⁻¹m + Σ κ E[t], with the prior N(m, V) of
    the item's group and the sums of `sum_for_items`.
    """
    d = prior.mean.shape[1]
    prior_precision = np.linalg.inv(prior.covariance)
    prior_linear = np.einsum("gij,gj->gi", prior_precision, prior.mean)
    covariance = np.linalg.inv(prior_precision[group] + _unpack(sums[:, d:], d))
    mean = np.einsum("nij,nj->ni", covariance, prior_linear[group] + sums[:, :d])
    return Gaussians(mean, covariance)


# ---- Prior and scale ---------------------------------------------------------------------------


def estimate_prior(
    items: Gaussians, group: IntArray, is_answered: BoolArray, old: Gaussians
) -> Gaussians:
    """Estimate mean and covariance of the items of each group from their posteriors.

    The expected second moment around the mean, with a weak prior guess. A group without answers
    keeps its old prior.
    """
    mean, covariance = old.mean.copy(), old.covariance.copy()
    guess = _PRIOR_ITEMS * _PRIOR_VARIANCE * np.eye(mean.shape[1])
    for g in np.unique(group[is_answered]):
        rows = is_answered & (group == g)
        mean[g] = items.mean[rows].mean(axis=0)
        deviation = items.mean[rows] - mean[g]
        total = items.covariance[rows].sum(axis=0) + deviation.T @ deviation
        covariance[g] = (total + guess) / (len(deviation) + _PRIOR_ITEMS)
    return Gaussians(mean, covariance)


def standardise(state: Known) -> Known:
    """Shift and scale abilities to mean 0 and covariance I over the students.

    Items and prior are changed to match, so that no prediction changes; but the fit needs far fewer
    steps (parameter expansion: Liu, Rubin and Wu 1998, "Parameter expansion to accelerate EM").
    """
    n, k = state.students.mean.shape
    ability = state.students.mean.astype(np.float64)
    centre = ability.mean(axis=0)
    total = state.students.covariance.sum(axis=0, dtype=np.float64)
    spread = (ability.T @ ability + total) / n - np.outer(centre, centre)
    root = np.linalg.cholesky(spread)
    inverse = np.linalg.inv(root)
    # Slopes · ability + intercept must stay the same.
    matrix = np.eye(k + 1)
    matrix[:k, :k] = root.T
    matrix[k, :k] = centre
    return replace(
        state,
        students=state.students.transform(inverse, -inverse @ centre),
        items=state.items.transform(matrix),
        prior=state.prior.transform(matrix),
        effects=tuple(
            np.hstack([own[:, :2], own[:, 2:] @ inverse.T.astype(np.float32)])
            for own in state.effects
        ),
    )
