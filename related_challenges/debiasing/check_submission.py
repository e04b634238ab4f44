"""Debiasing: check a submission as the challenge would, and report everything that is wrong.

Run:     python related_challenges/debiasing/check_submission.py FILE
         python -m tools.check_submission FILE --challenge debiasing
Reads:   the submission and data/train_data/underexpose_test_qtime-T.csv, the users of all phases
         that are there; no answers
"""

from common import challenge, cli
from common.errors import Report

import clicks
import numpy as np


def main() -> None:
    """Check the submission that the flags name."""
    options = challenge.check_parser(__doc__, __file__).parse_args()

    def check(report: Report) -> list[str]:
        phases = clicks.find_phases(options.input_dir)
        paths = [options.input_dir / clicks.query_times_name(phase) for phase in phases]
        wanted = np.concatenate([clicks.read_query_users(path) for path in paths])
        user, items = clicks.read_recommendations(options.file, report)
        clicks.select_users(options.file, user, items, wanted, report)
        n_others = len(np.setdiff1d(user, wanted))
        summary = [
            f"{len(user):,} rows: every test user of the phases {', '.join(map(str, phases))} in "
            f"{cli.show(options.input_dir)} once, {items.shape[1]} different items each",
            f"different items recommended: {len(np.unique(items)):,}",
        ]
        return summary + [f"{n_others} rows of other users are ignored"] * bool(n_others)

    challenge.run_check(options.file, __file__, check)


if __name__ == "__main__":
    cli.run(main)
