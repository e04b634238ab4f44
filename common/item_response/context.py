"""The mathematics of contexts: answers in the same quiz, or on the same day, share an effect.

A student's answers in one quiz are more alike than abilities explain: the topic was taught last
week or it was not, the student was tired, or guessed. So the logit of an answer gets an effect of
(student, quiz), which is N(0, variance). All answers of the student in the quiz share this effect:
the testlet model (Bradlow, Wainer and Wang 1999, "A Bayesian random effects model for testlets").
Contexts may be nested, say quizzes in groups of similar quizzes. Then an answer has one effect at
each level. The variance of each level is estimated from the answers, so that a level without
influence shrinks to zero. If the context is the quiz of a class, its students share an effect as
well: they have been taught the topic or not.

The contexts of one student are the nodes of a tree whose root is the student:

    student                     the root
        group of quizzes        a node of the first level
            quiz                a node of the last level: a leaf, which holds the answers

Each node has an effect. The total effect at a node is the sum of the node's effect and the effects
of the nodes above it. The logit of an answer is

    logit = student vector · item vector + total effect at the answer's leaf,

where the student vector is (ability, 1) and the item vector (slopes, intercept). The log likelihood
of an answer is replaced by linear · logit − weight · logit² / 2 (see `model`). So ability and
effects have a joint Gaussian posterior. Eliminating the effects from the leaves to the root gives
this posterior exactly, in time linear in the number of answers.

The formulas of a node have the precision of its effect, 1 / (prior variance), and three sums. If
the node is a leaf, they are sums over its answers:

    weight_sum = Σ weight,    linear_sum = Σ linear,    item_sum = Σ weight · E[item vector].

The log likelihood of the answers is a function of the node's total effect:

    (linear_sum − item_sum · student vector) · total − weight_sum · total² / 2.

The total is the total above the node plus the node's effect. Let

    gain = precision / (precision + weight_sum),    noise = 1 / (precision + weight_sum).

Integrating out the node's effect has three results:

- The log likelihood becomes a function of the total above, with the three sums multiplied by
  `gain`. So the three sums of a node that is no leaf are sums over its children, of each child's
  `gain` times the child's sum.
- noise · linear_sum · item_sum is subtracted from the student's Σ linear · E[item vector], and
  noise · item_sum item_sumᵀ from the student's Σ weight · E[item vector item vectorᵀ]. `model`
  computes the posterior of the ability from these two sums.
- Given the ability and the total above, the node's total is Gaussian with the mean
  gain · (total above) + noise · (linear_sum − item_sum · student vector) and the variance `noise`.

An effect that students share is one more term of the totals of leaves. Its posterior is computed
from the three sums of the leaves of all these students, multiplied by `gain`: the effects of the
leaves are integrated out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from common.answers import find_ids
from common.arrays import FloatArray, IntArray
from common.item_response.model import Gaussians, store_outer_products

import numpy as np
import scipy.sparse

# The prior variance of the effects of contexts at the start of a fit. It also enters each later
# estimate of this variance as a guess, so that an estimate from few effects is not extreme.
START_VARIANCE = 0.2
# In an estimate of a prior variance, the guess `START_VARIANCE` counts as much as this number of
# effects.
_EFFECTS_OF_GUESS = 3.0
# The prior variances are estimated by EM (expectation maximisation). To save time, `accelerate`
# takes several EM steps at once, but at most this many.
_MAX_ACCELERATION = 25.0
# In one step, a variance is multiplied or divided by at most this factor.
_MAX_RATIO = 2.0
_MIN_VARIANCE = 1e-6

# The columns of an array of effects, which has 2 + k columns for k abilities: posterior mean,
# posterior variance, and posterior covariance with each ability.
EFFECT_MEAN = 0
EFFECT_VARIANCE = 1
EFFECT_MEAN_AND_VARIANCE = slice(0, 2)
EFFECT_COVARIANCES = slice(2, None)


# ---- Trees of contexts -------------------------------------------------------------------------


def make_label(context_number: IntArray, stage: IntArray | np.int32, n_stages: int) -> IntArray:
    """Return one integer for each pair of a context and a stage: context · `n_stages` + stage.

    A model of the options predicts an answer in several stages: whether it is right, else whether
    it is the most popular wrong option, and so on (see MODEL.md). A context has a different effect
    in each stage. A model of right and wrong answers has one stage, and the label is the number of
    the context.
    """
    return context_number * np.int32(n_stages) + stage


def stage_of_label(label: IntArray, n_stages: int) -> IntArray:
    """Return the stage of each label; a label is context · `n_stages` + stage, see `make_label`."""
    return label % np.int32(n_stages)


@dataclass(frozen=True)
class Level:
    """One level of all students' trees. A node is a context in which a student has answers.

    Nodes are in the order of their answers, which are sorted by student and context.
    """

    # Shape (nodes + 1,): the answers of node i are start[i] to start[i + 1].
    start: IntArray
    # Shape (nodes,): the position of each node's parent in the level above. The parents of the
    # first level's nodes are the students.
    parent: IntArray
    # Shape (nodes,): the node's context and stage as one integer (see `make_label`). The labels of
    # the nodes of one parent increase.
    label: IntArray

    @cached_property
    def _label_width(self) -> int:
        """How many keys `_keys` reserves for each parent: the largest label of a node, plus 2.

        The keys of a parent stand for the labels 0 to width − 1. No node has the label width − 1:
        `find` uses it in place of larger labels.
        """
        return 2 + int(self.label.max(initial=0))

    @cached_property
    def _keys(self) -> IntArray:
        """The key of each node, parent · `_label_width` + label, in increasing order."""
        return self.parent * np.int64(self._label_width) + self.label

    def find(self, parent: IntArray, label: IntArray) -> IntArray:
        """Return for each parent and label the position of the node that has them.

        If there is no such node, the result is the number of nodes.
        """
        # The key of a node is parent · width + label. With a label of width or more, it could be
        # the key of a node of the next parent. So replace such a label by width − 1, which is the
        # label of no node.
        label = np.minimum(label, self._label_width - 1)
        return find_ids(self._keys, parent * self._label_width + label)

    def sum_children(self, values: FloatArray, n_parents: int) -> FloatArray:
        """Sum `values`, which has a row for each node, over the children of each parent."""
        # `is_child` is a sparse matrix with a row for each parent and a column for each node. It is
        # 1 if the node is a child of the parent.
        n_nodes = len(values)
        first_child = np.searchsorted(self.parent, np.arange(n_parents + 1))
        ones = np.ones(n_nodes, np.float32)
        nodes = np.arange(n_nodes, dtype=np.int32)
        is_child = scipy.sparse.csr_matrix((ones, nodes, first_child), (n_parents, n_nodes))
        sums: FloatArray = is_child @ values
        return sums


# ---- From the leaves to the root ---------------------------------------------------------------


class ConditionalTotals(NamedTuple):
    """The distribution of the total effects at a level's nodes, given abilities and totals above.

    If the student's ability and the total effect above a node are known, the total effect at the
    node is Gaussian. Its mean is gain · (total above) + offset − pull · (ability, 1), its variance
    is `noise`.

    The fields are computed from the node's precision, weight_sum, linear_sum and item_sum, which
    the module's docstring defines: at a leaf they are sums over answers, elsewhere over children.
    """

    # The factor of the total above in the mean: precision / (precision + weight_sum), shape
    # (nodes,). It is 1 if no answer that the fit uses belongs to the node. The better the answers
    # determine the node's effect, the closer it is to 0.
    gain: FloatArray
    # The node adds this to the weight_sum of its parent: gain · weight_sum, shape (nodes,).
    weight_above: FloatArray
    # The variance: 1 / (precision + weight_sum), shape (nodes,).
    noise: FloatArray
    # A term of the mean: noise · linear_sum, shape (nodes,).
    offset: FloatArray
    # The vector that (ability, 1) is multiplied by in the mean: noise · item_sum, shape
    # (nodes, k + 1) with k abilities.
    pull: FloatArray


def eliminate(
    levels: tuple[Level, ...], leaf_sums: FloatArray, variance: FloatArray, n_students: int
) -> tuple[list[ConditionalTotals], FloatArray]:
    """Integrate the effects of contexts out of the log likelihood, from the leaves to the root.

    Parameters
    ----------
    levels
        The levels of contexts, the coarsest first.
    leaf_sums
        Shape (leaves, 2 + d). The columns are weight_sum, linear_sum and the d numbers of item_sum,
        where d is the length of an item vector (slopes, intercept). The module's docstring defines
        the three sums. Here the log likelihood of an answer is linear · logit − weight · logit² / 2
        with a logit that does not contain the mean of the effect that students share.
    variance
        Prior variances of the effects, shape (levels, stages).
    n_students
        Number of students.

    Returns
    -------
    conditional_totals : list of ConditionalTotals
        For `restore`, the coarsest level first.
    correction : array of float32, shape (students, d + d(d + 1)/2)
        The numbers to subtract from the sums that `model.weighted_sums` returns for each student:
        first the d numbers of Σ linear · E[item vector], then the d(d + 1)/2 numbers that determine
        Σ weight · E[item vector item vectorᵀ]. The differences belong to the log likelihood with
        the effects integrated out.
    """
    d = leaf_sums.shape[1] - 2
    correction: FloatArray = np.zeros((len(leaf_sums), d + d * (d + 1) // 2), np.float32)
    conditional_totals = []
    node_sums = leaf_sums
    for depth in reversed(range(len(levels))):
        level = levels[depth]
        stage = stage_of_label(level.label, n_stages=variance.shape[1])
        precision = 1 / variance[depth].astype(np.float32)[stage]
        conditional = _totals_given_above(node_sums, precision)
        conditional_totals.append(conditional)

        # Add up what integrating out the effects subtracts from the sums of each student (see the
        # module's docstring): noise · linear_sum · item_sum from the first d sums, and
        # noise · item_sum item_sumᵀ from the others.
        item_sum = node_sums[:, 2:]
        correction[:, :d] += conditional.offset[:, None] * item_sum
        correction[:, d:] += store_outer_products(item_sum, conditional.pull)

        n_parents = len(levels[depth - 1].parent) if depth else n_students
        node_sums = level.sum_children(node_sums * conditional.gain[:, None], n_parents)
        correction = level.sum_children(correction, n_parents)
    return conditional_totals[::-1], correction


def _totals_given_above(node_sums: FloatArray, precision: FloatArray) -> ConditionalTotals:
    """Return how the total effect at each node depends on the ability and the total above the node.

    A node is a student in a context, such as a quiz. Its total effect is added to the logits of the
    student's answers in the context. The total effect is the sum of the total above (the total
    effect at the node's parent) and the node's own effect. If the student's ability and the total
    above are known, the total effect is Gaussian:

        mean = gain · (total above) + offset − pull · (ability, 1),    variance = noise.

    Parameters
    ----------
    node_sums
        The sums weight_sum and linear_sum of each node, then the k + 1 numbers of its item_sum,
        shape (nodes, 3 + k). With them, the log likelihood of the node's answers is a function of
        the total (see the module's docstring):

            (linear_sum − item_sum · (ability, 1)) · total − weight_sum · total² / 2.
    precision
        1 / variance of the prior of each node's own effect, whose mean is 0. Shape (nodes,).
    """
    weight_sum = node_sums[:, 0]
    linear_sum = node_sums[:, 1]
    item_sum = node_sums[:, 2:]
    # For a known total above, the precision of the total effect is the precision of the node's
    # prior plus the precision of the likelihood of its answers.
    noise = 1 / (precision + weight_sum)
    # Without answers at the node, the expected total effect is the total above. With answers, the
    # total above is multiplied by the share of the prior in the precision of the total effect.
    gain = precision * noise
    return ConditionalTotals(
        gain=gain,
        # With the node's own effect integrated out, the log likelihood of its answers is a parabola
        # in the total above. This is the curvature of the parabola.
        weight_above=gain * weight_sum,
        noise=noise,
        offset=noise * linear_sum,
        pull=noise[:, None] * item_sum,
    )


# ---- From the root to the leaves ---------------------------------------------------------------


@dataclass(frozen=True)
class _Totals:
    """The distribution of the total effect at each node, given the answers.

    If the student's ability is known, the total effect is Gaussian with the mean
    offset − pull · (ability, 1) and the variance `noise`.
    """

    # The position of each node's student, shape (nodes,).
    student: IntArray
    # The first term of the mean, shape (nodes,).
    offset: FloatArray
    # The vector that (ability, 1) is multiplied by in the second term of the mean, shape
    # (nodes, k + 1) with k abilities.
    pull: FloatArray
    # Variance of the total effect if the ability is known, shape (nodes,).
    noise: FloatArray
    # Posterior mean of the total effect if the ability is not known, shape (nodes,).
    mean: FloatArray

    def take(self, nodes: IntArray) -> "_Totals":
        """Return the distributions of the total effects at some of the nodes."""
        return _Totals(
            student=self.student[nodes],
            offset=self.offset[nodes],
            pull=self.pull[nodes],
            noise=self.noise[nodes],
            mean=self.mean[nodes],
        )


def restore(
    levels: tuple[Level, ...],
    conditional_totals: list[ConditionalTotals],
    students: Gaussians,
    variance: FloatArray,
) -> tuple[list[FloatArray], FloatArray, FloatArray]:
    """Find the effects of contexts, given the posteriors of the students' abilities.

    The contexts in which a student has answers are the nodes of a tree whose root is the student
    (see the module's docstring). The effects are found level by level, from the root to the leaves:
    a node's total effect depends on that of its parent.

    Parameters
    ----------
    levels
        The levels of the trees, at least one, the coarsest first.
    conditional_totals
        For each level, how the total effect at a node depends on the total effect above the node:
        the first result of `eliminate`, which integrates the effects out.
    students
        Posteriors of the abilities, in which the effects have been integrated out.
    variance
        Prior variances of the effects, shape (levels, stages).

    Returns
    -------
    effects : list of array of float32, shape (nodes, 2 + k)
        For each level the total effects at its nodes: mean, variance, covariance with the ability.
    sums : array of float64, shape (levels, stages, 4)
        For `estimate_variance`: the sums of `_sum_effects` over the effects of the nodes.
    shared_slope : array of float32, shape (leaves,)
        For `update_shared`: the expected derivative of the log likelihood of each leaf's answers by
        the effect that all students share in the leaf's context.
    """
    n_students, k = students.mean.shape
    # The mean of each student's vector (ability, 1), shape (students, k + 1).
    student_vectors = np.concatenate([students.mean, np.ones((n_students, 1), np.float32)], axis=1)
    # Begin at the roots of the trees, which are the students. A root has no effect of its own, so
    # the total effect there is 0.
    zeros: FloatArray = np.zeros(n_students, np.float32)
    totals = _Totals(
        student=np.arange(n_students),
        offset=zeros,
        pull=np.zeros((n_students, k + 1), np.float32),
        noise=zeros,
        mean=zeros,
    )
    effects = []
    sums = np.zeros((*variance.shape, 4))
    for depth, (level, conditional) in enumerate(zip(levels, conditional_totals, strict=True)):
        # The distribution of the total effect at the parent of each node.
        above = totals.take(level.parent)
        student_vector = student_vectors[above.student]
        ability_covariance = students.covariance[above.student]
        totals = _add_effects_of_nodes(above, conditional, student_vector)
        effects.append(_moments_of_totals(totals, ability_covariance))

        node_mean = totals.mean - above.mean
        node_variance = _variance_of_node_effects(totals, above, conditional, ability_covariance)
        stage = stage_of_label(level.label, n_stages=variance.shape[1])
        sums[depth] = _sum_effects(stage, node_mean, node_variance, variance[depth])
    # The loop has ended with the last level, whose nodes are the leaves. So `above`, `conditional`
    # and `student_vector` now hold the values of the leaves.
    return effects, sums, _slope_by_shared_effect(above, conditional, student_vector)


def _add_effects_of_nodes(
    above: _Totals, conditional: ConditionalTotals, student_vector: FloatArray
) -> _Totals:
    """Return the distributions of the total effects at nodes, given those at the nodes' parents.

    A node is a student in a context, such as a quiz. The total effect at a node is the node's own
    effect plus the total effect above, which is the total effect at the node's parent.

    Parameters
    ----------
    above
        The distribution of the total effect at each node's parent.
    conditional
        How the total effect at each node depends on the total effect above.
    student_vector
        E[(ability, 1)] of each node's student, shape (nodes, k + 1).
    """
    # If the ability is known, the total effect at a node is gain · (total above) + e, a sum of two
    # independent Gaussians. The total above has the variance above.noise and the mean
    # above.offset − above.pull · (ability, 1). The term e has the variance conditional.noise and
    # the mean conditional.offset − conditional.pull · (ability, 1).
    gain = conditional.gain
    offset = gain * above.offset + conditional.offset
    pull = gain[:, None] * above.pull + conditional.pull
    noise = gain * gain * above.noise + conditional.noise
    # The ability is not known. So take the expected vector (ability, 1) in the formula of the mean.
    mean = offset - np.einsum("ni,ni->n", pull, student_vector)
    return _Totals(student=above.student, offset=offset, pull=pull, noise=noise, mean=mean)


def _moments_of_totals(totals: _Totals, ability_covariance: FloatArray) -> FloatArray:
    """Return mean, variance and covariances of the total effect at each node, given the answers.

    A node is a student in a context, such as a quiz. Its total effect is added to the logits of the
    student's answers in the context. If the student's k abilities are known, the total effect is
    Gaussian with the mean offset − pull · (ability, 1) and the variance `noise`, which are fields
    of `totals`. `ability_covariance` says how uncertain the abilities are: it holds their posterior
    covariances, shape (nodes, k, k).

    The result has the shape (nodes, 2 + k). Its columns are the mean of the total effect, its
    variance, and its covariance with each ability.
    """
    k = ability_covariance.shape[1]
    # The mean of the total effect contains −pull · (ability, 1). The last element of `pull` is
    # multiplied by the constant 1, so it adds no variance.
    ability_pull = totals.pull[:, :k]
    # The covariance of the total effect with the abilities is −V pull, where V is the covariance
    # matrix of the abilities.
    covariance = -np.einsum("nij,nj->ni", ability_covariance, ability_pull)
    # The abilities are uncertain, which adds the variance of pull · ability to `noise`. This
    # variance is pullᵀ V pull, which equals −covariance · pull.
    variance = totals.noise - np.einsum("ni,ni->n", covariance, ability_pull)
    return np.column_stack([totals.mean, variance, covariance])


def _variance_of_node_effects(
    totals: _Totals, above: _Totals, conditional: ConditionalTotals, ability_covariance: FloatArray
) -> FloatArray:
    """Return the posterior variance of each node's own effect, shape (nodes,).

    A node is a student in a context, such as a quiz. The node's own effect is the total effect at
    the node minus the total effect above, which is the total effect at the node's parent.

    Parameters
    ----------
    totals, above
        The distributions of the total effect at each node, and at its parent.
    conditional
        How the total effect at each node depends on the total effect above.
    ability_covariance
        The posterior covariances of the k abilities of each node's student, shape (nodes, k, k).
    """
    k = ability_covariance.shape[1]
    # The variance is a sum of two parts. The first part is there because the abilities are
    # uncertain. If they are known, a total effect has the mean offset − pull · (ability, 1). The
    # node's own effect is the total effect at the node minus the total effect above. So the
    # abilities enter the mean of the own effect by −d · ability, where the vector d is the pull at
    # the node minus the pull above. The variance of this product is dᵀ V d, where V is the
    # covariance matrix of the abilities. The last element of a pull belongs to the constant 1, so
    # it is left out.
    pull_difference = (totals.pull - above.pull)[:, :k]
    variance: FloatArray = np.einsum(
        "ni,nij,nj->n", pull_difference, ability_covariance, pull_difference, optimize=True
    )
    # The second part is the variance if the abilities are known. Then the total effect at the node
    # is gain · (total above) plus an independent term with the variance conditional.noise. So the
    # node's own effect, the total effect minus the total above, is (gain − 1) · (total above) plus
    # this term.
    variance += (1 - conditional.gain) ** 2 * above.noise + conditional.noise
    return variance


def _slope_by_shared_effect(
    above: _Totals, leaves: ConditionalTotals, student_vector: FloatArray
) -> FloatArray:
    """Return the expected derivative of each leaf's log likelihood by the leaf's shared effect.

    A leaf is a student in a context of the last level, such as a quiz. The shared effect is an
    effect of this context that all students have in common. The derivative is taken at its mean
    before the step. For one answer, the log likelihood is linear · logit − weight · logit² / 2, so
    its derivative is linear − weight · logit. The mean of the shared effect has been subtracted
    from this logit, which is then slopes · ability + intercept + total effect at the leaf.

    The total effect at the leaf is the leaf's own effect plus the total above, which is the effect
    of the student in wider contexts. The own effect is integrated out. This multiplies the
    derivative by the number `leaves.gain`. With sums over the leaf's answers, the result is

        gain · (Σ linear − Σ weight · E[slopes · ability + intercept] − Σ weight · E[total above]).

    `student_vector` is E[(ability, 1)] of each leaf's student.
    """
    # The posterior mean of the total effect at each leaf if the total above is 0. The fields
    # `offset` and `pull` are such that this mean is
    # noise · (Σ linear − Σ weight · E[slopes · ability + intercept]).
    mean_without_above = leaves.offset - np.einsum("ni,ni->n", leaves.pull, student_vector)
    derivative: FloatArray = leaves.gain * mean_without_above / leaves.noise
    # `weight_above` is gain · Σ weight.
    derivative -= leaves.weight_above * above.mean
    return derivative


# ---- Variances and shared effects --------------------------------------------------------------


def _sum_effects(
    stage: IntArray, mean: FloatArray, variance: FloatArray, prior_variance: FloatArray
) -> FloatArray:
    """Return four sums over the effects of each stage, shape (stages, 4).

    The first sum is the number of effects. The others are the sums of the squared posterior means,
    of the posterior variances, and of the squares of

        1 − posterior variance / prior variance,

    which is the share of the prior variance that the answers have removed. `prior_variance` has the
    shape (stages,).
    """
    removed_share = 1 - variance / prior_variance[stage]
    columns = [np.ones(len(mean)), mean**2, variance, removed_share**2]
    return sum_by_label(stage, columns, n_labels=len(prior_variance))


def sum_by_label(label: IntArray, columns: Sequence[FloatArray], n_labels: int) -> FloatArray:
    """Sum up the elements of each column that have the same label.

    `label` holds the label of each element of a column. The result has the shape (labels, columns).
    """
    return np.stack([np.bincount(label, column, n_labels) for column in columns], axis=1)


def estimate_variance(sums: FloatArray, old: FloatArray) -> FloatArray:
    """Return the prior variances of effects after a step of EM, which `accelerate` extrapolates.

    After a step of expectation maximisation (EM), a prior variance is the mean of the posterior
    expectations E[effect²] of all effects that have this prior. `START_VARIANCE` enters the mean as
    a guess that counts as much as `_EFFECTS_OF_GUESS` effects.

    `old` are the prior variances before the step. The last axis of `sums` has the four sums of
    `_sum_effects`, which were computed with `old`. The result has the shape of `old`.
    """
    n_effects, squared_means, variances, squares_of_removed = np.moveaxis(sums, -1, 0)
    n = n_effects + _EFFECTS_OF_GUESS
    # The mean of E[effect²] = (posterior mean)² + posterior variance, with the guess.
    new = (squared_means + variances + _EFFECTS_OF_GUESS * START_VARIANCE) / n
    return accelerate(old, new, squares_of_removed / n, _MAX_ACCELERATION)


def accelerate(
    old: FloatArray, new: FloatArray, squared_removed: FloatArray, max_acceleration: float
) -> FloatArray:
    """Extrapolate a step of expectation maximisation (EM) of variances, from `old` to `new`.

    `squared_removed` is the mean of (1 − posterior variance / prior variance)² over the effects
    whose variance is estimated. One EM step goes about the share `squared_removed` of the way from
    `old` to the variance at which EM would end. So Aitken's extrapolation takes
    1 / `squared_removed` steps at once, but at most `max_acceleration`. Here it extrapolates the
    logarithm of the variance. The ratio of the result to `old` is from 1 / `_MAX_RATIO` to
    `_MAX_RATIO`, and the result is at least `_MIN_VARIANCE`.
    """
    acceleration = np.minimum(1 / np.maximum(squared_removed, 1e-9), max_acceleration)
    ratio = np.clip((new / old) ** acceleration, 1 / _MAX_RATIO, _MAX_RATIO)
    return np.maximum(old * ratio, _MIN_VARIANCE)


class SharedEffects(NamedTuple):
    """Effects that all students share in a context of the last level: independent Gaussians.

    `mean` and `variance` have one element for each label of the last level (see `make_label`), then
    one for each stage, which belongs to all contexts without answers.
    """

    # Posterior mean of each effect, float32, shape (number of labels + number of stages,).
    mean: FloatArray
    # Posterior variance of each effect, float32, in the same shape as `mean`.
    variance: FloatArray
    # The prior variance that all effects of a stage have in common, shape (stages,).
    prior: FloatArray


def update_shared(sums: FloatArray, old: SharedEffects) -> SharedEffects:
    """Return the effects that all students share, and their prior variances, after a step of a fit.

    There is one such effect for each context of the last level and each stage of the questions (see
    MODEL.md). The effect is added to the logits of the context's answers in the stage. The prior of
    an effect is Gaussian with the mean 0 and a variance that all effects of the stage have in
    common. Arrays of effects are ordered by the label of an effect, context · n_stages + stage.

    Parameters
    ----------
    sums
        What the answers add to two numbers of each effect, shape (effects, 2): to its precision,
        which is 1 / variance, and to precision · mean.
    old
        The effects before the step.
    """
    added_precision = sums[:, 0]
    added_precision_times_mean = sums[:, 1]
    # Row i of `sums` belongs to the effect with the label i.
    stage = stage_of_label(np.arange(len(sums)), n_stages=len(old.prior))
    # The prior adds its precision, 1 / (prior variance), to what the answers add. Its mean is 0, so
    # it adds nothing to precision · mean.
    precision = 1 / old.prior[stage] + added_precision
    variance = 1 / precision
    mean = variance * added_precision_times_mean

    # Estimate the prior variances only from effects with answers: the posterior of any other effect
    # equals its prior.
    has_answers = added_precision > 0
    # For each stage, the sums that `estimate_variance` needs, such as the sum of the squared means.
    sums_by_stage = _sum_effects(
        stage[has_answers], mean[has_answers], variance[has_answers], old.prior
    )
    prior = estimate_variance(sums_by_stage, old.prior)
    # The posterior variance of an effect without answers is its new prior variance.
    variance = np.where(has_answers, variance, prior[stage])
    return SharedEffects(mean.astype(np.float32), variance.astype(np.float32), prior)
