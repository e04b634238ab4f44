"""Score a ranking of questions against expert judgements of pairs of them, in task 3."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from common import charts, io, metrics, schema, submission
from common.errors import InputError
from common.evaluation import outcomes
from common.evaluation.record import Evaluation
from common.lazy import pd
from common.tasks import TASK_3

import numpy as np

# How a judgement that an expert left empty may count, and what the page says of that.
MISSING = {"ignored": "which do not count", "disagrees": "which count as disagreement"}
# Stands for one that counts as disagreement: neither question.
_NEITHER = 3
# Names the fact that says what random rankings reach.
LUCK = "Read it with care"
# Numbers of rows, also in the official files: a column without a name, and what pandas calls it.
_ROW_NUMBERS = re.compile(r"(Unnamed: \d+(\.\d+)*)?")


def judge(
    submission_path: Path,
    reference_path: Path,
    template_path: Path,
    phase: str,
    *,
    missing: str = "ignored",
    with_answers: bool = True,
) -> tuple[Evaluation, dict[str, Any]]:
    """Check and score a ranking, CSV or zip; return the evaluation and what ranking.html shows:
    where participants may submit again, without answers, no pairs with what experts said.
    """
    judgements = read_judgements(reference_path, missing)
    rank = submission.read_ranking(submission_path, template_path)
    agrees = agreement(judgements, rank)
    figures = compare_with_experts(judgements, agrees)
    floor = metrics.random_best_agreement(judgements)
    floor_mean, floor_high = float(floor.mean()), float(np.percentile(floor, 95))

    luck = (
        f"random rankings reach {floor_mean:.2f} on average as the best of {len(figures) - 2}, "
        f"at most 1 in 20 exceeds {floor_high:.2f}"
    )
    empty = f"{(~judgements.isin([1, 2])).to_numpy().sum()} of {judgements.size}"
    evaluation = Evaluation(
        task=TASK_3.number,
        metric=TASK_3.metric_sentence,
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
            ("Pairs", f"{len(judgements)}"),
            ("Empty judgements", f"{empty}, {MISSING[missing]}"),
            (LUCK, luck),
        ],
        outcomes=outcomes.of_judgements(judgements, agrees),
    )
    page = {
        "agreement": figures,
        "chart": _draw(figures, (floor_mean, floor_high)),
        "experts": [*judgements],
        "concordance": metrics.expert_concordance(judgements),
        "contested": _list_contested(judgements, agrees, rank) if with_answers else None,
        "n_pairs": len(judgements),
    }
    return evaluation, page


def read_judgements(path: Path, missing: str = "ignored") -> pd.DataFrame:
    """Read left, right, and a column for each expert, as `common.metrics` counts them."""
    sides = [schema.LEFT, schema.RIGHT]
    header = io.read_header(io.file_source(path))
    others = [name for name in header if name not in [side.name for side in sides]]
    experts = [name for name in others if not _ROW_NUMBERS.fullmatch(name)]
    data = io.read_table(path, [*sides, *map(schema.expert_judgement, experts)])
    judgements = data.set_index([side.name for side in sides]).astype(np.float64)
    if judgements.isna().to_numpy().all():
        raise InputError(
            f"{path}: holds no judgement, expected beside left and right a column for each expert "
            "with 1, 2 or nothing"
        )
    if missing == "disagrees":
        judgements = judgements.where(judgements.notna() | judgements.isna().all(), _NEITHER)
    judgements.attrs["path"] = path
    return judgements


def agreement(judgements: pd.DataFrame, rank: pd.Series) -> pd.DataFrame:
    """Return whether a ranking, 1 is the best, agrees with every judgement: 1, 0, NaN."""
    sides = [judgements.index.get_level_values(side) for side in (0, 1)]
    for unranked in np.setdiff1d(sides, rank.index)[:1]:
        raise InputError(
            f"{judgements.attrs['path']}: QuestionId {unranked} is judged, but it is not in the "
            f"ranking of {len(rank)} questions: the two belong to different data"
        )
    left, right = (rank[side].to_numpy() for side in sides)
    agrees = judgements.eq(np.where(left < right, 1, 2), axis=0)
    return agrees.astype(float).where(judgements.notna())


def compare_with_experts(judgements: pd.DataFrame, agrees: pd.DataFrame) -> pd.DataFrame:
    """Return share, low and high (95 %, of mean and best by resampling pairs, that of the best
    rather too high), n_judged, and others, the mean share on which other experts agree with this
    one; a row for each with judgements, then ``mean`` and ``best``; NaN if not known.
    """
    share, n_judged = agrees.mean(), agrees.count()
    low, high = metrics.binomial_interval(agrees.sum().to_numpy(), n_judged.to_numpy())
    table = pd.DataFrame({"share": share, "low": low, "high": high, "n_judged": n_judged})
    others = metrics.expert_concordance(judgements)
    table["others"] = pd.DataFrame(others).mean(axis=1).to_numpy()
    table = table[n_judged > 0].copy()
    # Without experts and pairs that have no judgement at all, every draw holds some.
    drawn = metrics.bootstrap_agreement(agrees.dropna(how="all").dropna(axis=1, how="all"))
    for name, summary in (("mean", np.nanmean), ("best", np.nanmax)):
        low, high = np.nanpercentile(summary(drawn, axis=1), (2.5, 97.5))
        table.loc[name, ["share", "low", "high"]] = summary(share), low, high
    table.loc["mean", "others"] = pd.Series(others.ravel()).mean()
    return table


def _draw(figures: pd.DataFrame, random_range: tuple[float, float]) -> str:
    """Draw the agreement with each expert; the best beside what random rankings reach there."""
    dots = {
        name: charts.Dot(name, share, (low, high), others)
        for name, share, low, high, _, others in figures.itertuples(name=None)
    }
    dots["best"] = dots["best"]._replace(band=random_range)
    label, axis = "Agreement of the ranking with each expert, with 95 % intervals", "share of pairs"
    scale: dict[str, Any] = {"limits": (0, 1), "chance": 0.5, "axis": axis}
    return charts.dot_chart([*dots.values()], label=label, digits=2, **scale)


def _list_contested(
    judgements: pd.DataFrame, agrees: pd.DataFrame, rank: pd.Series
) -> list[dict[str, Any]]:
    """Return pairs on which experts contradict the ranking, the most contested first: rank and
    QuestionId of either question, and by expert 1 agrees, 0 contradicts, NaN no judgement.
    """
    told = agrees.where(judgements != _NEITHER)
    n_against = (told == 0).sum(axis=1).to_numpy()
    order = np.argsort(-n_against, kind="stable")[: np.count_nonzero(n_against)]
    pairs = []
    for questions, *said in told.iloc[order].itertuples(name=None):
        better, worse = sorted((int(rank[question]), question) for question in questions)
        pairs.append({"better": better, "worse": worse, "agrees": said})
    return pairs
