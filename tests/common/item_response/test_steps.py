"""A step of a fit gives the same result with any number of threads.

A fit with effects of contexts equals a fit in which these effects are further abilities. Scaling
the abilities changes no prediction.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any
from unittest.mock import patch

from common import threads
from common.item_response import ItemResponse, ItemResponseOptions, context, model, steps
from common.item_response.context import EFFECT_VARIANCE, SharedEffects
from common.item_response.model import Gaussians
from common.item_response.observations import Observations, number_rows, sort_answers
from common.item_response.steps import State

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

RNG = np.random.default_rng


@pytest.mark.parametrize("predicts", ["is_correct", "option"])
def test_the_number_of_threads_changes_no_result(
    monkeypatch: pytest.MonkeyPatch, predicts: str
) -> None:
    """An estimator predicts the same with one thread and with three threads.

    `predicts` is the column that the estimator predicts: whether answers are right ("is_correct"),
    or which options are chosen ("option").
    """
    # The fit divides the students into chunks, and a thread works on one chunk at a time. The
    # 48,000 answers of 800 students to 60 questions are enough for several chunks.
    student, question = np.indices((800, 60)).reshape(2, -1)
    option = RNG(0).integers(1, 5, len(student))
    right_option = question % 4 + 1
    quiz = question // 10

    def fit_and_predict(n_threads: int) -> np.ndarray:
        monkeypatch.setattr(threads, "N_THREADS", n_threads)
        settings: dict[str, Any] = {"n_dimensions": 2, "n_steps": 3, "guessing": 0.0}
        if predicts == "is_correct":
            right_or_wrong = ItemResponse(**settings)
            right_or_wrong.fit(student, question, option == right_option, context=quiz)
            return right_or_wrong.predict_proba(student, question, context=quiz)
        options = ItemResponseOptions(**settings)
        options.fit(student, question, option, right_option, context=quiz)
        return options.predict_proba(student, question, context=quiz)

    assert_array_equal(fit_and_predict(n_threads=1), fit_and_predict(n_threads=3))


# ---- A pass over the answers, with 0 to 3 levels of contexts ------------------------------------


# Number of contexts in each level. A level is one kind of context, such as quizzes.
N_CONTEXTS = 3


def make_case(seed: int, n_levels: int) -> tuple[Observations, State]:
    """Return a few random answers, and random parameters from which a fit may begin (its state).

    There are at most 6 students, 5 items (such as questions), 3 abilities, 3 stages of an answer
    and 40 answers. The answers lie in contexts of `n_levels` levels, such as quizzes in groups of
    quizzes. "Words of the code" in common/item_response/MODEL.md explains these words.
    """
    rng = RNG(seed)
    n_students, n_items, k, n_stages, n_answers = rng.integers(1, [7, 6, 4, 4, 41]).tolist()
    observations = draw_answers(rng, n_students, n_items, n_stages, n_answers, n_levels)
    return observations, draw_state(rng, observations, n_stages, k)


def draw_answers(
    rng: np.random.Generator,
    n_students: int,
    n_items: int,
    n_stages: int,
    n_answers: int,
    n_levels: int,
) -> Observations:
    """Draw answers with random students, items and contexts in `n_levels` levels.

    The model decides on an option in stages: is it the right one, else the most popular wrong one,
    and so on. Each stage is an answer of its own here. A context has another effect in each stage.
    So one integer, the label, numbers the pairs of a context and a stage. See "Words of the code"
    in common/item_response/MODEL.md.
    """
    stage = rng.integers(0, n_stages, n_answers)
    # For each level, an array with the label of each answer.
    labels = []
    for _ in range(n_levels):
        context_of_answer = rng.integers(0, N_CONTEXTS, n_answers)
        labels.append(context.make_label(context_of_answer, stage, n_stages))
    student = rng.integers(0, n_students, n_answers)
    item = rng.integers(0, n_items, n_answers)
    _, start, levels = sort_answers(student, labels, n_students)
    return Observations(
        start=start,
        item=item,
        is_right=rng.random(n_answers) < 0.6,
        is_used=rng.random(n_answers) < 0.8,
        n_items=n_items,
        levels=levels,
    )


def draw_state(
    rng: np.random.Generator, observations: Observations, n_stages: int, k: int
) -> State:
    """Draw the state of a fit to the answers: items, students and effects of contexts.

    An item has k slopes and an intercept. A node is a context in which a student has answers, and a
    leaf is a node of the last level. Each node has an effect. Each context of the last level also
    has a shared effect, which is the same for all students. See "Words of the code" in
    common/item_response/MODEL.md.

    A choice of an option has `n_stages` stages: is the answer right? Else, is it the most popular
    wrong option? And so on. Each stage has effects of its own, with another variance.
    """
    n_items = observations.n_items
    levels = observations.levels
    # Any matrix times its transpose is a valid covariance.
    factor = rng.normal(0, 0.4, (n_items, k + 1, k + 1)).astype("f")
    item_mean = rng.normal(0.3, 0.7, (n_items, k + 1)).astype("f")
    # Prior variances of the effects, shape (levels of contexts, stages of an answer).
    effect_variance = np.exp(rng.uniform(-4, 1, (len(levels), n_stages)))
    # For each level, an array with a row for each node. A row has 2 + k numbers: the mean of the
    # node's total effect, its variance, and its covariance with each of the k abilities. All are 0,
    # except for the variances of the leaves (the nodes of the last level), which are set below.
    effects = tuple(np.zeros((len(level.label), 2 + k)) for level in levels)
    if levels:
        # A leaf, such as a quiz of a student, lies in one node of each earlier level, such as a
        # group of quizzes. Its total effect is its own effect plus the effects of these nodes. So
        # the prior variance of the total effect is the sum of the prior variances of all levels.
        total_variance_by_stage = effect_variance.sum(axis=0)
        stage_of_leaf = context.stage_of_label(levels[-1].label, n_stages)
        effects[-1][:, EFFECT_VARIANCE] = total_variance_by_stage[stage_of_leaf]
    # There is a shared effect for each pair of a context and a stage; a label numbers these pairs.
    n_labels = N_CONTEXTS * n_stages
    shared = SharedEffects(
        mean=rng.normal(0, 0.7, n_labels),
        variance=rng.uniform(0.1, 1, n_labels),
        prior=np.ones(n_stages),
    )
    n_students = len(observations.start) - 1
    # The priors of students and items are standard normal. At first, the posterior of each student
    # is the prior, as before any answer.
    return State(
        students=model.standard_normal(n_students, k),
        items=Gaussians(item_mean, factor @ factor.mT),
        prior=Gaussians(np.zeros((1, k + 1)), np.eye(k + 1)[None]),
        guessing=np.full(n_items, 0.2, np.float32),
        effects=effects,
        variance=effect_variance,
        shared=shared,
    )


def positions_of_item_parameters(k: int) -> list[int]:
    """Return the positions of an item's own parameters among those of an expanded item.

    An expanded item (see `expand`) has k slopes on abilities first, then slopes on effects, and the
    intercept last. The item itself has the k slopes on abilities and the intercept.
    """
    return [*range(k), -1]


def slopes_on_effects(observations: Observations, state: State) -> list[np.ndarray]:
    """Return, for each level, the slopes of the expanded items on the effects of the level's nodes.

    A node is a context in which a student has answers. The array of a level has a row for each
    answer and a column for each node. The expanded fit treats the effect of each node as one more
    ability. Abilities are N(0, 1), so the effect is this ability times the effect's standard
    deviation. This deviation is therefore the slope on the node in which the answer lies. All other
    slopes of the row are 0.
    """
    slopes = []
    for level, variance in zip(observations.levels, state.variance, strict=True):
        stage_of_node = context.stage_of_label(level.label, n_stages=len(variance))
        deviation_of_node = np.sqrt(variance[stage_of_node])
        # Row i of this matrix holds the slopes of the answers in node i.
        slopes_by_node = np.diag(deviation_of_node)
        node_of_answer = number_rows(level.start)
        slopes.append(slopes_by_node[node_of_answer])
    return slopes


def shared_effects(observations: Observations, state: State) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the variance of the shared effect of each answer.

    Beside the effects that each student has, a context of the last level has the shared effect,
    which is the same for all students. Without contexts, there is no such effect.
    """
    if not observations.levels:
        no_effects = np.zeros(len(observations.item))
        return no_effects, no_effects
    last_level = observations.levels[-1]
    label_of_answer = last_level.label[number_rows(last_level.start)]
    return state.shared.mean[label_of_answer], state.shared.variance[label_of_answer]


def expand(observations: Observations, state: State) -> Gaussians:
    """Return, for each answer, an item with which a model without contexts gives the same logit.

    This expanded item has three kinds of parameters: the slopes of the answer's item on k
    abilities, a slope on the effect of each node as if it were an ability (see
    `slopes_on_effects`), and an intercept. This intercept is the item's intercept plus the shared
    effect of the answer's context.
    """
    items = state.items.take(observations.item)
    k = state.students.mean.shape[1]
    shared_mean, shared_variance = shared_effects(observations, state)

    slopes_on_abilities = items.mean[:, :k]
    intercept = items.mean[:, k] + shared_mean
    mean = np.column_stack(
        [slopes_on_abilities, *slopes_on_effects(observations, state), intercept]
    )
    # The slopes on effects are known exactly, so their covariances are 0. For each answer, `np.ix_`
    # selects the rows and columns of the slopes on abilities and of the intercept: they get the
    # item's covariance. The variance of the shared effect is added to that of the intercept.
    n_answers, n_parameters = mean.shape
    covariance = np.zeros((n_answers, n_parameters, n_parameters))
    own_positions = positions_of_item_parameters(k)
    covariance[np.ix_(range(n_answers), own_positions, own_positions)] = items.covariance
    covariance[:, -1, -1] += shared_variance
    return Gaussians(mean.astype("f"), covariance.astype("f"))


@dataclass(frozen=True)
class TwoFits:
    """The same answers, fitted in two ways: with effects of contexts, and without (expanded).

    In the expanded fit, each effect is one more ability of the student. Each answer has an item of
    its own, the expanded item, which `expand` makes. Both fits make two passes over the answers.
    """

    observations: Observations
    # The parameters that the fit with effects of contexts finds.
    state: State
    # For each item, the gradient and the curvature of the log likelihood, summed over the item's
    # answers in the fit with effects of contexts. `model.unpack_sums` separates the two.
    item_sums: np.ndarray
    # The parameters that the expanded fit finds.
    expanded: State
    # For each answer, the gradient and the curvature in the expanded fit, in the same format.
    answer_sums: np.ndarray
    # For each answer, the parameters of the expanded item minus the parameters of the answer's own
    # item. The own item has no slopes on effects (they count as 0 here), and its intercept contains
    # no shared effect. Shape (answers, parameters of an expanded item).
    added_by_effects: np.ndarray

    @property
    def k(self) -> int:
        """Number of abilities in the fit with effects of contexts.

        The expanded fit has more: there, each effect counts as an ability.
        """
        return int(self.state.students.mean.shape[1])


@pytest.fixture(scope="module", params=product(range(12), range(4)), ids=str)
def two_fits(request: pytest.FixtureRequest) -> TwoFits:
    """Fit the same random answers in two ways, which must agree.

    The logit of an answer is slopes · abilities + intercept + effects. An effect belongs to a
    context, such as a quiz, and is added if the answer lies in the context.

    - The fit under test knows the contexts, and integrates the effects out.
    - The expanded fit knows no contexts. It gets the same logit in another way: each effect is one
      more ability of the student. If an answer lies in the context of the effect, it has a slope on
      this ability, otherwise the slope 0. Answers to the same item lie in different contexts and so
      have different slopes. Therefore each answer has an item of its own, the expanded item, which
      `expand` makes.

    Both describe the same model, so both must find the same abilities. The parameters are a seed
    and the number of levels of contexts.
    """
    seed, n_levels = request.param
    observations, state = make_case(seed, n_levels)
    item = observations.item
    n_answers = len(item)
    k = state.students.mean.shape[1]

    # In the expanded fit, there is an item for each answer: item i has only answer i.
    expanded_observations = replace(
        observations, item=np.arange(n_answers, dtype=np.int32), n_items=n_answers, levels=()
    )
    n_effects = sum(len(level.label) for level in observations.levels)
    students = model.standard_normal(len(state.students.mean), k + n_effects)
    expanded = replace(state, students=students, guessing=state.guessing[item], effects=())

    # Keep the prior variances of effects as they are: the expanded fit could not estimate them.
    with patch.object(context, "estimate_variance", lambda _, old: old):
        # Each pass over the answers updates the abilities and the effects. The first pass begins
        # without known effects, so make a second one, which uses those of the first.
        for _ in range(2):
            # Make the expanded items anew in each pass. Their intercepts contain the shared effects
            # (effects of a context on all students), which the pass before has changed.
            expanded_items = expand(observations, state)
            # Subtract the parameters of the answer's own item, see `TwoFits.added_by_effects`.
            added_by_effects = expanded_items.mean.copy()
            added_by_effects[:, positions_of_item_parameters(k)] -= state.items.mean[item]
            expanded, answer_sums = steps.pass_over_answers(
                expanded_observations, replace(expanded, items=expanded_items)
            )
            state, item_sums = steps.pass_over_answers(observations, state)
    return TwoFits(
        observations=observations,
        state=state,
        item_sums=item_sums,
        expanded=expanded,
        answer_sums=answer_sums,
        added_by_effects=added_by_effects,
    )


def test_abilities_are_the_same_if_effects_are_further_abilities(two_fits: TwoFits) -> None:
    k = two_fits.k
    students = two_fits.state.students
    expanded = two_fits.expanded.students
    assert_allclose(students.mean, expanded.mean[:, :k], atol=2e-4)
    assert_allclose(students.covariance, expanded.covariance[:, :k, :k], atol=2e-4)


def sums_of_answers(two_fits: TwoFits) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient and the curvature of each answer for the parameters of its own item.

    In a fit, the log likelihood of an answer is a quadratic function of the parameters x of its
    item (slopes and intercept), up to a constant: gradient · x − xᵀ curvature x / 2.

    The expanded fit has such a function for the parameters of the answer's expanded item. These are
    x + c: the parameters x of the own item, with 0 for the slopes on effects, plus the row c of
    `added_by_effects`. Multiply out, to get a quadratic function of x. Up to a constant,

        gradient · (x + c) − (x + c)ᵀ curvature (x + c) / 2
        = (gradient − curvature c) · x − xᵀ curvature x / 2,

    so the own item has the same curvature, and the gradient is gradient − curvature c.

    Returns
    -------
    gradient : array, shape (answers, parameters of an item)
    curvature : array, shape (answers, parameters of an item, parameters of an item)
    """
    gradient, curvature = model.unpack_sums(two_fits.answer_sums)
    # The product curvature · c for each answer; c is the answer's row of `added_by_effects`.
    change = (curvature @ two_fits.added_by_effects[:, :, None])[:, :, 0]
    # Keep only the parameters that the answer's own item has: slopes on abilities, and intercept.
    own_positions = positions_of_item_parameters(two_fits.k)
    return (gradient - change)[:, own_positions], curvature[:, own_positions][:, :, own_positions]


def test_both_fits_give_each_item_the_same_gradient_and_curvature(two_fits: TwoFits) -> None:
    """Two fits of the same answers give each item the same gradient and the same curvature.

    These are sums over the answers to the item. The fit under test, with effects of contexts,
    returns the sums. The expanded fit, in which each effect is one more ability, has an expanded
    item for each answer. So it returns a gradient and a curvature for each answer. The test turns
    these into those of the answer's own item (`sums_of_answers`) and adds up the answers to each
    item.
    """
    n_items = two_fits.observations.n_items
    item = two_fits.observations.item
    gradient_of_answer, curvature_of_answer = sums_of_answers(two_fits)
    expected_gradient = np.zeros((n_items, *gradient_of_answer.shape[1:]))
    np.add.at(expected_gradient, item, gradient_of_answer)
    expected_curvature = np.zeros((n_items, *curvature_of_answer.shape[1:]))
    np.add.at(expected_curvature, item, curvature_of_answer)

    gradient_of_item, curvature_of_item = model.unpack_sums(two_fits.item_sums)

    assert_allclose(gradient_of_item, expected_gradient, atol=1e-3)
    assert_allclose(curvature_of_item, expected_curvature, atol=1e-3)


def test_logits_with_effects_of_the_first_levels_are_the_same(two_fits: TwoFits) -> None:
    """Two fits of the same answers agree on the mean and the variance of each answer's logit.

    In the fit under test, effects belong to contexts. In the expanded fit, each effect is a further
    ability, on which the expanded item of an answer has a slope. The logits are compared with the
    effects of the first level alone, then with the effects of the first two levels, and so on. The
    shared effects are 0 here.
    """
    observations = two_fits.observations
    levels = observations.levels
    state = two_fits.state
    student = number_rows(observations.start)
    # Each answer has its own expanded item.
    expanded_item = np.arange(len(observations.item), dtype=np.int32)
    zeros = np.zeros_like(state.shared.mean)
    no_shared_effects = SharedEffects(mean=zeros, variance=zeros, prior=zeros)
    expanded_items = expand(observations, replace(state, shared=no_shared_effects))
    # The parameters of an expanded item are k slopes on abilities, then the slopes on the effects
    # of level 0, of level 1 and so on, and last the intercept. `ends` holds, for each level, the
    # position of the first parameter after the level's slopes.
    n_nodes_of_level = [len(level.label) for level in levels]
    ends = two_fits.k + np.cumsum(n_nodes_of_level)

    for level, effects_of_node, end in zip(levels, state.effects, ends, strict=True):
        # For each answer, the total effect of its node in this level: the node's own effect plus
        # the effects of the nodes of earlier levels in which the answer lies.
        effect_of_answer = effects_of_node[number_rows(level.start)]
        moments = steps.logit_moments(
            state.students, state.items, student, observations.item, effect_of_answer
        )
        # Set the slopes on the effects of all later levels to 0: these effects must not count yet.
        mean_without_later_levels = expanded_items.mean.copy()
        mean_without_later_levels[:, end:-1] = 0
        expanded_moments = steps.logit_moments(
            two_fits.expanded.students,
            Gaussians(mean_without_later_levels, expanded_items.covariance),
            student,
            expanded_item,
        )
        assert_allclose(moments, expanded_moments, atol=1e-3)


def test_scaling_the_latent_space_changes_no_prediction() -> None:
    """`standardise` gives abilities the mean 0 and the covariance I (the identity matrix).

    It changes the items and their prior accordingly, so that the mean and the variance of each
    answer's logit stay the same.
    """
    observations, start = make_case(seed=7, n_levels=1)
    # `standardise` must change the items and their prior in the same way. To check this, let the
    # prior equal the items here; they must still be equal at the end.
    state, _ = steps.pass_over_answers(observations, replace(start, prior=start.items))
    # For each answer, the number of its student, and the number of its node: of the student's
    # context in which the answer lies.
    student = number_rows(observations.start)
    node_of_answer = number_rows(observations.levels[0].start)

    def logit_moments(state: State) -> tuple[np.ndarray, np.ndarray]:
        effects = state.effects[0][node_of_answer]
        return steps.logit_moments(state.students, state.items, student, observations.item, effects)

    # Find the moments first, because `standardise` changes the effects of `state` in place.
    before = logit_moments(state)
    scaled = steps.standardise(state)

    assert_allclose(logit_moments(scaled), before, atol=1e-3)
    mean = scaled.students.mean
    covariance = scaled.students.covariance
    assert_allclose(mean.mean(axis=0), 0, atol=1e-5)
    # The covariance of abilities over all students is the covariance of the posterior means plus
    # the mean of the posterior covariances.
    covariance_of_abilities = mean.T @ mean / len(mean) + covariance.mean(axis=0)
    assert_allclose(covariance_of_abilities, np.eye(mean.shape[1]), atol=1e-4)
    assert_allclose(scaled.prior.mean, scaled.items.mean)
