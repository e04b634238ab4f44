"""The charts of the page about the data, each to be drawn once it has a label."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from common import charts
from common.charts import Mark

import numpy as np
import pandas as pd

Chart = Callable[..., str]
# A title, a chart, and a sentence on how to read it.
Figure = tuple[str, Chart, str]

# With more different numbers than this, the bins of a histogram become wider and wider.
MOST_UNIT_BINS, N_BINS = 30, 24
# With more months than this, only years are named below them.
MANY_MONTHS = 30
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def numbers_figure(title: str, values: pd.Series, things: str, axis: str, sentence: str) -> Figure:
    """Show how many things have which whole number from 1 on; `axis` says what the numbers are."""
    edges = bin_edges(values)
    counts, _ = np.histogram(values, edges)
    is_wide = len(counts) < edges[-1] - edges[0]
    scale: Callable[[Any], Any] = np.log if is_wide else np.asarray

    def place(value: float) -> float:
        """Return where a value lies if every bin is as wide as the others."""
        return float(np.interp(scale(value), scale(edges), np.arange(len(edges))))

    # The name of a single number stands below the middle of its column.
    middle = 0 if is_wide else 0.5
    numbers = round_numbers(edges) if is_wide else edges[:-1].tolist()
    median = values.median()
    chart = partial(
        charts.column_chart,
        counts.tolist(),
        [
            f"{low:,}{f' to {high - 1:,}' if high > low + 1 else ''}: {count:,} {things}"
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ],
        [(place(number) + middle, f"{number:,}") for number in numbers],
        axis=axis,
        unit=things,
        mark=Mark(place(median) + middle, f"median {median:,.0f}"),
    )
    note = " Logarithmic scale." if is_wide else ""
    return title, chart, sentence.format(median=f"{median:,.0f}") + note


def bin_edges(values: pd.Series) -> np.ndarray:
    """Return the edges of bins for whole numbers from 1 on: one each, or wider and wider."""
    low, high = int(values.min()), int(values.max()) + 1
    if high - low <= MOST_UNIT_BINS:
        return np.arange(low, high + 1)
    # Each at least as wide as the one before: bins of one and of two numbers in turn would draw
    # teeth where there are none.
    growth = (high / low) ** (1 / N_BINS) - 1
    edges, width = [low], 1
    while edges[-1] < high:
        width = max(width, round(edges[-1] * growth))
        edges.append(edges[-1] + width)
    return np.array(edges)


def round_numbers(edges: np.ndarray) -> list[int]:
    """Return whole numbers to be named on a logarithmic scale, increasing."""
    for digits in ((10, 20, 50), (10, 15, *range(20, 100, 10))):
        tenths = [digit * 10**power for power in range(8) for digit in digits]
        found = [n // 10 for n in tenths if n % 10 == 0 and edges[0] <= n / 10 <= edges[-1]]
        if len(found) >= 4:
            break
    return found


def shares_chart(shares: pd.Series, things: str, axis: str) -> Chart:
    """Draw how many things have which share, in twentieths."""
    # Shares such as 0.15 belong to the bin that starts there, whatever their last binary digit.
    place = np.floor(shares * 20 + 1e-9).clip(upper=19).astype(int)
    counts = np.bincount(place, minlength=20).tolist()
    median = shares.median()
    return partial(
        charts.column_chart,
        counts,
        [f"{5 * at}% to {5 * at + 5}%: {n:,} {things}" for at, n in enumerate(counts)],
        [(float(at), f"{5 * at}%") for at in range(0, 21, 4)],
        axis=axis,
        unit=things,
        mark=Mark(20 * median, f"median {median:.0%}"),
    )


def filled_chart(answers: pd.DataFrame, n_of_student: pd.Series, n_of_question: pd.Series) -> Chart:
    """Draw which share of the pairs of students and questions is answered, by tenths of both."""
    student, question = (
        ((n.rank(method="first", ascending=False) - 1) * 10 // len(n)).astype("int8")
        for n in (n_of_student, n_of_question)
    )
    cells = [answers["UserId"].map(student), answers["QuestionId"].map(question)]
    tenths = range(10)
    n = answers.groupby(cells).size().unstack(fill_value=0)
    n = n.reindex(index=tenths, columns=tenths, fill_value=0)
    n_pairs = np.outer(*(np.bincount(each, minlength=10) for each in (student, question)))
    share = n.div(n_pairs).to_numpy()
    names = [f"{10 * n}–{10 * n + 10}%" for n in tenths]
    tooltips = [
        [
            f"students {names[row]}, questions {names[column]}: {share[row, column]:.2%} answered"
            for column in tenths
        ]
        for row in tenths
    ]
    ends = ["most", *[""] * 8, "fewest"]
    return partial(
        charts.heat_map,
        share,
        ends,
        ends,
        tooltips,
        axis="questions, those with most answers first",
        side="students, those with most answers first",
        key=lambda value: f"{100 * value:.3g}% answered",
    )


def week_chart(of_week: pd.DataFrame, values: pd.Series, **options: Any) -> Chart:
    """Draw a value for each hour of the week."""
    names = [f"{day} {hour}:00 to {hour}:59" for day in WEEKDAYS for hour in range(24)]
    tooltips = say_rates(names, of_week)
    return partial(
        charts.heat_map,
        values.to_numpy().reshape(7, 24),
        WEEKDAYS,
        [f"{hour}:00" if hour % 6 == 0 else "" for hour in range(24)],
        [tooltips[24 * day : 24 * day + 24] for day in range(7)],
        axis="hour",
        **options,
    )


def say_rates(
    names: Iterable[str], rated: pd.DataFrame, n: str = "n", of: str = "answers"
) -> list[str]:
    """Say for each name how many there are of something, and the share of right answers."""
    return [
        f"{name}: {n:,} {of}" + (f", {share:.0%} right" if n else "")
        for name, n, share in zip(names, rated[n], rated["share"], strict=True)
    ]


def month_ticks(months: pd.PeriodIndex) -> list[str]:
    """Return a short name for some months, nothing for the others."""
    if len(months) > MANY_MONTHS:
        return [str(month.year) if month.month == 1 else "" for month in months]
    named = range(1, 13) if len(months) <= 6 else (1, 5, 9)
    return [f"{month:%b %y}" if month.month in named else "" for month in months]
