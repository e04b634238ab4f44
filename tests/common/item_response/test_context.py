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
# Prior variances of effects, shape (levels of contexts, stages of an answer): 0.8 for groups of
# quizzes, and 0.3 for quizzes in a group. An answer that is only right or wrong has one stage. (A
# choice of an option is modelled in several stages: is it right, else the most popular wrong one?)
VARIANCE = np.array([[0.8], [0.3]])


def make_levels(rng: np.random.Generator) -> tuple[Level, ...]:
    """Return the contexts of 60 random answers, in three groups of two quizzes each.

    A level lists the contexts in which each student has answers (see MODEL.md of
    `common.item_response`). The contexts of the first level are groups, and the contexts of the
    second level are quizzes.
    """
    student = rng.integers(0, N_STUDENTS, 60).astype(np.int32)
    group = rng.integers(0, 3, 60).astype(np.int32)
    quiz = rng.integers(0, 2, 60).astype(np.int32)
    _, _, levels = sort_answers(student, [group, quiz], N_STUDENTS)
    return levels


def make_sums(rng: np.random.Generator, n_quizzes: int) -> np.ndarray:
    """Return random numbers in place of the sums over the answers in each quiz.

    `eliminate` takes these sums as an argument.

    There is a row for each quiz of a student. The columns are weight_sum, linear_sum and
    item_sum, which `common.item_response.context` defines. item_sum has K + 1 columns: for the
    slopes and for the intercept. All numbers are valid, except that weight_sum must be positive.
    """
    n_columns = 2 + K + 1
    sums = rng.normal(0, 1, (n_quizzes, n_columns)).astype(np.float32)
    sums[:, 0] = rng.uniform(0.5, 4, n_quizzes)
    return sums


def make_students(rng: np.random.Generator) -> Gaussians:
    """Return random posteriors of abilities."""
    factor = rng.normal(0, 0.5, (N_STUDENTS, K, K)).astype(np.float32)
    mean = rng.normal(0, 1, (N_STUDENTS, K)).astype(np.float32)
    # Any matrix times its transpose is a valid covariance.
    return Gaussians(mean, covariance=factor @ factor.mT)


@pytest.mark.parametrize("seed", range(3))
def test_the_slope_of_the_log_likelihood_is_the_effect_of_a_quiz_over_its_variance(
    seed: int,
) -> None:
    """A student does better or worse in a quiz than elsewhere, by an effect u on the logit.

    `restore` finds the u that maximises the posterior, and the slope d log L / du at this u. L is
    the likelihood of the student's answers in the quiz, and the prior of u is N(0, v). The log
    posterior is log L − u²/(2v) plus a constant. At its maximum the derivative by u is 0, so that
    d log L / du = u / v.
    """
    rng = np.random.default_rng(seed)
    levels = make_levels(rng)
    _, quizzes = levels
    sums = make_sums(rng, n_quizzes=len(quizzes.label))
    students = make_students(rng)
    # `eliminate` integrates the effects out. `restore` needs the result to find the effects.
    conditional_totals, _ = eliminate(levels, sums, VARIANCE, N_STUDENTS)

    effects, _, slope = restore(levels, conditional_totals, students, VARIANCE)

    # Column 0 of both arrays has the posterior means of effects.
    mean_of_group = effects[0][:, 0]
    total_of_quiz = effects[1][:, 0]
    # The total effect of a quiz is the quiz's own effect plus the effect of its group.
    effect_of_its_group = mean_of_group[quizzes.parent]
    own_effect = total_of_quiz - effect_of_its_group
    # If all effects of groups were near 0, a quiz's own effect would equal its total effect, and
    # the test could not tell the two apart.
    assert np.abs(effect_of_its_group).max() > 0.1
    variance_of_own_effect = VARIANCE[1]
    assert_allclose(slope, own_effect / variance_of_own_effect, atol=1e-5)
