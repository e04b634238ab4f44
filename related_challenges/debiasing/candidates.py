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
# Number of candidates of a user from the second source, the items whose vectors are closest to the
# user's vector. The first source may have found some of these items too.
N_CLOSE = 350
# In the column `at_once` of `find_neighbours`, a pair of clicks has a weight proportional to
# exp(-t / AT_ONCE_SCALE). Here, t is the time between the two clicks; the unit of time is the
# length of a phase.
AT_ONCE_SCALE = 0.002
# Number of dimensions of the items' vectors.
N_DIMENSIONS = 128
# Cosines are rounded to this many decimals, since later digits depend on the processor.
COSINE_DECIMALS = 6


def mask_latest(phase: recommend.Phase, users: IntArray) -> tuple[recommend.Phase, IntArray]:
    """Turn training users into test users by removing the latest click of each user.

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
    # Clicks are sorted by user, then by time. The index of each user's latest click is therefore
    # one less than the number of clicks of all users up to this one.
    latest_of_user = np.cumsum(n_clicks) - 1
    keeps_a_click = n_clicks[users] >= 2
    # A phase begins at time 0, so a click before the phase has a negative time.
    is_in_phase = phase.time[latest_of_user[users]] >= 0
    users = users[keeps_a_click & is_in_phase]
    removed = latest_of_user[users]
    masked = dataclasses.replace(
        phase,
        user=np.delete(phase.user, removed),
        item=np.delete(phase.item, removed),
        time=np.delete(phase.time, removed),
        # Ids are needed only in a submission, and no submission holds these users. So use the
        # numbers of the users as their ids.
        test_user_ids=users,
        test_user=users,
        query_time=phase.time[removed],
    )
    return masked, phase.item[removed]


def count_clicks(phase: recommend.Phase) -> IntArray:
    """Count the clicks of every item, shape (items,).

    If an item has fewer than `MIN_PHASE_CLICKS` clicks in the phase, its number of clicks in the
    phase is raised to `MIN_PHASE_CLICKS`. The clicks before the phase are then added.
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
        - forward: the same sum, but only over pairs whose later click is on the neighbour;
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
    # Encode a pair of items (item, neighbour) as the number item * n_items + neighbour. List each
    # pair of clicks twice: once as a pair of items (first, second), once as (second, first).
    both_ways = np.concatenate([first * n_items + second, second * n_items + first])
    # `keys` holds each pair of items once, and becomes the rows of `neighbours`. For each entry of
    # `both_ways`, `row` holds the position of its pair in `keys`.
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
        """Return, for each pair (item, neighbour), the scaled sum of the weights of its clicks.

        In a pair of clicks, a user clicks on an item `first`, and later on an item `second`. Both
        parameters hold a weight for each pair of clicks. The weight in `forward` is added to the
        sum of the items (first, second), the weight in `backward` to the sum of (second, first).
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
    # `find_neighbours` has divided each similarity by a power of the one item's number of clicks,
    # and by another power of the other's. Undo the division, so that the matrix is symmetric.
    clicked_powers = diags_array(n_clicks**CLICKED_POWER)
    scored_powers = diags_array(n_clicks**SCORED_POWER)
    matrix = clicked_powers @ similarity @ scored_powers
    # Divide each row, and each column, by the square root of its sum, so that items with many
    # neighbours do not dominate. The matrix stays symmetric. The lower limit 1e-9 avoids a division
    # by 0, since the sum is 0 for an item without neighbours.
    sums = np.maximum(matrix.sum(axis=1), 1e-9)
    scale = diags_array(1 / np.sqrt(sums))
    matrix = csr_array(scale @ matrix @ scale)
    n_dimensions = min(N_DIMENSIONS, len(n_clicks) - 1)
    vectors, singular_values, _ = randomized_svd(matrix, n_dimensions, n_iter=3, random_state=0)
    # `vectors` has a row for each item and a column for each singular value. A column whose
    # singular value is near 0 holds only rounding error, and so does the row of an item without
    # neighbours. Set such columns and rows to 0, since `unit_length` would scale the rounding error
    # up. `max` needs `initial` if there are no singular values, as for a single item.
    largest_value = singular_values.max(initial=1e-9)
    is_negligible = singular_values < 1e-5 * largest_value
    vectors[:, is_negligible] = 0
    # Count the entries in each row of the sparse matrix: `indptr` holds the number of entries
    # before each row.
    n_neighbours = np.diff(similarity.indptr)
    vectors[n_neighbours == 0] = 0
    return unit_length(vectors * np.sqrt(singular_values))


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
        - score: sum of the similarities to the items that the user clicked, in which later clicks
          have larger weights;
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
    # A sparse matrix with a row for each test user and a column for each item: the weights of the
    # items that the user has clicked.
    clicked = weighted_clicks(phase)
    # The vector of a user is the weighted sum of the vectors of the clicked items, scaled to length
    # 1. Compute it in float64: in float32, the cosines below would differ between processors, even
    # after rounding to `COSINE_DECIMALS`.
    vectors64 = vectors.astype(np.float64)
    user_vectors64 = unit_length(clicked @ vectors64).astype(np.float64)
    parts = []
    # If there are no test users, the loop runs once with an empty block, since `concat` needs at
    # least one table.
    for begin in range(0, max(clicked.shape[0], 1), recommend.N_USERS_PER_BLOCK):
        block = slice(begin, begin + recommend.N_USERS_PER_BLOCK)
        score = (clicked[block] @ similarity).toarray()
        closeness = np.round(user_vectors64[block] @ vectors64.T, COSINE_DECIMALS)
        # Set both values to 0 for items that the user has clicked, so that `choose_candidates` does
        # not choose these items.
        clicked_cells = clicked[block].nonzero()
        score[clicked_cells] = 0
        closeness[clicked_cells] = 0
        part = choose_candidates(score, closeness)
        parts.append(part.assign(test_row=part["test_row"] + begin))
    return pd.concat(parts, ignore_index=True), neighbours, vectors


def choose_candidates(score: FloatArray, closeness: FloatArray) -> pd.DataFrame:
    """Choose the candidates of a block of users from the scores and cosines of all items.

    `score` and `closeness` have the shape (users, items). The result has the columns of
    `candidates` in `find_candidates`, except that `test_row` is the row in these two matrices.
    """
    n_users, n_items = score.shape
    n_similar = min(N_SIMILAR, n_items)
    n_close = min(N_CLOSE, n_items)
    # For each user, the items with the largest scores, shape (users, n_similar), and the items with
    # the largest cosines, shape (users, n_close). The largest value comes first.
    similar = recommend.largest_columns(score, n_similar)
    close = recommend.largest_columns(closeness, n_close)
    # The row of each user, as a column of shape (users, 1), to be combined with the items of the
    # user.
    row = np.arange(n_users)[:, None]
    # The first item of each row of `similar` has rank 0, the second has rank 1, and so on. All
    # items that are not in `similar` have the rank `N_SIMILAR`, which comes after all these ranks.
    all_ranks = np.full(score.shape, N_SIMILAR, np.int32)
    all_ranks[row, similar] = np.arange(n_similar)
    # Encode each pair of user and item as one number. If both `similar` and `close` hold a pair,
    # `unique` keeps it only once.
    similar_keys = row * n_items + similar
    close_keys = row * n_items + close
    keys = np.unique(np.concatenate([similar_keys, close_keys], axis=1))
    user = keys // n_items
    item = keys % n_items
    # The column `share` is the score divided by the user's best score. If this is 0, divide by a
    # tiny number instead.
    best_score = np.maximum(score.max(axis=1), np.finfo(float).tiny)
    table = pd.DataFrame({"test_row": user, "item": item, "score": score[user, item]})
    table["rank"] = all_ranks[user, item]
    table["share"] = table["score"] / best_score[user]
    table["closeness"] = closeness[user, item]
    # If few items are similar or close to a user, the largest values include some of 0 or less. An
    # item without any value above 0 is no candidate.
    is_candidate = (table["score"] > 0) | (table["closeness"] > 0)
    return table[is_candidate]


def match_clicks(
    phase: recommend.Phase, neighbours: pd.DataFrame, candidates: pd.DataFrame
) -> pd.DataFrame:
    """For each candidate, find the clicks of its user on neighbours of the candidate.

    Items are neighbours if they have users in common.

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
        A row for each match of a candidate with such a click. It has the columns of `neighbours`,
        where `item` is the clicked item and `neighbour` the candidate, and the columns `user`,
        `row` (position of the candidate in `candidates`) and `click` (index of the click in
        `phase`).
    """
    # The tables below name their columns as `neighbours` does: `item` is an item that the user has
    # clicked, and `neighbour` is the candidate.
    users_candidates = pd.DataFrame(
        {
            "user": phase.test_user[candidates["test_row"]],
            "neighbour": candidates["item"],
            "row": np.arange(len(candidates)),
        }
    )
    users_clicks = pd.DataFrame({"user": phase.user, "click": np.arange(len(phase.user))})
    # A row for each candidate and each click of the candidate's user.
    pairs = users_candidates.merge(users_clicks, on="user")
    pairs["item"] = phase.item[pairs["click"]]
    # Keep the pairs where the candidate is a neighbour of the clicked item.
    return pairs.merge(neighbours, on=["item", "neighbour"])


def clicks_around(
    phase: recommend.Phase, item: IntArray, time: FloatArray, distances: Sequence[float]
) -> tuple[FloatArray, FloatArray, list[IntArray]]:
    """For pairs of item and time, find the item's clicks just before and just after the time.

    Also counts the item's clicks near the time. The clicks of all users are considered.

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
        For each distance, the number of clicks on the item that lie at most this distance before
        `time`, or less than this distance after it.
    """
    # The sorted array `timeline` holds the clicks of all items, one item after the other. A click
    # on item i at time t has the value i * shift + t. Since t is between -HISTORY and 1, there is a
    # gap of at least 1 between the clicks of two items. `start` and `stop` are in the middle of the
    # gaps before and after an item.
    shift = recommend.HISTORY + 2
    timeline = np.sort(shift * phase.item + phase.time)
    now = shift * item + time
    start = shift * item - recommend.HISTORY - 0.5
    stop = shift * item + 1.5
    # For each pair of item and time, find three indices in `timeline`: the index of the item's
    # first click, of the first click at or after `time`, and of the first click on an item with a
    # higher number.
    first, next_click, end = np.searchsorted(timeline, [start, now, stop])
    before = np.where(next_click > first, now - timeline[next_click - 1], recommend.HISTORY + 1)
    # If no click comes later, `next_click` is past the last index of `timeline`. Then `after` is 1,
    # but `np.where` computes both alternatives, so the index must be valid all the same.
    valid_index = np.minimum(next_click, len(timeline) - 1)
    after = np.where(next_click < end, timeline[valid_index] - now, 1)
    n_near = []
    for distance in distances:
        low = np.searchsorted(timeline, np.maximum(now - distance, start))
        high = np.searchsorted(timeline, np.minimum(now + distance, stop))
        n_near.append(high - low)
    return before, after, n_near
