"""Task 2 baseline: predict for every question the option that most students choose.

Run:     python task_2/sample_model_majority.py --local     predict the local split
         python task_2/local_evaluation.py                  score that prediction
         python task_2/sample_model_majority.py             predict the official pairs
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_2.csv and the zip to upload
Scores:  accuracy 0.5539 on real answers (mean of ten splits)
"""

import argparse

from common import answer_options, cli, sample_models, submission
from common.answers import read_answers
from common.probabilities import write_probabilities

import numpy as np
import pandas as pd

TASK = 2


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return sample_models.parser(__doc__, TASK)


def main() -> None:
    """Read the answers, fit the model, predict the template, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=True)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template` (DataFrames). Out, for each template row: `prediction`, `p_option`.
    # The options that any question has: 1 to 4 in the challenge.
    all_options = range(1, answer_options.count_options(answers) + 1)
    question_counts = {}
    for option in all_options:
        is_chosen = answers["AnswerValue"] == option
        question_counts[option] = answers.loc[is_chosen, "QuestionId"].value_counts()
    counts = pd.DataFrame(question_counts).fillna(0)
    # A question without answers gets the counts of all questions together.
    overall_counts = counts.sum()
    counts = counts.reindex(template["QuestionId"].unique()).fillna(overall_counts)

    # Laplace's rule of succession: add one choice to every option that the question has.
    n_options = answer_options.number_by_id(answers, counts.index)
    is_there = np.array(all_options) <= n_options[:, np.newaxis]
    smoothed_counts = (counts + 1).where(is_there, 0)
    p_by_question = smoothed_counts.div(smoothed_counts.sum(axis=1), axis=0)
    p_option = p_by_question.loc[template["QuestionId"]].to_numpy()
    # Drop the options that no question of the template has, and add the options that occur in the
    # template only.
    p_option = answer_options.for_template(p_option, template)
    # If options are tied, the first of them is predicted.
    prediction = 1 + p_option.argmax(axis=1)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
