"""Task 1 baseline: predict for every question what most of its answers were, right or wrong.

Run:     python task_1/sample_model_majority.py --local     predict the local split
         python task_1/local_evaluation.py                  score that
         python task_1/sample_model_majority.py             predict the official template
Writes:  submission_task_1.csv and the zip to upload
"""

import argparse

from common import cli, sample_models, submission
from common.answers import read_answers
from common.probabilities import write_probabilities

import numpy as np
import pandas as pd

TASK = 1


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return sample_models.parser(__doc__, TASK)


def main() -> None:
    """Load, model, predict, write."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template`, DataFrames. Out, for each template row: `prediction`, `p_right`.
    question = answers["QuestionId"]
    answered, wrong = question.value_counts(), question[answers["IsCorrect"] == 0].value_counts()
    by_question = pd.DataFrame({"answered": answered, "wrong": wrong})
    # A question that nobody answered has no answers, none of them wrong.
    wanted = by_question.reindex(template["QuestionId"]).fillna(0)
    n_answers, n_wrong = wanted["answered"].to_numpy(), wanted["wrong"].to_numpy()
    prediction = (2 * n_wrong < n_answers).astype(np.int8)
    # It, and one that is tied, gets what most of all answers were.
    prediction[2 * n_wrong == n_answers] = answers["IsCorrect"].mean() > 0.5
    p_right = (n_answers - n_wrong + 1) / (n_answers + 2)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
