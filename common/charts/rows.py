"""Values on one scale, a row for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from common.charts.style import (
    ACCENT,
    FONT_SIZE,
    LINE,
    LINE_HEIGHT,
    ROW_HEIGHT,
    SOFT,
    TEXT,
    WIDTH,
    as_svg,
    new_figure,
    page_style,
    set_tooltip,
    wrap,
)


@dataclass(frozen=True)
class Dot:
    """A row of `dot_chart`.

    Attributes
    ----------
    label
        Name of the row.
    value
        Position of the dot; None for a row that has only a mark.
    interval
        Ends of a line through the dot; None for none.
    mark
        Another value to compare with, drawn as a diamond; None for none.
    band
        A range to compare with, drawn in grey; None for none.
    accent
        Whether to draw dot and line in the page's accent colour.
    """

    label: str
    value: float | None
    interval: tuple[float, float] | None = None
    mark: float | None = None
    band: tuple[float, float] | None = None
    accent: bool = True


def dot_chart(
    rows: Sequence[Dot],
    *,
    label: str,
    digits: int,
    limits: tuple[float, float] | None = None,
    chance: float | None = None,
    axis: str = "",
    width: float = WIDTH,
) -> str:
    """Draw values on one scale, a row for each, its name on the left and its number on the right.

    Parameters
    ----------
    rows
        From top to bottom.
    label
        What the chart shows, for screen readers; unique on its page among charts of this width, as
        ids are made from it.
    digits
        Decimal places of the numbers.
    limits
        Ends of the scale; None: fitted to the values.
    chance
        What guessing reaches, drawn as a dashed line; None for none.
    axis
        What the values are.
    width
        Width of the chart in points.

    Returns
    -------
    str
        An SVG element.
    """
    with page_style(f"{label} {width:g}"):
        names = [wrap(row.label, 0.4 * width) for row in rows]
        heights = [ROW_HEIGHT + LINE_HEIGHT * name.count("\n") for name in names]
        bottoms = list(accumulate(heights))
        middles = [bottom - height / 2 for bottom, height in zip(bottoms, heights, strict=True)]
        figure = new_figure(bottoms[-1] + 26 + (LINE_HEIGHT if axis else 0), width)
        axes = figure.add_subplot()
        if chance is not None:
            axes.axvline(chance, color=SOFT, linewidth=0.9, dashes=(3, 4))
        for row, y, height in zip(rows, middles, heights, strict=True):
            colour = ACCENT if row.accent else TEXT
            if row.band:
                low, high = row.band
                axes.barh(y, high - low, height, left=low, color=LINE, linewidth=0)
            if row.interval:
                (line,) = axes.plot(row.interval, (y, y), color=colour, linewidth=1.6)
                line.set(solid_capstyle="round", clip_on=False)
            for value, marker, fill in ((row.mark, "D", "none"), (row.value, "o", colour)):
                if value is not None:
                    edge = colour if marker == "o" else TEXT
                    (dot,) = axes.plot(value, y, marker, color=edge, markerfacecolor=fill)
                    dot.set(markersize=5.5, clip_on=False)
                    set_tooltip(dot, f"{row.label}: {value:.{digits}f}")
            shown = row.mark if row.value is None else row.value
            axes.annotate(
                f"{shown:.{digits}f}",
                (1, y),
                xycoords=("axes fraction", "data"),
                xytext=(9, 0),
                textcoords="offset points",
                verticalalignment="center_baseline",
            )
        axes.set_yticks(middles, names, fontsize=FONT_SIZE, color=TEXT)
        axes.set_ylim(bottoms[-1], 0)
        axes.set_xlabel(axis)
        if limits:
            axes.set_xlim(limits)
        else:
            axes.margins(x=0.1)
        axes.locator_params(axis="x", nbins=4)
        axes.grid(axis="x", linewidth=0.6)
        return as_svg(figure, label)
