"""Science exam: score a submission by MAP@3, by the challenge's rules.

Run:     python related_challenges/science_exam/local_evaluation.py
Reads:   data/train_data/train.csv (the right answers) and data/test_output/submission.csv
Writes:  data/test_output/scores_science_exam.txt and .html, and a line of the record of all scores

The submission has the columns id and prediction, up to three labels separated by spaces.
"""

import argparse
import sys
from pathlib import Path

from common import challenge, cli

import exam
import numpy as np


def main() -> None:
    """Score the submission that the flags name."""
    p = challenge.evaluation_parser(__doc__, __file__, ref_data=exam.TRAIN)
    challenge.evaluate(p, __file__, "Science exam", "MAP@3", score)


def score(options: argparse.Namespace, submission: Path, reference: Path) -> challenge.Scored:
    """Score a submission by the right answers."""
    questions = exam.read_questions(reference, answers=True)
    predicted = exam.read_predictions(submission, questions)
    n_long = sum(len(guesses) > exam.N_GUESSES for guesses in predicted)
    if n_long:
        print(
            f"warning: {n_long} predictions hold more than {exam.N_GUESSES} labels; only the "
            f"first {exam.N_GUESSES} count",
            file=sys.stderr,
        )
    points = exam.score_questions(questions, predicted)
    mean, (low, high) = float(points.mean()), exam.interval_95(points)
    interval = {"interval_low": low, "interval_high": high}
    return challenge.Scored(
        score=mean,
        metric="MAP@3: 1, 1/2 or 1/3 point for the right option in first, second or third place",
        facts=[
            ("Questions", f"{len(questions):,}"),
            ("95 % interval", f"{low:.4f} to {high:.4f}"),
            *(
                (f"Right answer in place {place}", f"{np.isclose(points, 1 / place).mean():.1%}")
                for place in range(1, exam.N_GUESSES + 1)
            ),
            ("Random guesses score", f"{exam.RANDOM_SCORE:.4f}"),
        ],
        parts=interval,
        figures=interval,
        lines=[
            f"score {mean:.4f}, 95 % interval {low:.4f} to {high:.4f} (MAP@3 on "
            f"{len(questions):,} questions; random guesses {exam.RANDOM_SCORE:.4f})"
        ],
    )


if __name__ == "__main__":
    cli.run(main)
