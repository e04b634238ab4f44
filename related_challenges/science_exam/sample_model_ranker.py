"""Science exam sample model: a pairwise logistic ranker on simple features of the texts.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_ranker.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  0.54 on the 200 public questions, less than the longest option first (0.58)

From pairs (right option, wrong option) of one question the ranker learns which differences of
features tell them apart (Joachims 2002, with a logistic loss). The public test.csv repeats the
training questions: no question is predicted by a model that has seen its answer. Training questions
are divided into folds by their prompt, each predicted by a model trained on the other folds; other
questions by a model trained on all.
"""

import argparse
from typing import Any

from common import cli
from common.arrays import FloatArray, IntArray

import exam
import numpy as np
import pandas as pd
from sample_model_tfidf import cosine_with_question
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return exam.model_parser(__doc__)


def main() -> None:
    """Load, model, predict, write."""
    options = build_parser().parse_args()
    questions = exam.read_asked(options)
    train, splits = exam.read_train(options, questions)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `questions` and their `splits`. Out: `scores`, shape (questions, 5).
    train_features, features = describe(train), describe(questions)
    answer = train["answer"].map(exam.LABELS.index).to_numpy()
    scores = np.empty((len(questions), len(exam.LABELS)))
    for learned, asked in splits:
        weights = fit_ranker(train_features[learned], answer[learned])
        scores[asked] = features[asked] @ weights
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options, questions, scores)


def describe(questions: pd.DataFrame) -> FloatArray:
    """Describe every option by features relative to the question's five, (questions, 5, 7)."""
    n, n_options = len(questions), len(exam.LABELS)
    texts = exam.texts_of(questions)
    vectors = TfidfVectorizer().fit([*questions["prompt"], *texts]).transform(texts)
    # The product of a vector with the sum of its question's five includes 1 for itself.
    of_question = csr_array(np.repeat(np.eye(n), n_options, axis=0))
    similar = np.asarray(vectors.multiply(of_question @ (of_question.T @ vectors)).sum(axis=1))
    length = np.array([len(text) for text in texts], float)
    features = np.stack(
        [
            np.log1p(length),
            length.reshape(n, n_options).argsort(axis=1).argsort(axis=1).ravel() / n_options,
            exam.shared_words(questions).ravel(),
            cosine_with_question(questions).ravel(),
            (similar.ravel() - 1) / (n_options - 1),
            [len(text) / len(text.split()) for text in texts],
            [np.log1p(sum(map(str.isdigit, text))) for text in texts],
        ],
        axis=1,
    ).reshape(n, n_options, -1)
    return np.asarray(features - features.mean(axis=1, keepdims=True))


def compare_options(features: Any, answer: IntArray) -> Any:
    """Return the right option's features minus each wrong one's, (4 * questions, features)."""
    is_right = np.arange(len(exam.LABELS)) == answer[:, None]
    right = np.repeat(np.flatnonzero(is_right), len(exam.LABELS) - 1)
    return features[right] - features[np.flatnonzero(~is_right)]


def fit_ranker(features: FloatArray, answer: IntArray) -> FloatArray:
    """Fit weights, (features,), so that the right option scores more than each wrong one."""
    pairs = compare_options(features.reshape(-1, features.shape[-1]), answer)
    scale = pairs.std(axis=0) + 1e-9
    # Each pair in both orders, so that there are two classes to tell apart.
    both = np.concatenate([pairs, -pairs]) / scale
    label = np.repeat([1, 0], len(pairs))
    model = LogisticRegression(C=0.1, fit_intercept=False).fit(both, label)
    return np.asarray(model.coef_[0] / scale)


if __name__ == "__main__":
    cli.run(main)
