"""Columns side by side: histograms, values of named things, panels of bars; a table of shades."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.charts.style import (
    ACCENT,
    GAP,
    GREY,
    LINE,
    LINE_HEIGHT,
    PAD,
    SMALL,
    SOFT,
    TEXT,
    TICK_HEIGHT,
    TITLE_HEIGHT,
    WIDTH,
    Axes,
    Drawing,
    Point,
    Tick,
    compact,
    text_width,
    thin,
    ticks,
    upright_axes,
    wrap,
)

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Mark:
    """A place on the scale of `column_chart` to compare with, drawn as a dashed line.

    Its place is in columns from the left edge of the first one, its text such as ``median 118``.
    """

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
    """Draw columns side by side from 0 up.

    Parameters
    ----------
    heights
        Height of each column, at least one, none negative.
    tooltips
        What browsers show beside the pointer on each column.
    names
        Names below the axis, each with its place in columns from the left edge of the first one:
        0.5 is its middle. Those that have no room are left out.
    label
        As in `dot_chart`.
    axis
        What the columns stand for.
    unit
        What the heights count.
    mark
        A line to compare with.
    percent
        Whether heights are shares, from 0 to 1.
    """
    drawing = Drawing(175)
    # The text of a mark stands above the columns.
    highest = max(heights) * (1.2 if mark else 1.04) or 1.0
    scale = [
        (height, f"{height:.0%}" if percent else compact(height))
        for height, _ in ticks(0, highest, 4, integer=not percent)
    ]
    # The last name may stand below the end of the scale.
    ends = [text_width(name, SMALL) / 2 for at, name in names if at == len(heights)]
    axes = upright_axes(
        drawing, (0, len(heights)), (0, highest), scale, title=unit, axis=axis, beside=sum(ends)
    )
    for place, (height, tooltip) in enumerate(zip(heights, tooltips, strict=True)):
        left, right = axes.x(place + 0.07), axes.x(place + 0.93)
        drawing.box(left, axes.y(height), right, axes.bottom, f"fill: {ACCENT}", tooltip)
    if mark:
        x = axes.x(mark.place)
        drawing.line([(x, axes.bottom), (x, axes.top)], TEXT, 0.9, dashes="2.7,2.7")
        is_right = mark.place > len(heights) / 2
        beside, anchor = (x - GAP, "end") if is_right else (x + GAP, "start")
        drawing.text(beside, axes.top + LINE_HEIGHT / 2, mark.text, anchor=anchor)
    axes.name_x(thin(names, (axes.right - axes.left) / len(heights)), axis)
    return drawing.svg(label)


@dataclass(frozen=True)
class Panel:
    """One small bar chart of `bar_panels`.

    Attributes
    ----------
    title
        Name of the panel.
    shares
        Height of every bar, from 0 to 1.
    accent
        Whether to draw it in the page's accent colour.
    faint
        For every bar whether to grey it out, since it rests on too little; empty for none.
    """

    title: str
    shares: Sequence[float]
    accent: bool
    faint: Sequence[bool] = ()


def bar_panels(panels: Sequence[Panel], bar_names: Sequence[str], *, label: str, axis: str) -> str:
    """Draw small bar charts side by side on one scale.

    Parameters
    ----------
    panels
        From left to right, each with as many bars as there are names.
    bar_names
        Names of the bars, the same in every panel.
    label
        As in `dot_chart`.
    axis
        What the bars are.
    """
    width = (WIDTH - 40) / len(panels) - 6
    titles = [wrap(panel.title, width, bold=True) for panel in panels]
    n_lines = max(map(len, titles))
    drawing = Drawing(150 + LINE_HEIGHT * n_lines)
    # The scale ends at the first fifth that no bar exceeds.
    highest = max(share for panel in panels for share in panel.shares)
    n_fifths = next((n for n in range(1, 5) if highest <= n / 5), 5)
    scale = [(n / 5, f"{n * 20}%") for n in range(n_fifths + 1)]
    # Panels have a bar's room between them.
    n_bars = len(bar_names)
    x_limits = (-0.6, len(panels) * (n_bars + 1) - 1.4)
    above = LINE_HEIGHT * n_lines
    axes = upright_axes(drawing, x_limits, (0, n_fifths / 5), scale, axis=axis, above=above)
    names = []
    for number, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        start = number * (n_bars + 1)
        for place, (name, share) in enumerate(zip(bar_names, panel.shares, strict=True), start):
            style = f"fill: {ACCENT if panel.accent else GREY}"
            if any(panel.faint[place - start : place - start + 1]):
                style = f"fill: {LINE}; stroke: {GREY}; stroke-width: 0.8; stroke-dasharray: 2,2"
            left, right, tooltip = place - 0.4, place + 0.4, f"{panel.title}, {name}: {share:.0%}"
            drawing.box(axes.x(left), axes.y(share), axes.x(right), axes.bottom, style, tooltip)
            names.append((place, name))
        # Titles of fewer lines begin at the same height as the others.
        middle = axes.top - 6 - LINE_HEIGHT * (n_lines - len(title) / 2)
        drawing.text(axes.x(start - 0.4), middle, title, bold=panel.accent)
    axes.name_x(names, axis)
    return drawing.svg(label)


# Opacity of the lowest value, so that it differs from a place without one.
_FAINTEST = 0.1
# Opacity of the page's line colour where there is no value.
_EMPTY = 0.35
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

    Parameters
    ----------
    values
        Shape (rows, columns); a place without a value, NaN, is grey.
    row_names, column_names
        Names at the side and below, where empty ones, and those without room, are left out.
    tooltips
        For each cell what browsers show beside the pointer.
    label
        As in `dot_chart`.
    axis, side
        What the columns and the rows are.
    key
        Writes a value, for both ends of the key.
    limits
        Values of the lightest and of the darkest shade, within which all others lie; None: 0 and
        the highest.
    """
    n_rows, n_columns = values.shape
    low, high = limits or (0.0, float(np.nanmax(values, initial=0)))
    names = [wrap(name, 0.3 * WIDTH) for name in row_names]
    row_height = max(17.0, 4 + LINE_HEIGHT * max(map(len, names)))
    top = PAD + (TITLE_HEIGHT if side else 0)
    below = TICK_HEIGHT + LINE_HEIGHT + 2 * GAP + _KEY_HEIGHT + PAD
    drawing = Drawing(top + n_rows * row_height + below)
    axes = Axes(
        drawing,
        (0, n_columns),
        (n_rows, 0),
        left=PAD + GAP + max(text_width(line, SMALL) for name in names for line in name),
        top=top,
        right=WIDTH - PAD,
        bottom=top + n_rows * row_height,
    )

    def shade(value: float) -> str:
        if np.isnan(value):
            return f"fill: {LINE}; opacity: {_EMPTY}"
        share = (value - low) / (high - low) if high > low else 1.0
        opacity = round(_FAINTEST + (1 - _FAINTEST) * share, 3)
        return f"fill: {ACCENT}" + (f"; opacity: {opacity}" if opacity < 1 else "")

    for row, name in enumerate(names):
        y = axes.y(row + 0.5)
        drawing.text(axes.left - GAP, y, name, anchor="end", colour=SOFT, size=SMALL)
        for column in range(n_columns):
            left, right = axes.x(column + 0.05), axes.x(column + 0.95)
            upper, lower = axes.y(row + 0.05), axes.y(row + 0.95)
            style, tooltip = shade(float(values[row, column])), tooltips[row][column]
            drawing.box(left, upper, right, lower, style, tooltip)
    axes.title(side)
    named = [(place + 0.5, name) for place, name in enumerate(column_names) if name]
    axes.name_x(thin(named, (axes.right - axes.left) / n_columns), axis)

    # The key: some shades between its two ends.
    start, middle = 0.4 * WIDTH, drawing.height - PAD - _KEY_HEIGHT / 2
    for step, value in enumerate(np.linspace(low, high, _KEY_STEPS).tolist()):
        left, half = start + step * _KEY_WIDTH, _KEY_HEIGHT / 2
        drawing.box(left, middle - half, left + _KEY_WIDTH - 1, middle + half, shade(value))
    end = start + _KEY_STEPS * _KEY_WIDTH
    drawing.text(start - GAP, middle, key(low), anchor="end", size=SMALL)
    drawing.text(end + GAP, middle, key(high), size=SMALL)
    return drawing.svg(label)
