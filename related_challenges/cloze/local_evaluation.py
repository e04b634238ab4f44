"""Cloze: score guesses by token F1, by the challenge's rules.

Run:     python related_challenges/cloze/local_evaluation.py
Reads:   data/train_data/KCT_train_public.txt (the true answers) and data/test_output/submission.csv
Writes:  data/test_output/scores_cloze.txt and .html, and a line of the record of all scores

Where the queries say so, the score is also given by domain, and by whether reasoning is needed.
With --candidates N only the first N guesses at each query count.
"""

import argparse
from pathlib import Path

from common import challenge, cli, pages

import numpy as np
import queries

HEADER = ("", "queries", "token F1", "in full")


def main() -> None:
    """Score the submission that the flags name."""
    p = challenge.evaluation_parser(__doc__, __file__, ref_data=queries.TRAIN)
    queries.add_candidates(p, "how many guesses count")
    challenge.evaluate(p, __file__, "Knowledge cloze test", "token F1", score)


def score(options: argparse.Namespace, submission: Path, reference: Path) -> challenge.Scored:
    """Score a submission by the true answers."""
    asked = queries.read_queries(reference, answers=True)
    guesses = queries.read_guesses(submission, asked["id"].tolist())
    scores = np.array(
        [
            queries.score_query(guessed[: options.candidates], answers)
            for guessed, answers in zip(guesses, asked["answers"], strict=True)
        ]
    )
    asked["score"] = scores
    groups = [
        (f"{kind}: {str(name) or 'unknown'}", own.to_numpy())
        for kind in ("domain", "reasoning")
        if asked[kind].any()
        # What is unknown comes last.
        for name, own in sorted(asked.groupby(kind)["score"], key=lambda group: not group[0])
    ]
    rows = [
        (name, f"{len(own):,}", f"{own.mean():.4f}", f"{np.mean(own == 1):.1%}")
        for name, own in groups
    ]
    caption = "By what the queries say of themselves"
    few = "first guess" if options.candidates == 1 else f"first {options.candidates} guesses"
    mean = float(scores.mean())
    return challenge.Scored(
        score=mean,
        metric=f"Token F1 of the best of up to {options.candidates} guesses, mean over the queries",
        facts=[
            ("Queries", f"{len(asked):,}"),
            ("Answered in full", f"{np.mean(scores == 1):.1%}"),
            ("Answered in part", f"{np.mean((scores > 0) & (scores < 1)):.1%}"),
            ("Without a guess", f"{np.mean([not guessed for guessed in guesses]):.1%}"),
        ],
        rules=few if options.candidates < queries.N_GUESSES else "",
        parts={name: float(own.mean()) for name, own in groups},
        body=pages.table(HEADER, rows, caption=caption, stacks=True) if rows else "",
        lines=[
            *challenge.in_columns([HEADER, *rows] if rows else [], 30, 9),
            f"score {mean:.4f} (token F1 of {len(asked):,} queries)",
        ],
    )


if __name__ == "__main__":
    cli.run(main)
