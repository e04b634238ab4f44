"""Cloze: check a submission as the challenge would, and report everything that is wrong.

Run:     python related_challenges/cloze/check_submission.py FILE
         python -m tools.check_submission related_challenges/cloze/data/test_output/submission.csv
Reads:   the submission, data/train_data/KCT_test_public.txt and KCT_train_public.txt

FILE must hold every query of the test file, or, as a submission made with --local, every query of
the training file. No answers are read.
"""

import argparse

from common import cli, reading
from common.errors import Report
from related_challenges import challenge, folds

import numpy as np
import queries


def check(options: argparse.Namespace, report: Report) -> list[str]:
    """Report the faults of a submission; return a summary of it."""
    test = options.input_dir / options.test_data
    train = options.input_dir / options.train_data
    # If neither file exists, reading the test file reports that it is missing.
    paths = [path for path in (test, train) if reading.is_there(path)] or [test]
    ids_by_path = {path: queries.read_queries(path, answers=False)["id"].tolist() for path in paths}
    # Faulty ids are ignored here and reported below.
    ids = set(reading.read_table(options.file, (folds.ID,), report=lambda _: None)["id"])
    # The file that shares more ids with the submission; if both share as many, the test file.
    path = max(ids_by_path, key=lambda path: len(ids.intersection(ids_by_path[path])))
    guesses = queries.read_guesses(
        options.file, ids_by_path[path], report, candidates=options.candidates
    )
    # A faulty cell holds "".
    n_guesses = [len(guess or ()) for guess in guesses]
    return [
        f"{len(guesses):,} rows: every query of {cli.show(path)} once",
        f"guesses for each: {np.mean(n_guesses):.1f} on average, none for {n_guesses.count(0)}",
    ]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.check_parser(
        __doc__, __file__, train_data=queries.TRAIN, test_data=queries.TEST
    )
    queries.add_candidates(parser)
    return parser


def main() -> None:
    """Check the submission."""
    challenge.run_check(build_parser().parse_args(), check)


if __name__ == "__main__":
    cli.run(main)
