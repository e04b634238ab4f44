"""Leaderboards: who is where, as the platform orders submissions, and the files that say so."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from common import io
from common.errors import printable

import numpy as np
from platform_rules import Bundle, Column, Task

# With how many decimal places the platform keeps a score.
_DECIMALS = 10
# So that a line fits on a terminal.
_WIDEST_NAME = 40


@dataclass(frozen=True)
class Attempt:
    """A submission to a task.

    Attributes
    ----------
    team, file
        Who handed in what.
    submitted
        When, UTC.
    task
        None for a file that was too damaged to see what it is for.
    scores
        By the key of the column; empty if it failed.
    fault
        Why it failed; empty if it was scored.
    details
        Where its page is, seen from the leaderboard's; empty if it has none.
    """

    team: str
    file: str
    submitted: datetime
    task: Task | None
    scores: dict[str, float]
    fault: str = ""
    details: str = ""


@dataclass(frozen=True)
class Place:
    """A team's place: from 1, its best attempt, and how many of its attempts were scored."""

    rank: int
    attempt: Attempt
    n_scored: int


@dataclass(frozen=True)
class Board:
    """The places of a task, best first."""

    task: Task
    places: tuple[Place, ...]


def task_number(task: Task) -> int | None:
    """Return a task's number in the challenge, 1 to 4, by its name; None if it has none."""
    found = re.search(r"\btask (\d+)\b", task.name, re.IGNORECASE)
    return int(found[1]) if found else None


def mle_bench_name(board: Board) -> str:
    """Return the name of the file that `write_mle_bench_to` writes."""
    number = task_number(board.task)
    label = f"index_{board.task.index}" if number is None else str(number)
    return f"leaderboard_task_{label}_mle_bench.csv"


def task_label(task: Task) -> str:
    """Return the number of a task, or else its name."""
    number = task_number(task)
    return task.name if number is None else str(number)


def make_boards(bundle: Bundle, attempts: Sequence[Attempt]) -> list[Board]:
    """Rank the best attempt of every team, for each task that any was scored on.

    The platform orders by the primary column, then by the others, each as it is to be sorted, then
    by time (api/serializers/leaderboards.py, get_submissions).

    Parameters
    ----------
    bundle
        Names columns and tasks.
    attempts
        In any order; those that failed do not count.
    """
    columns = [bundle.primary, *(c for c in bundle.columns if c is not bundle.primary)]
    boards = []
    for task in bundle.tasks.values():
        scored = [a for a in attempts if a.task is task and a.scores]
        scored.sort(key=lambda attempt: _order(attempt, columns))
        best: dict[str, Attempt] = {}
        for attempt in scored:
            best.setdefault(attempt.team, attempt)
        teams = [attempt.team for attempt in scored]
        places = tuple(
            Place(rank, attempt, teams.count(team))
            for rank, (team, attempt) in enumerate(best.items(), 1)
        )
        if places:
            boards.append(Board(task, places))
    return boards


def _order(attempt: Attempt, columns: Sequence[Column]) -> tuple[object, ...]:
    """Return what attempts are sorted by; a value that is missing comes last."""
    values: list[object] = []
    for column in columns:
        value = attempt.scores.get(column.key)
        sign = -1.0 if column.sorting == "desc" else 1.0
        values.append((1, 0.0) if value is None else (0, sign * round(value, _DECIMALS)))
    return (*values, attempt.submitted, attempt.file)


def used_columns(bundle: Bundle, board: Board) -> list[Column]:
    """Return the columns that any place of a board has a value in."""
    used = {key for place in board.places for key in place.attempt.scores}
    return [column for column in bundle.columns if column.key in used]


def score_text(bundle: Bundle, attempt: Attempt) -> str:
    """Return the score as text, with its standard error if there is one."""
    primary = bundle.primary
    text = f"{attempt.scores[primary.key]:.{primary.precision}f}"
    error = next((c for c in bundle.columns if c.key == "standard_error"), None)
    if error is not None and error is not primary and error.key in attempt.scores:
        text += f" ± {attempt.scores[error.key]:.{error.precision}f}"
    return text


def as_text(bundle: Bundle, board: Board) -> str:
    """Return a board as lines for a terminal."""
    rows = [(str(p.rank), p.attempt.team, score_text(bundle, p.attempt)) for p in board.places]
    width = min(_WIDEST_NAME, max(len(team) for _, team, _ in rows))
    lines = [f"{rank:>4}  {printable(team, width):<{width}}  {score}" for rank, team, score in rows]
    return "\n".join([board.task.name, *lines])


def write_csv_to(file: BinaryIO, bundle: Bundle, phase: str, boards: Sequence[Board]) -> None:
    """Write all boards as one CSV: a row for each place, with the value of every column."""
    rows = [(board.task, place) for board in boards for place in board.places]
    columns: dict[str, object] = {
        "task": [task_label(task) for task, _ in rows],
        "phase": [phase] * len(rows),
        "rank": [place.rank for _, place in rows],
        "team": [place.attempt.team for _, place in rows],
    }
    for column in bundle.columns:
        values = [place.attempt.scores.get(column.key, np.nan) for _, place in rows]
        columns[column.key] = np.array(values, dtype=np.float64)
    columns["submissions"] = [place.n_scored for _, place in rows]
    columns["time"] = [place.attempt.submitted.isoformat(timespec="seconds") for _, place in rows]
    columns["file"] = [place.attempt.file for _, place in rows]
    io.write_csv_to(file, columns)


def write_mle_bench_to(file: BinaryIO, bundle: Bundle, board: Board) -> None:
    """Write a board in the form of MLE-bench's leaderboard.csv: best first, teams by number.

    MLE-bench (https://github.com/openai/mle-bench, mlebench/grade_helpers.py) reads ``score``, and
    sees from the first and the last row whether more is better.
    """
    numbers = {
        team: number
        for number, team in enumerate(sorted(place.attempt.team for place in board.places), 1)
    }
    attempts = [place.attempt for place in board.places]
    scores = [attempt.scores[bundle.primary.key] for attempt in attempts]
    columns = {
        "teamId": [numbers[attempt.team] for attempt in attempts],
        "submissionDate": [f"{attempt.submitted:%Y-%m-%dT%H:%M:%SZ}" for attempt in attempts],
        "score": np.array(scores, dtype=np.float64),
    }
    io.write_csv_to(file, columns)
