"""Effects of nested contexts: `restore` finds the maximum of their posterior.

The contexts of a student are a tree. Groups of quizzes lie below the student, and the quizzes of
each group, the leaves, lie below the group. See `common.item_response.context`.
"""

from common.item_response.context import Level, eliminate, restore
from common.item_response.model import Gaussians
from common.item_response.observations import sort_answers

import numpy as np
import pytest
from numpy.testing import assert_allclose

N_STUDENTS = 5
# Number of dimensions of the abilities.
K = 2
# Prior variances: of the effects of groups of quizzes, and of the effects of quizzes in a group. An
# answer that is right or wrong has a single stage, hence the shape (2 levels, 1 stage).
VARIANCE = np.array([[0.8], [0.3]])


def make_levels(rng: np.random.Generator) -> tuple[Level, ...]:
    """Return the contexts of 60 random answers, in three groups of two quizzes each.

    The first level holds the groups in which each student has answers, the second one the quizzes.
    """
    student = rng.integers(0, N_STUDENTS, 60).astype(np.int32)
    group = rng.integers(0, 3, 60).astype(np.int32)
    quiz = rng.integers(0, 2, 60).astype(np.int32)
    _, _, levels = sort_answers(student, [group, quiz], N_STUDENTS)
    return levels


def make_students(rng: np.random.Generator) -> Gaussians:
    """Return random posteriors of abilities."""
    factor = rng.normal(0, 0.5, (N_STUDENTS, K, K)).astype(np.float32)
    mean = rng.normal(0, 1, (N_STUDENTS, K)).astype(np.float32)
    # The product with its transpose makes any matrix a valid covariance.
    return Gaussians(mean, covariance=factor @ factor.mT)


@pytest.mark.parametrize("seed", range(3))
def test_the_slope_in_a_shared_effect_is_a_leaf_s_effect_over_its_variance(seed: int) -> None:
    """`restore` returns the derivative of the log likelihood by the effect that students share.

    Let u be the effect of a leaf, a quiz of one student, with the prior N(0, v). The log posterior
    is log L − u²/(2v). At its maximum, the derivative is 0, so that d log L / du = u / v. The
    shared effect is added to the same logits as u. So the derivative by the shared effect is u / v,
    too.
    """
    rng = np.random.default_rng(seed)
    levels = make_levels(rng)
    _, quizzes = levels
    n_quizzes = len(quizzes.label)
    # `eliminate` takes weight_sum, linear_sum and item_sum (K slopes and an intercept) of each
    # leaf. Any numbers will do, but weight_sum must be positive.
    sums = rng.normal(0, 1, (n_quizzes, 1 + 1 + K + 1)).astype(np.float32)
    sums[:, 0] = rng.uniform(0.5, 4, n_quizzes)
    conditional_totals, _ = eliminate(levels, sums, VARIANCE, N_STUDENTS)

    effects, _, slope = restore(levels, conditional_totals, make_students(rng), VARIANCE)

    # Column 0 of the effects is the mean effect. The mean effect of a quiz includes the effect of
    # its group.
    effects_of_groups, effects_of_quizzes = effects
    group_effect = effects_of_groups[quizzes.parent, 0]
    effect_of_leaf = effects_of_quizzes[:, 0] - group_effect
    assert np.abs(group_effect).max() > 0.1
    assert_allclose(slope, effect_of_leaf / VARIANCE[1], atol=1e-5)
