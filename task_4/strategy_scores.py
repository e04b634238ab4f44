"""How good the predictions of a played game are, and how often questions were asked in it."""

from collections.abc import Mapping
from dataclasses import dataclass

from common import metrics

import numpy as np
from strategies import FloatArray, IntArray


@dataclass(frozen=True)
class PlayedGame:
    """What a strategy did with one mask; T targets, C checkpoints.

    Attributes
    ----------
    chosen
        Questions in the order asked, -1 after the end of a student's test, shape (students,
        n_questions).
    probability
        P(right) of every target at every checkpoint, shape (C, T).
    truth
        1 right, 0 wrong, shape (T,).
    student
        UserId of every target, shape (T,).
    n_askable
        Questions that may be asked of at least one student.
    n_over_limit
        How often a question had to be asked beyond the limit of exposure: nothing else was left.
    """

    chosen: IntArray
    probability: FloatArray
    truth: IntArray
    student: IntArray
    n_askable: int
    n_over_limit: int


@dataclass(frozen=True)
class Scores:
    """How well a strategy did; M masks, C checkpoints.

    Attributes
    ----------
    accuracy, auc, log_loss
        On the hidden answers, shape (M, C); the AUC is NaN where all have one outcome.
    largest_exposure
        Largest share of students who were asked the same question, shape (M, C).
    overlap
        Mean test overlap, see `mean_overlap`, shape (M, C).
    bank_used
        Share of the questions that may be asked of somebody which were asked, shape (M, C).
    n_questions
        Mean number of questions asked, shape (M, C).
    n_over_limit
        Sum over the masks.
    """

    accuracy: FloatArray
    auc: FloatArray
    log_loss: FloatArray
    largest_exposure: FloatArray
    overlap: FloatArray
    bank_used: FloatArray
    n_questions: FloatArray
    n_over_limit: int


def score_games(games: Mapping[str, PlayedGame], checkpoints: tuple[int, ...]) -> Scores:
    """Score what one strategy did with all masks."""
    rows: dict[str, list[list[float]]] = {}
    for game in games.values():
        columns: dict[str, list[float]] = {}
        for place, n in enumerate(checkpoints):
            values = _score_predictions(game, place) | _count_questions(game, n)
            for name, value in values.items():
                columns.setdefault(name, []).append(value)
        for name, column in columns.items():
            rows.setdefault(name, []).append(column)
    arrays = {name: np.array(values) for name, values in rows.items()}
    return Scores(**arrays, n_over_limit=sum(game.n_over_limit for game in games.values()))


def _score_predictions(game: PlayedGame, place: int) -> dict[str, float]:
    p = game.probability[place].astype(np.float64)
    scores = metrics.score_probabilities(game.truth, np.stack([1 - p, p], axis=1))
    return {
        "accuracy": metrics.accuracy(game.truth, p > 0.5),
        "auc": float("nan") if scores.auc is None else scores.auc,
        "log_loss": scores.log_loss,
    }


def _count_questions(game: PlayedGame, n: int) -> dict[str, float]:
    asked = game.chosen[:, :n]
    counts = np.bincount(asked[asked >= 0])
    return {
        "largest_exposure": float(counts.max(initial=0)) / len(asked),
        "overlap": mean_overlap(counts, len(asked)),
        "bank_used": float((counts > 0).sum()) / game.n_askable,
        "n_questions": float(counts.sum()) / len(asked),
    }


def mean_overlap(counts: IntArray, n_students: int) -> float:
    """Return the mean share of questions that the tests of two students have in common.

    The mean over all pairs of students of the number of common questions, over the mean length L of
    a test: Σ m (m − 1) / (L N (N − 1)) for N students, m of whom were asked a question (Chen,
    Ankenmann and Spray 2003, "The relationship between item exposure and test overlap in
    computerized adaptive testing").

    Parameters
    ----------
    counts
        How often each question was asked.
    n_students
        How many students there are.
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

    The same answers of the same students, all masks together; a student's answers in all masks are
    one cluster (`metrics.clustered_standard_error`).
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
