"""Cloze: check a submission as the challenge would, and report everything that is wrong.

Run:     python related_challenges/cloze/check_submission.py FILE
or:      python -m tools.check_submission related_challenges/cloze/data/test_output/submission.csv
Reads:   the submission, data/train_data/KCT_test_public.txt and KCT_train_public.txt

FILE must hold every query of the test file. If it was made with --local, it must hold every query
of the training file instead. No answers are read.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from common import cli, reading
from common.errors import Report
from related_challenges import challenge, folds

import numpy as np
import queries


def check(options: argparse.Namespace, report: Report) -> list[str]:
    """Report the faults of a submission; return a summary of it."""
    test = options.input_dir / options.test_data
    train = options.input_dir / options.train_data
    paths = [path for path in (test, train) if reading.is_there(path)]
    if not paths:
        # Both files are missing: below, `read_queries` reports that the test file is missing.
        paths = [test]
    # A submission answers the queries of one file: the test queries, or the training queries if the
    # model has predicted them with --local. The ids in the submission tell which file it is.
    ids_by_path = {path: queries.read_queries(path, answers=False)["id"].tolist() for path in paths}
    answered_path = find_answered_file(options.file, ids_by_path)
    guesses = queries.read_guesses(
        options.file, ids_by_path[answered_path], report, candidates=options.candidates
    )
    # In place of the guesses in a faulty cell, `guesses` holds "". Its length is 0, so it counts as
    # no guess.
    n_guesses = [len(query_guesses) for query_guesses in guesses]
    return [
        f"{len(guesses):,} rows: every query of {cli.show(answered_path)} once",
        f"guesses per query: {np.mean(n_guesses):.1f} on average; "
        f"{n_guesses.count(0)} queries without a guess",
    ]


def find_answered_file(submission: Path, ids_by_path: Mapping[Path, Sequence[str]]) -> Path:
    """Return the file of queries that shares the most ids with a submission.

    If several files share equally many ids, the first of these files is returned.
    """

    def ignore(fault: str) -> None:
        """Ignore a faulty id, since `queries.read_guesses` reports it."""

    ids = set(reading.read_table(submission, (folds.ID,), report=ignore)["id"])

    def count_shared_ids(path: Path) -> int:
        return len(ids.intersection(ids_by_path[path]))

    return max(ids_by_path, key=count_shared_ids)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.check_parser(
        __doc__, __file__, train_data=queries.TRAIN_FILE, test_data=queries.TEST_FILE
    )
    queries.add_candidates(parser)
    return parser


def main() -> None:
    """Check the submission."""
    challenge.run_check(build_parser().parse_args(), check)


if __name__ == "__main__":
    cli.run(main)
