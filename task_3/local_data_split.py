"""Task 3: split the students at random into two halves, for two rankings of the same questions.

Without experts, a model can only be checked against itself. The better the rankings that it makes
from the two halves agree, the less they depend on chance.

Run:     python task_3/local_data_split.py
Reads:   data/train_data/train_task_3_4.csv
Writes:  data/test_input/train_task_3.csv   one half, which sample models rank by with --local
         data/test_input/valid_task_3.csv   the other half, for --local=second
"""

from __future__ import annotations

import argparse

from common import cli, layout, splits

import pandas as pd


def halve_students(answers: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame]:
    """Split the students into two halves; return the answers of each half by file name."""
    is_second = splits.hold_out_students(answers, 0.5, seed)
    return {layout.TRAIN_TASK_3: answers[~is_second], layout.VALID_TASK_3: answers[is_second]}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return splits.parser(__doc__, layout.TRAIN_TASK_3_4)


def main() -> None:
    """Split the answers."""
    splits.run(build_parser().parse_args(), halve_students)


if __name__ == "__main__":
    cli.run(main)
