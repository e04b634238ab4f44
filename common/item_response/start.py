"""Find a good start for the fit. From a random start, the fit would take many more steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.arrays import FloatArray, IntArray
from common.item_response import model
from common.item_response.model import Gaussians
from common.item_response.observations import Observations, number_rows
from common.item_response.steps import State, logit_moments, run_step
from common.threads import in_threads

import numpy as np

# If there are more answers than this, the start is found from some students who together have about
# this many answers.
_MAX_ANSWERS = 2_000_000
# Number of steps in which a single ability is fitted.
_N_STEPS = 4
# The search for a start begins with a fit of a single ability. This is the prior mean of the slopes
# in the first stage, whether an answer is right. In later stages, which wrong option it is (see
# MODEL.md), the prior mean is 0.
_FIRST_SLOPE_MEAN = 1.0
# Prior variances of slopes and intercepts in the fit with a single ability.
_FIRST_SLOPE_VARIANCE = 0.3
_FIRST_INTERCEPT_VARIANCE = 1.0
# An item has a slope on each ability. At the start of the fit of several abilities, the slopes on
# the second and on each further ability have this root mean square over the answers.
_SLOPE = 0.4
# At the same start, the prior variance of the slopes on the second and on each further ability.
_SLOPE_VARIANCE = 0.1
# The slopes on a further ability are `_SLOPE` times a direction, a vector with an element for each
# item. This is the upper bound on the size of an element. Without it, items with few answers would
# have extreme slopes.
_MAX_DIRECTION = 3
# A round of the search for directions reads every answer once. The number of rounds is chosen so
# that about `_TOTAL_ANSWERS_TO_READ` answers are read in all, but it is at least `_MIN_ROUNDS` and
# at most `_MAX_ROUNDS`.
_TOTAL_ANSWERS_TO_READ = 20_000_000
_MIN_ROUNDS = 5
_MAX_ROUNDS = 30
# The search finds this many directions more than needed, since this makes the needed directions
# more exact. Then the extra directions are dropped.
_OVERSAMPLING = 10
# Residuals are divided by the root of the student's number of answers and by the root of the item's
# number of answers. This is added to both numbers, since the residuals of few answers are mostly
# noise.
_SHRINKAGE = 10


@dataclass(frozen=True)
class Start:
    """The posteriors and priors that a fit begins with."""

    students: Gaussians
    items: Gaussians
    prior: Gaussians


def find_start(
    observations: Observations,
    n_stages: int,
    n_dimensions: int,
    student_order: IntArray,
    seed: int,
) -> Start:
    """Return the posteriors and priors with which a fit of several abilities begins.

    One general ability is fitted in a few steps. The slopes on the other abilities begin along the
    main directions of the residuals, the singular vectors with the largest singular values.

    The fit of the general ability has no guessing. With guessing, the prior would shrink the slopes
    on the other abilities to zero before the fit has found good slopes.

    Parameters
    ----------
    observations
        Answers, sorted by student.
    n_stages
        Number of stages of a question: 1 if answers are right or wrong (see MODEL.md).
    n_dimensions
        Number k of abilities.
    student_order
        The students in random order. Only the first of them are used if there are many answers.
    seed
        Seed of the search for directions.
    """
    is_first = _choose_students(observations, student_order)
    first = _answers_of(observations, is_first)
    state = _fit_one_dimension(first, n_stages)
    directions = _find_residual_directions(first, state, n_dimensions - 1, seed)

    k = n_dimensions
    students = model.standard_normal(len(is_first), k)
    students.mean[is_first, 0] = state.students.mean[:, 0]
    # The parameters of an item are k slopes, then the intercept. The fit above found the first
    # slope and the intercept; the slopes between these two belong to the other abilities.
    general_and_intercept = [0, k]
    n_items = observations.n_items
    mean = np.zeros((n_items, k + 1), np.float32)
    mean[:, general_and_intercept] = state.items.mean
    mean[:, 1:k] = _SLOPE * directions
    items = Gaussians(mean, np.zeros((n_items, k + 1, k + 1), np.float32))

    # An item is a question in one stage. All items of a stage have the same prior.
    prior_mean = np.zeros((n_stages, k + 1))
    prior_mean[:, general_and_intercept] = state.prior.mean
    prior_covariance = np.tile(_SLOPE_VARIANCE * np.eye(k + 1), (n_stages, 1, 1))
    block = np.ix_(range(n_stages), general_and_intercept, general_and_intercept)
    prior_covariance[block] = state.prior.covariance
    return Start(students, items, Gaussians(prior_mean, prior_covariance))


def _choose_students(observations: Observations, student_order: IntArray) -> np.ndarray:
    """Choose the first students of `student_order` who together have `_MAX_ANSWERS` answers.

    Returns whether each student is chosen. If all students together have fewer answers, all
    students are chosen.
    """
    n_answers = np.diff(observations.start)
    # Sum up the answers in the order of `student_order`. The last student to be chosen is the first
    # at whom the sum reaches `_MAX_ANSWERS`.
    n_first = np.searchsorted(np.cumsum(n_answers[student_order]), _MAX_ANSWERS) + 1
    is_first = np.zeros(len(student_order), bool)
    is_first[student_order[:n_first]] = True
    return is_first


def _answers_of(observations: Observations, is_chosen: np.ndarray) -> Observations:
    """Return the answers of the chosen students, without the contexts of the answers."""
    n_answers = np.diff(observations.start)
    rows = np.repeat(is_chosen, n_answers)
    return Observations(
        start=np.append(0, np.cumsum(n_answers[is_chosen])),
        item=observations.item[rows],
        is_right=observations.is_right[rows],
        is_used=observations.is_used[rows],
        n_items=observations.n_items,
    )


def _fit_one_dimension(observations: Observations, n_stages: int) -> State:
    """Fit a single ability without guessing, in a few steps.

    An item is a question in one stage (see MODEL.md). All items of the first stage come first, then
    all items of the second stage, and so on. Right and wrong answers have one stage.
    """
    n_students = len(observations.start) - 1
    n_items = observations.n_items
    # An item has two parameters, its slope and its intercept. All stages begin with the same prior
    # covariance of these parameters.
    prior_covariance = np.diag([_FIRST_SLOPE_VARIANCE, _FIRST_INTERCEPT_VARIANCE])
    prior = Gaussians(np.zeros((n_stages, 2)), np.tile(prior_covariance, (n_stages, 1, 1)))
    # Only the slopes of the first stage (right or wrong) are expected to be positive: a right
    # answer depends on the ability, but the choice of a distractor hardly does.
    prior.mean[0, 0] = _FIRST_SLOPE_MEAN
    # The stage of each item. All stages have the same number of items.
    stage = np.repeat(np.arange(n_stages), n_items // n_stages)
    state = State(
        students=model.standard_normal(n_students, 1),
        items=Gaussians(
            prior.mean[stage].astype(np.float32), np.zeros((n_items, 2, 2), np.float32)
        ),
        prior=prior,
        guessing=np.zeros(n_items, np.float32),
    )
    for _ in range(_N_STEPS):
        state = run_step(observations, state)
    return state


def _find_residual_directions(
    observations: Observations, state: State, n_directions: int, seed: int
) -> FloatArray:
    """Return the main directions of the residuals, shape (items, directions).

    A residual is an answer minus its expectation. The residuals form a matrix with a row for each
    student and a column for each item. The directions are the leading right singular vectors of
    this matrix. A direction has an element for each item, which says how much the residuals of the
    item rise along the direction. The direction is scaled so that the mean square of its elements
    over all answers is 1. The caller multiplies the directions by a factor, and uses the products
    as slopes on further abilities.
    """
    n_items = observations.n_items
    if n_directions == 0:
        return np.zeros((n_items, 0))
    item = observations.item
    n_answers = np.bincount(item, minlength=n_items)
    # Divide each row and each column by the root of its number of answers: then the noise is about
    # as large in all rows and in all columns. Add `_SHRINKAGE` to each number of answers, since the
    # residuals of few answers are mostly noise.
    item_scale = 1 / np.sqrt(n_answers + np.float32(_SHRINKAGE))
    student_scale = 1 / np.sqrt(np.diff(observations.start) + np.float32(_SHRINKAGE))
    student = number_rows(observations.start)
    residual = _find_residuals(observations, state, student)
    residual *= student_scale[student] * item_scale[item]
    # The residuals as a sparse matrix with a row for each student and a column for each item.
    matrix = observations.matrix(residual.astype(np.float32), observations.start)
    parts = [matrix[rows] for rows in observations.chunks()]
    directions = _leading_singular_vectors(parts, n_items, n_directions, seed)

    # The directions become slopes, which must not depend on the item's number of answers n. But the
    # item's column has n entries, each multiplied by `item_scale`, which is about 1/√n. So the
    # item's element of a direction grows like n · 1/√n = √n: multiply it by `item_scale` again.
    directions = directions * item_scale[:, None]
    # Scale each direction to the mean square 1. An item counts once for each of its answers.
    mean_square = (n_answers[:, None] * directions**2).sum(axis=0) / n_answers.sum()
    # The tiny bound avoids dividing a direction of zeros by 0.
    directions /= np.sqrt(np.maximum(mean_square, 1e-30))
    directions = np.clip(directions, -_MAX_DIRECTION, _MAX_DIRECTION)
    # If there are fewer items than wanted directions, the missing directions are zeros.
    n_missing = n_directions - directions.shape[1]
    return np.pad(directions, [(0, 0), (0, n_missing)])


def _leading_singular_vectors(
    parts: Sequence[Any], n_items: int, n_directions: int, seed: int
) -> FloatArray:
    """Return the leading right singular vectors of a matrix, shape (items, directions).

    The vectors are found by randomised subspace iteration (Halko, Martinsson and Tropp 2011,
    algorithm 4.4). There are fewer of them if there are fewer items.

    Parameters
    ----------
    parts
        The rows of the matrix, cut into several sparse matrices with a column for each item.
    n_items
        The number of columns.
    n_directions
        The number of vectors.
    seed
        Seed of the random basis with which the search begins.
    """
    # The matrix stores an element for each answer.
    n_answers = sum(part.nnz for part in parts)
    n_searched = min(n_directions + _OVERSAMPLING, n_items)
    basis = np.random.default_rng(seed).standard_normal((n_items, n_searched))
    # A round reads all answers once. All rounds together should read about `_TOTAL_ANSWERS_TO_READ`
    # answers, so fewer answers allow more rounds.
    n_affordable_rounds = _TOTAL_ANSWERS_TO_READ // n_answers
    n_rounds = int(np.clip(n_affordable_rounds, _MIN_ROUNDS, _MAX_ROUNDS))
    for _ in range(n_rounds):
        orthonormal = np.linalg.qr(basis)[0].astype(np.float32)
        # The new basis is matrixᵀ @ matrix @ orthonormal. Each part of the rows adds a summand to
        # the new basis. Ruff warns (B023) that the lambda uses `orthonormal`, which changes in the
        # next round. But the lambda is called in this round only.
        images = in_threads(lambda part: part.T @ (part @ orthonormal), parts)  # noqa: B023
        basis = sum(images, np.zeros(basis.shape))
    # The columns of `basis` span about the same space as the wanted vectors. Its leading left
    # singular vectors are the leading right singular vectors of the matrix.
    left_vectors: FloatArray = np.linalg.svd(basis, full_matrices=False)[0]
    return left_vectors[:, :n_directions]


def _find_residuals(observations: Observations, state: State, student: IntArray) -> FloatArray:
    """Return each answer (1 right, 0 wrong) minus its expectation; 0 for held-out answers.

    `student` is the position of each answer's student in `state`.
    """
    mean, variance = logit_moments(state.students, state.items, student, observations.item)
    residual: FloatArray = observations.is_right - model.expected_probability(mean, variance)
    residual *= observations.is_used
    return residual
