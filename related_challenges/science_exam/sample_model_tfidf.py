"""Science exam baseline: guess first the option whose TF-IDF vector is closest to the question's.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_tfidf.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  MAP@3 0.30 on the 200 public questions, worse than chance (0.3667);
         tests/benchmarks/related_challenges.md says why
"""

import argparse

from common import cli
from common.arrays import FloatArray

import exam
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer


def cosine_with_question(questions: pd.DataFrame) -> FloatArray:
    """Return the TF-IDF cosine of each option with its question, shape (questions, 5)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `questions`. Return: the scores of their options; the highest score is guessed first.
    texts = exam.option_texts(questions)
    vectorizer = TfidfVectorizer().fit([*questions["prompt"], *texts])
    # A question's vector is repeated for each of its options.
    prompt_vectors = vectorizer.transform(np.repeat(questions["prompt"], len(exam.LABELS)))
    option_vectors = vectorizer.transform(texts)
    # The vectors have length 1, so their dot product is the cosine.
    cosine = prompt_vectors.multiply(option_vectors).sum(axis=1)
    return np.asarray(cosine).reshape(len(questions), len(exam.LABELS))
    # ---- End of the model. --------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    # The model does not learn from the training questions, so its parser has no flag --seed.
    return exam.model_parser(__doc__, learns=False)


def main() -> None:
    """Predict the answers, which takes no training, and write them."""
    exam.run_fixed_model(build_parser().parse_args(), cosine_with_question)


if __name__ == "__main__":
    cli.run(main)
