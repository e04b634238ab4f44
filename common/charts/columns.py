"""Columns side by side: histograms, values of named things, panels of bars; a table of shades."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from common.charts.style import (
    ACCENT,
    GAP,
    GREY,
    LINE,
    LINE_HEIGHT,
    PAD,
    SMALL,
    TEXT,
    TICK_HEIGHT,
    TITLE_HEIGHT,
    WIDTH,
    Axes,
    Drawing,
    Point,
    Tick,
    compact,
    stroke,
    text_width,
    thin,
    ticks,
    upright_axes,
    wrap,
)

import numpy as np
import numpy.typing as npt


class Mark(NamedTuple):
    """A dashed line to compare with: its place in columns from the left edge, and what it is."""

    place: float
    text: str


def column_chart(
    heights: Sequence[float],
    tooltips: Sequence[str],
    names: Sequence[Tick],
    *,
    label: str,
    axis: str,
    unit: str,
    mark: Mark | None = None,
    percent: bool = False,
) -> str:
    """Draw columns side by side from 0 up; heights count units, or are shares if percent.

    The names below the axis have places in columns from the left edge of the first one: 0.5 is its
    middle. Those that have no room are left out.
    """
    drawing = Drawing(175)
    # The text of a mark stands above the columns.
    highest = max(heights) * (1.2 if mark else 1.04) or 1.0
    scale = [
        (height, f"{height:.0%}" if percent else compact(height))
        for height, _ in ticks(0, highest, 4, integer=not percent)
    ]
    # The last name may stand below the end of the scale.
    beside = sum(text_width(name, SMALL) / 2 for at, name in names if at == len(heights))
    limits = (0, len(heights)), (0, highest)
    axes = upright_axes(drawing, *limits, scale, title=unit, axis=axis, beside=beside)
    for place, (height, tooltip) in enumerate(zip(heights, tooltips, strict=True)):
        ends = axes.x(place + 0.07), axes.x(place + 0.93)
        drawing.box(ends, (axes.y(height), axes.bottom), f"fill: {ACCENT}", tooltip)
    if mark:
        axes.upright(mark.place, stroke(TEXT, 0.9, "; stroke-dasharray: 2.7,2.7"))
        gap, anchor = (-GAP, "end") if mark.place > len(heights) / 2 else (GAP, "start")
        text_at = axes.x(mark.place) + gap, axes.top + LINE_HEIGHT / 2
        drawing.text(*text_at, mark.text, anchor=anchor)
    axes.name_x(thin(names, (axes.right - axes.left) / len(heights)), axis)
    return drawing.svg(label)


class Panel(NamedTuple):
    """One small bar chart of `bar_panels`, with shares from 0 to 1.

    `accent` draws it in the page's accent colour; `faint` says of each bar whether it rests on too
    little and is greyed out.
    """

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
    for number, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        colour = ACCENT if panel.accent else GREY
        for place, (name, share) in enumerate(zip(bar_names, panel.shares, strict=True)):
            middle, style = number * pitch + place, f"fill: {colour}"
            if panel.faint and panel.faint[place]:
                style = f"fill: {LINE}; stroke: {GREY}; stroke-width: 0.8; stroke-dasharray: 2,2"
            ends = axes.x(middle - 0.4), axes.x(middle + 0.4)
            tooltip = f"{panel.title}, {name}: {share:.0%}"
            drawing.box(ends, (axes.y(share), axes.bottom), style, tooltip)
        # Titles of fewer lines begin at the same height as the others.
        height = axes.top - 6 - LINE_HEIGHT * (n_lines - len(title) / 2)
        drawing.text(axes.x(number * pitch - 0.4), height, title, bold=panel.accent)
    axes.name_x(
        [(n * pitch + k, name) for n in range(len(panels)) for k, name in enumerate(bar_names)],
        axis,
    )
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
    """Draw a table of shades, the darker, the more, with a key below.

    The values have the shape (rows, columns); a place without one, NaN, is grey. Names of columns
    that are empty, or have no room, are left out. `axis` and `side` say what columns and rows are,
    `key` writes a value for the key, whose ends are the limits: by default 0 and the highest.
    """
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
        if np.isnan(value):
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

    # The key: some shades between its two ends.
    start, half = 0.4 * WIDTH, _KEY_HEIGHT / 2
    end, middle = start + _KEY_STEPS * _KEY_WIDTH, drawing.height - PAD - half
    for step, value in enumerate(np.linspace(low, high, _KEY_STEPS).tolist()):
        at = start + step * _KEY_WIDTH
        drawing.box((at, at + _KEY_WIDTH - 1), (middle - half, middle + half), shade(value))
    drawing.text(start - GAP, middle, key(low), anchor="end", size=SMALL)
    drawing.text(end + GAP, middle, key(high), size=SMALL)
    return drawing.svg(label)
