r"""The mathematics of contexts: answers in the same quiz, or on the same day, share an effect.

A student's answers in one quiz are more alike than abilities explain: the topic was taught last
week or it was not, the student was tired, or guessed. So the logit of an answer gets an effect u of
(student, quiz), which is N(0, variance). All answers of the student in the quiz share this effect:
the testlet model (Bradlow, Wainer and Wang 1999, "A Bayesian random effects model for testlets").
Contexts may be nested, say quizzes in groups of similar quizzes. Then an answer has one effect at
each level, and the sum of these effects is its `total`. The variance of each level is estimated
from the answers, so that a level without influence shrinks to zero. If the context is the quiz of a
class, its students share an effect as well: they have been taught the topic or not.

The contexts of one student are the nodes of a tree whose root is the student. A node of the last
level, a leaf, holds the student's answers in the context. The logit of an answer is

    x = z · t + total,     where z = (slopes, intercept) of the item and t = (ability, 1).

The log likelihood of an answer is replaced by κx − wx²/2, where `model` gives κ and w. So ability
and effects have a joint Gaussian posterior. Eliminating the effects from the leaves to the root
gives this posterior exactly, in time linear in the number of answers. For a node, let

- u be its effect, with the prior precision p,
- U be the total above the node: the sum of the effects of the nodes between it and the root,
- W, r and S be Σ w, Σ κ and Σ w E[z] over its answers, if it is a leaf.

The log likelihood of the answers below the node is a function of its total U + u:

    (r − S · t) (U + u) − W (U + u)²/2.

Let g = p / (p + W). Integrating out u has three results:

- g r, g S and g W are added to r, S and W of the parent, which start at 0.
- r S / (p + W) and SSᵀ / (p + W) are subtracted from the student's sums Σ κ E[z] and Σ w E[zzᵀ],
  from which `model` computes the posterior of the ability.
- Given t and U, the node's total U + u is N(gU + (r − S · t) / (p + W), 1 / (p + W)).

An effect that students share is one more term of the totals of leaves. Its posterior is computed
from g r, g S and g W of the leaves of all these students, in which the students' own effects are
integrated out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from common.arrays import FloatArray, IntArray
from common.item_response.model import Gaussians, pack_products

import numpy as np
import scipy.sparse

# The variance of the effects at the start of a fit, and the prior guess at the variance.
START_VARIANCE = 0.2
# Weight of the prior guess: it counts as this many contexts.
_PRIOR_CONTEXTS = 3.0
# Upper bound on the acceleration in `accelerate`.
_MAX_ACCELERATION = 25.0
# Bound on the ratio of new and old variance in a step.
_MAX_RATIO = 2.0
_MIN_VARIANCE = 1e-6


@dataclass(frozen=True)
class Level:
    """One level of all students' trees. A node is a context in which a student has answers.

    Nodes are sorted as their answers are.
    """

    # Shape (nodes + 1,): the answers of node i are start[i] to start[i + 1].
    start: IntArray
    # Shape (nodes,): the node's parent in the level above. In the first level, the student.
    parent: IntArray
    # Shape (nodes,): the number of the node's context and the stage of its items (see `fitting`) in
    # one integer, context · (number of stages) + stage. Increasing among the nodes of one parent.
    label: IntArray

    @cached_property
    def keys(self) -> tuple[IntArray, int]:
        """Increasing keys by which `find_nodes` looks nodes up, and the width in the keys.

        The key of a node is parent · width + label. The width exceeds the largest label by 2, so
        that the label width − 1 belongs to no node.
        """
        width = 2 + int(self.label.max(initial=0))
        return self.parent * np.int64(width) + self.label, width

    def sum_children(self, values: FloatArray, n_parents: int) -> FloatArray:
        """Sum `values`, which has a row for each node, over the children of each parent."""
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


class Elimination(NamedTuple):
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
) -> tuple[list[Elimination], FloatArray]:
    """Integrate out the effects, from the leaves to the root.

    Parameters
    ----------
    levels
        The coarsest first.
    gathered
        W, r and S of the last level's nodes, side by side, shape (nodes, 2 + d). In r, each κ must
        have been reduced by w · E[shared effect], since the shared effect is a part of the logit.
    variance
        Prior variances of the effects, shape (levels, stages).
    n_students
        Number of students.

    Returns
    -------
    eliminations : list of Elimination
        For `restore`, the coarsest level first.
    taken : array of float32, shape (students, d + d(d + 1)/2)
        To be subtracted from each student's sums of `model.weighted_sums`, to integrate out the
        effects.
    """
    d = gathered.shape[1] - 2
    taken: FloatArray = np.zeros((len(gathered), d + d * (d + 1) // 2), np.float32)
    eliminations = []
    for depth in reversed(range(len(levels))):
        weight = gathered[:, 0]
        kappa = gathered[:, 1]
        pull = gathered[:, 2:]
        precision = 1 / variance[depth].astype(np.float32)[_stage(levels[depth], variance)]
        noise = 1 / (precision + weight)
        gain = precision * noise
        eliminated = Elimination(
            gain=gain,
            weight=gain * weight,
            noise=noise,
            linear=noise * kappa,
            pull=noise[:, None] * pull,
        )
        eliminations.append(eliminated)
        taken[:, :d] += eliminated.linear[:, None] * pull
        taken[:, d:] += pack_products(pull, eliminated.pull)
        n_parents = len(levels[depth - 1].parent) if depth else n_students
        gathered = levels[depth].sum_children(gathered * gain[:, None], n_parents)
        taken = levels[depth].sum_children(taken, n_parents)
    return eliminations[::-1], taken


def restore(
    levels: tuple[Level, ...],
    eliminations: list[Elimination],
    students: Gaussians,
    variance: FloatArray,
) -> tuple[list[FloatArray], FloatArray, FloatArray]:
    """Find the effects, from the root to the leaves, given the students' abilities.

    Returns
    -------
    effects : list of array of float32, shape (nodes, 2 + k)
        For each level the totals at its nodes: mean, variance, covariance with the ability.
    sums : array of float64, shape (levels, stages, 4)
        For `estimate_variance`: the number of nodes, and the sums over the nodes of E[u]², Var[u]
        and s². Here s is the share of the prior variance that the answers have removed, 1 − Var[u]
        / prior variance.
    shared_linear : array of float32, shape (leaves,)
        For `update_shared`: g (r − S · E[t] − W E[U]) of each leaf. It is the leaf's term of
        precision · mean of its shared effect if r holds κ; here κ is reduced as in `eliminate`.
    """
    n, k = students.mean.shape
    student = np.arange(n)
    t = np.concatenate([students.mean, np.ones((n, 1), np.float32)], axis=1)
    # Given t, the total at a node is N(linear − pull · t, noise). Above the first level it is 0.
    pull: FloatArray = np.zeros((n, k + 1), np.float32)
    zeros: FloatArray = np.zeros(n, np.float32)
    linear = zeros
    noise = zeros
    mean = zeros
    effects = []
    sums = np.zeros((*variance.shape, 4))
    for depth, (level, eliminated) in enumerate(zip(levels, eliminations, strict=True)):
        above = level.parent
        student = student[above]
        gain = eliminated.gain
        pull_above = pull[above]
        noise_above = noise[above]
        mean_above = mean[above]
        # Given t, the total is g times the total above plus N((r − S · t) / (p + W), 1 / (p + W)).
        pull = gain[:, None] * pull_above + eliminated.pull
        linear = gain * linear[above] + eliminated.linear
        noise = gain * gain * noise_above + eliminated.noise
        # Average over t.
        covariance = students.covariance[student]
        with_ability = -np.einsum("nij,nj->ni", covariance, pull[:, :k])
        mean = linear - np.einsum("ni,ni->n", pull, t[student])
        total_variance = noise - np.einsum("ni,ni->n", with_ability, pull[:, :k])
        effects.append(np.column_stack([mean, total_variance, with_ability]))
        # The node's own effect u is its total minus the total above.
        pull_of_u = (pull - pull_above)[:, :k]
        variance_of_u = np.einsum("ni,nij,nj->n", pull_of_u, covariance, pull_of_u, optimize=True)
        variance_of_u += (1 - gain) ** 2 * noise_above + eliminated.noise
        stage = _stage(level, variance)
        sums[depth] = _sum_moments(stage, mean - mean_above, variance_of_u, variance[depth])
    # For the leaves: (r − S · E[t]) / (p + W). Divided by noise = 1 / (p + W), it is r − S · E[t].
    own_mean = eliminated.linear - np.einsum("ni,ni->n", eliminated.pull, t[student])
    shared_linear = gain * own_mean / eliminated.noise - eliminated.weight * mean_above
    return effects, sums, shared_linear


def _stage(level: Level, variance: FloatArray) -> IntArray:
    """Return the stage of the items at each node, shape (nodes,).

    The labels number pairs of a context and a stage: label = context · number of stages + stage.
    """
    return level.label % np.int32(variance.shape[1])


def _sum_moments(
    stage: IntArray, mean: FloatArray, variance: FloatArray, prior: FloatArray
) -> FloatArray:
    """Return the sums of `restore` over effects of given means and variances, by stage.

    The columns are the number of effects u, Σ E[u]², Σ Var[u] and Σ s²; shape (stages, 4).
    """
    square_of_removed = (1 - variance / prior[stage]) ** 2
    columns = [np.ones(len(mean)), mean**2, variance, square_of_removed]
    return sum_by_label(stage, columns, len(prior))


def sum_by_label(label: IntArray, values: Sequence[FloatArray], n_labels: int) -> FloatArray:
    """Sum each array of values over the elements of each label, shape (labels, arrays)."""
    return np.stack([np.bincount(label, column, n_labels) for column in values], axis=1)


def estimate_variance(sums: FloatArray, old: FloatArray) -> FloatArray:
    """Return the variances of the effects, shape (levels, stages), from the sums of `restore`."""
    n_nodes, squares, variances, squares_of_removed = np.moveaxis(sums, -1, 0)
    n = n_nodes + _PRIOR_CONTEXTS
    new = (squares + variances + _PRIOR_CONTEXTS * START_VARIANCE) / n
    return accelerate(old, new, squares_of_removed / n, _MAX_ACCELERATION)


def accelerate(
    old: FloatArray, new: FloatArray, removed: FloatArray, max_acceleration: float
) -> FloatArray:
    """Extrapolate a step of expectation maximisation (EM) of variances, from `old` to `new`.

    An EM step goes only a share of about s² of the way to the variance at which EM would end (see
    `restore` for s). So Aitken's extrapolation takes 1 / s² steps at once, here on the scale of
    logarithms and within bounds. `removed` is the mean of s².
    """
    acceleration = np.minimum(1 / np.maximum(removed, 1e-9), max_acceleration)
    ratio = np.clip((new / old) ** acceleration, 1 / _MAX_RATIO, _MAX_RATIO)
    return np.maximum(old * ratio, _MIN_VARIANCE)


def update_shared(sums: FloatArray, old: SharedEffects) -> SharedEffects:
    """Return the posteriors of the shared effects.

    `sums` has shape (labels + stages, 2). The columns are the sums over the leaves of each label of
    g W, and of the leaf's term of precision · mean (see `shared_linear` of `restore`).
    """
    # A label is context · (number of stages) + stage.
    stage = np.arange(len(sums)) % len(old.prior)
    variance = 1 / (1 / old.prior[stage] + sums[:, 0])
    mean = variance * sums[:, 1]
    rows = np.flatnonzero(sums[:, 0] > 0)
    moments = _sum_moments(stage[rows], mean[rows], variance[rows], old.prior)
    prior = estimate_variance(moments, old.prior)
    variance = np.where(sums[:, 0] > 0, variance, prior[stage])
    return SharedEffects(mean.astype(np.float32), variance.astype(np.float32), prior)
