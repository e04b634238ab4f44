"""Leaderboards: who is where, as the platform orders submissions, and the pages that say so.

An attempt, a submission to a task, is a row of a frame: `team`, `file`, `submitted` (UTC), `task`
(its index; -1 for a damaged file), `fault` (why it failed, or empty), `details` (where its page is,
seen from the leaderboard's, or empty), and the scores by the keys of their columns.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from common import charts, cli, pages, writing
from common.errors import printable
from common.pages import Html

import pandas as pd
from bundle import Bundle, Task
from competition import PUBLIC_DATA, STARTING_KIT

_ABOUT = ("team", "file", "submitted", "task", "fault", "details")

# With how many decimal places the platform keeps a score.
_DECIMALS = 10
# So that a line fits on a terminal.
_WIDEST_NAME = 40
# A chart of more teams is longer than its table.
_MAX_DRAWN = 25
# What makes a spreadsheet take a cell for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ERROR = "standard_error"
_INLINE = {
    re.compile(r"`([^`]+)`"): r"<code>\1</code>",
    re.compile(r"\*\*([^*]+)\*\*"): r"<strong>\1</strong>",
    re.compile(r"\*([^*]+)\*"): r"<em>\1</em>",
}


def write(bundle: Bundle, phase: str, attempts: Sequence[dict[str, Any]], folder: Path) -> None:
    """Print the leaderboards of a phase, and write their files, all or none."""
    keys = [column.key for column in bundle.columns]
    frame = pd.DataFrame(list(attempts), columns=[*_ABOUT, *keys])
    frame = frame.astype(dict.fromkeys(keys, float))
    boards = make_boards(bundle, frame)
    for index, board in boards.groupby("task"):
        print(bundle.tasks[index].name)
        width = min(_WIDEST_NAME, board["team"].str.len().max())
        scores = _as_text(bundle, board).filter([bundle.columns[0].key, _ERROR])
        told = scores.apply(lambda row: " ± ".join(filter(None, row)), axis=1)
        for place, team, score in zip(board["rank"], board["team"], told, strict=True):
            print(f"{place:>4}  {printable(team, width):<{width}}  {score}")
        print()
    written = f"written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    page = folder / "leaderboard.html"
    text, table = as_page(bundle, phase, boards, frame, written), as_table(bundle, phase, boards)
    writing.write_files({page: text, page.with_suffix(".csv"): table})
    print(f"written: {cli.show(page)}")


def make_boards(bundle: Bundle, attempts: pd.DataFrame) -> pd.DataFrame:
    """Rank every team's best attempt at each task as the platform does (get_submissions in its
    api/serializers/leaderboards.py): by columns, then time, what is missing last.
    """
    keys = [column.key for column in bundle.columns]
    ascending = [column.sorting == "asc" for column in bundle.columns]
    scored = attempts[attempts["fault"] == ""]
    rounded = scored.assign(**scored[keys].round(_DECIMALS))
    by = ["task", *keys, "submitted", "file"]
    order = rounded.sort_values(by, ascending=[True, *ascending, True, True]).index
    best = scored.loc[order].drop_duplicates(["task", "team"])
    n_scored = scored.groupby(["task", "team"])["file"].transform("size")
    return best.assign(rank=best.groupby("task").cumcount() + 1, submissions=n_scored)


def _as_text(bundle: Bundle, board: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of a board by the keys of their columns, empty where there is none."""
    texts = {}
    for column in bundle.columns:
        scores, as_text = board[column.key], f"{{:.{column.precision}f}}".format
        texts[column.key] = scores.map(as_text).where(scores.notna(), "")
    return pd.DataFrame(texts)


def safe(text: str) -> str:
    """Return a text that a spreadsheet takes for text, not for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_table(bundle: Bundle, phase: str, boards: pd.DataFrame) -> pd.DataFrame:
    """Return all boards as they are written: a row for each place, the value of every column."""
    table = boards.assign(phase=phase)
    table["task"] = [bundle.tasks[index].number for index in boards["task"]]
    table["time"] = [time.isoformat(timespec="seconds") for time in boards["submitted"]]
    for name in ("team", "file"):
        table[name] = boards[name].map(safe)
    keys = [column.key for column in bundle.columns]
    return table[["task", "phase", "rank", "team", *keys, "submissions", "time", "file"]]


def as_page(
    bundle: Bundle, phase: str, boards: pd.DataFrame, attempts: pd.DataFrame, written: str
) -> str:
    """Return the leaderboards, and which of all attempts failed, as a page; `written` says when."""
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
        sections=[
            _section(bundle, bundle.tasks[index], board) for index, board in boards.groupby("task")
        ],
        failed=failed,
    )


def _section(bundle: Bundle, task: Task, board: pd.DataFrame) -> dict[str, Any]:
    """Return what the page shows of a task."""
    first, texts = bundle.columns[0], _as_text(bundle, board)
    # The columns beside score and standard error, folded.
    others = [c for c in bundle.columns[1:] if c.key != _ERROR and texts[c.key].any()]
    other_rows = texts[[column.key for column in others]]
    other_rows.insert(0, "team", board["team"])
    # Charts of the best teams show which differences mean little.
    shown = board.head(_MAX_DRAWN)
    margins = 1.96 * shown.get(_ERROR, pd.Series(float("nan"), shown.index))
    dots = [
        charts.Dot(team, value, (value - by, value + by), accent=rank == 1)
        for team, value, by, rank in zip(
            shown["team"], shown[first.key], margins, shown["rank"], strict=True
        )
    ]
    chart = charts.dot_chart(dots, label=task.name, digits=first.precision, axis=first.title)
    places = board.assign(value=texts[first.key], error=texts.get(_ERROR, ""))
    return {
        "name": task.name,
        "places": places.to_dict("records"),
        "chart": chart,
        "n_drawn": len(shown),
        "others": [column.title for column in others],
        "other_rows": other_rows.to_numpy(),
    }


def publish(site: Path, bundle: Bundle, phase: str, folder: Path) -> None:
    """Publish pages, files and a phase's leaderboards; what another phase has published stays."""
    (site / "details").mkdir(parents=True, exist_ok=True)
    board = (folder / "leaderboard.html").read_text(encoding="utf-8")
    for name in re.findall(r'href="(details/[0-9a-f_]+\.html)"', board):
        shutil.copyfile(folder / name, site / name)
    for suffix in ("html", "csv"):
        name = f"leaderboard_{phase.lower()}.{suffix}"
        shutil.copyfile(folder / f"leaderboard.{suffix}", site / name)
    links = {title: f"{path.stem}.html" for title, path in bundle.pages.items()}
    for name in (each.name.lower() for each in bundle.phases):
        if (site / f"leaderboard_{name}.html").is_file():
            links[f"Leaderboard, {name}"] = f"leaderboard_{name}.html"
    for title, name in (("Public data", PUBLIC_DATA), ("Starting kit", STARTING_KIT)):
        shutil.copyfile(bundle.folder / name, site / name)
        links[title] = name
    for title, path in bundle.pages.items():
        text = Html(to_html(path.read_text(encoding="utf-8")))
        facts = {"title": bundle.title, "tab": f"{bundle.title}: {title}", "links": links}
        writing.write_files(
            {site / f"{path.stem}.html": pages.render("site.html", text=text, **facts)}
        )
    shutil.copyfile(site / f"{next(iter(bundle.pages.values())).stem}.html", site / "index.html")


def to_html(markdown: str) -> str:
    """Return the Markdown that the pages of a bundle are written in as HTML."""
    parts = []
    for block in re.split(r"\n\s*\n", markdown.strip("\n")):
        lines = block.splitlines()
        text = _inline(" ".join(line.strip() for line in lines))
        if heading := re.fullmatch(r"(#+) (.*)", text):
            # The page has a title above its text.
            level = len(heading[1]) + 1
            parts.append(f"<h{level}>{heading[2]}</h{level}>")
        elif all(line.startswith("    ") for line in lines):
            parts.append(f"<pre>{escape(block)}</pre>")
        elif block.startswith("|"):
            rows = [[Html(_inline(cell)) for cell in line.strip("|").split("|")] for line in lines]
            parts.append(pages.part("table", rows[0], rows[2:]))
        elif block.startswith("- "):
            items = re.split(r"(?:^|\s)- ", text)[1:]
            parts.append(f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>")
        else:
            parts.append(f"<p>{text}</p>")
    return "\n".join(parts)


def _inline(text: str) -> str:
    text = escape(text.strip())
    for pattern, html in _INLINE.items():
        text = pattern.sub(html, text)
    return text
