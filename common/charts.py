"""Draw the charts of pages as SVG, in the colours and the font of the page.

Every chart has a label for screen readers. Lengths are in points, and y grows downwards. The first
half of this module are tools that all charts share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, pairwise, takewhile
from math import ceil, cos, floor, isnan, log10, nan, pi, sin
from typing import NamedTuple

from common.pages import Html

import pandas as pd

# Colours, which follow the page: light or dark.
TEXT = "currentColor"
ACCENT = "rgb(var(--accent))"
LINE = "var(--line)"
SOFT = "color-mix(in srgb, currentColor 70%, Canvas)"
GREY = "color-mix(in srgb, currentColor 40%, Canvas)"
# Width of a chart. It is that of a phone, so that the text of the chart is readable on a phone.
WIDTH = 340.0
# Font size of most texts.
_FONT_SIZE = 11.0
# Font size of names beside axes.
SMALL = 10.0
ROW_HEIGHT = 21.0
LINE_HEIGHT = 13.5
# Free space around a drawing.
PAD = 3.0
# Free space between an axis and the text beside it.
GAP = 5.0
# Height of the names of ticks.
TICK_HEIGHT = 17.0
# Height of a title above the axes.
TITLE_HEIGHT = 18.0

# A point (x, y), or the two ends of an interval.
Point = tuple[float, float]
# A value on a scale, and its name.
Tick = tuple[float, str]

# Widths of characters in hundredths of the font size. They are those of a rather wide font, since
# the font of the page is not known.
_WIDTHS = {
    character: width
    for width, characters in {
        28: "ijlIJ'", 32: " ,.", 35: "/:;\\|f-", 39: "()[]t!", 42: 'r"', 51: "*_`sz?", 55: "cL",
        59: "FkvxyP", 61: "TYaoe", 63: "ESbdghnpqu$0123456789{}", 69: "KAVBRXZC", 76: "UHNDG",
        79: "&OQ", 84: "w#+<=>^~−M", 97: "%m", 100: "W@",
    }.items()
    for character in characters
}  # fmt: skip
# Widths of other characters: in Latin, Greek and similar scripts, and in wider scripts such as
# Chinese.
_USUAL = 65
_WIDE = 100


def text_width(text: str, size: float = _FONT_SIZE, *, bold: bool = False) -> float:
    """Return an upper estimate of the width of a text."""
    widths = (_WIDTHS.get(c) or (_USUAL if c < "\u1100" else _WIDE) for c in text)
    return sum(widths) * size / 100 * (1.15 if bold else 1)


def wrap(text: str, width: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines: after spaces if possible, else after underscores, else anywhere."""
    lines = []
    while text:
        widths = accumulate(text_width(character, bold=bold) for character in text)
        n_fitting = max(1, sum(1 for _ in takewhile(lambda end: end <= width, widths)))
        end = len(text) if n_fitting == len(text) else _find_break(text, n_fitting)
        lines.append(text[:end].rstrip())
        text = text[end:]
    return lines or [""]


def _find_break(text: str, n_fitting: int) -> int:
    """Return the number of characters of the first line, of which `n_fitting` fit into a line."""
    # A space at the end of the line need not fit.
    after_space = text.rfind(" ", 0, n_fitting + 1) + 1
    after_underscore = text.rfind("_", 0, n_fitting) + 1
    return after_space or after_underscore or n_fitting


# ---- Scales --------------------------------------------------------------------------------------


def _limits_of(values: Sequence[float], margin: float) -> Point:
    """Return the ends of a scale for values; the margin is a share of their range."""
    low = min(values)
    high = max(values)
    if low == high:
        spread = 0.05 * abs(low) or 0.05
        low -= spread
        high += spread
    return low - margin * (high - low), high + margin * (high - low)


def ticks(low: float, high: float, n_steps: int, *, integer: bool = False) -> list[Tick]:
    """Return round numbers on a scale, with their names.

    There are about `n_steps` steps between the numbers, and at least two numbers. If `integer`, the
    numbers are whole.
    """
    least_step = (high - low) / n_steps
    magnitude = 10.0 ** floor(log10(least_step))
    steps = [magnitude * power * factor for power in (0.1, 1, 10) for factor in (1, 2, 2.5, 5)]
    if integer:
        steps = [step for step in steps if step >= 1 and step == round(step)] or [1.0]
    # Take the smallest step that is large enough, then smaller steps until two numbers fit. 1e-9
    # allows for rounding.
    index = next((k for k, step in enumerate(steps) if step >= least_step * (1 - 1e-9)), 0)
    values: list[float] = []
    while index >= 0 and len(values) < 2:
        step = steps[index]
        multiples = range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
        values = [multiple * step for multiple in multiples]
        index -= 1
    # Show as many decimals as all numbers need.
    digits = next(d for d in range(20) if all(abs(round(v, d) - v) < step / 1e3 for v in values))
    return [(value, f"{value:.{digits}f}".replace("-", "−")) for value in values]


def thin(names: Sequence[Tick], width: float) -> list[Tick]:
    """Leave out names that would overlap the name before.

    `width` is the number of points of one unit of the scale.
    """
    shown: list[Tick] = []
    end = float("-inf")
    for value, text in names:
        half = text_width(text, SMALL) / 2
        if value * width - half >= end:
            shown.append((value, text))
            end = value * width + half + GAP
    return shown


# ---- Drawing -------------------------------------------------------------------------------------


def _polygon(n: int, size: float, *, turn: float = 0, inner: float = 0) -> list[Point]:
    """Return the corners of a polygon or a star with n points, clockwise.

    `size` is the distance of the points from the centre. The first point is at the top, or turned
    by `turn` of the angle between two points. If `inner` is not 0, it is the distance of the inner
    corners of a star.
    """
    corners = []
    for k in range(2 * n):
        radius = inner if k % 2 else size
        angle = (k / 2 + turn) * 2 * pi / n
        if radius:
            corners.append((radius * sin(angle), -radius * cos(angle)))
    return corners


# The corners of marks. The marks have about equal areas.
_MARKS = {
    "s": _polygon(4, 1.25, turn=0.5),
    "^": _polygon(3, 1.2),
    "D": _polygon(4, 1.2),
    "v": _polygon(3, 1.2, turn=0.5),
    "+": _polygon(4, 1.4, inner=0.55),
    "X": _polygon(4, 1.4, inner=0.55, turn=0.5),
    "*": _polygon(5, 1.3, inner=0.5),
}
MARKS = ("o", *_MARKS)


def _mark_path(mark: str, x: float, y: float, radius: float) -> str:
    """Return the SVG path of a mark, one of `MARKS`, around a point."""
    start = f"M {_number(x)} {_number(y)}"
    if mark == "o":
        r = f"{radius:g}"
        d = f"{2 * radius:g}"
        return f"{start} m -{r} 0 a {r} {r} 0 1 0 {d} 0 a {r} {r} 0 1 0 -{d} 0 z"
    corners = [(0.0, 0.0), *((radius * dx, radius * dy) for dx, dy in _MARKS[mark])]
    steps = [f"{_number(b[0] - a[0])} {_number(b[1] - a[1])}" for a, b in pairwise(corners)]
    return f"{start} m {steps[0]} l {' '.join(steps[1:])} z"


def _number(value: float) -> str:
    """Write a number with at most three decimals."""
    return f"{value:z.3f}".rstrip("0").rstrip(".")


def stroke(colour: str, width: float, more: str = "") -> str:
    """Return the CSS style of a line; `more` is added to it."""
    return f"fill: none; stroke: {colour}; stroke-width: {width:g}{more}"


THIN = stroke(LINE, 0.6)
DASHED = stroke(SOFT, 0.9, "; stroke-dasharray: 2.7,3.6")


class Drawing:
    """An SVG drawing, to which methods add shapes. Browsers show the tooltip of a shape."""

    def __init__(self, height: float) -> None:
        self.height = height
        self._parts: list[str] = []

    def path(self, d: str, style: str, tooltip: str = "") -> None:
        """Add a path, `d` in the syntax of SVG."""
        path = f'<path d="{d}" style="{style}"/>'
        if tooltip:
            path = f"<g><title>{escape(tooltip, quote=False)}</title>{path}</g>"
        self._parts.append(path)

    def line(self, points: Iterable[Point], style: str, tooltip: str = "", end: str = "") -> None:
        """Add a line through points; `end` " z" closes it."""
        d = " L ".join(f"{_number(x)} {_number(y)}" for x, y in points)
        self.path(f"M {d}{end}", style, tooltip)

    def box(self, x: Point, y: Point, style: str, tooltip: str = "") -> None:
        """Add a rectangle between two x and two y."""
        corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])]
        self.line(corners, style, tooltip, " z")

    def text(
        self, x: float, y: float, text: str | Sequence[str], *, anchor: str = "start",
        colour: str = TEXT, size: float = _FONT_SIZE, bold: bool = False,
    ) -> None:  # fmt: skip
        """Add one or more lines of text, vertically centred at y."""
        lines = [text] if isinstance(text, str) else text
        style = f"font-size: {size:g}px; text-anchor: {anchor}; fill: {colour}"
        style += "; font-weight: 700" if bold else ""
        top = y - LINE_HEIGHT * (len(lines) - 1) / 2 + 0.36 * size
        for number, line in enumerate(lines):
            position = f'x="{_number(x)}" y="{_number(top + LINE_HEIGHT * number)}"'
            content = escape(line, quote=False)
            self._parts.append(f'<text {position} style="{style}">{content}</text>')

    def note(
        self, x: float, y: float, text: str | Sequence[str], anchor: str, size: float = SMALL
    ) -> None:
        """Add a text beside the axes, in a soft colour."""
        self.text(x, y, text, anchor=anchor, colour=SOFT, size=size)

    def svg(self, label: str) -> Html:
        """Return the drawing for a page; screen readers read the label."""
        size = f'viewBox="0 0 {WIDTH:g} {self.height:g}"'
        start = f'<svg class="chart" {size} role="img" aria-label="{escape(label)}">'
        return Html("\n".join([start, *self._parts, "</svg>"]))


@dataclass(frozen=True)
class Axes:
    """A rectangle of a drawing, with a horizontal and a vertical scale."""

    drawing: Drawing
    # The values at the left and the right end, and at the bottom and the top.
    x_limits: Point
    y_limits: Point
    # The edges of the rectangle, in points.
    left: float
    top: float
    right: float
    bottom: float

    def x(self, value: float) -> float:
        """Return the position of a value on the horizontal scale."""
        low, high = self.x_limits
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the position of a value on the vertical scale."""
        low, high = self.y_limits
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def bar(self, ends: Point, value: float, style: str, tooltip: str) -> None:
        """Draw a bar from the bottom up to a value."""
        sides = (self.x(ends[0]), self.x(ends[1]))
        self.drawing.box(sides, (self.y(value), self.bottom), style, tooltip)

    def upright(self, value: float, style: str) -> None:
        """Draw a vertical line from bottom to top."""
        self.drawing.line([(self.x(value), self.bottom), (self.x(value), self.top)], style)

    def name_x(self, names: Sequence[Tick], axis: str = "", *, grid: bool = False) -> None:
        """Write the names of values, and the name of the axis, below the rectangle.

        If `grid`, draw a vertical line at each value.
        """
        for value, name in names:
            if grid:
                self.upright(value, THIN)
            self.drawing.note(self.x(value), self.bottom + 9, name, "middle")
        ends = [(self.left, self.bottom), (self.right, self.bottom)]
        self.drawing.line(ends, stroke(LINE, 0.8))
        if axis:
            middle = (self.left + self.right) / 2
            below = self.bottom + TICK_HEIGHT
            self.drawing.note(middle, below + LINE_HEIGHT / 2, axis, "middle", _FONT_SIZE)

    def title(self, text: str) -> None:
        """Write a title above the axes, at the left."""
        if text:
            self.drawing.note(self.left, self.top - 9, text, "start")


def upright_axes(
    drawing: Drawing, x_limits: Point, y_limits: Point, y_names: Sequence[Tick], *,
    title: str = "", axis: str = "", above: float = 0, beside: float = 0, below: float = 0,
) -> Axes:  # fmt: skip
    """Return axes that fill a drawing, and write the names of the vertical scale at their left.

    `above`, `beside` and `below` are the points that stay free above, at the right of and below the
    axes.
    """
    axes = Axes(
        drawing,
        x_limits,
        y_limits,
        left=PAD + GAP + max(text_width(name, SMALL) for _, name in y_names),
        top=PAD + above + (TITLE_HEIGHT if title else SMALL / 2),
        right=WIDTH - PAD - max(beside, SMALL / 2),
        bottom=drawing.height - PAD - below - TICK_HEIGHT - (LINE_HEIGHT if axis else 0),
    )
    for value, name in y_names:
        drawing.line([(axes.left, axes.y(value)), (axes.right, axes.y(value))], THIN)
        drawing.note(axes.left - GAP, axes.y(value), name, "end")
    axes.title(title)
    return axes


# ---- Values on one scale, a row for each ---------------------------------------------------------

# Points between the names and the scale.
_BEFORE = 7.0
# Points between the scale and the numbers at its right.
_BESIDE = 9.0
# Points between the two scales of a chart with bars.
_BETWEEN = 10.0
# Radius of a dot.
_RADIUS = 3.25
# Intervals of rows with a smaller share do not widen the scale, but are cut off.
_SHARE_THAT_COUNTS = 0.02


class Dot(NamedTuple):
    """A row of `dot_chart`. Numbers that are NaN are not drawn."""

    label: str
    # Drawn as a dot.
    value: float
    # Drawn as a line.
    interval: Point = (nan, nan)
    # Drawn as a diamond.
    mark: float = nan
    # Drawn as a grey box.
    band: Point = (nan, nan)
    # Whether dot and line have the page's accent colour.
    accent: bool = True
    # Share of the answers, drawn as a bar beside the dots.
    share: float = nan
    # Number of answers, for the tooltip of the bar.
    n_answers: float = nan


def dot_chart(
    dots: Sequence[Dot],
    *,
    label: str,
    digits: int,
    limits: Point | None = None,
    chance: float = nan,
    axis: str = "",
) -> Html:
    """Draw a row for each value, on one scale.

    Parameters
    ----------
    dots
        The rows. If any has a share, bars for the shares are drawn at the right.
    label
        Text for screen readers.
    digits
        The number of decimals of the values.
    limits
        The ends of the scale. By default the scale fits the values.
    chance
        A value that is drawn as a dashed line; none by default.
    axis
        The name of the scale.
    """
    has_bars = not all(isnan(dot.share) for dot in dots)
    names = [wrap(dot.label, (0.36 if has_bars else 0.4) * WIDTH) for dot in dots]
    heights = [ROW_HEIGHT + LINE_HEIGHT * (len(name) - 1) for name in names]
    bottom = PAD + sum(heights)
    drawing = Drawing(bottom + TICK_HEIGHT + PAD + (LINE_HEIGHT if axis else 0))
    limits = limits or _fit_limits(dots, chance)

    # From left to right: names, dots, numbers, and perhaps bars and shares.
    numbers = [_write(dot.mark if isnan(dot.value) else dot.value, digits) for dot in dots]
    shares = ["<1%" if 0 < dot.share < 0.005 else f"{dot.share:.0%}" for dot in dots]
    beside_dots = _BESIDE + max(map(text_width, numbers))
    beside_bars = _BESIDE + max(map(text_width, shares))
    right_of_names = PAD + max(text_width(line) for name in names for line in name)
    left = right_of_names + _BEFORE
    right = WIDTH - PAD - beside_dots
    bars = None
    if has_bars:
        # Dots get three quarters of the room, bars one quarter.
        room = right - left - _BETWEEN - beside_bars
        right = left + 0.75 * room
        start = right + beside_dots + _BETWEEN
        largest_share = max(dot.share for dot in dots) or 1
        bars = Axes(drawing, (0, largest_share), (0, 1), start, PAD, start + 0.25 * room, bottom)
        bars.name_x([], "answers")
    axes = Axes(drawing, limits, (0, 1), left, PAD, right, bottom)
    points_per_unit = (right - left) / (limits[1] - limits[0])
    axes.name_x(thin(ticks(*limits, 4), points_per_unit), axis, grid=True)
    if not isnan(chance):
        axes.upright(chance, DASHED)
    top = PAD
    for dot, name, number, share, height in zip(dots, names, numbers, shares, heights, strict=True):
        y = top + height / 2
        top += height
        drawing.text(right_of_names, y, name, anchor="end")
        _draw_dot(axes, dot, y, height, digits)
        drawing.text(axes.right + _BESIDE, y, number)
        if bars:
            tooltip = f"{dot.label}: {dot.n_answers:,.0f} answers"
            drawing.box((bars.left, bars.x(dot.share)), (y - 7, y + 7), f"fill: {GREY}", tooltip)
            drawing.text(bars.right + _BESIDE, y, share)
    return drawing.svg(label)


def _fit_limits(dots: Sequence[Dot], chance: float) -> Point:
    """Return the ends of a scale that holds all values, and the intervals that count."""
    values = [chance]
    for dot in dots:
        values += [dot.value, dot.mark]
        # A share of NaN, which is not known, counts.
        if not dot.share < _SHARE_THAT_COUNTS:
            values += [*dot.interval, *dot.band]
    return _limits_of([value for value in values if not isnan(value)] or [0, 1], 0.1)


def _write(number: float, digits: int) -> str:
    """Return a number as text with `digits` decimals and a minus sign; NaN is a dash."""
    return "–" if isnan(number) else f"{number:.{digits}f}".replace("-", "−")


def _draw_dot(axes: Axes, dot: Dot, y: float, height: float, digits: int) -> None:
    """Draw the band, interval, mark and value of a row that is centred at y."""
    drawing = axes.drawing
    colour = ACCENT if dot.accent else TEXT
    if not isnan(dot.band[0]):
        low, high = map(axes.x, dot.band)
        drawing.box((low, high), (y - height / 2, y + height / 2), f"fill: {LINE}")
    if not isnan(dot.interval[0]):
        least, most = axes.x_limits
        ends = [(axes.x(min(max(end, least), most)), y) for end in dot.interval]
        drawing.line(ends, stroke(colour, 1.6, "; stroke-linecap: round"))
    if not isnan(dot.mark):
        diamond = _mark_path("D", axes.x(dot.mark), y, _RADIUS)
        drawing.path(diamond, stroke(TEXT, 1), f"{dot.label}: {_write(dot.mark, digits)}")
    if not isnan(dot.value):
        circle = _mark_path("o", axes.x(dot.value), y, _RADIUS)
        drawing.path(circle, f"fill: {colour}", f"{dot.label}: {_write(dot.value, digits)}")


def share_chart(
    groups: pd.DataFrame,
    *,
    label: str,
    limits: Point | None = None,
    axis: str = "accuracy",
    value: str = "accuracy",
    mark: str = "majority",
) -> Html:
    """Draw for each group a dot, a diamond, and a bar for the group's share of all answers.

    `groups` has a row for each group. `value` and `mark` name its columns with the values of the
    dots and the diamonds. The columns low and high are the ends of intervals; further columns are
    share and n_answers. Columns may be missing, and numbers may be NaN.
    """
    columns = [value, "low", "high", mark, "share", "n_answers"]
    rows = groups.reindex(columns=columns).astype(float).itertuples(name=None)
    dots = [
        Dot(f"{name}", number, (low, high), diamond, share=share, n_answers=n_answers)
        for name, number, low, high, diamond, share, n_answers in rows
    ]
    return dot_chart(dots, label=label, digits=3, limits=limits, axis=axis)


# ---- Bars side by side ---------------------------------------------------------------------------


class Panel(NamedTuple):
    """A small bar chart of `bar_panels`."""

    title: str
    # Heights of the bars, from 0 to 1.
    shares: Sequence[float]
    # Whether the bars have the page's accent colour, and the title is bold.
    accent: bool
    # Whether each bar is faint, since it rests on few answers. Empty if none is.
    faint: Sequence[bool] = ()


def bar_panels(panels: Sequence[Panel], bar_names: Sequence[str], *, label: str, axis: str) -> Html:
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
    # The gap between panels is one bar wide.
    pitch = len(bar_names) + 1
    x_limits = (-0.6, len(panels) * pitch - 1.4)
    y_limits = (0, n_fifths / 5)
    axes = upright_axes(drawing, x_limits, y_limits, scale, axis=axis, above=above)
    named = []
    for number, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        for bar, (name, share) in enumerate(zip(bar_names, panel.shares, strict=True)):
            middle = number * pitch + bar
            named.append((middle, name))
            style = f"fill: {ACCENT if panel.accent else GREY}"
            if panel.faint and panel.faint[bar]:
                style = f"fill: {LINE}; stroke: {GREY}; stroke-width: 0.8; stroke-dasharray: 2,2"
            tooltip = f"{panel.title}, {name}: {share:.0%}"
            axes.bar((middle - 0.4, middle + 0.4), share, style, tooltip)
        # All titles begin at the same height, however many lines they have.
        height = axes.top - 6 - LINE_HEIGHT * (n_lines - len(title) / 2)
        drawing.text(axes.x(number * pitch - 0.4), height, title, bold=panel.accent)
    axes.name_x(named, axis)
    return drawing.svg(label)


# ---- Lines and points ----------------------------------------------------------------------------

# Colour-blind readers can tell these colours apart (Okabe and Ito 2008). The colours are mixed with
# that of the text, for light and dark pages. Curves that share a colour have different marks.
_HUES = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#808080")
_COLOURS = (ACCENT, *(f"color-mix(in srgb, currentColor 12%, {hue})" for hue in _HUES))
# Curves with more points have no marks, which would hide the curve.
_MAX_MARKED = 25


class Curve(NamedTuple):
    """A curve of `curve_chart`."""

    name: str
    # Horizontal and vertical coordinates of the points.
    steps: Sequence[float]
    values: Sequence[float]
    # Determines colour and mark, from 0. Curve 0 is thicker than the others.
    number: int = 0
    is_dashed: bool = False


def curve_chart(curves: Sequence[Curve], *, label: str, axis: str, value_axis: str = "") -> Html:
    """Draw curves on one scale, which may not start at 0, and their names below."""
    names = [wrap(curve.name, WIDTH - 60) for curve in curves]
    below = sum(LINE_HEIGHT * len(name) + 5 for name in names)
    drawing = Drawing(240 + below)
    x_limits = _limits_of([step for curve in curves for step in curve.steps], 0)
    y_limits = _limits_of([value for curve in curves for value in curve.values], 0.05)
    axes = upright_axes(
        drawing,
        x_limits,
        y_limits,
        ticks(*y_limits, 6),
        title=value_axis,
        axis=axis,
        beside=text_width("0"),
        below=below,
    )
    axes.name_x(ticks(*x_limits, 8, integer=True), axis)

    def draw(curve: Curve, points: list[Point], marked: list[Point], tooltip: str = "") -> None:
        # Each time the colours are used up, marks move on by one.
        turn, hue = divmod(curve.number, len(_COLOURS))
        dashes = "; stroke-dasharray: 5,2.2" if curve.is_dashed else ""
        drawing.line(points, stroke(_COLOURS[hue], 1.4 if curve.number else 2.2, dashes), tooltip)
        if len(curve.values) <= _MAX_MARKED:
            mark = MARKS[(hue + turn) % len(MARKS)]
            marks = " ".join(_mark_path(mark, *point, 2.75) for point in marked)
            drawing.path(marks, f"fill: {_COLOURS[hue]}")

    # Draw the first curves last, so that they lie above the others.
    for curve in sorted(curves, key=lambda curve: -curve.number):
        steps = map(axes.x, curve.steps)
        values = map(axes.y, curve.values)
        points = [*zip(steps, values, strict=True)]
        draw(curve, points, points, curve.name)
    # The legend: a short piece of each curve beside its name.
    top = drawing.height - PAD - below + 5
    for curve, name in zip(curves, names, strict=True):
        middle = top + LINE_HEIGHT / 2
        draw(curve, [(PAD, middle), (PAD + 26, middle)], [(PAD + 13, middle)])
        drawing.text(PAD + 34, top + LINE_HEIGHT * len(name) / 2, name)
        top += LINE_HEIGHT * len(name) + 5
    return drawing.svg(label)
