"""Task 3: score a ranking of questions against experts' judgements of pairs of them.

The steps are those of `common.evaluation`: `match`, `score`, `explain`, then `score_files.publish`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import charts, metrics, reading, schema, submission
from common.errors import InputError
from common.evaluation import expert_agreement
from common.evaluation.expert_agreement import Contest
from common.evaluation.outcomes import Outcomes, of_judgements
from common.evaluation.record import Evaluation
from common.metrics import Score
from common.tasks import TASK_3

import numpy as np
import pandas as pd

# The ways in which empty judgements may count. Each has a text for the page.
MISSING = {"ignored": "which do not count", "disagrees": "which count as disagreement"}
# Judgements are 1 (left is better) and 2 (right is better). If empty judgements count as
# disagreement with every ranking, they get this value, which is neither 1 nor 2.
_NEITHER = 3
# The title of a note on the page, which says how high random rankings score by luck.
LUCK = "Read it with care"


@dataclass(frozen=True)
class Matched:
    """A ranking brought together with experts' judgements."""

    phase: str
    submission: Path
    reference: Path
    # How empty judgements count: a key of `MISSING`.
    missing: str
    # The table of `read_judgements`.
    judgements: pd.DataFrame
    # The rank of each question, by QuestionId; 1 is the best.
    rank: pd.Series
    # The table of `agreement`.
    agrees: pd.DataFrame

    @property
    def outcomes(self) -> Outcomes:
        """Whether the ranking agrees with each judgement."""
        return of_judgements(self.judgements, self.agrees)


# ---- Match ---------------------------------------------------------------------------------------


def match(
    submission_path: Path,
    reference_path: Path,
    template_path: Path,
    phase: str,
    missing: str = "ignored",
) -> Matched:
    """Check a ranking, CSV or zip, and compare it with every judgement.

    `missing` says how empty judgements count: a key of `MISSING`.
    """
    judgements = read_judgements(reference_path, missing)
    rank = submission.read_ranking(submission_path, template_path)
    agrees = agreement(judgements, rank)
    return Matched(phase, submission_path, reference_path, missing, judgements, rank, agrees)


def read_judgements(path: Path, missing: str = "ignored") -> pd.DataFrame:
    """Read experts' judgements of pairs.

    Parameters
    ----------
    path
        The file of the judgements.
    missing
        How empty judgements count: "ignored" or "disagrees" (see `MISSING`).

    Returns
    -------
    DataFrame
        A row for each pair, with left and right QuestionId as its index, and a column for each
        expert. 1 means that the left question is better, 2 that the right one is better, NaN that
        there is no judgement. If `missing` is "disagrees", empty judgements are `_NEITHER` instead
        of NaN; only experts without any judgement keep NaN.

    Raises
    ------
    InputError
        If a value is wrong, or there is no judgement at all.
    """
    sides = [schema.LEFT, schema.RIGHT]
    side_names = [side.name for side in sides]
    # Every other column holds the judgements of an expert, except for columns of row numbers.
    experts = []
    for name in reading.read_header(reading.file_source(path)):
        is_row_number = schema.ROW_NUMBERS.fullmatch(name) is not None
        if name not in side_names and not is_row_number:
            experts.append(name)
    data = reading.read_table(path, [*sides, *map(schema.expert_judgement, experts)])
    judgements = data.set_index(side_names).astype(np.float64)
    if judgements.isna().to_numpy().all():
        raise InputError(
            f"{path}: holds no judgement, expected beside left and right a column for each expert "
            "with 1, 2 or nothing"
        )
    if missing == "disagrees":
        # A row for each pair, a column for each expert: replace empty judgements by `_NEITHER`.
        # But an expert without any judgement does not count, so the whole column keeps NaN.
        is_expert_without_judgement = judgements.isna().all()
        keeps_value = judgements.notna() | is_expert_without_judgement
        judgements = judgements.where(keeps_value, _NEITHER)
    # `agreement` needs the path, to name the file in an error message.
    judgements.attrs["path"] = path
    return judgements


def agreement(judgements: pd.DataFrame, rank: pd.Series) -> pd.DataFrame:
    """Return whether a ranking agrees with each judgement: 1, 0, or NaN without a judgement.

    `judgements` come from `read_judgements`. A judgement `_NEITHER` gets 0, since no ranking agrees
    with it. `rank` holds the rank of each question, by QuestionId; the best question has rank 1.
    """
    left_ids = judgements.index.get_level_values(0)
    right_ids = judgements.index.get_level_values(1)
    unranked = np.setdiff1d([left_ids, right_ids], rank.index)
    if len(unranked):
        raise InputError(
            f"{judgements.attrs['path']}: QuestionId {unranked[0]} is judged, but it is not in the "
            f"ranking of {len(rank)} questions: the two belong to different data"
        )
    left_rank = rank[left_ids].to_numpy()
    right_rank = rank[right_ids].to_numpy()
    # For each pair, the question with the better rank, in the code of judgements: 1 for the left
    # question, 2 for the right one.
    preferred = np.where(left_rank < right_rank, 1, 2)
    agrees = judgements.eq(preferred, axis=0)
    return agrees.astype(float).where(judgements.notna())


# ---- Score ---------------------------------------------------------------------------------------


def score(matched: Matched) -> Score:
    """Return the share of pairs on which the ranking and an expert agree, for the best expert.

    The best expert is the one with the highest share.
    """
    return metrics.best_agreement(matched.agrees)


# ---- Explain -------------------------------------------------------------------------------------


def explain(
    matched: Matched,
    score: Score,
    *,
    with_answers: bool = True,
    rivals: Mapping[str, pd.Series] | None = None,
) -> tuple[Evaluation, dict[str, Any]]:
    """Explain a score: return the `Evaluation` to be recorded, and what the score's page shows.

    The second result holds the fields of the page's template, ranking.html, by name.

    If `with_answers` is False, the page lists no pairs with the judgements of experts. A platform
    needs such pages, since participants could use the judgements for their next submission.

    `rivals` are further rankings that the page compares with the scored one: the rank of each
    question by QuestionId, by the ranking's name.
    """
    judgements = matched.judgements
    figures = compare_with_experts(judgements, matched.agrees)
    # The scores of random rankings.
    random_scores = metrics.random_best_agreement(judgements)
    random_mean = float(random_scores.mean())
    random_high = float(np.percentile(random_scores, 95))
    # All rows but the last two, mean and best, are experts.
    n_experts = len(figures) - 2
    luck = (
        f"random rankings reach {random_mean:.2f} on average as the best of {n_experts}, "
        f"at most 1 in 20 exceeds {random_high:.2f}"
    )
    is_empty = ~judgements.isin([1, 2]).to_numpy()
    n_empty = int(is_empty.sum())
    evaluation = Evaluation(
        task=TASK_3.number,
        metric=TASK_3.metric_sentence,
        score=score,
        submission=matched.submission,
        reference=matched.reference,
        phase=matched.phase,
        parts={
            **figures["share"].drop(["mean", "best"]),
            "random rankings, mean": random_mean,
            "random rankings, 95th percentile": random_high,
        },
        rules="" if matched.missing == "ignored" else "empty judgements disagree",
        facts=[
            ("Pairs", f"{len(judgements)}"),
            ("Empty judgements", f"{n_empty} of {judgements.size}, {MISSING[matched.missing]}"),
            (LUCK, luck),
        ],
        outcomes=matched.outcomes,
    )
    contested = list_contested(matched) if with_answers else None
    page = {
        "agreement": figures,
        "chart": _draw(figures, (random_mean, random_high)),
        "experts": [*judgements],
        "concordance": metrics.expert_concordance(judgements),
        "expert_pairs": expert_agreement.compare_experts(judgements),
        "rivals": compare_rivals(matched, rivals or {}),
        "contested": contested,
        "n_pairs": len(judgements),
    }
    return evaluation, page


def compare_with_experts(judgements: pd.DataFrame, agrees: pd.DataFrame) -> pd.DataFrame:
    """Compare a ranking with each expert.

    Parameters
    ----------
    judgements
        A row for each pair of questions, a column for each expert: 1 if the expert finds the first
        question of the pair better, 2 if the second, NaN without a judgement.
    agrees
        Whether the ranking agrees with each judgement, with the same rows and columns: 1, 0, or NaN
        for a judgement that does not count.

    Returns
    -------
    DataFrame
        A row for each expert with judgements, then the row ``mean`` for the mean over the experts
        and the row ``best`` for the expert with the highest share. The columns are share (of pairs
        on which the ranking agrees with the expert), low and high (ends of the 95 % interval),
        n_judged, and others (the mean agreement of this expert with the other experts). NaN where a
        value is not known.

    Notes
    -----
    The intervals of mean and best come from bootstrap samples of the pairs. The interval of the
    best is biased upwards, since the best expert is chosen in each sample.
    """
    share = agrees.mean()
    n_judged = agrees.count()
    low, high = metrics.binomial_interval(agrees.sum().to_numpy(), n_judged.to_numpy())
    table = pd.DataFrame({"share": share, "low": low, "high": high, "n_judged": n_judged})
    concordance = metrics.expert_concordance(judgements)
    # In `concordance`, an expert's row holds the agreement of this expert with each other expert.
    # `mean` leaves out NaN: the expert itself, and experts who have judged no common pair.
    table["others"] = pd.DataFrame(concordance).mean(axis=1).to_numpy()
    table = table[n_judged > 0].copy()

    # Drop pairs and experts without any judgement that counts: otherwise a bootstrap sample could
    # be without any judgement.
    judged = agrees.dropna(how="all").dropna(axis=1, how="all")
    # The share of each expert in each bootstrap sample, shape (samples, experts).
    resampled = metrics.bootstrap_agreement(judged)
    for name, takes_best in (("mean", False), ("best", True)):
        # `combine_parts` takes the mean or the highest share over the experts.
        value = float(metrics.combine_parts(share, takes_best=takes_best))
        resampled_values = metrics.combine_parts(resampled, takes_best=takes_best)
        low, high = np.nanpercentile(resampled_values, (2.5, 97.5))
        table.loc[name, ["share", "low", "high"]] = [value, low, high]
    # In the row of an expert, the column others says how often other experts agree with this
    # expert. In the row "mean", it is the mean over all pairs of experts. In the row "best", it
    # stays NaN.
    table.loc["mean", "others"] = pd.Series(concordance.ravel()).mean()
    return table


@dataclass(frozen=True)
class Rival:
    """Another ranking, compared with the scored one by the judgements of the experts."""

    name: str
    # The table of `compare_with_experts`.
    agreement: pd.DataFrame
    # How the experts judge the pairs on which this ranking and the scored ranking disagree. In
    # `Contest`, the first ranking is the scored one, and the second is this one.
    contest: Contest


def compare_rivals(matched: Matched, ranks: Mapping[str, pd.Series]) -> list[Rival]:
    """Compare other rankings, one by one, with the scored ranking.

    `ranks` holds the other rankings by name. A ranking is a Series of ranks, with QuestionId as
    index.
    """
    rivals = []
    for name, rank in ranks.items():
        agrees = agreement(matched.judgements, rank)
        figures = compare_with_experts(matched.judgements, agrees)
        rivals.append(Rival(name, figures, expert_agreement.contest(matched.agrees, agrees)))
    return rivals


def _draw(figures: pd.DataFrame, random_range: tuple[float, float]) -> str:
    """Draw a row for each expert, a row for their mean, and a row for the best expert.

    `figures` is the table of `compare_with_experts`, which ends with the rows "mean" and "best". A
    dot shows how often the ranking agrees with the expert, and a line shows the interval. A diamond
    shows how often the other experts agree with this expert. In the row of the best expert, a box
    covers `random_range`, the range from the mean to the 95th percentile of the scores of random
    rankings.
    """
    dots = {}
    for name, row in figures.iterrows():
        interval = (row["low"], row["high"])
        dots[name] = charts.Dot(str(name), row["share"], interval, mark=row["others"])
    dots["best"] = dots["best"]._replace(band=random_range)
    label = "Agreement of the ranking with each expert, with 95 % intervals"
    return charts.dot_chart(
        [*dots.values()], label=label, digits=2, limits=(0, 1), chance=0.5, axis="share of pairs"
    )


@dataclass(frozen=True)
class ContestedPair:
    """A pair on which experts contradict the ranking."""

    # Rank and QuestionId of the question that is ranked better.
    better: tuple[int, int]
    # Rank and QuestionId of the question that is ranked worse.
    worse: tuple[int, int]
    # For each expert: 1 if the expert agrees with the ranking, 0 if the expert contradicts the
    # ranking, NaN without a judgement.
    agrees: list[float]


def list_contested(matched: Matched) -> list[ContestedPair]:
    """Return the pairs on which at least one expert contradicts the ranking.

    The pairs come in the order of the number of experts who contradict the ranking, the largest
    number first.
    """
    # `matched.agrees` is 0 where the judgement is `_NEITHER`. No expert contradicts the ranking
    # there, so use NaN.
    agrees = matched.agrees.where(matched.judgements != _NEITHER)
    # For each pair, the number of experts who contradict the ranking.
    n_against = (agrees == 0).sum(axis=1).to_numpy()
    # After sorting, the pairs that nobody contests are at the end: leave them out.
    n_contested = np.count_nonzero(n_against)
    most_contested_first = np.argsort(-n_against, kind="stable")[:n_contested]
    contested = agrees.iloc[most_contested_first]
    pairs = []
    for (left, right), by_expert in zip(contested.index, contested.to_numpy(), strict=True):
        ranked_left = (int(matched.rank[left]), left)
        ranked_right = (int(matched.rank[right]), right)
        # Sort the two questions by their ranks. The better question has the smaller rank.
        better, worse = sorted([ranked_left, ranked_right])
        pairs.append(ContestedPair(better, worse, by_expert.tolist()))
    return pairs
