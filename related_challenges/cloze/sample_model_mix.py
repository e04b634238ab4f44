"""Cloze sample model: the words left of the gap and similar queries combined.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_mix.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  0.368 on the rebuilt training queries, 5 folds

The weights of sample_model_back_off.py and of sample_model_nearest_queries.py, added up.
"""

from common import cli

import queries
from sample_model_back_off import weigh_by_context
from sample_model_nearest_queries import weigh_by_similarity


def main() -> None:
    """Load, model, predict, write."""
    options = queries.parse_flags(__doc__)
    guesses = {}
    for train, test in queries.read_splits(options):
        # ---- The model: replace this block by your own. ---------------------------------------
        # In: `train`, `test`. Out: up to five `guesses` for the id of every query of `test`.
        by_context, by_similarity = weigh_by_context(train, test), weigh_by_similarity(train, test)
        for query_id, left, right in zip(test["id"], by_context, by_similarity, strict=True):
            weights = {
                answer: left.get(answer, 0) + right.get(answer, 0) for answer in left | right
            }
            guesses[query_id] = queries.best_guesses(weights, options.candidates)
        # ---- End of the model. ----------------------------------------------------------------
    queries.write_guesses(options, guesses)


if __name__ == "__main__":
    cli.run(main)
