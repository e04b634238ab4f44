"""The charts that only `explore.py` draws: a column chart and a heat map."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan

from common import charts
from common.arrays import FloatArray
from common.charts import (
    ACCENT,
    GAP,
    LINE_HEIGHT,
    PAD,
    SMALL,
    WIDTH,
    Axes,
    Drawing,
    Tick,
    drop_overlapping,
)
from common.pages import Html

import numpy as np


def compact(number: float) -> str:
    """Return a number as a short text: 950, 1.5k, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        # A number of at least 0.9995 units, rounded to three digits, is 1 unit or more: 999,950 is
        # 1M, not 1000k.
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

    Parameters
    ----------
    heights, tooltips
        One for each column.
    names
        Texts below the columns, as pairs of position and text. Position 0 is the left edge of the
        first column, 0.5 is its middle, and 1 is its right edge.
    label
        The text for screen readers.
    axis, unit
        Title of the axis of columns, and title of the axis of heights.
    mark
        Position and text of a dashed vertical line; None for no line.
    """
    drawing = Drawing(175)
    # Leave room above the highest column; the text of a mark needs more room.
    room = 1.2 if mark else 1.04
    highest = max(heights) * room
    if highest == 0:
        highest = 1.0
    # `charts.ticks` returns pairs of height and text. Use only the heights: these texts are too
    # long here, so `compact` writes shorter ones.
    tick_heights = [height for height, _ in charts.ticks(0, highest, 4, integer=True)]
    scale = [(height, compact(height)) for height in tick_heights]
    # A name at the right end of the axis is centred there: its right half needs room.
    beside = 0.0
    for position, name in names:
        if position == len(heights):
            beside = charts.text_width(name, SMALL) / 2
    axes = charts.axes_with_y_labels(
        drawing,
        (0, len(heights)),
        (0, highest),
        scale,
        title=unit,
        axis=axis,
        beside=beside,
    )
    for column, (height, tooltip) in enumerate(zip(heights, tooltips, strict=True)):
        # A gap of 7 % of the column's width on both sides separates neighbours.
        axes.bar((column + 0.07, column + 0.93), height, f"fill: {ACCENT}", tooltip)
    if mark:
        _draw_mark(drawing, axes, mark, middle=len(heights) / 2)
    column_width = (axes.right - axes.left) / len(heights)
    axes.draw_x_axis(drop_overlapping(names, column_width), axis)
    return drawing.svg(label)


def _draw_mark(drawing: Drawing, axes: Axes, mark: Tick, middle: float) -> None:
    """Draw the mark of `column_chart`: a dashed vertical line and its text.

    `middle` is the position of the middle of the horizontal axis.
    """
    position, text = mark
    dashes = "; stroke-dasharray: 2.7,2.7"
    axes.vertical_line(position, charts.stroke(charts.TEXT, width=0.9, more=dashes))
    # The text stands on the side of the mark that has more room.
    y = axes.top + LINE_HEIGHT / 2
    if position > middle:
        drawing.text(axes.x(position) - GAP, y, text, anchor="end")
    else:
        drawing.text(axes.x(position) + GAP, y, text, anchor="start")


# Opacity of a cell with the lowest value. It is not 0, since an empty cell must look different.
_FAINTEST = 0.1
# Opacity of an empty cell, which is grey.
_EMPTY = 0.35
# Row names may take this share of the width, in several lines.
_ROW_NAME_SHARE = 0.3
# A row is at least this high, in points.
_LEAST_ROW_HEIGHT = 17.0
# Number of shades in the legend of a heat map, and width and height of each, in points.
_LEGEND_STEPS = 6
_LEGEND_WIDTH = 11.0
_LEGEND_HEIGHT = 10.0


@dataclass(frozen=True)
class HeatMap:
    """A chart with a cell for each value, in rows and columns; a larger value has a darker cell."""

    # Shape (rows, columns); NaN for an empty cell, which is grey.
    values: FloatArray
    row_names: Sequence[str]
    column_names: Sequence[str]
    # A list for each row, with a text for each cell.
    tooltips: Sequence[Sequence[str]]
    # Title below the columns.
    axis: str
    # A function that turns the values of the lightest and the darkest shade into texts for the
    # legend.
    legend_text: Callable[[float], str]
    # Title above the rows.
    side: str = ""
    # The values of the lightest and the darkest shade; by default 0 and the maximum.
    limits: tuple[float, float] | None = None

    def draw(self, *, label: str) -> Html:
        """Draw the heat map; `label` is the text for screen readers."""
        # The values of the lightest and the darkest shade.
        low = 0.0
        high = float(np.nanmax(self.values, initial=0))
        if self.limits:
            low, high = self.limits
        # The names of the rows, each as a list of lines.
        name_lines = [charts.wrap(name, _ROW_NAME_SHARE * WIDTH) for name in self.row_names]
        axes = self._lay_out(name_lines)
        for row, lines in enumerate(name_lines):
            has_name = any(lines)
            if has_name:
                # The name stands left of the middle of its row.
                axes.drawing.note(axes.left - GAP, axes.y(row + 0.5), lines, anchor="end")
            self._draw_cells(axes, row, low, high)
        # The title above the rows.
        axes.title(self.side)
        # The middle and the name of each column that has a name.
        named = [(column + 0.5, name) for column, name in enumerate(self.column_names) if name]
        # Leave out names that would overlap.
        column_width = (axes.right - axes.left) / self.values.shape[1]
        axes.draw_x_axis(drop_overlapping(named, column_width), self.axis)
        self._draw_legend(axes.drawing, low, high)
        return axes.drawing.svg(label)

    def _draw_cells(self, axes: Axes, row: int, low: float, high: float) -> None:
        """Draw the cells of a row; `low` and `high` have the lightest and the darkest shade."""
        # In both directions, a cell has the size 1. A gap of 5 % on all sides separates neighbours.
        y_edges = (axes.y(row + 0.05), axes.y(row + 0.95))
        for column, tooltip in enumerate(self.tooltips[row]):
            x_edges = (axes.x(column + 0.05), axes.x(column + 0.95))
            style = _shade(self.values[row, column], low, high)
            axes.drawing.box(x_edges, y_edges, style, tooltip)

    def _lay_out(self, name_lines: Sequence[Sequence[str]]) -> Axes:
        """Make an empty drawing that is large enough, and return the axes of the cells in it."""
        n_rows, n_columns = self.values.shape
        most_lines = max(len(lines) for lines in name_lines)
        # All rows have the same height, with room for the name that has most lines.
        row_height = max(_LEAST_ROW_HEIGHT, 4 + LINE_HEIGHT * most_lines)
        top = PAD + (charts.TITLE_HEIGHT if self.side else 0)
        bottom = top + n_rows * row_height
        # Below the cells there are the column names, the title of the axis and the legend.
        below = charts.TICK_HEIGHT + LINE_HEIGHT + 2 * GAP + _LEGEND_HEIGHT + PAD
        # The names of the rows are left of the cells.
        widths = [charts.text_width(line, SMALL) for lines in name_lines for line in lines]
        return Axes(
            Drawing(bottom + below),
            x_limits=(0, n_columns),
            # The first row is at the top.
            y_limits=(n_rows, 0),
            left=PAD + GAP + max(widths),
            top=top,
            right=WIDTH - PAD,
            bottom=bottom,
        )

    def _draw_legend(self, drawing: Drawing, low: float, high: float) -> None:
        """Draw the shades of the values from `low` to `high`, with both values beside them."""
        start = 0.4 * WIDTH
        end = start + _LEGEND_STEPS * _LEGEND_WIDTH
        middle = drawing.height - PAD - _LEGEND_HEIGHT / 2
        y_edges = (middle - _LEGEND_HEIGHT / 2, middle + _LEGEND_HEIGHT / 2)
        for step, value in enumerate(np.linspace(low, high, _LEGEND_STEPS)):
            left = start + step * _LEGEND_WIDTH
            drawing.box((left, left + _LEGEND_WIDTH - 1), y_edges, _shade(value, low, high))
        drawing.text(start - GAP, middle, self.legend_text(low), anchor="end", size=SMALL)
        drawing.text(end + GAP, middle, self.legend_text(high), size=SMALL)


def _shade(value: float, low: float, high: float) -> str:
    """Return the style of a cell; `low` and `high` have the lightest and the darkest shade."""
    if isnan(value):
        return f"fill: {charts.LINE}; opacity: {_EMPTY}"
    # 0 for the lightest shade, 1 for the darkest.
    position = (value - low) / (high - low) if high > low else 1.0
    opacity = round(_FAINTEST + (1 - _FAINTEST) * position, 3)
    return f"fill: {ACCENT}" + (f"; opacity: {opacity}" if opacity < 1 else "")
