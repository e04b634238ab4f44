"""Science exam: score a submission by MAP@3, by the challenge's rules.

Run:     python related_challenges/science_exam/local_evaluation.py
Reads:   data/train_data/train.csv (the right answers) and data/test_output/submission.csv
Writes:  data/test_output/scores_science_exam.txt and .html, and a line in results.jsonl, the
         record of all scores

The submission has the columns id and prediction, up to three labels separated by spaces.
"""

import argparse
import sys

from common import cli
from related_challenges import challenge

import exam
import numpy as np


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.evaluation_parser(__doc__, __file__, ref_data=exam.TRAIN_FILE)


def main() -> None:
    """Compare the submission with the right answers, and write its score."""
    options = challenge.start_evaluation(build_parser())
    questions = exam.read_questions(options.reference, answers=True)
    predicted = exam.read_predictions(options.submission, questions)
    for description, n in exam.count_unusual(predicted).items():
        print(f"warning: {n} predictions {description}", file=sys.stderr)
    points = exam.score_questions(questions, predicted)
    mean = float(points.mean())
    low, high = exam.interval_95(points)
    interval = {"interval_low": low, "interval_high": high}
    interval_text = f"{low:.4f} to {high:.4f}"
    rank_facts = []
    for rank in range(1, exam.N_GUESSES + 1):
        # A question gets 1 / rank points if the right answer is in place `rank`.
        share = np.isclose(points, 1 / rank).mean()
        rank_facts.append((f"Right answer in place {rank}", f"{share:.1%}"))
    challenge.write_scores(
        options,
        [
            f"score {mean:.4f}, 95 % interval {interval_text} (MAP@3 on {len(questions):,} "
            f"questions; random guesses {exam.RANDOM_SCORE:.4f})"
        ],
        title="Science exam",
        metric_name="MAP@3",
        metric="MAP@3: 1, 1/2 or 1/3 point for the right option in first, second or third place",
        score=mean,
        facts=[
            ("Questions", f"{len(questions):,}"),
            ("95 % interval", interval_text),
            *rank_facts,
            ("Random guesses score", f"{exam.RANDOM_SCORE:.4f}"),
        ],
        parts=interval,
        figures=interval,
    )


if __name__ == "__main__":
    cli.run(main)
