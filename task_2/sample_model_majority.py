"""Task 2 baseline: predict for every question the option that most students chose.

Run:     python task_2/sample_model_majority.py --local     predict the local split
         python task_2/local_evaluation.py                  score that
         python task_2/sample_model_majority.py             predict the official template
Writes:  submission_task_2.csv and the zip to upload
"""

import argparse

from common import cli, sample_models, schema, submission
from common.answers import read_answers
from common.probabilities import write_probabilities

import pandas as pd

TASK = 2


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return sample_models.parser(__doc__, TASK)


def main() -> None:
    """Load, model, predict, write."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=True)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template`, DataFrames. Out, for each template row: `prediction`, `p_option`.
    n_chosen = pd.DataFrame(
        {
            option: answers.loc[answers["AnswerValue"] == option, "QuestionId"].value_counts()
            for option in schema.OPTIONS
        }
    )
    # A question that nobody answered gets what is chosen over all.
    n_chosen = n_chosen.fillna(0).reindex(template["QuestionId"].unique()).fillna(n_chosen.sum())
    question = n_chosen.index.get_indexer(pd.Index(template["QuestionId"]))
    prediction = n_chosen.idxmax(axis=1).to_numpy()[question]
    p_option = (n_chosen + 1).div(n_chosen.sum(axis=1) + 4, axis=0).to_numpy()[question]
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
