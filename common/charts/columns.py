"""Columns side by side: histograms, and values of named things in order."""

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
    text_width,
)

# In points: size of the names below the axis, and what stays free between them.
_TICK_SIZE, _GAP = 10.0, 5.0
# About what the scale takes, in points.
_SIDE = 45.0


@dataclass(frozen=True)
class Mark:
    """A place on the scale of `column_chart` to compare with, drawn as a dashed line.

    Attributes
    ----------
    place
        In columns from the left edge of the first one.
    text
        What it is, such as ``median 118``.
    """

    place: float
    text: str


def column_chart(
    heights: Sequence[float],
    tooltips: Sequence[str],
    ticks: Sequence[tuple[float, str]],
    *,
    label: str,
    axis: str,
    unit: str,
    mark: Mark | None = None,
    percent: bool = False,
) -> str:
    """Draw columns side by side from 0 up.

    Parameters
    ----------
    heights
        Height of each column, at least one, none negative.
    tooltips
        What browsers show beside the pointer on each column.
    ticks
        Names below the axis, each with its place in columns from the left edge of the first one:
        0.5 is its middle. Those that have no room are left out.
    label
        As in `dot_chart`.
    axis
        What the columns stand for.
    unit
        What the heights count.
    mark
        A line to compare with.
    percent
        Whether heights are shares, from 0 to 1.

    Returns
    -------
    str
        An SVG element.
    """
    with page_style(label):
        figure = new_figure(175)
        axes = figure.add_subplot()
        for place, (height, tooltip) in enumerate(zip(heights, tooltips, strict=True)):
            (bar,) = axes.bar(place + 0.5, height, width=0.86, color=ACCENT, linewidth=0)
            set_tooltip(bar, tooltip)
        axes.set_xlim(0, len(heights))
        # The text of a mark stands above the columns.
        axes.set_ylim(0, max(heights, default=0) * (1.2 if mark else 1.04) or 1)
        axes.locator_params(axis="y", nbins=4, integer=not percent)
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}" if percent else compact(y))
        axes.grid(axis="y", linewidth=0.6)
        axes.set_xlabel(axis)
        # What is counted stands where the scale ends, not turned by a right angle.
        axes.set_title(unit, loc="left", color=SOFT, fontsize=10, x=0, pad=6)
        if mark:
            _draw_mark(axes, mark, len(heights))
        shown = thin(ticks, (WIDTH - _SIDE) / len(heights))
        axes.set_xticks([place for place, _ in shown], [text for _, text in shown])
        return as_svg(figure, label)


def _draw_mark(axes: object, mark: Mark, n_columns: int) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    axes.axvline(mark.place, color=TEXT, linewidth=0.9, dashes=(3, 3))
    is_right = mark.place > n_columns / 2
    axes.annotate(
        mark.text,
        (mark.place, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if is_right else 5, 1 - LINE_HEIGHT),
        textcoords="offset points",
        horizontalalignment="right" if is_right else "left",
    )


def thin(ticks: Sequence[tuple[float, str]], width: float) -> list[tuple[float, str]]:
    """Leave out names that have no room beside the one before.

    Parameters
    ----------
    ticks
        Places, increasing, and names.
    width
        Points from one place to the next whole one.
    """
    shown: list[tuple[float, str]] = []
    end = float("-inf")
    for place, text in ticks:
        half = text_width(text) * _TICK_SIZE / FONT_SIZE / 2
        if place * width - half >= end:
            shown.append((place, text))
            end = place * width + half + _GAP
    return shown


def compact(number: float) -> str:
    """Write a number in few characters: 950, 1.5k, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
