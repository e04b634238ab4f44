"""Science exam sample model: a ranker blends other samples' scores and the options' words.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_ensemble.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  0.58 on the 200 public questions, as the longest option first (0.58); 0.56 with the other
         samples' scores alone (--members length overlap cosine)

A member gives one feature: the option's length, the words it shares with the question, or its
cosine with the question. The member `words` gives a feature for each word of the option. A pairwise
logistic ranker weighs the features, as in sample_model_ranker.py; its penalty is chosen by
cross-validation inside the training questions.

No question is predicted by a model that has seen its answer. Each fold is predicted by a model
trained on the other folds. Questions that are not among the training questions are predicted by a
model trained on all of them.
"""

import argparse
from collections.abc import Callable

from common import cli, splits
from common.arrays import FloatArray, IntArray
from related_challenges import folds

import exam
import numpy as np
import pandas as pd
from sample_model_ranker import compare_options
from sample_model_tfidf import cosine_with_question
from scipy.sparse import csr_array, hstack, vstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from tqdm import tqdm

N_INNER_FOLDS = 5
# Inverse strengths of the ranker's penalty to choose from.
INVERSE_PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# Members that give the options one score each, shape (questions, 5).
SCORES: dict[str, Callable[[pd.DataFrame], FloatArray]] = {
    "length": lambda questions: questions[list(exam.LABELS)].map(len).to_numpy(float),
    "overlap": exam.shared_words,
    "cosine": cosine_with_question,
}
MEMBERS = (*SCORES, "words")
# A word is a feature if at least this many options hold it.
MIN_OPTIONS = 5


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = exam.model_parser(__doc__)
    cli.add_names(parser, "--members", "what to blend, of", MEMBERS, ["length", "words"])
    return parser


def main() -> None:
    """Load, model, predict, write."""
    options = build_parser().parse_args()
    questions = exam.read_asked(options)
    train, splits = exam.read_train(options, questions)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `questions` and `splits`, the rows of both for every fit.
    # Out: `scores` of the options of `questions`, shape (questions, 5).
    answer = train["answer"].map(exam.LABELS.index).to_numpy()
    scores = np.empty((len(questions), len(exam.LABELS)))
    for known, asked in tqdm(splits, "folds", disable=None):
        vectorizer = TfidfVectorizer(min_df=min(MIN_OPTIONS, known.sum()), sublinear_tf=True)
        vectorizer.fit(exam.option_texts(train[known]))
        train_features = describe(train, options.members, vectorizer)
        features = describe(questions, options.members, vectorizer)
        # Rows of the options of the questions to learn from.
        rows = np.repeat(known, len(exam.LABELS))
        weights = fit_ranker(train_features[rows], answer[known], options.seed)
        scores[asked] = (features @ weights).reshape(scores.shape)[asked]
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options, questions, scores)


def describe(questions: pd.DataFrame, members: list[str], vectorizer: TfidfVectorizer) -> csr_array:
    """Describe options by the features of some members, shape (5 * questions, features).

    Scores are standardised within each question; words are weighed by TF-IDF.
    """
    blocks = []
    for member in members:
        if member == "words":
            blocks.append(csr_array(vectorizer.transform(exam.option_texts(questions))))
            continue
        score = SCORES[member](questions)
        deviation = score.std(axis=1, keepdims=True)
        score = (score - score.mean(axis=1, keepdims=True)) / np.where(deviation, deviation, 1)
        blocks.append(csr_array(score.reshape(-1, 1)))
    return csr_array(hstack(blocks))


def fit_ranker(features: csr_array, answer: IntArray, seed: int) -> FloatArray:
    """Return weights, shape (features,), by which right options score more than wrong ones.

    The penalty is the one with the smallest log loss in cross-validation; `seed` gives the folds.
    """
    pairs = compare_options(features, answer)
    # Each pair stands in both orders, so that there are two classes to tell apart.
    both_orders = csr_array(vstack([pairs, -pairs]))
    is_right_first = np.repeat([1, 0], pairs.shape[0])
    # All pairs of a question are in the same fold.
    question = np.tile(np.repeat(np.arange(len(answer)), len(exam.LABELS) - 1), 2)
    fold = splits.assign_folds(question, min(N_INNER_FOLDS, len(answer)), seed)
    inner_splits = [
        (np.flatnonzero(is_train), np.flatnonzero(is_test))
        for is_train, is_test in folds.splits(fold)
    ]
    model = LogisticRegressionCV(
        Cs=INVERSE_PENALTIES,
        cv=inner_splits,
        scoring="neg_log_loss",
        fit_intercept=False,
        solver="liblinear",
        # The defaults of scikit-learn from 1.10 on.
        l1_ratios=(0,),
        use_legacy_attributes=False,
    )
    return np.asarray(model.fit(both_orders, is_right_first).coef_[0])


if __name__ == "__main__":
    cli.run(main)
