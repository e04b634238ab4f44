"""Debiasing sample model: item-based collaborative filtering with time, order and popularity.

Run:     python related_challenges/debiasing/sample_model_item_cf_time.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  mean NDCG@50 full 0.0639, half 0.0451 on the real phases 1 to 3, latest click masked

As sample_model_item_cf.py, but two clicks of a user make their items more similar if fewer clicks
and less time lie between them; the user's latest clicks count most; and the divisor takes more from
popular items, so that rare ones get a chance. The settings were chosen on
phase 1 alone.
"""

import argparse

from common import cli
from common.arrays import FloatArray, IntArray

import numpy as np
import recommend
from scipy.sparse import csr_array

# A pair of clicks with d - 1 others of the same user between them, a time t apart (as a share of
# the phase), counts d ** -DISTANCE_POWER * exp(-TIME_DECAY * t).
MAX_DISTANCE = 40
DISTANCE_POWER = 0.5
TIME_DECAY = 2.0
# The similarity is divided by these powers of the clicks of the item clicked and the item scored.
CLICKED_POWER = 0.2
SCORED_POWER = 0.55
# The latest click of a test user counts 1, the n-th latest n ** -RECENCY_POWER.
RECENCY_POWER = 0.9


def score_items(phase: recommend.Phase) -> csr_array:
    """Score all items for every test user of a phase, (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Out: the scores that are returned, sparse.
    return recent_clicks(phase) @ item_similarity(phase)
    # ---- End of the model. --------------------------------------------------------------------


def item_similarity(phase: recommend.Phase) -> csr_array:
    """Measure the similarity of all items clicked (rows) to all items to be scored (columns)."""
    n_items, (earlier, later, weight) = len(phase.item_ids), pairs_of_clicks(phase)
    clicked = phase.item[np.concatenate([earlier, later])]
    scored = phase.item[np.concatenate([later, earlier])]
    n_clicks = np.bincount(phase.item)
    scale = n_clicks[clicked] ** -CLICKED_POWER * n_clicks[scored] ** -SCORED_POWER
    return csr_array((np.tile(weight, 2) * scale, (clicked, scored)), shape=(n_items, n_items))


def pairs_of_clicks(phase: recommend.Phase) -> tuple[IntArray, IntArray, FloatArray]:
    """Return pairs of clicks of one user, neighbours first: the earlier, the later, the weight."""
    pairs = [
        np.flatnonzero(phase.user[:-distance] == phase.user[distance:])
        for distance in range(1, MAX_DISTANCE + 1)
    ]
    earlier = np.concatenate(pairs)
    distance = np.repeat(np.arange(1, MAX_DISTANCE + 1), list(map(len, pairs)))
    later = earlier + distance
    time = phase.time[later] - phase.time[earlier]
    return earlier, later, distance**-DISTANCE_POWER * np.exp(-TIME_DECAY * time)


def recent_clicks(phase: recommend.Phase) -> csr_array:
    """Weigh the clicks of the test users by how recent they are, (test users, items)."""
    weight = recommend.places_from_latest(phase).astype(float) ** -RECENCY_POWER
    return phase.by_user(weight)[phase.test_user]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return recommend.model_parser(__doc__)


def main() -> None:
    """Recommend items and write them."""
    recommend.run_model(build_parser().parse_args(), score_items)


if __name__ == "__main__":
    cli.run(main)
