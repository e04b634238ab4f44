"""Cloze sample model: guess what followed the words before the gap in other queries.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_back_off.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  token F1 0.342 on 8,039 training queries rebuilt from a tokenised copy, 5 folds

Most gaps end their sentence, so the words left of the gap say what is asked for. A context is the
last zero to five of these words. For each context, an answer gets a weight: among the training
queries with that context, the share whose right answer it is. Longer contexts count more
(interpolated back-off, after Jelinek and Mercer 1980).
"""

import argparse
import re
from collections import Counter

from common import cli

import pandas as pd
import queries

# Number of words in the longest context.
MAX_WORDS = 5
# If a context is one word longer, its weight is this many times as large.
GROWTH = 3.0
# The share of an answer among the queries with a context is count / n_queries. The model uses the
# smoothed share count / (n_queries + HALF_TRUST) instead. If HALF_TRUST queries have the context,
# the smoothed share is half of the share. If many queries have it, the two are almost equal.
HALF_TRUST = 3.0
# To save time, only the most frequent answers of each context are kept, at most this many.
MAX_ANSWERS = 20


def weigh_by_context(train: pd.DataFrame, test: pd.DataFrame) -> list[dict[str, float]]:
    """Weigh possible answers to each query of `test` by its context, the words before the gap.

    The weights of a query's answers sum to 1.
    """
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`. Return: for each query of `test`, a dict from possible answers to their
    # weights; the answers with the largest weights are guessed.
    n_queries: Counter[tuple[str, ...]] = Counter()
    answer_counts: dict[tuple[str, ...], Counter[str]] = {}
    # Count the training queries with each context, and how many of them have each answer.
    for text, answers in zip(train["text"], train["answers"], strict=True):
        for context in contexts_before_gap(text):
            n_queries[context] += 1
            answer_counts.setdefault(context, Counter()).update(answers)
    frequent_answers = {
        context: counts.most_common(MAX_ANSWERS) for context, counts in answer_counts.items()
    }

    weights_by_query = []
    for text in test["text"]:
        weights: dict[str, float] = {}
        for context in contexts_before_gap(text):
            # Longer contexts count more.
            context_weight = GROWTH ** len(context)
            for answer, count in frequent_answers.get(context, []):
                # HALF_TRUST makes the share smaller if few training queries have the context.
                share = count / (n_queries[context] + HALF_TRUST)
                weights[answer] = weights.get(answer, 0.0) + context_weight * share
        total = sum(weights.values())
        weights_by_query.append({answer: weight / total for answer, weight in weights.items()})
    return weights_by_query
    # ---- End of the model. --------------------------------------------------------------------


def contexts_before_gap(text: str) -> list[tuple[str, ...]]:
    """Return the contexts of a query: the last 0 to `MAX_WORDS` words left of its gap."""
    left_of_gap = text.partition(queries.MASK)[0]
    words = re.findall(r"\w+", left_of_gap.lower())
    max_words = min(MAX_WORDS, len(words))
    # words[-n_words:] would be wrong here: for n_words = 0, it gives all words.
    return [tuple(words[len(words) - n_words :]) for n_words in range(max_words + 1)]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return queries.model_parser(__doc__)


def main() -> None:
    """Guess the answers and write them."""
    queries.run_model(build_parser().parse_args(), weigh_by_context)


if __name__ == "__main__":
    cli.run(main)
