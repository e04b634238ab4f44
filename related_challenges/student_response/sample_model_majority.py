"""Student responses baseline: the most frequent label for every answer.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/sample_model_majority.py
         python related_challenges/student_response/local_evaluation.py
         (--test_dir DIR predicts the test sets in DIR instead of folds)
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.42, macro F1 0.12 on the BEETLE training answers, 5-way, 10 folds
"""

from common import cli

import numpy as np
import train_and_test


def main() -> None:
    """Load, model, predict, write."""
    options = train_and_test.parse_flags(__doc__)
    answers, splits = train_and_test.read(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, and `label` where it may be learned from. Out: `prediction`, a label's number
    # for each.
    prediction = np.empty(len(answers), int)
    for train, test, label in splits:
        prediction[test] = np.bincount(label[train]).argmax()
    # ---- End of the model. --------------------------------------------------------------------

    train_and_test.write(options, answers, prediction)


if __name__ == "__main__":
    cli.run(main)
