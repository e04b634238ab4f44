"""Debiasing: score recommendations by NDCG@50 and hit rate@50, as the organisers' script does.

Run:     python related_challenges/debiasing/local_evaluation.py
Reads:   data/test_output/submission.csv and data/test_input/debias_track_answer.csv, or where that
         is missing underexpose_test_qtime_with_answer-T.csv and the clicks of all phases T
Writes:  data/test_output/scores_debiasing.txt and .html, and a line of the record of all scores

The score is NDCG@50 over all users, summed over the phases; scores_debiasing.txt holds the sums of
all four metrics, named as on the challenge's leaderboard. Rows of users who are not scored are
ignored. --phase T scores at phase T of the challenge: phases 0 to T, from 7 on 7 to T, when the
organisers gave everybody 1 for each of the phases before: --official_sum adds these 7.
"""

import argparse
from pathlib import Path

from common import cli, layout, pages, provenance, reading
from common.errors import InputError
from related_challenges import challenge

import clicks
import numpy as np

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
        options.phase, options.official_sum = max(clicks.PHASES), True
    if options.official_sum and options.phase not in clicks.FINAL_PHASES:
        raise InputError("--official_sum is for --phase 7, 8 and 9: phases before add nothing")
    submission, reference = options.submission, options.reference
    answers = clicks.read_answers(reference)
    there = sorted(answers["phase_id"].unique().tolist())
    require_hidden_answers(submission, reference.parent, there[0])
    phases = clicks.phases_at(options.phase, there, reference)
    answers = answers[answers["phase_id"].isin(phases)]
    recommended = clicks.read_recommendations(submission)
    items = clicks.select_users(submission, recommended, answers["user_id"].to_numpy())
    scores = clicks.score(items, answers)

    more = min(clicks.FINAL_PHASES) if options.official_sum else 0
    plus = f", plus {more}" if more else ""
    values = np.ascontiguousarray(scores)  # Row by row, so that sums go from phase to phase.
    totals = values.sum(axis=0) + more
    scores = scores.rename(index="phase {}".format)
    scores.loc["mean"], scores.loc["sum" + f" + {more}" * (more > 0)] = values.mean(axis=0), totals
    rows = [[name, *map("{:.4f}".format, own)] for name, *own in scores.itertuples()]
    how = f"a sum over {len(phases)} phase{'s' if len(phases) > 1 else ''}{plus}"
    rules = "" if options.phase is None else f"phase {options.phase}{plus}"
    header, titles = ["", "NDCG full", "half", "hit full", "half"], ["", *clicks.METRICS]
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
        rules="final stage" if rules == "phase 9, plus 7" else rules,
        parts={
            f"{metric}, {name}": float(value)
            for name, own in scores.iterrows()
            for metric, value in own.items()
        },
        figures=dict(zip(NAMES_ON_LEADERBOARD, totals.tolist(), strict=True)),
        body=pages.part("table", titles, rows, caption="Metrics by phase", stacks=True),
    )


def require_hidden_answers(submission: Path, folder: Path, phase: int) -> None:
    """Refuse what a model here made of files that still hold the answers of a local split."""
    is_split = reading.is_there(folder / clicks.TEST_CLICKS.format(phase))
    is_split = is_split and not reading.is_there(folder / clicks.TRAIN_CLICKS.format(phase))
    origin = provenance.read(submission) if is_split else None
    if origin is None or {"local", "test_dir"} & {*origin.options}:
        return
    # A script elsewhere, or a notebook, may read the split without a flag.
    if (layout.ROOT / origin.script).resolve().parent == Path(__file__).resolve().parent:
        raise InputError(
            f"{submission}: was made by `{origin.command}`, which reads the answers among the test "
            "users' clicks; expected --local or --test_dir"
        )


if __name__ == "__main__":
    cli.run(main)
