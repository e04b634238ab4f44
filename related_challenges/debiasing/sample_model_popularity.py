"""Debiasing baseline: the items of the phase clicked most often, but not yet by the user.

Run:     python related_challenges/debiasing/sample_model_popularity.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  mean NDCG@50 full 0.0056, half 0.0000 on the real phases 1 to 3, latest click masked

Clicks before the phase count too, as `recommend.read_phase` reads them.
"""

import argparse

from common import cli

import recommend
from scipy.sparse import csr_array


def score_items(phase: recommend.Phase) -> csr_array:
    """Score all items for every test user of a phase, (test users, items)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `phase`. Out: the scores that are returned, sparse.
    # Items without a score are ranked by popularity.
    return csr_array((len(phase.test_user), len(phase.item_ids)))
    # ---- End of the model. --------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return recommend.model_parser(__doc__)


def main() -> None:
    """Recommend items and write them."""
    recommend.run_model(build_parser().parse_args(), score_items)


if __name__ == "__main__":
    cli.run(main)
