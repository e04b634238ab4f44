"""For every test user, find a few hundred items (candidates), which a second stage then ranks.

The candidates come from two sources. The first is item-based collaborative filtering, as in
sample_model_item_cf_time.py: items clicked by the same users as the test user's items. The second
takes items whose vectors (from an SVD of the similarities) are close to the test user's vector.
These items and the test user's items need not have been clicked by a common user.
"""

import dataclasses
from collections.abc import Sequence

from common.arrays import FloatArray, IntArray

import numpy as np
import pandas as pd
import recommend
from sample_model_item_cf_time import CLICKED_POWER, SCORED_POWER, pairs_of_clicks, weighted_clicks
from scipy.sparse import csr_array, diags_array
from sklearn.utils.extmath import randomized_svd

# The organisers dropped items with fewer clicks in a phase than this, and counted the clicks to
# predict as well. An item with fewer known clicks is therefore likely to be an answer: in the real
# phase 1, 23 % of such items are answers, but only 4 % of all items. To hide this from models,
# numbers of clicks below the limit are raised to the limit.
MIN_PHASE_CLICKS = 4
# Number of candidates of a user from the first source, item-based collaborative filtering.
N_SIMILAR = 300
# Number of candidates of a user from the second source, the items with the closest vectors. Some of
# them come from the first source too.
N_CLOSE = 350
# In the sum "at_once" of `find_neighbours`, a pair of clicks has a weight proportional to
# exp(-t / AT_ONCE_SCALE), where t is the time between the two clicks. The length of the phase is 1.
AT_ONCE_SCALE = 0.002
# Number of dimensions of the items' vectors.
N_DIMENSIONS = 128
# Cosines are rounded to this many decimals, since later digits depend on the processor.
COSINE_DECIMALS = 6


def mask_latest(phase: recommend.Phase, users: IntArray) -> tuple[recommend.Phase, IntArray]:
    """Turn training users into test users by removing the latest click of each.

    Parameters
    ----------
    phase : Phase
        Clicks of a phase.
    users : ndarray of int64
        Numbers of training users. Users with a single click, and users whose latest click is older
        than the phase, are left out.

    Returns
    -------
    masked : Phase
        The phase without the removed clicks, and with these users as its only test users.
    answer : ndarray of int64, shape (test users of `masked`,)
        Number of the item of each removed click.
    """
    n_clicks = np.bincount(phase.user, minlength=phase.n_users)
    # Index of each user's latest click: clicks are sorted by user, then by time.
    latest = np.cumsum(n_clicks) - 1
    users = users[(n_clicks[users] >= 2) & (phase.time[latest[users]] >= 0)]
    rows = latest[users]
    masked = dataclasses.replace(
        phase,
        user=np.delete(phase.user, rows),
        item=np.delete(phase.item, rows),
        time=np.delete(phase.time, rows),
        # Ids are only needed for a submission, and none is written for these users. Their numbers
        # take the place of the ids.
        test_user_ids=users,
        test_user=users,
        query_time=phase.time[rows],
    )
    return masked, phase.item[rows]


def count_clicks(phase: recommend.Phase) -> IntArray:
    """Count the clicks of every item, shape (items,).

    An item with fewer than `MIN_PHASE_CLICKS` clicks in the phase counts as having that many. Its
    clicks before the phase are added.
    """
    n_items = len(phase.item_ids)
    is_in_phase = phase.time >= 0
    n_in_phase = np.bincount(phase.item[is_in_phase], minlength=n_items)
    n_before_phase = np.bincount(phase.item[~is_in_phase], minlength=n_items)
    return np.asarray(np.maximum(n_in_phase, MIN_PHASE_CLICKS) + n_before_phase)


def find_neighbours(phase: recommend.Phase) -> pd.DataFrame:
    """Measure the similarity of all pairs of items that have users in common.

    Returns
    -------
    DataFrame
        A row for each ordered pair, sorted by item and neighbour, with the columns

        - item, neighbour: numbers of the items;
        - similarity: sum of the weights (see `pairs_of_clicks`) of all pairs of clicks of one user,
          one click on the item and one on the neighbour;
        - forward: the same, from the users who clicked the neighbour later than the item;
        - at_once: the same as similarity, with weights that are near 0 unless both clicks come at
          almost the same time;
        - by_quiet_users: the same as similarity, with each weight divided by log(1 + number of
          clicks of the user);
        - count: number of these pairs of clicks, as float64.

        All sums except `count` are divided by powers of both items' numbers of clicks.
    """
    n_items = len(phase.item_ids)
    earlier, later, weight = pairs_of_clicks(phase)
    first = phase.item[earlier]
    second = phase.item[later]
    # A pair of items is coded as one number. Each pair of clicks is entered twice, with its items
    # in the order (first, second) and in the order (second, first).
    both_ways = np.concatenate([first * n_items + second, second * n_items + first])
    # `row` holds, for each entry of `both_ways`, the row of its pair of items in `neighbours`.
    keys, row = np.unique(both_ways, return_inverse=True)
    neighbours = pd.DataFrame({"item": keys // n_items, "neighbour": keys % n_items})

    n_clicks = count_clicks(phase)
    n_item_clicks = n_clicks[neighbours["item"]]
    n_neighbour_clicks = n_clicks[neighbours["neighbour"]]
    scale = n_item_clicks**-CLICKED_POWER * n_neighbour_clicks**-SCORED_POWER
    time_apart = phase.time[later] - phase.time[earlier]
    positions_apart = later - earlier
    weight_at_once = np.exp(-time_apart / AT_ONCE_SCALE) / positions_apart
    n_user_clicks = np.bincount(phase.user, minlength=phase.n_users)
    weight_by_quiet = weight / np.log1p(n_user_clicks)[phase.user[earlier]]

    def total(forward: FloatArray, backward: FloatArray) -> FloatArray:
        """Add up weights of pairs of clicks for each pair (item, neighbour), and scale the sums.

        A pair of clicks adds its weight in `forward` to the pair (first item, second item), and its
        weight in `backward` to the pair (second item, first item).
        """
        sums = np.bincount(row, np.concatenate([forward, backward]), minlength=len(keys))
        return np.asarray(scale * sums)

    neighbours["similarity"] = total(weight, weight)
    neighbours["forward"] = total(weight, np.zeros(len(weight)))
    neighbours["at_once"] = total(weight_at_once, weight_at_once)
    neighbours["by_quiet_users"] = total(weight_by_quiet, weight_by_quiet)
    neighbours["count"] = np.bincount(row, minlength=len(keys)).astype(float)
    return neighbours


def item_vectors(similarity: csr_array, n_clicks: IntArray) -> FloatArray:
    """Return a vector of length 1 for every item, such that similar items have similar vectors.

    The vectors come from a truncated SVD of the similarities (Halko, Martinsson, Tropp 2011).

    Parameters
    ----------
    similarity : csr_array, shape (items, items)
        Column similarity of `find_neighbours`.
    n_clicks : ndarray of int64, shape (items,)
        Number of clicks of each item, from `count_clicks`.

    Returns
    -------
    ndarray of float32, shape (items, dimensions)
        An item without neighbours has a vector of zeros.
    """
    # `find_neighbours` has divided each similarity by powers of both items' numbers of clicks. The
    # same powers as factors give back the undivided sums, a symmetric matrix.
    clicked_powers = diags_array(n_clicks**CLICKED_POWER)
    scored_powers = diags_array(n_clicks**SCORED_POWER)
    matrix = clicked_powers @ similarity @ scored_powers
    # Divide each row and column by the root of its sum, so that items with many neighbours do not
    # dominate. The matrix stays symmetric. The lower limit avoids a division by 0 for an item
    # without neighbours.
    sums = np.maximum(matrix.sum(axis=1), 1e-9)
    scale = diags_array(1 / np.sqrt(sums))
    matrix = csr_array(scale @ matrix @ scale)
    n_dimensions = min(N_DIMENSIONS, len(n_clicks) - 1)
    left, singular_values, _ = randomized_svd(matrix, n_dimensions, n_iter=3, random_state=0)
    # Directions with a singular value near 0 and items without neighbours hold only rounding error,
    # which `unit_length` would scale up. `initial` is for a matrix without any singular value.
    is_negligible = singular_values < 1e-5 * singular_values.max(initial=1e-9)
    left[:, is_negligible] = 0
    has_no_neighbour = np.diff(similarity.indptr) == 0
    left[has_no_neighbour] = 0
    return unit_length(left * np.sqrt(singular_values))


def unit_length(vectors: FloatArray) -> FloatArray:
    """Scale the rows of a matrix to length 1, as float32; rows of zeros stay zeros."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-9), np.float32)


def cosines(vectors: FloatArray, others: FloatArray) -> FloatArray:
    """Return the cosine of each row with the same row of the other matrix, shape (rows,).

    All rows must have length 1.
    """
    # Dot products of the rows, summed in float64.
    products = np.einsum("rd,rd->r", vectors, others, dtype=np.float64)
    return np.asarray(np.round(products, COSINE_DECIMALS))


def find_candidates(phase: recommend.Phase) -> tuple[pd.DataFrame, pd.DataFrame, FloatArray]:
    """Find the candidates of each test user, among the items that this user has not clicked.

    A candidate is one of the `N_SIMILAR` items with the highest scores, or one of the `N_CLOSE`
    items whose vectors are closest to the user's vector.

    Returns
    -------
    candidates : DataFrame
        A row for each candidate, with the columns

        - test_row: position of the user among the test users;
        - item: number of the item;
        - score: sum of the similarities to the user's clicks, later clicks counting more;
        - rank: rank by score, 0 for the best; `N_SIMILAR` for candidates that were found by their
          vectors only;
        - share: score divided by the user's best score;
        - closeness: cosine of the vectors of item and user.
    neighbours : DataFrame
        See `find_neighbours`.
    vectors : ndarray of float32, shape (items, dimensions)
        See `item_vectors`.
    """
    n_items = len(phase.item_ids)
    neighbours = find_neighbours(phase)
    pairs = (neighbours["item"], neighbours["neighbour"])
    similarity = csr_array((neighbours["similarity"], pairs), shape=(n_items, n_items))
    vectors = item_vectors(similarity, count_clicks(phase))
    clicked = weighted_clicks(phase)
    # Products in float32 would differ between processors even after rounding to `COSINE_DECIMALS`.
    vectors64 = vectors.astype(np.float64)
    user_vectors64 = unit_length(clicked @ vectors64).astype(np.float64)
    parts = []
    # At least one block, so that there is a table even without test users.
    for begin in range(0, max(clicked.shape[0], 1), recommend.N_USERS_PER_BLOCK):
        block = slice(begin, begin + recommend.N_USERS_PER_BLOCK)
        score = (clicked[block] @ similarity).toarray()
        closeness = np.round(user_vectors64[block] @ vectors64.T, COSINE_DECIMALS)
        clicked_cells = clicked[block].nonzero()
        score[clicked_cells] = 0
        closeness[clicked_cells] = 0
        part = choose_candidates(score, closeness)
        parts.append(part.assign(test_row=part["test_row"] + begin))
    return pd.concat(parts, ignore_index=True), neighbours, vectors


def choose_candidates(score: FloatArray, closeness: FloatArray) -> pd.DataFrame:
    """Choose the candidates of a block of users from the scores and cosines of all items.

    `score` and `closeness` have the shape (users, items). The columns are those of
    `find_candidates`, except that `test_row` is the row in these matrices.
    """
    n_users, n_items = score.shape
    n_similar = min(N_SIMILAR, n_items)
    n_close = min(N_CLOSE, n_items)
    # The items with the largest values of each user, largest first, shape (users, n_similar) and
    # (users, n_close).
    similar = recommend.largest_columns(score, n_similar)
    close = recommend.largest_columns(closeness, n_close)
    # The users' rows as a column, shape (users, 1).
    row = np.arange(n_users)[:, None]
    # The first item of each row of `similar` has rank 0, the second rank 1, and so on. All items
    # that are not in `similar` have the rank after the last one, N_SIMILAR.
    all_ranks = np.full(score.shape, N_SIMILAR, np.int32)
    all_ranks[row, similar] = np.arange(n_similar)
    # A pair of user and item is coded as one number, to merge both sources without repeats.
    similar_keys = row * n_items + similar
    close_keys = row * n_items + close
    keys = np.unique(np.concatenate([similar_keys, close_keys], axis=1))
    user = keys // n_items
    item = keys % n_items
    # Scores are divided by the best score, so it must not be 0.
    best_score = np.maximum(score.max(axis=1), np.finfo(float).tiny)
    table = pd.DataFrame({"test_row": user, "item": item, "score": score[user, item]})
    table["rank"] = all_ranks[user, item]
    table["share"] = table["score"] / best_score[user]
    table["closeness"] = closeness[user, item]
    # If a user has few similar items, some of the largest values are 0. Items with the value 0 are
    # no candidates.
    is_candidate = (table["score"] > 0) | (table["closeness"] > 0)
    return table[is_candidate]


def match_clicks(
    phase: recommend.Phase, neighbours: pd.DataFrame, candidates: pd.DataFrame
) -> pd.DataFrame:
    """For each candidate, find its user's clicks on items that have the candidate as a neighbour.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    neighbours : DataFrame
        See `find_neighbours`.
    candidates : DataFrame
        See `find_candidates`.

    Returns
    -------
    DataFrame
        A row for each match, with the columns of `neighbours`, `row` (position of the candidate in
        `candidates`) and `click` (index of the click in `phase`).
    """
    # In all tables below, `item` is the item that was clicked, and `neighbour` is the candidate.
    candidate_rows = pd.DataFrame(
        {
            "user": phase.test_user[candidates["test_row"]],
            "neighbour": candidates["item"],
            "row": np.arange(len(candidates)),
        }
    )
    user_clicks = pd.DataFrame({"user": phase.user, "click": np.arange(len(phase.user))})
    # Each candidate with each click of its user.
    pairs = candidate_rows.merge(user_clicks, on="user")
    pairs["item"] = phase.item[pairs["click"]]
    # Keep the pairs where the candidate is a neighbour of the clicked item.
    return pairs.merge(neighbours, on=["item", "neighbour"])


def clicks_around(
    phase: recommend.Phase, item: IntArray, time: FloatArray, distances: Sequence[float]
) -> tuple[FloatArray, FloatArray, list[IntArray]]:
    """For pairs of an item and a time, find the clicks just before and after, and count near ones.

    These are clicks of all users on the item.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    item : ndarray of int64, shape (n,)
        Numbers of items.
    time : ndarray of float64, shape (n,)
        A time for each of these items, between 0 and 1, the start and the end of the phase.
    distances : sequence of float
        Distances from `time` within which clicks are counted.

    Returns
    -------
    before : ndarray of float64, shape (n,)
        Time since the item's latest click before `time`, `HISTORY` + 1 if there is none.
    after : ndarray of float64, shape (n,)
        Time from `time` to the item's next click, 1 if there is none.
    n_near : list of int64 ndarrays, shape (n,) each
        For each distance, the number of clicks on the item at most that far from `time`.
    """
    # One sorted array holds the times of the clicks of all items, one item after the other: to the
    # times of item i, i * shift is added. Since times run from -HISTORY to 1, there is a gap of 1
    # between two items. `start` and `stop` are in the middle of the gaps before and after an item.
    shift = recommend.HISTORY + 2
    timeline = np.sort(shift * phase.item + phase.time)
    now = shift * item + time
    start = shift * item - recommend.HISTORY - 0.5
    stop = shift * item + 1.5
    # Indices of the item's first click, of its first click at or after `time`, and of its end.
    first, next_click, end = np.searchsorted(timeline, [start, now, stop])
    before = np.where(next_click > first, now - timeline[next_click - 1], recommend.HISTORY + 1)
    # `next_click` is past the last index if the timeline has no later click. `np.where` then takes
    # 1, so any valid index will do.
    valid_index = np.minimum(next_click, len(timeline) - 1)
    after = np.where(next_click < end, timeline[valid_index] - now, 1)
    n_near = []
    for distance in distances:
        low = np.searchsorted(timeline, np.maximum(now - distance, start))
        high = np.searchsorted(timeline, np.minimum(now + distance, stop))
        n_near.append(high - low)
    return before, after, n_near
