"""Cloze: score guesses by token F1, exactly as the challenge would.

Run:     python related_challenges/cloze/local_evaluation.py
Reads:   data/train_data/KCT_train_public.txt (the true answers) and data/test_output/submission.csv
Writes:  data/test_output/scores_cloze.txt and .html, and a line of the record of all scores

Where the queries say so, the score is also given by domain, and by whether reasoning is needed.
With --candidates N only the first N guesses at each query count.
"""

from collections.abc import Sequence

from common import challenge, cli, pages
from common.evaluation import record, score_files
from common.evaluation.record import Evaluation

import numpy as np
import queries

HEADER = ("", "queries", "token F1", "in full")


def main() -> None:
    """Score the submission that the flags name."""
    p = challenge.evaluation_parser(__doc__, __file__)
    cli.add_file(p, "--ref_data", queries.TRAIN)
    p.add_argument(
        "--candidates",
        type=queries.n_candidates,
        metavar="N",
        default=queries.N_GUESSES,
        help=f"how many guesses count (default {queries.N_GUESSES})",
    )
    options = p.parse_args()
    score_files.remove_scores(options.output_dir, "cloze")
    reference_path = options.input_dir / options.ref_data
    submission_path = options.submission_dir / options.submit_data

    reference = queries.read_queries(reference_path, answers=True)
    guesses = queries.read_guesses(submission_path, [query.id for query in reference])
    scores = np.array(
        [
            queries.score_query(guessed[: options.candidates], query.answers)
            for guessed, query in zip(guesses, reference, strict=True)
        ]
    )
    score = float(scores.mean())
    groups = [
        *group_scores("domain", [query.domain for query in reference], scores),
        *group_scores("reasoning", [query.needs_reasoning for query in reference], scores),
    ]
    few = "first guess" if options.candidates == 1 else f"first {options.candidates} guesses"
    evaluation = Evaluation(
        title="Knowledge cloze test",
        metric=f"Token F1 of the best of up to {options.candidates} guesses, mean over the queries",
        score=score,
        submission=submission_path,
        reference=reference_path,
        facts=[
            ("Queries", f"{len(reference):,}"),
            ("Answered in full", f"{np.mean(scores == 1):.1%}"),
            ("Answered in part", f"{np.mean((scores > 0) & (scores < 1)):.1%}"),
            ("Without a guess", f"{np.mean([not guessed for guessed in guesses]):.1%}"),
        ],
        rules=few if options.candidates < queries.N_GUESSES else "",
        parts={name: float(own.mean()) for name, own in groups},
        metric_name="token F1",
    )
    rows = [
        (name, f"{len(own):,}", f"{own.mean():.4f}", f"{np.mean(own == 1):.1%}")
        for name, own in groups
    ]
    caption = "By what the queries say of themselves"
    body = pages.table(HEADER, rows, caption=caption, stacks=True) if rows else ""
    paths = score_files.write_scores(options.output_dir, "cloze", evaluation, body=body)
    record.append_result(options.output_dir, "cloze", evaluation)
    for name, *cells in [HEADER, *rows] if rows else []:
        print(f"{name:30s} " + " ".join(f"{cell:>9s}" for cell in cells))
    print(f"score {score:.4f} (token F1 of {len(reference):,} queries)")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def group_scores(
    name: str, kinds: Sequence[str], scores: queries.FloatArray
) -> list[tuple[str, queries.FloatArray]]:
    """Return the scores of every kind of query, with the kind's name; nothing if none is known.

    Parameters
    ----------
    name
        What the kinds are: ``domain``.
    kinds
        Kind of every query, nothing where it is unknown.
    scores
        Score of every query, shape (queries,).
    """
    if not any(kinds):
        return []
    return [
        (f"{name}: {kind or 'unknown'}", scores[np.array(kinds) == kind])
        for kind in sorted(set(kinds), key=lambda kind: (not kind, kind))
    ]


if __name__ == "__main__":
    cli.run(main)
