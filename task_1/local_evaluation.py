"""Task 1: score a submission by its accuracy, the challenge's metric.

Run:     python task_1/local_evaluation.py                  score predictions of the local split
         python task_1/local_evaluation.py --phase public   score the upload, released answers
Writes:  data/test_output/scores_task_1.txt and .html
         data/test_output/scores_task_1_public.txt and .html with --phase public

The local split is scored on the answers that local_data_split.py held out. An upload is scored on
the answers of its phase, public or private, which were released after the challenge. Without
--phase, the script scores the local split, or the public phase if only an upload is there.

The .html page compares the score with others, and shows for which questions, subjects and students
most predictions are wrong. --probabilities FILE adds log loss and calibration; a sample model
writes such a FILE if it is run with its flag of the same name. A malformed or incomplete
submission gets a message instead of a score.
"""

import argparse

from common import cli
from common.evaluation import pairs
from common.tasks import TASK_1


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return pairs.build_parser(__doc__, TASK_1)


def main() -> None:
    """Score the submission that the flags name."""
    pairs.evaluate(build_parser().parse_args(), TASK_1)


if __name__ == "__main__":
    cli.run(main)
