"""Values on one scale, a row for each."""

from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from typing import NamedTuple

from common.charts.style import (
    ACCENT,
    DASHED,
    GREY,
    LINE,
    LINE_HEIGHT,
    PAD,
    ROW_HEIGHT,
    TEXT,
    TICK_HEIGHT,
    TITLE_HEIGHT,
    WIDTH,
    Axes,
    Drawing,
    Point,
    limits_of,
    stroke,
    text_width,
    ticks,
    wrap,
)


class Dot(NamedTuple):
    """A row of `dot_chart`: its name and value, and what to compare that with, None for nothing.

    The interval is a line through the dot, the mark a diamond, the band a range in grey; a row
    without a value has only a mark. `accent` draws dot and line in the page's accent colour.
    """

    label: str
    value: float | None
    interval: Point | None = None
    mark: float | None = None
    band: Point | None = None
    accent: bool = True


class ShareRow(NamedTuple):
    """A row of `share_chart`: as a `Dot`, with a bar for a share from 0 to 1.

    The value is None where it would rest on too little. The tooltip belongs to dot and bar.
    """

    label: str
    value: float | None
    share: float
    interval: Point | None = None
    mark: float | None = None
    tooltip: str = ""


# An interval of a row with a smaller share does not widen the scale, but is cut off.
_SHARE_THAT_COUNTS = 0.02
_MOST_TICKS = 3
_NARROWEST = 0.02
# Between names and scale, and between the columns of a chart of shares.
_BESIDE, _BETWEEN = 7.0, 10.0


class _Rows:
    """Names at the left, broken into lines, and where each row is, the first one below `top`."""

    def __init__(self, labels: Sequence[str], width: float, top: float) -> None:
        self.top, self.names = top, [wrap(label, width) for label in labels]
        self.heights = [ROW_HEIGHT + LINE_HEIGHT * (len(name) - 1) for name in self.names]
        ends = [top + end for end in accumulate(self.heights)]
        self.bottom = ends[-1]
        self.middles = [end - height / 2 for end, height in zip(ends, self.heights, strict=True)]
        self.right = PAD + max(text_width(line) for name in self.names for line in name)

    def write(self, drawing: Drawing) -> None:
        for name, y in zip(self.names, self.middles, strict=True):
            drawing.text(self.right, y, name, anchor="end")


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

    The label is for screen readers. Without limits, the scale is fitted to the values. A dashed
    line shows what chance reaches.
    """
    rows = _Rows([dot.label for dot in dots], 0.4 * width, PAD)
    drawing = Drawing(rows.bottom + TICK_HEIGHT + PAD + (LINE_HEIGHT if axis else 0), width)
    if limits is None:
        values = [chance, *(value for dot in dots for value in (dot.value, dot.mark))]
        values += [end for dot in dots for ends in (dot.interval, dot.band) for end in ends or ()]
        limits = limits_of((value for value in values if value is not None), 0.1)
    numbers = [f"{dot.mark if dot.value is None else dot.value:.{digits}f}" for dot in dots]
    left, right = rows.right + _BESIDE, width - PAD - max(map(text_width, numbers)) - 9
    axes = Axes(drawing, limits, (0, 1), left=left, top=PAD, right=right, bottom=rows.bottom)
    axes.name_x(ticks(*limits, 4), axis, grid=True)
    if chance is not None:
        axes.upright(chance, DASHED)
    rows.write(drawing)
    for dot, number, y, height in zip(dots, numbers, rows.middles, rows.heights, strict=True):
        colour = ACCENT if dot.accent else TEXT
        if dot.band:
            low, high = map(axes.x, dot.band)
            drawing.box((low, high), (y - height / 2, y + height / 2), f"fill: {LINE}")
        if dot.interval:
            ends = [(axes.x(end), y) for end in dot.interval]
            drawing.line(ends, stroke(colour, 1.6, "; stroke-linecap: round"))
        if dot.mark is not None:
            drawing.diamond(axes.x(dot.mark), y, f"{dot.label}: {dot.mark:.{digits}f}")
        if dot.value is not None:
            drawing.dot(axes.x(dot.value), y, colour, f"{dot.label}: {dot.value:.{digits}f}")
        drawing.text(axes.right + 9, y, number)
    return drawing.svg(label)


def share_chart(groups: Sequence[ShareRow], *, label: str, value_name: str, share_name: str) -> str:
    """Draw a dot on a common scale, which does not start at 0, and a bar for every row."""
    rows = _Rows([group.label for group in groups], 0.36 * WIDTH, PAD + TITLE_HEIGHT)
    drawing = Drawing(rows.bottom + TICK_HEIGHT + PAD)
    values = ["–" if group.value is None else f"{group.value:.3f}" for group in groups]
    shares = ["<1%" if 0 < group.share < 0.005 else f"{group.share:.0%}" for group in groups]
    left, beside = rows.right + _BESIDE, [7 + max(map(text_width, x)) for x in (values, shares)]
    room = WIDTH - PAD - left - sum(beside) - _BETWEEN
    # Dots get three quarters of the room, bars one.
    middle, start = left + 0.75 * room, left + 0.75 * room + beside[0] + _BETWEEN
    limits, widest = _limits(groups), max(group.share for group in groups) or 1
    dots, bars = (
        Axes(drawing, scale, (0, 1), left=begin, right=end, top=rows.top, bottom=rows.bottom)
        for scale, begin, end in (
            (limits, left, middle),
            ((0, widest), start, start + 0.25 * room),
        )
    )
    # Numbers of few digits, and few of them: the axis may be narrow.
    names = ticks(*limits, 3, factors=(1, 2, 5))
    dots.name_x(names[:: ceil(len(names) / _MOST_TICKS)], grid=True)
    dots.title(value_name)
    bars.title(share_name)
    rows.write(drawing)
    layout = zip(groups, values, shares, rows.middles, rows.heights, strict=True)
    for group, value, share, y, height in layout:
        if group.interval and group.value is not None:
            ends = [(dots.x(min(max(end, limits[0]), limits[1])), y) for end in group.interval]
            drawing.line(ends, stroke(ACCENT, 1.6))
        if group.mark is not None:
            tooltip = f"{group.label}: diamond, {group.tooltip}"
            drawing.diamond(dots.x(group.mark), y, tooltip)
        if group.value is not None:
            drawing.dot(dots.x(group.value), y, ACCENT, f"{group.label}: {group.tooltip}")
        half, tooltip = min(height - 6, ROW_HEIGHT) / 2, f"{group.label}, bar: {group.tooltip}"
        drawing.box((start, bars.x(group.share)), (y - half, y + half), f"fill: {GREY}", tooltip)
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
