"""A value and a share for every row: how well each group does, and how much of the whole it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from common.charts.style import (
    ACCENT,
    FONT_SIZE,
    GREY,
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
class ShareRow:
    """A row of `share_chart`.

    Attributes
    ----------
    label
        Name of the row.
    value
        Position of the dot; None for a row without one, as where it would rest on too little.
    share
        Length of the bar, from 0 to 1.
    interval
        Ends of a line through the dot; None for none. What lies beyond the scale is cut off.
    mark
        Another value to compare with, drawn as a diamond; None for none.
    tooltip
        What the pointer shows at dot and bar.
    """

    label: str
    value: float | None
    share: float
    interval: tuple[float, float] | None = None
    mark: float | None = None
    tooltip: str = ""


# An interval of a row with a smaller share does not widen the scale.
_SHARE_THAT_COUNTS = 0.02
_MOST_TICKS = 3
_NARROWEST = 0.02


def share_chart(rows: Sequence[ShareRow], *, label: str, value_name: str, share_name: str) -> str:
    """Draw a dot on a common scale and a bar for every row.

    Parameters
    ----------
    rows
        From top to bottom; at least one.
    label
        As in `dot_chart`.
    value_name, share_name
        What dots and bars are, above them.

    Returns
    -------
    str
        An SVG element; the scale of the dots does not start at 0.
    """
    with page_style(label):
        names = [wrap(row.label, 0.36 * WIDTH) for row in rows]
        heights = [ROW_HEIGHT + LINE_HEIGHT * name.count("\n") for name in names]
        bottoms = list(accumulate(heights))
        middles = [bottom - height / 2 for bottom, height in zip(bottoms, heights, strict=True)]
        figure = new_figure(bottoms[-1] + 46)
        dots, bars = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
        low, high = _limits(rows)
        for row, y, height in zip(rows, middles, heights, strict=True):
            if row.interval and row.value is not None:
                ends = [min(max(end, low), high) for end in row.interval]
                (line,) = dots.plot(ends, (y, y), color=ACCENT, linewidth=1.6)
                line.set_solid_capstyle("butt")
            for value, marker, edge, fill in (
                (row.mark, "D", TEXT, "none"),
                (row.value, "o", ACCENT, ACCENT),
            ):
                if value is not None:
                    (dot,) = dots.plot(value, y, marker, color=edge, markerfacecolor=fill)
                    dot.set(markersize=5.5, clip_on=False)
                    set_tooltip(dot, f"{row.label}: {'diamond, ' * (marker == 'D')}{row.tooltip}")
            bar = bars.barh(y, row.share, min(height - 6, ROW_HEIGHT), color=GREY, linewidth=0)
            set_tooltip(bar[0], f"{row.label}, bar: {row.tooltip}")
            for axes, text in (
                (dots, "–" if row.value is None else f"{row.value:.3f}"),
                (bars, "<1%" if 0 < row.share < 0.005 else f"{row.share:.0%}"),
            ):
                axes.annotate(
                    text,
                    (1, y),
                    xycoords=("axes fraction", "data"),
                    xytext=(7, 0),
                    textcoords="offset points",
                    verticalalignment="center_baseline",
                )
        for axes, name in ((dots, value_name), (bars, share_name)):
            axes.set_title(name, fontsize=10, color=SOFT, loc="left")
        dots.set_yticks(middles, names, fontsize=FONT_SIZE, color=TEXT)
        dots.set_ylim(bottoms[-1], 0)
        dots.set_xlim(low, high)
        # Numbers of few digits, and few of them: the axis may be narrow.
        dots.locator_params(axis="x", nbins=3, steps=[1, 2, 5, 10])
        dots.ticklabel_format(axis="x", useOffset=False)
        ticks = [tick for tick in dots.get_xticks() if low <= tick <= high]
        dots.set_xticks(ticks[:: ceil(len(ticks) / _MOST_TICKS)])
        dots.grid(axis="x", linewidth=0.6)
        bars.set_xlim(0, max(row.share for row in rows))
        bars.set_xticks([])
        bars.spines["bottom"].set_visible(False)
        return as_svg(figure, label)


def _limits(rows: Sequence[ShareRow]) -> tuple[float, float]:
    """Return ends of a scale for all dots and diamonds, and the intervals that matter."""
    values = [v for row in rows for v in (row.value, row.mark) if v is not None]
    for row in rows:
        if row.interval and row.value is not None and row.share >= _SHARE_THAT_COUNTS:
            values += row.interval
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = max(0.06 * (high - low), (_NARROWEST - (high - low)) / 2)
    return low - margin, high + margin
