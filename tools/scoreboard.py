"""Show the record of all scores: a table here, and a page with charts to open in a browser.

    python -m tools.scoreboard
    python -m tools.scoreboard --results my_scores/results.jsonl

Reads data/test_output/results.jsonl, to which every evaluation appends, and writes scoreboard.html
beside it. Only scores on the same answers, by the same rules, are compared. Published scores of
2020 are shown beside real answers of the same phase, marked as such, and in their own table.
"""

import argparse
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from math import nan
from typing import NamedTuple

from common import charts, cli, layout, pages, reading, writing
from common.evaluation.record import Result
from common.tasks import TASKS, title_of
from tools.results import CROSS_VALIDATION, PHASES, name_of_phase, read_results

REPORT = "challenge report, PMLR 133 (2021)"
ARRAYS = "computed from the organisers' published arrays"
# Task, phase, part of the rules (task 4), whose score, the score in the digits published, where.
PUBLISHED = (
    (1, "private", "", "winner of 2020", "0.7729", REPORT),
    (2, "private", "", "winner of 2020", "0.6803", REPORT),
    (3, "private", "", "winners of 2020", "0.80", f"{REPORT}, Table 4"),
    (4, "private", "targets may be asked", "winner of 2020", "0.7474", REPORT),
    (4, "private", "", "most popular, 2020", "0.6473", ARRAYS),
    (4, "public", "", "most popular, 2020", "0.6365", ARRAYS),
)
HEADER = ("model", "score", "seeds", "seconds", "scored on")
TEXT_WIDTH = 80


class Row(NamedTuple):
    """A model in a table: the mean score and the median time of its seeds."""

    name: str
    score: float
    # Of the seeds, or of the folds of all seeds (cross-validation); None where there is but one.
    deviation: float | None = None
    n_seeds: int = 1
    seconds: float | None = None
    day: str = ""  # none of a published score

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as texts, in the order of `HEADER`."""
        return (
            self.name if self.day else f"{self.name} (published)",
            f"{self.score:.4f}" + ("" if self.deviation is None else f" ± {self.deviation:.4f}"),
            f"{self.n_seeds}" if self.day else "",
            "" if self.seconds is None else f"{self.seconds:.1f}",
            self.day,
        )


class Table(NamedTuple):
    """Scores that can be compared: one task, phase, reading of the rules, and set of answers."""

    simulated: bool
    title: str
    metric: str
    kind: str  # what the scores measure, and on which answers
    rows: list[Row]  # the best come first
    former: list[Row]  # of the same models before their code was changed
    earlier: list[list[Row]]  # on other answers, scored before these: rows for each set of them
    # The best expert of random rankings (task 3, else NaN): mean and 95th percentile; in words.
    random_range: tuple[float, float]
    about_random: str
    spread: str  # what deviations are over

    @property
    def heading(self) -> str:
        """All that the scores have in common."""
        return f"{self.title}: {self.kind}, {'simulated' if self.simulated else 'real'} answers"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    cli.add_file(parser, "--results", layout.TEST_OUTPUT_DIR / layout.RESULTS_NAME)
    return parser


def main() -> None:
    """Read the record, print the tables, write the page."""
    path = build_parser().parse_args().results
    reading.require_file(path)
    page = path.with_name(layout.SCOREBOARD_NAME)
    cli.require_outputs([page], [path])
    tables = make_tables(read_results(path))
    print(as_text(tables))
    writing.write_files({page: as_page(tables)})
    print(f"written: {cli.show(page)}")


def make_tables(results: Iterable[Result]) -> list[Table]:
    """Sort scores: real before simulated, tasks before related challenges, then by phase."""

    def kind(result: Result) -> tuple[bool, bool, str, int, str, str]:
        place = PHASES.index(result.phase) if result.phase else 0
        is_related, task = isinstance(result.task, str), str(result.task)
        return (result.simulated, is_related, task, place, result.metric_name, result.rules)

    by_time = sorted(results, key=lambda result: result.time)
    return [make_table([*group]) for _, group in groupby(sorted(by_time, key=kind), kind)]


def make_table(results: Sequence[Result]) -> Table:
    """Make a table of scores of one kind, of which the latest come last."""
    by_data: dict[str, list[Result]] = {}
    for result in results:
        by_data.setdefault(result.data, []).append(result)
    *earlier, last = sorted(by_data.values(), key=lambda results: results[-1].time)
    latest = last[-1]
    rows, former = model_rows(last)
    rows += [
        Row(name, float(score))
        for task, phase, rules, name, score, _ in PUBLISHED
        if (task, phase, False) == (latest.task, latest.phase, latest.simulated)
        and rules in latest.rules
    ]
    low = latest.parts.get("random rankings, mean")
    high = latest.parts.get("random rankings, 95th percentile")
    random_range, about_random = (nan, nan), ""
    if low is not None and high is not None:
        random_range = low, high
        about_random = (
            f"random rankings reach {low:.2f} on average with their best expert; at most 1 in 20 "
            f"exceeds {high:.2f}"
        )
    metric = latest.metric_name
    if not metric:
        metric = TASKS[latest.task].metric if latest.task in TASKS else "score"
    return Table(
        latest.simulated,
        title_of(latest.task),
        metric,
        ", ".join(filter(None, (metric, name_of_phase(latest.phase), latest.rules))),
        sorted(rows, key=lambda row: -row.score),
        former,
        [own + old for own, old in map(model_rows, earlier)],
        random_range,
        about_random,
        "folds" if latest.phase == CROSS_VALIDATION else "seeds",
    )


def model_rows(results: Iterable[Result]) -> tuple[list[Row], list[Row]]:
    """Return rows of models with options, and of their former code; a seed's last score counts."""
    latest: dict[str, str] = {}
    seeds: dict[tuple[str, str], dict[int, Result]] = {}
    for result in results:
        latest[result.name] = result.code
        # The seed is 0 where the command names none.
        seeds.setdefault((result.name, result.code), {})[result.seed or 0] = result
    rows: tuple[list[Row], list[Row]] = [], []
    for (name, code), by_seed in seeds.items():
        own = list(by_seed.values())
        scores = spread = [result.score for result in own]
        if own[0].phase == CROSS_VALIDATION:
            spread = [part for r in own for part in r.parts.values() if part is not None]
        deviation = statistics.stdev(spread) if len(spread) > 1 else None
        seconds = [result.seconds for result in own if result.seconds is not None]
        time = statistics.median(seconds) if seconds else None
        day = max(result.time for result in own)[:10]
        row = Row(name, statistics.fmean(scores), deviation, len(own), time, day)
        rows[code != latest[name]].append(row)
    for some in rows:
        some.sort(key=lambda row: -row.score)
    return rows


def as_text(tables: Sequence[Table]) -> str:
    """Return the tables as aligned text; longer names continue below."""
    all_cells = [HEADER, *(row.cells for table in tables for row in table.rows)]
    widths = [max(len(text) for text in column) for column in zip(*all_cells, strict=True)]
    widths[0] = min(widths[0], TEXT_WIDTH - 2 - sum(width + 2 for width in widths[1:]))
    lines = []
    for table in tables:
        lines += textwrap.wrap(table.heading, TEXT_WIDTH, subsequent_indent="  ")
        for name, score, *numbers, day in (HEADER, *(row.cells for row in table.rows)):
            first, *more = textwrap.wrap(name, widths[0]) or [""]
            right = [text.rjust(width) for text, width in zip(numbers, widths[2:4], strict=True)]
            line = [first.ljust(widths[0]), score.ljust(widths[1]), *right, day]
            lines += [f"  {'  '.join(line)}".rstrip(), *(f"    {text}" for text in more)]
        if table.about_random:
            text = f"  ({table.about_random})"
            lines += textwrap.wrap(text, TEXT_WIDTH, subsequent_indent="  ")
        lines.append("")
    n_earlier = sum(len(rows) for table in tables for rows in (table.former, *table.earlier))
    if n_earlier:
        lines.append(f"{n_earlier} scores of earlier code or on earlier answers: see the page.")
    return "\n".join(lines)


def as_page(tables: Sequence[Table]) -> str:
    """Return all tables as a page: charts, tables, the scores of 2020."""
    published = [
        (TASKS[task].title, ", ".join(filter(None, (f"{phase} test", rules))), *what)
        for task, phase, rules, *what in PUBLISHED
    ]
    facts = {"tables": tables, "header": HEADER, "published": published, "draw": draw}
    return pages.render("scoreboard.html", title="Scoreboard", tab="", **facts)


def draw(table: Table) -> pages.Html:
    """Return the chart of a table."""
    best = next((row for row in table.rows if row.day), None)
    dots = []
    for row in table.rows:
        spread = row.deviation or 0.0
        interval = (row.score - spread, row.score + spread)
        dot = charts.Dot(row.name, row.score, interval, nan, table.random_range, row is best)
        if not row.day:
            dot = charts.Dot(row.name, nan, mark=row.score, band=table.random_range)
        dots.append(dot)
    return charts.dot_chart(dots, label=table.heading, digits=4, axis=table.metric)


if __name__ == "__main__":
    cli.run(main)
