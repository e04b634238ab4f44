"""Debiasing baseline: recommend the most popular items that the user has not clicked.

Run:     python related_challenges/debiasing/sample_model_popularity.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  mean NDCG@50 full 0.0056, half 0.0000 on the real phases 1 to 3, latest click masked

Popularity counts the clicks of the phase and those that `recommend.read_phase` adds from before it.
"""

import argparse

from common import cli

import recommend
from scipy.sparse import csr_array


def score_items(phase: recommend.Phase) -> csr_array:
    """Return the score of every item for every test user, shape (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Return: the scores, sparse; items without a score come last.
    # `recommend.best_items` ranks items without a score by popularity.
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
