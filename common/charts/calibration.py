"""How often things happened that were predicted with a probability."""

from collections.abc import Sequence
from math import isnan

from common.charts.style import (
    ACCENT,
    GREY,
    SOFT,
    as_svg,
    new_figure,
    page_style,
    set_tooltip,
)

_HEIGHT = 350


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

    Returns
    -------
    str
        An SVG element: dots on the dashed diagonal are calibrated.
    """
    with page_style(label):
        figure = new_figure(_HEIGHT)
        dots, bars = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        dots.plot((0, 1), (0, 1), color=SOFT, linewidth=0.9, dashes=(3, 4))
        filled = [k for k, n in enumerate(counts) if n and not isnan(expected[k])]
        at = [(expected[k], happened[k]) for k in filled]
        dots.plot(*zip(*at, strict=True), color=ACCENT, linewidth=1.1)
        for k in filled:
            (dot,) = dots.plot(expected[k], happened[k], "o", color=ACCENT)
            dot.set(markersize=5.5, clip_on=False)
            text = f"{expected[k]:.3f} predicted, {happened[k]:.3f} happened, {counts[k]:,} answers"
            set_tooltip(dot, text)
        ends = [k / len(counts) for k in range(len(counts) + 1)]
        width = 1 / len(counts)
        for left, n in zip(ends, counts, strict=False):
            middle = left + width / 2
            bar = bars.bar(middle, n, 0.86 * width, color=GREY, linewidth=0)
            set_tooltip(bar[0], f"{left:.1f} to {left + width:.1f}: {n:,} answers")
            bars.annotate(
                _short(n),
                (middle, n),
                xytext=(0, 2),
                textcoords="offset points",
                fontsize=9,
                horizontalalignment="center",
            )
        for axes, name in ((dots, happened_name), (bars, "answers")):
            axes.set_xlim(0, 1)
            axes.set_title(name, fontsize=10, color=SOFT, loc="left")
        dots.set_ylim(0, 1)
        dots.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        dots.grid(linewidth=0.6)
        bars.set_yticks([])
        bars.set_ylim(0, 1.25 * max(counts))
        bars.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        bars.set_xlabel(expected_name)
        return as_svg(figure, label)


def _short(n: int) -> str:
    """Write a count in at most four characters, as the bars are narrow."""
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if n >= 0.9995 * unit:
            value = n / unit
            return f"{value:.1f}{letter}" if value < 9.95 else f"{value:.0f}{letter}"
    return str(n)
