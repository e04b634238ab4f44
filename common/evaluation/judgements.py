"""Expert judgements of pairs of questions, and how often a ranking agrees with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from common import io, metrics, schema
from common.errors import InputError

import numpy as np

if TYPE_CHECKING:  # Importing it takes 0.2 s.
    import pandas as pd

# How a judgement that an expert left empty may count: not at all, or as disagreement.
MISSING = ("ignored", "disagrees")
# Stands for one that counts as disagreement: neither question.
NEITHER = 3
# Numbers of rows, also in the official files: a column without a name, and what pandas calls it.
_ROW_NUMBERS = re.compile(r"(Unnamed: \d+(\.\d+)*)?")


@dataclass(frozen=True)
class Judgements:
    """What experts say about pairs of questions."""

    # Of the file, in messages.
    name: str
    # Their names, in the order of the file.
    experts: list[str]
    # QuestionIds of every pair, int32, shape (pairs,).
    left: io.IntArray
    right: io.IntArray
    # 1 the left question is better, 2 the right, NaN no judgement, `NEITHER` one that counts as
    # disagreement; shape (experts, pairs).
    better: metrics.FloatArray


def read_judgements(path: Path, missing: str = "ignored") -> Judgements:
    """Read a CSV with left, right, and a column for each expert, of any number and names.

    Only numbers of rows may stand there besides. `missing` is one of `MISSING`; an expert without
    any judgement is left out of the panel in both ways.
    """
    sides = [schema.LEFT, schema.RIGHT]
    header = io.read_header(io.file_source(path))
    others = [name for name in header if name not in [side.name for side in sides]]
    experts = [name for name in others if not _ROW_NUMBERS.fullmatch(name)]
    data = io.read_columns(path, [*sides, *map(schema.expert_judgement, experts)])
    better = np.array([data[name] for name in experts], np.float64)
    if np.isnan(better).all():
        raise InputError(
            f"{path}: holds no judgement, expected beside left and right a column for each expert "
            "with 1, 2 or nothing"
        )
    if missing == "disagrees":
        better[np.isnan(better) & ~np.isnan(better).all(axis=1, keepdims=True)] = NEITHER
    return Judgements(str(path), experts, data["left"], data["right"], better)


def rank_pairs(
    judgements: Judgements, question: io.IntArray, ranking: io.IntArray
) -> tuple[io.IntArray, io.IntArray]:
    """Look up the ranks of the judged questions, which all must have one; shape (pairs,) both."""
    rank = dict(zip(question.tolist(), ranking.tolist(), strict=True))
    unranked = sorted({*judgements.left.tolist(), *judgements.right.tolist()} - rank.keys())
    if unranked:
        raise InputError(
            f"{judgements.name}: QuestionId {unranked[0]} is judged, but it is not in the "
            f"ranking of {len(rank)} questions: the two belong to different data"
        )
    left, right = (
        np.array([rank[q] for q in side.tolist()]) for side in (judgements.left, judgements.right)
    )
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
    import pandas as pd

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
