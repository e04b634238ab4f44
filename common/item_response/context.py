r"""What answers given in the same context share: effects of the quiz, of the topic, of the day.

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

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from common.answers import find_ids
from common.item_response.model import (
    Effects,
    FloatArray,
    Gaussians,
    IntArray,
    Moments,
    SharedEffects,
    State,
    pack,
)
from common.item_response.tree import Level, find_nodes

import numpy as np

# The variance of the effects of each level that a fit begins with. It is also the prior guess about
# it, with the weight of so many contexts.
_START_VARIANCE, _PRIOR_CONTEXTS = 0.2, 3.0
# Bounds on how a step changes a variance: see `accelerate`.
_MAX_ACCELERATION, _MAX_RATIO = 25.0, 2.0
_MIN_VARIANCE = 1e-6


class _Step(NamedTuple):
    """What eliminating a level leaves for the way back, in symbols (see above) of its nodes.

    g, g W, 1 / (p + W), r / (p + W) and S / (p + W).
    """

    gain: FloatArray
    weight: FloatArray
    noise: FloatArray
    linear: FloatArray
    pull: FloatArray


def eliminate(
    levels: tuple[Level, ...],
    weights: Any,
    kappas: Any,
    items: Moments,
    variance: FloatArray,
    n_students: int,
) -> tuple[list[_Step], FloatArray, FloatArray]:
    """Integrate out the effects, from the leaves to the students.

    Parameters
    ----------
    levels
        At least one, the coarsest first.
    weights, kappas
        w and κ, sparse matrices of the nodes of the last level × items; κ without what students
        share, κ − w E[shared].
    items
        Moments of (slopes, intercept).
    variance
        Prior variance of the effects, shape (levels, kinds).
    n_students
        Number of students.

    Returns
    -------
    steps
        For `restore`, the coarsest level first.
    linear, precision
        What the effects take away from Σ κ E[z] and Σ w E[zzᵀ] of a student's answers, shapes
        (students, d) and, triangles as in `Moments`, (students, d(d + 1)/2).
    """
    d = items.mean.shape[1]
    # W, r and S of every node, side by side.
    gathered: FloatArray = np.concatenate(
        [np.asarray(weights.sum(axis=1)), np.asarray(kappas.sum(axis=1)), weights @ items.mean],
        axis=1,
    )
    taken: FloatArray = np.zeros((len(gathered), d + items.second.shape[1]), np.float32)
    steps = []
    for depth in reversed(range(len(levels))):
        level = levels[depth]
        weight, kappa, pull = gathered[:, 0], gathered[:, 1], gathered[:, 2:]
        precision = 1 / variance[depth].astype(np.float32)[level.kind]
        noise = 1 / (precision + weight)
        gain = precision * noise
        steps.append(_Step(gain, gain * weight, noise, noise * kappa, noise[:, None] * pull))
        taken[:, :d] += steps[-1].linear[:, None] * pull
        taken[:, d:] += pack(pull, steps[-1].pull)
        n_parents = len(levels[depth - 1]) if depth else n_students
        gathered = level.sum_children(gathered * gain[:, None], n_parents)
        taken = level.sum_children(taken, n_parents)
    return steps[::-1], taken[:, :d], taken[:, d:]


def restore(
    levels: tuple[Level, ...], steps: list[_Step], students: Gaussians, variance: FloatArray
) -> tuple[list[Effects], FloatArray]:
    """Find the effects again, from the students to the leaves.

    Returns
    -------
    effects
        Of each level, the coarsest first.
    sums
        Over the nodes: their number, Σ E[u²], and Σ s², s being the share of the prior variance
        that the answers have removed; shape (levels, kinds, 3).
    """
    n_kinds = variance.shape[1]
    n, k = students.mean.shape
    student = np.arange(n)
    t = np.concatenate([students.mean, np.ones((n, 1), np.float32)], axis=1)
    # The total at a node, as a function of t, is N(linear − pull · t, noise); above the root 0.
    pull: FloatArray = np.zeros((n, k + 1), np.float32)
    linear: FloatArray = np.zeros(n, np.float32)
    noise, mean = linear, linear
    effects, sums = [], np.zeros((*variance.shape, 3))
    for depth, (level, step) in enumerate(zip(levels, steps, strict=True)):
        above, student = level.parent, student[level.parent]
        gain = step.gain
        pull_above, noise_above, mean_above = pull[above], noise[above], mean[above]
        pull = gain[:, None] * pull_above + step.pull
        linear = gain * linear[above] + step.linear
        noise = gain * gain * noise_above + step.noise
        covariance = students.covariance[student]
        with_ability = -np.einsum("nij,nj->ni", covariance, pull[:, :k])
        mean = linear - np.einsum("ni,ni->n", pull, t[student])
        total_variance = noise - np.einsum("ni,ni->n", with_ability, pull[:, :k])
        effects.append(Effects(mean, total_variance, with_ability))
        own = (pull - pull_above)[:, :k]
        own_variance = np.einsum("ni,nij,nj->n", own, covariance, own, optimize=True)
        own_variance += (1 - gain) ** 2 * noise_above + step.noise
        removed = 1 - own_variance / variance[depth][level.kind]
        own_square = (mean - mean_above) ** 2 + own_variance
        for column, values in enumerate((None, own_square, removed * removed)):
            sums[depth, :, column] = np.bincount(level.kind, values, n_kinds)
    return effects, sums


def estimate_variance(sums: FloatArray, old: FloatArray) -> FloatArray:
    """Return the variances of the effects, shape (levels, kinds), from the sums of `restore`."""
    n_nodes = sums[..., 0] + _PRIOR_CONTEXTS
    new = (sums[..., 1] + _PRIOR_CONTEXTS * _START_VARIANCE) / n_nodes
    return accelerate(old, new, sums[..., 2] / n_nodes, _MAX_ACCELERATION)


def accelerate(
    old: FloatArray, new: FloatArray, removed: FloatArray, max_acceleration: float
) -> FloatArray:
    """Return variances further along the way from `old` to `new`.

    `new`, the mean of E[u²], is the step of expectation maximisation, which goes far too slowly
    where a context has few answers: near the end each step leaves 1 − s² of the way, so that
    Aitken's extrapolation takes 1 / s² steps at once. `removed` is the mean of s², s being the
    share of the prior variance that the answers have removed.
    """
    acceleration = np.minimum(1 / np.maximum(removed, 1e-9), max_acceleration)
    ratio = np.clip((new / old) ** acceleration, 1 / _MAX_RATIO, _MAX_RATIO)
    return np.maximum(old * ratio, _MIN_VARIANCE)


def add_shared(effects: Effects, leaves: Level, shared: SharedEffects) -> Effects:
    """Add the effects that students share to those of each at the nodes of the last level."""
    return effects._replace(
        mean=effects.mean + shared.mean[leaves.label],
        variance=effects.variance + shared.variance[leaves.label],
    )


def sum_shared(
    levels: tuple[Level, ...],
    step: _Step,
    students: Gaussians,
    effects: list[Effects],
    shared: SharedEffects,
) -> FloatArray:
    """Sum up what the leaves tell of the effects that students share.

    Parameters
    ----------
    levels
        As for `restore`.
    step
        That of the last level.
    students, effects
        What `update_students` and `restore` have found.
    shared
        The old posterior, which the `kappas` of `eliminate` were without.

    Returns
    -------
    array, shape (labels + kinds, 2)
        Precision and linear term of the likelihood of each.
    """
    student = np.arange(len(students))
    above: FloatArray = np.zeros(len(students), np.float32)
    for level, own in zip(levels, [None, *effects[:-1]], strict=True):
        above = (above if own is None else own.mean)[level.parent]
        student = student[level.parent]
    pull = np.einsum("ni,ni->n", step.pull[:, :-1], students.mean[student]) + step.pull[:, -1]
    # g W, and g (r − S · t − W U) where U is without the shared effect.
    weight = step.weight
    linear = step.gain * (step.linear - pull) / step.noise
    linear += weight * (shared.mean[levels[-1].label] - above)
    n, label = len(shared.mean), levels[-1].label
    return np.stack([np.bincount(label, values, n) for values in (weight, linear)], axis=1)


def update_shared(sums: FloatArray, old: SharedEffects) -> SharedEffects:
    """Return posterior and prior variance of the effects that students share."""
    n_kinds = len(old.prior)
    kind = np.arange(len(sums)) % n_kinds
    variance = 1 / (1 / old.prior[kind] + sums[:, 0])
    mean = variance * sums[:, 1]
    removed = 1 - variance / old.prior[kind]
    with_answers = sums[:, 0] > 0
    columns = with_answers * 1.0, mean**2 + variance, removed**2
    counts = [np.bincount(kind, with_answers * values, n_kinds) for values in columns]
    prior = estimate_variance(np.stack(counts, axis=1), old.prior)
    variance = np.where(with_answers, variance, prior[kind])
    return SharedEffects(mean.astype(np.float32), variance.astype(np.float32), prior)


def begin(state: State, levels: tuple[Level, ...], n_labels: int, n_kinds: int) -> State:
    """Return a state with effects of which only the prior variance is known.

    `n_labels` is the number of labels of the last level, for all kinds.
    """
    variance = np.full((len(levels), n_kinds), _START_VARIANCE)
    k = state.students.mean.shape[1]
    effects = []
    for depth, level in enumerate(levels):
        n = len(level)
        total = np.full(n, (depth + 1) * _START_VARIANCE, np.float32)
        effects.append(Effects(np.zeros(n, np.float32), total, np.zeros((n, k), np.float32)))
    shared = SharedEffects(
        np.zeros(n_labels + n_kinds, np.float32),
        np.full(n_labels + n_kinds, _START_VARIANCE, np.float32),
        np.full(n_kinds, _START_VARIANCE),
    )
    return replace(state, effects=tuple(effects), variance=variance, shared=shared)


@dataclass(frozen=True)
class ContextEffects:
    """What a fit has learned about the contexts of its students.

    Attributes
    ----------
    labels
        The labels of each level that have answers, increasing.
    levels
        The nodes of all students' trees.
    effects
        Their posteriors, for each level.
    variance
        Prior variance of the effects, shape (levels, kinds).
    shared
        What students share in the contexts of the last level.
    root
        Shape (students + 1,): place in the trees of each student of the model, and of one without
        answers.
    """

    labels: tuple[IntArray, ...]
    levels: tuple[Level, ...]
    effects: tuple[Effects, ...]
    variance: FloatArray
    shared: SharedEffects
    root: IntArray


def find_effects(
    learned: ContextEffects,
    student: IntArray,
    context: IntArray,
    kind: IntArray,
    *,
    with_shared: bool = True,
) -> Effects:
    """Return the total effects of pairs.

    They are those at the last node on the way from the student down to the context that has
    answers; further down, effects are only known to vary.

    Parameters
    ----------
    learned
        From a fit.
    student
        Places of students in the model, shape (pairs,).
    context
        Contexts of the pairs, shape (pairs, levels).
    kind
        The stages, shape (pairs,).
    with_shared
        Whether to add what students share.
    """
    n_kinds = learned.variance.shape[1]
    shape = len(student), learned.effects[0].with_ability.shape[1]
    mean, variance = np.zeros((2, len(student)), np.float32)
    found = Effects(mean, variance, np.zeros(shape, np.float32))
    labels = [
        find_ids(ids, context[:, depth]) * np.int32(n_kinds) + kind
        for depth, ids in enumerate(learned.labels)
    ]
    nodes = find_nodes(learned.levels, learned.root[student], labels)
    for node, own, prior in zip(nodes, learned.effects, learned.variance, strict=True):
        is_there = node >= 0
        for values, source in zip(found, own, strict=True):
            values[is_there] = source[node[is_there]]
        found.variance[~is_there] += prior.astype(np.float32)[kind[~is_there]]
    if with_shared:
        found.mean[:] += learned.shared.mean[labels[-1]]
        found.variance[:] += learned.shared.variance[labels[-1]]
    return found


def go_on(
    state: State,
    learned: ContextEffects,
    levels: tuple[Level, ...],
    ids: list[IntArray],
    student: IntArray,
) -> State:
    """Return a state with the effects that another fit has learned.

    Parameters
    ----------
    state
        Without effects.
    learned
        From the other fit.
    levels
        The nodes of all students' trees.
    ids
        The contexts of each level, whose places, times the kinds, are the labels of its nodes.
    student
        Place of each student in the other fit.
    """
    n_kinds = learned.variance.shape[1]
    node: IntArray = np.arange(len(levels[-1]))
    contexts = np.empty((len(node), len(levels)), ids[0].dtype)
    for depth in reversed(range(len(levels))):
        contexts[:, depth] = ids[depth][levels[depth].label[node] // n_kinds]
        node = levels[depth].parent[node]
    kind = levels[-1].kind.astype(np.int32)
    leaves = find_effects(learned, student[node], contexts, kind, with_shared=False)
    # Only those at the leaves matter to the next step.
    others = [
        Effects(*(np.zeros((len(level), *v.shape[1:]), v.dtype) for v in leaves))
        for level in levels[:-1]
    ]
    place = np.append(find_ids(learned.labels[-1], ids[-1]), len(learned.labels[-1]))
    label = (place[:, None] * np.int32(n_kinds) + np.arange(n_kinds)).ravel()
    mean, variance, prior = learned.shared
    shared = SharedEffects(mean[label], variance[label], prior)
    return replace(state, effects=(*others, leaves), variance=learned.variance, shared=shared)
