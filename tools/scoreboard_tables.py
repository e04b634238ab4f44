"""Sort the record of all scores into tables of what can be compared, and show them as text.

`python -m tools.scoreboard` prints them; `tools/scoreboard_page.py` makes the page.
"""

import shlex
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import layout
from common.scores.results import CROSS_VALIDATION, LOCAL, Result, title_of

# Those of the tasks; a related challenge names its own.
METRICS = {
    1: "accuracy",
    2: "accuracy",
    3: "agreement with the best expert",
    4: "accuracy after ten questions",
}

# Flags, with values, that do not change what a model computes; nor do folders and files.
PLUMBING = ("--seed", "--log", "--probabilities", "--device", "--checkpoint")


@dataclass(frozen=True)
class PublishedScore:
    """A score of 2020, on the official answers.

    Attributes
    ----------
    task, phase
        What was scored.
    rules
        A part of the rules that applied (task 4), or nothing.
    name
        Whose score it is.
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
    """A model in a table.

    Attributes
    ----------
    name
        The model and its options.
    score
        Mean over the seeds.
    deviation
        Standard deviation over the seeds, or over the folds of all seeds (cross-validation); None
        for one seed.
    n_seeds
        How many seeds there are.
    seconds
        Median time, or None.
    day
        When it was scored last, such as 2020-10-31; nothing for a published score.
    is_published
        Whether it is a published score.
    is_former
        Whether the model has been scored again since its code was changed.
    """

    name: str
    score: float
    deviation: float | None = None
    n_seeds: int = 1
    seconds: float | None = None
    day: str = ""
    is_published: bool = False
    is_former: bool = False


@dataclass(frozen=True)
class Table:
    """Scores that can be compared: one task, phase, reading of the rules, and set of answers.

    Attributes
    ----------
    task, phase, rules, simulated, metric_name, data
        As in `Result`.
    rows
        The models, the best first.
    former
        Scores of the same models before their code was changed.
    random_range
        What random rankings reach (task 3): mean and 95th percentile of the best expert's
        agreement; None elsewhere.
    is_current
        Whether no other answers of this kind were scored later.
    """

    task: int | str
    phase: str
    rules: str
    simulated: bool
    metric_name: str
    data: str
    rows: tuple[Row, ...]
    former: tuple[Row, ...]
    random_range: tuple[float, float] | None
    is_current: bool

    @property
    def title(self) -> str:
        """Name of the task or of the related challenge."""
        return title_of(self.task)

    @property
    def metric(self) -> str:
        """Short name of the metric."""
        own = METRICS.get(self.task, "") if isinstance(self.task, int) else self.metric_name
        return own or "score"

    @property
    def kind(self) -> str:
        """What the scores measure, and on which answers."""
        return ", ".join(filter(None, (self.metric, name_of_phase(self.phase), self.rules)))

    @property
    def answers(self) -> str:
        """Whose answers were predicted."""
        return "simulated answers" if self.simulated else "real answers"


# ---- Sorting the scores ----------------------------------------------------------------------


def make_tables(results: Sequence[Result]) -> list[Table]:
    """Sort scores into tables of comparable ones: real before simulated, then by task and phase.

    The related challenges follow after the tasks.
    """
    groups: dict[tuple[int | str, str, str, bool, str, str], list[Result]] = {}
    latest_data: dict[tuple[int | str, str, str, bool, str], str] = {}
    for result in sorted(results, key=lambda result: result.time):
        kind = (result.task, result.phase, result.rules, result.simulated, result.metric_name)
        groups.setdefault((*kind, result.data), []).append(result)
        latest_data[kind] = result.data
    tables = []
    for key, group in groups.items():
        task, phase, rules, simulated, _, data = key
        published = [
            Row(score.name, score.score, is_published=True)
            for score in PUBLISHED
            if (score.task, score.phase) == (task, phase) and score.rules in rules and not simulated
        ]
        found = sorted([*model_rows(group), *published], key=lambda row: -row.score)
        rows = tuple(row for row in found if not row.is_former)
        former = tuple(row for row in found if row.is_former)
        is_current = latest_data[key[:5]] == data
        tables.append(Table(*key, rows, former, random_range(group[-1]), is_current))
    places = {phase: place for place, phase in enumerate((LOCAL, CROSS_VALIDATION, *layout.PHASES))}
    return sorted(
        tables,
        key=lambda t: (
            t.simulated,
            isinstance(t.task, str),
            str(t.task),
            places.get(t.phase, 9),
            (t.metric_name, t.rules),
            not t.is_current,
        ),
    )


def model_rows(results: Iterable[Result]) -> list[Row]:
    """Return a row for each model, its options and its code, given results in the order of time.

    Of the same seed only the last score counts. Scores of different code are never averaged.
    """
    models: dict[tuple[str, str], dict[int, Result]] = {}
    latest_code: dict[str, str] = {}
    for result in results:
        name = name_of(result)
        # The seed is 0 where the command names none.
        models.setdefault((name, result.code), {})[result.seed or 0] = result
        latest_code[name] = result.code
    rows = []
    for (name, code), by_seed in models.items():
        scores = [result.score for result in by_seed.values()]
        spread = [score for result in by_seed.values() for score in scores_of_folds(result)]
        seconds = [result.seconds for result in by_seed.values() if result.seconds is not None]
        rows.append(
            Row(
                name=name,
                score=statistics.fmean(scores),
                deviation=statistics.stdev(spread) if len(spread) > 1 else None,
                n_seeds=len(scores),
                seconds=statistics.median(seconds) if seconds else None,
                day=max(result.time for result in by_seed.values())[:10],
                is_former=code != latest_code[name],
            )
        )
    return rows


def name_of(result: Result) -> str:
    """Return the model's name and the options that change what it computes."""
    words = shlex.split(result.made_by)
    words = words[3 if words[1:2] == ["-m"] else 2 :]
    options = []
    while words:
        word = words.pop(0)
        flag, has_value, _ = word.partition("=")
        if flag in PLUMBING or flag.endswith(("_dir", "_file", "_data")):
            if words and not has_value:
                words.pop(0)
        elif word != "--local":
            # What a blend is made of goes by its name, wherever the file lies.
            options.append(Path(word).stem if word.endswith(".parquet") else word)
    return " ".join([result.model, *options])


def name_of_phase(phase: str) -> str:
    """Return what the answers of a phase are called; nothing where there are no phases."""
    names = {"": "", LOCAL: "local split", CROSS_VALIDATION: CROSS_VALIDATION}
    return names.get(phase, f"{phase} test")


def scores_of_folds(result: Result) -> list[float]:
    """Return what a deviation is computed from: the score of each fold, or the only score."""
    if result.phase == CROSS_VALIDATION:
        return [part for part in result.parts.values() if part is not None]
    return [result.score]


def random_range(result: Result) -> tuple[float, float] | None:
    """Return what random rankings reach on the pairs of a result of task 3."""
    low = result.parts.get("random rankings, mean")
    high = result.parts.get("random rankings, 95th percentile")
    return None if low is None or high is None else (low, high)


# ---- The tables as text ----------------------------------------------------------------------

HEADER = ("model", "score", "seeds", "seconds", "scored on")
TEXT_WIDTH = 80


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as texts, in the order of `HEADER`."""
    return (
        f"{row.name} (published)" if row.is_published else row.name,
        f"{row.score:.4f}" + ("" if row.deviation is None else f" ± {row.deviation:.4f}"),
        "" if row.is_published else f"{row.n_seeds}",
        "" if row.seconds is None else f"{row.seconds:.1f}",
        row.day,
    )


def as_text(tables: Sequence[Table]) -> str:
    """Return the current tables as aligned text, 80 columns wide; longer names continue below."""
    current = [table for table in tables if table.is_current]
    all_cells = [HEADER, *(cells(row) for table in current for row in table.rows)]
    widths = [max(len(text) for text in column) for column in zip(*all_cells, strict=True)]
    widths[0] = min(widths[0], TEXT_WIDTH - 2 - sum(width + 2 for width in widths[1:]))
    lines = []
    for table in current:
        title = f"{table.title}: {table.kind}, {table.answers}"
        lines += textwrap.wrap(title, TEXT_WIDTH, subsequent_indent="  ")
        for name, score, *numbers, day in (HEADER, *map(cells, table.rows)):
            first, *more = textwrap.wrap(name, widths[0]) or [""]
            right = [text.rjust(width) for text, width in zip(numbers, widths[2:4], strict=True)]
            line = [first.ljust(widths[0]), score.ljust(widths[1]), *right, day]
            lines += [f"  {'  '.join(line)}".rstrip(), *(f"    {text}" for text in more)]
        if table.random_range:
            text = f"  ({describe_random(table.random_range)})"
            lines += textwrap.wrap(text, TEXT_WIDTH, subsequent_indent="  ")
        lines.append("")
    n_earlier = sum(
        len(table.former) + (0 if table.is_current else len(table.rows)) for table in tables
    )
    if n_earlier:
        lines.append(f"{n_earlier} scores of earlier code or on earlier answers: see the page.")
    return "\n".join(lines)


def describe_random(reached: tuple[float, float]) -> str:
    """Describe what random rankings reach."""
    return (
        f"random rankings reach {reached[0]:.2f} on average with their best expert; "
        f"at most 1 in 20 exceeds {reached[1]:.2f}"
    )
