"""Score a ranking of questions against expert judgements of pairs of them, in task 3."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, NamedTuple

from common import charts, cli, io, layout, metrics, schema, submission
from common.errors import InputError
from common.evaluation import outcomes, record, score_files
from common.evaluation.record import Evaluation
from common.lazy import pd

import numpy as np

TASK = 3
# How a judgement that an expert left empty may count, and what the page says of that.
MISSING = {"ignored": "which do not count", "disagrees": "which count as disagreement"}
# Stands for one that counts as disagreement: neither question.
_NEITHER = 3
# Names the fact that says what random rankings reach.
_LUCK = "Read it with care"
# Numbers of rows, also in the official files: a column without a name, and what pandas calls it.
_ROW_NUMBERS = re.compile(r"(Unnamed: \d+(\.\d+)*)?")


class Judgements(NamedTuple):
    """What experts say about pairs of questions.

    The name is that of the file, in messages. QuestionIds have the shape (pairs,); what is better
    (experts, pairs): 1 the left question, 2 the right, NaN no judgement, or any other number where
    that counts as disagreement.
    """

    name: str
    experts: list[str]
    left: io.IntArray
    right: io.IntArray
    better: metrics.FloatArray


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
    lines = []
    columns = ["share", "low", "high", "n_judged", "others"]
    figures = page["agreement"][columns].reindex([*page["experts"], "mean", "best"])
    width = max(20, *map(len, page["experts"]))
    for expert, share, low, high, n_judged, others in figures.itertuples(name=None):
        known = f"{share:.2f} ({low:.2f} to {high:.2f})" if share == share else "none"
        pairs = f" of {n_judged:.0f} pairs" if n_judged == n_judged else ""
        among = f"; experts among themselves {others:.2f}" if others == others else ""
        lines.append(f"{expert:{width}} {known}{pairs}{among}")
    lines.append(f"score {evaluation.score:.4f} (best expert); {dict(evaluation.facts)[_LUCK]}")
    folder = options.output_dir
    score_files.publish(folder, name, TASK, evaluation, lines, template="ranking.html", **page)


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
    judgements = read_judgements(reference_path, missing)
    ranks = rank_pairs(judgements, submission.read_ranking(submission_path, template_path))
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
            ("Empty judgements", f"{empty}, {MISSING[missing]}"),
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


def read_judgements(path: Path, missing: str = "ignored") -> Judgements:
    """Read a CSV with left, right, and a column for each expert, of any number and names.

    Only numbers of rows may stand there besides. `missing` is one of `MISSING`; an expert without
    any judgement is left out of the panel in both ways.
    """
    sides = [schema.LEFT, schema.RIGHT]
    header = io.read_header(io.file_source(path))
    others = [name for name in header if name not in [side.name for side in sides]]
    experts = [name for name in others if not _ROW_NUMBERS.fullmatch(name)]
    data = io.read_table(path, [*sides, *map(schema.expert_judgement, experts)])
    better = np.array([data[name] for name in experts], np.float64)
    if np.isnan(better).all():
        raise InputError(
            f"{path}: holds no judgement, expected beside left and right a column for each expert "
            "with 1, 2 or nothing"
        )
    if missing == "disagrees":
        better[np.isnan(better) & ~np.isnan(better).all(axis=1, keepdims=True)] = _NEITHER
    left, right = data[["left", "right"]].to_numpy().T
    return Judgements(str(path), experts, left, right, better)


def rank_pairs(judgements: Judgements, rank: pd.Series) -> tuple[io.IntArray, io.IntArray]:
    """Look up the ranks of the judged questions, which all must have one; shape (pairs,) both."""
    sides = judgements.left, judgements.right
    for unranked in np.setdiff1d(sides, rank.index)[:1]:
        raise InputError(
            f"{judgements.name}: QuestionId {unranked} is judged, but it is not in the "
            f"ranking of {len(rank)} questions: the two belong to different data"
        )
    left, right = (rank[side].to_numpy() for side in sides)
    return left, right


def compare_with_experts(
    judgements: Judgements, rank_left: io.IntArray, rank_right: io.IntArray
) -> pd.DataFrame:
    """Compute how often a ranking agrees with every expert, their mean and their best.

    The intervals of the experts are exact binomial ones; those of their mean and their best come
    from resampling the pairs 10,000 times. The best of several experts in a sample is more often a
    lucky one than an unlucky one: the interval of the best lies too high, if anything.

    There is a row for each expert that has judged, then ``mean`` and ``best``: share of the pairs,
    low and high (the 95 % interval), n_judged, number of pairs, and others, the mean share on which
    the other experts agree with this one, for the mean any two with each other; NaN if not known.
    """
    agrees = metrics.pair_agreement(rank_left, rank_right, judgements.better)
    share, n_judged = metrics.expert_agreement(rank_left, rank_right, judgements.better)
    others, _ = metrics.expert_concordance(judgements.better)
    table = pd.DataFrame({"share": share, "n_judged": n_judged}, index=judgements.experts)
    table["others"] = pd.DataFrame(others).mean(axis=1).to_numpy()
    table = table[table["n_judged"] > 0].copy()
    table[["low", "high"]] = [
        metrics.binomial_interval(int(np.nansum(row)), n)
        for row, n in zip(agrees, n_judged.tolist(), strict=True)
        if n
    ]
    # Without experts and pairs that have no judgement at all, every draw holds some.
    judged = ~np.isnan(agrees)
    drawn = metrics.bootstrap_agreement(agrees[judged.any(axis=1)][:, judged.any(axis=0)])
    for name, summary in (("mean", np.nanmean), ("best", np.nanmax)):
        low, high = np.nanpercentile(summary(drawn, axis=1), (2.5, 97.5))
        table.loc[name, ["share", "low", "high"]] = summary(share), low, high
    table.loc["mean", "others"] = pd.Series(others.ravel()).mean()
    return table


def _draw(figures: pd.DataFrame, random_range: tuple[float, float]) -> str:
    """Draw the agreement with each expert; the best beside what random rankings reach there."""
    columns = figures[["share", "low", "high", "others"]]
    dots = {
        name: charts.Dot(name, share, (low, high), others)
        for name, share, low, high, others in columns.itertuples(name=None)
    }
    dots["best"] = dots["best"]._replace(band=random_range)
    label, axis = "Agreement of the ranking with each expert, with 95 % intervals", "share of pairs"
    scale: dict[str, Any] = {"limits": (0, 1), "chance": 0.5, "axis": axis}
    return charts.dot_chart([*dots.values()], label=label, digits=2, **scale)


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
    agrees = np.where(judgements.better == _NEITHER, np.nan, agrees)
    n_against = (agrees == 0).sum(axis=0)
    order = np.argsort(-n_against, kind="stable")[: np.count_nonzero(n_against)]
    pairs = []
    for pair in order.tolist():
        sides = [(rank_left, judgements.left), (rank_right, judgements.right)]
        better, worse = sorted((int(rank[pair]), int(question[pair])) for rank, question in sides)
        pairs.append({"better": better, "worse": worse, "agrees": agrees[:, pair].tolist()})
    return pairs
