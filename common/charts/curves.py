"""Curves over steps, several in one chart."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.charts.style import (
    ACCENT,
    FONT_SIZE,
    HUES,
    LINE_HEIGHT,
    SOFT,
    WIDTH,
    as_svg,
    new_figure,
    page_style,
    set_tooltip,
    wrap,
)

# Curves of the same number look alike in all charts of a page. Markers tell them apart without
# colours too, and where colours come again.
_COLOURS = (ACCENT, *HUES)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# With more points, the markers would hide the curve.
_MAX_MARKED = 25


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
        Of what it belongs to, from 0; chooses colour and marker.
    is_dashed
        Whether it is the second curve of that.
    """

    name: str
    steps: Sequence[float]
    values: Sequence[float]
    number: int = 0
    is_dashed: bool = False


def curve_chart(curves: Sequence[Curve], *, label: str, axis: str, value_axis: str = "") -> str:
    """Draw curves on one scale, their names below.

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

    Returns
    -------
    str
        An SVG element; the scale does not start at 0.
    """
    with page_style(label):
        names = [wrap(curve.name, WIDTH - 60) for curve in curves]
        n_lines = sum(1 + name.count("\n") for name in names)
        figure = new_figure(240 + (LINE_HEIGHT + 5) * n_lines)
        axes = figure.add_subplot()
        lines = []
        for curve in curves:
            width = 2.2 if curve.number == 0 else 1.4
            turn, hue = divmod(curve.number, len(_COLOURS))
            (line,) = axes.plot(curve.steps, curve.values, linewidth=width)
            line.set_color(_COLOURS[hue])
            line.set_linestyle("--" if curve.is_dashed else "-")
            if len(curve.values) <= _MAX_MARKED:
                line.set(marker=_MARKERS[(hue + turn) % len(_MARKERS)], markersize=4.5)
            line.set(clip_on=False, zorder=3 - 0.1 * curve.number)
            set_tooltip(line, curve.name)
            lines.append(line)
        axes.set_xlabel(axis)
        axes.set_title(value_axis, loc="left", fontsize=10, color=SOFT)
        axes.margins(x=0)
        axes.locator_params(axis="x", integer=True, nbins=8)
        axes.locator_params(axis="y", nbins=6)
        axes.ticklabel_format(useOffset=False)
        axes.grid(axis="y", linewidth=0.6)
        # Given the names here, the legend also shows those that begin with an underscore.
        figure.legend(
            lines,
            names,
            loc="outside lower left",
            frameon=False,
            fontsize=FONT_SIZE,
            handlelength=2.4,
            labelspacing=0.3,
        )
        return as_svg(figure, label)
