"""What `compare_strategies.py` prints and writes: scores, tables of 80 columns, and a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common import charts, metrics, pages
from common.pages import Html

import numpy as np
import pandas as pd
from strategies import IntArray
from strategy_games import OWN, PlayedGame
from strategy_protocols import Protocol

# Length of the challenge's tests; there and earlier strategies are compared in pairs.
_LENGTH = 10
_COMPARED = (5, _LENGTH)
_NAME_WIDTH = 24
_MEASURES = {"Accuracy": "accuracy", "AUC": "auc", "Log loss": "log_loss"}

# By strategy, then by mask.
Games = Mapping[str, Mapping[str, PlayedGame]]


@dataclass(frozen=True)
class Compared:
    """What all strategies did by one rule.

    `scores` are those of `score_games`; `ahead` tells by how much the kit's own strategy is more
    accurate than each other one, and the standard error of that, by the number of questions.
    """

    title: str
    scores: pd.DataFrame
    ahead: Mapping[str, Mapping[int, tuple[float, float]]]
    notes: Sequence[str] = ()


# ---- Scores ------------------------------------------------------------------------------------


def compare_games(title: str, games: Games, checkpoints: Sequence[int]) -> Compared:
    """Score all games that were played by one rule."""
    compared = [n for n in _COMPARED if n in checkpoints] or [checkpoints[-1]]
    ahead = {
        name: {n: compare(games[OWN], played, checkpoints.index(n)) for n in compared}
        for name, played in games.items()
        if OWN in games and name != OWN
    }
    over_limit = {
        name: sum(game.n_over_limit for game in played.values()) for name, played in games.items()
    }
    notes = [
        f"{name} exceeds the limit of exposure {n} times: no other question was left"
        for name, n in over_limit.items()
        if n
    ]
    return Compared(title, score_games(games, checkpoints), ahead, notes)


def score_games(games: Games, checkpoints: Sequence[int]) -> pd.DataFrame:
    """Score every game: a row for each strategy, mask and number of questions.

    accuracy, auc and log_loss are those on the hidden answers (the AUC is NaN where all have one
    outcome), exposure is the largest share of students who were asked the same question, overlap
    that of `mean_overlap`, bank the share of the questions that may be asked of somebody which
    were asked, and length the mean number of questions asked.
    """
    rows = [
        {"strategy": name, "mask": mask, "n": n, **_score(game, place, n)}
        for name, played in games.items()
        for mask, game in played.items()
        for place, n in enumerate(checkpoints)
    ]
    return pd.DataFrame(rows)


def _score(game: PlayedGame, place: int, n: int) -> dict[str, float]:
    p = game.probability[place].astype(np.float64)
    scores = metrics.score_probabilities(game.truth, np.stack([1 - p, p], axis=1))
    asked = game.chosen[:, :n]
    counts = np.bincount(asked[asked >= 0])
    return {
        "accuracy": metrics.accuracy(game.truth, p > 0.5),
        "auc": float("nan") if scores.auc is None else scores.auc,
        "log_loss": scores.log_loss,
        "exposure": float(counts.max(initial=0)) / len(asked),
        "overlap": mean_overlap(counts, len(asked)),
        "bank": float((counts > 0).sum()) / game.n_askable,
        "length": float(counts.sum()) / len(asked),
    }


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
    difference, student = [], []
    for mask, game in own.items():
        right, other_right = (
            (g.probability[place] > 0.5) == (g.truth == 1) for g in (game, other[mask])
        )
        difference.append(right.astype(np.int64) - other_right)
        student.append(game.student)
    values = np.concatenate(difference)
    cluster = np.unique(np.concatenate(student), return_inverse=True)[1]
    return float(values.mean()), metrics.clustered_standard_error(values, cluster)


# ---- Tables ------------------------------------------------------------------------------------

Table = tuple[str, list[str], list[list[str]]]


def tables(result: Compared, stops: bool) -> list[Table]:
    """Return every table of a rule: what it shows, its header (maybe of two lines), its rows.

    `stops` tells whether tests end by precision, so that their mean length is to be shown.
    """
    scores = result.scores
    by_length = scores.groupby(["strategy", "n"], sort=False)
    means = by_length.mean(numeric_only=True)
    names, steps = scores["strategy"].unique(), scores["n"].unique().tolist()[1:]
    # Exposure is shown after ten questions, and at the end.
    shown = [_LENGTH, steps[-1]] if _LENGTH in steps[:-1] else steps[-1:]
    found: list[Table] = []
    for title, column in _MEASURES.items():
        header = ["strategy", *map(str, steps)]
        rows = [[name, *(f"{means[column][name, n]:.4f}" for n in steps)] for name in names]
        if scores["mask"].nunique() > 1:
            header.append(f"± ({shown[0]})")
            deviations = by_length[column].std()
            for row in rows:
                row.append(f"{deviations[row[0], shown[0]]:.4f}")
        found.append((f"{title} after n questions", header, rows))

    title = "Largest exposure, mean test overlap, share of the bank used"
    columns = ["exposure", "overlap", "bank"]
    if stops:
        title += ", mean length"
        # More would not fit.
        columns, shown = [*columns, "length"], shown[-1:]
    cells = [(column, n) for column in columns for n in shown]
    rows = [
        [name, *(f"{means[c][name, n]:.{2 if c == 'length' else 3}f}" for c, n in cells)]
        for name in names
    ]
    found.append((title, ["strategy", *(f"{column}\n{n}" for column, n in cells)], rows))

    if result.ahead:
        header = ["strategy", *(f"after {n}" for n in next(iter(result.ahead.values())))]
        rows = [
            [name, *(_difference(*one) for one in by_n.values())]
            for name, by_n in result.ahead.items()
        ]
        title = f"{OWN} ahead in accuracy, ± 2 standard errors (* beyond)"
        found.append((title, header, rows))
    return found


def _difference(value: float, error: float) -> str:
    beyond = "*" if abs(value) > 2 * error else " "
    return f"{value:+.4f} ± {2 * error:.4f}{beyond}"


def as_text(result: Compared, stops: bool) -> str:
    """Return all tables of a rule as text of at most 80 columns."""
    parts = [result.title]
    for title, header, rows in tables(result, stops):
        depth = 1 + max(cell.count("\n") for cell in header)
        heads = [[""] * (depth - 1 - cell.count("\n")) + cell.split("\n") for cell in header]
        lines = [*zip(*heads, strict=True), *rows]
        widths = [2 + max(map(len, column)) for column in zip(*lines, strict=True)]
        parts.append(f"\n{title}")
        for name, *figures in lines:
            cells = (cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True))
            parts.append((name[:_NAME_WIDTH].ljust(_NAME_WIDTH) + "".join(cells)).rstrip())
    return "\n".join([*parts, *(f"note: {note}" for note in result.notes)])


# ---- The page ----------------------------------------------------------------------------------


def page(
    results: Sequence[Compared],
    sentences: Mapping[str, str],
    facts: Sequence[tuple[str, str]],
    *,
    simulated: bool,
    protocol: Protocol | None,
    stops: bool,
) -> str:
    """Return the page: a chart and tables for each rule, what each strategy does, facts.

    Beside simulated answers stands nothing that was published of a protocol.
    """
    return pages.render(
        "strategies.html",
        title="Task 4: which question to ask next",
        simulated=simulated,
        results=[(one, Html(_curves(one)), tables(one, stops)) for one in results],
        published=None if simulated else protocol,
        sentences=list(sentences.items()),
        facts=facts,
    )


def _curves(result: Compared) -> str:
    accuracy = result.scores.groupby(["strategy", "n"], sort=False)["accuracy"].mean()
    names = sorted(result.scores["strategy"].unique(), key=lambda name: name != OWN)
    return charts.curve_chart(
        [
            charts.Curve(name, accuracy[name].index.tolist(), accuracy[name].tolist(), number)
            for number, name in enumerate(names)
        ],
        label=f"Accuracy after each number of questions, {result.title}",
        axis="questions asked",
        value_axis="accuracy on the hidden answers",
    )
