"""Cloze: divide the training queries into folds for cross-validation.

Run:     python related_challenges/cloze/local_data_split.py
Reads:   data/train_data/KCT_train_public.txt
Writes:  data/test_input/folds.csv, with the columns id and fold

The answers of the test file are secret, so models are scored on the training queries.
"""

import argparse

from common import cli
from related_challenges import challenge

import numpy as np
import queries

N_FOLDS = 5


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.fold_parser(__doc__, __file__, N_FOLDS, train_data=queries.TRAIN_FILE)


def main() -> None:
    """Assign the training queries to folds, and write the folds."""
    options = build_parser().parse_args()
    path = options.input_dir / options.train_data
    ids = queries.read_queries(path, answers=True)["id"].tolist()
    # Any two queries may be in different folds, so each query is a group of its own.
    group = np.arange(len(ids))
    challenge.split_into_folds(options, "queries", ids, group, [path])


if __name__ == "__main__":
    cli.run(main)
