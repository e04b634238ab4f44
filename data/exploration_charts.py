"""The charts of the page about the data, and the few of them that are pictures by themselves."""

from collections.abc import Sequence
from html import escape

from common import charts
from common.charts import Dot, Mark, Panel, compact

import numpy as np
from exploration import (
    FEW_ANSWERS,
    N_TENTHS,
    Distractors,
    Histogram,
    Options,
    Tally,
    share_histogram,
)
from exploration_circumstances import CONFIDENCES, Times
from exploration_reading import Part

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# An hour of the week is shaded by its share of right answers from so many answers on.
ENOUGH_FOR_A_SHADE = 100
N_MAIN_SUBJECTS = 8
# What the shades of shares of right answers span at least.
LEAST_RANGE = 0.1
# With more months than this, only years are named below them.
_MANY_MONTHS = 30


def figure(title: str, chart: str, caption: str) -> str:
    """Return a chart with its title and a sentence on how to read it, as HTML."""
    return (
        f"<figure><h4>{escape(title)}</h4>{chart}<figcaption>{escape(caption)}</figcaption>"
        "</figure>"
    )


def in_grid(*figures: str) -> str:
    """Return charts side by side where there is room, as HTML."""
    return f'<div class="charts">{"".join(figures)}</div>'


def chart_label(part: Part, what: str) -> str:
    """Return what a chart shows, for screen readers; unique on the page."""
    return f"Tasks {part.files.tasks}: {what}"


def histogram_chart(found: Histogram, label: str, things: str, axis: str) -> str:
    """Draw how many things have how large a number.

    Parameters
    ----------
    found
        The numbers.
    label
        As in `common.charts`.
    things, axis
        What is counted, and by which number.
    """
    edges = found.edges
    if found.is_log:
        numbers = _round_numbers(found, (10, 20, 50))
        if len(numbers) < 4:
            numbers = _round_numbers(found, (10, 15, *range(20, 100, 10)))
        ticks = [(_place(found, number), f"{number:,.0f}") for number in numbers]
    else:
        ticks = [(place + 0.5, f"{edge:.0f}") for place, edge in enumerate(edges[:-1])]
    tooltips = [
        f"{low:,.0f}{f' to {high - 1:,.0f}' if high > low + 1 else ''}: {count:,} {things}"
        for low, high, count in zip(edges[:-1], edges[1:], found.counts, strict=True)
    ]
    middle = _place(found, found.median) + 0.5 * (not found.is_log)
    return charts.column_chart(
        found.counts.tolist(),
        tooltips,
        ticks,
        label=label,
        axis=axis,
        unit=things,
        mark=Mark(middle, f"median {found.median:,.0f}"),
    )


def _round_numbers(found: Histogram, digits: Sequence[int]) -> list[float]:
    """Return the whole numbers with some leading digits that lie on the scale, increasing."""
    numbers = [digit * 10.0**power for power in range(-1, 8) for digit in digits]
    low, high = found.edges[[0, -1]]
    return [number for number in numbers if low <= number <= high and number.is_integer()]


def _place(found: Histogram, value: float) -> float:
    """Return where a value lies on a scale on which every bin is as wide as the others."""
    edges = np.log(found.edges) if found.is_log else found.edges
    return float(np.interp(np.log(value) if found.is_log else value, edges, np.arange(len(edges))))


def distribution_chart(found: Histogram, label: str, things: str, axis: str) -> str:
    """Draw how many things have which share; parameters as in `histogram_chart`."""
    edges = found.edges
    tooltips = [
        f"{low:.0%} to {high:.0%}: {count:,} {things}"
        for low, high, count in zip(edges[:-1], edges[1:], found.counts, strict=True)
    ]
    ticks = [(place, f"{edge:.0%}") for place, edge in enumerate(edges) if place % 4 == 0]
    return charts.column_chart(
        found.counts.tolist(),
        tooltips,
        [(float(place), text) for place, text in ticks],
        label=label,
        axis=axis,
        unit=things,
        mark=Mark(_place(found, found.median), f"median {found.median:.0%}"),
    )


def filled_chart(part: Part, label: str) -> str:
    """Draw which share of the pairs of students and questions is answered."""
    values = part.filled
    names = [f"{10 * n}–{10 * n + 10}%" for n in range(N_TENTHS)]
    tooltips = [
        [
            f"students {names[row]}, questions {names[column]}: {values[row, column]:.2%} answered"
            for column in range(N_TENTHS)
        ]
        for row in range(N_TENTHS)
    ]
    ends = ["most", *[""] * (N_TENTHS - 2), "fewest"]
    return charts.heat_map(
        values,
        ends,
        ends,
        tooltips,
        label=label,
        axis="questions, those with most answers first",
        side="students, those with most answers first",
        key=lambda share: f"{100 * share:.3g}% answered",
    )


def options_chart(options: Options, label: str) -> str:
    """Draw how often each option is chosen, is right, and is found where it is right."""
    panels = [
        Panel("chosen", options.chosen.tolist(), True),
        Panel("is right", options.right.tolist(), False),
        Panel("chosen where right", np.nan_to_num(options.found).tolist(), False),
    ]
    return charts.bar_panels(panels, ["1", "2", "3", "4"], label=label, axis="option")


def attraction_chart(found: Distractors, label: str) -> str:
    """Draw how the wrong answers of a question fall on its three distractors."""
    rows = [
        Dot(f"{name} attractive", float(share))
        for name, share in zip(("most", "middle", "least"), found.attraction, strict=True)
    ]
    return charts.dot_chart(
        rows, label=label, digits=2, limits=(0, 1), chance=1 / 3, axis="share of the wrong answers"
    )


def months_chart(times: Times, label: str) -> str:
    """Draw the answers of each month."""
    names, ticks = _name_months(times)
    tooltips = [
        f"{name}: {n:,} answers" + (f", {share:.0%} right" if n else "")
        for name, n, share in zip(names, times.months.n, times.months.share, strict=True)
    ]
    places = [(place + 0.5, tick) for place, tick in enumerate(ticks) if tick]
    return charts.column_chart(
        times.months.n.tolist(), tooltips, places, label=label, axis="month", unit="answers"
    )


def _name_months(times: Times) -> tuple[list[str], list[str]]:
    """Return the name of every month, and a short one for some, nothing for the others."""
    months = times.first_month + np.arange(len(times.months.n))
    names, ticks = [], []
    for month in months:
        year, number = str(month).split("-")
        name = MONTHS[int(number) - 1]
        names.append(f"{name} {year}")
        if len(months) > _MANY_MONTHS:
            ticks.append(year if number == "01" else "")
        else:
            is_named = number in ("01", "05", "09") or len(months) <= 6
            ticks.append(f"{name} {year[2:]}" if is_named else "")
    return names, ticks


def main_subjects_chart(part: Part, label: str) -> str:
    """Draw which share of each month's answers is about which main subject."""
    assert part.times is not None
    assert part.subjects is not None
    assert part.main_by_month is not None
    n = part.main_by_month
    shown = np.argsort(-n.sum(axis=1), kind="stable")[:N_MAIN_SUBJECTS]
    total = n.sum(axis=0)
    share = np.full(n.shape, np.nan)
    np.divide(n, total, out=share, where=total >= ENOUGH_FOR_A_SHADE)
    names = [part.subjects.tree.names[place] for place in part.subjects.main[shown]]
    months, ticks = _name_months(part.times)
    tooltips = [
        [
            f"{name}, {month}: {count:,} answers of {of:,}"
            for month, count, of in zip(months, n[row], total, strict=True)
        ]
        for name, row in zip(names, shown, strict=True)
    ]
    return charts.heat_map(
        share[shown],
        names,
        ticks,
        tooltips,
        label=label,
        axis="month",
        key=lambda value: f"{value:.0%} of the month",
    )


def hours_chart(hours: Tally, label: str, *, right: bool) -> str:
    """Draw the answers of each hour of the week, or the share of them that is right."""
    n, share = hours.n, hours.share
    limits: tuple[float, float] | None = None
    tooltips = [
        [
            f"{WEEKDAYS[day]} {hour}:00 to {hour}:59: {n[day, hour]:,} answers"
            + (f", {share[day, hour]:.0%} right" if n[day, hour] else "")
            for hour in range(24)
        ]
        for day in range(7)
    ]
    if right:
        values = np.where(n >= ENOUGH_FOR_A_SHADE, share, np.nan)
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        # Small differences are to look small.
        more = max(LEAST_RANGE - (high - low), 0) / 2
        limits = max(low - more, 0), min(high + more, 1)
    else:
        values = np.where(n > 0, n.astype(np.float64), np.nan)
    return charts.heat_map(
        values,
        WEEKDAYS,
        [f"{hour}:00" if hour % 6 == 0 else "" for hour in range(24)],
        tooltips,
        label=label,
        axis="hour",
        key=(lambda value: f"{value:.0%} right") if right else (lambda n: f"{compact(n)} answers"),
        limits=limits,
    )


def confidence_chart(confidence: Tally, label: str) -> str:
    """Draw the share of right answers for each stated confidence, beside the confidence itself."""
    rows = [
        Dot(f"{level}% sure ({compact(n)})", float(share), mark=level / 100)
        for level, n, share in zip(CONFIDENCES, confidence.n, confidence.share, strict=True)
        if n >= FEW_ANSWERS
    ]
    return charts.dot_chart(
        rows, label=label, digits=2, limits=(0, 1), axis="share of right answers"
    )


def born_chart(first_year: int, n_students: np.ndarray, answers: Tally, label: str) -> str:
    """Draw how many students were born in which year."""
    years = [first_year + place for place in range(len(n_students))]
    tooltips = [
        f"born in {year}: {n:,} students" + (f", {share:.0%} right" if total else "")
        for year, n, total, share in zip(years, n_students, answers.n, answers.share, strict=True)
    ]
    ticks = [(place + 0.5, str(year)) for place, year in enumerate(years)]
    return charts.column_chart(
        n_students.tolist(), tooltips, ticks, label=label, axis="year of birth", unit="students"
    )


def draw_pictures(part: Part) -> dict[str, str]:
    """Return a few charts of simulated answers as SVG files, by name."""
    assert part.files.simulated
    share = part.of_question.share[part.of_question.n >= FEW_ANSWERS]
    drawn = {
        "difficulty.svg": (
            "how difficult the questions are",
            distribution_chart(share_histogram(share), "", "questions", "share of right answers"),
        )
    }
    if part.confidence is not None:
        drawn["confidence.svg"] = (
            "share right (dot) for each confidence stated (diamond)",
            confidence_chart(part.confidence, ""),
        )
    return {
        name: charts.picture(chart, f"Simulated data: {title}")
        for name, (title, chart) in drawn.items()
    }
