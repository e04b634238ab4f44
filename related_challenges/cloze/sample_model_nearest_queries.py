"""Cloze sample model: the answers of the most similar training queries.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_nearest_queries.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  token F1 0.363 on 8,039 training queries rebuilt from a tokenised copy, 5 folds

The similarity of two queries is the cosine of their TF-IDF vectors of words and pairs of words.
Each of the thirty most similar training queries votes for its right answers. Its vote is the cube
of its similarity, divided evenly among these answers.
"""

import argparse

from common import cli

import numpy as np
import pandas as pd
import queries
from sklearn.feature_extraction.text import TfidfVectorizer

# Number of training queries that vote.
N_NEAREST = 30
# A vote is the similarity to this power. A higher power gives the most similar queries more say.
POWER = 3


def weigh_by_similarity(train: pd.DataFrame, test: pd.DataFrame) -> list[dict[str, float]]:
    """Weigh possible answers to each query of `test` by the votes of similar training queries.

    The weights of a query's answers sum to 1. A query without a similar training query gets an
    empty dict.
    """
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`. Return: for each query of `test`, a dict from possible answers to their
    # weights; the answers with the largest weights are guessed.
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+")
    train_vectors = vectorizer.fit_transform(train["text"])
    cosine = (vectorizer.transform(test["text"]) @ train_vectors.T).tocsr()
    answers = train["answers"].tolist()
    weights_by_query = []
    # The matrix has a row for each test query, and stores only cosines above 0, row by row. The
    # cosines of a row are at the positions `start` to `end` - 1 of `data`. The same positions of
    # `indices` hold the training queries.
    for start, end in zip(cosine.indptr[:-1], cosine.indptr[1:], strict=True):
        similarity = cosine.data[start:end]
        train_rows = cosine.indices[start:end]
        weights: dict[str, float] = {}
        for nearest in np.argsort(-similarity, kind="stable")[:N_NEAREST]:
            right_answers = answers[train_rows[nearest]]
            # The vote of a training query is divided among its right answers.
            vote = float(similarity[nearest]) ** POWER / len(right_answers)
            for answer in right_answers:
                weights[answer] = weights.get(answer, 0.0) + vote
        # Scale the weights to the sum 1.
        total = sum(weights.values())
        weights_by_query.append({answer: weight / total for answer, weight in weights.items()})
    return weights_by_query
    # ---- End of the model. --------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return queries.model_parser(__doc__)


def main() -> None:
    """Guess the answers and write them."""
    queries.run_model(build_parser().parse_args(), weigh_by_similarity)


if __name__ == "__main__":
    cli.run(main)
