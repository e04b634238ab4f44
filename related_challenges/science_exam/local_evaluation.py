"""Science exam: score a submission by MAP@3, exactly as the challenge would.

Run:     python related_challenges/science_exam/local_evaluation.py
Reads:   data/train_data/train.csv (the right answers) and data/test_output/submission.csv
Writes:  data/test_output/scores_science_exam.txt and .html, and a line of the record of all scores

The submission has the columns id and prediction, up to three labels separated by spaces.
"""

import sys

from common import challenge, cli
from common.evaluation import record, score_files
from common.evaluation.record import Evaluation

import exam
import numpy as np


def main() -> None:
    """Score the submission that the flags name."""
    p = challenge.evaluation_parser(__doc__, __file__)
    cli.add_file(p, "--ref_data", exam.TRAIN)
    options = p.parse_args()
    score_files.remove_scores(options.output_dir, "science_exam")
    reference_path = options.input_dir / options.ref_data
    submission_path = options.submission_dir / options.submit_data

    questions = exam.read_questions(reference_path, answers=True)
    predicted = exam.read_predictions(submission_path, questions.ids)
    n_long = sum(len(guesses) > exam.N_GUESSES for guesses in predicted)
    if n_long:
        print(
            f"warning: {n_long} predictions hold more than {exam.N_GUESSES} labels; only the "
            f"first {exam.N_GUESSES} count",
            file=sys.stderr,
        )

    assert questions.answer is not None
    answers = [exam.LABELS[option] for option in questions.answer]
    score = exam.mean_average_precision(answers, predicted)
    points = np.array(
        [exam.average_precision(*pair) for pair in zip(answers, predicted, strict=True)]
    )
    low, high = exam.interval_95(points)
    shares = [
        (f"Right answer in place {place}", f"{np.isclose(points, 1 / place).mean():.1%}")
        for place in range(1, exam.N_GUESSES + 1)
    ]
    interval = {"interval_low": low, "interval_high": high}
    evaluation = Evaluation(
        title="Science exam",
        metric="MAP@3: 1, 1/2 or 1/3 point for the right option in first, second or third place",
        score=score,
        submission=submission_path,
        reference=reference_path,
        facts=[
            ("Questions", f"{len(questions):,}"),
            ("95 % interval", f"{low:.4f} to {high:.4f}"),
            *shares,
            ("Random guesses score", f"{exam.RANDOM_SCORE:.4f}"),
        ],
        parts=interval,
        metric_name="MAP@3",
    )
    paths = score_files.write_scores(
        options.output_dir, "science_exam", evaluation, figures=interval
    )
    record.append_result(options.output_dir, "science_exam", evaluation)
    print(
        f"score {score:.4f}, 95 % interval {low:.4f} to {high:.4f} (MAP@3 on {len(questions):,} "
        f"questions; random guesses {exam.RANDOM_SCORE:.4f})"
    )
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


if __name__ == "__main__":
    cli.run(main)
