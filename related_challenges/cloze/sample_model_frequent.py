"""Cloze baseline: the five most frequent answers for every query.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_frequent.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  0.211 on the rebuilt training queries, 5 folds
"""

from collections import Counter

from common import cli

import queries


def main() -> None:
    """Load, model, predict, write."""
    options = queries.parse_flags(__doc__)
    guesses: dict[str, list[str]] = {}
    for train, test in queries.read_splits(options):
        # ---- The model: replace this block by your own. ---------------------------------------
        # In: `train`, `test`. Out: up to five `guesses` for the id of every query of `test`.
        frequency = Counter(train["answers"].explode())
        most_frequent = queries.best_guesses(frequency, options.candidates)
        guesses |= dict.fromkeys(test["id"], most_frequent)
        # ---- End of the model. ----------------------------------------------------------------
    queries.write_guesses(options, guesses)


if __name__ == "__main__":
    cli.run(main)
