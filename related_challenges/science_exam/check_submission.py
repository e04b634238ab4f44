"""Science exam: check a submission as the challenge would, and report everything that is wrong.

Run:     python related_challenges/science_exam/check_submission.py FILE
         python -m tools.check_submission FILE --challenge science_exam
Reads:   the submission and data/train_data/test.csv; no answers
"""

from collections import Counter

from common import challenge, cli
from common.errors import Report

import exam


def main() -> None:
    """Check the submission that the flags name."""
    p = challenge.check_parser(__doc__, __file__)
    cli.add_file(p, "--test_data", exam.TEST)
    options = p.parse_args()
    test = options.input_dir / options.test_data

    def check(report: Report) -> list[str]:
        questions = exam.read_questions(test, answers=False)
        predicted = exam.read_predictions(options.file, questions.ids, report)
        first = Counter(guesses[0] for guesses in predicted if guesses)
        n_long = sum(len(guesses) > exam.N_GUESSES for guesses in predicted)
        summary = [
            f"{len(predicted):,} rows: every question of {cli.show(test)} once",
            "first guesses: " + ", ".join(f"{label} {first[label]}" for label in exam.LABELS),
        ]
        if n_long:
            summary.append(
                f"{n_long} rows hold more than {exam.N_GUESSES} labels, of which only the first "
                f"{exam.N_GUESSES} count"
            )
        return summary

    challenge.run_check(options.file, __file__, check)


if __name__ == "__main__":
    cli.run(main)
