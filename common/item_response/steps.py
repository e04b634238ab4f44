"""A step of the fit: one pass over all answers, which takes most of the time.

A step updates every student, and computes the sums from which the items are updated. It works on
chunks of students, one thread for each chunk. Within a chunk, it works on blocks of answers that
fit into the processor's cache. Neither the chunks nor the order in which their sums are added
depend on the number of threads.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from common.arrays import FloatArray, IntArray
from common.item_response import context, model
from common.item_response.context import Level, SharedEffects
from common.item_response.model import Gaussians
from common.item_response.observations import Observations, number_rows
from common.threads import in_threads

import numpy as np

# Answers in a block: its arrays stay in the processor's cache.
_BLOCK = 1 << 15
# Number of parts in which the items are updated in parallel.
_N_ITEM_PARTS = 8


@dataclass(frozen=True, kw_only=True)
class State:
    """The quantities that a step of the fit updates.

    Items are in the order of stages: all items of the first stage, then all of the second, and so
    on. The last item of each stage belongs to a question without answers.
    """

    # Posteriors of the abilities, k dimensions.
    students: Gaussians
    # Posteriors of (slopes, intercept), k + 1 dimensions.
    items: Gaussians
    # The prior of the items of each stage.
    prior: Gaussians
    # Probability of passing an item without knowing how, shape (items,), float32.
    guessing: FloatArray
    # For each level of contexts, the coarsest first, the total effects at its nodes: mean,
    # variance, covariance with the ability; shape (nodes, 2 + k), float32. At the start of a fit,
    # only those of the last level, since a step reads no other.
    effects: tuple[FloatArray, ...] = ()
    # Prior variance of the effects, shape (levels, stages).
    variance: FloatArray = field(default_factory=lambda: np.zeros((0, 1)))
    # Effects that all students share in a context of the last level. Without contexts, a
    # placeholder.
    shared: SharedEffects = field(
        default_factory=lambda: SharedEffects(np.zeros(1), np.zeros(1), np.zeros(1))
    )


AnyState = TypeVar("AnyState", bound=State)


@dataclass(frozen=True, kw_only=True)
class Posterior(State):
    """A state with the ids that its students, questions and contexts belong to."""

    # Increasing, shape (students,). A finished fit has one more student, who has no answers.
    student_ids: IntArray
    # Increasing, shape (questions,).
    question_ids: IntArray
    # For each level, the labels that have answers, increasing.
    context_ids: tuple[IntArray, ...] = ()
    # The nodes of all students' trees, to which `effects` belong.
    levels: tuple[Level, ...] = ()

    @property
    def n_stages(self) -> int:
        """The number of stages of a question."""
        return len(self.prior.mean)


def run_step(observations: Observations, state: AnyState) -> AnyState:
    """Make one step of the fit.

    Updates the students and contexts, then the items, then the prior of the items. At the end,
    standardises the abilities.
    """
    state, item_sums = pass_over_answers(observations, state)
    n_stages = len(state.prior.mean)
    stage = np.repeat(np.arange(n_stages), len(item_sums) // n_stages)
    parts = np.array_split(np.arange(len(stage)), _N_ITEM_PARTS)

    def update(part: IntArray) -> Gaussians:
        return model.update_items(item_sums[part], state.prior, stage[part])

    items = model.join(in_threads(update, parts))
    # The last column is Σ w, which is positive for all items with answers.
    is_answered = item_sums[:, -1] > 0
    prior = model.estimate_prior(items, stage, is_answered, state.prior)
    items = Gaussians(items.mean.astype(np.float32), items.covariance.astype(np.float32))
    return standardise(replace(state, items=items, prior=prior))


def standardise(state: AnyState) -> AnyState:
    """Give abilities mean 0 and covariance I, and change the items to match.

    With this, the fit needs far fewer steps (parameter expansion: Liu, Rubin and Wu 1998). The
    arrays of `effects` are changed in place.
    """
    n, k = state.students.mean.shape
    ability = state.students.mean.astype(np.float64)
    centre = ability.mean(axis=0)
    total = state.students.covariance.sum(axis=0, dtype=np.float64)
    spread = (ability.T @ ability + total) / n - np.outer(centre, centre)
    root = np.linalg.cholesky(spread)
    inverse = np.linalg.inv(root)
    # The old ability is root @ (new ability) + centre. So the logits stay the same with the slopes
    # rootᵀ @ (old slopes) and the intercept (old slopes) · centre + (old intercept).
    matrix = np.eye(k + 1)
    matrix[:k, :k] = root.T
    matrix[k, :k] = centre
    for level_effects in state.effects:
        # In place: these may be the largest arrays of all.
        level_effects[:, 2:] = level_effects[:, 2:] @ inverse.T.astype(np.float32)
    students = state.students.transform(inverse, -inverse @ centre)
    items = state.items.transform(matrix)
    prior = state.prior.transform(matrix)
    return replace(state, students=students, items=items, prior=prior)


# ---- The pass over the answers ----------------------------------------------------------------


@dataclass(frozen=True)
class _ChunkSums:
    """Sums over the answers of a chunk of students; the sums of all chunks are added up."""

    # The items' sums of `model.weighted_sums`, shape (items, …).
    items: FloatArray
    # The sums for `context.estimate_variance`, shape (levels, stages, 4). None without contexts.
    variance: FloatArray | None = None
    # The sums for `context.update_shared`, shape (labels + stages, 2). None without contexts.
    shared: FloatArray | None = None


@dataclass(frozen=True)
class _ChunkUpdate:
    """The new posteriors of a chunk of students and of their contexts, and its sums."""

    students: Gaussians
    # For each level, shape (nodes of the chunk, 2 + k).
    effects: list[FloatArray]
    sums: _ChunkSums


def pass_over_answers(observations: Observations, state: AnyState) -> tuple[AnyState, FloatArray]:
    """Update the posteriors of all students and of their effects in contexts; items stay fixed.

    Students are updated in chunks, in several threads.

    Returns the new state, and the sums over all answers by which the items are updated afterwards
    (see `model.weighted_sums`).
    """
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
        part, nodes = observations.of_students(chunk)
        old = state.students.take(chunk)
        if part.levels:
            leaf_effects = state.effects[-1][nodes[-1]]
            update = _update_with_contexts(part, old, state, item_moments, leaf_effects)
        else:
            update = _update_without_contexts(part, old, state, item_moments)
        students.mean[chunk] = update.students.mean
        students.covariance[chunk] = update.students.covariance
        for level_effects, rows, values in zip(effects, nodes, update.effects, strict=True):
            level_effects[rows] = values
        return update.sums

    item_sums: FloatArray = np.zeros(1)
    variance_sums: FloatArray = np.zeros(1)
    shared_sums: FloatArray = np.zeros(1)
    for sums in in_threads(update_chunk, observations.chunks()):
        item_sums = item_sums + sums.items.astype(float)
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
    part: Observations, old: Gaussians, state: State, item_moments: FloatArray
) -> _ChunkUpdate:
    """Update some students from their answers `part`, which have no contexts."""
    kappa, weight = _find_kappa_and_weight(part, old, item_moments, state.guessing)
    kappas = part.matrix(kappa, part.start)
    weights = part.matrix(weight, part.start)
    new = model.update_students(model.weighted_sums(kappas, weights, item_moments))
    item_sums = model.weighted_sums(kappas.T, weights.T, model.moments_with_one(new))
    return _ChunkUpdate(new, [], _ChunkSums(item_sums))


def _update_with_contexts(
    part: Observations,
    old: Gaussians,
    state: State,
    item_moments: FloatArray,
    leaf_effects: FloatArray,
) -> _ChunkUpdate:
    """Update some students and the effects of their contexts from their answers `part`.

    `leaf_effects` are the effects of the last step at the last level's nodes, the leaves.
    """
    d = model.count_dimensions(item_moments)
    leaves = part.levels[-1]
    leaf = number_rows(leaves.start)
    shared_means = state.shared.mean
    shared_mean = shared_means[leaves.label]
    with_shared = leaf_effects.copy()
    with_shared[:, 0] += shared_mean
    with_shared[:, 1] += state.shared.variance[leaves.label]

    kappa, weight = _find_kappa_and_weight(
        part, old, item_moments, state.guessing, with_shared, leaf
    )
    # In place, since this array has an element for each answer: reduce κ by w · E[shared effect].
    kappa -= weight * shared_mean[leaf]
    weights = part.matrix(weight, part.start)
    student_sums = model.weighted_sums(part.matrix(kappa, part.start), weights, item_moments)
    # From the leaves up to the students: integrate out the effects.
    leaf_weights = part.matrix(weight, leaves.start)
    leaf_kappas = part.matrix(kappa, leaves.start)
    gathered = _gather_leaves(leaf_kappas, leaf_weights, item_moments[:, :d])
    eliminations, taken = context.eliminate(part.levels, gathered, state.variance, len(old.mean))
    student_sums -= taken
    new = model.update_students(student_sums)

    # From the students down to the leaves: find the effects.
    effects, variance_sums, shared_linear = context.restore(
        part.levels, eliminations, new, state.variance
    )
    leaf_weight = eliminations[-1].weight
    # The whole shared effect is estimated anew, so add back its old mean, by which κ was reduced.
    shared_linear += leaf_weight * shared_mean
    shared_sums = context.sum_by_label(
        leaves.label, [leaf_weight, shared_linear], len(shared_means)
    )
    # Items: compute their sums as without contexts, with κ reduced by w · E[total] as well. Then
    # subtract w · Cov[ability, total], since E[t · total] = E[t] E[total] + Cov[t, total].
    new_leaf_effects = effects[-1]
    kappa -= weight * new_leaf_effects[leaf, 0]
    kappas = part.matrix(kappa, part.start)
    item_sums = model.weighted_sums(kappas.T, weights.T, model.moments_with_one(new))
    item_sums[:, : d - 1] -= leaf_weights.T @ new_leaf_effects[:, 2:]
    return _ChunkUpdate(new, effects, _ChunkSums(item_sums, variance_sums, shared_sums))


def _gather_leaves(leaf_kappas: Any, leaf_weights: Any, item_means: FloatArray) -> FloatArray:
    """Return W, r and S of the leaves (see `context`), side by side, shape (leaves, 2 + d).

    `leaf_kappas` and `leaf_weights` are sparse matrices with a row for each leaf and a column for
    each item.
    """
    w = np.asarray(leaf_weights.sum(axis=1))
    r = np.asarray(leaf_kappas.sum(axis=1))
    s = leaf_weights @ item_means
    return np.concatenate([w, r, s], axis=1)


def _find_kappa_and_weight(
    part: Observations,
    students: Gaussians,
    item_moments: FloatArray,
    guessing: FloatArray,
    effects: FloatArray | None = None,
    node: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return κ and w of every answer (see `model`), 0 for those that are held out."""
    kappa = np.empty(len(part.item), np.float32)
    weight = np.empty(len(part.item), np.float32)
    blocks = _logit_blocks(
        model.moments_with_one(students),
        item_moments,
        number_rows(part.start),
        part.item,
        effects,
        node,
    )
    for block, mean, variance in blocks:
        slope, curvature = model.expected_slope_and_curvature(
            mean, variance, part.is_right[block], guessing[part.item[block]]
        )
        kappa[block] = slope + curvature * mean
        weight[block] = curvature
    kappa *= part.is_used
    weight *= part.is_used
    return kappa, weight


# ---- Logits -----------------------------------------------------------------------------------


def logit_moments(
    students: Gaussians,
    items: Gaussians,
    student: IntArray,
    item: IntArray,
    effects: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the logits of pairs, shape (pairs,) each.

    `student` and `item` are positions in `students` and `items`. `effects`, one row for each pair
    as in `State.effects`, are added to slopes · ability + intercept.
    """
    mean = np.empty(len(student), np.float32)
    variance = np.empty(len(student), np.float32)
    student_moments = model.moments_with_one(students)
    item_moments = model.moments(items)
    for block, block_mean, block_variance in _logit_blocks(
        student_moments, item_moments, student, item, effects
    ):
        mean[block] = block_mean
        variance[block] = block_variance
    return mean, variance


def _logit_blocks(
    student_moments: FloatArray,
    item_moments: FloatArray,
    student: IntArray,
    item: IntArray,
    effects: FloatArray | None = None,
    node: IntArray | None = None,
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield mean and variance of the logits of pairs, block by block, with the block's rows.

    Without effects the mean is E[z] · E[t], and the variance E[(z · t)²] − mean². Here E[(z · t)²]
    is the scalar product of the stored matrices (see `model.moments`). An effect U adds E[U] to the
    mean, and Var[U] + 2 Cov[z · t, U] to the variance. The effect of a pair is the row of `effects`
    that `node` names, by default the row of the pair itself.
    """
    d = model.count_dimensions(item_moments)
    # The dtype must be that of the moments: otherwise `take` converts uninitialised memory and
    # warns about NaN. Both buffers are halves of one array. The memory of two smaller arrays would
    # go back to the system after each chunk, and allocating it again would take 5 % of the time of
    # a step.
    buffers = np.empty((2, _BLOCK, item_moments.shape[1]), item_moments.dtype)
    student_buffer = buffers[0]
    item_buffer = buffers[1]
    for begin in range(0, len(student), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        block_student = student[block]
        block_item = item[block]
        n = len(block_student)
        z = item_buffer[:n]
        t = student_buffer[:n]
        # mode="clip" is twice as fast as the default, which checks every index.
        np.take(student_moments, block_student, axis=0, out=t, mode="clip")
        np.take(item_moments, block_item, axis=0, out=z, mode="clip")
        mean = np.einsum("ij,ij->i", t[:, :d], z[:, :d])
        second_moment = np.einsum("ij,ij->i", t[:, d:], z[:, d:])
        variance = second_moment - mean * mean
        if effects is not None:
            u = effects[block] if node is None else effects[node[block]]
            mean += u[:, 0]
            variance += u[:, 1] + 2 * np.einsum("ij,ij->i", u[:, 2:], z[:, : d - 1])
        yield block, mean, np.maximum(variance, 0)
