"""Student responses sample model: a pruned decision tree on eight measures of similarity.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/sample_model_lexical_similarity.py
         python related_challenges/student_response/local_evaluation.py
         (--test_dir DIR predicts the test sets in DIR instead of folds)
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.548, macro F1 0.445 on the BEETLE training answers, 5-way, 10 folds

The baseline of Dzikovska et al. (2012): overlap, F1, Lesk and cosine of the answer with the
question and with the best reference answer. How far to prune is chosen in each fold by
cross-validation within its training answers alone.
"""

import argparse

from common import cli

import numpy as np
import responses
import similarity
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

# Cost of a leaf to choose from, as a share of all training answers' Gini impurity.
PRUNING = (0.0003, 0.0005, 0.0008, 0.0012, 0.002)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return responses.model_parser(__doc__)


def main() -> None:
    """Load, model, predict, write."""
    options = build_parser().parse_args()
    answers, splits = responses.read(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `label` of those to learn from. Out: `prediction`, a label's number for each.
    features = similarity.describe(answers)
    prediction = np.empty(len(answers), int)
    for train, test, label in splits:
        tree = GridSearchCV(
            DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
            {"ccp_alpha": PRUNING},
            scoring="f1_macro",
            cv=StratifiedKFold(5, shuffle=True, random_state=0),
        )
        tree.fit(features[train], label[train])
        prediction[test] = tree.predict(features[test])
    # ---- End of the model. --------------------------------------------------------------------

    responses.write(options, answers, prediction)


if __name__ == "__main__":
    cli.run(main)
