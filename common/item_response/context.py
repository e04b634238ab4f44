r"""The mathematics of contexts: answers in the same quiz, or on the same day, share an effect.

A student's answers in one quiz are more alike than abilities explain: the topic was taught last
week or it was not, the student was tired, or guessed. So the logit of an answer gets an effect u of
(student, quiz), which is N(0, variance). All answers of the student in the quiz share this effect:
the testlet model (Bradlow, Wainer and Wang 1999, "A Bayesian random effects model for testlets").
Contexts may be nested, say quizzes in groups of similar quizzes. Then an answer has one effect at
each level, and the sum of these effects is its `total`. The variance of each level is estimated
from the answers, so that a level without influence shrinks to zero. If the context is the quiz of a
class, its students share an effect as well: they have been taught the topic or not.

The contexts of one student are a tree whose root is the student. The log likelihood of an answer is
replaced by κx − wx²/2 (see `model`), so ability and effects have a joint Gaussian posterior.
Eliminating the effects from the leaves to the root gives this posterior exactly, in time linear in
the number of answers. Let t be (ability, 1), and let U be the total above a node. The log
likelihood that the node has gathered is a function of U,

    (r − S · t) U − W U²/2,     in a leaf r = Σ κ, S = Σ w E[z], W = Σ w over its answers.

Let the node's effect u have the prior precision p, and let g = p / (p + W). Integrating out u

- adds g r, g S and g W to r, S and W of the parent,
- takes SSᵀ / (p + W) from the precision of the ability, and r S / (p + W) from its linear term,
- leaves the node's total, given t and U, as N(gU + (r − S · t) / (p + W), 1 / (p + W)).

An effect that students share is one more term of U in the leaves of all these students. It is
updated from the r, S and W that these leaves pass to their parents, with the students' own effects
integrated out.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from common.arrays import FloatArray, IntArray
from common.item_response.model import Gaussians, pack

import numpy as np
import scipy.sparse

# The variance of the effects at the start of a fit, and the prior guess at the variance.
START_VARIANCE = 0.2
# Weight of the prior guess, in contexts.
_PRIOR_CONTEXTS = 3.0
# Bound on the exponent of the change of a variance in a step, see `accelerate`.
_MAX_ACCELERATION = 25.0
# Bound on the ratio of new and old variance in a step.
_MAX_RATIO = 2.0
_MIN_VARIANCE = 1e-6


@dataclass(frozen=True)
class Level:
    """The contexts of one level: nodes of all students' trees, in the order of their answers."""

    # Shape (nodes + 1,): the answers of node i are start[i] to start[i + 1].
    start: IntArray
    # Shape (nodes,): the node's parent in the level above. In the first level, the student.
    parent: IntArray
    # Shape (nodes,): the number of the context, increasing among the nodes of one parent. It is
    # context · (number of stages) + stage, where the stage is that of the items in the node.
    label: IntArray

    @cached_property
    def keys(self) -> tuple[IntArray, int]:
        """The key of each node, parent · width + label, shape (nodes,); and the width."""
        width = 2 + int(self.label.max(initial=0))
        return self.parent * np.int64(width) + self.label, width

    def sum_children(self, values: FloatArray, n_parents: int) -> FloatArray:
        """Return the sum of the children's values, shape (nodes, …), for each parent."""
        # A sparse matrix with a row for each parent and a 1 for each child.
        n = len(values)
        first = np.searchsorted(self.parent, np.arange(n_parents + 1))
        ones = np.ones(n, np.float32)
        nodes = np.arange(n, dtype=np.int32)
        sums: FloatArray = scipy.sparse.csr_matrix((ones, nodes, first), (n_parents, n)) @ values
        return sums


class SharedEffects(NamedTuple):
    """Effects that all students share in a context of the last level: independent Gaussians."""

    # Shape (labels + stages,), float32. The last elements, one for each stage, belong to contexts
    # without answers.
    mean: FloatArray
    # Shape (labels + stages,), float32.
    variance: FloatArray
    # Prior variance, shape (stages,).
    prior: FloatArray


class Step(NamedTuple):
    """Quantities that `eliminate` computes and `restore` needs, for each node of a level.

    The symbols are those of the module's docstring.
    """

    # g, shape (nodes,).
    gain: FloatArray
    # g W, shape (nodes,).
    weight: FloatArray
    # 1 / (p + W), shape (nodes,).
    noise: FloatArray
    # r / (p + W), shape (nodes,).
    linear: FloatArray
    # S / (p + W), shape (nodes, d).
    pull: FloatArray


def eliminate(
    levels: tuple[Level, ...], gathered: FloatArray, variance: FloatArray, n_students: int
) -> tuple[list[Step], FloatArray]:
    """Integrate out the effects, from the leaves to the root.

    Parameters
    ----------
    levels
        The coarsest first.
    gathered
        W, r and S of the last level's nodes, side by side, shape (nodes, 2 + d). In r, κ − w
        E[shared effect] replaces κ.
    variance
        Prior variances of the effects, shape (levels, stages).
    n_students
        Number of students.

    Returns
    -------
    steps : list of Step
        For `restore`, the coarsest level first.
    taken : array of float32, shape (students, d + d(d + 1)/2)
        The effects take this from each student's sums of `model.weigh`.
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
        g (r − S · t − W U) of each leaf, from which shared effects are updated.
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
        # The node's own effect u is its total minus the parent's total.
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
    """Return the sums of `restore` over effects of given means and variances, by stage.

    They are the number of effects u, Σ E[u]², Σ Var[u] and Σ s², shape (stages, 4).
    """
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
    """Return variances that lie beyond `new`, the result of a step of expectation maximisation.

    Such a step leaves a share of 1 − s² of the way. So Aitken's extrapolation takes 1 / s² steps at
    once. `removed` is the mean of s² (see `restore`).
    """
    acceleration = np.minimum(1 / np.maximum(removed, 1e-9), max_acceleration)
    ratio = np.clip((new / old) ** acceleration, 1 / _MAX_RATIO, _MAX_RATIO)
    return np.maximum(old * ratio, _MIN_VARIANCE)


def update_shared(sums: FloatArray, old: SharedEffects) -> SharedEffects:
    """Return the posteriors of the shared effects.

    `sums` has shape (labels + stages, 2). It holds the sums over the leaves of each label: of g W,
    and of `left` from `restore`.
    """
    stage = np.arange(len(sums)) % len(old.prior)
    variance = 1 / (1 / old.prior[stage] + sums[:, 0])
    mean = variance * sums[:, 1]
    rows = np.flatnonzero(sums[:, 0] > 0)
    squares = _sum_squares(stage[rows], mean[rows], variance[rows], old.prior)
    prior = estimate_variance(squares, old.prior)
    variance = np.where(sums[:, 0] > 0, variance, prior[stage])
    return SharedEffects(mean.astype(np.float32), variance.astype(np.float32), prior)
