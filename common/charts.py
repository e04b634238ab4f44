"""The charts of the pages: SVG in a page's colours, light or dark, labelled for screen readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import isnan, nan
from typing import NamedTuple

from common.drawing import (
    ACCENT,
    DASHED,
    GAP,
    GREY,
    LINE,
    LINE_HEIGHT,
    MARKS,
    PAD,
    ROW_HEIGHT,
    SMALL,
    TEXT,
    TICK_HEIGHT,
    TITLE_HEIGHT,
    WIDTH,
    Axes,
    Drawing,
    Point,
    Tick,
    limits_of,
    mark_path,
    stroke,
    text_width,
    thin,
    ticks,
    upright_axes,
    wrap,
)
from common.lazy import pd

import numpy as np
import numpy.typing as npt


def compact(number: float) -> str:
    """Write a number in few characters: 950, 1.5k, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        # What is rounded to the next unit is written in that.
        if abs(number) >= 0.9995 * size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


# ---- Values on one scale, a row for each ---------------------------------------------------------

# Between names and scale, scale and numbers, and the two scales of a chart with bars.
_BEFORE, _BESIDE, _BETWEEN = 7.0, 9.0, 10.0
_RADIUS = 3.25
# An interval of a row with a smaller share does not widen the scale, but is cut off.
_SHARE_THAT_COUNTS = 0.02


class Dot(NamedTuple):
    """A row of `dot_chart`, NaN: none; interval a line, mark a diamond, band grey, share a bar."""

    label: str
    value: float
    interval: Point = (nan, nan)
    mark: float = nan
    band: Point = (nan, nan)
    accent: bool = True
    share: float = nan
    n_answers: float = nan


def dot_chart(
    dots: Sequence[Dot],
    *,
    label: str,
    digits: int,
    limits: Point | None = None,
    chance: float = nan,
    axis: str = "",
) -> str:
    """Draw values, a row each, on a scale with limits, else fitted; chance is a dashed line."""
    has_bars = not all(isnan(dot.share) for dot in dots)
    names = [wrap(dot.label, (0.36 if has_bars else 0.4) * WIDTH) for dot in dots]
    heights = [ROW_HEIGHT + LINE_HEIGHT * (len(name) - 1) for name in names]
    bottom = PAD + sum(heights)
    drawing = Drawing(bottom + TICK_HEIGHT + PAD + (LINE_HEIGHT if axis else 0))
    if limits is None:
        values = [chance, *(number for dot in dots for number in (dot.value, dot.mark))]
        matter = [dot for dot in dots if not dot.share < _SHARE_THAT_COUNTS]
        values += [end for dot in matter for ends in (dot.interval, dot.band) for end in ends]
        limits = limits_of([value for value in values if not isnan(value)] or [0, 1], 0.1)

    def write(number: float) -> str:
        return "–" if isnan(number) else f"{number:.{digits}f}".replace("-", "−")

    numbers = [write(dot.mark if isnan(dot.value) else dot.value) for dot in dots]
    shares = ["<1%" if 0 < dot.share < 0.005 else f"{dot.share:.0%}" for dot in dots]
    beside_dots, beside_bars = (
        _BESIDE + max(map(text_width, texts)) for texts in (numbers, shares)
    )
    right_of_names = PAD + max(text_width(line) for name in names for line in name)
    left, right = right_of_names + _BEFORE, WIDTH - PAD - beside_dots
    bars = None
    if has_bars:
        # Dots get three quarters of the room, bars one.
        room = right - left - _BETWEEN - beside_bars
        right = left + 0.75 * room
        start, most = right + beside_dots + _BETWEEN, max(dot.share for dot in dots) or 1
        bars = Axes(drawing, (0, most), (0, 1), start, PAD, start + 0.25 * room, bottom)
        bars.name_x([], "answers")
    axes = Axes(drawing, limits, (0, 1), left, PAD, right, bottom)
    axes.name_x(thin(ticks(*limits, 4), (right - left) / (limits[1] - limits[0])), axis, grid=True)
    if not isnan(chance):
        axes.upright(chance, DASHED)
    ends_of_rows = accumulate(heights, initial=PAD)
    for dot, name, number, share, height in zip(dots, names, numbers, shares, heights, strict=True):
        y = next(ends_of_rows) + height / 2
        drawing.text(right_of_names, y, name, anchor="end")
        colour = ACCENT if dot.accent else TEXT
        if not isnan(dot.band[0]):
            low, high = map(axes.x, dot.band)
            drawing.box((low, high), (y - height / 2, y + height / 2), f"fill: {LINE}")
        if not isnan(dot.interval[0]):
            ends = [(axes.x(min(max(end, limits[0]), limits[1])), y) for end in dot.interval]
            drawing.line(ends, stroke(colour, 1.6, "; stroke-linecap: round"))
        if not isnan(dot.mark):
            diamond = mark_path("D", axes.x(dot.mark), y, _RADIUS)
            drawing.path(diamond, stroke(TEXT, 1), f"{dot.label}: {write(dot.mark)}")
        if not isnan(dot.value):
            circle = mark_path("o", axes.x(dot.value), y, _RADIUS)
            drawing.path(circle, f"fill: {colour}", f"{dot.label}: {number}")
        drawing.text(axes.right + _BESIDE, y, number)
        if bars:
            tooltip = f"{dot.label}: {dot.n_answers:,.0f} answers"
            drawing.box((bars.left, bars.x(dot.share)), (y - 7, y + 7), f"fill: {GREY}", tooltip)
            drawing.text(bars.right + _BESIDE, y, share)
    return drawing.svg(label)


def share_chart(
    groups: pd.DataFrame, *, label: str, limits: Point | None = None, axis: str = "accuracy"
) -> str:
    """Draw for every group a share, by default its accuracy, NaN where it rests on too little."""
    columns = ["accuracy", "low", "high", "majority", "share", "n_answers"]
    rows = groups.reindex(columns=columns).astype(float).itertuples(name=None)
    dots = [
        Dot(f"{name}", accuracy, (low, high), majority, share=share, n_answers=n_answers)
        for name, accuracy, low, high, majority, share, n_answers in rows
    ]
    return dot_chart(dots, label=label, digits=3, limits=limits, axis=axis)


# ---- Columns side by side, and a table of shades -------------------------------------------------


def column_chart(
    heights: Sequence[float],
    tooltips: Sequence[str],
    names: Sequence[Tick],
    *,
    label: str,
    axis: str,
    unit: str,
    mark: Tick | None = None,
) -> str:
    """Draw columns; names and the mark have places in columns from the left edge of the first."""
    drawing = Drawing(175)
    # The text of a mark stands above the columns.
    highest = max(heights) * (1.2 if mark else 1.04) or 1.0
    scale = [(height, compact(height)) for height, _ in ticks(0, highest, 4, integer=True)]
    # The last name may stand below the end of the scale.
    beside = sum(text_width(name, SMALL) / 2 for at, name in names if at == len(heights))
    limits = (0, len(heights)), (0, highest)
    axes = upright_axes(drawing, *limits, scale, title=unit, axis=axis, beside=beside)
    for place, (height, tooltip) in enumerate(zip(heights, tooltips, strict=True)):
        axes.bar((place + 0.07, place + 0.93), height, f"fill: {ACCENT}", tooltip)
    if mark:
        at, text = mark
        axes.upright(at, stroke(TEXT, 0.9, "; stroke-dasharray: 2.7,2.7"))
        gap, anchor = (-GAP, "end") if at > len(heights) / 2 else (GAP, "start")
        drawing.text(axes.x(at) + gap, axes.top + LINE_HEIGHT / 2, text, anchor=anchor)
    axes.name_x(thin(names, (axes.right - axes.left) / len(heights)), axis)
    return drawing.svg(label)


class Panel(NamedTuple):
    """A small bar chart of `bar_panels`, shares from 0 to 1; faint bars rest on too little."""

    title: str
    shares: Sequence[float]
    accent: bool
    faint: Sequence[bool] = ()


def bar_panels(panels: Sequence[Panel], bar_names: Sequence[str], *, label: str, axis: str) -> str:
    """Draw small bar charts side by side on one scale, with the same names in each."""
    width = (WIDTH - 40) / len(panels) - 6
    titles = [wrap(panel.title, width, bold=True) for panel in panels]
    n_lines = max(map(len, titles))
    above = LINE_HEIGHT * n_lines
    drawing = Drawing(150 + above)
    # The scale ends at the first fifth that no bar exceeds.
    highest = max(share for panel in panels for share in panel.shares)
    n_fifths = next((n for n in range(1, 5) if highest <= n / 5), 5)
    scale = [(n / 5, f"{n * 20}%") for n in range(n_fifths + 1)]
    # Panels have a bar's room between them.
    pitch = len(bar_names) + 1
    limits = (-0.6, len(panels) * pitch - 1.4), (0, n_fifths / 5)
    axes = upright_axes(drawing, *limits, scale, axis=axis, above=above)
    named = []
    for number, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        for place, (name, share) in enumerate(zip(bar_names, panel.shares, strict=True)):
            middle = number * pitch + place
            named.append((middle, name))
            style = f"fill: {ACCENT if panel.accent else GREY}"
            if panel.faint and panel.faint[place]:
                style = f"fill: {LINE}; stroke: {GREY}; stroke-width: 0.8; stroke-dasharray: 2,2"
            tooltip = f"{panel.title}, {name}: {share:.0%}"
            axes.bar((middle - 0.4, middle + 0.4), share, style, tooltip)
        # Titles of fewer lines begin at the same height as the others.
        height = axes.top - 6 - LINE_HEIGHT * (n_lines - len(title) / 2)
        drawing.text(axes.x(number * pitch - 0.4), height, title, bold=panel.accent)
    axes.name_x(named, axis)
    return drawing.svg(label)


# Opacity of the lowest value, so that it differs from a place without one; of such a place.
_FAINTEST, _EMPTY = 0.1, 0.35
_KEY_STEPS, _KEY_WIDTH, _KEY_HEIGHT = 6, 11.0, 10.0


def heat_map(
    values: npt.NDArray[np.floating],
    row_names: Sequence[str],
    column_names: Sequence[str],
    tooltips: Sequence[Sequence[str]],
    *,
    label: str,
    axis: str,
    side: str = "",
    key: Callable[[float], str],
    limits: Point | None = None,
) -> str:
    """Draw values, shape (rows, columns), the darker, the more, NaN grey; `key` writes limits."""
    n_rows, n_columns = values.shape
    low, high = limits or (0.0, float(np.nanmax(values, initial=0)))
    names = [wrap(name, 0.3 * WIDTH) for name in row_names]
    top, row_height = PAD + TITLE_HEIGHT * bool(side), max(17.0, 4 + 13.5 * max(map(len, names)))
    left = PAD + GAP + max(text_width(line, SMALL) for name in names for line in name)
    bottom = top + n_rows * row_height
    drawing = Drawing(bottom + TICK_HEIGHT + LINE_HEIGHT + 2 * GAP + _KEY_HEIGHT + PAD)
    limits_shown = (0, n_columns), (n_rows, 0)
    axes = Axes(drawing, *limits_shown, left=left, top=top, right=WIDTH - PAD, bottom=bottom)

    def shade(value: float) -> str:
        if isnan(value):
            return f"fill: {LINE}; opacity: {_EMPTY}"
        share = (value - low) / (high - low) if high > low else 1.0
        opacity = round(_FAINTEST + (1 - _FAINTEST) * share, 3)
        return f"fill: {ACCENT}" + (f"; opacity: {opacity}" if opacity < 1 else "")

    for row, name in enumerate(names):
        y = axes.y(row + 0.05), axes.y(row + 0.95)
        if any(name):
            drawing.note(left - GAP, sum(y) / 2, name, "end")
        for column, tooltip in enumerate(tooltips[row]):
            x = axes.x(column + 0.05), axes.x(column + 0.95)
            drawing.box(x, y, shade(float(values[row, column])), tooltip)
    axes.title(side)
    named = [(place + 0.5, name) for place, name in enumerate(column_names) if name]
    axes.name_x(thin(named, (axes.right - axes.left) / n_columns), axis)

    start, half = 0.4 * WIDTH, _KEY_HEIGHT / 2
    end, middle = start + _KEY_STEPS * _KEY_WIDTH, drawing.height - PAD - half
    for step, value in enumerate(np.linspace(low, high, _KEY_STEPS).tolist()):
        at = start + step * _KEY_WIDTH
        drawing.box((at, at + _KEY_WIDTH - 1), (middle - half, middle + half), shade(value))
    drawing.text(start - GAP, middle, key(low), anchor="end", size=SMALL)
    drawing.text(end + GAP, middle, key(high), size=SMALL)
    return drawing.svg(label)


# ---- Lines and points ----------------------------------------------------------------------------

# Told apart by those who see no red or green too (Okabe and Ito 2008), mixed with the text's colour
# for light and dark pages; marks tell curves apart where colours come again.
_HUES = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#808080")
_COLOURS = (ACCENT, *(f"color-mix(in srgb, currentColor 12%, {hue})" for hue in _HUES))
# With more points, the marks would hide the curve.
_MAX_MARKED = 25


class Curve(NamedTuple):
    """A curve of `curve_chart`; the number, from 0, of its subject chooses colour and mark."""

    name: str
    steps: Sequence[float]
    values: Sequence[float]
    number: int = 0
    is_dashed: bool = False


def curve_chart(curves: Sequence[Curve], *, label: str, axis: str, value_axis: str = "") -> str:
    """Draw curves on one scale, which does not start at 0, their names below, in their order."""
    names = [wrap(curve.name, WIDTH - 60) for curve in curves]
    below = sum(LINE_HEIGHT * len(name) + 5 for name in names)
    drawing = Drawing(240 + below)
    x_limits = limits_of([step for curve in curves for step in curve.steps], 0)
    y_limits = limits_of([value for curve in curves for value in curve.values], 0.05)
    room = {"beside": text_width("0"), "below": below}
    axes = upright_axes(
        drawing, x_limits, y_limits, ticks(*y_limits, 6), title=value_axis, axis=axis, **room
    )
    axes.name_x(ticks(*x_limits, 8, integer=True), axis)

    def draw(curve: Curve, points: list[Point], marked: list[Point], tooltip: str = "") -> None:
        turn, hue = divmod(curve.number, len(_COLOURS))
        dashes = "; stroke-dasharray: 5,2.2" if curve.is_dashed else ""
        drawing.line(points, stroke(_COLOURS[hue], 1.4 if curve.number else 2.2, dashes), tooltip)
        if len(curve.values) <= _MAX_MARKED:
            mark = MARKS[(hue + turn) % len(MARKS)]
            marks = " ".join(mark_path(mark, *point, 2.75) for point in marked)
            drawing.path(marks, f"fill: {_COLOURS[hue]}")

    # The first curves lie above the others.
    for curve in sorted(curves, key=lambda curve: -curve.number):
        steps, values = map(axes.x, curve.steps), map(axes.y, curve.values)
        points = [*zip(steps, values, strict=True)]
        draw(curve, points, points, curve.name)
    top = drawing.height - PAD - below + 5
    for curve, name in zip(curves, names, strict=True):
        middle = top + LINE_HEIGHT / 2
        draw(curve, [(PAD, middle), (PAD + 26, middle)], [(PAD + 13, middle)])
        drawing.text(PAD + 34, top + LINE_HEIGHT * len(name) / 2, name)
        top += LINE_HEIGHT * len(name) + 5
    return drawing.svg(label)
