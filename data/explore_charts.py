"""The charts that only `explore.py` draws: a column chart and a heat map."""

from collections.abc import Callable, Sequence
from math import isnan

from common import charts
from common.arrays import FloatArray
from common.charts import ACCENT, GAP, LINE_HEIGHT, PAD, SMALL, WIDTH, Axes, Drawing, Tick, thin
from common.pages import Html

import numpy as np


def compact(number: float) -> str:
    """Write a number in few characters: 950, 1.5k, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        # Numbers that round up to the unit are written in it: 999,950 is 1M, not 1000k.
        if abs(number) >= 0.9995 * size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def column_chart(
    heights: Sequence[float],
    tooltips: Sequence[str],
    names: Sequence[Tick],
    *,
    label: str,
    axis: str,
    unit: str,
    mark: Tick | None = None,
) -> Html:
    """Draw a chart of columns side by side.

    Positions of names and of the mark are in column widths from the left edge of the first column.
    """
    drawing = Drawing(175)
    # The text of a mark stands above the columns.
    highest = max(heights) * (1.2 if mark else 1.04) or 1.0
    scale = [(height, compact(height)) for height, _ in charts.ticks(0, highest, 4, integer=True)]
    # The last name may stand below the end of the scale.
    beside = sum(charts.text_width(name, SMALL) / 2 for at, name in names if at == len(heights))
    axes = charts.upright_axes(
        drawing,
        (0, len(heights)),
        (0, highest),
        scale,
        title=unit,
        axis=axis,
        beside=beside,
    )
    for column, (height, tooltip) in enumerate(zip(heights, tooltips, strict=True)):
        axes.bar((column + 0.07, column + 0.93), height, f"fill: {ACCENT}", tooltip)
    if mark:
        at, text = mark
        axes.upright(at, charts.stroke(charts.TEXT, 0.9, "; stroke-dasharray: 2.7,2.7"))
        # The text stands on the side of the mark that has more room.
        y = axes.top + LINE_HEIGHT / 2
        if at > len(heights) / 2:
            drawing.text(axes.x(at) - GAP, y, text, anchor="end")
        else:
            drawing.text(axes.x(at) + GAP, y, text, anchor="start")
    axes.name_x(thin(names, (axes.right - axes.left) / len(heights)), axis)
    return drawing.svg(label)


# Opacity of a field with the lowest value. It differs from an empty field.
_FAINTEST = 0.1
# Opacity of an empty field, which is grey.
_EMPTY = 0.35
# Fields in the key of a heat map, and their width and height in points.
_KEY_STEPS = 6
_KEY_WIDTH = 11.0
_KEY_HEIGHT = 10.0


def heat_map(
    values: FloatArray,
    row_names: Sequence[str],
    column_names: Sequence[str],
    tooltips: Sequence[Sequence[str]],
    *,
    label: str,
    axis: str,
    side: str = "",
    key: Callable[[float], str],
    limits: charts.Point | None = None,
) -> Html:
    """Draw values, shape (rows, columns), as shades: a larger value is darker, NaN is grey.

    `key` turns the lowest and highest value into texts. `limits` are these values, by default 0 and
    the maximum.
    """
    n_rows, n_columns = values.shape
    low, high = limits or (0.0, float(np.nanmax(values, initial=0)))
    names = [charts.wrap(name, 0.3 * WIDTH) for name in row_names]
    row_height = max(17.0, 4 + LINE_HEIGHT * max(map(len, names)))
    top = PAD + (charts.TITLE_HEIGHT if side else 0)
    left = PAD + GAP + max(charts.text_width(line, SMALL) for name in names for line in name)
    bottom = top + n_rows * row_height
    drawing = Drawing(bottom + charts.TICK_HEIGHT + LINE_HEIGHT + 2 * GAP + _KEY_HEIGHT + PAD)
    # The first row is at the top.
    axes = Axes(
        drawing,
        x_limits=(0, n_columns),
        y_limits=(n_rows, 0),
        left=left,
        top=top,
        right=WIDTH - PAD,
        bottom=bottom,
    )

    def shade(value: float) -> str:
        if isnan(value):
            return f"fill: {charts.LINE}; opacity: {_EMPTY}"
        share = (value - low) / (high - low) if high > low else 1.0
        opacity = round(_FAINTEST + (1 - _FAINTEST) * share, 3)
        return f"fill: {ACCENT}" + (f"; opacity: {opacity}" if opacity < 1 else "")

    for row, name in enumerate(names):
        y = (axes.y(row + 0.05), axes.y(row + 0.95))
        if any(name):
            drawing.note(left - GAP, sum(y) / 2, name, "end")
        for column, tooltip in enumerate(tooltips[row]):
            x = (axes.x(column + 0.05), axes.x(column + 0.95))
            drawing.box(x, y, shade(float(values[row, column])), tooltip)
    axes.title(side)
    named = [(column + 0.5, name) for column, name in enumerate(column_names) if name]
    axes.name_x(thin(named, (axes.right - axes.left) / n_columns), axis)

    start = 0.4 * WIDTH
    end = start + _KEY_STEPS * _KEY_WIDTH
    half = _KEY_HEIGHT / 2
    middle = drawing.height - PAD - half
    for step, value in enumerate(np.linspace(low, high, _KEY_STEPS).tolist()):
        at = start + step * _KEY_WIDTH
        drawing.box((at, at + _KEY_WIDTH - 1), (middle - half, middle + half), shade(value))
    drawing.text(start - GAP, middle, key(low), anchor="end", size=SMALL)
    drawing.text(end + GAP, middle, key(high), size=SMALL)
    return drawing.svg(label)
