"""Student responses sample model: a pruned decision tree on eight measures of similarity.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/sample_model_lexical_similarity.py
         python related_challenges/student_response/local_evaluation.py
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.548, macro F1 0.445 on the BEETLE training answers, 5-way, 10 folds

The baseline of Dzikovska et al. (2012): overlap, F1, Lesk and cosine of the answer with the
question and with the best reference answer. How far to prune is chosen in each fold by
cross-validation within its training answers alone.
"""

import numpy as np
import responses
import similarity
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from common import challenge, cli, folds, layout

# Cost of a leaf to choose from, as a share of all training answers' Gini impurity.
PRUNING = (0.0003, 0.0005, 0.0008, 0.0012, 0.002)


def main() -> None:
    """Load, model, predict, write."""
    p = challenge.model_parser(__doc__, __file__)
    test_input = challenge.data_dir(__file__) / layout.TEST_INPUT_DIR.name
    challenge.add_folder(p, "--submission_template_dir", test_input)
    challenge.add_file(p, "--submission_template_file", responses.FOLDS)
    options = p.parse_args()
    answers = responses.read_responses(options.input_dir)
    template = options.submission_template_dir / options.submission_template_file
    fold = folds.read_folds(template, answers.ids)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`. Out: `prediction`, a label's number for each, learnt from other folds.
    features = similarity.describe(answers)
    prediction = np.empty(len(answers), int)
    for train, test in folds.splits(fold):
        tree = GridSearchCV(
            DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
            {"ccp_alpha": PRUNING},
            scoring="f1_macro",
            cv=StratifiedKFold(5, shuffle=True, random_state=0),
        )
        tree.fit(features[train], answers.label[train])
        prediction[test] = tree.predict(features[test])
    # ---- End of the model. --------------------------------------------------------------------

    path = options.output_dir / options.output_file
    responses.write_predictions(path, answers, prediction, template)
    print(f"written: {cli.show(path)} ({len(answers):,} rows)")


if __name__ == "__main__":
    cli.run(main)
