"""Rank submissions as the platform does, and write leaderboards as files and as a web site.

An attempt is a submission to one task. A table of attempts has a row for each attempt, and these
columns:

team, file
    Names, without control characters.
submitted
    Time of the submission, in UTC.
task
    Index of the task in the bundle, or `NO_TASK`.
fault
    Why the attempt failed; empty if it was scored.
details
    Path of the page that explains the score, relative to the leaderboard's folder; may be empty.

and a column for each score, named by its key in the bundle.
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

# In a table of attempts, this number stands for "no task": the file is no valid zip, so nobody
# knows which task it is for.
NO_TASK = -1
# The columns of a table of attempts before the columns of scores. An attempt is a submission to one
# task.
_ATTEMPT_COLUMNS = ("team", "file", "submitted", "task", "fault", "details")

# The platform rounds scores to this many decimal places.
_DECIMALS = 10
# A team's name is cut to this many characters when it is printed, so that a line fits on a
# terminal.
_WIDEST_NAME = 40
# A chart shows at most this many teams, the best ones, so that it stays short.
_MAX_DRAWN = 25
# A spreadsheet treats a cell as a formula if it begins with one of these characters.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
# Key of the column of standard errors.
_STANDARD_ERROR = "standard_error"
# 97.5 % quantile of the normal distribution: a 95 % interval is score ± 1.96 standard errors.
_Z_95 = 1.96
# Maps each pattern of Markdown within a line to its HTML.
_INLINE = {
    re.compile(r"`([^`]+)`"): r"<code>\1</code>",
    re.compile(r"\*\*([^*]+)\*\*"): r"<strong>\1</strong>",
    re.compile(r"\*([^*]+)\*"): r"<em>\1</em>",
}


def write(bundle: Bundle, phase: str, attempts: Sequence[dict[str, Any]], folder: Path) -> None:
    """Print the leaderboards of a phase, and write leaderboard.html and leaderboard.csv.

    `attempts` holds the rows of a table of attempts, which the module's docstring describes.
    """
    keys = [column.key for column in bundle.columns]
    table = pd.DataFrame(list(attempts), columns=[*_ATTEMPT_COLUMNS, *keys])
    # Without any attempt, the columns of the scores have the type object: convert them to float.
    table = table.astype(dict.fromkeys(keys, float))
    boards = make_boards(bundle, table)
    for index, board in boards.groupby("task"):
        print(bundle.tasks[index].name)
        _print_board(bundle, board)
        print()
    page = folder / "leaderboard.html"
    time_stamp = f"written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    writing.write_files(
        {
            page: as_page(bundle, phase, boards, attempts=table, time_stamp=time_stamp),
            page.with_suffix(".csv"): as_table(bundle, phase, boards),
        }
    )
    print(f"written: {cli.show(page)}")


def _print_board(bundle: Bundle, board: pd.DataFrame) -> None:
    """Print a line for each row of a leaderboard: rank, team, and score ± standard error.

    If a line shows a standard error, one more line explains the sign ±.
    """
    width = min(_WIDEST_NAME, board["team"].str.len().max())
    texts = _score_texts(bundle, board)
    # A bundle that was edited by hand may have no column of standard errors: `DataFrame.filter`
    # ignores missing columns.
    texts = texts.filter([bundle.main_column.key, _STANDARD_ERROR])
    shows_errors = False
    rows = zip(board["rank"], board["team"], texts.to_numpy(), strict=True)
    for rank, team, score_and_error in rows:
        # An unknown standard error has an empty text. The line then shows one text, the score.
        known_texts = [text for text in score_and_error if text]
        has_error = len(known_texts) == 2
        shows_errors = shows_errors or has_error
        print(f"{rank:>4}  {printable(team, width):<{width}}  {' ± '.join(known_texts)}")
    if shows_errors:
        print("      (±: standard error)")


def make_boards(bundle: Bundle, attempts: pd.DataFrame) -> pd.DataFrame:
    """Return the best attempt of every team at each task, ranked as the platform ranks them.

    Attempts are ordered by the first column of scores, ties by the second column and so on, at last
    by time. In every column, a missing score ranks below all scores. The platform's code for this
    is `get_submissions` in api/serializers/leaderboards.py.

    Two columns are added: `rank`, and `submissions`, the number of the team's scored attempts at
    the task.
    """
    keys = [column.key for column in bundle.columns]
    ascending = [column.sorting == "asc" for column in bundle.columns]
    scored = attempts[attempts["fault"] == ""]
    # Sort rounded scores, as the platform does. The returned scores are not rounded.
    rounded = scored.copy()
    rounded[keys] = scored[keys].round(_DECIMALS)
    by = ["task", *keys, "submitted", "file"]
    best_first = rounded.sort_values(by, ascending=[True, *ascending, True, True]).index
    # For each task and team, keep only the first attempt, which is the best.
    best = scored.loc[best_first].drop_duplicates(["task", "team"])
    # `best` lists the teams of each task from the best to the worst. So the rank of a team is its
    # position in this list.
    rank = best.groupby("task").cumcount() + 1
    # For each scored attempt: the number of scored attempts of the same team at the same task.
    n_scored = scored.groupby(["task", "team"])["file"].transform("size")
    return best.assign(rank=rank, submissions=n_scored[best.index])


def _score_texts(bundle: Bundle, board: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of a leaderboard as texts, rounded as the bundle says for each column.

    The columns are named by their keys in the bundle. The text of a missing score is empty.
    """
    texts = {}
    for column in bundle.columns:
        scores = board[column.key]
        # `precision` is the number of decimals. If it is 4, the format string is "{:.4f}".
        as_text = f"{{:.{column.precision}f}}".format
        texts[column.key] = scores.map(as_text).where(scores.notna(), "")
    return pd.DataFrame(texts)


def quote_formula(text: str) -> str:
    """Return a text, after an apostrophe if a spreadsheet would treat the text as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def as_table(bundle: Bundle, phase: str, boards: pd.DataFrame) -> pd.DataFrame:
    """Return the table to be written as leaderboard.csv: a row for each team and task."""
    table = boards.assign(phase=phase)
    table["task"] = [bundle.tasks[index].number for index in boards["task"]]
    table["time"] = [time.isoformat(timespec="seconds") for time in boards["submitted"]]
    for name in ("team", "file"):
        table[name] = boards[name].map(quote_formula)
    keys = [column.key for column in bundle.columns]
    return table[["task", "phase", "rank", "team", *keys, "submissions", "time", "file"]]


def as_page(
    bundle: Bundle, phase: str, boards: pd.DataFrame, *, attempts: pd.DataFrame, time_stamp: str
) -> str:
    """Return leaderboard.html: the leaderboards of all tasks, and the attempts that failed.

    `time_stamp` is a text on the page that says when the page was written.
    """
    sections = []
    for index, board in boards.groupby("task"):
        sections.append(_describe_board(bundle, bundle.tasks[index], board))
    return pages.render(
        "leaderboard.html",
        title=bundle.title,
        tab=f"{bundle.title}: {phase}",
        phase=phase,
        n_files=attempts["file"].nunique(),
        n_teams=attempts["team"].nunique(),
        written=time_stamp,
        score=bundle.main_column.title,
        sections=sections,
        failed=_list_failed(bundle, attempts),
    )


def _list_failed(bundle: Bundle, attempts: pd.DataFrame) -> list[tuple[str, str, str, str]]:
    """Return file, tasks, time and fault of the attempts that failed.

    If a file failed with the same fault on several tasks, one row names all these tasks.
    """
    rows = []
    failed = attempts[attempts["fault"] != ""]
    for (file, fault), group in failed.groupby(["file", "fault"], sort=False):
        names = [bundle.tasks[index].name for index in group["task"] if index != NO_TASK]
        time = f"{group['submitted'].iloc[0]:%Y-%m-%d %H:%M}"
        rows.append((str(file), "; ".join(names), time, str(fault)))
    return rows


def _describe_board(bundle: Bundle, task: Task, board: pd.DataFrame) -> dict[str, Any]:
    """Return the values that the HTML template `leaderboard.html` shows for one task."""
    # `texts` has a row for each team, and a column for each column of the leaderboard.
    texts = _score_texts(bundle, board)
    # The first table of the page shows the main score and its standard error. The other scores go
    # into a second table, which stays closed until a reader opens it. It leaves out columns without
    # any score.
    other_columns = []
    for column in bundle.columns[1:]:
        if column.key != _STANDARD_ERROR and texts[column.key].any():
            other_columns.append(column)
    second_table = texts[[column.key for column in other_columns]]
    second_table.insert(0, "team", board["team"])
    # A bundle that was edited by hand may have no column of standard errors. The text of the
    # standard error is then empty in every row.
    error_texts = texts.get(_STANDARD_ERROR, "")
    rows = board.assign(value=texts[bundle.main_column.key], error=error_texts)
    return {
        "name": task.name,
        "places": rows.to_dict("records"),
        "chart": _draw_board(bundle, task, board),
        "n_drawn": min(len(board), _MAX_DRAWN),
        "others": [column.title for column in other_columns],
        "other_rows": second_table.to_numpy(),
    }


def _draw_board(bundle: Bundle, task: Task, board: pd.DataFrame) -> Html:
    """Draw the scores of the best teams as dots with 95 % intervals."""
    main_column = bundle.main_column
    drawn = board.head(_MAX_DRAWN)
    # A bundle that was edited by hand may have no column of standard errors. The standard errors
    # are then NaN, and the chart draws no intervals.
    no_errors = pd.Series(float("nan"), drawn.index)
    errors = drawn.get(_STANDARD_ERROR, no_errors)
    dots = []
    rows = zip(drawn["team"], drawn["rank"], drawn[main_column.key], errors, strict=True)
    for team, rank, score, error in rows:
        half_width = _Z_95 * error
        interval = (score - half_width, score + half_width)
        dots.append(charts.Dot(team, score, interval, accent=rank == 1))
    return charts.dot_chart(
        dots, label=task.name, digits=main_column.precision, axis=main_column.title
    )


# ---- The web site ------------------------------------------------------------------------------


def publish(site: Path, bundle: Bundle, phase: str, folder: Path) -> None:
    """Write a phase's leaderboards, the bundle's pages and its files into the folder of a web site.

    `folder` is the folder into which `write` has written the leaderboard. If the site already holds
    a leaderboard of the other phase, it is kept, and the pages link to it.
    """
    _publish_leaderboard(site, phase, folder)
    for name in (PUBLIC_DATA, STARTING_KIT):
        shutil.copyfile(bundle.folder / name, site / name)

    # Every page shows these links. Maps the text of each link to the address of a page or file.
    links = {title: f"{path.stem}.html" for title, path in bundle.pages.items()}
    for each_phase in bundle.phases:
        name = each_phase.name.lower()
        if (site / f"leaderboard_{name}.html").is_file():
            links[f"Leaderboard, {name}"] = f"leaderboard_{name}.html"
    links |= {"Public data": PUBLIC_DATA, "Starting kit": STARTING_KIT}

    for title, path in bundle.pages.items():
        text = Html(to_html(path.read_text(encoding="utf-8")))
        page = pages.render(
            "site.html",
            text=text,
            title=bundle.title,
            tab=f"{bundle.title}: {title}",
            links=links,
        )
        writing.write_files({site / f"{path.stem}.html": page})
    first_page = next(iter(bundle.pages.values()))
    shutil.copyfile(site / f"{first_page.stem}.html", site / "index.html")


def _publish_leaderboard(site: Path, phase: str, folder: Path) -> None:
    """Copy the leaderboard of a phase, and the pages that explain its scores, to a web site."""
    (site / "details").mkdir(parents=True, exist_ok=True)
    board = (folder / "leaderboard.html").read_text(encoding="utf-8")
    # Each score on the leaderboard has a link to the page that explains it. The name of this page
    # consists of hexadecimal digits and underscores (see `run_locally.py`).
    for name in re.findall(r'href="(details/[0-9a-f_]+\.html)"', board):
        shutil.copyfile(folder / name, site / name)
    for suffix in ("html", "csv"):
        name = f"leaderboard_{phase.lower()}.{suffix}"
        shutil.copyfile(folder / f"leaderboard.{suffix}", site / name)


def to_html(markdown: str) -> str:
    """Convert the Markdown that a bundle's pages use to HTML.

    The pages use headings, paragraphs, indented code, tables and lists of one level. Within a line,
    they use code, bold and italic text.
    """
    blocks = re.split(r"\n\s*\n", markdown.strip("\n"))
    return "\n".join(_block_to_html(block) for block in blocks)


def _block_to_html(block: str) -> str:
    """Convert a block of Markdown, which has no empty line, to HTML."""
    lines = block.splitlines()
    # Line breaks do not matter in headings, lists and paragraphs. They are made from `html`, which
    # is the whole block as one line. Preformatted text and tables are made from `lines`.
    html = _line_to_html(" ".join(line.strip() for line in lines))
    heading = re.fullmatch(r"(?P<marks>#+) (?P<title>.*)", html)
    if heading:
        # Above the text, the web page has a heading of level 1, the title of the competition. So
        # move the headings of the text one level down.
        level = len(heading["marks"]) + 1
        return f"<h{level}>{heading['title']}</h{level}>"
    if all(line.startswith("    ") for line in lines):
        return f"<pre>{escape(block)}</pre>"
    if block.startswith("|"):
        return _table_to_html(lines)
    if block.startswith("- "):
        # In `html`, each item of the list begins with "- ", at the beginning or after a space. The
        # pages of bundles contain "- " nowhere else. [1:] drops the empty text before the first
        # item.
        items = re.split(r"(?:^|\s)- ", html)[1:]
        list_items = "".join(f"<li>{item}</li>" for item in items)
        return f"<ul>{list_items}</ul>"
    return f"<p>{html}</p>"


def _table_to_html(lines: Sequence[str]) -> str:
    """Convert the lines of a table in Markdown to HTML."""
    rows = []
    for line in lines:
        cells = line.strip("|").split("|")
        rows.append([Html(_line_to_html(cell)) for cell in cells])
    # The second line only separates the header from the rows.
    return pages.part("table", rows[0], rows[2:])


def _line_to_html(line: str) -> str:
    """Convert Markdown within a line to HTML."""
    html = escape(line.strip())
    for pattern, replacement in _INLINE.items():
        html = pattern.sub(replacement, html)
    return html
