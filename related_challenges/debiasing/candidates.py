"""Candidates for a second stage: the items that a test user may click next, a few hundred each.

They come from two sources: items that were clicked by the same users as the user's own (item-based
collaborative filtering, as in sample_model_item_cf_time.py), and items whose vectors are close to
the user's, which also reaches items that share no user with them.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from common.arrays import FloatArray, IntArray

import numpy as np
import pandas as pd
import recommend
from sample_model_item_cf_time import CLICKED_POWER, SCORED_POWER, pairs_of_clicks, recent_clicks
from scipy.sparse import csr_array, diags_array
from sklearn.utils.extmath import randomized_svd

# The organisers kept the items with at least this many clicks in a phase, those to be predicted
# included: an item with fewer is much more likely to be somebody's answer (on the real phase 1
# 23 % of them are, of all items 4 %). Counts are raised to it, so that no model learns that.
FEWEST_CLICKS = 4
# Candidates of a user from each of the two sources.
N_SIMILAR, N_CLOSE = 300, 350
# Two clicks count as at once if about so much time, as a share of the phase, lies between them.
AT_ONCE = 0.002
N_DIMENSIONS = 128  # of the items' vectors
# Cosines keep this many digits after the point: the following ones differ between processors.
CLOSENESS_DIGITS = 6


def mask_latest(phase: recommend.Phase, users: IntArray) -> tuple[recommend.Phase, IntArray]:
    """Make those users test users whose latest click can be taken away; return its items too."""
    n_clicks = np.bincount(phase.user, minlength=phase.n_users)
    latest = np.cumsum(n_clicks) - 1
    users = users[(n_clicks[users] >= 2) & (phase.time[latest[users]] >= 0)]
    rows = latest[users]
    names = "user", "item", "time"
    changed: dict[str, Any] = {name: np.delete(getattr(phase, name), rows) for name in names}
    # Users are numbers here; nothing is written for them.
    changed |= {"test_user_ids": users, "test_user": users, "query_time": phase.time[rows]}
    return dataclasses.replace(phase, **changed), phase.item[rows]


def count_clicks(phase: recommend.Phase) -> IntArray:
    """Count the clicks of every item, in the phase as at least `FEWEST_CLICKS`, shape (items,)."""
    n_items, is_inside = len(phase.item_ids), phase.time >= 0
    n_inside = np.bincount(phase.item[is_inside], minlength=n_items)
    n_before = np.bincount(phase.item[~is_inside], minlength=n_items)
    return np.asarray(np.maximum(n_inside, FEWEST_CLICKS) + n_before)


def find_neighbours(phase: recommend.Phase) -> pd.DataFrame:
    """Return pairs of items with users in common, in order: item, neighbour, similarity (the sum of
    how near the clicks lie, over powers of both items' clicks), that of users who clicked the
    neighbour later (forward), of clicks nearly at_once, of_quiet_users above all; count, of users.
    """
    n_items = len(phase.item_ids)
    earlier, later, value = pairs_of_clicks(phase)
    first, second = phase.item[earlier], phase.item[later]
    both_ways = np.concatenate([first * n_items + second, second * n_items + first])
    key, pair = np.unique(both_ways, return_inverse=True)
    found = pd.DataFrame({"item": key // n_items, "neighbour": key % n_items})
    clicked, scored = (count_clicks(phase)[found[name]] for name in found)
    scale = clicked**-CLICKED_POWER * scored**-SCORED_POWER
    near = np.exp(-(phase.time[later] - phase.time[earlier]) / AT_ONCE) / (later - earlier)
    activity = np.log1p(np.bincount(phase.user, minlength=phase.n_users))[phase.user[earlier]]
    for name, one_way, other_way in (
        ("similarity", value, value),
        ("forward", value, np.zeros(len(value))),
        ("at_once", near, near),
        ("of_quiet_users", value / activity, value / activity),
    ):
        found[name] = scale * np.bincount(pair, np.concatenate([one_way, other_way]), len(key))
    return found.assign(count=np.bincount(pair, minlength=len(key)).astype(float))


def item_vectors(similarity: csr_array, n_clicks: IntArray) -> FloatArray:
    """Return unit vectors of all items, by a truncated SVD (Halko, Martinsson, Tropp 2011)."""
    # The scale by clicks is replaced by one that makes the matrix symmetric.
    powers = n_clicks[:, None] ** np.array([CLICKED_POWER, SCORED_POWER])
    matrix = diags_array(powers[:, 0]) @ similarity @ diags_array(powers[:, 1])
    scale = diags_array(1 / np.sqrt(np.maximum(matrix.sum(axis=1), 1e-9)))
    matrix = csr_array(scale @ matrix @ scale)
    n_dimensions = min(N_DIMENSIONS, len(n_clicks) - 1)
    left, strength, _ = randomized_svd(matrix, n_dimensions, n_iter=3, random_state=0)
    # What belongs to no strength, or to no neighbour, is rounding error and not to be scaled up.
    left[:, strength < 1e-5 * strength.max(initial=1e-9)] = 0
    left[np.diff(similarity.indptr) == 0] = 0
    return unit_length(left * np.sqrt(strength))


def unit_length(vectors: FloatArray) -> FloatArray:
    """Scale the rows of a matrix to length 1, but those of zeros."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-9), np.float32)


def cosines(vectors: FloatArray, others: FloatArray) -> FloatArray:
    """Return the cosine of each pair of rows of two matrices of unit vectors, shape (rows,)."""
    products = np.einsum("rd,rd->r", vectors, others, dtype=np.float64)
    return np.asarray(np.round(products, CLOSENESS_DIGITS))


def find_candidates(phase: recommend.Phase) -> tuple[pd.DataFrame, pd.DataFrame, FloatArray]:
    """Return candidates of the test users, not yet clicked, by user (place among them) and item
    (number): score, the sum of similarities to the user's clicks, later ones more; rank by score,
    from 0 (`N_SIMILAR` for all later ones); share of the user's best score; closeness, the cosine
    of both vectors; and return neighbours and vectors of all items.
    """
    n_items, neighbours = len(phase.item_ids), find_neighbours(phase)
    pairs = (neighbours["item"], neighbours["neighbour"])
    similarity = csr_array((neighbours["similarity"], pairs), shape=(n_items, n_items))
    recent, vectors = recent_clicks(phase), item_vectors(similarity, count_clicks(phase))
    # Products of double precision: those of single precision differ in the digits that are kept.
    wide_vectors = vectors.astype(np.float64)
    profile = unit_length(recent @ wide_vectors).astype(np.float64)
    n_similar, n_close = min(N_SIMILAR, n_items), min(N_CLOSE, n_items)
    parts = []
    for begin in range(0, max(recent.shape[0], 1), recommend.BLOCK):
        block = slice(begin, begin + recommend.BLOCK)
        score = (recent[block] @ similarity).toarray()
        closeness = np.round(profile[block] @ wide_vectors.T, CLOSENESS_DIGITS)
        for values in (score, closeness):
            values[recent[block].nonzero()] = 0
        similar = recommend.largest_columns(score, n_similar)
        close = recommend.largest_columns(closeness, n_close)
        row = np.arange(len(score))[:, None]
        rank = np.full(score.shape, N_SIMILAR, np.int32)
        rank[row, similar] = np.arange(n_similar)
        key = np.unique(np.concatenate([row * n_items + similar, row * n_items + close], axis=1))
        user, item = key // n_items, key % n_items
        best = np.maximum(score.max(axis=1), np.finfo(float).tiny)
        found = pd.DataFrame({"user": user + begin, "item": item, "score": score[user, item]})
        found["rank"], found["share"] = rank[user, item], found["score"] / best[user]
        found["closeness"] = closeness[user, item]
        parts.append(found[(found["score"] > 0) | (found["closeness"] > 0)])
    return pd.concat(parts, ignore_index=True), neighbours, vectors


def match_clicks(
    phase: recommend.Phase, neighbours: pd.DataFrame, found: pd.DataFrame
) -> pd.DataFrame:
    """Find the test users' clicks on neighbours of candidates: `row` is that of the candidate."""
    clicks_of = pd.DataFrame({"user": phase.user, "click": np.arange(len(phase.user))})
    asked = pd.DataFrame({"user": phase.test_user[found["user"]], "neighbour": found["item"]})
    both = asked.assign(row=np.arange(len(found))).merge(clicks_of, on="user")
    both["item"] = phase.item[both["click"]]
    return both.merge(neighbours, on=["item", "neighbour"])


def clicks_around(
    phase: recommend.Phase, item: IntArray, time: FloatArray, near: Sequence[float]
) -> tuple[FloatArray, FloatArray, list[IntArray]]:
    """Return the time since the latest click on each item up to a moment, until its next one, which
    are `HISTORY` + 1 and 1 if there is none, and how many are within each distance, (n,) each.
    """
    # All clicks in order of item and time, such that those of two items lie apart.
    spread = recommend.HISTORY + 2
    timeline = np.sort(spread * phase.item + phase.time)
    now = spread * item + time
    start, stop = spread * item - recommend.HISTORY - 0.5, spread * item + 1.5
    begin, here, end = np.searchsorted(timeline, [start, now, stop])
    before = np.where(here > begin, now - timeline[here - 1], recommend.HISTORY + 1)
    after = np.where(here < end, timeline[np.minimum(here, len(timeline) - 1)] - now, 1)
    edges = ((np.maximum(now - far, start), np.minimum(now + far, stop)) for far in near)
    return before, after, [np.diff(np.searchsorted(timeline, two), axis=0)[0] for two in edges]
