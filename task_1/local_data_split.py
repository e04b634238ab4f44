"""Tasks 1 and 2: split the training answers at random into 80 % to learn from and 20 % to predict.

Run:     python task_1/local_data_split.py
Reads:   data/train_data/train_task_1_2.csv
Writes:  data/test_input/train_task_1_2.csv            80 %: answers to learn from
         data/test_input/valid_task_1_2.csv            20 %: the true answers, to score with
         data/test_input/test_submission_task_1_2.csv  20 %: the pairs to predict (template)

The scripts of this name in task_1/ and task_2/ write the same files: run one of them, once. If
the options of a file cannot be used, the script in task_1/ leaves them out.
"""

import argparse

from common import cli, layout, splits


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return splits.parser(__doc__, layout.TRAIN_TASK_1_2)


def main() -> None:
    """Split the answers."""
    options = build_parser().parse_args()
    splits.run(options, split=splits.split_answers, leaves_out_faulty_options=True)


if __name__ == "__main__":
    cli.run(main)
