"""Task 1 baseline: predict that a question is answered right if most of its answers are right.

Run:     python task_1/sample_model_majority.py --local     predict the local split
         python task_1/local_evaluation.py                  score that prediction
         python task_1/sample_model_majority.py             predict the official pairs
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_1.csv and the zip to upload
Scores:  accuracy 0.6301 on real answers (mean of ten splits)
"""

import argparse

from common import cli, sample_models, submission
from common.answers import read_answers
from common.probabilities import write_probabilities

import numpy as np

TASK = 1


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return sample_models.parser(__doc__, TASK)


def main() -> None:
    """Read the answers, fit the model, predict the template, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template` (DataFrames). Out, for each template row: `prediction`, `p_right`.
    counts = answers.groupby("QuestionId")["IsCorrect"].agg(n_right="sum", n_answers="count")
    counts = counts.reindex(template["QuestionId"], fill_value=0)
    # pandas may keep the dtype int8 for sums, and 127 + 1 would overflow below.
    n_right = counts["n_right"].to_numpy(dtype=np.int64)
    n_wrong = counts["n_answers"].to_numpy() - n_right

    prediction = (n_right > n_wrong).astype(np.int8)
    # Unanswered and tied questions get the overall majority.
    prediction[n_right == n_wrong] = answers["IsCorrect"].mean() > 0.5
    # Laplace's rule of succession: no probability is 0 or 1.
    p_right = (n_right + 1) / (n_right + n_wrong + 2)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
