"""A good start: from a random one, the fit takes many steps to turn towards what matters.

One general ability is fitted first. The other dimensions begin where the residuals of that fit vary
most. All this with some of the students only; it begins without guessing, or the prior shrinks the
other dimensions away before they have turned.
"""

from common.item_response import model
from common.item_response.blocks import in_threads, logit_moments, run_step
from common.item_response.model import FloatArray, Gaussians, IntArray, State
from common.item_response.observations import Observations, number_rows

import numpy as np

# So many students that they have about this number of answers.
_MAX_ANSWERS = 2_000_000
# Steps of the fit in one dimension.
_N_STEPS = 4
# Rounds of the search for further dimensions, at least and at most, and how many answers they
# should look at in all; and how many directions more than are asked for.
_MIN_ROUNDS, _MAX_ROUNDS, _LOOKED_AT, _OVERSAMPLING = 5, 30, 20_000_000, 10
# Residuals of a student or item with few answers count less: as if there were so many more.
_SHRINKAGE = 10
# Root mean square of the slopes in each dimension beyond the first, and their prior variance.
_SLOPE, _VARIANCE = 0.4, 0.1


def find_start(
    observations: Observations, n_stages: int, k: int, order: IntArray, seed: int
) -> tuple[Gaussians, Gaussians, Gaussians]:
    """Return students, items and prior that a fit in k dimensions begins with.

    Only the first students of a random `order` are looked at.
    """
    n_students, n_items = len(order), observations.n_items
    n_answers = np.diff(observations.start)
    is_first = np.zeros(n_students, bool)
    is_first[order[: np.searchsorted(np.cumsum(n_answers[order]), _MAX_ANSWERS) + 1]] = True
    rows = np.repeat(is_first, n_answers)
    first = Observations(
        np.append(0, np.cumsum(n_answers[is_first])),
        observations.item[rows],
        observations.is_right[rows],
        observations.is_used[rows],
        n_items,
    )
    stage = np.repeat(np.arange(n_stages), n_items // n_stages)
    prior = Gaussians(np.zeros((n_stages, 2)), np.tile(np.diag([0.3, 1.0]), (n_stages, 1, 1)))
    # Whether an answer is right depends on the ability; which distractor is chosen, rather not.
    prior.mean[0, 0] = 1
    items = Gaussians(prior.mean[stage].astype(np.float32), np.zeros((n_items, 2, 2), np.float32))
    students = model.standard_normal(is_first.sum(), 1)
    state = State(students=students, items=items, prior=prior, guessing=np.zeros(n_items, "f"))
    for _ in range(_N_STEPS):
        state = run_step(first, state)

    # From (general slope, intercept) to (general slope, other slopes, intercept).
    ends = [0, k]
    mean, prior_mean = np.zeros((n_items, k + 1), np.float32), np.zeros((n_stages, k + 1))
    mean[:, ends], prior_mean[:, ends] = state.items.mean, state.prior.mean
    mean[:, 1:k] = _SLOPE * _find_residual_directions(first, state, k - 1, seed)
    covariance = np.zeros((n_items, k + 1, k + 1), np.float32)
    prior_covariance = np.tile(_VARIANCE * np.eye(k + 1), (n_stages, 1, 1))
    prior_covariance[np.ix_(range(n_stages), ends, ends)] = state.prior.covariance
    students = model.standard_normal(n_students, k)
    students.mean[is_first, 0] = state.students.mean[:, 0]
    return students, Gaussians(mean, covariance), Gaussians(prior_mean, prior_covariance)


def _find_residual_directions(
    observations: Observations, state: State, n: int, seed: int
) -> FloatArray:
    """Find the directions over the items in which the residuals of a fit vary most.

    They are the leading right singular vectors of the sparse matrix of residuals, by randomised
    subspace iteration (Halko, Martinsson and Tropp 2011, "Finding structure with randomness",
    algorithm 4.4): shape (items, n), scaled to a mean square of 1 over the answers, and cut off at
    three times that.
    """
    if n == 0:
        return np.zeros((observations.n_items, 0))
    student, item = number_rows(observations.start), observations.item
    mean, variance = logit_moments(state.students, state.items, student, item)
    residual = observations.is_right - model.expected_probability(mean, variance)
    residual *= observations.is_used
    # Rows and columns scaled by the root of their length: noise alone is then even.
    n_answers = np.bincount(item, minlength=observations.n_items)
    item_scale = 1 / np.sqrt(n_answers + np.float32(_SHRINKAGE))
    student_scale = 1 / np.sqrt(np.diff(observations.start) + np.float32(_SHRINKAGE))
    residual *= student_scale[student] * item_scale[item]
    matrix = observations.matrix(residual.astype(np.float32), observations.start)
    parts = [matrix[rows] for rows in observations.chunks()]

    size = min(n + _OVERSAMPLING, observations.n_items)
    basis = np.random.default_rng(seed).standard_normal((observations.n_items, size))
    for _ in range(np.clip(_LOOKED_AT // len(item), _MIN_ROUNDS, _MAX_ROUNDS)):
        basis = np.linalg.qr(basis)[0].astype(np.float32)
        images = in_threads(lambda part: part.T @ (part @ basis), parts)  # noqa: B023
        basis = sum(images, np.zeros(basis.shape))
    # The leading left singular vectors of the image, which spans the leading directions.
    directions = np.linalg.svd(basis, full_matrices=False)[0][:, :n] * item_scale[:, None]
    square = (n_answers[:, None] * directions**2).sum(axis=0) / n_answers.sum()
    directions /= np.sqrt(np.maximum(square, 1e-30))
    return np.pad(np.clip(directions, -3, 3), [(0, 0), (0, n - directions.shape[1])])
