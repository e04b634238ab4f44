"""Debiasing sample model: boosting ranks candidates of item-based collaborative filtering.

Run:     python related_challenges/debiasing/sample_model_gradient_boosting.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  mean NDCG@50 full 0.0711, half 0.0511 on the real phases 1 to 3, latest click masked

The model has two stages, as those of the challenge's leaders. First, candidates.py finds a few
hundred items for each user. Then gradient boosting predicts from some thirty features which of
these candidates is clicked next.

The boosting learns from the training users. One part of them at a time loses the latest click, as
the test users did, and candidates and features are made from the remaining clicks. The settings
were chosen on masked training users of phase 1.
"""

import argparse
from typing import Any

from common import cli
from common.arrays import Array, BoolArray, FloatArray, IntArray
from common.errors import InputError

import candidates
import numpy as np
import pandas as pd
import recommend
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingClassifier

# The training users are masked in this many parts, one after the other. So most clicks remain.
N_PARTS = 2
# The boosting learns from about this many wrong candidates of each training user.
N_OTHERS = 60
BOOSTING = {
    "max_iter": 200,
    "learning_rate": 0.07,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 200,
    "l2_regularization": 30,
    "max_features": 0.5,
    "early_stopping": False,
}
# The odds of an item are divided by this power of its clicks. A higher power raises the score of
# rare items (half) and lowers the score of all items (full).
RARITY_POWER = 0.6
# Scales, as shares of the phase, on which a click's weight decays with the time to the query.
FAST = 0.002
SLOW = 0.05
# Distances in time to the query within which clicks are counted.
NEAR = (0.003, 0.02, 0.1)


def score_items(phase: recommend.Phase) -> csr_array:
    """Return the score of every item for every test user, shape (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Return: the scores, sparse; items without a score come last.
    parts = [masked_part(phase, part) for part in range(N_PARTS)]
    is_clicked = np.concatenate([clicked for _, clicked in parts])
    n_clicks = candidates.count_clicks(phase)
    table, neighbours, vectors = candidates.find_candidates(phase)
    if not (is_clicked.any() and len(table)):
        raise InputError(
            f"{phase.name}: {is_clicked.sum()} training users clicked a candidate last, and the "
            f"test users have {len(table)} candidates, expected some of both"
        )
    model = HistGradientBoostingClassifier(random_state=0, **BOOSTING)
    model.fit(np.concatenate([features for features, _ in parts]), is_clicked)
    log_odds = model.decision_function(describe(phase, neighbours, vectors, table))
    score = np.exp(log_odds) * n_clicks[table["item"]] ** -RARITY_POWER
    shape = (len(phase.test_user), len(phase.item_ids))
    return csr_array((score, (table["user"], table["item"])), shape=shape)
    # ---- End of the model. --------------------------------------------------------------------


def masked_part(phase: recommend.Phase, part: int) -> tuple[NDArray[np.float32], BoolArray]:
    """Mask the latest clicks of a part of the training users, and prepare what to learn from.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    part : int
        Number of the part, from 0.

    Returns
    -------
    features : ndarray of float32, shape (candidates, features)
        Features of candidates of the masked users.
    is_clicked : ndarray of bool, shape (candidates,)
        Whether the candidate is the item of the masked click.
    """
    training_users = np.setdiff1d(np.arange(phase.n_users), phase.test_user)
    masked, answer = candidates.mask_latest(phase, training_users[part::N_PARTS])
    table, neighbours, vectors = candidates.find_candidates(masked)
    user = table["user"].to_numpy()
    is_clicked = table["item"].to_numpy() == answer[user]
    # Users without their masked click among the candidates are left out: they do not show which
    # candidate should come first.
    has_answer = np.bincount(user, is_clicked, len(answer)) > 0
    n_candidates = np.bincount(user, minlength=len(answer))
    draw = np.random.default_rng(part).random(len(is_clicked))
    is_drawn = draw * n_candidates[user] < N_OTHERS
    rows = has_answer[user] & (is_clicked | is_drawn)
    return describe(masked, neighbours, vectors, table[rows]), is_clicked[rows]


def describe(
    phase: recommend.Phase, neighbours: pd.DataFrame, vectors: FloatArray, table: pd.DataFrame
) -> NDArray[np.float32]:
    """Describe candidates by features for the boosting.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    neighbours, vectors, table
        Neighbours, vectors and candidates as `candidates.find_candidates` returns them.

    Returns
    -------
    ndarray of float32, shape (candidates, features)
    """
    user = phase.test_user[table["user"]]
    item = table["item"].to_numpy()
    query = np.clip(phase.query_time, 0, 1)[table["user"]]
    latest_click = find_latest_clicks(phase)[user]
    latest_item = phase.item[latest_click]
    features = {
        **{name: table[name].to_numpy() for name in ("score", "rank", "share", "closeness")},
        "closeness to the latest click": candidates.cosines(vectors[latest_item], vectors[item]),
        **describe_matches(phase, candidates.match_clicks(phase, neighbours, table), query),
        **describe_items(phase, item, query),
        **describe_users(phase, user, latest_click, query),
        "time of the query": query,
    }
    return np.stack(list(features.values()), axis=1).astype(np.float32)


def find_latest_clicks(phase: recommend.Phase) -> IntArray:
    """Return the index of each user's latest click, shape (users,)."""
    # Clicks are in the order of users, and those of a user in the order of time.
    n_clicks = np.bincount(phase.user, minlength=phase.n_users)
    return np.asarray(np.cumsum(n_clicks) - 1)


def describe_matches(
    phase: recommend.Phase, matches: pd.DataFrame, query: FloatArray
) -> dict[str, Array]:
    """Describe each candidate by the clicks of its user on similar items.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    matches : DataFrame
        A row for each candidate and each click of its user on a neighbour of the candidate, see
        `candidates.match_clicks`.
    query : ndarray of float64, shape (candidates,)
        Time of the query for each candidate, from 0 to 1.
    """
    row = matches["row"].to_numpy()
    click = matches["click"].to_numpy()
    similarity = matches["similarity"]
    forward = matches["forward"]
    at_once = matches["at_once"]
    since = query[row] - phase.time[click]
    # Position of the click among its user's clicks, 1 for the latest.
    position = recommend.positions_from_latest(phase)[click]
    is_latest = position == 1

    def total(values: Any) -> Array:
        """Add up a value of the matches of every candidate."""
        return np.bincount(row, values, len(query))

    def least(values: Any) -> Array:
        """Return the smallest value of the matches of every candidate, 1e6 without matches."""
        result = np.full(len(query), 1e6)
        np.minimum.at(result, row, values)
        return result

    return {
        # Similarities to the user's clicks: differently weighed sums, the greatest, and counts.
        "similarity": total(similarity),
        "greatest similarity": -least(-similarity),
        "similarity to the latest click": total(similarity * is_latest),
        "similarity to the one before": total(similarity * (position == 2)),
        "similarity to the third latest": total(similarity * (position == 3)),
        "similarity, fast decay": total(similarity * np.exp(-since / FAST)),
        "similarity, slow decay": total(similarity * np.exp(-since / SLOW)),
        "forward": total(forward / position),
        "forward from the latest click": total(forward * is_latest),
        "at once": total(at_once / position),
        "at once with the latest click": total(at_once * is_latest),
        "of quiet users": total(matches["of_quiet_users"] / position),
        "clicks matched": total(np.ones(len(row))),
        "position of the latest matched": least(position),
        "time since the latest matched": least(since),
        "common users": total(matches["count"]),
        "common users with the latest click": total(matches["count"] * is_latest),
    }


def describe_items(phase: recommend.Phase, item: IntArray, query: FloatArray) -> dict[str, Array]:
    """Describe each candidate by how often and when its item was clicked."""
    before, after, n_near = candidates.clicks_around(phase, item, query, NEAR)
    return {
        "clicks of the item": candidates.count_clicks(phase)[item],
        "time since its click before": before,
        "time until its click after": after,
        **{f"clicks within {near}": n for near, n in zip(NEAR, n_near, strict=True)},
    }


def describe_users(
    phase: recommend.Phase, user: IntArray, latest_click: IntArray, query: FloatArray
) -> dict[str, Array]:
    """Describe each candidate by its user: the activity, and the popularity of items clicked."""
    n_clicks = np.bincount(phase.user, minlength=phase.n_users)
    n_item_clicks = candidates.count_clicks(phase)
    popularity = np.log(n_item_clicks)
    total_popularity = np.bincount(phase.user, popularity[phase.item], phase.n_users)
    return {
        "clicks of the user": n_clicks[user],
        "time since the latest click": query - phase.time[latest_click],
        "popularity of the user's items": total_popularity[user] / n_clicks[user],
        "clicks of the user's latest item": n_item_clicks[phase.item[latest_click]],
    }


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return recommend.model_parser(__doc__)


def main() -> None:
    """Recommend items and write them."""
    recommend.run_model(build_parser().parse_args(), score_items)


if __name__ == "__main__":
    cli.run(main)
