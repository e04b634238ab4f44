"""Task 4: split the training students at random, 80 % to learn from and 20 % to be examined.

A fifth of the answers of the held-out students become targets, which are to be predicted. Their
other answers may be asked for.

Run:     python task_4/local_data_split.py
Reads:   data/train_data/train_task_3_4.csv
Writes:  data/test_input/train_task_4.csv   answers of the students to learn from
         data/test_input/valid_task_4.csv   answers of the others, with the column IsTarget
"""

from __future__ import annotations

import argparse

from common import cli, layout, schema, splits

import numpy as np
import pandas as pd

# Share of the students to be examined.
EXAMINED_SHARE = 0.2
# Share of the examined students' answers that are targets, the answers to be predicted.
TARGET_SHARE = 0.2


def split_students(answers: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame]:
    """Split the answers into two tables; return them by the names of their files.

    The first table holds the answers of the students to learn from. The second one holds the
    answers of the students to be examined. Its column `IsTarget` is 1 for the answers to be
    predicted.
    """
    is_held_out = splits.hold_out_students(answers, EXAMINED_SHARE, seed)
    valid = answers[is_held_out]
    # The seed differs from the seed for the students, so that the targets are drawn independently.
    is_target = splits.hold_out_answers(len(valid), TARGET_SHARE, seed + 1)
    valid = valid.assign(**{schema.IS_TARGET: is_target.astype(np.int8)})
    return {layout.TRAIN_TASK_4: answers[~is_held_out], layout.VALID_TASK_4: valid}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return splits.parser(__doc__, layout.TRAIN_TASK_3_4)


def main() -> None:
    """Split the answers."""
    splits.run(build_parser().parse_args(), split_students)


if __name__ == "__main__":
    cli.run(main)
