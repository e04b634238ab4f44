"""Leaderboards: who is where, as the platform orders submissions, and the files that say so.

An attempt, a submission to a task, is a row of a frame: `team`, `file`, `submitted` (UTC), `task`
(its index; -1 for a damaged file), `fault` (why it failed, or empty), `details` (where its page is,
seen from the leaderboard's, or empty), and the scores by the keys of their columns.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from common import charts, cli, io, pages
from common.errors import printable

import pandas as pd
from bundle import Bundle, Column, Task

_ABOUT = ("team", "file", "submitted", "task", "fault", "details")
# By the index of the task.
Boards = Mapping[int, pd.DataFrame]

# With how many decimal places the platform keeps a score.
_DECIMALS = 10
# So that a line fits on a terminal.
_WIDEST_NAME = 40
# A chart of more teams is longer than its table.
_MAX_DRAWN = 25
# What makes a spreadsheet take a cell for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ERROR = "standard_error"


def write(bundle: Bundle, phase: str, attempts: Sequence[dict[str, Any]], folder: Path) -> None:
    """Print the leaderboards of a phase, and write their files, all or none."""
    frame = as_frame(bundle, attempts)
    boards = make_boards(bundle, frame)
    for index, board in boards.items():
        print(_as_text(bundle, index, board), end="\n\n")
    written = f"written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    paths = [folder / name for name in ("leaderboard.html", "leaderboard.csv")]
    with io.atomic_write(*paths) as (page_file, csv_file):
        page_file.write(as_page(bundle, phase, boards, frame, written).encode("utf-8"))
        io.write_csv_to(csv_file, as_table(bundle, phase, boards))
    print(f"written: {cli.show(paths[0])}")


def as_frame(bundle: Bundle, attempts: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return attempts as the frame that all functions here take; a score may be missing."""
    keys = [column.key for column in bundle.columns]
    frame = pd.DataFrame(list(attempts), columns=[*_ABOUT, *keys])
    return frame.astype(dict.fromkeys(keys, float))


def make_boards(bundle: Bundle, attempts: pd.DataFrame) -> Boards:
    """Rank the best attempt of every team, for each task that any was scored on.

    The platform orders by the first column, then by the others, each as it is to be sorted, then by
    time (api/serializers/leaderboards.py, get_submissions); a value that is missing comes last. An
    attempt gets its `rank`, and how many `submissions` of the team were scored.
    """
    keys = [column.key for column in bundle.columns]
    ascending = [*(column.sorting == "asc" for column in bundle.columns), True, True]
    boards = {}
    for index in bundle.tasks:
        scored = attempts[(attempts["task"] == index) & (attempts["fault"] == "")]
        rounded = scored.assign(**scored[keys].round(_DECIMALS))
        order = rounded.sort_values([*keys, "submitted", "file"], ascending=ascending).index
        best = scored.loc[order].drop_duplicates("team")
        if len(best):
            n_scored = best["team"].map(scored["team"].value_counts())
            boards[index] = best.assign(rank=range(1, len(best) + 1), submissions=n_scored)
    return boards


def _as_text(bundle: Bundle, index: int, board: pd.DataFrame) -> str:
    """Return the board of a task as lines for a terminal."""
    width = min(_WIDEST_NAME, board["team"].str.len().max())
    shown = [column for column in bundle.columns if column.key in (bundle.columns[0].key, _ERROR)]
    lines = []
    for _, place in board.iterrows():
        scores = " ± ".join(filter(None, (_cell(place, column) for column in shown)))
        lines.append(f"{place['rank']:>4}  {printable(place['team'], width):<{width}}  {scores}")
    return "\n".join([bundle.tasks[index].name, *lines])


def _cell(place: pd.Series, column: Column) -> str:
    value = place[column.key]
    return "" if pd.isna(value) else f"{value:.{column.precision}f}"


def safe(text: str) -> str:
    """Return a text that a spreadsheet takes for text, not for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_table(bundle: Bundle, phase: str, boards: Boards) -> pd.DataFrame:
    """Return all boards as one table: a row for each place, with the value of every column."""
    keys = [column.key for column in bundle.columns]
    names = ["task", "phase", "rank", "team", *keys, "submissions", "time", "file"]
    parts = [
        board.assign(task=bundle.tasks[index].number, phase=phase)
        for index, board in boards.items()
    ]
    if not parts:
        return pd.DataFrame(columns=names)
    table = pd.concat(parts)
    table["time"] = [time.isoformat(timespec="seconds") for time in table["submitted"]]
    return table.assign(team=table["team"].map(safe), file=table["file"].map(safe))[names]


def as_page(
    bundle: Bundle, phase: str, boards: Boards, attempts: pd.DataFrame, written: str
) -> str:
    """Return the leaderboards as a page that needs no network but the pages that it links to.

    All attempts are given, so that those that failed are listed too; `written` says when.
    """
    # Tasks on which a file failed alike are named together.
    failed = []
    for (file, fault), same in attempts.groupby(["file", "fault"], sort=False):
        tasks = "; ".join(bundle.tasks[index].name for index in same["task"] if index >= 0)
        if fault:
            failed.append((file, tasks, f"{same['submitted'].iloc[0]:%Y-%m-%d %H:%M}", fault))
    return pages.render(
        "leaderboard.html",
        title=bundle.title,
        tab=f"{bundle.title}: {phase}",
        phase=phase,
        n_files=attempts["file"].nunique(),
        n_teams=attempts["team"].nunique(),
        written=written,
        score=bundle.columns[0].title,
        sections=[_section(bundle, bundle.tasks[index], board) for index, board in boards.items()],
        failed=failed,
    )


def _section(bundle: Bundle, task: Task, board: pd.DataFrame) -> dict[str, Any]:
    """Return what the page shows of a task."""
    first, *others = bundle.columns
    error = next((column for column in others if column.key == _ERROR), None)
    # The columns beside score and standard error, folded.
    others = [c for c in others if c is not error and board[c.key].notna().any()]
    # Charts of the best teams show which differences mean little.
    shown = board.head(_MAX_DRAWN)
    margin = 1.96 * shown[_ERROR] if error else pd.Series(float("nan"), shown.index)
    dots = [
        charts.Dot(team, value, None if pd.isna(by) else (value - by, value + by), accent=rank == 1)
        for team, value, by, rank in zip(
            shown["team"], shown[first.key], margin, shown["rank"], strict=True
        )
    ]
    draw = partial(
        charts.dot_chart, dots, label=task.name, digits=first.precision, axis=first.title
    )
    return {
        "name": task.name,
        "places": [
            (place, _cell(place, first), _cell(place, error) if error else "")
            for _, place in board.iterrows()
        ],
        "has_pages": (board["details"] != "").any(),
        "charts": {
            name: pages.Html(draw(wide=name == "page-wide"))
            for name in (("phone-wide", "page-wide") if len(shown) > 1 else ())
        },
        "has_intervals": margin.notna().any(),
        "n_drawn": len(shown),
        "others": [column.title for column in others],
        "other_rows": [
            [place["team"], *(_cell(place, column) for column in others)]
            for _, place in board.iterrows()
        ],
    }
