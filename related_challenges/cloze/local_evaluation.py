"""Cloze: score guesses by token F1, by the challenge's rules.

Run:     python related_challenges/cloze/local_evaluation.py
Reads:   data/train_data/KCT_train_public.txt (the true answers) and data/test_output/submission.csv
Writes:  data/test_output/scores_cloze.txt and .html, and a line in results.jsonl, the
         record of all scores

Words are compared without case; --normalise also drops punctuation and articles. If the queries
state a domain or whether reasoning is needed, the score is also given for each domain, and for
queries that need reasoning and those that do not. With --candidates K only the first K guesses at
each query count. K may be above five: a submission may then hold up to K guesses at each query.
"""

import argparse

from common import cli, pages
from common.arrays import FloatArray
from related_challenges import challenge

import numpy as np
import pandas as pd
import queries

HEADER = ("", "queries", "token F1", "fully right")
# The queries with the same value in one of these columns form a group. The dict maps each column to
# its name in the challenge's description.
GROUPINGS = {"domain": "domain", "reasoning": "NeedReasoning"}


def build_parser(doc: str | None = __doc__) -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.evaluation_parser(doc, __file__, ref_data=queries.TRAIN_FILE)
    queries.add_candidates(parser, "number of guesses that count")
    help_text = "compare without punctuation and the articles a, an, the"
    parser.add_argument("--normalise", action="store_true", help=help_text)
    return parser


def main(parser: argparse.ArgumentParser | None = None) -> None:
    """Compare the submission with the true answers, and write its score."""
    options = challenge.start_evaluation(parser or build_parser())
    n_guesses = options.candidates
    reference = queries.read_queries(options.reference, answers=True)
    guesses = queries.read_guesses(
        options.submission, reference["id"].tolist(), candidates=n_guesses
    )
    # The score of each query.
    best_scores = []
    for query_guesses, answers in zip(guesses, reference["answers"], strict=True):
        best_scores.append(best_f1(query_guesses[:n_guesses], answers, normalise=options.normalise))
    scores = np.array(best_scores)
    mean = float(scores.mean())
    groups = group_scores(reference, scores)
    rows = [group_row(name, scores_of_group) for name, scores_of_group in groups]

    lines = [f"score {mean:.4f} (token F1 of {len(reference):,} queries)"]
    # The table of groups, as text above the score and as HTML for the page.
    table_as_html = ""
    if rows:
        lines = challenge.align_columns([HEADER, *rows], first_width=30, other_width=11) + lines
        caption = "Score by domain and by need for reasoning"
        # With `stacks`, a phone shows every cell on a line of its own.
        table_as_html = pages.part("table", HEADER, rows, caption=caption, stacks=True)
    challenge.write_scores(
        options,
        lines,
        title="Knowledge cloze test",
        metric_name="token F1",
        metric=f"Token F1 of the best of up to {n_guesses} guesses, mean over the queries",
        score=mean,
        facts=[
            ("Queries", f"{len(reference):,}"),
            # `token_f1` is exactly 1 if all words agree: == needs no tolerance for rounding.
            ("Answered in full", f"{np.mean(scores == 1):.1%}"),
            ("Answered in part", f"{np.mean((scores > 0) & (scores < 1)):.1%}"),
            ("Without a guess", f"{np.mean([not guessed for guessed in guesses]):.1%}"),
        ],
        rules=describe_rules(options),
        # The mean score of each group, for the record of scores.
        parts={name: float(scores_of_group.mean()) for name, scores_of_group in groups},
        body=table_as_html,
    )


def best_f1(guesses: list[str], answers: list[str], *, normalise: bool) -> float:
    """Return the best token F1 of any guess with any right answer; 0 if there is no guess."""
    best = 0.0
    for guess in guesses:
        for answer in answers:
            best = max(best, queries.token_f1(guess, answer, normalise=normalise))
    return best


def group_scores(reference: pd.DataFrame, scores: FloatArray) -> list[tuple[str, FloatArray]]:
    """Return the name of each group of queries, such as ``domain: Fact``, and its scores.

    `reference` has a row for each query, and `scores` holds the score of each query. The queries
    with the same value in a column of `GROUPINGS` form a group. Queries without a value in the
    column form its last group, which is called unknown. A column without any value gives no groups.
    """
    groups = []
    for column, name in GROUPINGS.items():
        values = reference[column].to_numpy(object)
        known_values = sorted({value for value in values if value})
        if not known_values:
            continue
        for value in known_values:
            groups.append((f"{name}: {value}", scores[values == value]))
        is_unknown = values == ""
        if is_unknown.any():
            groups.append((f"{name}: unknown", scores[is_unknown]))
    return groups


def group_row(name: str, scores: FloatArray) -> tuple[str, ...]:
    """Return the row of a group of queries: name, number, mean score and share with the score 1."""
    return name, f"{len(scores):,}", f"{scores.mean():.4f}", f"{np.mean(scores == 1):.1%}"


def describe_rules(options: argparse.Namespace) -> str:
    """Return a text that says how the flags change the challenge's rules, for the record of scores.

    By the challenge's rules, the best of five guesses counts, and texts are compared with their
    punctuation and articles. If the flags do not change these rules, the text is empty.
    """
    rules = []
    if options.candidates == 1:
        rules.append("first guess")
    elif options.candidates != queries.N_GUESSES:
        rules.append(f"first {options.candidates} guesses")
    if options.normalise:
        rules.append("normalised")
    return ", ".join(rules)


if __name__ == "__main__":
    cli.run(main)
