"""Cloze sample model: what followed the same words in other queries.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_back_off.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  0.342 on the rebuilt training queries, 5 folds

Most gaps end their sentence, so the words left of the gap say what is asked for. A context is the
last zero to five of these words. An answer gets from each context the share of the training queries
with this context that it answers; longer contexts count more (interpolated back-off, after Jelinek
and Mercer 1980).
"""

import argparse
import re
from collections import Counter

from common import cli

import pandas as pd
import queries

# Number of words in the longest context.
MAX_WORDS = 5
# Each further word multiplies a context's weight by this factor.
GROWTH = 3.0
# A context that this many queries have counts half as much as one that very many have.
HALF_TRUST = 3.0
# Number of answers kept of each context, to save time.
MAX_ANSWERS = 20


def weigh_by_context(train: pd.DataFrame, test: pd.DataFrame) -> list[dict[str, float]]:
    """Weigh answers for every query of `test` by the words left of its gap.

    The weights of a query sum to 1.
    """
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`. Return: for every query of `test`, the weights of possible answers.
    n_queries: Counter[tuple[str, ...]] = Counter()
    n_queries_by_answer: dict[tuple[str, ...], Counter[str]] = {}
    for text, answers in zip(train["text"], train["answers"], strict=True):
        for context in contexts(text):
            n_queries[context] += 1
            n_queries_by_answer.setdefault(context, Counter()).update(answers)
    frequent_answers = {
        context: counts.most_common(MAX_ANSWERS) for context, counts in n_queries_by_answer.items()
    }

    weights_by_query = []
    for text in test["text"]:
        weights: dict[str, float] = {}
        for context in contexts(text):
            for answer, count in frequent_answers.get(context, []):
                share = count / (n_queries[context] + HALF_TRUST)
                weights[answer] = weights.get(answer, 0.0) + GROWTH ** len(context) * share
        total = sum(weights.values())
        weights_by_query.append({answer: weight / total for answer, weight in weights.items()})
    return weights_by_query
    # ---- End of the model. --------------------------------------------------------------------


def contexts(text: str) -> list[tuple[str, ...]]:
    """Return the contexts of a query: the last 0 to `MAX_WORDS` words left of its gap."""
    left_of_gap = text.partition(queries.MASK)[0]
    words = re.findall(r"\w+", left_of_gap.lower())
    max_words = min(MAX_WORDS, len(words))
    return [tuple(words[len(words) - n_words :]) for n_words in range(max_words + 1)]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return queries.model_parser(__doc__)


def main() -> None:
    """Guess the answers and write them."""
    queries.run_model(build_parser().parse_args(), weigh_by_context)


if __name__ == "__main__":
    cli.run(main)
