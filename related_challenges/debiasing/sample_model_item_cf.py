"""Debiasing sample model: item-based collaborative filtering.

Run:     python related_challenges/debiasing/sample_model_item_cf.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  mean NDCG@50 full 0.0444, half 0.0326 on the real phases 1 to 3, latest click masked

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
    """Return the score of every item for every test user, shape (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Return: the scores, sparse; items without a score come last.
    clicked = recommend.click_matrix(phase)
    # At least 1, since a test user may have no click.
    user_weight = diags_array(1 / np.log1p(np.maximum(clicked.sum(axis=1), 1)))
    item_weight = diags_array(1 / np.sqrt(clicked.sum(axis=0)))
    # Multiplied from left to right: the large (items, items) matrix is never formed.
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
