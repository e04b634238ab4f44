"""The charts of the pages: SVG that lies in a page, in its colours, light or dark.

The label of a chart is for screen readers; a tooltip says what a mark is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import ceil, isnan
from typing import TYPE_CHECKING, NamedTuple

from common import pages
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
    SOFT,
    TEXT,
    THIN,
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

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # Importing it takes 0.2 s.
    import pandas as pd


def compact(number: float) -> str:
    """Write a number in few characters: 950, 1.5k, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


# ---- Values on one scale, a row for each ---------------------------------------------------------

# A chart as wide as the text of a page on a large screen.
_WIDE = 552.0
# An interval of a row with a smaller share does not widen the scale, but is cut off.
_SHARE_THAT_COUNTS = 0.02
_MOST_TICKS = 3
_NARROWEST = 0.02
# Between names and scale, and between the columns of a chart of shares.
_BESIDE, _BETWEEN = 7.0, 10.0


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
    wide: bool = False,
) -> str:
    """Draw values on one scale, a row for each, its name on the left and its number on the right.

    Without limits, the scale is fitted to the values. A dashed line shows what chance reaches.
    """
    width = _WIDE if wide else WIDTH
    rows = _Rows([dot.label for dot in dots], 0.4 * width, PAD)
    drawing = Drawing(rows.bottom + TICK_HEIGHT + PAD + (LINE_HEIGHT if axis else 0), width)
    if limits is None:
        values = [chance, *(value for dot in dots for value in (dot.value, dot.mark))]
        values += [end for dot in dots for ends in (dot.interval, dot.band) for end in ends or ()]
        limits = limits_of([value for value in values if value is not None], 0.1)
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


def share_chart(groups: pd.DataFrame, *, label: str) -> str:
    """Draw for every group its accuracy, on a scale that does not start at 0, and a bar.

    The columns are accuracy, low and high (its interval) and, where it is known, majority (a
    diamond), all NaN where they would rest on too little; share (the bar), and n_answers.
    """
    columns = ["accuracy", "low", "high", "majority", "share", "n_answers"]
    figures = groups.reindex(columns=columns).to_numpy().T.tolist()
    accuracy, low, high, majority, share, n_answers = figures
    rows = _Rows([str(name) for name in groups.index], 0.36 * WIDTH, PAD + TITLE_HEIGHT)
    drawing = Drawing(rows.bottom + TICK_HEIGHT + PAD)
    values = ["–" if isnan(value) else f"{value:.3f}" for value in accuracy]
    shares = ["<1%" if 0 < part < 0.005 else f"{part:.0%}" for part in share]
    left, beside = rows.right + _BESIDE, [7 + max(map(text_width, x)) for x in (values, shares)]
    room = WIDTH - PAD - left - sum(beside) - _BETWEEN
    # Dots get three quarters of the room, bars one.
    middle, start = left + 0.75 * room, left + 0.75 * room + beside[0] + _BETWEEN
    intervals = [*zip(low, high, strict=True)]
    matter = [*accuracy, *majority]
    for part, ends in zip(share, intervals, strict=True):
        matter += ends if part >= _SHARE_THAT_COUNTS else ()
    matter = [value for value in matter if not isnan(value)] or [0.0, 1.0]
    span = max(matter) - min(matter)
    margin = max(0.06 * span, (_NARROWEST - span) / 2)
    least, most = min(matter) - margin, max(matter) + margin
    dots, bars = (
        Axes(drawing, scale, (0, 1), left=begin, right=end, top=rows.top, bottom=rows.bottom)
        for scale, begin, end in (
            ((least, most), left, middle),
            ((0, max(share) or 1), start, start + 0.25 * room),
        )
    )
    # Numbers of few digits, and few of them: the axis may be narrow.
    names = ticks(least, most, 3, factors=(1, 2, 5))
    dots.name_x(names[:: ceil(len(names) / _MOST_TICKS)], grid=True)
    dots.title("accuracy")
    bars.title("answers")
    rows.write(drawing)
    for k, (name, y) in enumerate(zip(groups.index, rows.middles, strict=True)):
        is_shown, has_mark = not isnan(accuracy[k]), not isnan(majority[k])
        told = f"{n_answers[k]:,.0f} answers" + f", accuracy {accuracy[k]:.3f}" * is_shown
        told += f", majority {majority[k]:.3f}" * has_mark
        if is_shown:
            ends_at = [(dots.x(min(max(end, least), most)), y) for end in intervals[k]]
            drawing.line(ends_at, stroke(ACCENT, 1.6))
        if has_mark:
            drawing.diamond(dots.x(majority[k]), y, f"{name}: diamond, {told}")
        if is_shown:
            drawing.dot(dots.x(accuracy[k]), y, ACCENT, f"{name}: {told}")
        half = min(rows.heights[k] - 6, ROW_HEIGHT) / 2
        bar = (start, bars.x(share[k])), (y - half, y + half)
        drawing.box(*bar, f"fill: {GREY}", f"{name}, bar: {told}")
        drawing.text(dots.right + 7, y, values[k])
        drawing.text(bars.right + 7, y, shares[k])
    return drawing.svg(label)


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
    """Draw columns side by side from 0 up, whose heights count units.

    The names below the axis have places in columns from the left edge of the first one: 0.5 is its
    middle. Those that have no room are left out. The mark, a dashed line to compare with, has one.
    """
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

    # The key: some shades between its two ends.
    start, half = 0.4 * WIDTH, _KEY_HEIGHT / 2
    end, middle = start + _KEY_STEPS * _KEY_WIDTH, drawing.height - PAD - half
    for step, value in enumerate(np.linspace(low, high, _KEY_STEPS).tolist()):
        at = start + step * _KEY_WIDTH
        drawing.box((at, at + _KEY_WIDTH - 1), (middle - half, middle + half), shade(value))
    drawing.text(start - GAP, middle, key(low), anchor="end", size=SMALL)
    drawing.text(end + GAP, middle, key(high), size=SMALL)
    return drawing.svg(label)


# ---- Lines and points ----------------------------------------------------------------------------

# Curves of the same number look alike in all charts of a page. Marks tell them apart without
# colours too, and where colours come again. The colours after the accent are told apart by those
# who see no red or green too (Okabe and Ito 2008), and mixed with the text's colour, so that they
# stand out on light and dark pages.
_HUES = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#808080")
_COLOURS = (ACCENT, *(f"color-mix(in srgb, currentColor 12%, {hue})" for hue in _HUES))
# With more points, the marks would hide the curve.
_MAX_MARKED = 25


def line_chart(
    name: str,
    values: Sequence[float],
    other_name: str,
    others: Sequence[float],
    *,
    label: str,
    axis: str,
) -> str:
    """Draw how a share changes from step 0 on, and another one to compare it with.

    The scale does not start at 0; both have equally many steps, at least two.
    """
    drawing = Drawing(190)
    limits, last = limits_of([*values, *others], 0.05), len(values) - 1
    beside = 7 + max(text_width(name, bold=True), text_width(other_name))
    axes = upright_axes(drawing, (0, last), limits, ticks(*limits, 6), axis=axis, beside=beside)
    axes.name_x(ticks(0, last, 11, integer=True), axis)
    # The names are at the ends of the lines, far enough apart to be read.
    height, other_height = axes.y(values[-1]), axes.y(others[-1])
    push = max(LINE_HEIGHT + 1 - abs(height - other_height), 0) / 2
    push = -push if height <= other_height else push
    for line_name, shares, style, end in (
        (other_name, others, stroke(SOFT, 1.1), other_height - push),
        (name, values, stroke(ACCENT, 2.2), height + push),
    ):
        style += "; stroke-linejoin: round"
        drawing.line(axes.points(range(last + 1), shares), style, line_name)
        drawing.text(axes.right + 7, end, line_name, bold=shares is values)
    return drawing.svg(label)


class Curve(NamedTuple):
    """A curve of `curve_chart`: its name and points, at least one.

    The number, from 0, of what it belongs to chooses colour and mark; its second curve is dashed.
    """

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
        points = axes.points(curve.steps, curve.values)
        draw(curve, points, points, curve.name)
    top = drawing.height - PAD - below + 5
    for curve, name in zip(curves, names, strict=True):
        middle = top + LINE_HEIGHT / 2
        draw(curve, [(PAD, middle), (PAD + 26, middle)], [(PAD + 13, middle)])
        drawing.text(PAD + 34, top + LINE_HEIGHT * len(name) / 2, name)
        top += LINE_HEIGHT * len(name) + 5
    return drawing.svg(label)


class Step(NamedTuple):
    """A step of `interval_chart`, drawn as ``o`` a dot, ``x`` a cross or ``D`` a diamond."""

    value: float
    interval: Point
    marker: str
    tooltip: str


def interval_chart(steps: Sequence[Step], *, label: str, axis: str, unit: str) -> str:
    """Draw a value with its interval for every step from 0 on, and a dashed line at zero."""
    drawing = Drawing(230)
    x_limits = (-0.5, len(steps) - 0.5)
    y_limits = limits_of([0.0, *(end for step in steps for end in step.interval)], 0.06)
    axes = upright_axes(drawing, x_limits, y_limits, ticks(*y_limits, 6), title=unit, axis=axis)
    axes.name_x(ticks(*x_limits, 11, integer=True), axis)
    drawing.line([(axes.left, axes.y(0)), (axes.right, axes.y(0))], DASHED)
    points = axes.points(range(len(steps)), [step.value for step in steps])
    drawing.line(points, stroke(ACCENT, 0.9))
    for (x, y), step in zip(points, steps, strict=True):
        ends = [(x, axes.y(end)) for end in step.interval]
        drawing.line(ends, stroke(ACCENT, 1.6, "; stroke-linecap: round"))
        style = stroke(ACCENT, 2.2) if step.marker == "x" else f"fill: {ACCENT}"
        drawing.path(mark_path(step.marker, x, y, 3.25), style, step.tooltip)
    return drawing.svg(label)


def calibration_chart(
    expected: Sequence[float],
    happened: Sequence[float],
    counts: Sequence[int],
    *,
    label: str,
    expected_name: str,
    happened_name: str,
) -> str:
    """Draw how often things happened, by the probability predicted, and how many answers these are.

    All are in bins of equal width from 0 to 1: mean of the probabilities and share that happened,
    NaN in an empty bin, and number of answers. Dots on the dashed diagonal are calibrated.
    """
    drawing = Drawing(350)
    scale = [(fifth / 5, f"{fifth / 5:.1f}") for fifth in range(6)]
    # Most of the height is for the dots.
    below = 75.0
    axes = upright_axes(
        drawing, (0, 1), (0, 1), scale, title=happened_name, axis=expected_name, below=below
    )
    for value, _ in scale:
        axes.upright(value, THIN)
    drawing.line([(axes.left, axes.bottom), (axes.right, axes.top)], DASHED)
    filled = [(e, h, n) for e, h, n in zip(expected, happened, counts, strict=True) if n]
    dots = [(axes.x(e), axes.y(h)) for e, h, _ in filled]
    drawing.line(dots, stroke(ACCENT, 1.1))
    for (x, y), (e, h, n) in zip(dots, filled, strict=True):
        drawing.dot(x, y, ACCENT, f"{e:.3f} predicted, {h:.3f} happened, {n:,} answers")
    top, bottom = axes.bottom + TITLE_HEIGHT + GAP, axes.bottom + below
    limits, left, right = (0, 1.25 * max(counts)), axes.left, axes.right
    bars = Axes(drawing, (0, 1), limits, left=left, top=top, right=right, bottom=bottom)
    width = 1 / len(counts)
    for number, n in enumerate(counts):
        start, middle = number * width, (number + 0.5) * width
        ends = middle - 0.43 * width, middle + 0.43 * width
        tooltip = f"{start:.1f} to {start + width:.1f}: {n:,} answers"
        bars.bar(ends, n, f"fill: {GREY}", tooltip)
        drawing.text(bars.x(middle), bars.y(n) - 7, _short(n), anchor="middle", size=9)
    bars.title("answers")
    bars.name_x(scale, expected_name)
    return drawing.svg(label)


def _short(n: int) -> str:
    """Write a count in at most four characters, as the bars are narrow."""
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if n >= 0.9995 * unit:
            value = n / unit
            return f"{value:.1f}{letter}" if value < 9.95 else f"{value:.0f}{letter}"
    return str(n)


# ---- A chart as a file ---------------------------------------------------------------------------

_MARGIN = 10.0


def picture(svg: str, title: str) -> str:
    """Return a chart as an SVG file with a title, light or dark as the browser's settings say."""
    lines = wrap(title, WIDTH - 2 * _MARGIN, bold=True)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert size is not None
    for mixed, own in ((SOFT, "var(--soft)"), (GREY, "var(--grey)")):
        svg = svg.replace(mixed, own)
    return pages.render(
        "picture.svg",
        margin=_MARGIN,
        line_height=LINE_HEIGHT,
        lines=lines,
        top=LINE_HEIGHT * len(lines) + 2 * _MARGIN,
        width=float(size[1]),
        height=float(size[2]),
        chart=pages.Html(svg.removeprefix("<svg ")),
    )
