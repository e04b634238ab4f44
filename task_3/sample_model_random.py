"""Task 3, lower bound: rank the questions at random.

Run:     python task_3/sample_model_random.py [--seed 1]
         python task_3/local_evaluation.py --phase public
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submissions/submission_task_3.csv and the zip to upload
Scores:  agreement 0.56 with the best of five experts on 25 real pairs, 0.46 on average
"""

import argparse

from common import cli, sample_models, submission

import numpy as np

TASK = 3


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK, reads_answers=False)
    cli.add_number(parser, "--seed", 0, "seed of the ranking")
    return parser


def main() -> None:
    """Read the template, rank its questions at random, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    question = submission.read_ranking_template(paths.template)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `question`, the QuestionIds to rank. Out: `quality` of each of them.
    # The highest quality ranks first, NaN ranks last.
    quality = np.random.default_rng(options.seed).random(len(question))
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_ranking(question, quality, paths.output)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(question):,} questions)")


if __name__ == "__main__":
    cli.run(main)
