"""Debiasing baseline: recommend the most popular items that the user has not clicked.

Run:     python related_challenges/debiasing/sample_model_popularity.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  NDCG@50 0.0056 over all users ("full") and 0.0000 over users whose item is rare ("half"):
         means of the real phases 1 to 3, split by local_data_split.py

Popularity counts the clicks of the phase, and the older clicks on the same items that
`recommend.read_phase` adds.
"""

import argparse

from common import cli

import recommend
from scipy.sparse import csr_array


def score_items(phase: recommend.Phase) -> csr_array:
    """Return a score for each pair of test user and item, shape (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Return: a sparse matrix (test users, items) of scores of at least 0; items with
    # score 0 come after all others, in order of popularity.
    # In an empty matrix all scores are 0, so items are ranked by popularity.
    n_users = len(phase.test_user)
    n_items = len(phase.item_ids)
    return csr_array((n_users, n_items))
    # ---- End of the model. --------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return recommend.model_parser(__doc__)


def main() -> None:
    """Recommend items and write them."""
    recommend.run_model(build_parser().parse_args(), score_items)


if __name__ == "__main__":
    cli.run(main)
