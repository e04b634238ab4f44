"""Student responses sample model: boosting on how the answer's words match reference answers.

Run:     python related_challenges/student_response/local_data_split.py --by_question
         python related_challenges/student_response/sample_model_similarity_boosting.py
         python related_challenges/student_response/local_evaluation.py
         (--test_dir DIR predicts the test sets in DIR instead of folds)
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.673, macro F1 0.609 on the BEETLE training answers by question, 5-way, 10 folds

Boosted and random trees, their probabilities summed, made for questions that no answer has been
learned from. The features are those of `alignment.py` and `similarity.py`, and the opinion of a
linear model on words, which it gives on training answers as well: on those that it has not learned
from. Answers to questions of the training answers get models of their own, whose linear model
knows the words of each question.
"""

import argparse
from typing import Any

from common import cli, splits
from common.arrays import BoolArray, FloatArray, IntArray
from related_challenges import folds

import alignment
import numpy as np
import responses
import similarity
from scipy.sparse import csr_array, hstack
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.svm import LinearSVC
from tqdm import tqdm

# Chosen on folds of seed 1; the scores are of seed 0.
N_INNER_FOLDS = 4
SVM_COST = 0.1
BOOSTING: dict[str, Any] = {
    "max_iter": 150,
    "learning_rate": 0.05,
    "max_leaf_nodes": 12,
    "early_stopping": False,
    "class_weight": "balanced",
    "random_state": 0,
}
TREES: dict[str, Any] = {
    "n_estimators": 300,
    "min_samples_leaf": 3,
    "max_features": 0.3,
    "class_weight": "balanced",
    "random_state": 0,
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return responses.model_parser(__doc__)


def main() -> None:
    """Load, model, predict, write."""
    options = build_parser().parse_args()
    answers, splits = responses.read(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `label` of those to learn from. Out: `prediction`, a label's number for each.
    similarities, question = similarity.describe(answers), answers["question"].to_numpy()
    matches, marked = alignment.Matches(answers), alignment.mark_words(answers)
    in_question = [
        " ".join(f"{number}_{word}" for word in alignment.stems(text))
        for number, text in zip(question, answers["text"], strict=True)
    ]
    prediction = np.empty(len(answers), int)
    for train, test, label in tqdm(splits, "fits", disable=None):
        features = np.hstack([matches.describe(train), similarities])
        is_known = np.isin(question, question[train])
        for part, is_new in ((test & ~is_known, True), (test & is_known, False)):
            if not part.any():
                continue
            terms = [similarity.weigh_terms(marked, train, token_pattern=r"\S+", min_df=2)]
            if not is_new:
                pieces = {"analyzer": "char_wb", "ngram_range": (2, 5), "min_df": 2}
                terms.append(similarity.weigh_terms(answers["text"], train, **pieces))
                terms.append(similarity.weigh_terms(in_question, train, token_pattern=r"\S+"))
            group = question if is_new else np.arange(len(answers))
            opinions = ask_words(csr_array(hstack(terms)), label, train, group)
            both = np.hstack([features, opinions])
            models = HistGradientBoostingClassifier(**BOOSTING), ExtraTreesClassifier(**TREES)
            probability = sum(
                model.fit(both[train], label[train]).predict_proba(both[part]) for model in models
            )
            prediction[part] = models[0].classes_[np.argmax(probability, axis=1)]
    # ---- End of the model. --------------------------------------------------------------------

    responses.write(options, answers, prediction)


def ask_words(terms: csr_array, label: IntArray, train: BoolArray, group: IntArray) -> FloatArray:
    """Ask linear models on the weights of terms for each label's score, shape (answers, labels).

    On the answers to learn from, the opinion is that of a model of other groups: what must stay
    together is the question of an answer if answers to new questions are to be predicted.
    """
    rows = np.flatnonzero(train)
    own_group = np.unique(group[rows], return_inverse=True)[1]
    if not own_group.any():  # One group alone cannot be divided.
        own_group = np.arange(len(rows))
    inner = splits.assign_folds(own_group, min(N_INNER_FOLDS, own_group.max() + 1), 0)
    parts = [(rows[known], rows[asked]) for known, asked in folds.splits(inner)]
    opinions = np.zeros((terms.shape[0], label[rows].max() + 1))
    for known, asked in [*parts, (rows, np.flatnonzero(~train))]:
        if len(np.unique(label[known])) < 2:  # No opinion.
            continue
        model = LinearSVC(C=SVM_COST, class_weight="balanced", random_state=0)
        model.fit(terms[known], label[known])
        scores = model.decision_function(terms[asked])
        # With two labels there is one score: of the second.
        scores = scores if scores.ndim == 2 else np.column_stack([-scores, scores])
        opinions[np.ix_(asked, model.classes_)] = scores
    return opinions


if __name__ == "__main__":
    cli.run(main)
