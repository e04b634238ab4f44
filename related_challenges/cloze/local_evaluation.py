"""Cloze: score guesses by token F1, by the challenge's rules.

Run:     python related_challenges/cloze/local_evaluation.py
Reads:   data/train_data/KCT_train_public.txt (the true answers) and data/test_output/submission.csv
Writes:  data/test_output/scores_cloze.txt and .html, and a line of the record of all scores

Words are compared as they stand, ignoring case alone; --normalise drops punctuation and articles.
Where the queries say so, the score is also given by domain, and by whether reasoning is needed.
With --candidates K only the first K guesses at each query count, and K may be above five.
"""

import argparse

from common import cli, pages
from related_challenges import challenge

import numpy as np
import queries

HEADER = ("", "queries", "token F1", "in full")


def build_parser(doc: str | None = __doc__) -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.evaluation_parser(doc, __file__, ref_data=queries.TRAIN)
    queries.add_candidates(parser, "how many guesses count")
    help_text = "compare without punctuation and the articles a, an, the"
    parser.add_argument("--normalise", action="store_true", help=help_text)
    return parser


def main(parser: argparse.ArgumentParser | None = None) -> None:
    """Score the submission that the flags name by the true answers."""
    options = challenge.read_evaluation_flags(parser or build_parser())
    k = options.candidates
    asked = queries.read_queries(options.reference, answers=True)
    guesses = queries.read_guesses(options.submission, asked["id"].tolist(), candidates=k)
    # The best F1 of a guess and an answer, 0 without a guess.
    f1 = (
        [
            queries.token_f1(guess, answer, normalise=options.normalise)
            for guess in guessed[:k]
            for answer in answers
        ]
        for guessed, answers in zip(guesses, asked["answers"], strict=True)
    )
    asked["score"] = scores = np.array([max(own, default=0.0) for own in f1])
    groups = [
        (f"{kind}: {str(name) or 'unknown'}", own.to_numpy())
        for kind in ("domain", "reasoning")
        if asked[kind].any()
        for name, own in sorted(asked.groupby(kind)["score"], key=lambda group: not group[0])
    ]
    rows = [
        (name, f"{len(own):,}", f"{own.mean():.4f}", f"{np.mean(own == 1):.1%}")
        for name, own in groups
    ]
    caption = "By what the queries say of themselves"
    few = "first guess" if k == 1 else f"first {k} guesses"
    rules = [few] * (k != queries.N_GUESSES) + ["normalised"] * options.normalise
    mean = float(scores.mean())
    challenge.write_scores(
        options,
        [
            *challenge.in_columns([HEADER, *rows] if rows else [], 30, 9),
            f"score {mean:.4f} (token F1 of {len(asked):,} queries)",
        ],
        title="Knowledge cloze test",
        metric_name="token F1",
        metric=f"Token F1 of the best of up to {k} guesses, mean over the queries",
        score=mean,
        facts=[
            ("Queries", f"{len(asked):,}"),
            ("Answered in full", f"{np.mean(scores == 1):.1%}"),
            ("Answered in part", f"{np.mean((scores > 0) & (scores < 1)):.1%}"),
            ("Without a guess", f"{np.mean([not guessed for guessed in guesses]):.1%}"),
        ],
        rules=", ".join(rules),
        parts={name: float(own.mean()) for name, own in groups},
        body=pages.part("table", HEADER, rows, caption=caption, stacks=True) if rows else "",
    )


if __name__ == "__main__":
    cli.run(main)
