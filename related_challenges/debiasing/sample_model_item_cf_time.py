"""Debiasing sample model: item-based collaborative filtering with time, order and popularity.

Run:     python related_challenges/debiasing/sample_model_item_cf_time.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  mean NDCG@50 full 0.0639, half 0.0451 on the real phases 1 to 3, latest click masked

As sample_model_item_cf.py, with three changes. Two clicks of a user make their items more similar
if fewer clicks and less time lie between them. The user's latest clicks count most. The divisor
takes more from popular items, so that rare items get a chance. The settings were chosen on phase 1
alone.
"""

import argparse

from common import cli
from common.arrays import FloatArray, IntArray

import numpy as np
import recommend
from scipy.sparse import csr_array

# A pair of clicks of a user has the weight d ** -DISTANCE_POWER * exp(-TIME_DECAY * t): the pair is
# d positions apart among the user's clicks, and a time t, as a share of the phase.
MAX_DISTANCE = 40
DISTANCE_POWER = 0.5
TIME_DECAY = 2.0
# The similarity is divided by these powers of the clicks of the item clicked and the item scored.
CLICKED_POWER = 0.2
SCORED_POWER = 0.55
# The latest click of a test user counts 1, the n-th latest n ** -RECENCY_POWER.
RECENCY_POWER = 0.9


def score_items(phase: recommend.Phase) -> csr_array:
    """Return the score of every item for every test user, shape (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Return: the scores, sparse; items without a score come last.
    return recent_clicks(phase) @ item_similarity(phase)
    # ---- End of the model. --------------------------------------------------------------------


def item_similarity(phase: recommend.Phase) -> csr_array:
    """Return the similarity of clicked items (rows) to scored items (columns), (items, items)."""
    n_items = len(phase.item_ids)
    earlier, later, weight = pairs_of_clicks(phase)
    # Each pair counts in both directions.
    clicked = phase.item[np.concatenate([earlier, later])]
    scored = phase.item[np.concatenate([later, earlier])]
    n_clicks = np.bincount(phase.item)
    scale = n_clicks[clicked] ** -CLICKED_POWER * n_clicks[scored] ** -SCORED_POWER
    similarity = np.tile(weight, 2) * scale
    return csr_array((similarity, (clicked, scored)), shape=(n_items, n_items))


def pairs_of_clicks(phase: recommend.Phase) -> tuple[IntArray, IntArray, FloatArray]:
    """Return all pairs of clicks of the same user, at most `MAX_DISTANCE` positions apart.

    Returns
    -------
    earlier, later : ndarray of int64, shape (pairs,)
        Indices of both clicks, pairs of small distance first.
    weight : ndarray of float64, shape (pairs,)
        Weight by distance and time.
    """
    earlier_by_distance = [
        np.flatnonzero(phase.user[:-distance] == phase.user[distance:])
        for distance in range(1, MAX_DISTANCE + 1)
    ]
    n_pairs = [len(indices) for indices in earlier_by_distance]
    earlier = np.concatenate(earlier_by_distance)
    distance = np.repeat(np.arange(1, MAX_DISTANCE + 1), n_pairs)
    later = earlier + distance
    time = phase.time[later] - phase.time[earlier]
    return earlier, later, distance**-DISTANCE_POWER * np.exp(-TIME_DECAY * time)


def recent_clicks(phase: recommend.Phase) -> csr_array:
    """Return the test users' clicks, weighed by how recent they are, (test users, items)."""
    weight = recommend.positions_from_latest(phase).astype(float) ** -RECENCY_POWER
    return phase.by_user(weight)[phase.test_user]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return recommend.model_parser(__doc__)


def main() -> None:
    """Recommend items and write them."""
    recommend.run_model(build_parser().parse_args(), score_items)


if __name__ == "__main__":
    cli.run(main)
