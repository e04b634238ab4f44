"""A table of shades: the darker, the more."""

from collections.abc import Callable, Sequence

from common.charts.columns import thin
from common.charts.style import (
    ACCENT,
    LINE,
    LINE_HEIGHT,
    SOFT,
    TEXT,
    WIDTH,
    as_svg,
    new_figure,
    page_style,
    set_tooltip,
    text_width,
    wrap,
)

import numpy as np
import numpy.typing as npt

# Opacity of the lowest value, so that it differs from a place without one.
_FAINTEST = 0.1
# Opacity of the page's line colour where there is no value.
_EMPTY = 0.35
_KEY_STEPS = 6


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
    limits: tuple[float, float] | None = None,
) -> str:
    """Draw a table of shades, with a key below.

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

    Returns
    -------
    str
        An SVG element.
    """
    n_rows, n_columns = values.shape
    low, high = limits or (0.0, float(np.nanmax(values, initial=0)))
    with page_style(label):
        from matplotlib.patches import Rectangle

        row_names = [wrap(name, 0.3 * WIDTH) for name in row_names]
        n_lines = 1 + max(name.count("\n") for name in row_names)
        height = n_rows * max(17.0, 4 + LINE_HEIGHT * n_lines)
        figure = new_figure(height + 5.2 * LINE_HEIGHT)
        axes, scale = figure.subplots(2, 1, height_ratios=[height, 10])
        for row in range(n_rows):
            for column in range(n_columns):
                value = float(values[row, column])
                is_known = not np.isnan(value)
                cell = Rectangle((column + 0.05, row + 0.05), 0.9, 0.9, linewidth=0)
                cell.set_facecolor(ACCENT if is_known else LINE)
                cell.set_alpha(_opacity(value, low, high) if is_known else _EMPTY)
                set_tooltip(axes.add_patch(cell), tooltips[row][column])
        axes.set(xlim=(0, n_columns), ylim=(n_rows, 0))
        axes.set_yticks(np.arange(n_rows) + 0.5, row_names)
        axes.set_xlabel(axis)
        if side:
            axes.set_title(side, loc="left", color=SOFT, fontsize=10, pad=6)
        axes.spines["bottom"].set_visible(False)

        # The key: some shades between its two ends.
        scale.set_axis_off()
        scale.set(xlim=(0, 28), ylim=(0, 1))
        shades = np.linspace(low, high, _KEY_STEPS)
        first = 11.0
        for step, value in enumerate(shades):
            swatch = Rectangle((first + step, 0), 0.94, 1, facecolor=ACCENT)
            swatch.set(alpha=_opacity(float(value), low, high), linewidth=0)
            scale.add_patch(swatch)
        for place, text, side_of in (
            (first - 0.4, key(low), "right"),
            (first + _KEY_STEPS + 0.4, key(high), "left"),
        ):
            scale.text(
                place, 0.5, text, color=TEXT, fontsize=10,
                horizontalalignment=side_of, verticalalignment="center_baseline",
            )  # fmt: skip
        named = [(place + 0.5, name) for place, name in enumerate(column_names) if name]
        side_width = max(text_width(line) for name in row_names for line in name.split("\n"))
        shown = thin(named, (WIDTH - side_width - 10) / n_columns)
        axes.set_xticks([place for place, _ in shown], [name for _, name in shown])
        return as_svg(figure, label)


def _opacity(value: float, low: float, high: float) -> float:
    share = (value - low) / (high - low) if high > low else 1.0
    return round(_FAINTEST + (1 - _FAINTEST) * share, 3)
