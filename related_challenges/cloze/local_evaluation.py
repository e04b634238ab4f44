"""Cloze: score guesses by token F1, exactly as the challenge would.

Run:     python related_challenges/cloze/local_evaluation.py
Reads:   data/train_data/KCT_train_public.txt (the true answers) and data/test_output/submission.csv
Writes:  data/test_output/scores_cloze.txt and .html, and a line of the record of all scores
"""

import numpy as np
import queries

from common import challenge, cli
from common.scores import results, score_files
from common.scores.results import Evaluation


def main() -> None:
    """Score the submission that the flags name."""
    p = challenge.evaluation_parser(__doc__, __file__)
    challenge.add_file(p, "--ref_data", queries.TRAIN)
    options = p.parse_args()
    score_files.remove_scores(options.output_dir, "cloze")
    reference_path = options.input_dir / options.ref_data
    submission_path = options.submission_dir / options.submit_data

    reference = queries.read_queries(reference_path, answers=True)
    guesses = queries.read_guesses(submission_path, [query.id for query in reference])
    scores = np.array(
        [
            queries.score_query(guessed, query.answers)
            for guessed, query in zip(guesses, reference, strict=True)
        ]
    )
    score = float(scores.mean())
    evaluation = Evaluation(
        title="Knowledge cloze test",
        metric="Token F1 of the best of up to five guesses, mean over the queries",
        score=score,
        submission=submission_path,
        reference=reference_path,
        facts=[
            ("Queries", f"{len(reference):,}"),
            ("Answered in full", f"{np.mean(scores == 1):.1%}"),
            ("Answered in part", f"{np.mean((scores > 0) & (scores < 1)):.1%}"),
            ("Without a guess", f"{np.mean([not guessed for guessed in guesses]):.1%}"),
        ],
        metric_name="token F1",
    )
    paths = score_files.write_scores(options.output_dir, "cloze", evaluation)
    results.append_result(options.output_dir, "cloze", evaluation)
    print(f"score {score:.4f} (token F1 of {len(reference):,} queries)")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


if __name__ == "__main__":
    cli.run(main)
