"""Cloze: divide the training queries into folds for cross-validation; the test answers are secret.

Run:     python related_challenges/cloze/local_data_split.py
Reads:   data/train_data/KCT_train_public.txt
Writes:  data/test_input/folds.csv, with the columns id and fold
"""

from common import challenge, cli, folds, layout

import numpy as np
import queries


def main() -> None:
    """Split the file that the flags name."""
    p = challenge.split_parser(__doc__, __file__)
    cli.add_file(p, "--train_data", queries.TRAIN)
    p.add_argument("--folds", type=int, metavar="N", default=5, help="default 5")
    p.add_argument("--seed", type=cli.seed, metavar="N", default=0, help="default 0")
    options = p.parse_args()
    train_path = options.input_dir / options.train_data
    train = queries.read_queries(train_path, answers=True)
    fold = folds.assign_folds(np.arange(len(train)), options.folds, options.seed)
    path = options.output_dir / layout.FOLDS
    folds.write_folds(path, [query.id for query in train], fold, [train_path])
    print(f"written: {cli.show(path)} ({len(train):,} queries, {options.folds} folds)")


if __name__ == "__main__":
    cli.run(main)
