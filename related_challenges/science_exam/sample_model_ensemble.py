"""Science exam sample model: a ranker combines other models' scores with the options' words.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_ensemble.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  MAP@3 0.58 on the 200 public questions, the same as sample_model_longest_option.py; 0.56
         with --members length overlap cosine

The ensemble has up to four members. Each of length, overlap (words shared with the question) and
cosine (with the question) gives one feature. The member words gives a feature for each word of the
option. A pairwise logistic ranker weighs the features, as in sample_model_ranker.py. The strength
of its L2 penalty is chosen by cross-validation within the training questions of each fit.

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
from sample_model_ranker import differences_from_right
from sample_model_tfidf import cosine_with_question
from scipy.sparse import csr_array, hstack, vstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from tqdm import tqdm

N_INNER_FOLDS = 5
# The ranker is a logistic regression. Cross-validation chooses the inverse strength of its L2
# penalty among these values.
INVERSE_PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# Members of the ensemble that give each of the five options of a question one score. Each function
# takes the questions and returns scores of shape (questions, 5).
SCORE_MEMBERS: dict[str, Callable[[pd.DataFrame], FloatArray]] = {
    "length": lambda questions: questions[list(exam.LABELS)].map(len).to_numpy(float),
    "overlap": exam.count_shared_words,
    "cosine": cosine_with_question,
}
MEMBERS = (*SCORE_MEMBERS, "words")
# The member "words" has a feature for each word that at least this many options of the training
# questions contain.
MIN_OPTIONS = 5


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = exam.model_parser(__doc__)
    cli.add_names(
        parser, "--members", "members of the ensemble, some of", MEMBERS, ["length", "words"]
    )
    return parser


def main() -> None:
    """Read the questions, fit the models, predict and write the submission."""
    options = build_parser().parse_args()
    questions = exam.read_questions_to_predict(options)
    train, fits = exam.plan_fits(options, questions)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `questions` and, for each fit in `fits`, two masks: rows of `train` to learn from
    # and rows of `questions` to predict.
    # Out: `scores` of the options of `questions`, shape (questions, 5).
    answer = train["answer"].map(exam.LABELS.index).to_numpy()
    scores = np.empty((len(questions), len(exam.LABELS)))
    for train_rows, test_rows in tqdm(fits, "folds", disable=None):
        # A fit on very few questions needs a lower limit, since no word might reach `MIN_OPTIONS`.
        min_options = min(MIN_OPTIONS, train_rows.sum())
        vectorizer = TfidfVectorizer(min_df=min_options, sublinear_tf=True)
        vectorizer.fit(exam.option_texts(train[train_rows]))
        train_features = describe(train, options.members, vectorizer)
        features = describe(questions, options.members, vectorizer)
        # `train_rows` has an element for each question, `train_features` a row for each option.
        option_rows = np.repeat(train_rows, len(exam.LABELS))
        weights = fit_ranker(train_features[option_rows], answer[train_rows], options.seed)
        # All questions are scored, but only the scores of this fit's questions are kept.
        all_scores = (features @ weights).reshape(scores.shape)
        scores[test_rows] = all_scores[test_rows]
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options, questions, scores)


def describe(questions: pd.DataFrame, members: list[str], vectorizer: TfidfVectorizer) -> csr_array:
    """Return features of the options of all questions, shape (5 * questions, features).

    `members` are the members of the ensemble, each of which gives features. The member "words"
    gives a feature for each word of the options: its TF-IDF weight by `vectorizer`. Every other
    member gives one feature: the score of the option by its function in `SCORE_MEMBERS`, scaled to
    mean 0 and standard deviation 1 within each question.
    """
    blocks = []
    for member in members:
        if member == "words":
            blocks.append(csr_array(vectorizer.transform(exam.option_texts(questions))))
            continue
        score = SCORE_MEMBERS[member](questions)
        deviation = score.std(axis=1, keepdims=True)
        # If all options of a question have the same score, their deviation is 0. Divide by 1 then.
        divisor = np.where(deviation, deviation, 1)
        score = (score - score.mean(axis=1, keepdims=True)) / divisor
        blocks.append(csr_array(score.reshape(-1, 1)))
    return csr_array(hstack(blocks))


def fit_ranker(features: csr_array, answer: IntArray, seed: int) -> FloatArray:
    """Fit a weight for each feature, so that right options get higher scores than wrong ones.

    `features` has a row for each option, and `answer` is the index of each question's right option.
    Cross-validation chooses the strength of the penalty with the smallest log loss. `seed`
    determines its folds.
    """
    # A row for each wrong option: its features, subtracted from the features of the right option.
    differences = differences_from_right(features, answer)
    # A classifier must predict which of two options is the right one. It needs examples of two
    # classes, so each difference is used twice: right minus wrong (class 1) and wrong minus right
    # (class 0).
    both_signs = csr_array(vstack([differences, -differences]))
    is_right_minus_wrong = np.repeat([1, 0], differences.shape[0])
    # The number of the question to which each row of `differences` belongs. A question has four
    # wrong options, so four rows.
    question_of_difference = np.repeat(np.arange(len(answer)), len(exam.LABELS) - 1)
    # The same for `both_signs`, which holds all differences and then all of them with the other
    # sign.
    question_of_row = np.tile(question_of_difference, 2)
    # Put the eight rows of a question into the same fold.
    fold = splits.assign_folds(question_of_row, min(N_INNER_FOLDS, len(answer)), seed)
    inner_splits = [
        (np.flatnonzero(is_train), np.flatnonzero(is_test))
        for is_train, is_test in folds.train_and_test(fold)
    ]
    model = LogisticRegressionCV(
        Cs=INVERSE_PENALTIES,
        cv=inner_splits,
        scoring="neg_log_loss",
        fit_intercept=False,
        solver="liblinear",
        # With an L1 share of 0 the penalty is an L2 penalty. Both settings are the defaults from
        # scikit-learn 1.10 on; without them, earlier versions warn.
        l1_ratios=(0,),
        use_legacy_attributes=False,
    )
    return np.asarray(model.fit(both_signs, is_right_minus_wrong).coef_[0])


if __name__ == "__main__":
    cli.run(main)
