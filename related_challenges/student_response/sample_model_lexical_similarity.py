"""Student responses sample model: a pruned decision tree on eight measures of similarity.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/sample_model_lexical_similarity.py --local
         python related_challenges/student_response/local_evaluation.py
With --test_dir DIR it predicts the test sets in DIR instead of the folds.
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.530, macro F1 0.441 on the BEETLE training answers, 5 labels, 10 folds

This is the baseline of Dzikovska et al. (2012). The measures are overlap, F1, Lesk and cosine, each
once with the question and once with the reference answer for which it is largest. How far the tree
is pruned is chosen by cross-validation within the training answers of each fold.
"""

import argparse

from common import cli

import numpy as np
import responses
import similarity
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

# Values of `ccp_alpha` to choose from. Pruning keeps a subtree only if it lowers the tree's Gini
# impurity by at least this much for each leaf that it adds.
PRUNING_ALPHAS = (0.0003, 0.0005, 0.0008, 0.0012, 0.002)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return responses.model_parser(__doc__)


def main() -> None:
    """Read the answers, fit the models, predict and write the submission."""
    options = build_parser().parse_args()
    # Each fit learns from some of the answers and predicts others; `fits` says which.
    answers, fits = responses.read_fits(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, and three arrays for each fit in `fits`. `train` and `test` are masks of the
    # answers to learn from and of the answers to predict. `label` holds the label number of each
    # answer, which is known only where `train` is true.
    # Out: `prediction`, the label number of every answer to predict, shape (answers,).
    features = similarity.describe(answers)
    prediction = np.empty(len(answers), int)
    for train, test, label in fits:
        tree = GridSearchCV(
            DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
            {"ccp_alpha": PRUNING_ALPHAS},
            scoring="f1_macro",
            cv=StratifiedKFold(5, shuffle=True, random_state=0),
        )
        tree.fit(features[train], label[train])
        prediction[test] = tree.predict(features[test])
    # ---- End of the model. --------------------------------------------------------------------

    responses.write(options, answers, prediction)


if __name__ == "__main__":
    cli.run(main)
