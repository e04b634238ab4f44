"""The charts of the pages: SVG in a page's colours, light or dark, labelled for screen readers.

First what all draw with, in the page's own font; lengths are in points, y goes downwards.
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

TEXT, ACCENT, LINE = "currentColor", "rgb(var(--accent))", "var(--line)"
SOFT = "color-mix(in srgb, currentColor 70%, Canvas)"
GREY = "color-mix(in srgb, currentColor 40%, Canvas)"
# As wide as a phone, where the text of a chart must stay readable.
WIDTH = 340.0
_FONT_SIZE = 11.0
SMALL = 10.0
ROW_HEIGHT = 21.0
LINE_HEIGHT = 13.5
# What stays free around everything, and between an axis and what is written beside it.
PAD, GAP = 3.0, 5.0
# Height of the names of ticks, and of a title above the axes.
TICK_HEIGHT, TITLE_HEIGHT = 17.0, 18.0

Point = tuple[float, float]
Tick = tuple[float, str]

# Widths of characters in hundredths of the font's size, of a font that is wider than most.
_WIDTHS = {
    character: width
    for width, characters in {
        28: "ijlIJ'", 32: " ,.", 35: "/:;\\|f-", 39: "()[]t!", 42: 'r"', 51: "*_`sz?", 55: "cL",
        59: "FkvxyP", 61: "TYaoe", 63: "ESbdghnpqu$0123456789{}", 69: "KAVBRXZC", 76: "UHNDG",
        79: "&OQ", 84: "w#+<=>^~−M", 97: "%m", 100: "W@",
    }.items()
    for character in characters
}  # fmt: skip
# Where nothing is known: letters of Latin and Greek, and of scripts with wider ones.
_USUAL, _WIDE = 65, 100


def text_width(text: str, size: float = _FONT_SIZE, *, bold: bool = False) -> float:
    """Return about how wide a text is, rather too much than too little."""
    widths = (_WIDTHS.get(c) or (_USUAL if c < "\u1100" else _WIDE) for c in text)
    return sum(widths) * size / 100 * (1.15 if bold else 1)


def wrap(text: str, width: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines: after spaces, in longer words after underscores, else anywhere."""
    lines = []
    while text:
        ends = accumulate(text_width(character, bold=bold) for character in text)
        cut = room = max(1, len([*takewhile(lambda end: end <= width, ends)]))
        if room < len(text):
            cut = text.rfind(" ", 0, room + 1) + 1 or text.rfind("_", 0, room) + 1 or room
        lines.append(text[:cut].rstrip())
        text = text[cut:]
    return lines or [""]


# ---- Scales --------------------------------------------------------------------------------------


def _limits_of(values: Sequence[float], margin: float) -> Point:
    """Return ends of a scale for values, with a part of their range as a margin."""
    low, high = min(values), max(values)
    if low == high:
        spread = 0.05 * abs(low) or 0.05
        low, high = low - spread, high + spread
    return low - margin * (high - low), high + margin * (high - low)


def ticks(low: float, high: float, n_steps: int, *, integer: bool = False) -> list[Tick]:
    """Return round numbers on a scale, two or more, about so many steps apart, and their names."""
    least = (high - low) / n_steps
    size = 10.0 ** floor(log10(least))
    steps = [size * power * factor for power in (0.1, 1, 10) for factor in (1, 2, 2.5, 5)]
    if integer:
        steps = [step for step in steps if step >= 1 and step == round(step)] or [1.0]
    enough = next((k for k, step in enumerate(steps) if step >= least * (1 - 1e-9)), 0)
    places: list[float] = []
    while enough >= 0 and len(places) < 2:
        step = steps[enough]
        numbers = range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
        places, enough = [number * step for number in numbers], enough - 1
    digits = next(d for d in range(20) if all(abs(round(p, d) - p) < step / 1e3 for p in places))
    return [(place, f"{place:.{digits}f}".replace("-", "−")) for place in places]


def thin(names: Sequence[Tick], width: float) -> list[Tick]:
    """Leave out names that have no room beside the one before, at so many points a unit."""
    shown: list[Tick] = []
    end = float("-inf")
    for place, text in names:
        half = text_width(text, SMALL) / 2
        if place * width - half >= end:
            shown.append((place, text))
            end = place * width + half + GAP
    return shown


# ---- Drawing -------------------------------------------------------------------------------------


def _polygon(n: int, size: float, *, turn: float = 0, inner: float = 0) -> list[Point]:
    """Return the corners of a polygon, the first one at the top, or of a star with inner ones."""
    angles = [(k / 2 + turn) * 2 * pi / n for k in range(2 * n)]
    corners = zip((size, inner) * n, angles, strict=True)
    return [(radius * sin(a), -radius * cos(a)) for radius, a in corners if radius]


# Of about equal area.
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
    """Return a mark around a point as a path that begins there: one of `MARKS`."""
    r, d, start = f"{radius:g}", f"{2 * radius:g}", f"M {_number(x)} {_number(y)}"
    if mark == "o":
        return f"{start} m -{r} 0 a {r} {r} 0 1 0 {d} 0 a {r} {r} 0 1 0 -{d} 0 z"
    corners = [(0.0, 0.0), *((radius * dx, radius * dy) for dx, dy in _MARKS[mark])]
    steps = [f"{_number(b[0] - a[0])} {_number(b[1] - a[1])}" for a, b in pairwise(corners)]
    return f"{start} m {steps[0]} l {' '.join(steps[1:])} z"


def _number(value: float) -> str:
    return f"{value:z.3f}".rstrip("0").rstrip(".")


def stroke(colour: str, width: float, more: str = "") -> str:
    """Return the style of a line."""
    return f"fill: none; stroke: {colour}; stroke-width: {width:g}{more}"


THIN = stroke(LINE, 0.6)
DASHED = stroke(SOFT, 0.9, "; stroke-dasharray: 2.7,3.6")


class Drawing:
    """An SVG drawing under way; a tooltip is what browsers show beside the pointer."""

    def __init__(self, height: float) -> None:
        self.height = height
        self._parts: list[str] = []

    def path(self, d: str, style: str, tooltip: str = "") -> None:
        """Add a path."""
        path = f'<path d="{d}" style="{style}"/>'
        if tooltip:
            path = f"<g><title>{escape(tooltip, quote=False)}</title>{path}</g>"
        self._parts.append(path)

    def line(self, points: Iterable[Point], style: str, tooltip: str = "", end: str = "") -> None:
        """Add a line through points."""
        d = " L ".join(f"{_number(x)} {_number(y)}" for x, y in points)
        self.path(f"M {d}{end}", style, tooltip)

    def box(self, x: Point, y: Point, style: str, tooltip: str = "") -> None:
        """Add a rectangle between two places in each direction."""
        corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])]
        self.line(corners, style, tooltip, " z")

    def text(
        self, x: float, y: float, text: str | Sequence[str], *, anchor: str = "start",
        colour: str = TEXT, size: float = _FONT_SIZE, bold: bool = False,
    ) -> None:  # fmt: skip
        """Add a text whose middle has this height, or lines of text around it."""
        lines = [text] if isinstance(text, str) else text
        style = f"font-size: {size:g}px; text-anchor: {anchor}; fill: {colour}"
        style += "; font-weight: 700" if bold else ""
        top = y - LINE_HEIGHT * (len(lines) - 1) / 2 + 0.36 * size
        for number, line in enumerate(lines):
            place = f'x="{_number(x)}" y="{_number(top + LINE_HEIGHT * number)}"'
            content = escape(line, quote=False)
            self._parts.append(f'<text {place} style="{style}">{content}</text>')

    def note(
        self, x: float, y: float, text: str | Sequence[str], anchor: str, size: float = SMALL
    ) -> None:
        """Add a text of the axes."""
        self.text(x, y, text, anchor=anchor, colour=SOFT, size=size)

    def svg(self, label: str) -> Html:
        """Return the drawing for a page; the label says to screen readers what it shows."""
        size = f'viewBox="0 0 {WIDTH:g} {self.height:g}"'
        start = f'<svg class="chart" {size} role="img" aria-label="{escape(label)}">'
        return Html("\n".join([start, *self._parts, "</svg>"]))


@dataclass(frozen=True)
class Axes:
    """A part of a drawing with a scale to the right, and one that goes up."""

    drawing: Drawing
    x_limits: Point
    y_limits: Point
    left: float
    top: float
    right: float
    bottom: float

    def x(self, value: float) -> float:
        """Return where a value is."""
        low, high = self.x_limits
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return where a value is."""
        low, high = self.y_limits
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def bar(self, ends: Point, value: float, style: str, tooltip: str) -> None:
        """Draw a bar from the bottom up."""
        sides = self.x(ends[0]), self.x(ends[1])
        self.drawing.box(sides, (self.y(value), self.bottom), style, tooltip)

    def upright(self, value: float, style: str) -> None:
        """Draw a line from bottom to top."""
        self.drawing.line([(self.x(value), self.bottom), (self.x(value), self.top)], style)

    def name_x(self, names: Sequence[Tick], axis: str = "", *, grid: bool = False) -> None:
        """Write names below, with lines above them if asked for, and what they are."""
        for value, name in names:
            if grid:
                self.upright(value, THIN)
            self.drawing.note(self.x(value), self.bottom + 9, name, "middle")
        ends = [(self.left, self.bottom), (self.right, self.bottom)]
        self.drawing.line(ends, stroke(LINE, 0.8))
        if axis:
            middle, below = (self.left + self.right) / 2, self.bottom + TICK_HEIGHT
            self.drawing.note(middle, below + LINE_HEIGHT / 2, axis, "middle", _FONT_SIZE)

    def title(self, text: str) -> None:
        """Write what is drawn above, at the left."""
        if text:
            self.drawing.note(self.left, self.top - 9, text, "start")


def upright_axes(
    drawing: Drawing, x_limits: Point, y_limits: Point, y_names: Sequence[Tick], *,
    title: str = "", axis: str = "", above: float = 0, beside: float = 0, below: float = 0,
) -> Axes:  # fmt: skip
    """Return axes that fill a drawing but for what is around them; draw the names at the left."""
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

# Between names and scale, scale and numbers, and the two scales of a chart with bars.
_BEFORE, _BESIDE, _BETWEEN = 7.0, 9.0, 10.0
_RADIUS = 3.25
# An interval of a row with a smaller share does not widen the scale, but is cut off.
_SHARE_THAT_COUNTS = 0.02


class Dot(NamedTuple):
    """A row of `dot_chart`, NaN: none; interval a line, mark a diamond, band grey, share a bar."""

    label: str
    value: float
    interval: Point = (nan, nan)
    mark: float = nan
    band: Point = (nan, nan)
    accent: bool = True
    share: float = nan
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
    """Draw values, a row each, on a scale with limits, else fitted; chance is a dashed line."""
    has_bars = not all(isnan(dot.share) for dot in dots)
    names = [wrap(dot.label, (0.36 if has_bars else 0.4) * WIDTH) for dot in dots]
    heights = [ROW_HEIGHT + LINE_HEIGHT * (len(name) - 1) for name in names]
    bottom = PAD + sum(heights)
    drawing = Drawing(bottom + TICK_HEIGHT + PAD + (LINE_HEIGHT if axis else 0))
    if limits is None:
        values = [chance, *(number for dot in dots for number in (dot.value, dot.mark))]
        matter = [dot for dot in dots if not dot.share < _SHARE_THAT_COUNTS]
        values += [end for dot in matter for ends in (dot.interval, dot.band) for end in ends]
        limits = _limits_of([value for value in values if not isnan(value)] or [0, 1], 0.1)

    def write(number: float) -> str:
        return "–" if isnan(number) else f"{number:.{digits}f}".replace("-", "−")

    numbers = [write(dot.mark if isnan(dot.value) else dot.value) for dot in dots]
    shares = ["<1%" if 0 < dot.share < 0.005 else f"{dot.share:.0%}" for dot in dots]
    beside_dots, beside_bars = (_BESIDE + max(map(text_width, own)) for own in (numbers, shares))
    right_of_names = PAD + max(text_width(line) for name in names for line in name)
    left, right = right_of_names + _BEFORE, WIDTH - PAD - beside_dots
    bars = None
    if has_bars:
        # Dots get three quarters of the room, bars one.
        room = right - left - _BETWEEN - beside_bars
        right = left + 0.75 * room
        start, most = right + beside_dots + _BETWEEN, max(dot.share for dot in dots) or 1
        bars = Axes(drawing, (0, most), (0, 1), start, PAD, start + 0.25 * room, bottom)
        bars.name_x([], "answers")
    axes = Axes(drawing, limits, (0, 1), left, PAD, right, bottom)
    axes.name_x(thin(ticks(*limits, 4), (right - left) / (limits[1] - limits[0])), axis, grid=True)
    if not isnan(chance):
        axes.upright(chance, DASHED)
    ends_of_rows = accumulate(heights, initial=PAD)
    for dot, name, number, share, height in zip(dots, names, numbers, shares, heights, strict=True):
        y = next(ends_of_rows) + height / 2
        drawing.text(right_of_names, y, name, anchor="end")
        colour = ACCENT if dot.accent else TEXT
        if not isnan(dot.band[0]):
            low, high = map(axes.x, dot.band)
            drawing.box((low, high), (y - height / 2, y + height / 2), f"fill: {LINE}")
        if not isnan(dot.interval[0]):
            ends = [(axes.x(min(max(end, limits[0]), limits[1])), y) for end in dot.interval]
            drawing.line(ends, stroke(colour, 1.6, "; stroke-linecap: round"))
        if not isnan(dot.mark):
            diamond = _mark_path("D", axes.x(dot.mark), y, _RADIUS)
            drawing.path(diamond, stroke(TEXT, 1), f"{dot.label}: {write(dot.mark)}")
        if not isnan(dot.value):
            circle = _mark_path("o", axes.x(dot.value), y, _RADIUS)
            drawing.path(circle, f"fill: {colour}", f"{dot.label}: {number}")
        drawing.text(axes.right + _BESIDE, y, number)
        if bars:
            tooltip = f"{dot.label}: {dot.n_answers:,.0f} answers"
            drawing.box((bars.left, bars.x(dot.share)), (y - 7, y + 7), f"fill: {GREY}", tooltip)
            drawing.text(bars.right + _BESIDE, y, share)
    return drawing.svg(label)


def share_chart(
    groups: pd.DataFrame,
    *,
    label: str,
    limits: Point | None = None,
    axis: str = "accuracy",
    value: str = "accuracy",
    mark: str = "majority",
) -> Html:
    """Draw a value and a diamond for every group, and a bar for its share of all answers.

    `value` and `mark` name the columns of the value and of the diamond; low, high, share and
    n_answers are further columns. A column may be missing, a number may be NaN.
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
    """A small bar chart of `bar_panels`, shares from 0 to 1; faint bars rest on too little."""

    title: str
    shares: Sequence[float]
    accent: bool
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


# ---- Lines and points ----------------------------------------------------------------------------

# Told apart by those who see no red or green too (Okabe and Ito 2008), mixed with the text's colour
# for light and dark pages; marks tell curves apart where colours come again.
_HUES = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#808080")
_COLOURS = (ACCENT, *(f"color-mix(in srgb, currentColor 12%, {hue})" for hue in _HUES))
# With more points, the marks would hide the curve.
_MAX_MARKED = 25


class Curve(NamedTuple):
    """A curve of `curve_chart`; the number, from 0, of its subject chooses colour and mark."""

    name: str
    steps: Sequence[float]
    values: Sequence[float]
    number: int = 0
    is_dashed: bool = False


def curve_chart(curves: Sequence[Curve], *, label: str, axis: str, value_axis: str = "") -> Html:
    """Draw curves on one scale, which does not start at 0, their names below, in their order."""
    names = [wrap(curve.name, WIDTH - 60) for curve in curves]
    below = sum(LINE_HEIGHT * len(name) + 5 for name in names)
    drawing = Drawing(240 + below)
    x_limits = _limits_of([step for curve in curves for step in curve.steps], 0)
    y_limits = _limits_of([value for curve in curves for value in curve.values], 0.05)
    scale, room = ticks(*y_limits, 6), {"beside": text_width("0"), "below": below}
    axes = upright_axes(drawing, x_limits, y_limits, scale, title=value_axis, axis=axis, **room)
    axes.name_x(ticks(*x_limits, 8, integer=True), axis)

    def draw(curve: Curve, points: list[Point], marked: list[Point], tooltip: str = "") -> None:
        turn, hue = divmod(curve.number, len(_COLOURS))
        dashes = "; stroke-dasharray: 5,2.2" if curve.is_dashed else ""
        drawing.line(points, stroke(_COLOURS[hue], 1.4 if curve.number else 2.2, dashes), tooltip)
        if len(curve.values) <= _MAX_MARKED:
            mark = MARKS[(hue + turn) % len(MARKS)]
            marks = " ".join(_mark_path(mark, *point, 2.75) for point in marked)
            drawing.path(marks, f"fill: {_COLOURS[hue]}")

    # The first curves lie above the others.
    for curve in sorted(curves, key=lambda curve: -curve.number):
        steps, values = map(axes.x, curve.steps), map(axes.y, curve.values)
        points = [*zip(steps, values, strict=True)]
        draw(curve, points, points, curve.name)
    top = drawing.height - PAD - below + 5
    for curve, name in zip(curves, names, strict=True):
        middle = top + LINE_HEIGHT / 2
        draw(curve, [(PAD, middle), (PAD + 26, middle)], [(PAD + 13, middle)])
        drawing.text(PAD + 34, top + LINE_HEIGHT * len(name) / 2, name)
        top += LINE_HEIGHT * len(name) + 5
    return drawing.svg(label)
