"""Cloze sample model: what followed the same words in other queries.

Run:     python related_challenges/cloze/local_data_split.py
         python related_challenges/cloze/sample_model_back_off.py --local
         python related_challenges/cloze/local_evaluation.py
Without --local it predicts the test queries.
Writes:  data/test_output/submission.csv
Scores:  0.342 on the rebuilt training queries, 5 folds

Most gaps end their sentence, so the words left of the gap say what is asked for. An answer's weight
sums how often, as a share, it followed the last zero to five of these words; longer contexts count
more (interpolated back-off, after Jelinek and Mercer 1980).
"""

import argparse
import re
from collections import Counter

from common import cli

import pandas as pd
import queries

# Words left of the gap to look at; each further word multiplies a context's weight by GROWTH.
MAX_WORDS = 5
GROWTH = 3.0
# A context seen this often counts half as much as one seen endlessly often.
HALF_TRUST = 3.0


def weigh_by_context(train: pd.DataFrame, test: pd.DataFrame) -> list[dict[str, float]]:
    """Weigh answers for every query of `test` by the words left of its gap; weights sum to 1."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `test`. Out: the weights of answers that are returned, for every query.
    frequency: dict[tuple[str, ...], Counter[str]] = {}
    n_queries: Counter[tuple[str, ...]] = Counter()
    for text, answers in zip(train["text"], train["answers"], strict=True):
        n_queries.update(contexts(text))
        for context in contexts(text):
            frequency.setdefault(context, Counter()).update(answers)
    frequent = {context: counts.most_common(20) for context, counts in frequency.items()}
    weighed = []
    for text in test["text"]:
        weights: dict[str, float] = {}
        for context in contexts(text):
            for answer, count in frequent.get(context, []):
                share = count / (n_queries[context] + HALF_TRUST)
                weights[answer] = weights.get(answer, 0.0) + GROWTH ** len(context) * share
        total = sum(weights.values())
        weighed.append({answer: weight / total for answer, weight in weights.items()})
    return weighed
    # ---- End of the model. --------------------------------------------------------------------


def contexts(text: str) -> list[tuple[str, ...]]:
    """Return the last zero to five words left of the gap of a text."""
    words = re.findall(r"\w+", text.partition(queries.MASK)[0].lower())
    return [tuple(words[len(words) - n :]) for n in range(min(MAX_WORDS, len(words)) + 1)]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return queries.model_parser(__doc__)


def main() -> None:
    """Guess the answers and write them."""
    queries.run_model(build_parser().parse_args(), weigh_by_context)


if __name__ == "__main__":
    cli.run(main)
