"""Show the record of all scores: a table here, and a page with charts to open in a browser.

    python -m common.scoreboard
    python -m common.scoreboard --results my_scores/results.jsonl

Reads data/test_output/results.jsonl, to which every evaluation appends, and writes scoreboard.html
beside it. Scores are compared only on the same answers, by the same rules. Figures of 2020 stand
only beside real answers of the same phase, marked as such, and in a table of their own.
"""

import re
import shlex
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from common import cli, io, layout
from common.scores import score_files
from common.scores.results import LOCAL, Result, read_results

TASKS = {
    1: ("Task 1: right or wrong", "accuracy"),
    2: ("Task 2: the option chosen", "accuracy"),
    3: ("Task 3: question quality", "agreement with the best expert"),
    4: ("Task 4: ten questions for each student", "accuracy after ten questions"),
}

# Flags that say where things lie or how they run, not what the model does; with their values.
PLUMBING = (
    "--seed",
    "--log",
    "--device",
    "--checkpoint",
    "--model_file",
    "--input_dir",
    "--train_data",
    "--output_dir",
    "--output_file",
    "--submission_template_dir",
    "--submission_template_file",
)


@dataclass(frozen=True)
class PublishedScore:
    """A figure of 2020, on the official answers.

    Attributes
    ----------
    task, phase
        What it was scored on.
    rules
        A part of the rules that it was scored by (task 4), or nothing.
    name
        Whose it is.
    score
        From 0 to 1.
    source
        Where it was published.
    """

    task: int
    phase: str
    rules: str
    name: str
    score: float
    source: str


REPORT = "challenge report, PMLR 133 (2021)"
ARRAYS = "computed from the organisers' published arrays"
PUBLISHED = (
    PublishedScore(1, "private", "", "winner of 2020", 0.7729, REPORT),
    PublishedScore(2, "private", "", "winner of 2020", 0.6803, REPORT),
    PublishedScore(3, "private", "", "winners of 2020", 0.80, f"{REPORT}, Table 4"),
    PublishedScore(4, "private", "targets may be asked", "winner of 2020", 0.7474, REPORT),
    PublishedScore(4, "private", "", "most popular, 2020", 0.6473, ARRAYS),
    PublishedScore(4, "public", "", "most popular, 2020", 0.6365, ARRAYS),
)


@dataclass(frozen=True)
class Row:
    """A model on a table.

    Attributes
    ----------
    name
        The model and its options.
    score
        Mean over the seeds.
    deviation
        Standard deviation over the seeds; None for one seed.
    n_seeds
        How many seeds there are.
    seconds
        Median time, or None.
    day
        When it was scored last, such as 2020-10-31; nothing for a figure of 2020.
    is_published
        Whether it is a figure of 2020.
    """

    name: str
    score: float
    deviation: float | None = None
    n_seeds: int = 1
    seconds: float | None = None
    day: str = ""
    is_published: bool = False


@dataclass(frozen=True)
class Table:
    """Scores that can be compared: one task, phase, reading of the rules, and set of answers.

    Attributes
    ----------
    task, phase, rules, simulated, data
        As in `Result`.
    rows
        The models, the best first.
    random_range
        What random rankings reach (task 3): mean and 95th percentile of the best expert's
        agreement; None elsewhere.
    is_current
        Whether no other answers of this kind were scored later.
    """

    task: int
    phase: str
    rules: str
    simulated: bool
    data: str
    rows: tuple[Row, ...]
    random_range: tuple[float, float] | None
    is_current: bool

    @property
    def title(self) -> str:
        """Name of the task."""
        return TASKS.get(self.task, (f"Task {self.task}", ""))[0]

    @property
    def metric(self) -> str:
        """What the score is."""
        return TASKS.get(self.task, ("", "score"))[1]

    @property
    def kind(self) -> str:
        """What was scored, in words."""
        phase = "local split" if self.phase == LOCAL else f"{self.phase} test"
        return ", ".join(part for part in (phase, self.rules) if part)


def main() -> None:
    """Read the record, print the table, write the page."""
    p = cli.parser(__doc__)
    p.prog = "python -m common.scoreboard"
    default = layout.TEST_OUTPUT_DIR / layout.RESULTS_NAME
    p.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        default=default,
        help=f"default {cli.show(default)}",
    )
    path = p.parse_args().results
    io.require_file(path)
    results, n_unreadable = read_results(path)
    tables = make_tables(results)
    print(as_text(tables))
    page = path.with_name(layout.SCOREBOARD_NAME)
    io.write_text(page, as_page(tables))
    if n_unreadable:
        print(f"{cli.show(path)}: {n_unreadable} lines are no results", file=sys.stderr)
    print(f"written: {cli.show(page)}")


# ---- Sorting the scores ----------------------------------------------------------------------


def make_tables(results: Sequence[Result]) -> list[Table]:
    """Sort scores into tables of comparable ones: real before simulated, then by task and phase."""
    groups: dict[tuple[bool, int, str, str, str], list[Result]] = {}
    for result in results:
        key = (result.simulated, result.task, result.phase, result.rules, result.data)
        groups.setdefault(key, []).append(result)
    latest: dict[tuple[bool, int, str, str], str] = {}
    for result in sorted(results, key=lambda r: r.time):
        latest[result.simulated, result.task, result.phase, result.rules] = result.data
    tables = []
    for (simulated, task, phase, rules, data), group in groups.items():
        rows = [*make_rows(group), *([] if simulated else published_rows(task, phase, rules))]
        tables.append(
            Table(
                task=task,
                phase=phase,
                rules=rules,
                simulated=simulated,
                data=data,
                rows=tuple(sorted(rows, key=lambda row: -row.score)),
                random_range=random_range(group[-1]),
                is_current=latest[simulated, task, phase, rules] == data,
            )
        )
    phases = {phase: place for place, phase in enumerate((LOCAL, *layout.PHASES))}
    return sorted(
        tables,
        key=lambda b: (b.simulated, b.task, phases.get(b.phase, 9), b.rules, not b.is_current),
    )


def make_rows(results: Iterable[Result]) -> list[Row]:
    """Return a row for each model and its options; of the same seed only the last score counts."""
    models: dict[str, dict[int, Result]] = {}
    for result in sorted(results, key=lambda r: r.time):
        # The seed is 0 where the command names none.
        models.setdefault(name_of(result), {})[result.seed or 0] = result
    rows = []
    for name, by_seed in models.items():
        scores = [result.score for result in by_seed.values()]
        seconds = [result.seconds for result in by_seed.values() if result.seconds is not None]
        rows.append(
            Row(
                name=name,
                score=statistics.fmean(scores),
                deviation=statistics.stdev(scores) if len(scores) > 1 else None,
                n_seeds=len(scores),
                seconds=statistics.median(seconds) if seconds else None,
                day=max(result.time for result in by_seed.values())[:10],
            )
        )
    return rows


def name_of(result: Result) -> str:
    """Return the model's name and the options that change what it does."""
    words = shlex.split(result.made_by)[2:]
    options = []
    while words:
        word = words.pop(0)
        if word.partition("=")[0] in PLUMBING:
            if "=" not in word and words:
                words.pop(0)
        elif word != "--local":
            options.append(word)
    return " ".join([result.model, *options])


def published_rows(task: int, phase: str, rules: str) -> list[Row]:
    """Return the figures of 2020 that were scored in the same way."""
    return [
        Row(figure.name, figure.score, is_published=True)
        for figure in PUBLISHED
        if (figure.task, figure.phase) == (task, phase) and figure.rules in rules
    ]


def random_range(result: Result) -> tuple[float, float] | None:
    """Return what random rankings reach on the pairs of a result of task 3."""
    low = result.parts.get("random rankings, mean")
    high = result.parts.get("random rankings, 95th percentile")
    return None if low is None or high is None else (low, high)


# ---- The table -------------------------------------------------------------------------------

HEADER = ("model", "score", "seeds", "seconds", "scored on")
RIGHT_ALIGNED = (2, 3)


def cells(row: Row) -> tuple[str, ...]:
    """Return a row of a table as texts, in the order of `HEADER`."""
    return (
        f"{row.name} (reference)" if row.is_published else row.name,
        f"{row.score:.4f}" + ("" if row.deviation is None else f" ± {row.deviation:.4f}"),
        "" if row.is_published else f"{row.n_seeds}",
        "" if row.seconds is None else f"{row.seconds:.1f}",
        row.day,
    )


def as_text(tables: Sequence[Table]) -> str:
    """Return the current tables as aligned text."""
    lines = []
    current = [table for table in tables if table.is_current]
    widths = [
        max(len(text) for text in column)
        for column in zip(
            HEADER, *(cells(row) for table in current for row in table.rows), strict=True
        )
    ]
    for table in current:
        answers = "simulated answers" if table.simulated else "real answers"
        lines += [f"{table.title}: {table.metric}, {table.kind}, {answers}"]
        for row in (HEADER, *map(cells, table.rows)):
            padded = [
                text.rjust(width) if column in RIGHT_ALIGNED else text.ljust(width)
                for column, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append(f"  {'  '.join(padded).rstrip()}")
        if table.random_range:
            lines.append(f"  {random_note(table.random_range)}")
        lines.append("")
    n_others = sum(len(table.rows) for table in tables if not table.is_current)
    if n_others:
        lines.append(f"{n_others} scores on earlier answers stand on the page only.")
    return "\n".join(lines)


def random_note(reached: tuple[float, float]) -> str:
    """Say what random rankings reach."""
    return (
        f"random rankings reach {reached[0]:.2f} on average with their best expert, "
        f"1 in 20 reaches {reached[1]:.2f}"
    )


# ---- The page --------------------------------------------------------------------------------

STYLE = """
h2 { margin-top: 3rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2.2rem 0 0; } .kind { margin: 0 0 .8rem; opacity: .75; }
.plot { width: 100%; max-width: 28rem; height: auto; display: block; margin: 0 0 .6rem -.2rem; }
.plot text { font-family: inherit !important; fill: currentColor; }
.table { width: 100%; font-size: .92rem; } .table th[scope=row] { font-weight: 400; }
.table td { white-space: nowrap; } .table th, .table td { padding-inline: 0 .9rem; }
.table :is(td, th):nth-child(2) { text-align: left; }
.table :is(td, th):last-child { padding-right: 0; }
@media (max-width: 34rem) {
  .table :is(td, th):nth-child(n+4) { display: none; }
  .table { font-size: .85rem; } .table td, .table th { padding-right: .5rem; }
}
details { margin: .8rem 0; } summary { cursor: pointer; }
.sources td { text-align: left; } .sources td:nth-child(2) { white-space: nowrap; }
"""


def as_page(tables: Sequence[Table]) -> str:
    """Return all tables as a page that needs no network: charts, tables, the figures of 2020."""
    parts = []
    for simulated, heading in ((False, "Real answers"), (True, "Simulated answers")):
        chosen = [table for table in tables if table.simulated == simulated]
        if chosen:
            parts.append(f"<h2>{heading}</h2>{score_files.simulated_note(simulated)}")
            parts += [table_section(table, chosen) for table in chosen if table.is_current]
    if not tables:
        parts.append("<p>No scores yet: every local_evaluation.py adds one.</p>")
    figures = [
        (
            TASKS[figure.task][0],
            ", ".join(text for text in (f"{figure.phase} test", figure.rules) if text),
            figure.name,
            f"{figure.score:.4f}" if figure.score != 0.8 else "0.80",
            figure.source,
        )
        for figure in PUBLISHED
    ]
    parts.append(
        "<h2>Figures of 2020</h2><p>Scored on the official answers. They cannot be compared with "
        "scores on simulated answers or on a local split.</p>"
        + score_files.table(
            ["task", "scored on", "whose", "score", "source"], figures, css_class="sources"
        )
    )
    return score_files.page("Scoreboard", "\n".join(parts), style=STYLE)


def table_section(table: Table, others: Sequence[Table]) -> str:
    """Return a table, and those on earlier answers of its kind folded up, as HTML."""
    title = f"{table.title}: {table.metric}, {table.kind}"
    parts = [
        f'<h3>{escape(table.title)}</h3><p class="kind">{escape(table.metric)}, '
        f"{escape(table.kind)}</p>",
        draw(table, title),
        html_table(table),
    ]
    if table.random_range:
        parts.append(f'<p class="kind">Grey band: {escape(random_note(table.random_range))}.</p>')
    key = (table.task, table.phase, table.rules)
    earlier = [
        html_table(other)
        for other in others
        if (other.task, other.phase, other.rules) == key and not other.is_current
    ]
    if earlier:
        parts.append(
            "<details><summary>Scores on earlier answers, not comparable with those above"
            f"</summary>{''.join(earlier)}</details>"
        )
    return f"<section>{''.join(parts)}</section>"


def html_table(table: Table) -> str:
    """Return the rows of a table as HTML; columns without a value are left out."""
    rows = [cells(row) for row in table.rows]
    used = [any(texts) for texts in zip(*rows, strict=True)]
    kept = [[text for text, use in zip(row, used, strict=True) if use] for row in (HEADER, *rows)]
    return score_files.table(kept[0], kept[1:], css_class="table")


# Stand-ins for the page's own colours, which follow light and dark.
TEXT, ACCENT, LINE = "#010203", "#010204", "#010205"
COLOURS = {TEXT: "currentColor", ACCENT: "rgb(var(--accent))", LINE: "var(--line)"}
CHART_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 11,
    "text.color": TEXT,
    "axes.edgecolor": LINE,
    "axes.labelcolor": TEXT,
    "xtick.color": LINE,
    "xtick.labelcolor": TEXT,
    "ytick.color": TEXT,
    "grid.color": LINE,
}
LONGEST_NAME = 20


def draw(table: Table, title: str) -> str:
    """Draw the scores of a table, the best on top, as SVG that lies in the page.

    Parameters
    ----------
    table
        What to draw.
    title
        Says what the chart shows, for those who cannot see it.
    """
    rows = table.rows[::-1]
    with mpl.rc_context(CHART_STYLE):
        figure = Figure(figsize=(4.6, 0.55 + 0.3 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        if table.random_range:
            axes.axvspan(*table.random_range, color=LINE, linewidth=0)
        best = max((row.score for row in rows if not row.is_published), default=None)
        for place, row in enumerate(rows):
            colour = ACCENT if row.score == best and not row.is_published else TEXT
            axes.errorbar(
                row.score,
                place,
                xerr=row.deviation,
                fmt="D" if row.is_published else "o",
                color=colour,
                markerfacecolor="none" if row.is_published else colour,
                markersize=4.5,
                elinewidth=1.2,
            )
            right = axes.get_yaxis_transform()
            axes.text(1.03, place, f"{row.score:.4f}", transform=right, va="center")
        names = [shorten(row.name) for row in rows]
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.margins(x=0.1)
        axes.locator_params(axis="x", nbins=4)
        axes.grid(axis="x", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(length=0)
        for side in ("top", "left", "right"):
            axes.spines[side].set_visible(False)
        file = StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return embed(file.getvalue(), title, f"{table.task}{table.phase}{table.data}{len(table.rules)}")


def shorten(name: str) -> str:
    """Cut a name that is too long for a chart."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def embed(svg: str, title: str, prefix: str) -> str:
    """Make a chart of matplotlib part of a page.

    Parameters
    ----------
    svg
        The file's content.
    title
        Says what the chart shows.
    prefix
        Makes its ids distinct from those of other charts.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) (?:width|height)="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg[^>]*?) (?:width|height)="[^"]*"', r"\1", svg)
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>chart-{prefix}-", svg)
    for stand_in, colour in COLOURS.items():
        svg = svg.replace(stand_in, colour)
    return svg.replace("<svg", f'<svg class="plot" role="img" aria-label="{escape(title)}"', 1)
