"""Student responses: check a submission, and report everything that is wrong.

Run:     python related_challenges/student_response/check_submission.py FILE
         python -m tools.check_submission FILE --challenge student_response
Reads:   the submission and data/train_data/*.xml: the answers' ids and the set of labels;
         --input_dir names another folder, such as data/test_data, labelled or not
"""

from collections import Counter

from common import challenge, cli
from common.errors import Report

import responses


def main() -> None:
    """Check the submission that the flags name."""
    options = challenge.check_parser(__doc__, __file__).parse_args()

    def check(report: Report) -> list[str]:
        answers = responses.read_responses(options.input_dir, reads_labels=None)
        predicted = Counter(responses.read_predictions(options.file, answers, report))
        labels = [
            name for name in (*responses.ALL_LABELS, responses.UNINTERPRETABLE) if predicted[name]
        ]
        return [
            f"{len(answers):,} rows: every answer in {cli.show(options.input_dir)} once",
            ", ".join(f"{name} {predicted[name] / len(answers):.1%}" for name in labels),
        ]

    challenge.run_check(options.file, __file__, check)


if __name__ == "__main__":
    cli.run(main)
