"""Science exam sample model: other samples' scores and the options' words, blended by a ranker.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_ensemble.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  0.58 on the 200 public questions, as the longest option first (0.58); of the other samples
         alone (--members length overlap cosine) 0.56

Each member scores the options of a question: by length, by words shared with the question, by
cosine with it, or by its own words, each a feature. A pairwise logistic ranker weighs them, as in
sample_model_ranker.py; its penalty is chosen by cross-validation inside the training questions. No
question is predicted by a model that has seen its answer: each fold is predicted by a model trained
on the others, questions that are not among the training ones by a model trained on all.
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
# Of the ranker; the larger, the less it is held back.
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# What scores options, (questions, 5); "words" are a member of another kind.
SCORES: dict[str, Callable[[pd.DataFrame], FloatArray]] = {
    "length": lambda questions: questions[[*exam.LABELS]].map(len).to_numpy(float),
    "overlap": exam.shared_words,
    "cosine": cosine_with_question,
}
MEMBERS = (*SCORES, "words")
# A word counts if so many options hold it.
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
    # In: `train`, `questions` and their `splits`. Out: `scores`, shape (questions, 5).
    answer = train["answer"].map(exam.LABELS.index).to_numpy()
    scores = np.empty((len(questions), len(exam.LABELS)))
    for learned, asked in tqdm(splits, "folds", disable=None):
        vectorizer = TfidfVectorizer(min_df=min(MIN_OPTIONS, learned.sum()), sublinear_tf=True)
        vectorizer.fit(exam.texts_of(train[learned]))
        known, features = (describe(one, options.members, vectorizer) for one in (train, questions))
        known = known[np.repeat(learned, len(exam.LABELS))]
        weights = fit_ranker(known, answer[learned], options.seed)
        scores[asked] = (features @ weights).reshape(scores.shape)[asked]
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options, questions, scores)


def describe(questions: pd.DataFrame, members: list[str], vectorizer: TfidfVectorizer) -> csr_array:
    """Describe options by standardised scores and words' TF-IDF, (5 * questions, features)."""
    blocks = []
    for member in members:
        if member == "words":
            blocks.append(csr_array(vectorizer.transform(exam.texts_of(questions))))
            continue
        score = SCORES[member](questions)
        deviation = score.std(axis=1, keepdims=True)
        score = (score - score.mean(axis=1, keepdims=True)) / np.where(deviation, deviation, 1)
        blocks.append(csr_array(score.reshape(-1, 1)))
    return csr_array(hstack(blocks))


def fit_ranker(features: csr_array, answer: IntArray, seed: int) -> FloatArray:
    """Fit weights, (features,), with a penalty chosen by log loss in folds of the seed."""
    pairs = compare_options(features, answer)
    # Each pair in both orders, so that there are two classes to tell apart.
    both, label = csr_array(vstack([pairs, -pairs])), np.repeat([1, 0], pairs.shape[0])
    question = np.tile(np.repeat(np.arange(len(answer)), len(exam.LABELS) - 1), 2)
    inner = splits.assign_folds(question, min(N_INNER_FOLDS, len(answer)), seed)
    model = LogisticRegressionCV(
        Cs=PENALTIES,
        cv=[(np.flatnonzero(a), np.flatnonzero(b)) for a, b in folds.splits(inner)],
        scoring="neg_log_loss",
        fit_intercept=False,
        solver="liblinear",
        # As scikit-learn 1.10 will have them by default.
        l1_ratios=(0,),
        use_legacy_attributes=False,
    )
    return np.asarray(model.fit(both, label).coef_[0])


if __name__ == "__main__":
    cli.run(main)
