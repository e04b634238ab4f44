"""Science exam sample model: a pairwise logistic ranker on simple features of the texts.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_ranker.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  0.54 on the 200 public questions, less than the longest option first (0.58)

The ranker learns from pairs of a right and a wrong option of the same question which differences of
features tell them apart (Joachims 2002, with a logistic loss).

The public test.csv repeats the training questions, but no question is predicted by a model that has
seen its answer. Training questions are divided into folds by their prompt, and each fold is
predicted by a model trained on the other folds. Other questions are predicted by a model trained on
all training questions.
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
    # In: `train`, `questions` and `splits`, the rows of both for every fit.
    # Out: `scores` of the options of `questions`, shape (questions, 5).
    train_features = describe(train)
    features = describe(questions)
    answer = train["answer"].map(exam.LABELS.index).to_numpy()
    scores = np.empty((len(questions), len(exam.LABELS)))
    for known, asked in splits:
        weights = fit_ranker(train_features[known], answer[known])
        scores[asked] = features[asked] @ weights
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options, questions, scores)


def describe(questions: pd.DataFrame) -> FloatArray:
    """Describe every option by seven features, shape (questions, 5, 7).

    Each feature is relative to its mean over the question's options.
    """
    n_questions = len(questions)
    n_options = len(exam.LABELS)
    texts = exam.option_texts(questions)
    length = np.array([len(text) for text in texts], float)
    length_rank = length.reshape(n_questions, n_options).argsort(axis=1).argsort(axis=1)
    n_digits = [sum(map(str.isdigit, text)) for text in texts]
    columns = [
        np.log1p(length),
        length_rank.ravel() / n_options,
        exam.shared_words(questions).ravel(),
        cosine_with_question(questions).ravel(),
        cosine_with_other_options(questions),
        [len(text) / len(text.split()) for text in texts],
        [np.log1p(n) for n in n_digits],
    ]
    features = np.stack(columns, axis=1).reshape(n_questions, n_options, -1)
    return np.asarray(features - features.mean(axis=1, keepdims=True))


def cosine_with_other_options(questions: pd.DataFrame) -> FloatArray:
    """Return the mean TF-IDF cosine of every option with its question's others, (options,)."""
    n_options = len(exam.LABELS)
    texts = exam.option_texts(questions)
    vectors = TfidfVectorizer().fit([*questions["prompt"], *texts]).transform(texts)
    # Adds up the vectors of a question's options: 1 where the option (row) is of the question.
    of_question = csr_array(np.repeat(np.eye(len(questions)), n_options, axis=0))
    question_sums = of_question @ (of_question.T @ vectors)
    cosine_sum = np.asarray(vectors.multiply(question_sums).sum(axis=1))
    # The sum includes 1, the cosine of the option with itself.
    return np.asarray((cosine_sum.ravel() - 1) / (n_options - 1))


def compare_options(features: Any, answer: IntArray) -> Any:
    """Return the right option's features minus those of each wrong option.

    Parameters
    ----------
    features : ndarray or csr_array, shape (5 * questions, features)
        Features of the options, those of the first question first.
    answer : ndarray of int, shape (questions,)
        Index of the right option.

    Returns
    -------
    ndarray or csr_array, shape (4 * questions, features)
    """
    is_right = np.arange(len(exam.LABELS)) == answer[:, None]
    right = np.repeat(np.flatnonzero(is_right), len(exam.LABELS) - 1)
    return features[right] - features[np.flatnonzero(~is_right)]


def fit_ranker(features: FloatArray, answer: IntArray) -> FloatArray:
    """Return weights, shape (features,), by which right options score more than wrong ones."""
    pairs = compare_options(features.reshape(-1, features.shape[-1]), answer)
    scale = pairs.std(axis=0) + 1e-9
    # Each pair stands in both orders, so that there are two classes to tell apart.
    both_orders = np.concatenate([pairs, -pairs]) / scale
    is_right_first = np.repeat([1, 0], len(pairs))
    model = LogisticRegression(C=0.1, fit_intercept=False).fit(both_orders, is_right_first)
    return np.asarray(model.coef_[0] / scale)


if __name__ == "__main__":
    cli.run(main)
