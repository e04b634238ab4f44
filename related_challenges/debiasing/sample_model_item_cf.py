"""Debiasing sample model: item-based collaborative filtering.

Run:     python related_challenges/debiasing/sample_model_item_cf.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  NDCG@50 0.0444 over all users ("full") and 0.0326 over users whose item is rare ("half"):
         means of the real phases 1 to 3, split by local_data_split.py

Two items are similar if the same users clicked both. Users with many clicks count less, and the sum
over users is divided by the root of the product of both items' numbers of clicks (Breese,
Heckerman, Kadie 1998; Sarwar et al. 2001). An item's score is the sum of its similarities to the
items that the user clicked.
"""

import argparse

from common import cli

import numpy as np
import recommend
from scipy.sparse import csr_array, diags_array


def score_items(phase: recommend.Phase) -> csr_array:
    """Return a score for each pair of test user and item, shape (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Return: a sparse matrix (test users, items) of scores of at least 0; items with
    # score 0 come after all others, in order of popularity.
    clicked = recommend.click_matrix(phase)
    # A test user may have no click. Count at least 1, since log1p(0) is 0 and cannot be a divisor.
    n_user_clicks = np.maximum(clicked.sum(axis=1), 1)
    user_weight = diags_array(1 / np.log1p(n_user_clicks))
    item_weight = diags_array(1 / np.sqrt(clicked.sum(axis=0)))
    # Both weights are diagonal matrices: a product with them multiplies the row or column of each
    # user or item by the user's or item's weight. The scores are test clicks @ similarity, where
    # the similarity of items is item_weight @ clicked.T @ user_weight @ clicked @ item_weight.
    # Multiply from left to right, so that the large (items, items) matrix is never formed.
    overlap = clicked[phase.test_user] @ item_weight @ clicked.T
    return overlap @ user_weight @ clicked @ item_weight
    # ---- End of the model. --------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return recommend.model_parser(__doc__)


def main() -> None:
    """Recommend items and write them."""
    recommend.run_model(build_parser().parse_args(), score_items)


if __name__ == "__main__":
    cli.run(main)
