"""The page of the scoreboard: a chart and a table for all scores that can be compared."""

from collections.abc import Iterable, Sequence
from html import escape

from common import charts, pages
from common.scores.results import CROSS_VALIDATION, TASK_TITLES
from tools.scoreboard_tables import (
    HEADER,
    PUBLISHED,
    Row,
    Table,
    cells,
    describe_random,
)

STYLE = """
h2 { margin-top: 3rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2.2rem 0 0; } .kind { margin: 0 0 .8rem; opacity: .75; }
.key { font-size: .875rem; opacity: .8; margin: .4rem 0 .8rem; }
.scores { width: 100%; font-size: .92rem; }
.scores th[scope=row] { font-weight: 400; overflow-wrap: anywhere; }
.scores td { white-space: nowrap; } .scores :is(td, th) { padding-inline: 0 .9rem; }
.scores :is(td, th):nth-child(2) { text-align: left; }
.scores :is(td, th):last-child { padding-right: 0; }
.page-wide { display: none; } .page-wide .chart { max-width: none; }
@media (min-width: 48rem) { .phone-wide { display: none; } .page-wide { display: block; } }
@media (max-width: 34rem) {
  .scores :is(td, th):nth-child(n+4) { display: none; }
  .scores { font-size: .85rem; } .scores :is(td, th) { padding-right: .5rem; }
}
details { margin: .8rem 0; } summary { cursor: pointer; }
.published :is(td, th) { text-align: left; padding-right: .4rem; }
.published th[scope=row] { font-weight: 400; }
"""


def as_page(tables: Sequence[Table]) -> str:
    """Return all tables as a page that needs no network: charts, tables, the scores of 2020."""
    parts = []
    for simulated, heading in ((False, "Real answers"), (True, "Simulated answers")):
        chosen = [table for table in tables if table.simulated == simulated]
        if chosen:
            parts.append(f"<h2>{heading}</h2>{pages.simulated_note(simulated)}")
            parts += [table_section(table, chosen) for table in chosen if table.is_current]
    if not tables:
        parts.append("<p>No scores yet: every local_evaluation.py adds one.</p>")
    rows = []
    for score in PUBLISHED:
        scored_on = ", ".join(filter(None, (f"{score.phase} test", score.rules)))
        # As many digits as were published.
        digits = 2 if score.task == 3 else 4
        text = f"{score.score:.{digits}f}"
        rows.append((TASK_TITLES[score.task], scored_on, score.name, text, score.source))
    parts.append(
        "<h2>Scores of 2020</h2><p>On the official answers. They cannot be compared with scores "
        "on simulated answers or on a local split.</p>"
    )
    header = ["task", "scored on", "model", "score", "source"]
    parts.append(pages.table(header, rows, css_class="published", stacks=True))
    return pages.page("Scoreboard", "\n".join(parts), style=STYLE)


def table_section(table: Table, others: Sequence[Table]) -> str:
    """Return a table with its chart, and earlier scores folded up, as HTML."""
    key = (table.task, table.phase, table.rules, table.metric_name)
    earlier = [
        html_table((*other.rows, *other.former))
        for other in others
        if (other.task, other.phase, other.rules, other.metric_name) == key and not other.is_current
    ]
    folded = ""
    for summary, html in (
        ("Scores of earlier code of these models", [html_table(table.former)] * bool(table.former)),
        ("Scores on earlier answers, not comparable with those above", earlier),
    ):
        if html:
            folded += f"<details><summary>{summary}</summary>{''.join(html)}</details>"
    return (
        f'<section><h3>{escape(table.title)}</h3><p class="kind">{escape(table.kind)}</p>'
        f'<figure>{draw(table)}<figcaption class="key">{key_of(table)}</figcaption></figure>'
        f"{html_table(table.rows)}{folded}</section>"
    )


def html_table(rows: Iterable[Row]) -> str:
    """Return rows of a table as HTML."""
    return pages.table(HEADER, [cells(row) for row in rows], css_class="scores")


def draw(table: Table) -> str:
    """Return a chart of the scores for a phone, and one as wide as the page; CSS shows one of them.

    The best model is in colour, published scores are diamonds.
    """
    best = next((row for row in table.rows if not row.is_published), None)
    dots = []
    for row in table.rows:
        if row.is_published:
            dot = charts.Dot(row.name, None, mark=row.score, band=table.random_range)
        else:
            spread = row.deviation or 0.0
            interval = (row.score - spread, row.score + spread)
            accent = row is best
            dot = charts.Dot(row.name, row.score, interval, band=table.random_range, accent=accent)
        dots.append(dot)
    label = f"{table.title}: {table.kind}, {table.answers}"
    return "".join(
        f'<div class="{css_class}">'
        f"{charts.dot_chart(dots, label=label, digits=4, axis=table.metric, width=width)}</div>"
        for css_class, width in (("phone-wide", charts.WIDTH), ("page-wide", charts.PAGE_WIDTH))
    )


def key_of(table: Table) -> str:
    """Say what the signs of a chart mean, those that it has."""
    spread = "folds" if table.phase == CROSS_VALIDATION else "seeds"
    signs = {
        "In colour: the best model.": len(table.rows) > 1,
        f"Line: one standard deviation over the {spread} to either side.": any(
            row.deviation is not None for row in table.rows
        ),
        "Diamond: published in 2020.": any(row.is_published for row in table.rows),
    }
    found = [text for text, is_there in signs.items() if is_there]
    if table.random_range:
        found.append(f"Grey: {describe_random(table.random_range)}.")
    return " ".join(found)
