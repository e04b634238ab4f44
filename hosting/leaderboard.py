"""Leaderboards: who is where, as the platform orders submissions, and the files that say so.

An attempt, a submission to a task, is a row of a frame: `team`, `file`, `submitted` (UTC), `task`
(its index; -1 for a file too damaged to see what it is for), `fault` (why it failed; empty if it
was scored), `details` (where its page is, seen from the leaderboard's; empty if it has none), and
the scores by the keys of their columns.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, BinaryIO

from common import charts, io, pages
from common.errors import printable

import pandas as pd
from bundle import Bundle, Column, Task

_ABOUT = ("team", "file", "submitted", "task", "fault", "details")
# By task.
Boards = Mapping[int, pd.DataFrame]

# With how many decimal places the platform keeps a score.
_DECIMALS = 10
# So that a line fits on a terminal.
_WIDEST_NAME = 40
# What makes a spreadsheet take a cell for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# A chart of more teams is longer than its table.
_MAX_DRAWN = 25
_ERROR = "standard_error"


def as_frame(bundle: Bundle, attempts: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return attempts as the frame that all functions here take; a score may be missing."""
    keys = [column.key for column in bundle.columns]
    frame = pd.DataFrame(list(attempts), columns=[*_ABOUT, *keys])
    return frame.astype(dict.fromkeys(keys, float))


def make_boards(bundle: Bundle, attempts: pd.DataFrame) -> Boards:
    """Rank the best attempt of every team, for each task that any was scored on.

    The platform orders by the first column, then by the others, each as it is to be sorted, then by
    time (api/serializers/leaderboards.py, get_submissions); a value that is missing comes last.
    Returned are by task the attempts, best first, with their `rank` and how many `submissions` of
    the team were scored.
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


def as_text(bundle: Bundle, index: int, board: pd.DataFrame) -> str:
    """Return the board of a task as lines for a terminal."""
    width = min(_WIDEST_NAME, board["team"].str.len().max())
    lines = []
    for _, place in board.iterrows():
        team = printable(place["team"], width)
        lines.append(f"{place['rank']:>4}  {team:<{width}}  {score_text(bundle, place)}")
    return "\n".join([bundle.tasks[index].name, *lines])


def score_text(bundle: Bundle, place: pd.Series) -> str:
    """Return the score as text, with its standard error if there is one."""
    shown = [column for column in bundle.columns if column.key in (bundle.columns[0].key, _ERROR)]
    texts = [_cell(place[column.key], column) for column in shown]
    return " ± ".join(text for text in texts if text)


def safe(text: str) -> str:
    """Return a text that a spreadsheet takes for text, not for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def write_csv_to(file: BinaryIO, bundle: Bundle, phase: str, boards: Boards) -> None:
    """Write all boards as one CSV: a row for each place, with the value of every column."""
    keys = [column.key for column in bundle.columns]
    names = ["task", "phase", "rank", "team", *keys, "submissions", "time", "file"]
    parts = [
        board.assign(
            task=str(bundle.tasks[index].number or bundle.tasks[index].name),
            phase=phase,
            team=board["team"].map(safe),
            time=[time.isoformat(timespec="seconds") for time in board["submitted"]],
            file=board["file"].map(safe),
        )[names]
        for index, board in boards.items()
    ]
    table = pd.concat(parts) if parts else pd.DataFrame(columns=names)
    io.write_csv_to(file, table)


def as_page(
    bundle: Bundle, phase: str, boards: Boards, attempts: pd.DataFrame, written: str
) -> str:
    """Return the leaderboards as a page that needs no network but the pages that it links to.

    All attempts are given, so that those that failed are listed too; `written` says when.
    """
    n_files, n_teams = attempts["file"].nunique(), attempts["team"].nunique()
    return pages.render(
        "leaderboard.html",
        title=bundle.title,
        tab=f"{bundle.title}: {phase}",
        what=f"{phase} phase: {_count(n_files, 'submission')} of {_count(n_teams, 'team')}; "
        f"{written}",
        sections=[_section(bundle, bundle.tasks[index], board) for index, board in boards.items()],
        failed=_failed(bundle, attempts[attempts["fault"] != ""]),
    )


def _section(bundle: Bundle, task: Task, board: pd.DataFrame) -> dict[str, Any]:
    """Return what the page shows of a task."""
    has_pages = (board["details"] != "").any()
    rows = []
    for _, place in board.iterrows():
        score, sign, error = score_text(bundle, place).partition(" ± ")
        link = f'<a href="{escape(place["details"])}">page</a>' if place["details"] else ""
        rows.append(
            [
                str(place["rank"]),
                place["team"],
                # In small letters, below the score on a phone.
                pages.Html(f"{score} <small>± {error}</small>" if sign else score),
                str(place["submissions"]),
                f"{place['submitted']:%Y-%m-%d %H:%M}",
                *([pages.Html(link)] if has_pages else []),
            ]
        )
    header = ["rank", "team", bundle.columns[0].title, "submissions", "submitted (UTC)", "details"]
    # The columns beside score and standard error, folded.
    others = [
        column
        for column in bundle.columns
        if column.key not in (bundle.columns[0].key, _ERROR) and board[column.key].notna().any()
    ]
    return {
        "name": task.name,
        "header": header if has_pages else header[:-1],
        "rows": rows,
        **_draw(bundle, task, board),
        "others": [column.title for column in others],
        "other_rows": [
            [place["team"], *(_cell(place[column.key], column) for column in others)]
            for _, place in board.iterrows()
        ],
    }


def _cell(value: float, column: Column) -> str:
    return "" if pd.isna(value) else f"{value:.{column.precision}f}"


def _draw(bundle: Bundle, task: Task, board: pd.DataFrame) -> dict[str, Any]:
    """Return charts of the best teams, which show what differences mean little, and their key."""
    shown = board.head(_MAX_DRAWN)
    if len(shown) < 2:
        return {"charts": {}, "key": ""}
    primary, key = bundle.columns[0], "In colour: the best."
    margin = 1.96 * shown[_ERROR] if _ERROR in shown else pd.Series(float("nan"), shown.index)
    dots = [
        charts.Dot(team, value, None if pd.isna(by) else (value - by, value + by), accent=rank == 1)
        for team, value, by, rank in zip(
            shown["team"], shown[primary.key], margin, shown["rank"], strict=True
        )
    ]
    if margin.notna().any():
        key += (
            " Line: the 95 % interval that other students might give; all predict the same answers,"
            " so that smaller differences may count."
        )
    if len(shown) < len(board):
        key += f" The best {len(shown)} of {len(board)} teams."
    drawn = {
        name: pages.Html(
            charts.dot_chart(
                dots, label=task.name, digits=primary.precision, axis=primary.title, width=width
            )
        )
        for name, width in (("phone-wide", charts.WIDTH), ("page-wide", charts.PAGE_WIDTH))
    }
    return {"charts": drawn, "key": key}


def _failed(bundle: Bundle, attempts: pd.DataFrame) -> list[list[Any]]:
    """Return rows for what failed; tasks on which a file failed alike are named together."""
    rows = []
    for (file, fault), same in attempts.groupby(["file", "fault"], sort=False):
        tasks = "; ".join(bundle.tasks[index].name for index in same["task"] if index >= 0)
        rows.append([file, tasks, f"{same['submitted'].iloc[0]:%Y-%m-%d %H:%M}", fault])
    return rows


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
