"""The page of a leaderboard: a chart and a table for each task, what failed below."""

from collections.abc import Sequence
from html import escape

from common import charts, pages

from leaderboard import Attempt, Board, score_text, used_columns
from platform_rules import Bundle

# A chart of more teams is longer than its table.
_MAX_DRAWN = 25

_STYLE = """
h2 { margin-top: 3rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
.key { font-size: .875rem; opacity: .8; margin: .4rem 0 .8rem; }
a { color: rgb(var(--accent)); }
.places { width: 100%; } .places :is(td, th) { white-space: nowrap; }
.places th[scope=row] { font-weight: 400; text-align: right; }
.places thead th:first-child { text-align: right; }
.places :is(td, th):nth-child(2) { width: 100%; text-align: left; white-space: normal;
                                   overflow-wrap: anywhere; }
.places small { opacity: .75; } .places :is(td, th):last-child { padding-right: 0; }
.failed { width: 100%; } .failed :is(td, th) { text-align: left; }
.failed th[scope=row] { font-weight: 400; } .failed td:last-child { overflow-wrap: anywhere; }
.page-wide { display: none; } .page-wide .chart { max-width: none; }
@media (min-width: 48rem) { .phone-wide { display: none; } .page-wide { display: block; } }
@media (max-width: 34rem) { .places :is(td, th):is(:nth-child(4), :nth-child(5)) { display: none; }
  .places small { display: block; }
  .failed td { justify-content: flex-start; } .failed td::before { flex: 0 0 7.5rem; } }
details { margin: .8rem 0; } summary { cursor: pointer; }
"""


def as_page(
    bundle: Bundle, phase: str, boards: Sequence[Board], attempts: Sequence[Attempt], written: str
) -> str:
    """Return the leaderboards as a page that needs no network but the pages that it links to.

    Parameters
    ----------
    bundle
        Names title and columns.
    phase
        Its name.
    boards
        From `leaderboard.make_boards`.
    attempts
        All of them; those that failed are listed below.
    written
        When, as text.
    """
    failed = [attempt for attempt in attempts if attempt.fault]
    n_teams = len({attempt.team for attempt in attempts})
    what = f"{_count(len({a.file for a in attempts}), 'submission')} of {_count(n_teams, 'team')}"
    parts = [f'<p class="what">{escape(phase)} phase: {what}; {escape(written)}</p>']
    parts += [_section(bundle, board) for board in boards]
    if not boards:
        parts.append("<p>No submission was scored.</p>")
    if failed:
        parts.append(f"<h2>Not scored</h2>{_failed(failed)}")
    tab = f"{bundle.title}: {phase}"
    return pages.page(bundle.title, "\n".join(parts), tab=tab, style=_STYLE)


def _section(bundle: Bundle, board: Board) -> str:
    rows = []
    for place in board.places:
        attempt = place.attempt
        link = f'<a href="{escape(attempt.details)}">page</a>' if attempt.details else ""
        rows.append(
            [
                str(place.rank),
                attempt.team,
                _with_small_error(score_text(bundle, attempt)),
                str(place.n_scored),
                f"{attempt.submitted:%Y-%m-%d %H:%M}",
                pages.Html(link),
            ]
        )
    primary = bundle.primary.title
    header = ["rank", "team", primary, "submissions", "submitted (UTC)", "details"]
    if not any(place.attempt.details for place in board.places):
        header, rows = header[:-1], [row[:-1] for row in rows]
    table = pages.table(header, rows, css_class="places")
    heading = f"<h2>{escape(board.task.name)}</h2>"
    parts = (heading, _chart(bundle, board), table, _others(bundle, board))
    return f"<section>{''.join(parts)}</section>"


def _with_small_error(text: str) -> pages.Html:
    """Return a score with its standard error in small letters, below it on a phone."""
    value, sign, error = text.partition(" ± ")
    return pages.Html(f"{value} <small>± {error}</small>" if sign else value)


def _chart(bundle: Bundle, board: Board) -> str:
    """Return a chart of the best teams, which shows what differences mean little."""
    places = board.places[:_MAX_DRAWN]
    if len(places) < 2:
        return ""
    primary, dots = bundle.primary, []
    for place in places:
        value = place.attempt.scores[primary.key]
        error = place.attempt.scores.get("standard_error")
        interval = None if error is None else (value - 1.96 * error, value + 1.96 * error)
        dots.append(charts.Dot(place.attempt.team, value, interval, accent=place.rank == 1))
    key = "In colour: the best."
    if any(dot.interval for dot in dots):
        key += (
            " Line: the 95 % interval that other students might give; all predict the same answers,"
            " so that smaller differences may count."
        )
    if len(places) < len(board.places):
        key += f" The best {len(places)} of {len(board.places)} teams."
    figures = "".join(
        f'<div class="{css_class}">'
        + charts.dot_chart(
            dots, label=board.task.name, digits=primary.precision, axis=primary.title, width=width
        )
        + "</div>"
        for css_class, width in (("phone-wide", charts.WIDTH), ("page-wide", charts.PAGE_WIDTH))
    )
    return f'<figure>{figures}<figcaption class="key">{key}</figcaption></figure>'


def _others(bundle: Bundle, board: Board) -> str:
    """Return the columns beside score and standard error, folded."""
    shown = (bundle.primary.key, "standard_error")
    columns = [column for column in used_columns(bundle, board) if column.key not in shown]
    if not columns:
        return ""
    rows = []
    for place in board.places:
        scores = place.attempt.scores
        values = [
            f"{scores[column.key]:.{column.precision}f}" if column.key in scores else ""
            for column in columns
        ]
        rows.append([place.attempt.team, *values])
    table = pages.table(["team", *(column.title for column in columns)], rows)
    names = f"{columns[0].title} to {columns[-1].title}" if len(columns) > 1 else columns[0].title
    return f"<details><summary>{escape(names)}</summary>{table}</details>"


def _failed(attempts: Sequence[Attempt]) -> str:
    """Return a table of what failed; tasks on which a file failed alike are named together."""
    tasks: dict[tuple[str, str], list[str]] = {}
    first: dict[tuple[str, str], Attempt] = {}
    for attempt in attempts:
        key = (attempt.file, attempt.fault)
        first.setdefault(key, attempt)
        tasks.setdefault(key, []).append(attempt.task.name if attempt.task else "")
    rows = [
        [a.file, "; ".join(tasks[key]), f"{a.submitted:%Y-%m-%d %H:%M}", a.fault]
        for key, a in first.items()
    ]
    header = ["file", "task", "submitted (UTC)", "reason"]
    return pages.table(header, rows, css_class="failed", stacks=True)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
