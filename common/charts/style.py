"""What all charts share: colours that follow the page, text, marks, scales and axes.

Lengths are in points, y downwards. Text stays text, in the page's font; colours are the page's own.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from math import ceil, cos, floor, log10, pi, sin

# The page's own colours.
TEXT, ACCENT, LINE = "currentColor", "rgb(var(--accent))", "var(--line)"
SOFT = "color-mix(in srgb, currentColor 70%, Canvas)"
GREY = "color-mix(in srgb, currentColor 40%, Canvas)"
# A chart is as wide as a phone, where its text must stay readable, or as wide as the text of a page
# on a larger screen.
WIDTH = 340.0
PAGE_WIDTH = 552.0
FONT_SIZE = 11.0
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
        28: "ijlIJ'",
        32: " ,.",
        35: "/:;\\|f-",
        39: "()[]t!",
        42: 'r"',
        51: "*_`sz?",
        55: "cL",
        59: "FkvxyP",
        61: "TYaoe",
        63: "ESbdghnpqu$0123456789{}",
        69: "KAVBRXZC",
        76: "UHNDG",
        79: "&OQ",
        84: "w#+<=>^~−M",
        97: "%m",
        100: "W@",
    }.items()
    for character in characters
}
# Where nothing is known: letters of Latin and Greek, and of scripts with wider ones.
_USUAL, _WIDE = 65, 100


def text_width(text: str, size: float = FONT_SIZE, *, bold: bool = False) -> float:
    """Return about how wide a text is, rather too much than too little."""
    widths = (_WIDTHS.get(c) or (_USUAL if c < "\u1100" else _WIDE) for c in text)
    return sum(widths) * size / 100 * (1.15 if bold else 1)


def wrap(text: str, width: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines: after spaces, in longer words after underscores, else anywhere."""
    pieces = [text]
    for after in (" ", "_", ""):
        pieces = [
            part
            for piece in pieces
            for part in (
                [piece]
                if text_width(piece, bold=bold) <= width
                else re.split(f"(?<={after})", piece)
            )
        ]
    lines = [""]
    for piece in pieces:
        if lines[-1] and text_width(lines[-1] + piece.rstrip(), bold=bold) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def compact(number: float) -> str:
    """Write a number in few characters: 950, 1.5k, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


# ---- Scales --------------------------------------------------------------------------------------


def limits_of(values: Iterable[float], margin: float) -> Point:
    """Return ends of a scale for values, with a part of their range as a margin."""
    known = list(values)
    low, high = min(known), max(known)
    if low == high:
        spread = 0.05 * abs(low) or 0.05
        low, high = low - spread, high + spread
    return low - margin * (high - low), high + margin * (high - low)


def ticks(
    low: float,
    high: float,
    n_steps: int,
    *,
    integer: bool = False,
    factors: Sequence[float] = (1, 2, 2.5, 5),
) -> list[Tick]:
    """Return round numbers on a scale, two or more, about so many steps apart, and their names."""
    least = (high - low) / n_steps
    size = 10.0 ** floor(log10(least))
    steps = [size * power * factor for power in (0.1, 1, 10) for factor in factors]
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


def _polygon(n: int, inner: float = 1, turn: float = 0) -> list[Point]:
    """Return corners on a circle of radius 1, the first one at the top, and between them inside."""
    angles = [(k / 2 + turn) * 2 * pi / n for k in range(2 * n)]
    corners = [(sin(angle), -cos(angle)) for angle in angles]
    inside = [(inner * x, inner * y) for x, y in corners[1::2]]
    return [p for pair in zip(corners[::2], inside, strict=True) for p in pair[: 1 + (inner < 1)]]


# Marks for points, of about equal area.
_MARKS = {
    "s": [(x * 1.25, y * 1.25) for x, y in _polygon(4, turn=0.5)],
    "^": [(x * 1.2, y * 1.2) for x, y in _polygon(3)],
    "D": [(x * 1.2, y * 1.2) for x, y in _polygon(4)],
    "v": [(x * 1.2, y * 1.2) for x, y in _polygon(3, turn=0.5)],
    "+": [(x * 1.4, y * 1.4) for x, y in _polygon(4, 0.4)],
    "X": [(x * 1.4, y * 1.4) for x, y in _polygon(4, 0.4, turn=0.5)],
    "*": [(x * 1.3, y * 1.3) for x, y in _polygon(5, 0.4)],
}
MARKS = ("o", *_MARKS)


def mark_path(mark: str, x: float, y: float, radius: float) -> str:
    """Return a mark around a point as a path that begins there: one of `MARKS`, or ``x``."""
    r, d, start = f"{radius:g}", f"{2 * radius:g}", f"M {_number(x)} {_number(y)}"
    if mark == "o":
        return f"{start} m -{r} 0 a {r} {r} 0 1 0 {d} 0 a {r} {r} 0 1 0 -{d} 0 z"
    if mark == "x":
        return f"{start} m -{r} -{r} l {d} {d} m -{d} 0 l {d} -{d}"
    corners = [(0.0, 0.0), *((radius * dx, radius * dy) for dx, dy in _MARKS[mark])]
    steps = [f"{_number(b[0] - a[0])} {_number(b[1] - a[1])}" for a, b in pairwise(corners)]
    return f"{start} m {steps[0]} l {' '.join(steps[1:])} z"


def _number(value: float) -> str:
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


class Drawing:
    """An SVG drawing under way."""

    def __init__(self, height: float, width: float = WIDTH) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def path(self, d: str, style: str, tooltip: str = "") -> None:
        """Add a path; browsers show the tooltip beside the pointer."""
        path = f'<path d="{d}" style="{style}"/>'
        if tooltip:
            path = f"<g><title>{escape(tooltip, quote=False)}</title>{path}</g>"
        self._parts.append(path)

    def line(
        self,
        points: Iterable[Point],
        colour: str,
        width: float,
        *,
        dashes: str = "",
        more: str = "",
        tooltip: str = "",
    ) -> None:
        """Add a line through points."""
        d = " L ".join(f"{_number(x)} {_number(y)}" for x, y in points)
        style = f"fill: none; stroke: {colour}; stroke-width: {width:g}"
        if dashes:
            style += f"; stroke-dasharray: {dashes}"
        self.path(f"M {d}", style + more, tooltip)

    def box(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        style: str,
        tooltip: str = "",
    ) -> None:
        """Add a rectangle."""
        corners = (left, top), (right, top), (right, bottom), (left, bottom)
        d = " L ".join(f"{_number(x)} {_number(y)}" for x, y in corners)
        self.path(f"M {d} z", style, tooltip)

    def dot(self, x: float, y: float, colour: str, tooltip: str) -> None:
        """Add the dot of a value."""
        self.path(mark_path("o", x, y, 3.25), f"fill: {colour}", tooltip)

    def diamond(self, x: float, y: float, tooltip: str) -> None:
        """Add the diamond of a value to compare with."""
        self.path(mark_path("D", x, y, 3.25), f"fill: none; stroke: {TEXT}", tooltip)

    def text(
        self,
        x: float,
        y: float,
        text: str | Sequence[str],
        *,
        anchor: str = "start",
        colour: str = TEXT,
        size: float = FONT_SIZE,
        bold: bool = False,
    ) -> None:
        """Add a text whose middle has this height, or lines of text around it."""
        lines = [text] if isinstance(text, str) else text
        style = f"font-size: {size:g}px; text-anchor: {anchor}; fill: {colour}"
        if bold:
            style += "; font-weight: 700"
        top = y - LINE_HEIGHT * (len(lines) - 1) / 2 + 0.36 * size
        for number, line in enumerate(lines):
            place = f'x="{_number(x)}" y="{_number(top + LINE_HEIGHT * number)}"'
            content = escape(line, quote=False)
            self._parts.append(f'<text {place} style="{style}">{content}</text>')

    def svg(self, label: str) -> str:
        """Return the drawing for a page; the label says to screen readers what it shows."""
        size = f'viewBox="0 0 {self.width:g} {self.height:g}"'
        content = "\n".join(self._parts)
        return (
            f'<svg class="chart" {size} role="img" aria-label="{escape(label)}">\n{content}\n</svg>'
        )


class Axes:
    """A part of a drawing with a scale to the right, and one that goes up."""

    def __init__(
        self,
        drawing: Drawing,
        x_limits: Point,
        y_limits: Point,
        *,
        left: float,
        top: float,
        right: float,
        bottom: float,
    ) -> None:
        self.drawing = drawing
        self.left, self.top, self.right, self.bottom = left, top, right, bottom
        self._x, self._y = x_limits, y_limits

    def x(self, value: float) -> float:
        """Return where a value is."""
        low, high = self._x
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return where a value is."""
        low, high = self._y
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def name_x(self, names: Sequence[Tick], axis: str = "", *, grid: bool = False) -> None:
        """Write names below, with lines above them if asked for, and what they are."""
        for value, name in names:
            place = self.x(value)
            if grid:
                self.drawing.line([(place, self.bottom), (place, self.top)], LINE, 0.6)
            self.drawing.text(
                place, self.bottom + 9, name, anchor="middle", colour=SOFT, size=SMALL
            )
        self.drawing.line([(self.left, self.bottom), (self.right, self.bottom)], LINE, 0.8)
        if axis:
            below = self.bottom + TICK_HEIGHT + LINE_HEIGHT / 2
            self.drawing.text(
                (self.left + self.right) / 2, below, axis, anchor="middle", colour=SOFT
            )

    def name_y(self, names: Sequence[Tick]) -> None:
        """Write names at the left, with lines beside them."""
        for value, name in names:
            place = self.y(value)
            self.drawing.line([(self.left, place), (self.right, place)], LINE, 0.6)
            self.drawing.text(self.left - GAP, place, name, anchor="end", colour=SOFT, size=SMALL)

    def title(self, text: str) -> None:
        """Write what is drawn above, at the left."""
        if text:
            self.drawing.text(self.left, self.top - 9, text, colour=SOFT, size=SMALL)


def upright_axes(
    drawing: Drawing,
    x_limits: Point,
    y_limits: Point,
    y_names: Sequence[Tick],
    *,
    title: str = "",
    axis: str = "",
    above: float = 0,
    beside: float = 0,
    below: float = 0,
) -> Axes:
    """Return axes that fill a drawing, but for their names and what else stands around them.

    The names at the left are drawn, those below are left to the caller.
    """
    axes = Axes(
        drawing,
        x_limits,
        y_limits,
        left=PAD + GAP + max(text_width(name, SMALL) for _, name in y_names),
        top=PAD + above + (TITLE_HEIGHT if title else SMALL / 2),
        right=drawing.width - PAD - max(beside, SMALL / 2),
        bottom=drawing.height - PAD - below - TICK_HEIGHT - (LINE_HEIGHT if axis else 0),
    )
    axes.name_y(y_names)
    axes.title(title)
    return axes


# ---- A chart as a file ---------------------------------------------------------------------------

# An image cannot take the colours of the page that shows it: it brings its own, and a ground to
# stand on, so that it can be read even where the page and the browser disagree on light or dark.
_PICTURE_STYLE = """
:root { --text: #1f2328; --soft: #59636e; --grey: #8c959f; --line: #d1d9e0; --ground: #ffffff;
        --accent: 37 99 235; }
@media (prefers-color-scheme: dark) {
  :root { --text: #f0f6fc; --soft: #9198a1; --grey: #656c76; --line: #3d444d; --ground: #0d1117;
          --accent: 96 165 250; }
}
svg { color: var(--text); font-family: system-ui, sans-serif; }
"""
_MARGIN = 10.0


def picture(svg: str, title: str) -> str:
    """Return a chart as an SVG file with a title, light or dark as the browser's settings say."""
    lines = wrap(title, WIDTH - 2 * _MARGIN, bold=True)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert size is not None
    top = LINE_HEIGHT * len(lines) + 2 * _MARGIN
    width = float(size[1]) + 2 * _MARGIN
    height = float(size[2]) + top + _MARGIN
    place = f'x="{_MARGIN:g}" y="{top:g}" width="{size[1]}" height="{size[2]}"'
    chart = svg.replace("<svg ", f"<svg {place} ", 1)
    chart = chart.replace(SOFT, "var(--soft)").replace(GREY, "var(--grey)")
    text = "".join(
        f'<text x="{_MARGIN:g}" y="{_MARGIN + LINE_HEIGHT * (row + 0.8):g}" font-size="11.5" '
        f'font-weight="600" fill="currentColor">{escape(line)}</text>\n'
        for row, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}">\n<style>{_PICTURE_STYLE}</style>\n'
        f'<rect width="100%" height="100%" rx="6" fill="var(--ground)"/>\n{text}{chart}</svg>\n'
    )
