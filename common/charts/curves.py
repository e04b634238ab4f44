"""Curves over steps, several in one chart."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.charts.style import (
    ACCENT,
    FONT_SIZE,
    LINE_HEIGHT,
    SOFT,
    TEXT,
    WIDTH,
    as_svg,
    new_figure,
    page_style,
    set_tooltip,
    wrap,
)

# Curves of the same number look alike in all charts of a page.
_COLOURS = (ACCENT, TEXT, SOFT)
_MARKERS = ("", "o", "s", "^")


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


def curve_chart(curves: Sequence[Curve], *, label: str, axis: str) -> str:
    """Draw curves on one scale, their names below.

    Parameters
    ----------
    curves
        In the order of the legend, at least one.
    label
        As in `dot_chart`.
    axis
        What the steps are.

    Returns
    -------
    str
        An SVG element; the scale does not start at 0.
    """
    with page_style(label):
        names = [wrap(curve.name, WIDTH - 60) for curve in curves]
        n_lines = sum(1 + name.count("\n") for name in names)
        figure = new_figure(190 + (LINE_HEIGHT + 4) * n_lines)
        axes = figure.add_subplot()
        for curve, name in zip(curves, names, strict=True):
            (line,) = axes.plot(curve.steps, curve.values, linewidth=1.8, label=name)
            turn, place = divmod(curve.number, len(_COLOURS))
            marker = _MARKERS[turn % len(_MARKERS)] or "o" * (len(curve.values) == 1)
            line.set(color=_COLOURS[place], linestyle="--" if curve.is_dashed else "-")
            line.set(marker=marker, markersize=4, clip_on=False)
            set_tooltip(line, curve.name)
        axes.set_xlabel(axis)
        axes.margins(x=0)
        axes.locator_params(axis="x", integer=True, nbins=8)
        axes.locator_params(axis="y", nbins=6)
        axes.ticklabel_format(useOffset=False)
        axes.grid(axis="y", linewidth=0.6)
        figure.legend(
            loc="outside lower left", frameon=False, fontsize=FONT_SIZE, ncols=1, handlelength=2.4
        )
        return as_svg(figure, label)
