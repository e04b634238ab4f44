"""Cloze baseline: guess the most frequent answers at every query.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_frequent.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  token F1 0.211 on 8,039 training queries rebuilt from a tokenised copy, 5 folds
"""

import argparse
from collections import Counter

from common import cli

import pandas as pd
import queries


def weigh(train: pd.DataFrame, test: pd.DataFrame) -> list[Counter[str]]:
    """Weigh every answer by the number of queries of `train` for which it is right.

    All queries of `test` get the same weights.
    """
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`. Return: for each query of `test`, a dict from possible answers to their
    # weights; the answers with the largest weights are guessed.
    # `explode` gives one row for each right answer of a query.
    n_queries_by_answer = Counter(train["answers"].explode())
    return [n_queries_by_answer] * len(test)
    # ---- End of the model. --------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return queries.model_parser(__doc__)


def main() -> None:
    """Guess the answers and write them."""
    queries.run_model(build_parser().parse_args(), weigh)


if __name__ == "__main__":
    cli.run(main)
