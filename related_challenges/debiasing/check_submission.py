"""Debiasing: check a submission as the challenge would, and report everything that is wrong.

Run:     python related_challenges/debiasing/check_submission.py FILE
or:      python -m tools.check_submission FILE --challenge debiasing
Reads:   the submission, and the test users in data/train_data/underexpose_test_qtime-T.csv: of all
         phases T in the folder, or with --phase or --time of the phases that count. No answers are
         read.
"""

import argparse

from common import cli
from common.errors import Report
from related_challenges import challenge

import clicks
import numpy as np
from submission import N_RECOMMENDED, read_recommendations, select_users


def check(options: argparse.Namespace, report: Report) -> list[str]:
    """Report the faults of a submission; return a summary of it."""
    folder = options.input_dir
    # The submission needs a row only for the test users of the phases that count for the score.
    phases = clicks.phases_that_count(options.phase, clicks.find_phases(folder), folder)
    paths = [folder / clicks.QUERY_TIMES.format(phase) for phase in phases]
    test_users = np.concatenate([clicks.read_queries(path)["user_id"] for path in paths])
    # Maps each user of the submission to the recommended items.
    recommended = read_recommendations(options.file, report)
    # `select_users` reports test users who are missing. The items that it returns are not needed
    # here.
    select_users(options.file, recommended, test_users, report)
    n_other_users = len(recommended.keys() - set(test_users.tolist()))
    different_items = {item for items in recommended.values() for item in items}
    summary = [
        f"{len(recommended):,} rows: every test user of the phases {', '.join(map(str, phases))} "
        f"in {cli.show(folder)} once, {N_RECOMMENDED} different items each",
        f"different items recommended: {len(different_items):,}",
    ]
    if n_other_users:
        summary.append(f"{n_other_users} rows of other users are ignored")
    return summary


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.check_parser(__doc__, __file__)
    clicks.add_phase(parser)
    return parser


def main() -> None:
    """Check the submission."""
    challenge.run_check(build_parser().parse_args(), check)


if __name__ == "__main__":
    cli.run(main)
