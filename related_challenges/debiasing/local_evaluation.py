"""Debiasing: score recommendations by NDCG@50 and hit rate@50, by the challenge's rules.

Run:     python related_challenges/debiasing/local_evaluation.py
Reads:   data/test_input/debias_track_answer.csv and data/test_output/submission.csv
Writes:  data/test_output/scores_debiasing.txt and .html, and a line of the record of all scores

The score is NDCG@50 over all users, summed over the phases; scores_debiasing.txt holds the sums of
all four metrics, named as on the challenge's leaderboard. Rows of users who are not scored are
ignored. With --final_stage only the phases 7 to 9 are scored, and 7 is added to each sum, as the
organisers did at the end of the challenge.
"""

import argparse
from pathlib import Path

from common import challenge, cli, io, layout, made, pages
from common.errors import InputError

import clicks
import numpy as np

FINAL_PHASES = (7, 8, 9)
NAMES_ON_LEADERBOARD = ("ndcg_50_full", "ndcg_50_half", "hitrate_50_full", "hitrate_50_half")


def main() -> None:
    """Score the submission that the flags name."""
    input_dir = layout.TEST_INPUT_DIR.name
    p = challenge.evaluation_parser(__doc__, __file__, input_dir=input_dir, ref_data=clicks.ANSWERS)
    p.add_argument("--final_stage", action="store_true", help="score phases 7 to 9, plus 7")
    title, metric = "Debiasing: the next item clicked", "NDCG@50 full, sum over the phases"
    challenge.evaluate(p, __file__, title, metric, score)


def score(options: argparse.Namespace, submission: Path, reference: Path) -> challenge.Scored:
    """Score a submission by the clicks to be predicted."""
    answers = clicks.read_answers(reference)
    phases = sorted(answers["phase_id"].unique().tolist())
    require_hidden_answers(submission, reference.parent, phases[0])
    if options.final_stage:
        if not set(FINAL_PHASES) <= set(phases):
            raise InputError(
                f"{reference}: holds the phases {', '.join(map(str, phases))}, --final_stage "
                f"expects {', '.join(map(str, FINAL_PHASES))}"
            )
        phases = list(FINAL_PHASES)
    recommended = clicks.read_recommendations(submission)
    scores, n_rare = [], 0
    for phase in phases:
        own = answers[answers["phase_id"] == phase]
        user, item, degree = own[["user_id", "item_id", "item_degree"]].to_numpy().T
        items = clicks.select_users(submission, recommended, user)
        scores.append(clicks.score_phase(clicks.rank_of_answer(items, item), degree))
        n_rare += int(clicks.is_rare(degree).sum())

    values = np.array(scores)
    # In the final stage the organisers gave everybody 1 for each of the phases 0 to 6.
    more = min(FINAL_PHASES) if options.final_stage else 0
    totals = values.sum(axis=0) + more
    lines = {
        **{f"phase {phase}": own for phase, own in zip(phases, values, strict=True)},
        "mean": values.mean(axis=0),
        "sum" + (f" + {more}" if more else ""): totals,
    }
    rows = [[name, *map("{:.4f}".format, own)] for name, own in lines.items()]
    n_scored = int(answers["phase_id"].isin(phases).sum())
    how = f"a sum over {len(phases)} phase{'s' if len(phases) > 1 else ''}"
    how += f", plus {more}" if more else ""
    header = ["", "NDCG full", "half", "hit full", "half"]
    return challenge.Scored(
        score=float(totals[0]),
        metric=f"NDCG@50 over all test users, {how}",
        facts=[
            ("Users scored", f"{n_scored:,}"),
            ("Users of rare items (half)", f"{n_rare:,}"),
        ],
        rests_on=sorted((reference.parent.parent / layout.TRAIN_DIR.name).glob("*")),
        rules="final stage" if options.final_stage else "",
        parts={
            f"{metric}, {name}": float(value)
            for name, own in lines.items()
            for metric, value in zip(clicks.METRICS, own, strict=True)
        },
        figures=dict(zip(NAMES_ON_LEADERBOARD, totals.tolist(), strict=True)),
        body=pages.table(["", *clicks.METRICS], rows, caption="Metrics by phase", stacks=True),
        lines=[
            *challenge.in_columns([header, *rows], 10, 10),
            f"score {totals[0]:.4f} (NDCG@50 full of {n_scored:,} users, {how})",
        ],
    )


def require_hidden_answers(submission: Path, folder: Path, phase: int) -> None:
    """Refuse a submission that a model here made from files with the answers of a local split.

    The users of the split are the published test users; only their latest click is hidden. The
    folder of the split has the test files of a phase that is scored, but no training files.
    """
    is_split = io.is_there(folder / clicks.test_clicks_name(phase)) and not io.is_there(
        folder / clicks.train_clicks_name(phase)
    )
    origin = made.read(submission)
    if not is_split or origin is None:
        return
    # A script elsewhere, or a notebook, may read the split without a flag.
    is_beside = (layout.ROOT / origin.script).resolve().parent == Path(__file__).resolve().parent
    if is_beside and not {"local", "test_dir"} & {*origin.options}:
        raise InputError(
            f"{submission}: was made by `{origin.command}`, which reads the "
            "answers among the test users' clicks; expected --local or --test_dir"
        )


if __name__ == "__main__":
    cli.run(main)
