"""Drawing in SVG for charts, in the page's own colours and font; lengths in points, y downwards."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, pairwise, takewhile
from math import ceil, cos, floor, log10, pi, sin

from common import pages

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


def limits_of(values: Sequence[float], margin: float) -> Point:
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
    corners = []
    for k in range(2 * n):
        radius, angle = inner if k % 2 else size, (k / 2 + turn) * 2 * pi / n
        if radius:
            corners.append((radius * sin(angle), -radius * cos(angle)))
    return corners


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


def mark_path(mark: str, x: float, y: float, radius: float) -> str:
    """Return a mark around a point as a path that begins there: one of `MARKS`."""
    r, d, start = f"{radius:g}", f"{2 * radius:g}", f"M {_number(x)} {_number(y)}"
    if mark == "o":
        return f"{start} m -{r} 0 a {r} {r} 0 1 0 {d} 0 a {r} {r} 0 1 0 -{d} 0 z"
    corners = [(0.0, 0.0), *((radius * dx, radius * dy) for dx, dy in _MARKS[mark])]
    steps = [f"{_number(b[0] - a[0])} {_number(b[1] - a[1])}" for a, b in pairwise(corners)]
    return f"{start} m {steps[0]} l {' '.join(steps[1:])} z"


def _number(value: float) -> str:
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def stroke(colour: str, width: float, more: str = "") -> str:
    """Return the style of a line."""
    return f"fill: none; stroke: {colour}; stroke-width: {width:g}{more}"


THIN = stroke(LINE, 0.6)
DASHED = stroke(SOFT, 0.9, "; stroke-dasharray: 2.7,3.6")


class Drawing:
    """An SVG drawing under way; a tooltip is what browsers show beside the pointer."""

    def __init__(self, height: float) -> None:
        self.width, self.height = WIDTH, height
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

    def svg(self, label: str) -> str:
        """Return the drawing for a page; the label says to screen readers what it shows."""
        size = f'viewBox="0 0 {self.width:g} {self.height:g}"'
        start = f'<svg class="chart" {size} role="img" aria-label="{escape(label)}">'
        return pages.Html("\n".join([start, *self._parts, "</svg>"]))


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
        right=drawing.width - PAD - max(beside, SMALL / 2),
        bottom=drawing.height - PAD - below - TICK_HEIGHT - (LINE_HEIGHT if axis else 0),
    )
    for value, name in y_names:
        drawing.line([(axes.left, axes.y(value)), (axes.right, axes.y(value))], THIN)
        drawing.note(axes.left - GAP, axes.y(value), name, "end")
    axes.title(title)
    return axes
