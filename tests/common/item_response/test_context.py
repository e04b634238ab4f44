"""Effects of nested contexts: `restore` finds the maximum of their posterior.

The contexts of a student are a tree: below the student are groups of quizzes, and below each group
are its quizzes, the leaves. See `common.item_response.context`.
"""

from common.item_response.context import Level, eliminate, restore
from common.item_response.model import Gaussians
from common.item_response.observations import sort_answers

import numpy as np
import pytest
from numpy.testing import assert_allclose

N_STUDENTS = 5
# Number of dimensions.
K = 2
# Prior variances of the effects of a group of quizzes, and of a quiz in it, shape (levels, stages):
# there is a single stage.
VARIANCE = np.array([[0.8], [0.3]])


def make_levels(rng: np.random.Generator) -> tuple[Level, ...]:
    """Return the levels of students who answer in three groups of two quizzes each."""
    student = rng.integers(0, N_STUDENTS, 60).astype(np.int32)
    group = rng.integers(0, 3, 60).astype(np.int32)
    quiz = rng.integers(0, 2, 60).astype(np.int32)
    _, _, levels = sort_answers(student, [group, quiz], N_STUDENTS)
    return levels


def make_students(rng: np.random.Generator) -> Gaussians:
    """Return random posteriors of abilities."""
    root = rng.normal(0, 0.5, (N_STUDENTS, K, K)).astype(np.float32)
    return Gaussians(rng.normal(0, 1, (N_STUDENTS, K)).astype(np.float32), root @ root.mT)


@pytest.mark.parametrize("seed", range(3))
def test_the_slope_in_a_shared_effect_is_the_leaf_s_own_effect_over_its_variance(seed: int) -> None:
    """At the maximum of the log posterior, the log likelihood has the slope u / variance in u.

    Here, u is the effect of a leaf alone, without the effect of its group. An effect that students
    share is added to the same logits as u. Therefore the log likelihood has the same slope in the
    shared effect, and `restore` returns this slope.
    """
    rng = np.random.default_rng(seed)
    levels = make_levels(rng)
    leaves = levels[-1]
    # Columns W, r and S of `eliminate`: 1, 1 and K + 1 numbers for each leaf.
    gathered = rng.normal(0, 1, (len(leaves.label), 2 + K + 1)).astype(np.float32)
    # W is a sum of weights, which are positive.
    gathered[:, 0] = rng.uniform(0.5, 4, len(leaves.label))
    steps, _ = eliminate(levels, gathered, VARIANCE, N_STUDENTS)

    effects, _, slope = restore(levels, steps, make_students(rng), VARIANCE)

    # Column 0 of the effects is a mean. That of a leaf includes the effect of its group.
    group_effect = effects[0][leaves.parent, 0]
    own_effect = effects[1][:, 0] - group_effect
    assert np.abs(group_effect).max() > 0.1
    assert_allclose(slope, own_effect / VARIANCE[1], atol=1e-5)
