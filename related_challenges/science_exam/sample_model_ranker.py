"""Science exam sample model: a pairwise logistic ranker on simple features of the texts.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_ranker.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  MAP@3 0.54 on the 200 public questions, less than sample_model_longest_option.py (0.58)

The ranker compares the right option of a question with each wrong one. It learns which differences
of their features tell them apart (Joachims 2002, with a logistic loss).

The public test.csv holds the training questions again. So that no model predicts a question whose
answer it has seen, training questions are divided into folds by their prompt, and each fold is
predicted by a model trained on the other folds. Questions that are not in train.csv are predicted
by a model trained on all training questions.
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

# Inverse strength of the ranker's L2 penalty.
INVERSE_PENALTY = 0.1


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return exam.model_parser(__doc__)


def main() -> None:
    """Read the questions, fit the models, predict and write the submission."""
    options = build_parser().parse_args()
    questions = exam.read_questions_to_predict(options)
    train, fits = exam.plan_fits(options, questions)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `questions` and, for each fit in `fits`, two masks: rows of `train` to learn from
    # and rows of `questions` to predict.
    # Out: `scores` of the options of `questions`, shape (questions, 5).
    train_features = describe(train)
    features_to_predict = describe(questions)
    answer = train["answer"].map(exam.LABELS.index).to_numpy()
    scores = np.empty((len(questions), len(exam.LABELS)))
    for train_rows, test_rows in fits:
        weights = fit_ranker(train_features[train_rows], answer[train_rows])
        scores[test_rows] = features_to_predict[test_rows] @ weights
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options, questions, scores)


def describe(questions: pd.DataFrame) -> FloatArray:
    """Describe each option by seven features, shape (questions, 5, 7).

    Each feature is relative to its mean over the question's options.
    """
    n_questions = len(questions)
    n_options = len(exam.LABELS)
    texts = exam.option_texts(questions)
    length = np.array([len(text) for text in texts], float)
    # Rank by length within the question, 0 for the shortest option. The first `argsort` lists the
    # options from the shortest to the longest. The second `argsort` returns the place of each
    # option in this list.
    length_rank = length.reshape(n_questions, n_options).argsort(axis=1).argsort(axis=1)
    n_digits = [sum(map(str.isdigit, text)) for text in texts]
    # Each feature has a value for each option of each question, shape (5 * questions,).
    columns = {
        "log of the length": np.log1p(length),
        "rank by length": length_rank.ravel() / n_options,
        "words shared with the question": exam.count_shared_words(questions).ravel(),
        "cosine with the question": cosine_with_question(questions).ravel(),
        "mean cosine with the other options": cosine_with_other_options(questions),
        "mean length of a word, with blanks": [len(text) / len(text.split()) for text in texts],
        "log of the number of digits": [np.log1p(n) for n in n_digits],
    }
    features = np.stack([*columns.values()], axis=1).reshape(n_questions, n_options, -1)
    return np.asarray(features - features.mean(axis=1, keepdims=True))


def cosine_with_other_options(questions: pd.DataFrame) -> FloatArray:
    """Return the mean TF-IDF cosine of each option with the other options of its question."""
    n_options = len(exam.LABELS)
    texts = exam.option_texts(questions)
    vectors = TfidfVectorizer().fit([*questions["prompt"], *texts]).transform(texts)
    # `membership` is 1 where an option (row) belongs to a question (column), else 0.
    membership = csr_array(np.repeat(np.eye(len(questions)), n_options, axis=0))
    # For each question (row), the sum of the vectors of its options.
    sum_of_question = membership.T @ vectors
    # For each option (row), the same sum: of the vectors of all options of its question.
    sum_of_options = membership @ sum_of_question
    # The cosine of two vectors of length 1 is their dot product. So the dot product of an option's
    # vector and this sum is the sum of the option's cosines with all options of its question.
    cosine_sum = np.asarray(vectors.multiply(sum_of_options).sum(axis=1))
    # The sum includes the cosine of the option with itself: 1, or 0 for an option without words,
    # such as "5", whose vector is 0.
    cosine_with_itself = np.asarray(vectors.multiply(vectors).sum(axis=1))
    return np.asarray((cosine_sum - cosine_with_itself).ravel() / (n_options - 1))


def differences_from_right(features: Any, answer: IntArray) -> Any:
    """Return the features of each question's right option minus those of each wrong option.

    Parameters
    ----------
    features : ndarray or csr_array, shape (5 * questions, features)
        Features of the options: all options of the first question, then of the second, ...
    answer : ndarray of int, shape (questions,)
        Index of the right option.

    Returns
    -------
    ndarray or csr_array, shape (4 * questions, features)
    """
    is_right = np.arange(len(exam.LABELS)) == answer[:, None]
    # `is_right` has the shape (questions, 5), and `features` has a row for each element of it,
    # question by question. Repeat the row of each right option four times, once for each wrong
    # option of its question.
    right_rows = np.repeat(np.flatnonzero(is_right), len(exam.LABELS) - 1)
    wrong_rows = np.flatnonzero(~is_right)
    return features[right_rows] - features[wrong_rows]


def fit_ranker(features: FloatArray, answer: IntArray) -> FloatArray:
    """Fit a weight for each feature, so that right options get higher scores than wrong ones."""
    # A row for each option, instead of the shape (questions, 5, features).
    option_features = features.reshape(-1, features.shape[-1])
    # A row for each wrong option: its features, subtracted from the features of the right option.
    differences = differences_from_right(option_features, answer)
    # Divide the differences by their standard deviation, so that the penalty treats all features
    # alike. 1e-9 is added to avoid a division by 0. The weights returned are for the undivided
    # features.
    scale = differences.std(axis=0) + 1e-9
    # A classifier must predict which of two options is the right one. It needs examples of two
    # classes, so each difference is used twice: right minus wrong (class 1) and wrong minus right
    # (class 0).
    both_signs = np.concatenate([differences, -differences]) / scale
    is_right_minus_wrong = np.repeat([1, 0], len(differences))
    model = LogisticRegression(C=INVERSE_PENALTY, fit_intercept=False)
    model.fit(both_signs, is_right_minus_wrong)
    return np.asarray(model.coef_[0] / scale)


if __name__ == "__main__":
    cli.run(main)
