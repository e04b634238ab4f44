"""Draw the charts of pages as SVG, in the colours and the font of the page.

Every chart has a label for screen readers. Lengths are in units of the SVG, in which every chart is
340 wide; y grows downwards. First come tools that all charts share, then the charts: `dot_chart`,
`share_chart`, `bar_panels` and `curve_chart`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, cos, floor, isnan, log10, nan, pi, sin
from typing import NamedTuple

from common.pages import Html

import pandas as pd

# Colours in CSS. They adapt to the light or dark theme of the page.
TEXT = "currentColor"
ACCENT = "rgb(var(--accent))"
LINE = "var(--line)"
SOFT = "color-mix(in srgb, currentColor 70%, Canvas)"
GREY = "color-mix(in srgb, currentColor 40%, Canvas)"
# Width of a chart. It is the width of a phone, so that the text of a chart is readable there.
WIDTH = 340.0
# Font size of most texts.
_FONT_SIZE = 11.0
# Font size of tick labels, and of titles above axes.
SMALL = 10.0
# SVG places a text by its baseline. The middle of the letters is above the baseline by this share
# of the font size.
_MIDDLE_ABOVE_BASELINE = 0.36
ROW_HEIGHT = 21.0
LINE_HEIGHT = 13.5
# Free space around a drawing.
PAD = 3.0
# Free space between an axis and the text to its left or right.
GAP = 5.0
# Distance from axes to the middle of the line of small text above or below them.
_TO_SMALL_TEXT = 9.0
# Height of a row of tick labels.
TICK_HEIGHT = 17.0
# Height of a title above the axes.
TITLE_HEIGHT = 18.0

# A point (x, y).
Point = tuple[float, float]
# The low and the high end of an interval.
Interval = tuple[float, float]
# A value on a scale, and its label.
Tick = tuple[float, str]

# Widths of characters in hundredths of the font size. The font of the page is not known, so these
# are the widths of a rather wide font. Each entry gives a width and its characters.
_WIDTHS = {
    character: width
    for width, characters in {
        28: "ijlIJ'", 32: " ,.", 35: "/:;\\|f-", 39: "()[]t!", 42: 'r"', 51: "*_`sz?", 55: "cL",
        59: "FkvxyP", 61: "TYaoe", 63: "ESbdghnpqu$0123456789{}", 69: "KAVBRXZC", 76: "UHNDG",
        79: "&OQ", 84: "w#+<=>^~−M", 97: "%m", 100: "W@",
    }.items()
    for character in characters
}  # fmt: skip
# Width of all other characters below U+1100, such as Greek letters, in the same unit.
_USUAL_WIDTH = 65
# Width of all characters from U+1100 on, which belong to wider scripts such as Chinese.
_WIDE_WIDTH = 100


def text_width(text: str, size: float = _FONT_SIZE, *, bold: bool = False) -> float:
    """Return an upper estimate of the width of a text."""
    hundredths = 0
    for character in text:
        other_width = _USUAL_WIDTH if character < "\u1100" else _WIDE_WIDTH
        hundredths += _WIDTHS.get(character, other_width)
    bold_factor = 1.15 if bold else 1
    return hundredths * size / 100 * bold_factor


def wrap(text: str, width: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines: after spaces if possible, else after underscores, else anywhere."""
    lines = []
    while text:
        n_fitting = _count_fitting(text, width, bold=bold)
        end = len(text) if n_fitting == len(text) else _find_break(text, n_fitting)
        lines.append(text[:end].rstrip())
        text = text[end:]
    return lines or [""]


def _count_fitting(text: str, width: float, *, bold: bool) -> int:
    """Return how many characters at the beginning of a text fit into a width; at least 1."""
    width_so_far = 0.0
    for n_before, character in enumerate(text):
        width_so_far += text_width(character, bold=bold)
        if width_so_far > width:
            return max(1, n_before)
    return len(text)


def _find_break(text: str, n_fitting: int) -> int:
    """Return how many characters to put on the first line of a text that is too long for one line.

    `n_fitting` characters fit on the line. The line ends after a space if possible, else after an
    underscore, else after `n_fitting` characters.
    """
    # A space at the end of a line is not drawn. So the space may also be the character after the
    # `n_fitting` characters: search one character further.
    after_space = text.rfind(" ", 0, n_fitting + 1) + 1
    after_underscore = text.rfind("_", 0, n_fitting) + 1
    # `rfind` returns -1 if there is no such character. The position after it is then 0.
    return after_space or after_underscore or n_fitting


# ---- Scales --------------------------------------------------------------------------------------


def _limits_of(values: Sequence[float], margin: float) -> Interval:
    """Return the ends of a scale that holds all values.

    `margin` is the free space at both ends, as a share of the range of the values.
    """
    low = min(values)
    high = max(values)
    if low == high:
        spread = 0.05 * abs(low) or 0.05
        low -= spread
        high += spread
    return low - margin * (high - low), high + margin * (high - low)


def ticks(low: float, high: float, n_steps: int, *, integer: bool = False) -> list[Tick]:
    """Return round numbers on a scale from `low` to `high`, with their labels.

    There are about `n_steps` steps between the numbers, and at least two numbers. If `integer`, the
    numbers are whole.
    """
    # Take the first step that has at least two multiples on the scale; `step` and `values` keep it
    # after the loop. An end of the scale may miss a multiple by a rounding error: 1e-9 of a step is
    # tolerated.
    for step in _steps_to_try((high - low) / n_steps, integer):
        multiples = range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
        values = [multiple * step for multiple in multiples]
        if len(values) >= 2:
            break
    # Labels may differ from the values by a thousandth of a step, which nobody can see.
    digits = _count_decimals(values, tolerance=step / 1e3)
    return [(value, f"{value:.{digits}f}".replace("-", "−")) for value in values]


def _steps_to_try(least_step: float, integer: bool) -> list[float]:
    """Return round numbers as steps between ticks, in the order in which to try them.

    The first step is the smallest round number that is at least `least_step`. Smaller and smaller
    round numbers follow. If `integer`, the steps are whole numbers.
    """
    # Round numbers around `least_step`, in increasing order: 0.1, 0.2, 0.25, 0.5, 1, 2 and so on,
    # times a power of ten.
    magnitude = 10.0 ** floor(log10(least_step))
    steps = [magnitude * power * factor for power in (0.1, 1, 10) for factor in (1, 2, 2.5, 5)]
    if integer:
        steps = [step for step in steps if step >= 1 and step == round(step)] or [1.0]
    # The position of the smallest step that is at least `least_step`. 1e-9 allows for rounding
    # errors.
    first = next(k for k, step in enumerate(steps) if step >= least_step * (1 - 1e-9))
    first_and_smaller = steps[: first + 1]
    return first_and_smaller[::-1]


def _count_decimals(values: Sequence[float], tolerance: float) -> int:
    """Return how many decimals are needed to write all values with an error up to a tolerance."""
    digits = 0
    while any(abs(round(value, digits) - value) > tolerance for value in values):
        digits += 1
    return digits


def drop_overlapping(labels: Sequence[Tick], unit_length: float) -> list[Tick]:
    """Leave out each label that would overlap the label before it.

    `unit_length` is the distance in the drawing between two values of the scale that differ by 1.
    """
    shown: list[Tick] = []
    # The position at which the next label may begin.
    may_begin = float("-inf")
    for value, text in labels:
        middle = value * unit_length
        half_width = text_width(text, SMALL) / 2
        if middle - half_width >= may_begin:
            shown.append((value, text))
            may_begin = middle + half_width + GAP
    return shown


# ---- Drawing -------------------------------------------------------------------------------------


def _polygon(n: int, size: float, *, turn: float = 0, inner: float = 0) -> list[Point]:
    """Return the corners of a polygon or a star with n points, clockwise.

    `size` is the distance of the points from the centre. The first point is at the top. `turn`
    turns the figure clockwise. A turn of 1 moves each point to the place of the next point. If
    `inner` is not 0, the figure is a star, and `inner` is the distance of its inner corners from
    the centre.
    """
    corners = []
    # Even k are points, odd k are the inner corners between two points. A polygon has no inner
    # corners: their radius is 0.
    for k in range(2 * n):
        radius = inner if k % 2 else size
        # An inner corner lies halfway between two points, which are at k / 2 = 0, 1, 2 and so on.
        angle = (k / 2 + turn) * 2 * pi / n
        if radius:
            # y grows downwards, so the first point, at the angle 0, is above the centre.
            corners.append((radius * sin(angle), -radius * cos(angle)))
    return corners


# The corners of the marks, by Matplotlib's letter for each. The marks have about equal areas.
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
    start = f"M {_format(x)} {_format(y)}"
    if mark == "o":
        # "m" moves from the centre to the left end of the circle. Each "a" draws an arc, which is a
        # half circle: to the right end, which is one diameter away, and back to the left end. After
        # the two radii, 0 means no rotation, and 1 and 0 choose one of the possible arcs: both
        # halves run in the same direction.
        half_circle = f"a {radius:g} {radius:g} 0 1 0"
        diameter = f"{2 * radius:g}"
        return f"{start} m -{radius:g} 0 {half_circle} {diameter} 0 {half_circle} -{diameter} 0 z"
    # `_MARKS` holds the corners, relative to the centre. In the path, "m" moves from the centre to
    # the first corner without drawing, "l" draws lines from each corner to the next, and "z" draws
    # the last line back to the first corner.
    corners = [(radius * dx, radius * dy) for dx, dy in _MARKS[mark]]
    centre = (0.0, 0.0)
    steps = []
    for (x_from, y_from), (x_to, y_to) in pairwise([centre, *corners]):
        steps.append(f"{_format(x_to - x_from)} {_format(y_to - y_from)}")
    return f"{start} m {steps[0]} l {' '.join(steps[1:])} z"


def _format(value: float) -> str:
    """Return a number as text, with at most three decimals."""
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

    def line(
        self, points: Iterable[Point], style: str, tooltip: str = "", *, closed: bool = False
    ) -> None:
        """Add a line through points. If `closed`, the last point is joined to the first."""
        d = " L ".join(f"{_format(x)} {_format(y)}" for x, y in points)
        end = " z" if closed else ""
        self.path(f"M {d}{end}", style, tooltip)

    def box(self, x: Interval, y: Interval, style: str, tooltip: str = "") -> None:
        """Add a rectangle that extends over `x` horizontally and over `y` vertically."""
        corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])]
        self.line(corners, style, tooltip, closed=True)

    def text(
        self, x: float, y: float, text: str | Sequence[str], *, anchor: str = "start",
        colour: str = TEXT, size: float = _FONT_SIZE, bold: bool = False,
    ) -> None:  # fmt: skip
        """Add one or more lines of text, vertically centred at y.

        `anchor` says whether x is the start, the middle or the end of each line. `size` is the size
        of the font.
        """
        lines = [text] if isinstance(text, str) else text
        style = f"font-size: {size:g}px; text-anchor: {anchor}; fill: {colour}"
        style += "; font-weight: 700" if bold else ""
        # SVG needs the height of the baseline of each line, not of its middle.
        middle_of_first = y - LINE_HEIGHT * (len(lines) - 1) / 2
        first_baseline = middle_of_first + _MIDDLE_ABOVE_BASELINE * size
        for number, line in enumerate(lines):
            baseline = first_baseline + LINE_HEIGHT * number
            position = f'x="{_format(x)}" y="{_format(baseline)}"'
            content = escape(line, quote=False)
            self._parts.append(f'<text {position} style="{style}">{content}</text>')

    def note(
        self, x: float, y: float, text: str | Sequence[str], anchor: str, size: float = SMALL
    ) -> None:
        """Add a grey text in the style of tick labels, vertically centred at y."""
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
    # The values of the horizontal scale at the left and the right end, and the values of the
    # vertical scale at the bottom and the top.
    x_limits: Interval
    y_limits: Interval
    # The edges of the rectangle in the drawing.
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

    def bar(self, ends: Interval, value: float, style: str, tooltip: str) -> None:
        """Draw a bar from the bottom up to a value; `ends` are its ends on the horizontal scale."""
        sides = (self.x(ends[0]), self.x(ends[1]))
        self.drawing.box(sides, (self.y(value), self.bottom), style, tooltip)

    def vertical_line(self, value: float, style: str) -> None:
        """Draw a vertical line from bottom to top."""
        self.drawing.line([(self.x(value), self.bottom), (self.x(value), self.top)], style)

    def draw_x_axis(self, labels: Sequence[Tick], axis: str = "", *, grid: bool = False) -> None:
        """Draw the horizontal axis, with tick labels and the name `axis` below it.

        If `grid`, draw a vertical line at each label.
        """
        label_y = self.bottom + _TO_SMALL_TEXT
        for value, text in labels:
            if grid:
                self.vertical_line(value, THIN)
            self.drawing.note(self.x(value), label_y, text, anchor="middle")
        ends_of_axis = [(self.left, self.bottom), (self.right, self.bottom)]
        self.drawing.line(ends_of_axis, stroke(LINE, 0.8))
        if axis:
            middle = (self.left + self.right) / 2
            below_labels = self.bottom + TICK_HEIGHT
            name_y = below_labels + LINE_HEIGHT / 2
            self.drawing.note(middle, name_y, axis, anchor="middle", size=_FONT_SIZE)

    def title(self, text: str) -> None:
        """Write a title above the axes, at the left."""
        if text:
            self.drawing.note(self.left, self.top - _TO_SMALL_TEXT, text, anchor="start")


def axes_with_y_labels(
    drawing: Drawing, x_limits: Interval, y_limits: Interval, y_labels: Sequence[Tick], *,
    title: str = "", axis: str = "", above: float = 0, beside: float = 0, below: float = 0,
) -> Axes:  # fmt: skip
    """Return axes that fill a drawing, with the tick labels of the vertical axis at the left.

    `y_labels` holds the value and the text of each tick label. `title` is written above the axes.
    `axis` is the name of the horizontal axis. This function only leaves room for the name, which
    `draw_x_axis` writes. `above`, `beside` and `below` are the sizes of further free space above
    the axes, at their right, and below them.
    """
    # Nine parameters, because charts differ in the free space that they need on each side.

    # A tick label is centred at its tick, so half of the label at the end of an axis lies beyond
    # this end. Leave half the font size of tick labels, `SMALL / 2`, as free space for it.
    axes = Axes(
        drawing,
        x_limits,
        y_limits,
        left=PAD + GAP + max(text_width(text, SMALL) for _, text in y_labels),
        top=PAD + above + (TITLE_HEIGHT if title else SMALL / 2),
        right=WIDTH - PAD - max(beside, SMALL / 2),
        bottom=drawing.height - PAD - below - TICK_HEIGHT - (LINE_HEIGHT if axis else 0),
    )
    # Draw a thin line across the axes at each label, and write the label at the left of the line.
    for value, text in y_labels:
        y = axes.y(value)
        drawing.line([(axes.left, y), (axes.right, y)], THIN)
        drawing.note(axes.left - GAP, y, text, anchor="end")
    axes.title(title)
    return axes


# ---- Values on one scale, a row for each ---------------------------------------------------------

# Space between the names and the axes at their right.
_BEFORE = 7.0
# Space between the axes and the numbers at their right.
_BESIDE = 9.0
# Space between the numbers of the dots and the bars at their right.
_BETWEEN = 10.0
# Radius of a dot.
_RADIUS = 3.25
# A row stands for a group of answers. If the group has at least this share of all answers, the axis
# is made long enough for the row's interval. Intervals of smaller groups may be cut off at the ends
# of the axis.
_MIN_SHARE_FOR_SCALE = 0.02


class Dot(NamedTuple):
    """A row of `dot_chart`. Numbers that are NaN are not drawn."""

    label: str
    # The value, drawn as a dot.
    value: float
    # The interval of the value, drawn as a line.
    interval: Interval = (nan, nan)
    # A value to compare with, drawn as a diamond.
    mark: float = nan
    # A range to compare with, drawn as a grey box.
    band: Interval = (nan, nan)
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
    limits: Interval | None = None,
    chance: float = nan,
    axis: str = "",
) -> Html:
    """Draw values as dots on one horizontal axis, a row for each value.

    Parameters
    ----------
    dots
        The rows. If any has a share, bars for the shares are drawn at the right.
    label
        Text for screen readers.
    digits
        The number of decimals of the values.
    limits
        The ends of the axis. By default they fit the values.
    chance
        The value that guessing reaches, drawn as a dashed line; none by default.
    axis
        The name of the axis.
    """
    has_bars = not all(isnan(dot.share) for dot in dots)
    name_width = (0.36 if has_bars else 0.4) * WIDTH
    rows = [_write_row(dot, digits, name_width) for dot in dots]
    bottom = PAD + sum(row.height for row in rows)
    drawing = Drawing(bottom + TICK_HEIGHT + PAD + (LINE_HEIGHT if axis else 0))
    limits = limits or _fit_limits(dots, chance)

    # From left to right: names, dots, numbers, and perhaps bars and shares.
    numbers_width = _BESIDE + max(text_width(row.number) for row in rows)
    shares_width = _BESIDE + max(text_width(row.share) for row in rows)
    right_of_names = PAD + max(text_width(line) for row in rows for line in row.name)
    left = right_of_names + _BEFORE
    right = WIDTH - PAD - numbers_width
    bars = None
    if has_bars:
        # Dots get three quarters of the width, bars one quarter.
        dots_and_bars = right - left - _BETWEEN - shares_width
        right = left + 0.75 * dots_and_bars
        bars_left = right + numbers_width + _BETWEEN
        bars_right = bars_left + 0.25 * dots_and_bars
        largest_share = max(dot.share for dot in dots) or 1
        bars = Axes(drawing, (0, largest_share), (0, 1), bars_left, PAD, bars_right, bottom)
        bars.draw_x_axis([], "answers")
    axes = Axes(drawing, limits, (0, 1), left, PAD, right, bottom)
    unit_length = (right - left) / (limits[1] - limits[0])
    axes.draw_x_axis(drop_overlapping(ticks(*limits, 4), unit_length), axis, grid=True)
    if not isnan(chance):
        axes.vertical_line(chance, DASHED)
    top = PAD
    for row in rows:
        y = top + row.height / 2
        top += row.height
        drawing.text(right_of_names, y, row.name, anchor="end")
        _draw_dot(axes, row.dot, y, row.height, digits)
        drawing.text(axes.right + _BESIDE, y, row.number)
        if bars:
            _draw_share(bars, row.dot, y, row.share)
    return drawing.svg(label)


class _DotRow(NamedTuple):
    """A dot of `dot_chart`, and the texts of its row."""

    dot: Dot
    # The label, broken into lines.
    name: list[str]
    # The value of the dot, `dot.value`, as text. A row without a dot (NaN) has a diamond at the
    # value `dot.mark`; the text is this value then.
    number: str
    # The share of the answers, as a percentage.
    share: str
    height: float


def _write_row(dot: Dot, digits: int, name_width: float) -> _DotRow:
    """Return the texts of a dot's row. No line of its name is wider than `name_width`."""
    name = wrap(dot.label, name_width)
    return _DotRow(
        dot=dot,
        name=name,
        number=_write(dot.mark if isnan(dot.value) else dot.value, digits),
        share="<1%" if 0 < dot.share < 0.005 else f"{dot.share:.0%}",
        height=ROW_HEIGHT + LINE_HEIGHT * (len(name) - 1),
    )


def _draw_share(bars: Axes, dot: Dot, y: float, share: str) -> None:
    """Draw the bar of a row that is centred at y, with the text `share` at the bar's right."""
    tooltip = f"{dot.label}: {dot.n_answers:,.0f} answers"
    x_edges = (bars.left, bars.x(dot.share))
    bars.drawing.box(x_edges, (y - 7, y + 7), f"fill: {GREY}", tooltip)
    bars.drawing.text(bars.right + _BESIDE, y, share)


def _fit_limits(dots: Sequence[Dot], chance: float) -> Interval:
    """Return the two ends of an axis that is long enough for all dots.

    The interval and the band of a dot count only if the dot's share of the answers is unknown or at
    least `_MIN_SHARE_FOR_SCALE`. Groups of few answers have wide intervals, which would squeeze the
    chart. These intervals may reach beyond the axis.
    """
    values = [chance]
    for dot in dots:
        values += [dot.value, dot.mark]
        if isnan(dot.share) or dot.share >= _MIN_SHARE_FOR_SCALE:
            values += [*dot.interval, *dot.band]
    return _limits_of([value for value in values if not isnan(value)] or [0, 1], 0.1)


def _write(number: float, digits: int) -> str:
    """Return a number as text with `digits` decimals and a minus sign; NaN is a dash."""
    return "–" if isnan(number) else f"{number:.{digits}f}".replace("-", "−")


def _draw_dot(axes: Axes, dot: Dot, y: float, height: float, digits: int) -> None:
    """Draw a row of `dot_chart`, except for its texts and its bar; the row is centred at y.

    From back to front, there are a grey box (`dot.band`), a line for the interval, a diamond for a
    value to compare with (`dot.mark`), and a dot for the value. A part that is NaN is not drawn.
    The tooltips of diamond and dot show their values with `digits` decimals.
    """
    drawing = axes.drawing
    colour = ACCENT if dot.accent else TEXT
    has_band = not isnan(dot.band[0])
    if has_band:
        low, high = map(axes.x, dot.band)
        drawing.box((low, high), (y - height / 2, y + height / 2), f"fill: {LINE}")
    has_interval = not isnan(dot.interval[0])
    if has_interval:
        # Cut the interval off at the ends of the axis.
        axis_start, axis_end = axes.x_limits
        ends_on_axis = [min(max(end, axis_start), axis_end) for end in dot.interval]
        points = [(axes.x(end), y) for end in ends_on_axis]
        drawing.line(points, stroke(colour, 1.6, "; stroke-linecap: round"))
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
    limits: Interval | None = None,
    axis: str = "accuracy",
    value: str = "accuracy",
    mark: str = "majority",
) -> Html:
    """Draw for each group a dot, a diamond, and a bar for the group's share of all answers.

    `groups` has a row for each group. `value` and `mark` are the names of two columns, which hold
    the values of the dots and of the diamonds. The columns low and high hold the ends of the
    intervals, the columns share and n_answers the share and the number of the group's answers.
    Columns may be missing, and numbers may be NaN.
    """
    columns = [value, "low", "high", mark, "share", "n_answers"]
    # Columns that are missing become NaN.
    rows = groups.reindex(columns=columns).astype(float)
    dots = []
    for name, row in zip(rows.index, rows.to_dict("records"), strict=True):
        dots.append(
            Dot(
                label=f"{name}",
                value=row[value],
                interval=(row["low"], row["high"]),
                mark=row[mark],
                share=row["share"],
                n_answers=row["n_answers"],
            )
        )
    return dot_chart(dots, label=label, digits=3, limits=limits, axis=axis)


# ---- Bars side by side ---------------------------------------------------------------------------


class Panel(NamedTuple):
    """A small bar chart of `bar_panels`."""

    title: str
    # Heights of the bars, from 0 to 1.
    shares: Sequence[float]
    # Whether the bars have the page's accent colour, and the title is bold.
    accent: bool
    # Whether each bar is drawn faint, because it rests on few answers; () if no bar is.
    faint: Sequence[bool] = ()


# Height of a chart of bars without the titles.
_HEIGHT_OF_BARS = 150
# Approximate width of the labels of the vertical axis.
_WIDTH_OF_SHARES = 40
# Free space between the titles of neighbouring panels.
_BETWEEN_TITLES = 6
# Half the width of a bar. The unit is the distance between the middles of neighbouring bars of a
# panel.
_HALF_BAR = 0.4


def bar_panels(
    panels: Sequence[Panel],
    bar_names: Sequence[str],
    *,
    label: str,
    axis: str,
    reaches: float = 0.0,
) -> Html:
    """Draw small bar charts side by side, with one vertical axis and the same bar names in each.

    The vertical axis reaches at least the share `reaches`, so that several drawings can have the
    same axis.
    """
    width = (WIDTH - _WIDTH_OF_SHARES) / len(panels) - _BETWEEN_TITLES
    titles = [wrap(panel.title, width, bold=True) for panel in panels]
    n_lines = max(map(len, titles))
    above = LINE_HEIGHT * n_lines
    drawing = Drawing(_HEIGHT_OF_BARS + above)
    # The vertical axis ends at 20 %, 40 %, 60 %, 80 % or 100 %. This is the lowest of the five
    # shares that neither a bar nor `reaches` exceeds.
    highest = max(reaches, *(max(panel.shares) for panel in panels))
    n_fifths = 1
    while n_fifths < 5 and highest > n_fifths / 5:
        n_fifths += 1
    scale = [(n / 5, f"{n * 20}%") for n in range(n_fifths + 1)]
    # The middle of bar b of panel p is at p · pitch + b on the horizontal axis. Thus the gap
    # between panels is one bar wide.
    pitch = len(bar_names) + 1
    last_bar = len(panels) * pitch - 2
    # At both ends, leave room for half a bar (`_HALF_BAR`, 0.4) and 0.2 of free space.
    x_limits = (-0.6, last_bar + 0.6)
    y_limits = (0, n_fifths / 5)
    axes = axes_with_y_labels(drawing, x_limits, y_limits, scale, axis=axis, above=above)
    labels = []
    for number, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        for bar, (name, share) in enumerate(zip(bar_names, panel.shares, strict=True)):
            middle = number * pitch + bar
            labels.append((middle, name))
            style = f"fill: {ACCENT if panel.accent else GREY}"
            if panel.faint and panel.faint[bar]:
                style = f"fill: {LINE}; stroke: {GREY}; stroke-width: 0.8; stroke-dasharray: 2,2"
            tooltip = f"{panel.title}, {name}: {share:.0%}"
            axes.bar((middle - _HALF_BAR, middle + _HALF_BAR), share, style, tooltip)
        # All titles begin at the same height. A title of `n_lines` lines, the longest one, ends 6
        # above the axes. `text` needs the middle of a title.
        top_of_titles = axes.top - 6 - LINE_HEIGHT * n_lines
        middle_of_title = top_of_titles + LINE_HEIGHT * len(title) / 2
        left_of_title = axes.x(number * pitch - _HALF_BAR)
        drawing.text(left_of_title, middle_of_title, title, bold=panel.accent)
    axes.draw_x_axis(labels, axis)
    return drawing.svg(label)


# ---- Lines and points ----------------------------------------------------------------------------

# Colour-blind readers can tell these colours apart (Okabe and Ito 2008). They are mixed with the
# colour of the text, so that they contrast with light and with dark pages.
_HUES = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#808080")
_COLOURS = (ACCENT, *(f"color-mix(in srgb, currentColor 12%, {hue})" for hue in _HUES))
# Curves with more points have no marks, which would hide the curve.
_MAX_MARKED = 25
# Widths of the line of curve 0, and of the lines of all other curves.
_WIDTH_OF_FIRST_CURVE = 2.2
_WIDTH_OF_CURVE = 1.4
# Radius of the marks of curves.
_RADIUS_ON_CURVE = 2.75
# Height of a chart of curves without the legend.
_HEIGHT_OF_CURVES = 240
# Length of the short piece of each curve that the legend shows.
_LEGEND_LINE = 26
# Distance from the left end of the piece of a curve to the name of the curve.
_TO_LEGEND_NAME = 34
# Largest width of a name in the legend. The rest of the width is taken by the piece of the curve,
# and by free space at both sides of the name.
_LEGEND_NAME_WIDTH = WIDTH - 60
# Free space above each name in the legend.
_ABOVE_LEGEND_NAME = 5


class Curve(NamedTuple):
    """A curve of `curve_chart`."""

    name: str
    # Horizontal and vertical coordinates of the points.
    steps: Sequence[float]
    values: Sequence[float]
    # Number of the curve, from 0. It determines colour and mark. Curve 0 is thicker than others.
    number: int = 0
    is_dashed: bool = False


def curve_chart(curves: Sequence[Curve], *, label: str, axis: str, value_axis: str = "") -> Html:
    """Draw curves on common axes, and below them a legend with their names.

    The vertical axis fits the values, so it need not start at 0.
    """
    # The names in the legend, each broken into lines.
    names = [wrap(curve.name, _LEGEND_NAME_WIDTH) for curve in curves]
    legend_height = sum(LINE_HEIGHT * len(name) + _ABOVE_LEGEND_NAME for name in names)
    drawing = Drawing(_HEIGHT_OF_CURVES + legend_height)
    all_steps: list[float] = []
    all_values: list[float] = []
    for curve in curves:
        all_steps.extend(curve.steps)
        all_values.extend(curve.values)
    x_limits = _limits_of(all_steps, margin=0)
    y_limits = _limits_of(all_values, margin=0.05)
    axes = axes_with_y_labels(
        drawing,
        x_limits,
        y_limits,
        ticks(*y_limits, n_steps=6),
        title=value_axis,
        axis=axis,
        # The last label of the horizontal axis is centred at the right end of the axis, so half of
        # the label lies beyond this end. If it has two digits, half of it is one digit: leave room
        # for that.
        beside=text_width("0"),
        below=legend_height,
    )
    axes.draw_x_axis(ticks(*x_limits, n_steps=8, integer=True), axis)
    # Draw the first curves last, so that they lie above the others.
    for curve in sorted(curves, key=lambda curve: -curve.number):
        steps = map(axes.x, curve.steps)
        values = map(axes.y, curve.values)
        points = [*zip(steps, values, strict=True)]
        _draw_curve(drawing, curve, points, marked=points, tooltip=curve.name)
    top_of_legend = drawing.height - PAD - legend_height
    _draw_legend(drawing, curves, names, top=top_of_legend + _ABOVE_LEGEND_NAME)
    return drawing.svg(label)


def _draw_legend(
    drawing: Drawing, curves: Sequence[Curve], names: Sequence[Sequence[str]], top: float
) -> None:
    """Draw a short piece of each curve beside the curve's name.

    `names` has the lines of each name, and `top` is the height at which the first name begins.
    """
    for curve, name in zip(curves, names, strict=True):
        # The piece of the curve lies beside the middle of the first line of the name.
        y = top + LINE_HEIGHT / 2
        ends_of_piece = [(PAD, y), (PAD + _LEGEND_LINE, y)]
        middle_of_piece = (PAD + _LEGEND_LINE / 2, y)
        _draw_curve(drawing, curve, ends_of_piece, marked=[middle_of_piece])
        name_height = LINE_HEIGHT * len(name)
        drawing.text(PAD + _TO_LEGEND_NAME, top + name_height / 2, name)
        top += name_height + _ABOVE_LEGEND_NAME


def _draw_curve(
    drawing: Drawing,
    curve: Curve,
    points: Sequence[Point],
    marked: Sequence[Point],
    tooltip: str = "",
) -> None:
    """Draw a line through points in the style of a curve, and the curve's mark at marked points.

    The curve's number determines the style. Numbers 0, 1, 2 and so on take the colours in order.
    After the last colour, the first colour follows again. The line of curve 0 is the thickest.
    `tooltip` is shown at the line.
    """
    # `n_repeats` is how many times the colours have started again before this curve.
    n_repeats, colour_number = divmod(curve.number, len(_COLOURS))
    colour = _COLOURS[colour_number]
    dashes = "; stroke-dasharray: 5,2.2" if curve.is_dashed else ""
    width = _WIDTH_OF_FIRST_CURVE if curve.number == 0 else _WIDTH_OF_CURVE
    drawing.line(points, stroke(colour, width, dashes), tooltip)
    if len(curve.values) <= _MAX_MARKED:
        # Each time the colours start again, every colour gets the next mark. So curves of the same
        # colour have different marks.
        mark = MARKS[(colour_number + n_repeats) % len(MARKS)]
        marks = " ".join(_mark_path(mark, x, y, _RADIUS_ON_CURVE) for x, y in marked)
        drawing.path(marks, f"fill: {colour}")
