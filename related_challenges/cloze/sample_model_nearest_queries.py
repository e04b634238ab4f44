"""Cloze sample model: the answers of the most similar training queries.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_nearest_queries.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  0.363 on the rebuilt training queries, 5 folds

The similarity of two queries is the cosine of their TF-IDF vectors of words and pairs of words. The
thirty most similar training queries vote for their answers, each with its similarity cubed.
"""

import argparse

from common import cli

import numpy as np
import pandas as pd
import queries
from sklearn.feature_extraction.text import TfidfVectorizer

# Number of training queries that vote.
N_NEAREST = 30
# A vote is the similarity to this power: more lets the most similar queries decide.
POWER = 3


def weigh_by_similarity(train: pd.DataFrame, test: pd.DataFrame) -> list[dict[str, float]]:
    """Weigh answers for every query of `test` by the votes of similar training queries.

    The weights of a query sum to 1; a query that is similar to none has no weights.
    """
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`. Return: for every query of `test`, the weights of possible answers.
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+")
    known = vectorizer.fit_transform(train["text"])
    cosine = (vectorizer.transform(test["text"]) @ known.T).tocsr()
    answers = train["answers"].tolist()
    weights_by_query = []
    for start, end in zip(cosine.indptr[:-1], cosine.indptr[1:], strict=True):
        # The training queries that share a word with this query.
        similarity = cosine.data[start:end]
        rows = cosine.indices[start:end]
        weights: dict[str, float] = {}
        for index in np.argsort(-similarity, kind="stable")[:N_NEAREST]:
            right_answers = answers[rows[index]]
            vote = float(similarity[index]) ** POWER / len(right_answers)
            for answer in right_answers:
                weights[answer] = weights.get(answer, 0.0) + vote
        total = sum(weights.values()) or 1.0
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
