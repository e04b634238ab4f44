"""Cloze sample model: combine the words left of the gap with similar queries.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_mix.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  token F1 0.368 on 8,039 training queries rebuilt from a tokenised copy, 5 folds

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
    """Weigh possible answers to each query of `test` by the sum of two models' weights."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`. Return: for each query of `test`, a dict from possible answers to their
    # weights; the answers with the largest weights are guessed.
    by_context = weigh_by_context(train, test)
    by_similarity = weigh_by_similarity(train, test)
    weights_by_query = []
    for context_weights, similarity_weights in zip(by_context, by_similarity, strict=True):
        weights = dict(context_weights)
        for answer, weight in similarity_weights.items():
            weights[answer] = weights.get(answer, 0.0) + weight
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
