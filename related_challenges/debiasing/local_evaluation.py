"""Debiasing: score recommendations by NDCG@50 and hit rate@50, exactly as the challenge would.

Run:     python related_challenges/debiasing/local_evaluation.py
Reads:   data/test_input/debias_track_answer.csv and data/test_output/submission.csv
Writes:  data/test_output/scores_debiasing.txt and .html, and a line of the record of all scores

The score is NDCG@50 over all users, summed over the phases; scores_debiasing.txt holds the sums of
all four metrics, named as on the challenge's leaderboard. Rows of users who are not scored are
ignored. With --final_stage only the phases 7 to 9 are scored, and 7 is added to each sum, as the
organisers did at the end of the challenge.
"""

from pathlib import Path

from common import challenge, cli, io, layout, made, pages
from common.errors import InputError
from common.evaluation import record, score_files
from common.evaluation.record import Evaluation

import clicks
import numpy as np

FINAL_PHASES = (7, 8, 9)
METRICS = ("ndcg_full", "ndcg_half", "hit_rate_full", "hit_rate_half")
NAMES_ON_LEADERBOARD = ("ndcg_50_full", "ndcg_50_half", "hitrate_50_full", "hitrate_50_half")


def main() -> None:
    """Score the submission that the flags name."""
    p = challenge.evaluation_parser(__doc__, __file__, input_dir=layout.TEST_INPUT_DIR.name)
    cli.add_file(p, "--ref_data", clicks.ANSWERS)
    p.add_argument("--final_stage", action="store_true", help="score phases 7 to 9, plus 7")
    options = p.parse_args()
    score_files.remove_scores(options.output_dir, "debiasing")
    reference_path = options.input_dir / options.ref_data
    submission_path = options.submission_dir / options.submit_data

    answers = clicks.read_answers(reference_path)
    phases = np.unique(answers.phase).tolist()
    require_hidden_answers(submission_path, reference_path.parent, phases[0])
    if options.final_stage:
        if not set(FINAL_PHASES) <= set(phases):
            raise InputError(
                f"{reference_path}: holds the phases {', '.join(map(str, phases))}, --final_stage "
                f"expects {', '.join(map(str, FINAL_PHASES))}"
            )
        phases = list(FINAL_PHASES)
    user, items = clicks.read_recommendations(submission_path)
    scores = []
    for phase in phases:
        rows = answers.phase == phase
        recommended = clicks.select_users(submission_path, user, items, answers.user[rows])
        rank = clicks.rank_of_answer(recommended, answers.item[rows])
        scores.append(clicks.score_phase(rank, answers.degree[rows]))

    values = np.array([[getattr(score, metric) for metric in METRICS] for score in scores])
    # In the final stage the organisers gave everybody 1 for each of the phases 0 to 6.
    totals = values.sum(axis=0) + (min(FINAL_PHASES) if options.final_stage else 0)
    lines = [
        *zip((f"phase {phase}" for phase in phases), values, strict=True),
        ("mean", values.mean(axis=0)),
        ("sum" + (" + 7" if options.final_stage else ""), totals),
    ]
    how = f"a sum over {len(phases)} phase{'s' if len(phases) > 1 else ''}"
    how += f", plus {min(FINAL_PHASES)}" if options.final_stage else ""
    rows_shown = [[name, *(f"{value:.4f}" for value in line)] for name, line in lines]
    header = ["", "NDCG@50 full", "NDCG@50 half", "hit rate@50 full", "hit rate@50 half"]
    n_scored = sum(score.n_full for score in scores)
    evaluation = Evaluation(
        title="Debiasing: the next item clicked",
        metric=f"NDCG@50 over all test users, {how}",
        score=float(totals[0]),
        submission=submission_path,
        reference=reference_path,
        facts=[
            ("Users scored", f"{n_scored:,}"),
            ("Users of rare items (half)", f"{sum(score.n_half for score in scores):,}"),
        ],
        rests_on=sorted((reference_path.parent.parent / layout.TRAIN_DIR.name).glob("*")),
        rules="final stage" if options.final_stage else "",
        parts={
            f"{metric}, {name}": float(value)
            for name, values_of in lines
            for metric, value in zip(header[1:], values_of, strict=True)
        },
        metric_name="NDCG@50 full, sum over the phases",
    )
    body = pages.table(header, rows_shown, caption="Metrics by phase", stacks=True)
    paths = score_files.write_scores(options.output_dir, "debiasing", evaluation, body=body)
    names = ("score", *NAMES_ON_LEADERBOARD)
    sums = (totals[0], *totals)
    text = "".join(f"{name}:{float(value)!r}\n" for name, value in zip(names, sums, strict=True))
    io.write_text(paths[0], text)
    record.append_result(options.output_dir, "debiasing", evaluation)
    print(f"{'':10s} {'NDCG full':>10s} {'half':>10s} {'hit full':>10s} {'half':>10s}")
    for name, *cells in rows_shown:
        print(f"{name:10s} " + " ".join(f"{cell:>10s}" for cell in cells))
    print(f"score {totals[0]:.4f} (NDCG@50 full of {n_scored:,} users, {how})")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def require_hidden_answers(submission: Path, folder: Path, phase: int) -> None:
    """Refuse a submission made from files that still hold the answers of a local split.

    The users of the split are the published test users; only their latest click is hidden.

    Parameters
    ----------
    submission
        With its record beside it; without one there is nothing to tell how it was made.
    folder
        Of the answers; the local split's holds the test files, but no training files.
    phase
        One of the phases that are scored.

    Raises
    ------
    InputError
        If a model in this folder made it without the split.
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
