"""A step of the fit: one pass over all answers, which takes most of the time.

A step updates every student, and computes the sums from which the items are updated. Chunks of
students are updated in parallel, each in one thread. Within a chunk, the answers are processed in
blocks that fit into the processor's cache. Neither the chunks nor the order in which their sums are
added depend on the number of threads.

MODEL.md in this folder explains the words: items, stages, contexts, levels, nodes, leaves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from common.answers import find_ids
from common.arrays import FloatArray, IntArray
from common.item_response import context, model
from common.item_response.context import (
    EFFECT_COVARIANCES,
    EFFECT_MEAN,
    EFFECT_VARIANCE,
    ConditionalTotals,
    Level,
    SharedEffects,
)
from common.item_response.model import Gaussians
from common.item_response.observations import Observations, number_rows
from common.threads import in_threads

import numpy as np

# Answers are processed in blocks of this many, so that the arrays of a block fit into the
# processor's cache.
_BLOCK = 1 << 15
# The items are cut into this many parts, which are updated in parallel.
_N_ITEM_PARTS = 8


@dataclass(frozen=True, kw_only=True)
class State:
    """The quantities that a step of the fit updates.

    An item is a question in one stage (MODEL.md explains the words). Items are in the order of
    stages: all items of the first stage, then all items of the second stage, and so on. The last
    item of each stage belongs to a question without answers.
    """

    # The posterior of each student's k abilities.
    students: Gaussians
    # The posterior of each item's vector (slopes, intercept), which has k + 1 numbers.
    items: Gaussians
    # For each stage, the prior that the vectors (slopes, intercept) of its items share.
    prior: Gaussians
    # Probability that a student who does not know the answer passes the item, shape (items,),
    # float32.
    guessing: FloatArray
    # For each level of contexts, the coarsest first, an array of float32, shape (nodes, 2 + k). A
    # node is a student in a context. The columns describe the posterior of the node's total effect:
    # its mean, its variance, and its covariance with each of the k abilities. The total effect is
    # the sum of the student's effects in this context and in the coarser contexts that contain it.
    # At the start of a fit, the tuple holds only the array of the last level, because a step
    # computes the other arrays without their old values.
    effects: tuple[FloatArray, ...] = ()
    # Prior variance of the effects of the nodes at each level, shape (levels, stages).
    variance: FloatArray = field(default_factory=lambda: np.zeros((0, 1)))
    # The shared effects. Each context of the last level has one: it is added to the logits of all
    # answers in the context, whichever student gave them. If the answers have no contexts, this is
    # a placeholder.
    shared: SharedEffects = field(
        default_factory=lambda: SharedEffects(np.zeros(1), np.zeros(1), np.zeros(1))
    )


AnyState = TypeVar("AnyState", bound=State)


@dataclass(frozen=True, kw_only=True)
class Posterior(State):
    """A state with the ids that its students, questions and contexts belong to."""

    # Ids of the students, increasing, shape (students,). After the fit, `students` has one more row
    # than there are ids: the average student, who stands for unknown students in predictions.
    student_ids: IntArray
    # Ids of the questions, increasing, shape (questions,). Each stage has an item for each of these
    # questions, and one item more, which stands for unknown questions.
    question_ids: IntArray
    # For each level of contexts, the ids of the contexts with answers, increasing.
    context_ids: tuple[IntArray, ...] = ()
    # The levels of contexts, the coarsest first. A level has a node for each student and each
    # context in which the student has answers, and `effects` has a row for each node.
    levels: tuple[Level, ...] = ()

    @property
    def n_stages(self) -> int:
        """The number of stages of a question; 1 if answers are right or wrong (see MODEL.md)."""
        return len(self.prior.mean)

    def shared_effects_in(self, context_ids: IntArray) -> SharedEffects:
        """Return the effects that all students share in the given contexts of the last level.

        The posterior must come from a fit of right and wrong answers with contexts. In
        `self.shared` and in the result, the last effect is the effect of unknown contexts. A
        context id that the posterior does not know gets this effect too.
        """
        known_ids = self.context_ids[-1]
        unknown = len(known_ids)
        # `find_ids` returns the position `unknown` for ids that are not known.
        position = np.append(find_ids(known_ids, context_ids), unknown)
        return self.shared._replace(
            mean=self.shared.mean[position], variance=self.shared.variance[position]
        )


def run_step(observations: Observations, state: AnyState) -> AnyState:
    """Make one step of the fit.

    The step updates the students and their effects in contexts, then the items, then the prior of
    the items. At the end, it standardises the abilities.
    """
    state, item_sums = pass_over_answers(observations, state)
    n_stages = len(state.prior.mean)
    # The stage of each item. Items are sorted by stage, and each stage has the same number of
    # items.
    stage = np.repeat(np.arange(n_stages), len(item_sums) // n_stages)
    # The positions of all items, cut into `_N_ITEM_PARTS` parts that are updated in parallel.
    parts = np.array_split(np.arange(len(stage)), _N_ITEM_PARTS)

    def update(part: IntArray) -> Gaussians:
        """Return the posteriors of the items at these positions."""
        return model.update_items(item_sums[part], state.prior, stage[part])

    items = model.join(in_threads(update, parts))
    # The last column of `item_sums` is the sum of the weights of the item's answers. The weight of
    # an answer is positive, or 0 if the answer is held out. So the sum is 0 if the fit uses no
    # answer to the item.
    is_answered = item_sums[:, -1] > 0
    prior = model.estimate_prior(items, stage, is_answered, state.prior)
    # `update_items` returns float64, which the estimate of the prior needs. A state holds float32.
    items = Gaussians(items.mean.astype(np.float32), items.covariance.astype(np.float32))
    return standardise(replace(state, items=items, prior=prior))


def standardise(state: AnyState) -> AnyState:
    """Give abilities mean 0 and covariance I, and change the items so that logits stay the same.

    With this, the fit needs far fewer steps (parameter expansion: Liu, Rubin and Wu 1998). The
    effects of contexts keep their means and variances; their covariances with the abilities are
    changed in place.
    """
    n_students, k = state.students.mean.shape
    ability = state.students.mean.astype(np.float64)
    centre = ability.mean(axis=0)
    sum_of_covariances = state.students.covariance.sum(axis=0, dtype=np.float64)
    # The covariance of abilities over all students: E[ability abilityᵀ] − centre centreᵀ.
    spread = (ability.T @ ability + sum_of_covariances) / n_students - np.outer(centre, centre)
    # Find `root` such that spread = root rootᵀ.
    root = np.linalg.cholesky(spread)
    inverse_root = np.linalg.inv(root)
    # A new ability is inverse_root @ (old ability − centre), so an old ability is root @ (new
    # ability) + centre. Put this into the logit, (old slopes) · (old ability) + (old intercept).
    # The logit stays the same if the new slopes are rootᵀ @ (old slopes), and the new intercept is
    # (old slopes) · centre + (old intercept). `item_matrix` @ (old slopes, old intercept) computes
    # both.
    item_matrix = np.eye(k + 1)
    item_matrix[:k, :k] = root.T
    item_matrix[k, :k] = centre
    for level_effects in state.effects:
        # A row has the covariances of an effect with the old ability. Multiplied by `inverse_root`,
        # they are the covariances with the new ability. Change the array in place, since it may be
        # the largest array of the fit.
        old_covariances = level_effects[:, EFFECT_COVARIANCES]
        level_effects[:, EFFECT_COVARIANCES] = old_covariances @ inverse_root.T.astype(np.float32)
    students = state.students.transform(inverse_root, shift=-inverse_root @ centre)
    items = state.items.transform(item_matrix)
    prior = state.prior.transform(item_matrix)
    return replace(state, students=students, items=items, prior=prior)


# ---- The pass over the answers ----------------------------------------------------------------


@dataclass(frozen=True)
class _ChunkSums:
    """Sums over the answers of one chunk of students; a pass adds up the sums of all chunks."""

    # For each item, the sums from which its posterior is computed (see `model.weighted_sums`),
    # shape (items, d + d(d + 1)/2) for d = k + 1. None if the caller does not update the items.
    items: FloatArray | None
    # The effects of all nodes of one level and stage have the same prior variance.
    # `context.estimate_variance` estimates it from these four numbers, shape (levels, stages, 4):
    # the number of effects, and three sums over the effects. None if the answers have no contexts.
    variance: FloatArray | None = None
    # The posterior of a shared effect, which all students have in a context, is computed from its
    # precision and from precision · mean. Each row holds what the answers of the chunk add to these
    # two numbers, shape (shared effects, 2). None if the answers have no contexts.
    shared: FloatArray | None = None


@dataclass(frozen=True)
class _ChunkUpdate:
    """The new posteriors of a chunk of students and of their contexts, and its sums."""

    students: Gaussians
    # For each level of contexts, the rows of `State.effects` that belong to these students, shape
    # (nodes, 2 + k).
    effects: list[FloatArray]
    sums: _ChunkSums


def pass_over_answers(
    observations: Observations, state: AnyState, *, sums_items: bool = True
) -> tuple[AnyState, FloatArray]:
    """Update the posteriors of all students and of their effects in contexts; items stay fixed.

    Students are updated in chunks, in several threads.

    Parameters
    ----------
    observations
        The answers.
    state
        The state before the pass.
    sums_items
        Whether the sums of the items are needed. They take about half of the time.

    Returns
    -------
    state : State
        The new state.
    item_sums : array of float64, shape (items, d + d(d + 1)/2)
        Sums over the answers of each item, from which `model.update_items` computes its posterior.
        If they are not needed, a single 0.
    """
    # This function is longer than others, because the inner function, which runs in threads, writes
    # into its arrays.
    item_moments = model.moments(state.items)
    k = state.students.mean.shape[1]
    # Every chunk writes its rows into these arrays. Joining the chunks' results at the end would
    # take twice the memory.
    students = Gaussians(
        np.empty_like(state.students.mean), np.empty_like(state.students.covariance)
    )
    effects = tuple(
        np.empty((len(level.label), 2 + k), np.float32) for level in observations.levels
    )

    def update_chunk(chunk: slice) -> _ChunkSums:
        """Update a range of students; return the sums over their answers.

        The function uses variables of the enclosing function. It writes the posteriors of the
        students into `students`, and the posteriors of their effects in contexts into `effects`. It
        reads `state` (the state before the step), `item_moments` (the moments of the items) and
        `sums_items` (whether the result includes the sums over the answers of each item).
        """
        # A node is a student in a context. For each level of contexts, `effects` has an array with
        # a row for each node, and `node_ranges` has the range of the rows that belong to these
        # students.
        part, node_ranges = observations.of_students(chunk)
        old_students = state.students.take(chunk)
        if part.levels:
            # Answers belong to nodes of the last level, the leaves.
            old_leaf_effects = state.effects[-1][node_ranges[-1]]
            update = _update_with_contexts(
                part, old_students, state, item_moments, old_leaf_effects, sums_items=sums_items
            )
        else:
            update = _update_without_contexts(
                part, old_students, state, item_moments, sums_items=sums_items
            )
        students.mean[chunk] = update.students.mean
        students.covariance[chunk] = update.students.covariance
        for level_effects, nodes, new_effects in zip(
            effects, node_ranges, update.effects, strict=True
        ):
            level_effects[nodes] = new_effects
        return update.sums

    item_sums: FloatArray = np.zeros(1)
    variance_sums: FloatArray = np.zeros(1)
    shared_sums: FloatArray = np.zeros(1)
    for sums in in_threads(update_chunk, observations.chunks()):
        if sums.items is not None:
            item_sums = item_sums + sums.items.astype(float)
        # Without contexts, `sums.variance` and `sums.shared` are None.
        if sums.variance is not None and sums.shared is not None:
            variance_sums = variance_sums + sums.variance
            shared_sums = shared_sums + sums.shared
    state = replace(state, students=students, effects=effects)
    if observations.levels:
        variance = context.estimate_variance(variance_sums, state.variance)
        shared = context.update_shared(shared_sums, state.shared)
        state = replace(state, variance=variance, shared=shared)
    return state, item_sums


def _update_without_contexts(
    part: Observations,
    old: Gaussians,
    state: State,
    item_moments: FloatArray,
    *,
    sums_items: bool,
) -> _ChunkUpdate:
    """Update the abilities of some students from their answers, which have no contexts.

    The logit of an answer is slopes · ability + intercept. The log likelihood of the answer, a
    function of the logit, is replaced by the parabola linear · logit − weight · logit² / 2. With a
    Gaussian prior, the posterior of the abilities then is Gaussian as well. `model` computes it
    from sums over the student's answers.

    Parameters
    ----------
    part
        All answers of the students.
    old
        The posteriors of the students' abilities before the step.
    state
        The state of the fit before the step.
    item_moments
        A row for each item (question): the expectations E[v] and E[v vᵀ] of the item's vector
        v = (slopes, intercept) under its posterior (see `model.moments`).
    sums_items
        Whether to return also the sums from which the posteriors of the items are computed.
    """
    # The log likelihood of each answer is replaced by a parabola with these two coefficients.
    linear, weight = approximate_log_likelihoods(part, old, item_moments, state.guessing)
    # Sparse matrices with a row for each student and a column for each item.
    linear_matrix = part.matrix(linear, part.start)
    weight_matrix = part.matrix(weight, part.start)
    student_sums = model.weighted_sums(linear_matrix, weight_matrix, item_moments)
    new = model.update_students(student_sums)
    item_sums = None
    if sums_items:
        # The transposed matrices have a row for each item and a column for each student. So these
        # sums are over the students who answered the item.
        student_moments = model.student_vector_moments(new)
        item_sums = model.weighted_sums(linear_matrix.T, weight_matrix.T, student_moments)
    return _ChunkUpdate(students=new, effects=[], sums=_ChunkSums(items=item_sums))


def _update_with_contexts(
    part: Observations,
    old: Gaussians,
    state: State,
    item_moments: FloatArray,
    old_leaf_effects: FloatArray,
    *,
    sums_items: bool,
) -> _ChunkUpdate:
    """Update some students and the effects of their contexts from their answers `part`.

    `old` has the posteriors of the students' abilities before the step. `item_moments` has the
    moments of all item vectors (slopes, intercept). `old_leaf_effects` has the total effects at the
    leaves before the step. A leaf is a student in a context of the last level.

    The logit of an answer is slopes · ability + intercept + total effect at the leaf + shared
    effect. Its log likelihood is replaced by linear · logit − weight · logit² / 2. If a number m is
    subtracted from the logit, this becomes (linear − weight · m) · logit − weight · logit² / 2,
    apart from a constant. So below, a part of the logit is subtracted by reducing `linear` by
    weight · m, where m is the mean of this part.
    """
    leaves = part.levels[-1]
    # For each answer, the position of its leaf.
    leaf = number_rows(leaves.start)
    linear, weight = approximate_log_likelihoods(
        part, old, item_moments, state.guessing, _add_shared(old_leaf_effects, state, leaves), leaf
    )
    # Subtract the mean of the shared effect before the step from the logit. Change `linear` in
    # place, since a copy would need memory for each answer.
    shared_mean = state.shared.mean[leaves.label]
    linear -= weight * shared_mean[leaf]

    # Update the abilities. The effects of the nodes are integrated out, from the leaves up to the
    # students.
    weight_by_student = part.matrix(weight, part.start)
    weight_by_leaf = part.matrix(weight, leaves.start)
    new, conditional_totals = _update_abilities(
        part, linear, weight_by_student, weight_by_leaf, item_moments, state.variance
    )

    # Find the posteriors of the effects of the nodes, from the students down to the leaves.
    effects, variance_sums, shared_slope = context.restore(
        part.levels, conditional_totals, new, state.variance
    )
    new_leaf_effects = effects[-1]
    shared_sums = _sum_for_shared_effects(
        leaves, conditional_totals[-1].weight_above, shared_slope, state.shared.mean
    )

    if not sums_items:
        return _ChunkUpdate(new, effects, _ChunkSums(None, variance_sums, shared_sums))
    # To update the items, subtract the new mean of the total effect at the leaf as well.
    linear -= weight * new_leaf_effects[leaf, EFFECT_MEAN]
    item_sums = model.weighted_sums(
        part.matrix(linear, part.start).T, weight_by_student.T, model.student_vector_moments(new)
    )
    # The first k columns of `item_sums` are Σ linear · E[ability]. Subtracting the mean of the
    # total effect has made them smaller by Σ weight · E[ability] · E[total effect]. They should be
    # smaller by Σ weight · E[ability · total effect]. The difference of the two is
    # Σ weight · Cov[ability, total effect]: subtract it too.
    k = new.mean.shape[1]
    item_sums[:, :k] -= weight_by_leaf.T @ new_leaf_effects[:, EFFECT_COVARIANCES]
    return _ChunkUpdate(new, effects, _ChunkSums(item_sums, variance_sums, shared_sums))


def _update_abilities(
    part: Observations,
    linear: FloatArray,
    weight_by_student: Any,
    weight_by_leaf: Any,
    item_moments: FloatArray,
    variance: FloatArray,
) -> tuple[Gaussians, list[ConditionalTotals]]:
    """Return the posteriors of the abilities; the effects of the nodes are integrated out.

    A node is a student in a context, and a leaf is a node of the last level of contexts. Each
    answer belongs to one student and to one leaf. The effect of a node is added to the logits of
    all its answers. The log likelihood of an answer is replaced by the parabola
    linear · logit − weight · logit² / 2.

    Parameters
    ----------
    part
        The answers.
    linear
        The coefficient `linear` of each answer.
    weight_by_student, weight_by_leaf
        The coefficients `weight`, as sparse matrices with a column for each item, and a row for
        each student or a row for each leaf.
    item_moments
        A row for each item: the expectations E[v] and E[v vᵀ] of the item's vector
        v = (slopes, intercept) under its posterior (see `model.moments`).
    variance
        Prior variances of the effects, shape (levels, stages).

    Returns
    -------
    abilities : Gaussians
        The posteriors of the students' abilities.
    conditional_totals : list of ConditionalTotals
        For each level, how the total effect at a node depends on the student's ability and on the
        total effect above the node.
    """
    # A row for each student: Σ linear · E[v] and Σ weight · E[v vᵀ] over the student's answers. If
    # all effects were 0, these sums alone would determine the posterior of the ability.
    linear_by_student = part.matrix(linear, part.start)
    student_sums = model.weighted_sums(linear_by_student, weight_by_student, item_moments)
    linear_by_leaf = part.matrix(linear, part.levels[-1].start)
    # The effects are not 0. Integrating them out changes the sums: `correction` is to be subtracted
    # from `student_sums`.
    conditional_totals, correction = context.eliminate(
        part.levels,
        _sum_by_leaf(linear_by_leaf, weight_by_leaf, item_moments),
        variance,
        n_students=len(student_sums),
    )
    student_sums -= correction
    return model.update_students(student_sums), conditional_totals


def _add_shared(leaf_effects: FloatArray, state: State, leaves: Level) -> FloatArray:
    """Return the total effect at each leaf plus the shared effect of the leaf's context.

    A leaf is a student in a context of the last level. `leaf_effects` and the result have the shape
    (leaves, 2 + k): mean, variance, and covariance with each of the k abilities.
    """
    with_shared = leaf_effects.copy()
    with_shared[:, EFFECT_MEAN] += state.shared.mean[leaves.label]
    with_shared[:, EFFECT_VARIANCE] += state.shared.variance[leaves.label]
    return with_shared


def _sum_by_leaf(linear: Any, weight: Any, item_moments: FloatArray) -> FloatArray:
    """Return sums over the answers of each leaf; `context.eliminate` needs these sums.

    A leaf is a student in a context of the last level. `linear` and `weight` are sparse matrices
    with a row for each leaf and a column for each item. The shape of the result is (leaves, 2 + d).
    The columns are the sum of weight, the sum of linear, and the d numbers of
    Σ weight · E[item vector] for item vectors (slopes, intercept).
    """
    d = model.count_dimensions(item_moments)
    weight_sum = np.asarray(weight.sum(axis=1))
    linear_sum = np.asarray(linear.sum(axis=1))
    item_sum = weight @ item_moments[:, :d]
    return np.concatenate([weight_sum, linear_sum, item_sum], axis=1)


def _sum_for_shared_effects(
    leaves: Level, weight: FloatArray, slope: FloatArray, old_mean: FloatArray
) -> FloatArray:
    """Return what the answers add to the precision, and to precision · mean, of each shared effect.

    The result has the shape (shared effects, 2). `old_mean` is the mean of each shared effect
    before the step. `leaves.label` is the position in `old_mean` of the effect of each leaf.

    A leaf is a student in a context of the last level. The log likelihood of the leaf's answers, as
    a function of the context's shared effect, is replaced by a parabola. At the old mean, the
    parabola has the slope `slope`; its second derivative is −`weight`. So the parabola is

        (slope + weight · old mean) · effect − weight · effect² / 2,

    apart from a constant. So the answers of the leaf add `weight` to the precision, and the number
    in parentheses to precision · mean.
    """
    linear = slope + weight * old_mean[leaves.label]
    return context.sum_by_label(leaves.label, [weight, linear], n_labels=len(old_mean))


def approximate_log_likelihoods(
    part: Observations,
    students: Gaussians,
    item_moments: FloatArray,
    guessing: FloatArray,
    effects: FloatArray | None = None,
    node: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of the parabola that replaces the log likelihood of each answer.

    The parabola is linear · logit − weight · logit² / 2. It has the expected curvature of the log
    likelihood, which is `weight`. At E[logit], it also has the expected slope of the log
    likelihood: linear − weight · E[logit] equals this slope (see `model`). Returns `linear` and
    `weight`, each of shape (answers,). Both are 0 for answers that are held out.

    Parameters
    ----------
    part
        The answers.
    students
        Posteriors of the students' abilities before the step.
    item_moments
        Moments of the items' (slopes, intercept) before the step (see `model.moments`).
    guessing
        Probability that a student who does not know the answer passes the item, for each item.
    effects
        Effects of contexts before the step: a row for each effect, with its mean, its variance and
        its covariances with the k abilities. None if the answers have no contexts.
    node
        The row of each answer in `effects`. By default, row i belongs to answer i.
    """
    linear = np.empty(len(part.item), np.float32)
    weight = np.empty(len(part.item), np.float32)
    # The position of each answer's student in `students`. The answers of student i are
    # part.start[i] to part.start[i + 1].
    student = number_rows(part.start)
    blocks = _logit_moments_in_blocks(
        model.student_vector_moments(students), item_moments, student, part.item, effects, node
    )
    for block, mean, variance in blocks:
        slope, curvature = model.expected_slope_and_curvature(
            mean, variance, part.is_right[block], guessing[part.item[block]]
        )
        linear[block] = slope + curvature * mean
        weight[block] = curvature
    # `is_used` is False, or 0, for answers that are held out.
    linear *= part.is_used
    weight *= part.is_used
    return linear, weight


# ---- Logits -----------------------------------------------------------------------------------


def logit_moments(
    students: Gaussians,
    items: Gaussians,
    student: IntArray,
    item: IntArray,
    effects: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the logits of pairs, shape (pairs,) each.

    A pair is a student and an item, given by their positions in `students` and `items`. The logit
    of a pair is slopes · ability + intercept, plus an effect of the pair's context if `effects` are
    given. `effects` has a row for each pair: the mean of the effect, its variance, and its
    covariances with the k abilities.
    """
    mean = np.empty(len(student), np.float32)
    variance = np.empty(len(student), np.float32)
    # The moments E[v] and E[v vᵀ] of the vectors v: (ability, 1) of each student, and
    # (slopes, intercept) of each item. The logit is the scalar product of the two vectors.
    student_moments = model.student_vector_moments(students)
    item_moments = model.moments(items)
    # Each block is a range of pairs.
    for block, block_mean, block_variance in _logit_moments_in_blocks(
        student_moments, item_moments, student, item, effects
    ):
        mean[block] = block_mean
        variance[block] = block_variance
    return mean, variance


def _logit_moments_in_blocks(
    student_moments: FloatArray,
    item_moments: FloatArray,
    student: IntArray,
    item: IntArray,
    effects: FloatArray | None = None,
    node: IntArray | None = None,
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield mean and variance of the logits of pairs, in blocks that fit the processor's cache.

    For each block, the function yields the range of its pairs, the means and the variances. A pair
    is a student and an item. Its logit is the scalar product of the student vector (ability, 1) and
    the item vector (slopes, intercept), plus an effect if `effects` are given.

    Parameters
    ----------
    student_moments, item_moments
        Moments of the student vectors and of the item vectors (see `model.moments`): in each row
        E[vector], then E[vector vectorᵀ].
    student, item
        The rows of each pair in these two arrays, shape (pairs,).
    effects
        A row for each total effect, shape (rows, 2 + k): its mean, its variance, and its covariance
        with each of the k abilities.
    node
        The row of each pair in `effects`, shape (pairs,). By default, row i belongs to pair i.
    """
    d = model.count_dimensions(item_moments)
    # The buffers must have the dtype of the moments. Otherwise, `take` would first convert the
    # uninitialised memory of a buffer and warn about NaN in it. Make both buffers as halves of one
    # large array: the memory of two smaller arrays would go back to the system after each chunk,
    # and allocating it again would take 5 % of the time of a step.
    n_rows = min(_BLOCK, len(student))
    buffers = np.empty((2, n_rows, item_moments.shape[1]), item_moments.dtype)
    student_buffer = buffers[0]
    item_buffer = buffers[1]
    for begin in range(0, len(student), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        block_student = student[block]
        block_item = item[block]
        n_pairs = len(block_student)
        of_student = student_buffer[:n_pairs]
        of_item = item_buffer[:n_pairs]
        # All indices are valid. With mode="clip", `take` does not check them, and is twice as fast.
        np.take(student_moments, block_student, axis=0, out=of_student, mode="clip")
        np.take(item_moments, block_item, axis=0, out=of_item, mode="clip")
        # The first d columns are the means of both vectors: E[logit] is their scalar product.
        mean = np.einsum("ij,ij->i", of_student[:, :d], of_item[:, :d])
        # The other columns are the stored triangles of E[vector vectorᵀ] (see `model.moments`). The
        # scalar product of two stored triangles equals the scalar product of the two whole
        # matrices, which is E[logit²].
        second_moment = np.einsum("ij,ij->i", of_student[:, d:], of_item[:, d:])
        variance = second_moment - mean * mean
        if effects is not None:
            effect = effects[block] if node is None else effects[node[block]]
            mean += effect[:, EFFECT_MEAN]
            # Var[x + effect] = Var[x] + Var[effect] + 2 Cov[x, effect], where x is the logit
            # without the effect. Cov[x, effect] = E[slopes] · Cov[ability, effect].
            slopes = of_item[:, : d - 1]
            covariance = np.einsum("ij,ij->i", effect[:, EFFECT_COVARIANCES], slopes)
            variance += effect[:, EFFECT_VARIANCE] + 2 * covariance
        yield block, mean, np.maximum(variance, 0)
