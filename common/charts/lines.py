"""Lines and points: curves over steps, values with their intervals, calibration."""

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from common.charts.style import (
    ACCENT,
    DASHED,
    GAP,
    GREY,
    LINE_HEIGHT,
    MARKS,
    PAD,
    SOFT,
    THIN,
    TITLE_HEIGHT,
    WIDTH,
    Axes,
    Drawing,
    Point,
    limits_of,
    mark_path,
    stroke,
    text_width,
    ticks,
    upright_axes,
    wrap,
)

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
    names = ticks(*limits, 6)
    axes = upright_axes(drawing, (0, last), limits, names, axis=axis, beside=beside)
    axes.name_x(ticks(0, last, 11, integer=True), axis)
    # The names are at the ends of the lines, far enough apart to be read.
    height, other_height = axes.y(values[-1]), axes.y(others[-1])
    push = max(LINE_HEIGHT + 1 - abs(height - other_height), 0) / 2
    push = -push if height <= other_height else push
    for line_name, shares, style, end in (
        (other_name, others, stroke(SOFT, 1.1), other_height - push),
        (name, values, stroke(ACCENT, 2.2), height + push),
    ):
        points = [(axes.x(step), axes.y(share)) for step, share in enumerate(shares)]
        drawing.line(points, style + "; stroke-linejoin: round", line_name)
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
    # The first curves lie above the others.
    for curve in sorted(curves, key=lambda curve: -curve.number):
        points = zip(map(axes.x, curve.steps), map(axes.y, curve.values), strict=True)
        _draw_curve(drawing, curve, list(points), curve.name)
    top = drawing.height - PAD - below + 5
    for curve, name in zip(curves, names, strict=True):
        _draw_curve(drawing, curve, [(PAD + x, top + LINE_HEIGHT / 2) for x in (0, 26)])
        drawing.text(PAD + 34, top + LINE_HEIGHT * len(name) / 2, name)
        top += LINE_HEIGHT * len(name) + 5
    return drawing.svg(label)


def _draw_curve(drawing: Drawing, curve: Curve, points: Sequence[Point], tooltip: str = "") -> None:
    """Draw a curve or, without a tooltip, its line in the legend."""
    turn, hue = divmod(curve.number, len(_COLOURS))
    dashes = "; stroke-dasharray: 5,2.2" if curve.is_dashed else ""
    style = stroke(_COLOURS[hue], 2.2 if curve.number == 0 else 1.4, dashes)
    drawing.line(points, style, tooltip)
    if len(curve.values) <= _MAX_MARKED:
        mark = MARKS[(hue + turn) % len(MARKS)]
        (x, y), (end, _) = points[0], points[-1]
        at = points if tooltip else [((x + end) / 2, y)]
        marks = " ".join(mark_path(mark, *point, 2.75) for point in at)
        drawing.path(marks, f"fill: {_COLOURS[hue]}")


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
    values = [(axes.x(number), axes.y(step.value)) for number, step in enumerate(steps)]
    drawing.line(values, stroke(ACCENT, 0.9))
    for (x, y), step in zip(values, steps, strict=True):
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
    filled = [k for k, n in enumerate(counts) if n and not isnan(expected[k])]
    dots = [(axes.x(expected[k]), axes.y(happened[k])) for k in filled]
    drawing.line(dots, stroke(ACCENT, 1.1))
    for k, (x, y) in zip(filled, dots, strict=True):
        text = f"{expected[k]:.3f} predicted, {happened[k]:.3f} happened, {counts[k]:,} answers"
        drawing.dot(x, y, ACCENT, text)
    top, bottom = axes.bottom + TITLE_HEIGHT + GAP, axes.bottom + below
    limits, left, right = (0, 1.25 * max(counts)), axes.left, axes.right
    bars = Axes(drawing, (0, 1), limits, left=left, top=top, right=right, bottom=bottom)
    width = 1 / len(counts)
    for number, n in enumerate(counts):
        start, middle = number * width, (number + 0.5) * width
        ends = bars.x(middle - 0.43 * width), bars.x(middle + 0.43 * width)
        tooltip = f"{start:.1f} to {start + width:.1f}: {n:,} answers"
        drawing.box(ends, (bars.y(n), bottom), f"fill: {GREY}", tooltip)
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
