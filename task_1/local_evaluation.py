"""Task 1: score a submission by its accuracy, the challenge's metric.

Run:     python task_1/local_evaluation.py                  the local split
         python task_1/local_evaluation.py --phase public   the released answers of a phase
Writes:  data/test_output/scores_task_1.txt and scores_task_1.html, or for a phase
         scores_task_1_public.txt and .html

The page shows where predictions are right and where most is lost. --probabilities FILE adds log
loss and calibration; a sample model writes that file with its own flag --probabilities. An
incomplete or wrong submission gets a message, never a score.
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
