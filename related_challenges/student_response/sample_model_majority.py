"""Student responses baseline: predict the most frequent label for every answer.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/sample_model_majority.py --local
         python related_challenges/student_response/local_evaluation.py
With --test_dir DIR it predicts the test sets in DIR instead of the folds.
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.42, macro F1 0.12 on the BEETLE training answers, 5 labels, 10 folds

`--label correct` predicts `correct` for every answer, as the majority baseline of Dzikovska et al.
(2012) does, even if another label is the most frequent.
"""

import argparse

from common import cli
from common.errors import InputError, quote

import numpy as np
import responses


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = responses.model_parser(__doc__)
    parser.add_argument(
        "--label", metavar="NAME", help="label of every answer (default: the most frequent)"
    )
    return parser


def main() -> None:
    """Read the answers, fit the models, predict and write the submission."""
    options = build_parser().parse_args()
    # Each fit learns from some of the answers and predicts others; `fits` says which.
    answers, fits = responses.read_fits(options)
    labels = responses.labels_of(answers)
    if options.label is not None and options.label not in labels:
        raise InputError(f"--label is {quote(options.label)}, expected one of {', '.join(labels)}")

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, and three arrays for each fit in `fits`. `train` and `test` are masks of the
    # answers to learn from and of the answers to predict. `label` holds the label number of each
    # answer, which is known only where `train` is true.
    # Out: `prediction`, the label number of every answer to predict, shape (answers,).
    prediction = np.empty(len(answers), int)
    for train, test, label in fits:
        if options.label is None:
            prediction[test] = np.bincount(label[train]).argmax()
        else:
            prediction[test] = labels.index(options.label)
    # ---- End of the model. --------------------------------------------------------------------

    responses.write(options, answers, prediction)


if __name__ == "__main__":
    cli.run(main)
