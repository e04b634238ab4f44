"""Values on one scale, a row for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from common.charts.style import (
    ACCENT,
    GREY,
    LINE,
    LINE_HEIGHT,
    PAD,
    ROW_HEIGHT,
    SOFT,
    TEXT,
    TICK_HEIGHT,
    TITLE_HEIGHT,
    WIDTH,
    Axes,
    Drawing,
    Point,
    limits_of,
    text_width,
    ticks,
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
    interval: Point | None = None
    mark: float | None = None
    band: Point | None = None
    accent: bool = True


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
    interval: Point | None = None
    mark: float | None = None
    tooltip: str = ""


# An interval of a row with a smaller share does not widen the scale.
_SHARE_THAT_COUNTS = 0.02
_MOST_TICKS = 3
_NARROWEST = 0.02
# Between names and scale, and between the columns of a chart of shares.
_BESIDE, _BETWEEN = 7.0, 10.0


class _Rows:
    """Names at the left, broken into lines, and the height of each row."""

    def __init__(self, labels: Sequence[str], width: float) -> None:
        self.names = [wrap(label, width) for label in labels]
        self.heights = [ROW_HEIGHT + LINE_HEIGHT * (len(name) - 1) for name in self.names]
        self.bottoms = list(accumulate(self.heights))
        self.width = max(text_width(line) for name in self.names for line in name)

    def middles(self, top: float) -> list[float]:
        """Return the middle of each row, from the height at which the first one begins."""
        rows = zip(self.bottoms, self.heights, strict=True)
        return [top + bottom - height / 2 for bottom, height in rows]

    def write(self, drawing: Drawing, top: float) -> None:
        """Write the names."""
        for name, y in zip(self.names, self.middles(top), strict=True):
            drawing.text(PAD + self.width, y, name, anchor="end")


def dot_chart(
    dots: Sequence[Dot],
    *,
    label: str,
    digits: int,
    limits: Point | None = None,
    chance: float | None = None,
    axis: str = "",
    width: float = WIDTH,
) -> str:
    """Draw values on one scale, a row for each, its name on the left and its number on the right.

    Parameters
    ----------
    dots
        From top to bottom.
    label
        What the chart shows, for screen readers.
    digits
        Decimal places of the numbers.
    limits
        Ends of the scale; None: fitted to the values.
    chance
        What guessing reaches, drawn as a dashed line; None for none.
    axis
        What the values are.
    width
        Width of the chart.
    """
    rows = _Rows([dot.label for dot in dots], 0.4 * width)
    drawing = Drawing(
        PAD + rows.bottoms[-1] + TICK_HEIGHT + PAD + (LINE_HEIGHT if axis else 0), width
    )
    if limits is None:
        values = [chance, *(value for dot in dots for value in (dot.value, dot.mark))]
        values += [end for dot in dots for ends in (dot.interval, dot.band) for end in ends or ()]
        limits = limits_of((value for value in values if value is not None), 0.1)
    numbers = [f"{dot.mark if dot.value is None else dot.value:.{digits}f}" for dot in dots]
    axes = Axes(
        drawing,
        limits,
        (0, 1),
        left=PAD + rows.width + _BESIDE,
        top=PAD,
        right=width - PAD - max(map(text_width, numbers)) - 9,
        bottom=PAD + rows.bottoms[-1],
    )
    axes.name_x(ticks(*limits, 4), axis, grid=True)
    if chance is not None:
        ends = [(axes.x(chance), axes.bottom), (axes.x(chance), axes.top)]
        drawing.line(ends, SOFT, 0.9, dashes="2.7,3.6")
    rows.write(drawing, axes.top)
    layout = zip(dots, numbers, rows.middles(axes.top), rows.heights, strict=True)
    for dot, number, y, height in layout:
        colour = ACCENT if dot.accent else TEXT
        if dot.band:
            low, high = map(axes.x, dot.band)
            drawing.box(low, y - height / 2, high, y + height / 2, f"fill: {LINE}")
        if dot.interval:
            ends = [(axes.x(end), y) for end in dot.interval]
            drawing.line(ends, colour, 1.6, more="; stroke-linecap: round")
        if dot.mark is not None:
            drawing.diamond(axes.x(dot.mark), y, f"{dot.label}: {dot.mark:.{digits}f}")
        if dot.value is not None:
            drawing.dot(axes.x(dot.value), y, colour, f"{dot.label}: {dot.value:.{digits}f}")
        drawing.text(axes.right + 9, y, number)
    return drawing.svg(label)


def share_chart(groups: Sequence[ShareRow], *, label: str, value_name: str, share_name: str) -> str:
    """Draw a dot on a common scale, which does not start at 0, and a bar for every row.

    Parameters
    ----------
    groups
        From top to bottom; at least one.
    label
        As in `dot_chart`.
    value_name, share_name
        What dots and bars are, above them.
    """
    rows = _Rows([group.label for group in groups], 0.36 * WIDTH)
    top = PAD + TITLE_HEIGHT
    drawing = Drawing(top + rows.bottoms[-1] + TICK_HEIGHT + PAD)
    values = ["–" if group.value is None else f"{group.value:.3f}" for group in groups]
    shares = ["<1%" if 0 < group.share < 0.005 else f"{group.share:.0%}" for group in groups]
    left = PAD + rows.width + _BESIDE
    beside = [7 + max(map(text_width, texts)) for texts in (values, shares)]
    room = WIDTH - PAD - left - sum(beside) - _BETWEEN
    # Dots get three quarters of the room, bars one.
    middle = left + 0.75 * room
    start = middle + beside[0] + _BETWEEN
    vertical = {"top": top, "bottom": top + rows.bottoms[-1]}
    limits = _limits(groups)
    dots = Axes(drawing, limits, (0, 1), left=left, right=middle, **vertical)
    widest = max(group.share for group in groups) or 1
    bars = Axes(drawing, (0, widest), (0, 1), left=start, right=start + 0.25 * room, **vertical)
    # Numbers of few digits, and few of them: the axis may be narrow.
    names = ticks(*limits, 3, factors=(1, 2, 5))
    dots.name_x(names[:: ceil(len(names) / _MOST_TICKS)], grid=True)
    dots.title(value_name)
    bars.title(share_name)
    rows.write(drawing, top)
    layout = zip(groups, values, shares, rows.middles(top), rows.heights, strict=True)
    for group, value, share, y, height in layout:
        if group.interval and group.value is not None:
            ends = [(dots.x(min(max(end, limits[0]), limits[1])), y) for end in group.interval]
            drawing.line(ends, ACCENT, 1.6)
        if group.mark is not None:
            tooltip = f"{group.label}: diamond, {group.tooltip}"
            drawing.diamond(dots.x(group.mark), y, tooltip)
        if group.value is not None:
            drawing.dot(dots.x(group.value), y, ACCENT, f"{group.label}: {group.tooltip}")
        half = min(height - 6, ROW_HEIGHT) / 2
        tooltip = f"{group.label}, bar: {group.tooltip}"
        drawing.box(start, y - half, bars.x(group.share), y + half, f"fill: {GREY}", tooltip)
        drawing.text(dots.right + 7, y, value)
        drawing.text(bars.right + 7, y, share)
    return drawing.svg(label)


def _limits(groups: Sequence[ShareRow]) -> Point:
    """Return ends of a scale for all dots and diamonds, and the intervals that matter."""
    values = [v for group in groups for v in (group.value, group.mark) if v is not None]
    for group in groups:
        if group.interval and group.value is not None and group.share >= _SHARE_THAT_COUNTS:
            values += group.interval
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = max(0.06 * (high - low), (_NARROWEST - (high - low)) / 2)
    return low - margin, high + margin
