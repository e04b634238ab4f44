"""Cloze: divide the training queries into folds for cross-validation; the test answers are secret.

Run:     python related_challenges/cloze/local_data_split.py
Reads:   data/train_data/KCT_train_public.txt
Writes:  data/test_input/folds.csv, with the columns id and fold
"""

import argparse

from common import cli
from related_challenges import challenge

import numpy as np
import queries


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.fold_parser(__doc__, __file__, 5, train_data=queries.TRAIN)


def main() -> None:
    """Split the file that the flags name."""
    options = build_parser().parse_args()
    path = options.input_dir / options.train_data
    ids = queries.read_queries(path, answers=True)["id"].tolist()
    challenge.split_into_folds(options, "queries", ids, np.arange(len(ids)), [path])


if __name__ == "__main__":
    cli.run(main)
