"""A value with its interval after every step."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.charts.style import (
    ACCENT,
    SOFT,
    as_svg,
    new_figure,
    page_style,
    set_tooltip,
)


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

    Returns
    -------
    str
        An SVG element; its scale holds zero and all intervals.
    """
    with page_style(label):
        figure = new_figure(230)
        axes = figure.add_subplot()
        axes.axhline(0, color=SOFT, linewidth=0.9, dashes=(3, 4))
        axes.plot([step.value for step in steps], color=ACCENT, linewidth=0.9)
        for number, step in enumerate(steps):
            (line,) = axes.plot((number, number), step.interval, color=ACCENT, linewidth=1.6)
            line.set_solid_capstyle("round")
            (dot,) = axes.plot(number, step.value, step.marker, color=ACCENT, markersize=6.5)
            dot.set_markeredgewidth(2.2 if step.marker == "x" else 0)
            set_tooltip(dot, step.tooltip)
        axes.set_title(unit, loc="left", color=SOFT, fontsize=10, x=0, pad=6)
        axes.set_xlabel(axis)
        axes.set_xlim(-0.5, len(steps) - 0.5)
        axes.locator_params(axis="x", integer=True, nbins=11)
        axes.locator_params(axis="y", nbins=6)
        axes.margins(y=0.06)
        axes.grid(axis="y", linewidth=0.6)
        return as_svg(figure, label)
