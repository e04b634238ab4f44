"""Science exam: divide the training questions into folds for cross-validation.

Run:     python related_challenges/science_exam/local_data_split.py [--folds N] [--seed N]
Reads:   data/train_data/train.csv
Writes:  data/test_input/folds.csv, with the columns id and fold

Questions with the same prompt are put into the same fold. With --local, the sample models predict
each fold after learning from the other folds.
"""

import argparse

from common import cli
from related_challenges import challenge

import exam


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.fold_parser(__doc__, __file__, exam.N_FOLDS, train_data=exam.TRAIN_FILE)


def main() -> None:
    """Assign the training questions to folds, and write the folds."""
    options = build_parser().parse_args()
    path = options.input_dir / options.train_data
    questions = exam.read_questions(path, answers=True)
    # Questions with equal prompts are one group.
    group, _ = questions["prompt"].factorize()
    challenge.split_into_folds(options, "questions", questions["id"].tolist(), group, [path])


if __name__ == "__main__":
    cli.run(main)
