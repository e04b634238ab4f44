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

import pandas as pd
import queries
from sample_model_back_off import weigh_by_context
from sample_model_nearest_queries import weigh_by_similarity


def guess(train: pd.DataFrame, test: pd.DataFrame, n: int) -> list[list[str]]:
    """Guess up to n answers to every query of `test`, best first."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`, `n`. Out: the guesses that are returned.
    guesses = []
    by_context, by_similarity = weigh_by_context(train, test), weigh_by_similarity(train, test)
    for left, right in zip(by_context, by_similarity, strict=True):
        weights = {answer: left.get(answer, 0) + right.get(answer, 0) for answer in left | right}
        guesses.append(queries.best_guesses(weights, n))
    return guesses
    # ---- End of the model. --------------------------------------------------------------------


if __name__ == "__main__":
    cli.run(lambda: queries.run_model(__doc__, guess))
