"""Debiasing: score recommendations by NDCG@50 and hit rate@50, as the organisers' script does.

Run:     python related_challenges/debiasing/local_evaluation.py
Reads:   data/test_output/submission.csv and data/test_input/debias_track_answer.csv; if the latter
         is missing, underexpose_test_qtime_with_answer-T.csv and the clicks of all phases T
Writes:  data/test_output/scores_debiasing.txt and .html, and a line of the record of all scores

The score is NDCG@50 over all users, summed over the phases. scores_debiasing.txt holds the sums of
all four metrics, named as on the challenge's leaderboard. Rows of users who are not scored are
ignored. --phase T scores at phase T of the challenge: phases 0 to T, or 7 to T if T is 7 or more.
From phase 7 on, the organisers gave everybody 1 for each of the phases 0 to 6; --official_sum adds
these 7.
"""

import argparse
from pathlib import Path

from common import cli, layout, pages, provenance, reading
from common.errors import InputError
from related_challenges import challenge

import clicks
import numpy as np
import pandas as pd

NAMES_ON_LEADERBOARD = ("ndcg_50_full", "ndcg_50_half", "hitrate_50_full", "hitrate_50_half")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.evaluation_parser(
        __doc__, __file__, input_dir=challenge.TEST_INPUT, ref_data=clicks.ANSWERS
    )
    clicks.add_phase(parser)
    help_text = "from phase 7 on, add 7 to each sum"
    parser.add_argument("--official_sum", action="store_true", help=help_text)
    help_text = "--phase 9 --official_sum: how the challenge ended"
    parser.add_argument("--final_stage", action="store_true", help=help_text)
    return parser


def main() -> None:
    """Score the submission that the flags name by the clicks to be predicted."""
    options = challenge.read_evaluation_flags(build_parser())
    if options.final_stage:
        options.phase = max(clicks.PHASES)
        options.official_sum = True
    if options.official_sum and options.phase not in clicks.FINAL_PHASES:
        raise InputError("--official_sum is for --phase 7, 8 and 9: phases before add nothing")
    answers, scores = score_phases(options)
    # The organisers added 1 for each phase before the final ones.
    added = min(clicks.FINAL_PHASES) if options.official_sum else 0
    publish(options, answers, scores, added)


def score_phases(options: argparse.Namespace) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score the recommendations of each phase that counts.

    Returns
    -------
    answers : DataFrame
        The clicks to be predicted, as of `clicks.read_answers`, of these phases.
    scores : DataFrame
        The metrics of each phase, as of `clicks.score`.
    """
    submission = options.submission
    reference = options.reference
    answers = clicks.read_answers(reference)
    available = sorted(answers["phase_id"].unique().tolist())
    require_hidden_answers(submission, reference.parent, available[0])
    phases = clicks.phases_at(options.phase, available, reference)
    answers = answers[answers["phase_id"].isin(phases)]
    recommended = clicks.read_recommendations(submission)
    items = clicks.select_users(submission, recommended, answers["user_id"].to_numpy())
    return answers, clicks.score(items, answers)


def publish(
    options: argparse.Namespace, answers: pd.DataFrame, scores: pd.DataFrame, added: int
) -> None:
    """Print the score, and write its text file, its page and its line of the record.

    `added` is added to the sum over the phases.
    """
    reference = options.reference
    n_phases = len(scores)
    plus = f", plus {added}" if added else ""
    # With rows side by side in memory, sums are computed in the order of phases on every machine.
    values = np.ascontiguousarray(scores)
    totals = values.sum(axis=0) + added
    scores = scores.rename(index="phase {}".format)
    scores.loc["mean"] = values.mean(axis=0)
    scores.loc[f"sum + {added}" if added else "sum"] = totals
    rows = [[name, *map("{:.4f}".format, row)] for name, *row in scores.itertuples()]
    unit = "phases" if n_phases > 1 else "phase"
    how = f"a sum over {n_phases} {unit}{plus}"
    header = ["", "NDCG full", "half", "hit full", "half"]
    titles = ["", *clicks.METRICS]
    challenge.write_scores(
        options,
        [
            *challenge.in_columns([header, *rows], 10, 10),
            f"score {totals[0]:.4f} (NDCG@50 full of {len(answers):,} users, {how})",
        ],
        title="Debiasing: the next item clicked",
        metric_name="NDCG@50 full, sum over the phases",
        metric=f"NDCG@50 over all test users, {how}",
        score=float(totals[0]),
        reference=reference if reading.is_there(reference) else reference.parent,
        facts=[
            ("Users scored", f"{len(answers):,}"),
            ("Users of rare items (half)", f"{clicks.is_rare(answers).sum():,}"),
        ],
        rests_on=sorted((reference.parent.parent / challenge.TRAIN).glob("*")),
        rules=describe_rules(options, plus),
        parts={
            f"{metric}, {name}": float(scores.loc[name, metric])
            for name in scores.index
            for metric in scores.columns
        },
        figures=dict(zip(NAMES_ON_LEADERBOARD, totals.tolist(), strict=True)),
        body=pages.part("table", titles, rows, caption="Metrics by phase", stacks=True),
    )


def describe_rules(options: argparse.Namespace, plus: str) -> str:
    """Name the phases that count, for the record of scores; empty for all."""
    if options.phase is None:
        return ""
    if options.phase == max(clicks.PHASES) and options.official_sum:
        return "final stage"
    return f"phase {options.phase}{plus}"


def require_hidden_answers(submission: Path, folder: Path, phase: int) -> None:
    """Refuse a submission whose model has read the answers of the local split.

    Without --local and --test_dir, a sample model reads the published clicks of the test users, and
    these hold the clicks that the local split masks.
    """
    has_test_clicks = reading.is_there(folder / clicks.TEST_CLICKS.format(phase))
    has_train_clicks = reading.is_there(folder / clicks.TRAIN_CLICKS.format(phase))
    is_local_split = has_test_clicks and not has_train_clicks
    if not is_local_split:
        return
    origin = provenance.read(submission)
    if origin is None or {"local", "test_dir"} & set(origin.options):
        return
    # A script elsewhere, or a notebook, may read the split without these flags.
    if (layout.ROOT / origin.script).resolve().parent == Path(__file__).resolve().parent:
        raise InputError(
            f"{submission}: was made by `{origin.command}`, which reads the answers among the test "
            "users' clicks; expected --local or --test_dir"
        )


if __name__ == "__main__":
    cli.run(main)
