"""Score a ranking of questions against expert judgements, in task 3."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import charts, cli, io, layout, metrics, submission
from common.evaluation import outcomes, record, score_files
from common.evaluation.judgements import (
    NEITHER,
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
# How empty judgements count.
_MEANING = {"ignored": "which do not count", "disagrees": "which count as disagreement"}


def evaluate(options: argparse.Namespace) -> None:
    """Score a ranking against a panel of experts: write, print and record what it reaches."""
    name = score_files.score_name(TASK, options.phase)
    official = layout.answers_path(TASK, options.phase)
    reference = (options.input_dir or official.parent) / (options.ref_data or official.name)
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)

    submission_path = options.submission_dir / options.submit_data
    score_files.remove_scores(options.output_dir, name, (submission_path, reference, template))
    evaluation, page = judge(
        submission_path, reference, template, options.phase, missing=options.missing
    )
    paths = score_files.write_scores(
        options.output_dir, name, evaluation, template="ranking.html", **page
    )
    record.append_result(options.output_dir, TASK, evaluation)
    columns = ["share", "low", "high", "n_judged", "others"]
    figures = page["agreement"][columns].reindex([*page["experts"], "mean", "best"])
    width = max(20, *map(len, page["experts"]))
    for expert, share, low, high, n_judged, others in figures.itertuples(name=None):
        known = f"{share:.2f} ({low:.2f} to {high:.2f})" if share == share else "none"
        pairs = f" of {n_judged:.0f} pairs" if n_judged == n_judged else ""
        among = f"; experts among themselves {others:.2f}" if others == others else ""
        print(f"{expert:{width}} {known}{pairs}{among}")
    print(f"score {evaluation.score:.4f} (best expert); {dict(evaluation.facts)[_LUCK]}")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def judge(
    submission_path: Path,
    reference_path: Path,
    template_path: Path,
    phase: str,
    *,
    missing: str = "ignored",
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
    judgements = read_judgements(reference_path, missing)
    expected = submission.read_ranking_template(template_path)
    question, ranking = submission.read_ranking(source, expected)
    ranks = rank_pairs(judgements, question, ranking)
    left, right, better = judgements.left, judgements.right, judgements.better
    figures = compare_with_experts(judgements, *ranks)
    floor = metrics.random_best_agreement(left, right, better)
    floor_mean, floor_high = float(floor.mean()), float(np.percentile(floor, 95))

    luck = (
        f"random rankings reach {floor_mean:.2f} on average as the best of {len(figures) - 2}, "
        f"at most 1 in 20 exceeds {floor_high:.2f}"
    )
    is_given = (better == 1) | (better == 2)
    empty = f"{np.count_nonzero(~is_given)} of {better.size}"
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
        rules="" if missing == "ignored" else "empty judgements disagree",
        facts=[
            ("Pairs", f"{len(left)}"),
            ("Empty judgements", f"{empty}, {_MEANING[missing]}"),
            (_LUCK, luck),
        ],
        outcomes=outcomes.of_judgements(left, right, better, agrees),
    )
    concordance, _ = metrics.expert_concordance(better)
    page = {
        "agreement": figures,
        "chart": _draw(figures, (floor_mean, floor_high)),
        "experts": judgements.experts,
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
    agrees = np.where(judgements.better == NEITHER, np.nan, agrees)
    n_against = (agrees == 0).sum(axis=0)
    order = np.argsort(-n_against, kind="stable")[: np.count_nonzero(n_against)]
    pairs = []
    for pair in order.tolist():
        sides = [(rank_left, judgements.left), (rank_right, judgements.right)]
        better, worse = sorted((int(rank[pair]), int(question[pair])) for rank, question in sides)
        pairs.append({"better": better, "worse": worse, "agrees": agrees[:, pair].tolist()})
    return pairs
