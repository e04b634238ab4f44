"""The mathematics of nested contexts: what the way from the students to the leaves restores."""

from common.item_response.context import Level, eliminate, restore
from common.item_response.model import Gaussians
from common.item_response.observations import sort_answers

import numpy as np
import pytest
from numpy.testing import assert_allclose

N_STUDENTS = 5
K = 2
# Prior variances of the effects of a group of quizzes, and of a quiz in it.
VARIANCE = np.array([[0.8], [0.3]])


def make_levels(rng: np.random.Generator) -> tuple[Level, ...]:
    """Return the trees of students who have answered in two quizzes of each of three groups."""
    student = rng.integers(0, N_STUDENTS, 60).astype(np.int32)
    group = rng.integers(0, 3, 60).astype(np.int32)
    quiz = rng.integers(0, 2, 60).astype(np.int32)
    _, _, levels = sort_answers(student, [group, quiz], N_STUDENTS)
    return levels


def make_students(rng: np.random.Generator) -> Gaussians:
    """Return posteriors of abilities."""
    root = rng.normal(0, 0.5, (N_STUDENTS, K, K)).astype(np.float32)
    return Gaussians(rng.normal(0, 1, (N_STUDENTS, K)).astype(np.float32), root @ root.mT)


@pytest.mark.parametrize("seed", range(3))
def test_a_leaf_leaves_for_shared_effects_what_its_own_effect_has_not_explained(seed: int) -> None:
    """Where the log posterior has its maximum, its slope in the leaf's effect u is 0: that of the
    log likelihood, which is also the slope in an effect that students share, is u over the prior
    variance. The effect of the group above the leaf is part of neither.
    """
    rng = np.random.default_rng(seed)
    levels = make_levels(rng)
    leaves = levels[-1]
    gathered = rng.normal(0, 1, (len(leaves.label), 2 + K + 1)).astype(np.float32)
    # The first column is a sum of weights.
    gathered[:, 0] = rng.uniform(0.5, 4, len(leaves.label))
    steps, _ = eliminate(levels, gathered, VARIANCE, N_STUDENTS)

    effects, _, left = restore(levels, steps, make_students(rng), VARIANCE)

    of_group = effects[0][leaves.parent, 0]
    own_effect = effects[1][:, 0] - of_group
    assert np.abs(of_group).max() > 0.1
    assert_allclose(left, own_effect / VARIANCE[1], atol=1e-5)
