"""Find a few hundred items for every test user that a second stage can rank.

These candidates come from two sources. The first is item-based collaborative filtering, as in
sample_model_item_cf_time.py: items that share users with the items of the test user. The second
takes items whose vectors are close to the test user's vector; such items may share no user.
"""

import dataclasses
from collections.abc import Sequence

from common.arrays import FloatArray, IntArray

import numpy as np
import pandas as pd
import recommend
from sample_model_item_cf_time import CLICKED_POWER, SCORED_POWER, pairs_of_clicks, recent_clicks
from scipy.sparse import csr_array, diags_array
from sklearn.utils.extmath import randomized_svd

# Lower counts of an item's clicks are raised to this. The organisers kept only items with at least
# this many clicks in a phase, including the clicks to predict. So an item with fewer known clicks
# is likely to be an answer: in the real phase 1, 23 % of such items are, and 4 % of all items. No
# model should learn this.
FEWEST_CLICKS = 4
# Candidates of a user by similarity to the user's clicks.
N_SIMILAR = 300
# Candidates of a user by closeness of vectors.
N_CLOSE = 350
# Decay of the similarity "at_once" with the time between two clicks, as a share of the phase.
AT_ONCE = 0.002
# Length of the items' vectors.
N_DIMENSIONS = 128
# Cosines are rounded to this many decimals, since further digits differ between processors.
CLOSENESS_DIGITS = 6


def mask_latest(phase: recommend.Phase, users: IntArray) -> tuple[recommend.Phase, IntArray]:
    """Turn training users into test users by removing the latest click of each.

    Parameters
    ----------
    phase : Phase
        Clicks of a phase.
    users : ndarray of int64
        Numbers of training users. Users with a single click, or without a click in the phase
        itself, are left out.

    Returns
    -------
    masked : Phase
        The phase without the removed clicks, and with these users as its only test users.
    answer : ndarray of int64, shape (test users,)
        Numbers of the items of the removed clicks.
    """
    n_clicks = np.bincount(phase.user, minlength=phase.n_users)
    latest = np.cumsum(n_clicks) - 1
    users = users[(n_clicks[users] >= 2) & (phase.time[latest[users]] >= 0)]
    rows = latest[users]
    masked = dataclasses.replace(
        phase,
        user=np.delete(phase.user, rows),
        item=np.delete(phase.item, rows),
        time=np.delete(phase.time, rows),
        # Nothing is written for these users, so that their numbers serve as ids.
        test_user_ids=users,
        test_user=users,
        query_time=phase.time[rows],
    )
    return masked, phase.item[rows]


def count_clicks(phase: recommend.Phase) -> IntArray:
    """Count the clicks of every item, shape (items,).

    Fewer clicks in the phase itself than `FEWEST_CLICKS` count as that many.
    """
    n_items = len(phase.item_ids)
    is_inside = phase.time >= 0
    n_inside = np.bincount(phase.item[is_inside], minlength=n_items)
    n_before = np.bincount(phase.item[~is_inside], minlength=n_items)
    return np.asarray(np.maximum(n_inside, FEWEST_CLICKS) + n_before)


def find_neighbours(phase: recommend.Phase) -> pd.DataFrame:
    """Measure the similarity of all pairs of items that have users in common.

    Returns
    -------
    DataFrame
        A row for each ordered pair, sorted by item and neighbour, with the columns

        - item, neighbour: numbers of the items;
        - similarity: sum of the weights of all pairs of clicks, see `pairs_of_clicks`;
        - forward: the same for users who clicked the neighbour later than the item;
        - at_once: sum of weights that fall fast with the time between both clicks;
        - of_quiet_users: sum of weights divided by the log of the user's number of clicks;
        - count: number of pairs of clicks.

        All sums are divided by powers of both items' numbers of clicks.
    """
    n_items = len(phase.item_ids)
    earlier, later, weight = pairs_of_clicks(phase)
    first = phase.item[earlier]
    second = phase.item[later]
    # Pairs of items as one number; each pair of clicks counts in both directions.
    both_ways = np.concatenate([first * n_items + second, second * n_items + first])
    key, pair = np.unique(both_ways, return_inverse=True)
    neighbours = pd.DataFrame({"item": key // n_items, "neighbour": key % n_items})

    n_clicks = count_clicks(phase)
    clicked = n_clicks[neighbours["item"]]
    scored = n_clicks[neighbours["neighbour"]]
    scale = clicked**-CLICKED_POWER * scored**-SCORED_POWER
    time_apart = phase.time[later] - phase.time[earlier]
    weight_at_once = np.exp(-time_apart / AT_ONCE) / (later - earlier)
    n_user_clicks = np.bincount(phase.user, minlength=phase.n_users)
    weight_of_quiet = weight / np.log1p(n_user_clicks)[phase.user[earlier]]

    def total(forward: FloatArray, backward: FloatArray) -> FloatArray:
        sums = np.bincount(pair, np.concatenate([forward, backward]), len(key))
        return np.asarray(scale * sums)

    neighbours["similarity"] = total(weight, weight)
    neighbours["forward"] = total(weight, np.zeros(len(weight)))
    neighbours["at_once"] = total(weight_at_once, weight_at_once)
    neighbours["of_quiet_users"] = total(weight_of_quiet, weight_of_quiet)
    neighbours["count"] = np.bincount(pair, minlength=len(key)).astype(float)
    return neighbours


def item_vectors(similarity: csr_array, n_clicks: IntArray) -> FloatArray:
    """Return a unit vector for every item, similar items having similar vectors.

    The vectors come from a truncated SVD of the similarities (Halko, Martinsson, Tropp 2011).

    Parameters
    ----------
    similarity : csr_array, shape (items, items)
        Column similarity of `find_neighbours`.
    n_clicks : ndarray of int64, shape (items,)
        Numbers of clicks that the similarities were divided by.

    Returns
    -------
    ndarray of float32, shape (items, dimensions)
        Zeros for an item without neighbours.
    """
    # Undo the division by powers of clicks, and scale by row sums to get a symmetric matrix.
    powers = n_clicks[:, None] ** np.array([CLICKED_POWER, SCORED_POWER])
    matrix = diags_array(powers[:, 0]) @ similarity @ diags_array(powers[:, 1])
    scale = diags_array(1 / np.sqrt(np.maximum(matrix.sum(axis=1), 1e-9)))
    matrix = csr_array(scale @ matrix @ scale)
    n_dimensions = min(N_DIMENSIONS, len(n_clicks) - 1)
    left, singular_values, _ = randomized_svd(matrix, n_dimensions, n_iter=3, random_state=0)
    # Without a singular value, or without neighbours, a vector would be scaled-up rounding error.
    left[:, singular_values < 1e-5 * singular_values.max(initial=1e-9)] = 0
    left[np.diff(similarity.indptr) == 0] = 0
    return unit_length(left * np.sqrt(singular_values))


def unit_length(vectors: FloatArray) -> FloatArray:
    """Scale the rows of a matrix to length 1, as float32; rows of zeros stay zeros."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-9), np.float32)


def cosines(vectors: FloatArray, others: FloatArray) -> FloatArray:
    """Return the cosine of each row with the same row of the other matrix, shape (rows,).

    All rows must have length 1.
    """
    products = np.einsum("rd,rd->r", vectors, others, dtype=np.float64)
    return np.asarray(np.round(products, CLOSENESS_DIGITS))


def find_candidates(phase: recommend.Phase) -> tuple[pd.DataFrame, pd.DataFrame, FloatArray]:
    """Find the candidates of all test users, among the items that a user has not clicked.

    Returns
    -------
    candidates : DataFrame
        A row for each candidate, with the columns

        - user: position of the user among the test users;
        - item: number of the item;
        - score: sum of the similarities to the user's clicks, later clicks counting more;
        - rank: rank by score from 0, `N_SIMILAR` for items that are not among the best;
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
    recent = recent_clicks(phase)
    # In float32 the products would differ between processors in the decimals that are kept.
    wide_vectors = vectors.astype(np.float64)
    user_vectors = unit_length(recent @ wide_vectors).astype(np.float64)
    parts = []
    for begin in range(0, max(recent.shape[0], 1), recommend.BLOCK):
        block = slice(begin, begin + recommend.BLOCK)
        score = (recent[block] @ similarity).toarray()
        closeness = np.round(user_vectors[block] @ wide_vectors.T, CLOSENESS_DIGITS)
        is_clicked = recent[block].nonzero()
        score[is_clicked] = 0
        closeness[is_clicked] = 0
        part = choose_candidates(score, closeness)
        parts.append(part.assign(user=part["user"] + begin))
    return pd.concat(parts, ignore_index=True), neighbours, vectors


def choose_candidates(score: FloatArray, closeness: FloatArray) -> pd.DataFrame:
    """Return the candidates of some users from all scores and closenesses, (users, items).

    The columns are those of `find_candidates`; user is the row of both matrices.
    """
    n_users, n_items = score.shape
    n_similar = min(N_SIMILAR, n_items)
    n_close = min(N_CLOSE, n_items)
    similar = recommend.largest_columns(score, n_similar)
    close = recommend.largest_columns(closeness, n_close)
    row = np.arange(n_users)[:, None]
    all_ranks = np.full(score.shape, N_SIMILAR, np.int32)
    all_ranks[row, similar] = np.arange(n_similar)
    # Both sources together, each pair of user and item once.
    key = np.unique(np.concatenate([row * n_items + similar, row * n_items + close], axis=1))
    user = key // n_items
    item = key % n_items
    best_score = np.maximum(score.max(axis=1), np.finfo(float).tiny)
    table = pd.DataFrame({"user": user, "item": item, "score": score[user, item]})
    table["rank"] = all_ranks[user, item]
    table["share"] = table["score"] / best_score[user]
    table["closeness"] = closeness[user, item]
    return table[(table["score"] > 0) | (table["closeness"] > 0)]


def match_clicks(
    phase: recommend.Phase, neighbours: pd.DataFrame, table: pd.DataFrame
) -> pd.DataFrame:
    """Match candidates with the clicks of their users on neighbours of the candidate.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    neighbours : DataFrame
        See `find_neighbours`.
    table : DataFrame
        Candidates; see `find_candidates`.

    Returns
    -------
    DataFrame
        A row for each match, with the columns of `neighbours`, `row` (position of the candidate in
        `table`) and `click` (index of the click in `phase`).
    """
    user_clicks = pd.DataFrame({"user": phase.user, "click": np.arange(len(phase.user))})
    asked = pd.DataFrame({"user": phase.test_user[table["user"]], "neighbour": table["item"]})
    matches = asked.assign(row=np.arange(len(table))).merge(user_clicks, on="user")
    matches["item"] = phase.item[matches["click"]]
    return matches.merge(neighbours, on=["item", "neighbour"])


def clicks_around(
    phase: recommend.Phase, item: IntArray, time: FloatArray, near: Sequence[float]
) -> tuple[FloatArray, FloatArray, list[IntArray]]:
    """Describe the clicks of all users on some items around some times.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    item : ndarray of int64, shape (n,)
        Numbers of items.
    time : ndarray of float64, shape (n,)
        A time for each of these items, from 0 to 1.
    near : sequence of float
        Distances in time.

    Returns
    -------
    before : ndarray of float64, shape (n,)
        Time since the item's latest click before, `HISTORY` + 1 if there is none.
    after : ndarray of float64, shape (n,)
        Time until the item's next click, 1 if there is none.
    n_near : list of int64 ndarrays, shape (n,) each
        For every distance, how many clicks on the item are within it.
    """
    # The times of an item are shifted by a multiple of its number, so that one sorted array holds
    # the clicks of all items and those of different items are apart.
    shift = recommend.HISTORY + 2
    timeline = np.sort(shift * phase.item + phase.time)
    now = shift * item + time
    # All clicks of the item are between these times.
    start = shift * item - recommend.HISTORY - 0.5
    stop = shift * item + 1.5
    first, here, end = np.searchsorted(timeline, [start, now, stop])
    before = np.where(here > first, now - timeline[here - 1], recommend.HISTORY + 1)
    after = np.where(here < end, timeline[np.minimum(here, len(timeline) - 1)] - now, 1)
    n_near = []
    for distance in near:
        low = np.searchsorted(timeline, np.maximum(now - distance, start))
        high = np.searchsorted(timeline, np.minimum(now + distance, stop))
        n_near.append(high - low)
    return before, after, n_near
