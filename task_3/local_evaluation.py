"""Task 3: score a ranking of questions against the judgements of five expert teachers.

Run:     python task_3/local_evaluation.py --phase public
Writes:  data/test_output/scores_task_3.txt and scores_task_3.html

The score is the best expert's share of pairs on which the ranking agrees. With few pairs, a
random ranking has a good best expert too: what it reaches is printed beside the score.
"""

from pathlib import Path

import numpy as np

from common import cli, io, layout, metrics, schema, score_files, submission
from common.errors import InputError

TASK = 3


def main() -> None:
    """Score the ranking that the flags name."""
    p = cli.parser(__doc__)
    p.add_argument(
        "--phase", choices=layout.PHASES, default="public", help="which pairs (default public)"
    )
    p.add_argument(
        "--input_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_DIR,
        help="default data/test_data",
    )
    p.add_argument("--ref_data", metavar="FILE", help="the judgements (default those of the phase)")
    p.add_argument(
        "--submission_dir",
        type=Path,
        metavar="DIR",
        default=layout.SUBMISSION_DIR,
        help="default submissions",
    )
    p.add_argument(
        "--submit_data",
        metavar="FILE",
        default=layout.submission_name(TASK),
        help=f"CSV or zip (default {layout.submission_name(TASK)})",
    )
    cli.add_template_flags(p, layout.TEMPLATE_TASK_3)
    p.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_OUTPUT_DIR,
        help="default data/test_output",
    )
    options = p.parse_args()
    reference_path = options.input_dir / (
        options.ref_data or layout.expert_judgements_name(options.phase)
    )
    submission_path = options.submission_dir / options.submit_data
    template_path = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)

    source = submission.submission_source(submission_path, layout.submission_name(TASK))
    left, right, judgements = read_judgements(reference_path)
    expected = submission.read_ranking_template(template_path)
    question, ranking = submission.read_ranking(source, expected)
    rank = dict(zip(question.tolist(), ranking.tolist(), strict=True))
    unranked = sorted({*left.tolist(), *right.tolist()} - rank.keys())
    if unranked:
        raise InputError(
            f"{reference_path}: QuestionId {unranked[0]} is judged, but it is not in "
            f"{template_path}: the two belong to different data"
        )

    agreement, n_judged = metrics.expert_agreement(
        np.array([rank[q] for q in left.tolist()]),
        np.array([rank[q] for q in right.tolist()]),
        judgements,
    )
    best = float(np.nanmax(agreement))
    floor = metrics.random_best_agreement(left, right, judgements)
    floor_mean, floor_high = float(floor.mean()), float(np.percentile(floor, 95))

    rows = [
        (name, f"{share:.2f}" if judged else "none", f"{judged}")
        for name, share, judged in zip(schema.EXPERT_NAMES, agreement, n_judged, strict=True)
    ]
    rows.append(("mean of the experts", f"{np.nanmean(agreement):.2f}", ""))
    comparison = (
        f"random rankings reach {floor_mean:.2f} on average as the best of "
        f"{len(schema.EXPERT_NAMES)}, 1 in 20 reaches {floor_high:.2f}"
    )
    paths = score_files.write_scores(
        options.output_dir,
        TASK,
        best,
        title="Task 3: question quality",
        what="Share of pairs on which the ranking agrees with its best expert",
        facts=[
            ("Submission", cli.show(submission_path)),
            ("Expert judgements", cli.show(reference_path)),
            ("Phase", options.phase),
            ("Pairs", f"{len(left)}"),
            ("Read it with care", comparison),
        ],
        simulated=layout.is_simulated(reference_path.parent.parent),
        submission=submission_path,
        reference=reference_path,
        phase=options.phase,
        parts={
            **dict(zip(schema.EXPERT_NAMES, agreement, strict=True)),
            "random rankings, mean": floor_mean,
            "random rankings, 95th percentile": floor_high,
        },
        body="<h2>Agreement with each expert</h2>"
        + score_files.table(["expert", "agreement", "pairs judged"], rows),
    )
    for name, share, judged in rows:
        print(f"{name:20} {share}" + (f" of {judged} pairs" if judged else ""))
    print(f"score {best:.4f} (best expert); {comparison}")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def read_judgements(path: Path) -> tuple[io.IntArray, io.IntArray, metrics.FloatArray]:
    """Read expert judgements.

    Parameters
    ----------
    path
        CSV with left, right, and a column for each expert.

    Returns
    -------
    left, right : arrays of int32, shape (pairs,)
        QuestionIds.
    judgements : array of float, shape (experts, pairs)
        1 left is better, 2 right is better, NaN no judgement.

    Raises
    ------
    InputError
        If the file is not as expected or holds no judgement at all.
    """
    experts = [schema.expert_judgement(name) for name in schema.EXPERT_NAMES]
    data = io.read_columns(path, [schema.LEFT, schema.RIGHT, *experts])
    judgements = np.stack([data[expert.name] for expert in experts]).astype(np.float64)
    if np.isnan(judgements).all():
        raise InputError(f"{path}: holds no judgement in {', '.join(schema.EXPERT_NAMES)}")
    return data["left"], data["right"], judgements


if __name__ == "__main__":
    cli.run(main)
