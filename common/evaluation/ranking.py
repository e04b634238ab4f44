"""Score a ranking of questions against expert judgements, in task 3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import charts, cli, io, layout, metrics, schema, submission
from common.evaluation import outcomes, record, score_files
from common.evaluation.judgements import (
    Judgements,
    compare_with_experts,
    rank_pairs,
    read_judgements,
)
from common.evaluation.record import Evaluation

import numpy as np

if TYPE_CHECKING:  # Importing it takes 0.2 s.
    import pandas as pd

TASK = 3
# Names the fact that says what random rankings reach.
_LUCK = "Read it with care"


def evaluate(doc: str | None) -> None:
    """Run the `local_evaluation.py` of task 3, whose docstring is the help."""
    p = cli.parser(doc)
    p.add_argument(
        "--phase", choices=layout.PHASES, default="public", help="which pairs (default public)"
    )
    cli.add_folder(p, "--input_dir", layout.TEST_DIR)
    p.add_argument("--ref_data", metavar="FILE", help="the judgements (default those of the phase)")
    cli.add_folder(p, "--submission_dir", layout.SUBMISSION_DIR)
    p.add_argument(
        "--submit_data",
        metavar="FILE",
        default=layout.submission_name(TASK),
        help=f"CSV or zip (default {layout.submission_name(TASK)})",
    )
    cli.add_template_flags(p, layout.TEMPLATE_TASK_3)
    cli.add_folder(p, "--output_dir", layout.TEST_OUTPUT_DIR)
    options = p.parse_args()
    name = score_files.score_name(TASK, options.phase)
    score_files.remove_scores(options.output_dir, name)
    reference = options.input_dir / (
        options.ref_data or layout.answers_path(TASK, options.phase).name
    )
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)

    submission_path = options.submission_dir / options.submit_data
    evaluation, page = judge(submission_path, reference, template, options.phase)
    paths = score_files.write_scores(
        options.output_dir, name, evaluation, template="ranking.html", **page
    )
    record.append_result(options.output_dir, TASK, evaluation)
    columns = ["share", "low", "high", "n_judged", "others"]
    figures = page["agreement"][columns].reindex([*schema.EXPERT_NAMES, "mean", "best"])
    for expert, share, low, high, n_judged, others in figures.itertuples(name=None):
        known = f"{share:.2f} ({low:.2f} to {high:.2f})" if share == share else "none"
        pairs = f" of {n_judged:.0f} pairs" if n_judged == n_judged else ""
        among = f"; experts among themselves {others:.2f}" if others == others else ""
        print(f"{expert:20} {known}{pairs}{among}")
    print(f"score {evaluation.score:.4f} (best expert); {dict(evaluation.facts)[_LUCK]}")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def judge(
    submission_path: Path,
    reference_path: Path,
    template_path: Path,
    phase: str,
    *,
    with_answers: bool = True,
) -> tuple[Evaluation, dict[str, Any]]:
    """Check a ranking, CSV or zip, and score it; the template lists the questions to be ranked.

    Returns the evaluation, whose score is the agreement with the best expert, and what ranking.html
    shows. Where participants see the page and may submit again, it lists no pairs with what each
    expert said of them: it is without answers. There is no score, but `InputError`, if the
    submission is not complete and valid.
    """
    source = submission.submission_source(
        submission_path, layout.submission_name(TASK), template_path
    )
    judgements = read_judgements(reference_path)
    expected = submission.read_ranking_template(template_path)
    question, ranking = submission.read_ranking(source, expected)
    ranks = rank_pairs(judgements, question, ranking)
    left, right, better = judgements.left, judgements.right, judgements.better
    figures = compare_with_experts(judgements, *ranks)
    floor = metrics.random_best_agreement(left, right, better)
    floor_mean, floor_high = float(floor.mean()), float(np.percentile(floor, 95))

    n_experts = len(schema.EXPERT_NAMES)
    luck = (
        f"random rankings reach {floor_mean:.2f} on average as the best of {n_experts}, at most "
        f"1 in 20 exceeds {floor_high:.2f}"
    )
    agrees = metrics.pair_agreement(*ranks, better)
    evaluation = Evaluation(
        title=record.TASK_TITLES[TASK],
        metric="Share of pairs on which the ranking agrees with its best expert",
        score=float(figures["share"]["best"]),
        submission=submission_path,
        reference=reference_path,
        phase=phase,
        parts={
            **figures["share"].drop(["mean", "best"]),
            "random rankings, mean": floor_mean,
            "random rankings, 95th percentile": floor_high,
        },
        facts=[("Pairs", f"{len(left)}"), (_LUCK, luck)],
        outcomes=outcomes.of_judgements(left, right, better, agrees),
    )
    concordance, _ = metrics.expert_concordance(better)
    page = {
        "agreement": figures,
        "chart": _draw(figures, (floor_mean, floor_high)),
        "experts": schema.EXPERT_NAMES,
        "concordance": concordance,
        "contested": _list_contested(judgements, *ranks, agrees) if with_answers else None,
        "n_pairs": len(left),
    }
    return evaluation, page


def _draw(figures: pd.DataFrame, random_range: tuple[float, float]) -> str:
    """Draw the agreement with each expert; the best beside what random rankings reach there."""
    columns = figures[["share", "low", "high", "others"]]
    dots = []
    for name, share, low, high, others in columns.itertuples(name=None):
        mark = None if np.isnan(others) else others
        band = random_range if name == "best" else None
        dots.append(charts.Dot(name, share, (low, high), mark, band))
    label, axis = "Agreement of the ranking with each expert, with 95 % intervals", "share of pairs"
    return charts.dot_chart(dots, label=label, digits=2, limits=(0, 1), chance=0.5, axis=axis)


def _list_contested(
    judgements: Judgements,
    rank_left: io.IntArray,
    rank_right: io.IntArray,
    agrees: metrics.FloatArray,
) -> list[dict[str, Any]]:
    """Return the pairs on which any expert contradicts the ranking, the most contested first.

    Each has QuestionId and rank of the better and of the worse question, and what the experts say:
    1 agrees, 0 contradicts, NaN no judgement.
    """
    n_against = (agrees == 0).sum(axis=0)
    order = np.argsort(-n_against, kind="stable")[: np.count_nonzero(n_against)]
    pairs = []
    for pair in order.tolist():
        sides = [(rank_left, judgements.left), (rank_right, judgements.right)]
        better, worse = sorted((int(rank[pair]), int(question[pair])) for rank, question in sides)
        pairs.append({"better": better, "worse": worse, "agrees": agrees[:, pair].tolist()})
    return pairs
