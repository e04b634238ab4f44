"""Student responses: check a submission, and report everything that is wrong.

Run:     python related_challenges/student_response/check_submission.py FILE
or:      python -m tools.check_submission FILE --challenge student_response
Reads:   the submission, and from data/train_data/*.xml the answers' ids and which labels occur

With --input_dir DIR the XML files are read from another folder, such as data/test_data. Its answers
may have no labels.
"""

import argparse
from collections import Counter

from common import cli
from common.errors import Report
from related_challenges import challenge

import responses


def check(options: argparse.Namespace, report: Report) -> list[str]:
    """Report the faults of a submission; return a summary of it."""
    answers = responses.read_responses(options.input_dir, labels="if present")
    predicted = Counter(responses.read_predictions(options.file, answers, report))
    share_texts = []
    for label in (*responses.ALL_LABELS, responses.UNINTERPRETABLE):
        if predicted[label]:
            share_texts.append(f"{label} {predicted[label] / len(answers):.1%}")
    return [
        f"{len(answers):,} rows: every answer in {cli.show(options.input_dir)} once",
        ", ".join(share_texts),
    ]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.check_parser(__doc__, __file__)


def main() -> None:
    """Check the submission."""
    challenge.run_check(build_parser().parse_args(), check)


if __name__ == "__main__":
    cli.run(main)
