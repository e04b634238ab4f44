"""Task 3 baseline: rank the questions by how evenly their answers spread over the options.

A question that nearly everybody answers alike says little about students: its entropy is low.

Run:     python task_3/sample_model_entropy.py
         python task_3/local_evaluation.py --phase public
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submissions/submission_task_3.csv and the zip to upload
Scores:  agreement 0.68 with the best of five experts on 25 real pairs, 0.62 on average
"""

import argparse

from common import cli, sample_models, submission
from common.answers import read_answers

import numpy as np

TASK = 3


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return sample_models.parser(__doc__, TASK)


def main() -> None:
    """Read the answers, compute each question's quality, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    question = submission.read_ranking_template(paths.template)
    answers = read_answers(paths.train, options=True)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, a DataFrame; `question`, QuestionIds. Out: `quality` of each of them.
    # The highest quality ranks first, NaN ranks last.
    by_option = answers.groupby(["QuestionId", "AnswerValue"]).size().unstack(fill_value=0)
    n_chosen = by_option.reindex(question, fill_value=0).to_numpy()
    n_answers = n_chosen.sum(axis=1, keepdims=True)
    share = n_chosen / np.maximum(n_answers, 1)
    # An option that nobody chose adds 0 to the entropy: p log p goes to 0 with p.
    log_share = np.log2(share, out=np.zeros_like(share), where=share > 0)
    entropy = -(share * log_share).sum(axis=1)
    # A question that nobody answered has an unknown quality, not the entropy 0.
    quality = np.where(n_answers[:, 0] > 0, entropy, np.nan)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_ranking(question, quality, paths.output)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(question):,} questions)")


if __name__ == "__main__":
    cli.run(main)
