"""Science exam: check a submission as the challenge would, and report everything that is wrong.

Run:     python related_challenges/science_exam/check_submission.py FILE
or:      python -m tools.check_submission FILE --challenge science_exam
Reads:   the submission and data/train_data/test.csv; no answers
"""

import argparse
from collections import Counter

from common import cli
from common.errors import Report
from related_challenges import challenge

import exam


def check(options: argparse.Namespace, report: Report) -> list[str]:
    """Report the faults of a submission; return a summary of it."""
    test = options.input_dir / options.test_data
    questions = exam.read_questions(test, answers=False)
    predicted = exam.read_predictions(options.file, questions, report)
    first_guesses = Counter(guesses[0] for guesses in predicted if guesses)
    # The numbers of rows that are allowed but unusual, for example
    # {"hold no label and score 0": 3}.
    n_rows_by_description = exam.count_unusual(predicted)
    return [
        f"{len(predicted):,} rows: every question of {cli.show(test)} once",
        "first guesses: " + ", ".join(f"{label} {first_guesses[label]}" for label in exam.LABELS),
        *(f"{n} rows {description}" for description, n in n_rows_by_description.items()),
    ]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.check_parser(__doc__, __file__, test_data=exam.TEST_FILE)


def main() -> None:
    """Check the submission."""
    challenge.run_check(build_parser().parse_args(), check)


if __name__ == "__main__":
    cli.run(main)
