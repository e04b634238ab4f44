"""Show the record of all scores: a table here, and a page with charts to open in a browser.

    python -m tools.scoreboard
    python -m tools.scoreboard --results my_scores/results.jsonl

Reads data/test_output/results.jsonl, to which every evaluation appends a line, and writes
scoreboard.html beside that file. A table compares only scores on the same answers, by the same
rules. Published scores of 2020 appear, marked as such, in the tables of scores on official answers
of the same phase. The page also has a table of all of them.
"""

import argparse
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from math import isnan, nan
from typing import NamedTuple

from common import charts, cli, layout, pages, provenance, reading, writing
from common.evaluation.doubt import EARLIER_CODE, INTERRUPTED
from common.evaluation.record import Result
from common.origin import Origin
from common.tasks import CROSS_VALIDATION, TASKS, name_of_phase, title_of
from tools.results import PHASES, read_results

REPORT = "challenge report, PMLR 133 (2021)"
ARRAYS = "computed from the organisers' published arrays"


class Published(NamedTuple):
    """A score of the challenge in 2020."""

    task: int
    phase: str
    # A result can be compared with this published score only if the result's rules contain this
    # phrase (task 4). All rules contain the empty phrase.
    rules: str
    # Who reached the score.
    name: str
    # The score as a text, with as many digits as were published.
    score: str
    source: str


PUBLISHED = (
    Published(1, "private", "", "winner of 2020", "0.7729", REPORT),
    Published(2, "private", "", "winner of 2020", "0.6803", REPORT),
    Published(3, "private", "", "winners of 2020", "0.80", f"{REPORT}, Table 4"),
    Published(4, "private", "targets may be asked", "winner of 2020", "0.7474", REPORT),
    Published(4, "private", "", "most popular, 2020", "0.6473", ARRAYS),
    Published(4, "public", "", "most popular, 2020", "0.6365", ARRAYS),
)
# Tables are sorted by the origin of their answers, in this order.
_ORIGINS_IN_ORDER = (Origin.OFFICIAL, Origin.UNKNOWN, Origin.SIMULATED)
# If results on the same answers name several origins of these answers, the one that comes first
# here is taken for all of these results.
_BEST_KNOWN = (Origin.OFFICIAL, Origin.SIMULATED, Origin.UNKNOWN)
HEADER = ("model", "score", "seeds", "seconds", "scored on")
TEXT_WIDTH = 80
# The name and the fingerprint of each source file of a model.
Sources = tuple[tuple[str, str], ...]


class Model(NamedTuple):
    """What identifies a model: its results share this key, whatever their seed and code version."""

    # The model's name with its options.
    name: str
    script: str
    # The files that the submission was made from; None if they are not recorded.
    learned_from: Sources | None
    # Reasons to doubt the score, each in a few words. `EARLIER_CODE` (the code has changed since)
    # is left out, because versions of the code are versions of one model.
    doubts: tuple[str, ...]
    # The time of the score, if a notebook made the score and its user has not named the model.
    # Otherwise "".
    run: str


class RowKey(NamedTuple):
    """The key by which results are put into one row of a table, which averages their scores.

    It is equal for two results of one model and one version of its code.
    """

    model: Model
    # Fingerprint of the code.
    code: str
    # None for a complete fit. An interrupted fit must not be averaged with others, since nobody
    # knows how much it has learned. So it needs a key of its own, which holds its position in the
    # list of results.
    position: int | None


class Row(NamedTuple):
    """A model in a table: the mean score and the median time of its seeds."""

    name: str
    score: float
    # Standard deviation of the scores over the seeds or, in a cross-validation, over the folds of
    # all seeds. None if there is only one score.
    deviation: float | None = None
    n_seeds: int = 1
    seconds: float | None = None
    # The day of the latest score; empty for a published score.
    day: str = ""

    @property
    def is_published(self) -> bool:
        """Whether this is a published score of 2020, for which no day is known."""
        return not self.day

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts in the cells of the row, in the order of `HEADER`."""
        deviation = "" if self.deviation is None else f" ± {self.deviation:.4f}"
        return (
            f"{self.name} (published)" if self.is_published else self.name,
            f"{self.score:.4f}{deviation}",
            "" if self.is_published else f"{self.n_seeds}",
            "" if self.seconds is None else f"{self.seconds:.1f}",
            self.day,
        )


class Table(NamedTuple):
    """Scores on one task and phase, by the same rules. The scores in `rows` can be compared."""

    # Whether the answers are official, simulated, or of unknown origin.
    origin: Origin
    title: str
    metric: str
    # Metric, phase and rules, in words.
    kind: str
    # The best score comes first.
    rows: list[Row]
    # Scores that these models reached on the same answers before their code was changed.
    former: list[Row]
    # Scores on earlier answers, which new answers have replaced since: a list for each earlier set
    # of answers.
    earlier: list[list[Row]]
    # For task 3: the mean and the 95th percentile of the scores of random rankings. NaN for other
    # tasks.
    random_range: tuple[float, float]
    # A sentence about the scores of random rankings (task 3); empty for other tasks.
    about_random: str
    # The standard deviations in the rows are over "folds" or over "seeds".
    spread_over: str
    # Number of scores that the table leaves out, because the same model was scored again with the
    # same seed.
    n_replaced: int

    @property
    def heading(self) -> str:
        """Title, kind of scores and origin of the answers, in words."""
        return f"{self.title}: {self.kind}, {self.origin.answers}"


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
    """Make a table for each group of scores that can be compared.

    The scores of a group have the same task, phase, metric, rules and origin of the answers. Tables
    of official answers come first, and tables of simulated answers last. Among tables of one
    origin, the tasks come before the related challenges. The tables of a task are sorted by phase.
    """

    def table_key(result: Result) -> tuple[int, bool, str, int, str, str]:
        """Return a key: results with the same key share a table, and tables are sorted by key."""
        is_related = isinstance(result.task, str)
        # A score of a related challenge has no phase.
        phase_index = PHASES.index(result.phase) if result.phase else 0
        return (
            _ORIGINS_IN_ORDER.index(result.origin),
            is_related,
            str(result.task),
            phase_index,
            result.metric_name,
            result.rules,
        )

    by_time = sorted(with_best_known_origin(list(results)), key=lambda result: result.time)
    # The sort is stable: results with equal keys stay in the order of time.
    by_table = sorted(by_time, key=table_key)
    return [make_table(list(group)) for _, group in groupby(by_table, table_key)]


def with_best_known_origin(results: Sequence[Result]) -> list[Result]:
    """Return the results, changed so that all results on the same answers name the same origin.

    Earlier versions of the kit recorded only whether answers are simulated. So in their results the
    origin of official answers is unknown, although later results on the same answers name it. If
    results on the same answers name several origins, all of these results get the origin that comes
    first in `_BEST_KNOWN`.
    """
    origins_by_answers: dict[str, set[Origin]] = {}
    for result in results:
        # `data` is the fingerprint of the answers. If it is "", nobody knows which other results
        # are on the same answers.
        if result.data:
            origins_by_answers.setdefault(result.data, set()).add(result.origin)
    changed = []
    for result in results:
        origins = origins_by_answers.get(result.data, {result.origin})
        best_known = min(origins, key=_BEST_KNOWN.index)
        changed.append(replace(result, origin=best_known))
    return changed


def make_table(results: Sequence[Result]) -> Table:
    """Make a table of results that belong to one task, phase and version of the rules.

    `results` are in the order of time. They may have been scored on different answers, for instance
    before and after a new simulation of the data. The answers of the latest result count as the
    present answers. The rows of the table are scores of the models' present code on the present
    answers, and published scores to compare them with. Scores of former code, and scores on earlier
    answers, are kept in lists of their own.
    """
    results_by_answers: dict[str, list[Result]] = {}
    for result in results:
        results_by_answers.setdefault(result.data, []).append(result)
    # A group holds the results on one set of answers. Sort the groups by the time of their latest
    # result. The answers of the last group count as the present answers.
    by_latest_time = sorted(results_by_answers.values(), key=lambda group: group[-1].time)
    *groups_on_earlier_answers, current = by_latest_time
    latest = current[-1]
    models, former = model_rows(current)
    # Each row averages the latest result of each seed. All results that are not averaged in any row
    # have been replaced by later ones.
    n_averaged = sum(row.n_seeds for row in [*models, *former])
    rows = models + published_rows(latest)
    default_metric = TASKS[latest.task].metric if latest.task in TASKS else "score"
    metric = latest.metric_name or default_metric
    earlier_rows = []
    for group in groups_on_earlier_answers:
        group_models, group_former = model_rows(group)
        earlier_rows.append(group_models + group_former)
    # In task 3, the models are compared with random rankings: the range of the scores of these.
    random_range = random_range_of(latest)
    return Table(
        origin=latest.origin,
        title=title_of(latest.task),
        metric=metric,
        kind=", ".join(filter(None, (metric, name_of_phase(latest.phase), latest.rules))),
        rows=sorted(rows, key=lambda row: -row.score),
        former=former,
        earlier=earlier_rows,
        random_range=random_range,
        about_random=describe_random(random_range),
        spread_over="folds" if latest.phase == CROSS_VALIDATION else "seeds",
        n_replaced=len(current) - n_averaged,
    )


def published_rows(result: Result) -> list[Row]:
    """Return the published scores that a result on official answers can be compared with."""
    rows = []
    for published in PUBLISHED:
        # The published score was reached under the rules `published.rules`, a phrase such as
        # "targets may be asked". It is comparable only if the rules of the result contain it.
        is_official = result.origin is Origin.OFFICIAL
        is_same_test = (published.task, published.phase) == (result.task, result.phase)
        if is_same_test and is_official and published.rules in result.rules:
            rows.append(Row(published.name, float(published.score)))
    return rows


def random_range_of(result: Result) -> tuple[float, float]:
    """Return mean and 95th percentile of the score of random rankings; NaN if they are unknown."""
    mean = result.parts.get("random rankings, mean")
    high = result.parts.get("random rankings, 95th percentile")
    if mean is None or high is None:
        return nan, nan
    return mean, high


def describe_random(random_range: tuple[float, float]) -> str:
    """Say which scores random rankings reach; empty if that is unknown."""
    mean, high = random_range
    if isnan(mean):
        return ""
    return (
        f"random rankings reach {mean:.2f} on average with their best expert; at most 1 in 20 "
        f"exceeds {high:.2f}"
    )


def model_rows(results: Iterable[Result]) -> tuple[list[Row], list[Row]]:
    """Return the rows of the models' present code, and the rows of their former code.

    Both lists begin with the best score. `results` are in the order of time. A row averages the
    results of one model with one version of its code, which differ in their seeds alone. If a seed
    was scored twice, the later score counts. The present code of a model is the code of its latest
    result. An interrupted fit has a row of its own, since nobody knows how much it has learned.
    """
    latest_of_model: dict[Model, Result] = {}
    latest_of_row: dict[RowKey, Result] = {}
    # For each row, the latest result of each seed.
    seeds_by_row: dict[RowKey, dict[int, Result]] = {}
    for position, result in enumerate(results):
        model = model_of(result)
        is_interrupted = INTERRUPTED in result.doubts
        # With its position, the key of an interrupted fit differs from all other keys.
        key = RowKey(model, result.code, position if is_interrupted else None)
        latest_of_model[model] = result
        latest_of_row[key] = result
        # The seed is 0 if the command names none.
        seeds_by_row.setdefault(key, {})[result.seed or 0] = result
    # Details that tell models of the same name apart, such as the file that a model learned from.
    details_by_model = tell_apart(list(latest_of_model))
    n_rows_of_model = Counter(key.model for key in seeds_by_row)
    rows = []
    former = []
    for key, by_seed in seeds_by_row.items():
        model = key.model
        latest = latest_of_row[key]
        is_current = key.code == latest_of_model[model].code
        # `latest.doubts` may say that the code has changed since; `model.doubts` never says it.
        # Rows of former code need not say it, because the page lists them under the title "Scores
        # of earlier code".
        doubts = latest.doubts if is_current else model.doubts
        details = [*doubts, *details_by_model[model]]
        is_interrupted = key.position is not None
        if is_interrupted and n_rows_of_model[model] > 1:
            # The model has several rows with the same label: the time tells them apart.
            details.append(provenance.to_minute(latest.time))
        label = f"{model.name} ({'; '.join(details)})" if details else model.name
        row = model_row(label, list(by_seed.values()))
        if is_current:
            rows.append(row)
        else:
            former.append(row)
    rows.sort(key=lambda row: -row.score)
    former.sort(key=lambda row: -row.score)
    return rows, former


def model_of(result: Result) -> Model:
    """Return the model that a result belongs to.

    Two results belong to one model if they agree in name, options, script, source files and the
    reasons to doubt the score. One reason is ignored here: that the code has changed since. For
    code before and after a change counts as versions of one model.
    """
    # A notebook's model is called after the notebook if its user has given it no name. Such a
    # notebook may have held any model. So each of its scores counts as a model of its own, and the
    # time of the score is a part of the key.
    is_unnamed = result.script == provenance.NOTEBOOK and result.model == provenance.NOTEBOOK
    sources = result.learned_from
    return Model(
        name=result.name,
        script=result.script,
        learned_from=None if sources is None else tuple(sorted(sources.items())),
        doubts=tuple(mark for mark in result.doubts if mark != EARLIER_CODE),
        run=provenance.to_minute(result.time) if is_unnamed else "",
    )


def tell_apart(models: Iterable[Model]) -> dict[Model, list[str]]:
    """Return for each model the details that distinguish it from other models of the same name.

    The script and the source files are given only if the models of the same name differ in them.
    The time of the run is given for each run of a notebook whose user has not named the model (see
    `model_of`). The doubts about a model are left out: its row shows them in any case.
    """
    by_name: dict[str, list[Model]] = {}
    for model in models:
        by_name.setdefault(model.name, []).append(model)
    details_by_model = {}
    for namesakes in by_name.values():
        all_sources = [model.learned_from for model in namesakes]
        scripts = {model.script for model in namesakes}
        for model in namesakes:
            details = []
            if len(scripts) > 1:
                details.append(model.script or "no script")
            details += describe_sources(model.learned_from, all_sources)
            if model.run:
                details.append(model.run)
            details_by_model[model] = details
    return details_by_model


def describe_sources(
    learned_from: Sources | None, all_learned_from: Iterable[Sources | None]
) -> list[str]:
    """Return phrases that tell a model apart from others of the same name by its source files.

    Source files are the files that a submission was made from, such as the training answers.

    Parameters
    ----------
    learned_from
        The source files of the model to describe; None if they are not recorded.
    all_learned_from
        The source files of every model that has this name. The model to describe is one of these.

    Returns
    -------
    list of str
        A phrase for each source file of this model in which the models differ: "from FILE" if
        another model lacks the file, and "from FILE" with the beginning of the fingerprint if
        another model has another version of the file. If there is no such file, but another model
        has more files, the only phrase is "from fewer files". If the files of this model are not
        recorded, but the files of another model are, the only phrase is "sources not recorded".
    """
    known_sources = [dict(sources) for sources in all_learned_from if sources is not None]
    if learned_from is None:
        return ["sources not recorded"] if known_sources else []
    own_sources = dict(learned_from)
    described = []
    for name, digest in own_sources.items():
        # The different fingerprints that this file has among the sources of the models. None is in
        # the set if some model has not learned from the file.
        digests = {sources.get(name) for sources in known_sources}
        has_several_versions = len(digests - {None}) > 1
        some_model_lacks_file = None in digests
        if has_several_versions:
            described.append(f"from {name} {digest[:6]}")
        elif some_model_lacks_file:
            described.append(f"from {name}")
    # If nothing is described yet, all models have learned from every file of this model. If another
    # model has other sources nevertheless, it has learned from more files.
    if not described and any(sources != own_sources for sources in known_sources):
        described.append("from fewer files")
    return described


def model_row(name: str, results: Sequence[Result]) -> Row:
    """Return the row of a model. `results` holds one result for each seed, all of one phase."""
    scores = [result.score for result in results]
    # The standard deviation is over the seeds or, in a cross-validation, over the folds of all
    # seeds: there, `result.parts` holds the score of each fold.
    scores_for_deviation = scores
    if results[0].phase == CROSS_VALIDATION:
        scores_for_deviation = []
        for result in results:
            # The score of a fold that did not run is None.
            scores_for_deviation += [score for score in result.parts.values() if score is not None]
    has_deviation = len(scores_for_deviation) > 1
    seconds = [result.seconds for result in results if result.seconds is not None]
    return Row(
        name=name,
        score=statistics.fmean(scores),
        deviation=statistics.stdev(scores_for_deviation) if has_deviation else None,
        n_seeds=len(results),
        seconds=statistics.median(seconds) if seconds else None,
        day=max(result.time for result in results)[:10],
    )


def as_text(tables: Sequence[Table]) -> str:
    """Return the tables as aligned text; a long name continues on the next line.

    The text shows the scores of each model's present code on the present answers. Scores of former
    code (``table.former``) and scores on earlier answers (``table.earlier``) are only counted: the
    HTML page shows them. Scores that were replaced when the same model was scored again with the
    same seed (``table.n_replaced``) are counted too.
    """
    widths = column_widths(tables)
    lines = []
    for table in tables:
        lines += textwrap.wrap(table.heading, TEXT_WIDTH, subsequent_indent="  ")
        lines += align(HEADER, widths)
        for row in table.rows:
            lines += align(row.cells, widths)
        if any(row.deviation is not None for row in table.rows):
            lines.append(f"  (±: standard deviation over the {table.spread_over})")
        if table.about_random:
            text = f"  ({table.about_random})"
            lines += textwrap.wrap(text, TEXT_WIDTH, subsequent_indent="  ")
        lines.append("")
    n_earlier = 0
    for table in tables:
        n_earlier += len(table.former) + sum(len(rows) for rows in table.earlier)
    if n_earlier:
        lines.append(f"{n_earlier} scores of earlier code or on earlier answers: see the page.")
    n_replaced = sum(table.n_replaced for table in tables)
    if n_replaced:
        lines.append(
            f"{n_replaced} replaced: the same model was scored again with the same seed, and the "
            "latest score counts."
        )
    return "\n".join(lines)


def column_widths(tables: Sequence[Table]) -> list[int]:
    """Return the width of each column: the width of its longest cell.

    If a line would be longer than `TEXT_WIDTH`, the column of names is narrower.
    """
    lines: list[tuple[str, ...]] = [HEADER]
    for table in tables:
        lines += [row.cells for row in table.rows]
    widest = []
    for column in zip(*lines, strict=True):
        widest.append(max(len(text) for text in column))
    name_width, *other_widths = widest
    # Two spaces indent each line, and two spaces separate a column from the column before it.
    largest_name_width = TEXT_WIDTH - 2 - sum(width + 2 for width in other_widths)
    return [min(name_width, largest_name_width), *other_widths]


def align(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return the lines of a row; a name that is too long continues below the first line."""
    name, score, seeds, seconds, day = cells
    # For an empty name, `wrap` returns an empty list.
    first_line_of_name, *more_lines = textwrap.wrap(name, widths[0]) or [""]
    columns = (
        first_line_of_name.ljust(widths[0]),
        score.ljust(widths[1]),
        seeds.rjust(widths[2]),
        seconds.rjust(widths[3]),
        day,
    )
    line = f"  {'  '.join(columns)}".rstrip()
    return [line, *(f"    {text}" for text in more_lines)]


def as_page(tables: Sequence[Table]) -> str:
    """Return a page with the chart and the rows of every table, and the published scores."""
    # The rows of the page's table of published scores: task, test, name, score, source.
    published = []
    for score in PUBLISHED:
        test = ", ".join(filter(None, (f"{score.phase} test", score.rules)))
        published.append((TASKS[score.task].title, test, score.name, score.score, score.source))
    return pages.render(
        "scoreboard.html",
        title="Scoreboard",
        tab="",
        tables=tables,
        header=HEADER,
        published=published,
        draw=draw,
    )


def draw(table: Table) -> pages.Html:
    """Return the chart of a table: a dot with an interval for each model's score.

    A published score is drawn as a mark instead, without an interval.
    """
    # The rows begin with the best score. Highlight the best score that is not a published one.
    best = next((row for row in table.rows if not row.is_published), None)
    dots = []
    for row in table.rows:
        if row.is_published:
            # The value nan draws no dot, so the row has only its mark.
            dot = charts.Dot(row.name, nan, mark=row.score, band=table.random_range)
        else:
            deviation = row.deviation or 0.0
            interval = (row.score - deviation, row.score + deviation)
            dot = charts.Dot(
                row.name, row.score, interval, band=table.random_range, accent=row is best
            )
        dots.append(dot)
    return charts.dot_chart(dots, label=table.heading, digits=4, axis=table.metric)


if __name__ == "__main__":
    cli.run(main)
