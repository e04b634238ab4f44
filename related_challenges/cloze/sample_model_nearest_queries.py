"""Cloze sample model: the answers of the most similar training queries.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_nearest_queries.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  0.363 on the rebuilt training queries, 5 folds

The similarity of two queries is the cosine of their TF-IDF vectors of words and pairs of words; the
thirty most similar queries vote with its cube.
"""

import argparse

from common import cli

import numpy as np
import pandas as pd
import queries
from sklearn.feature_extraction.text import TfidfVectorizer

N_NEAREST = 30
POWER = 3


def weigh_by_similarity(train: pd.DataFrame, test: pd.DataFrame) -> list[dict[str, float]]:
    """Weigh answers for every query of `test` by similar training queries; weights sum to 1."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`. Out: the weights of answers that are returned, for every query.
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+")
    known = vectorizer.fit_transform(train["text"])
    cosine = (vectorizer.transform(test["text"]) @ known.T).tocsr()
    known_answers = train["answers"].tolist()
    weighed = []
    for start, end in zip(cosine.indptr[:-1], cosine.indptr[1:], strict=True):
        value, row = cosine.data[start:end], cosine.indices[start:end]
        weights: dict[str, float] = {}
        for place in np.argsort(-value, kind="stable")[:N_NEAREST]:
            answers = known_answers[row[place]]
            for answer in answers:
                vote = float(value[place]) ** POWER / len(answers)
                weights[answer] = weights.get(answer, 0.0) + vote
        total = sum(weights.values()) or 1.0
        weighed.append({answer: weight / total for answer, weight in weights.items()})
    return weighed
    # ---- End of the model. --------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return queries.model_parser(__doc__)


def main() -> None:
    """Guess the answers and write them."""
    queries.run_model(build_parser().parse_args(), weigh_by_similarity)


if __name__ == "__main__":
    cli.run(main)
