"""What `compare_strategies.py` prints and shows: scores of all games, and tables of 80 columns."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from common import charts, metrics
from common.pages import Html

import numpy as np
import pandas as pd
from strategies import IntArray
from strategy_games import OWN, PlayedGame

# Length of the challenge's tests; there and earlier strategies are compared in pairs.
_LENGTH = 10
_COMPARED = (5, _LENGTH)
_NAME_WIDTH = 24
_MEASURES = {"Accuracy": "accuracy", "AUC": "auc", "Log loss": "log_loss"}

# By strategy, then by mask.
Games = Mapping[str, Mapping[str, PlayedGame]]
# What it shows, its header, whose cells may have two lines, its rows.
Table = tuple[str, list[str], list[list[str]]]


class Compared(NamedTuple):
    """What all strategies did by one rule."""

    title: str
    curves: Html
    tables: Sequence[Table]
    notes: Sequence[str]


def compare_games(title: str, games: Games, checkpoints: Sequence[int], *, stops: bool) -> Compared:
    """Score all games that were played by one rule; `stops` tells whether tests end by precision,
    so that their mean length is to be shown.
    """
    scores = score_games(games, checkpoints)
    tables = score_tables(scores, stops)
    others = [name for name in games if name != OWN]
    if OWN in games and others:
        compared = [n for n in _COMPARED if n in checkpoints] or [checkpoints[-1]]
        rows = []
        for name in others:
            cells = []
            for n in compared:
                value, error = compare(games[OWN], games[name], checkpoints.index(n))
                beyond = "*" if abs(value) > 2 * error else " "
                cells.append(f"{value:+.4f} ± {2 * error:.4f}{beyond}")
            rows.append([name, *cells])
        caption = f"{OWN} ahead in accuracy, ± 2 standard errors (* beyond)"
        tables.append((caption, ["strategy", *(f"after {n}" for n in compared)], rows))
    notes = [
        f"{name} exceeds the limit of exposure {n} times: no other question was left"
        for name, played in games.items()
        if (n := sum(game.n_over_limit for game in played.values()))
    ]
    return Compared(title, Html(_curves(title, scores)), tables, notes)


def score_games(games: Games, checkpoints: Sequence[int]) -> pd.DataFrame:
    """Score every game: a row for each strategy, mask and number of questions, the columns of
    STRATEGIES.md; the AUC is NaN where all hidden answers have one outcome.
    """
    rows = []
    for name, played in games.items():
        for mask, game in played.items():
            for n, right in zip(checkpoints, game.probability.astype(np.float64), strict=True):
                scores = metrics.score_probabilities(
                    game.truth, np.stack([1 - right, right], axis=1)
                )
                asked, n_students = game.chosen[:, :n], len(game.chosen)
                counts = np.bincount(asked[asked >= 0])
                rows.append({
                    "strategy": name,
                    "mask": mask,
                    "n": n,
                    "accuracy": metrics.accuracy(game.truth, right > 0.5),
                    "auc": np.nan if scores.auc is None else scores.auc,
                    "log_loss": scores.log_loss,
                    "exposure": counts.max(initial=0) / n_students,
                    "overlap": mean_overlap(counts, n_students),
                    "bank": (counts > 0).sum() / game.n_askable,
                    "length": counts.sum() / n_students,
                })  # fmt: skip
    return pd.DataFrame(rows)


def mean_overlap(counts: IntArray, n_students: int) -> float:
    """Return the mean share of questions that the tests of two students have in common.

    The mean over all pairs of students of the number of common questions, over the mean length L of
    a test: Σ m (m − 1) / (L N (N − 1)) for N students, m of whom were asked a question (Chen,
    Ankenmann and Spray 2003, "The relationship between item exposure and test overlap in
    computerized adaptive testing"). `counts` holds m for every question.
    """
    n_pairs = n_students * (n_students - 1)
    length = counts.sum() / n_students
    if not n_pairs or not length:
        return 0.0
    return float((counts * (counts - 1)).sum() / (length * n_pairs))


def compare(
    own: Mapping[str, PlayedGame], other: Mapping[str, PlayedGame], place: int
) -> tuple[float, float]:
    """Return by how much one strategy is more accurate, and the standard error of that.

    The same answers of the same students at one checkpoint, all masks together; a student's answers
    in all masks are one cluster (`metrics.clustered_standard_error`).
    """
    right, other_right = (
        np.concatenate([(g.probability[place] > 0.5) == (g.truth == 1) for g in games.values()])
        for games in (own, other)
    )
    difference = right.astype(np.int64) - other_right
    student = np.concatenate([game.student for game in own.values()])
    cluster = np.unique(student, return_inverse=True)[1]
    return float(difference.mean()), metrics.clustered_standard_error(difference, cluster)


def score_tables(scores: pd.DataFrame, stops: bool) -> list[Table]:
    """Return the tables of scores."""

    def tabulate(
        column: str, digits: int, statistic: Literal["mean", "std"] = "mean"
    ) -> pd.DataFrame:
        """A row for each strategy, a column for each number of questions."""
        table = scores.pivot_table(column, "strategy", "n", statistic, dropna=False, sort=False)
        return table.map(f"{{:.{digits}f}}".format)

    def finish(title: str, columns: Mapping[str, pd.Series]) -> Table:
        table = pd.DataFrame(columns).reset_index()
        return title, [*table], table.to_numpy().tolist()

    steps = scores["n"].unique().tolist()[1:]
    # Exposure is shown after ten questions, and at the end.
    shown = [_LENGTH, steps[-1]] if _LENGTH in steps[:-1] else steps[-1:]
    found = []
    for title, name in _MEASURES.items():
        means = tabulate(name, 4)
        columns = {str(n): means[n] for n in steps}
        if scores["mask"].nunique() > 1:
            columns[f"± ({shown[0]})"] = tabulate(name, 4, "std")[shown[0]]
        found.append(finish(f"{title} after n questions", columns))
    title, digits = "Largest exposure, mean test overlap, share of the bank used", {"length": 2}
    names = ["exposure", "overlap", "bank"]
    if stops:
        # More would not fit.
        title, names, shown = f"{title}, mean length", [*names, "length"], shown[-1:]
    columns = {
        f"{name}\n{n}": tabulate(name, digits.get(name, 3))[n] for name in names for n in shown
    }
    return [*found, finish(title, columns)]


def as_text(result: Compared) -> str:
    """Return all tables of a rule as text of at most 80 columns."""
    parts = [result.title]
    for title, header, rows in result.tables:
        has_two = any("\n" in cell for cell in header)
        heads = [("\n" * (has_two and "\n" not in cell) + cell).split("\n") for cell in header]
        lines = [*zip(*heads, strict=True), *rows]
        widths = [2 + max(map(len, column)) for column in zip(*lines, strict=True)]
        parts.append(f"\n{title}")
        for name, *figures in lines:
            cells = (cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True))
            parts.append((name[:_NAME_WIDTH].ljust(_NAME_WIDTH) + "".join(cells)).rstrip())
    return "\n".join([*parts, *(f"note: {note}" for note in result.notes)])


def _curves(title: str, scores: pd.DataFrame) -> str:
    accuracy = scores.groupby(["strategy", "n"], sort=False)["accuracy"].mean()
    names = sorted(scores["strategy"].unique(), key=lambda name: name != OWN)
    return charts.curve_chart(
        [
            charts.Curve(name, accuracy[name].index.tolist(), accuracy[name].tolist(), number)
            for number, name in enumerate(names)
        ],
        label=f"Accuracy after each number of questions, {title}",
        axis="questions asked",
        value_axis="accuracy on the hidden answers",
    )
