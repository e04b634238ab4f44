"""Debiasing sample model: candidates of item-based collaborative filtering, ranked by boosting.

Run:     python related_challenges/debiasing/sample_model_gradient_boosting.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  mean NDCG@50 full 0.0711, half 0.0510 on the real phases 1 to 3, latest click masked

Two stages, as the leaders of the challenge had. candidates.py finds a few hundred items for each
user; gradient boosting then tells from some thirty features which of them is clicked next. It
learns from the training users: a part of them at a time loses the latest click, as the test users
did, and candidates and features are made from what is left. The settings were chosen on training
users of phase 1, whose latest clicks were masked for it.
"""

import argparse
from typing import Any

from common import cli
from common.arrays import Array, BoolArray, FloatArray
from common.errors import InputError

import candidates
import numpy as np
import pandas as pd
import recommend
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingClassifier

# The training users are masked in this many parts, so that most clicks are there each time.
N_PARTS = 2
# Candidates kept of each training user beside the item clicked.
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
# The odds of an item are divided by this power of its clicks: more helps the rare items (half) and
# harms the mean over all (full).
RARITY_POWER = 0.6
# Decay of a click's weight with the time to the query: fast and slow, as a share of the phase.
FAST, SLOW = 0.002, 0.05
# Clicks this close in time to the query count as near.
NEAR = (0.003, 0.02, 0.1)


def score_items(phase: recommend.Phase) -> csr_array:
    """Score all items for every test user of a phase, (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Out: the scores that are returned, sparse.
    parts = [masked_part(phase, part) for part in range(N_PARTS)]
    is_clicked = np.concatenate([clicked for _, clicked in parts])
    n_clicks = candidates.count_clicks(phase)
    own, neighbours, vectors = candidates.find_candidates(phase)
    if not (is_clicked.any() and len(own)):
        raise InputError(
            f"{phase.name}: {is_clicked.sum()} training users clicked a candidate last, and the "
            f"test users have {len(own)} candidates, expected some of both"
        )
    model = HistGradientBoostingClassifier(random_state=0, **BOOSTING)
    model.fit(np.concatenate([features for features, _ in parts]), is_clicked)
    log_odds = model.decision_function(describe(phase, neighbours, vectors, own))
    odds = np.exp(log_odds) * n_clicks[own["item"]] ** -RARITY_POWER
    shape = (len(phase.test_user), len(phase.item_ids))
    return csr_array((odds, (own["user"], own["item"])), shape=shape)
    # ---- End of the model. --------------------------------------------------------------------


def masked_part(phase: recommend.Phase, part: int) -> tuple[NDArray[np.float32], BoolArray]:
    """Mask a part of the training users; describe their candidates, and tell which was clicked."""
    training_users = np.setdiff1d(np.arange(phase.n_users), phase.test_user)
    masked, answer = candidates.mask_latest(phase, training_users[part::N_PARTS])
    found, neighbours, vectors = candidates.find_candidates(masked)
    user = found["user"].to_numpy()
    is_clicked = found["item"].to_numpy() == answer[user]
    # Users whose click is not among their candidates teach nothing about the order of these.
    is_found = np.bincount(user, is_clicked, len(answer)) > 0
    n_found = np.bincount(user, minlength=len(answer))
    chance = np.random.default_rng(part).random(len(is_clicked)) * n_found[user]
    rows = is_found[user] & (is_clicked | (chance < N_OTHERS))
    return describe(masked, neighbours, vectors, found[rows]), is_clicked[rows]


def describe(
    phase: recommend.Phase, neighbours: pd.DataFrame, vectors: FloatArray, found: pd.DataFrame
) -> NDArray[np.float32]:
    """Return the features of candidates, shape (candidates, features)."""
    n_found, item = len(found), found["item"].to_numpy()
    # Each click of a user that shares users with a candidate, its neighbour, and the candidate.
    matched = candidates.match_clicks(phase, neighbours, found)
    click, row = matched["click"].to_numpy(), matched["row"].to_numpy()
    similarity, forward, at_once = matched["similarity"], matched["forward"], matched["at_once"]
    query = np.clip(phase.query_time, 0, 1)[found["user"]]
    since = query[row] - phase.time[click]
    place = recommend.places_from_latest(phase)
    is_latest = place[click] == 1

    def total(values: Any) -> Array:
        return np.bincount(row, values, n_found)

    def least(values: Any) -> Array:
        result = np.full(n_found, 1e6)  # More than any value: nothing matches.
        np.minimum.at(result, row, values)
        return result

    # What is the same for all candidates of a user: the clicks, in the order of users.
    user = phase.test_user[found["user"]]
    n_clicks = np.bincount(phase.user, minlength=phase.n_users)
    latest = (np.cumsum(n_clicks) - 1)[user]
    n_item_clicks = candidates.count_clicks(phase)
    popularity = np.log(n_item_clicks)
    taste = np.bincount(phase.user, popularity[phase.item], phase.n_users)[user] / n_clicks[user]
    near_latest = candidates.cosines(vectors[phase.item[latest]], vectors[item])
    before, after, n_near = candidates.clicks_around(phase, item, query, NEAR)

    features = {
        # From the search for candidates.
        **{name: found[name] for name in ("score", "rank", "share", "closeness")},
        "closeness to the latest click": near_latest,
        # Similarities to the user's clicks: sums with different weights, the greatest, counts.
        "similarity": total(similarity),
        "greatest similarity": -least(-similarity),
        "similarity to the latest click": total(similarity * is_latest),
        "similarity to the one before": total(similarity * (place[click] == 2)),
        "similarity to the third latest": total(similarity * (place[click] == 3)),
        "similarity, fast decay": total(similarity * np.exp(-since / FAST)),
        "similarity, slow decay": total(similarity * np.exp(-since / SLOW)),
        "forward": total(forward / place[click]),
        "forward from the latest click": total(forward * is_latest),
        "at once": total(at_once / place[click]),
        "at once with the latest click": total(at_once * is_latest),
        "of quiet users": total(matched["of_quiet_users"] / place[click]),
        "clicks matched": total(np.ones(len(row))),
        "place of the latest matched": least(place[click]),
        "time since the latest matched": least(since),
        "common users": total(matched["count"]),
        "common users with the latest click": total(matched["count"] * is_latest),
        # How often and when the item was clicked.
        "clicks of the item": n_item_clicks[item],
        "time since its click before": before,
        "time until its click after": after,
        **{f"clicks within {near}": n for near, n in zip(NEAR, n_near, strict=True)},
        # How active the user is, and how popular the items are that the user clicks.
        "clicks of the user": n_clicks[user],
        "time since the latest click": query - phase.time[latest],
        "popularity of the user's items": taste,
        "clicks of the user's latest item": n_item_clicks[phase.item[latest]],
        "time of the query": query,
    }
    return np.stack(list(features.values()), axis=1).astype(np.float32)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return recommend.model_parser(__doc__)


def main() -> None:
    """Recommend items and write them."""
    recommend.run_model(build_parser().parse_args(), score_items)


if __name__ == "__main__":
    cli.run(main)
