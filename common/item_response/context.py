r"""The mathematics of contexts: answers in the same quiz, or on the same day, share an effect.

A student's answers in one quiz are alike beyond what abilities tell: the topic was taught last week
or it was not, the student was tired, or guessed. So the logit of an answer gets an effect u of
(student, quiz), which is N(0, variance), and which all answers of this student in this quiz share:
the testlet model (Bradlow, Wainer and Wang 1999, "A Bayesian random effects model for testlets").
Contexts may be nested, say quizzes in groups of similar quizzes: then the effects on the way from
the student down to the answer add up to its `total`. Each level has a variance of its own that is
estimated from the answers, so that a level that tells nothing shrinks to zero. If the context is
the quiz of a class, its students share an effect as well: they have been taught the topic or not.

The contexts of one student are a tree, its root the student, and the log likelihood of an answer is
replaced by κx − wx²/2 (see `model`). Thus ability and effects have a joint Gaussian posterior, and
eliminating the effects from the leaves to the root gives it exactly, in time linear in the answers.
Let t be (ability, 1), and let a node have gathered, as a function of the total U above it,

    (r − S · t) U − W U²/2,     in a leaf r = Σ κ, S = Σ w E[z], W = Σ w over its answers.

Integrating out its effect u with prior precision p, and g = p / (p + W), leaves its parent with
g r, g S and g W to add to its own, the ability with SSᵀ / (p + W) less precision and r S / (p + W)
less linear term; and given t and U the node's total is N(gU + (r − S · t) / (p + W), 1 / (p + W)).
An effect that students share is one more term of U in the leaves of all of them. It is updated from
what these leaves leave to their parents, with the students' own effects integrated out.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from common.arrays import FloatArray, IntArray
from common.item_response.model import Gaussians, pack

import numpy as np
import scipy.sparse

# Variance of the effects that a fit begins with, which is also the prior guess about it.
START_VARIANCE = 0.2
# Weight of this guess, in contexts.
_PRIOR_CONTEXTS = 3.0
# Bounds on how a step changes a variance, see `accelerate`: on the exponent, and on the ratio.
_MAX_ACCELERATION = 25.0
_MAX_RATIO = 2.0
_MIN_VARIANCE = 1e-6


@dataclass(frozen=True)
class Level:
    """The contexts of one level: nodes of all students' trees, in the order of their answers."""

    # Shape (nodes + 1,): the answers of node i are start[i] to start[i + 1].
    start: IntArray
    # Shape (nodes,): the node's parent in the level above. In the first level, the student.
    parent: IntArray
    # Shape (nodes,): number of the context, increasing among the nodes of one parent. Its remainder
    # by the number of stages of a question is the stage of the items in the node.
    label: IntArray

    @cached_property
    def keys(self) -> tuple[IntArray, int]:
        """The key of each node, parent · width + label, shape (nodes,); and the width."""
        width = 2 + int(self.label.max(initial=0))
        return self.parent * np.int64(width) + self.label, width

    def sum_children(self, values: FloatArray, n_parents: int) -> FloatArray:
        """Return the sum of the children's values, shape (nodes, …), for each parent."""
        n = len(values)
        first = np.searchsorted(self.parent, np.arange(n_parents + 1))
        ones, nodes = np.ones(n, np.float32), np.arange(n, dtype=np.int32)
        sums: FloatArray = scipy.sparse.csr_matrix((ones, nodes, first), (n_parents, n)) @ values
        return sums


class SharedEffects(NamedTuple):
    """Effects that all students share in a context of the last level: independent Gaussians."""

    # Shape (labels + stages,), float32. The last ones, one for each stage, are those of contexts
    # without answers.
    mean: FloatArray
    # The same shape.
    variance: FloatArray
    # Prior variance, shape (stages,).
    prior: FloatArray


class Step(NamedTuple):
    """What `eliminate` leaves for `restore`, for each node of a level; symbols as above."""

    gain: FloatArray  # g
    weight: FloatArray  # g W
    noise: FloatArray  # 1 / (p + W)
    linear: FloatArray  # r / (p + W)
    pull: FloatArray  # S / (p + W)


def eliminate(
    levels: tuple[Level, ...], gathered: FloatArray, variance: FloatArray, n_students: int
) -> tuple[list[Step], FloatArray]:
    """Integrate out the effects, from the leaves to the root.

    Parameters
    ----------
    levels
        The coarsest first.
    gathered
        W, r and S of the last level's nodes, side by side, shape (nodes, 2 + d); for κ stands
        κ − w E[shared effect].
    variance
        Prior variances of the effects, shape (levels, stages).
    n_students
        Number of students.

    Returns
    -------
    steps : list of Step
        For `restore`, the coarsest level first.
    taken : array of float32, shape (students, d + d(d + 1)/2)
        What the effects take from each student's sums of `model.weigh`.
    """
    d = gathered.shape[1] - 2
    taken: FloatArray = np.zeros((len(gathered), d + d * (d + 1) // 2), np.float32)
    steps = []
    for depth in reversed(range(len(levels))):
        weight = gathered[:, 0]
        kappa = gathered[:, 1]
        pull = gathered[:, 2:]
        precision = 1 / variance[depth].astype(np.float32)[_stage(levels[depth], variance)]
        noise = 1 / (precision + weight)
        gain = precision * noise
        steps.append(Step(gain, gain * weight, noise, noise * kappa, noise[:, None] * pull))
        taken[:, :d] += steps[-1].linear[:, None] * pull
        taken[:, d:] += pack(pull, steps[-1].pull)
        n_parents = len(levels[depth - 1].parent) if depth else n_students
        gathered = levels[depth].sum_children(gathered * gain[:, None], n_parents)
        taken = levels[depth].sum_children(taken, n_parents)
    return steps[::-1], taken


def restore(
    levels: tuple[Level, ...], steps: list[Step], students: Gaussians, variance: FloatArray
) -> tuple[list[FloatArray], FloatArray, FloatArray]:
    """Find the effects, from the root to the leaves, given the students' abilities.

    Returns
    -------
    effects : list of array of float32, shape (nodes, 2 + k)
        For each level the totals at its nodes: mean, variance, covariance with the ability.
    sums : array of float64, shape (levels, stages, 4)
        Sums over the nodes of 1, E[u]², Var[u] and s², where s is the share of the prior variance
        that the answers have removed.
    left : array of float32, shape (leaves,)
        g (r − S · t − W U) of each leaf, which is what shared effects are updated from.
    """
    n, k = students.mean.shape
    student = np.arange(n)
    t = np.concatenate([students.mean, np.ones((n, 1), np.float32)], axis=1)
    # The total at a node, as a function of t, is N(linear − pull · t, noise); above the root 0.
    pull: FloatArray = np.zeros((n, k + 1), np.float32)
    linear: FloatArray = np.zeros(n, np.float32)
    noise = linear
    mean = linear
    effects = []
    sums = np.zeros((*variance.shape, 4))
    for depth, (level, step) in enumerate(zip(levels, steps, strict=True)):
        above = level.parent
        student = student[above]
        gain = step.gain
        pull_above = pull[above]
        noise_above = noise[above]
        mean_above = mean[above]
        pull = gain[:, None] * pull_above + step.pull
        linear = gain * linear[above] + step.linear
        noise = gain * gain * noise_above + step.noise
        covariance = students.covariance[student]
        with_ability = -np.einsum("nij,nj->ni", covariance, pull[:, :k])
        mean = linear - np.einsum("ni,ni->n", pull, t[student])
        total_variance = noise - np.einsum("ni,ni->n", with_ability, pull[:, :k])
        effects.append(np.column_stack([mean, total_variance, with_ability]))
        # The node's own effect u is its total minus that of its parent.
        pull_of_u = (pull - pull_above)[:, :k]
        variance_of_u = np.einsum("ni,nij,nj->n", pull_of_u, covariance, pull_of_u, optimize=True)
        variance_of_u += (1 - gain) ** 2 * noise_above + step.noise
        stage = _stage(level, variance)
        sums[depth] = _sum_squares(stage, mean - mean_above, variance_of_u, variance[depth])
    left = step.linear - np.einsum("ni,ni->n", step.pull, t[student])
    return effects, sums, gain * left / step.noise - step.weight * mean_above


def _stage(level: Level, variance: FloatArray) -> IntArray:
    """Return the stage of the items at each node, shape (nodes,)."""
    return level.label % np.int32(variance.shape[1])


def _sum_squares(
    stage: IntArray, mean: FloatArray, variance: FloatArray, prior: FloatArray
) -> FloatArray:
    """Return the number of effects u, Σ E[u]², Σ Var[u] and Σ s² (see `restore`), (stages, 4)."""
    square_of_removed = (1 - variance / prior[stage]) ** 2
    columns = [np.ones(len(mean)), mean**2, variance, square_of_removed]
    return np.stack([np.bincount(stage, values, len(prior)) for values in columns], axis=1)


def estimate_variance(sums: FloatArray, old: FloatArray) -> FloatArray:
    """Return the variances of the effects, shape (levels, stages), from the sums of `restore`."""
    n_nodes = sums[..., 0] + _PRIOR_CONTEXTS
    new = (sums[..., 1] + sums[..., 2] + _PRIOR_CONTEXTS * START_VARIANCE) / n_nodes
    return accelerate(old, new, sums[..., 3] / n_nodes, _MAX_ACCELERATION)


def accelerate(
    old: FloatArray, new: FloatArray, removed: FloatArray, max_acceleration: float
) -> FloatArray:
    """Return variances that lie further on than `new`, a step of expectation maximisation.

    Such a step leaves 1 − s² of the way. So Aitken's extrapolation takes 1 / s² steps at once.
    `removed` is the mean of s² (see `restore`).
    """
    acceleration = np.minimum(1 / np.maximum(removed, 1e-9), max_acceleration)
    ratio = np.clip((new / old) ** acceleration, 1 / _MAX_RATIO, _MAX_RATIO)
    return np.maximum(old * ratio, _MIN_VARIANCE)


def update_shared(sums: FloatArray, old: SharedEffects) -> SharedEffects:
    """Return the shared effects' posteriors.

    `sums` are those over leaves of g W and of what `restore` leaves, shape (labels + stages, 2).
    """
    stage = np.arange(len(sums)) % len(old.prior)
    variance = 1 / (1 / old.prior[stage] + sums[:, 0])
    mean = variance * sums[:, 1]
    rows = np.flatnonzero(sums[:, 0] > 0)
    squares = _sum_squares(stage[rows], mean[rows], variance[rows], old.prior)
    prior = estimate_variance(squares, old.prior)
    variance = np.where(sums[:, 0] > 0, variance, prior[stage])
    return SharedEffects(mean.astype(np.float32), variance.astype(np.float32), prior)
