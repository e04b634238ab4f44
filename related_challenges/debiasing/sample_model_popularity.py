"""Debiasing baseline: the items of the phase clicked most often, but not yet by the user.

Run:     python related_challenges/debiasing/sample_model_popularity.py --local
         python related_challenges/debiasing/local_evaluation.py
Without --local it predicts the published test users.
Writes:  data/test_output/submission.csv
Scores:  mean NDCG@50 full 0.0056, half 0.0000 on the real phases 1 to 3, latest click masked

Clicks before the phase count too, as `recommend.read_phase` reads them.
"""

from common import cli

import recommend
from scipy.sparse import csr_array


def main() -> None:
    """Load, model, predict, write."""
    options = recommend.parse_flags(__doc__)
    found = []
    for phase in recommend.read_phases(options):
        # ---- The model: replace this block by your own. ---------------------------------------
        # In: `phase`. Out: `scores` of every test user and item, (test users, items), sparse.
        # Items without a score are ranked by popularity.
        scores = csr_array((len(phase.test_user), len(phase.item_ids)))
        # ---- End of the model. ----------------------------------------------------------------
        found.append((phase.test_user_ids, recommend.best_items(phase, scores)))
    recommend.write(options, found)


if __name__ == "__main__":
    cli.run(main)
