"""Debiasing sample model: candidates of collaborative filtering, ranked by gradient boosting.

Run:     python related_challenges/debiasing/sample_model_gradient_boosting.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  NDCG@50 0.0711 over all users ("full") and 0.0511 over users whose item is rare ("half"):
         means of the real phases 1 to 3, split by local_data_split.py

The model has two stages, like the models of the best teams. First, candidates.py finds a few
hundred items for each user. Then gradient boosting predicts from some thirty features which of
these candidates is clicked next.

The boosting learns from the training users, who are divided into parts. For each part in turn, the
latest click of its users is masked, as it is for test users. Candidates and features are made from
the remaining clicks. The settings were chosen on masked training users of phase 1.
"""

import argparse
from typing import Any

from common import cli
from common.arrays import Array, BoolArray, FloatArray, IntArray
from common.errors import InputError

import numpy as np
import pandas as pd
import recommend
from candidates import (
    clicks_around,
    cosines,
    count_clicks,
    find_candidates,
    mask_latest,
    match_clicks,
)
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingClassifier

# The training users are divided into this many parts. Only one part at a time has its latest clicks
# masked; the users of the other parts keep all their clicks.
N_PARTS = 2
# The boosting learns from about this many wrong candidates of each training user, drawn at random.
# If a user has fewer, it learns from all of them.
N_WRONG = 60
BOOSTING = {
    "max_iter": 200,
    "learning_rate": 0.07,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 200,
    "l2_regularization": 30,
    "max_features": 0.5,
    "early_stopping": False,
}
# The odds of an item are divided by this power of its number of clicks. A higher power improves the
# score over users whose item is rare ("half") and worsens the score over all users ("full").
RARITY_POWER = 0.6
# In some features, a click has the weight exp(-t / scale), with one of these two scales. Here, t is
# the time from this click to the click to predict, and a phase has the length 1.
FAST_SCALE = 0.002
SLOW_SCALE = 0.05
# For each of these lengths of time (a phase has the length 1), a feature counts the clicks on the
# item that are at most this long before or after the click to predict.
DISTANCES = (0.003, 0.02, 0.1)
# Some features are the smallest value over certain clicks of the candidate's user. If there are no
# such clicks, the feature has this value. Features that are the greatest value have the negative of
# this value instead.
NO_MATCH = 1e6


def score_items(phase: recommend.Phase) -> csr_array:
    """Return a score for each pair of test user and item, shape (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Return: a sparse matrix (test users, items) of scores of at least 0; items with
    # score 0 come after all others, in order of popularity.
    training_parts = [training_part(phase, number) for number in range(N_PARTS)]
    features = np.concatenate([part_features for part_features, _ in training_parts])
    is_clicked = np.concatenate([part_is_clicked for _, part_is_clicked in training_parts])
    n_clicks = count_clicks(phase)
    # The items to rank for each test user, the items that are similar to each item, and a vector
    # for each item.
    candidates, neighbours, vectors = find_candidates(phase)
    if not is_clicked.any():
        raise InputError(
            f"{phase.name}: no training user's latest click is on a candidate, expected some to "
            "learn from"
        )
    if not len(candidates):
        raise InputError(f"{phase.name}: no test user has a candidate, expected some to rank")
    model = HistGradientBoostingClassifier(random_state=0, **BOOSTING)
    model.fit(features, is_clicked)
    log_odds = model.decision_function(describe(phase, neighbours, vectors, candidates))
    # The odds that the user clicks the candidate next, divided by a power of the candidate's number
    # of clicks. So rare items get higher scores.
    score = np.exp(log_odds) * n_clicks[candidates["item"]] ** -RARITY_POWER
    shape = (len(phase.test_user), len(phase.item_ids))
    return csr_array((score, (candidates["test_row"], candidates["item"])), shape=shape)
    # ---- End of the model. --------------------------------------------------------------------


def training_part(phase: recommend.Phase, number: int) -> tuple[NDArray[np.float32], BoolArray]:
    """Return examples to learn from: candidates of the training users of one part.

    The latest click of each of these users is masked, as if it had to be predicted. An example is a
    pair of such a user and a candidate, an item that may be the item of the masked click.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    number : int
        Number of the part, from 0 to `N_PARTS` - 1.

    Returns
    -------
    features : ndarray of float32, shape (examples, features)
        Result of `describe`.
    is_clicked : ndarray of bool, shape (examples,)
        Whether the candidate is the item of the masked click.
    """
    training_users = np.setdiff1d(np.arange(phase.n_users), phase.test_user)
    # The part is every `N_PARTS`-th training user, from position `number` on. `masked` is the phase
    # without the latest click of these users, who are now its only test users. For each test user,
    # `answer` holds the item of the masked click.
    masked, answer = mask_latest(phase, training_users[number::N_PARTS])
    # The candidates of each test user, the items that are similar to each item (neighbours), and a
    # vector for each item.
    candidates, neighbours, vectors = find_candidates(masked)
    # For each candidate, the position of its user among the test users of `masked`. At this
    # position, `answer` holds the item of the user's masked click.
    masked_row = candidates["test_row"].to_numpy()
    is_clicked = candidates["item"].to_numpy() == answer[masked_row]
    # Leave out users whose masked item is not among their candidates: they have no right candidate
    # to learn from.
    n_right_candidates = np.bincount(masked_row, weights=is_clicked, minlength=len(answer))
    has_answer = n_right_candidates > 0
    n_candidates = np.bincount(masked_row, minlength=len(answer))
    # Draw about N_WRONG candidates of each user: draw a candidate if a random number from 0 to 1,
    # times the user's number of candidates, is below N_WRONG.
    random_number = np.random.default_rng(number).random(len(is_clicked))
    is_drawn = random_number * n_candidates[masked_row] < N_WRONG
    is_example = has_answer[masked_row] & (is_clicked | is_drawn)
    features = describe(masked, neighbours, vectors, candidates[is_example])
    return features, is_clicked[is_example]


def describe(
    phase: recommend.Phase,
    neighbours: pd.DataFrame,
    vectors: FloatArray,
    candidates: pd.DataFrame,
) -> NDArray[np.float32]:
    """Describe candidates by features for the boosting.

    A candidate is a pair of a test user and an item that the user may click next.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    neighbours, vectors, candidates
        As `find_candidates` returns them: the items that are similar to each item, a vector for
        each item, and the candidates with their scores.

    Returns
    -------
    ndarray of float32, shape (candidates, features)
    """
    item = candidates["item"].to_numpy()
    user = phase.test_user[candidates["test_row"]]
    # Known clicks of the phase have times between 0 and 1. The click to predict may have a time
    # outside this range.
    query_time = np.clip(phase.query_time, 0, 1)[candidates["test_row"]]
    n_clicks = np.bincount(phase.user, minlength=phase.n_users)
    n_item_clicks = count_clicks(phase)
    # Index of the latest click of each candidate's user. Clicks are sorted by user, then by time,
    # so this index is one less than the number of clicks of all users up to and including this one.
    # Every user with candidates has a click.
    latest_of_user = np.cumsum(n_clicks) - 1
    latest = latest_of_user[user]
    latest_item = phase.item[latest]
    features: dict[str, Any] = {
        # The score that `find_candidates` gives, the rank by this score, the score as a share of
        # the user's best score, and the cosine of the vectors of item and user.
        "score": candidates["score"],
        "rank": candidates["rank"],
        "share": candidates["share"],
        "closeness": candidates["closeness"],
        "closeness to the latest click": cosines(vectors[latest_item], vectors[item]),
        **similarity_features(phase, neighbours, candidates, query_time),
        **item_features(phase, n_item_clicks, item, query_time),
        **user_features(phase, n_clicks, n_item_clicks, user, latest, query_time),
    }
    return np.stack(list(features.values()), axis=1).astype(np.float32)


def similarity_features(
    phase: recommend.Phase,
    neighbours: pd.DataFrame,
    candidates: pd.DataFrame,
    query_time: FloatArray,
) -> dict[str, Array]:
    """Describe how similar each candidate is to the items that its user clicked.

    The features are sums of similarities with different weights, smallest and greatest values, and
    counts. `query_time` is the time of the click to predict. `query_time` and the features have the
    shape (candidates,).
    """
    n_candidates = len(candidates)
    # A match is a pair of a candidate and a click of its user, if the candidate is a neighbour of
    # the item clicked (`find_neighbours`). A candidate may have several matches or none.
    matches = match_clicks(phase, neighbours, candidates)
    row = matches["row"].to_numpy()
    click = matches["click"].to_numpy()
    similarity = matches["similarity"]
    forward = matches["forward"]
    at_once = matches["at_once"]
    time_since_click = query_time[row] - phase.time[click]
    # 1 for the user's latest click, 2 for the one before, and so on.
    position = recommend.positions_from_latest(phase)[click]
    is_latest = position == 1

    def total(values: Any) -> Array:
        """Return for each candidate the sum of its matches' `values`."""
        return np.bincount(row, values, n_candidates)

    def smallest(values: Any) -> Array:
        """Return the smallest of the `values` of each candidate's matches; `NO_MATCH` if none."""
        result = np.full(n_candidates, NO_MATCH)
        np.minimum.at(result, row, values)
        return result

    def greatest(values: Any) -> Array:
        """Return the greatest of the `values` of each candidate's matches; -`NO_MATCH` if none."""
        result = np.full(n_candidates, -NO_MATCH)
        np.maximum.at(result, row, values)
        return result

    # Some values are divided by `position`, the position of the click from the latest one, so that
    # later clicks count more.
    return {
        "similarity": total(similarity),
        "greatest similarity": greatest(similarity),
        "similarity to the latest click": total(similarity * is_latest),
        "similarity to the second latest click": total(similarity * (position == 2)),
        "similarity to the third latest click": total(similarity * (position == 3)),
        "similarity, fast decay": total(similarity * np.exp(-time_since_click / FAST_SCALE)),
        "similarity, slow decay": total(similarity * np.exp(-time_since_click / SLOW_SCALE)),
        "similarity, candidate clicked later": total(forward / position),
        "the same to the latest click": total(forward * is_latest),
        "similarity, clicked at almost the same time": total(at_once / position),
        "at almost the same time, to the latest click": total(at_once * is_latest),
        "similarity by quiet users": total(matches["by_quiet_users"] / position),
        "clicks matched": total(np.ones(len(row))),
        "position of the latest click matched": smallest(position),
        "time since the latest click matched": smallest(time_since_click),
        "pairs of clicks": total(matches["count"]),
        "pairs of clicks with the latest click": total(matches["count"] * is_latest),
    }


def item_features(
    phase: recommend.Phase, n_item_clicks: IntArray, item: IntArray, query_time: FloatArray
) -> dict[str, Array]:
    """Describe how often each candidate's item was clicked, and how near to `query_time`.

    `query_time` is the time of the click to predict. `n_item_clicks` has the shape (items,). All
    other arrays and the features have the shape (candidates,).
    """
    # For each candidate, `before` is the time from the item's previous click to `query_time`, and
    # `after` is the time from `query_time` to the item's next click. `n_near` holds an array for
    # each length of time in `DISTANCES`: the number of clicks on the item that are at most this
    # time away from `query_time`.
    before, after, n_near = clicks_around(phase, item, query_time, DISTANCES)
    features = {
        "clicks of the item": n_item_clicks[item],
        "time since the item's previous click": before,
        "time until the item's next click": after,
    }
    for distance, n_clicks in zip(DISTANCES, n_near, strict=True):
        features[f"clicks within {distance}"] = n_clicks
    return features


def user_features(
    phase: recommend.Phase,
    n_clicks: IntArray,
    n_item_clicks: IntArray,
    user: IntArray,
    latest: IntArray,
    query_time: FloatArray,
) -> dict[str, Array]:
    """Describe how active each candidate's user is, and how popular the user's items are.

    A candidate is a pair of a test user and an item that the user may click next.

    `n_clicks` has the number of clicks of each user, and `n_item_clicks` has the number of clicks
    of each item. All other arrays and the features have an element for each candidate: `user` is
    the candidate's user, `latest` is the index in `phase` of the user's latest click, and
    `query_time` is the time of the click to predict.
    """
    popularity = np.log(n_item_clicks)
    # For each user, the sum over the items that the user clicked.
    popularity_sum = np.bincount(
        phase.user, weights=popularity[phase.item], minlength=phase.n_users
    )
    return {
        "clicks of the user": n_clicks[user],
        "time since the latest click": query_time - phase.time[latest],
        "mean popularity of the user's items": popularity_sum[user] / n_clicks[user],
        "clicks of the user's latest item": n_item_clicks[phase.item[latest]],
        "time of the click to predict": query_time,
    }


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return recommend.model_parser(__doc__)


def main() -> None:
    """Recommend items and write them."""
    recommend.run_model(build_parser().parse_args(), score_items)


if __name__ == "__main__":
    cli.run(main)
