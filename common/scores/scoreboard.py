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
class Reference:
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
REFERENCES = (
    Reference(1, "private", "", "winner of 2020", 0.7729, REPORT),
    Reference(2, "private", "", "winner of 2020", 0.6803, REPORT),
    Reference(3, "private", "", "winners of 2020", 0.80, f"{REPORT}, Table 4"),
    Reference(4, "private", "targets may be asked", "winner of 2020", 0.7474, REPORT),
    Reference(4, "private", "", "most popular, 2020", 0.6473, ARRAYS),
    Reference(4, "public", "", "most popular, 2020", 0.6365, ARRAYS),
)


@dataclass(frozen=True)
class Row:
    """A model on a board.

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
    is_reference
        Whether it is a figure of 2020.
    """

    name: str
    score: float
    deviation: float | None = None
    n_seeds: int = 1
    seconds: float | None = None
    day: str = ""
    is_reference: bool = False


@dataclass(frozen=True)
class Board:
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
    boards = make_boards(results)
    print(as_text(boards))
    page = path.with_name(layout.SCOREBOARD_NAME)
    io.write_text(page, as_page(boards))
    if n_unreadable:
        print(f"{cli.show(path)}: {n_unreadable} lines are no results", file=sys.stderr)
    print(f"written: {cli.show(page)}")


# ---- Sorting the scores ----------------------------------------------------------------------


def make_boards(results: Sequence[Result]) -> list[Board]:
    """Sort scores into boards of comparable ones: real before simulated, then by task and phase."""
    groups: dict[tuple[bool, int, str, str, str], list[Result]] = {}
    for result in results:
        key = (result.simulated, result.task, result.phase, result.rules, result.data)
        groups.setdefault(key, []).append(result)
    latest: dict[tuple[bool, int, str, str], str] = {}
    for result in sorted(results, key=lambda r: r.time):
        latest[result.simulated, result.task, result.phase, result.rules] = result.data
    boards = []
    for (simulated, task, phase, rules, data), group in groups.items():
        rows = [*make_rows(group), *([] if simulated else reference_rows(task, phase, rules))]
        boards.append(
            Board(
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
        boards,
        key=lambda b: (b.simulated, b.task, phases.get(b.phase, 9), b.rules, not b.is_current),
    )


def make_rows(results: Iterable[Result]) -> list[Row]:
    """Give a row for each model and its options; of the same seed only the last score counts."""
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
    """Give the model's name and the options that change what it does."""
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


def reference_rows(task: int, phase: str, rules: str) -> list[Row]:
    """Give the figures of 2020 that were scored in the same way."""
    return [
        Row(figure.name, figure.score, is_reference=True)
        for figure in REFERENCES
        if (figure.task, figure.phase) == (task, phase) and figure.rules in rules
    ]


def random_range(result: Result) -> tuple[float, float] | None:
    """Give what random rankings reach on the pairs of a result of task 3."""
    low = result.parts.get("random rankings, mean")
    high = result.parts.get("random rankings, 95th percentile")
    return None if low is None or high is None else (low, high)


# ---- The table -------------------------------------------------------------------------------

HEADER = ("model", "score", "seeds", "seconds", "scored on")
RIGHT_ALIGNED = (2, 3)


def cells(row: Row) -> tuple[str, ...]:
    """Give a row of a board as texts, in the order of `HEADER`."""
    return (
        f"{row.name} (reference)" if row.is_reference else row.name,
        f"{row.score:.4f}" + ("" if row.deviation is None else f" ± {row.deviation:.4f}"),
        "" if row.is_reference else f"{row.n_seeds}",
        "" if row.seconds is None else f"{row.seconds:.1f}",
        row.day,
    )


def as_text(boards: Sequence[Board]) -> str:
    """Give the current boards as aligned text."""
    lines = []
    current = [board for board in boards if board.is_current]
    widths = [
        max(len(text) for text in column)
        for column in zip(
            HEADER, *(cells(row) for board in current for row in board.rows), strict=True
        )
    ]
    for board in current:
        answers = "simulated answers" if board.simulated else "real answers"
        lines += [f"{board.title}: {board.metric}, {board.kind}, {answers}"]
        for row in (HEADER, *map(cells, board.rows)):
            padded = [
                text.rjust(width) if column in RIGHT_ALIGNED else text.ljust(width)
                for column, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append(f"  {'  '.join(padded).rstrip()}")
        if board.random_range:
            lines.append(f"  {random_note(board.random_range)}")
        lines.append("")
    n_others = sum(len(board.rows) for board in boards if not board.is_current)
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
.board { width: 100%; font-size: .92rem; } .board th[scope=row] { font-weight: 400; }
.board td { white-space: nowrap; } .board th, .board td { padding-inline: 0 .9rem; }
.board :is(td, th):nth-child(2) { text-align: left; }
.board :is(td, th):last-child { padding-right: 0; }
@media (max-width: 34rem) {
  .board :is(td, th):nth-child(n+4) { display: none; }
  .board { font-size: .85rem; } .board td, .board th { padding-right: .5rem; }
}
details { margin: .8rem 0; } summary { cursor: pointer; }
.sources td { text-align: left; } .sources td:nth-child(2) { white-space: nowrap; }
"""


def as_page(boards: Sequence[Board]) -> str:
    """Give all boards as a page that needs no network: charts, tables, the figures of 2020."""
    parts = []
    for simulated, heading in ((False, "Real answers"), (True, "Simulated answers")):
        chosen = [board for board in boards if board.simulated == simulated]
        if chosen:
            parts.append(f"<h2>{heading}</h2>{score_files.simulated_note(simulated)}")
            parts += [board_section(board, chosen) for board in chosen if board.is_current]
    if not boards:
        parts.append("<p>No scores yet: every local_evaluation.py adds one.</p>")
    figures = [
        (
            TASKS[figure.task][0],
            ", ".join(text for text in (f"{figure.phase} test", figure.rules) if text),
            figure.name,
            f"{figure.score:.4f}" if figure.score != 0.8 else "0.80",
            figure.source,
        )
        for figure in REFERENCES
    ]
    parts.append(
        "<h2>Figures of 2020</h2><p>Scored on the official answers. They cannot be compared with "
        "scores on simulated answers or on a local split.</p>"
        + score_files.table(
            ["task", "scored on", "whose", "score", "source"], figures, css_class="sources"
        )
    )
    return score_files.page("Scoreboard", "\n".join(parts), style=STYLE)


def board_section(board: Board, others: Sequence[Board]) -> str:
    """Give a board, and those on earlier answers of its kind folded up, as HTML."""
    title = f"{board.title}: {board.metric}, {board.kind}"
    parts = [
        f'<h3>{escape(board.title)}</h3><p class="kind">{escape(board.metric)}, '
        f"{escape(board.kind)}</p>",
        draw(board, title),
        board_table(board),
    ]
    if board.random_range:
        parts.append(f'<p class="kind">Grey band: {escape(random_note(board.random_range))}.</p>')
    key = (board.task, board.phase, board.rules)
    earlier = [
        board_table(other)
        for other in others
        if (other.task, other.phase, other.rules) == key and not other.is_current
    ]
    if earlier:
        parts.append(
            "<details><summary>Scores on earlier answers, not comparable with those above"
            f"</summary>{''.join(earlier)}</details>"
        )
    return f"<section>{''.join(parts)}</section>"


def board_table(board: Board) -> str:
    """Give the rows of a board as HTML; columns without a value are left out."""
    rows = [cells(row) for row in board.rows]
    used = [any(texts) for texts in zip(*rows, strict=True)]
    kept = [[text for text, use in zip(row, used, strict=True) if use] for row in (HEADER, *rows)]
    return score_files.table(kept[0], kept[1:], css_class="board")


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


def draw(board: Board, title: str) -> str:
    """Draw the scores of a board, the best on top, as SVG that lies in the page.

    Parameters
    ----------
    board
        What to draw.
    title
        Says what the chart shows, for those who cannot see it.
    """
    rows = board.rows[::-1]
    with mpl.rc_context(CHART_STYLE):
        figure = Figure(figsize=(4.6, 0.55 + 0.3 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        if board.random_range:
            axes.axvspan(*board.random_range, color=LINE, linewidth=0)
        best = max((row.score for row in rows if not row.is_reference), default=None)
        for place, row in enumerate(rows):
            colour = ACCENT if row.score == best and not row.is_reference else TEXT
            axes.errorbar(
                row.score,
                place,
                xerr=row.deviation,
                fmt="D" if row.is_reference else "o",
                color=colour,
                markerfacecolor="none" if row.is_reference else colour,
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
    return embed(file.getvalue(), title, f"{board.task}{board.phase}{board.data}{len(board.rules)}")


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
