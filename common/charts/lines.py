"""Lines and points: curves over steps, values with their intervals, calibration."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from common.charts.style import (
    ACCENT,
    GAP,
    GREY,
    LINE,
    LINE_HEIGHT,
    MARKS,
    PAD,
    SOFT,
    TITLE_HEIGHT,
    WIDTH,
    Axes,
    Drawing,
    limits_of,
    mark_path,
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
_DASHES = "5,2.2"


def line_chart(
    name: str,
    values: Sequence[float],
    other_name: str,
    others: Sequence[float],
    *,
    label: str,
    axis: str,
) -> str:
    """Draw how a share changes from step to step, and another one to compare it with.

    Parameters
    ----------
    name, other_name
        Names of the two lines.
    values, others
        Shares at step 0, 1, …; equally many, at least two.
    label
        As in `dot_chart`.
    axis
        What the steps are.
    """
    drawing = Drawing(190)
    y_limits, last = limits_of([*values, *others], 0.05), len(values) - 1
    beside = 7 + max(text_width(name, bold=True), text_width(other_name))
    scale = ticks(*y_limits, 6)
    axes = upright_axes(drawing, (0, last), y_limits, scale, axis=axis, beside=beside)
    axes.name_x(ticks(0, last, 11, integer=True), axis)
    # The names are at the ends of the lines, far enough apart to be read.
    height, other_height = axes.y(values[-1]), axes.y(others[-1])
    push = max(LINE_HEIGHT + 1 - abs(height - other_height), 0) / 2
    push = -push if height <= other_height else push
    for line_name, shares, colour, width, end in (
        (other_name, others, SOFT, 1.1, other_height - push),
        (name, values, ACCENT, 2.2, height + push),
    ):
        points = [(axes.x(step), axes.y(share)) for step, share in enumerate(shares)]
        drawing.line(points, colour, width, more="; stroke-linejoin: round", tooltip=line_name)
        drawing.text(axes.right + 7, end, line_name, bold=line_name == name)
    return drawing.svg(label)


@dataclass(frozen=True)
class Curve:
    """A curve of `curve_chart`.

    Attributes
    ----------
    name
        For the legend.
    steps, values
        Its points, equally many, at least one.
    number
        Of what it belongs to, from 0; chooses colour and mark.
    is_dashed
        Whether it is the second curve of that.
    """

    name: str
    steps: Sequence[float]
    values: Sequence[float]
    number: int = 0
    is_dashed: bool = False


def curve_chart(curves: Sequence[Curve], *, label: str, axis: str, value_axis: str = "") -> str:
    """Draw curves on one scale, which does not start at 0, their names below.

    Parameters
    ----------
    curves
        In the order of the legend, at least one.
    label
        As in `dot_chart`.
    axis
        What the steps are.
    value_axis
        What the values are, if the heading does not say so.
    """
    names = [wrap(curve.name, WIDTH - 60) for curve in curves]
    below = sum(LINE_HEIGHT * len(name) + 5 for name in names)
    drawing = Drawing(240 + below)
    x_limits = limits_of([step for curve in curves for step in curve.steps], 0)
    y_limits = limits_of([value for curve in curves for value in curve.values], 0.05)
    axes = upright_axes(
        drawing,
        x_limits,
        y_limits,
        ticks(*y_limits, 6),
        title=value_axis,
        axis=axis,
        beside=text_width("00") / 2,
        below=below,
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


def _draw_curve(
    drawing: Drawing, curve: Curve, points: Sequence[tuple[float, float]], tooltip: str = ""
) -> None:
    """Draw a curve or, without a tooltip, its line in the legend."""
    turn, hue = divmod(curve.number, len(_COLOURS))
    colour, width = _COLOURS[hue], 2.2 if curve.number == 0 else 1.4
    dashes = _DASHES if curve.is_dashed else ""
    drawing.line(points, colour, width, dashes=dashes, tooltip=tooltip)
    if len(curve.values) <= _MAX_MARKED:
        mark = MARKS[(hue + turn) % len(MARKS)]
        (x, y), (end, _) = points[0], points[-1]
        at = points if tooltip else [((x + end) / 2, y)]
        marks = " ".join(mark_path(mark, *point, 2.75) for point in at)
        drawing.path(marks, f"fill: {colour}")


@dataclass(frozen=True)
class Step:
    """A step of `interval_chart`.

    Attributes
    ----------
    value
        Height of the dot, cross or diamond.
    interval
        Ends of a line through it.
    marker
        How the value is drawn: ``o`` a dot, ``x`` a cross, ``D`` a diamond.
    tooltip
        What the pointer shows there.
    """

    value: float
    interval: tuple[float, float]
    marker: str
    tooltip: str


def interval_chart(steps: Sequence[Step], *, label: str, axis: str, unit: str) -> str:
    """Draw a value with its interval for every step, and a dashed line at zero.

    Parameters
    ----------
    steps
        Step 0, 1, …; at least one.
    label
        As in `dot_chart`.
    axis
        What the steps are.
    unit
        What the values are, above the scale.
    """
    drawing = Drawing(230)
    x_limits = (-0.5, len(steps) - 0.5)
    y_limits = limits_of([0.0, *(end for step in steps for end in step.interval)], 0.06)
    axes = upright_axes(drawing, x_limits, y_limits, ticks(*y_limits, 6), title=unit, axis=axis)
    axes.name_x(ticks(*x_limits, 11, integer=True), axis)
    zero = axes.y(0)
    drawing.line([(axes.left, zero), (axes.right, zero)], SOFT, 0.9, dashes="2.7,3.6")
    values = [(axes.x(number), axes.y(step.value)) for number, step in enumerate(steps)]
    drawing.line(values, ACCENT, 0.9)
    for (x, y), step in zip(values, steps, strict=True):
        ends = [(x, axes.y(end)) for end in step.interval]
        drawing.line(ends, ACCENT, 1.6, more="; stroke-linecap: round")
        is_cross = step.marker == "x"
        style = (
            f"fill: none; stroke: {ACCENT}; stroke-width: 2.2" if is_cross else f"fill: {ACCENT}"
        )
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

    Dots on the dashed diagonal are calibrated.

    Parameters
    ----------
    expected, happened
        Mean of the probabilities, and share that happened, in bins of equal width from 0 to 1;
        NaN in an empty bin.
    counts
        Number of answers in every bin, written above its bar.
    label
        As in `dot_chart`.
    expected_name, happened_name
        What the axes show.
    """
    drawing = Drawing(350)
    scale = [(fifth / 5, f"{fifth / 5:.1f}") for fifth in range(6)]
    # Most of the height is for the dots.
    below = 75.0
    axes = upright_axes(
        drawing, (0, 1), (0, 1), scale, title=happened_name, axis=expected_name, below=below
    )
    for value, _ in scale:
        drawing.line([(axes.x(value), axes.bottom), (axes.x(value), axes.top)], LINE, 0.6)
    drawing.line([(axes.left, axes.bottom), (axes.right, axes.top)], SOFT, 0.9, dashes="2.7,3.6")
    filled = [k for k, n in enumerate(counts) if n and not isnan(expected[k])]
    drawing.line([(axes.x(expected[k]), axes.y(happened[k])) for k in filled], ACCENT, 1.1)
    for k in filled:
        text = f"{expected[k]:.3f} predicted, {happened[k]:.3f} happened, {counts[k]:,} answers"
        drawing.dot(axes.x(expected[k]), axes.y(happened[k]), ACCENT, text)
    bars = Axes(
        drawing,
        (0, 1),
        (0, 1.25 * max(counts)),
        left=axes.left,
        top=axes.bottom + TITLE_HEIGHT + GAP,
        right=axes.right,
        bottom=axes.bottom + below,
    )
    width = 1 / len(counts)
    for number, n in enumerate(counts):
        left, middle, half = number * width, (number + 0.5) * width, 0.43 * width
        style, tooltip = f"fill: {GREY}", f"{left:.1f} to {left + width:.1f}: {n:,} answers"
        ends = bars.x(middle - half), bars.x(middle + half)
        drawing.box(ends[0], bars.y(n), ends[1], bars.bottom, style, tooltip)
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
