"""Debiasing sample model: item-based collaborative filtering with time, order and popularity.

Run:     python related_challenges/debiasing/sample_model_item_cf_time.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  NDCG@50 0.0639 over all users ("full") and 0.0451 over users whose item is rare ("half"):
         means of the real phases 1 to 3, split by local_data_split.py

The model is like sample_model_item_cf.py, with three changes. Two clicks of a user make their items
more similar if fewer clicks and less time lie between them. The user's latest clicks count most.
The divisor grows faster with the popularity of the item scored, so that rare items get a chance.
The settings were chosen on phase 1 alone.
"""

import argparse

from common import cli
from common.arrays import FloatArray, IntArray

import numpy as np
import recommend
from scipy.sparse import csr_array

# A pair of clicks of one user has the weight d ** -DISTANCE_POWER * exp(-TIME_DECAY * t). Here, d
# is the number of positions from one click to the other in the list of the user's clicks, and t is
# the time between them. The unit of time is the length of a phase.
DISTANCE_POWER = 0.5
TIME_DECAY = 2.0
# Two clicks that are more positions apart than this do not count as a pair.
MAX_DISTANCE = 40
# If a user has clicked one item (clicked), the similarity of another item (scored) to it raises the
# other item's score. So that popular items count less, this similarity is divided by
# n_clicked ** CLICKED_POWER and by n_scored ** SCORED_POWER, where n_clicked and n_scored are the
# numbers of clicks on the two items.
CLICKED_POWER = 0.2
SCORED_POWER = 0.55
# The n-th latest click of a test user has the weight n ** -RECENCY_POWER.
RECENCY_POWER = 0.9


def score_items(phase: recommend.Phase) -> csr_array:
    """Return a score for each pair of test user and item, shape (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Return: a sparse matrix (test users, items) of scores of at least 0; items with
    # score 0 come after all others, in order of popularity.
    return weighted_clicks(phase) @ item_similarity(phase)
    # ---- End of the model. --------------------------------------------------------------------


def item_similarity(phase: recommend.Phase) -> csr_array:
    """Return how similar items are: by how much a click on one raises the score of another.

    The shape is (items, items), with clicked items in rows and scored items in columns.
    """
    n_items = len(phase.item_ids)
    earlier, later, weight = pairs_of_clicks(phase)
    # Use each pair of clicks twice, with the same weight. In the first half of the arrays, the item
    # of the earlier click is the clicked item, and the item of the later click is the scored item.
    # In the second half, it is the other way round.
    clicked = phase.item[np.concatenate([earlier, later])]
    scored = phase.item[np.concatenate([later, earlier])]
    n_clicks = np.bincount(phase.item)
    # Items with many clicks occur in many pairs. So the more clicks an item of a pair has, the less
    # the pair counts.
    factor_of_clicked = n_clicks[clicked] ** (-CLICKED_POWER)
    factor_of_scored = n_clicks[scored] ** (-SCORED_POWER)
    similarity = np.tile(weight, 2) * (factor_of_clicked * factor_of_scored)
    # If a pair of items occurs several times, `csr_array` adds up its values.
    return csr_array((similarity, (clicked, scored)), shape=(n_items, n_items))


def pairs_of_clicks(phase: recommend.Phase) -> tuple[IntArray, IntArray, FloatArray]:
    """Return all pairs of clicks of the same user, at most `MAX_DISTANCE` positions apart.

    Returns
    -------
    earlier, later : ndarray of int64, shape (pairs,)
        Indices in `phase` of the earlier and the later click. Pairs that are fewer positions apart
        come first.
    weight : ndarray of float64, shape (pairs,)
        Weight of each pair, larger for fewer positions and less time between the clicks.
    """
    # Clicks are sorted by user. So the clicks i and i + distance are a pair if they are of the same
    # user. For each distance, collect the indices i of these pairs.
    earlier_by_distance = [
        np.flatnonzero(phase.user[:-distance] == phase.user[distance:])
        for distance in range(1, MAX_DISTANCE + 1)
    ]
    n_pairs = [len(indices) for indices in earlier_by_distance]
    earlier = np.concatenate(earlier_by_distance)
    # The number of positions between the two clicks of each pair.
    distance = np.repeat(np.arange(1, MAX_DISTANCE + 1), n_pairs)
    later = earlier + distance
    time_apart = phase.time[later] - phase.time[earlier]
    weight = distance**-DISTANCE_POWER * np.exp(-TIME_DECAY * time_apart)
    return earlier, later, weight


def weighted_clicks(phase: recommend.Phase) -> csr_array:
    """Return the test users' clicks as a matrix of weights, shape (test users, items).

    The later a click, the larger its weight. An item that a user has not clicked has the weight 0.
    """
    weight = recommend.positions_from_latest(phase).astype(float) ** -RECENCY_POWER
    return phase.sum_by_user_and_item(weight)[phase.test_user]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return recommend.model_parser(__doc__)


def main() -> None:
    """Recommend items and write them."""
    recommend.run_model(build_parser().parse_args(), score_items)


if __name__ == "__main__":
    cli.run(main)
