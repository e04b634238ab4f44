"""Task 4: play the ten rounds with the package in this folder and score it, as the challenge would.

Run:     python task_4/matrix_factorization/local_evaluation.py                  local split
         python task_4/matrix_factorization/local_evaluation.py --phase public   students of a phase
Writes:  data/test_output/scores_task_4.txt and .html, and sequence_task_4.csv, the questions asked

An entry that fails or breaks a rule gets a message, never a score.
"""

import argparse
from pathlib import Path

from common import cli
from common.adaptive import evaluation

PACKAGE = Path(__file__).parent


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return evaluation.build_parser(__doc__, PACKAGE)


def main() -> None:
    """Let this folder's package ask the students; score its predictions of their other answers."""
    evaluation.evaluate(build_parser().parse_args(), PACKAGE)


if __name__ == "__main__":
    cli.run(main)
