"""Cloze sample model: the words left of the gap and similar queries, combined.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_mix.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  0.368 on the rebuilt training queries, 5 folds

An answer's weight is the sum of its weights in sample_model_back_off.py and
sample_model_nearest_queries.py.
"""

import argparse

from common import cli

import pandas as pd
import queries
from sample_model_back_off import weigh_by_context
from sample_model_nearest_queries import weigh_by_similarity


def weigh(train: pd.DataFrame, test: pd.DataFrame) -> list[dict[str, float]]:
    """Weigh answers for every query of `test` by the sum of two models' weights."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`. Return: for every query of `test`, the weights of possible answers.
    by_context = weigh_by_context(train, test)
    by_similarity = weigh_by_similarity(train, test)
    weights_by_query = []
    for left, right in zip(by_context, by_similarity, strict=True):
        answers = left | right
        weights = {answer: left.get(answer, 0) + right.get(answer, 0) for answer in answers}
        weights_by_query.append(weights)
    return weights_by_query
    # ---- End of the model. --------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return queries.model_parser(__doc__)


def main() -> None:
    """Guess the answers and write them."""
    queries.run_model(build_parser().parse_args(), weigh)


if __name__ == "__main__":
    cli.run(main)
