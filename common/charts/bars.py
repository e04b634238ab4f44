"""Small bar charts side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.charts.style import (
    ACCENT,
    GREY,
    LINE,
    LINE_HEIGHT,
    WIDTH,
    as_svg,
    new_figure,
    page_style,
    set_tooltip,
    wrap,
)


@dataclass(frozen=True)
class Panel:
    """One small bar chart of `bar_panels`.

    Attributes
    ----------
    title
        Name of the panel.
    shares
        Height of every bar, from 0 to 1.
    accent
        Whether to draw it in the page's accent colour.
    faint
        For every bar whether to grey it out, since it rests on too little; empty for none.
    """

    title: str
    shares: Sequence[float]
    accent: bool
    faint: Sequence[bool] = ()


def bar_panels(panels: Sequence[Panel], bar_names: Sequence[str], *, label: str, axis: str) -> str:
    """Draw small bar charts side by side on one scale.

    Parameters
    ----------
    panels
        From left to right, each with as many bars as there are names.
    bar_names
        Names of the bars, the same in every panel.
    label
        As in `dot_chart`.
    axis
        What the bars are.

    Returns
    -------
    str
        An SVG element.
    """
    with page_style(label):
        width = (WIDTH - 40) / len(panels) - 6
        titles = [wrap(panel.title, width, "bold") for panel in panels]
        n_lines = 1 + max(title.count("\n") for title in titles)
        figure = new_figure(150 + LINE_HEIGHT * n_lines)
        axes = figure.add_subplot()
        # Panels have a bar's room between them.
        starts = range(0, len(panels) * (len(bar_names) + 1), len(bar_names) + 1)
        for start, panel, title in zip(starts, panels, titles, strict=True):
            places = range(start, start + len(bar_names))
            bars = axes.bar(places, panel.shares, color=ACCENT if panel.accent else GREY)
            for bar, name, share in zip(bars, bar_names, panel.shares, strict=True):
                set_tooltip(bar, f"{panel.title}, {name}: {share:.0%}")
            for bar, is_faint in zip(bars, panel.faint, strict=False):
                if is_faint:
                    bar.set(facecolor=LINE, edgecolor=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
            axes.annotate(
                # Titles of fewer lines begin at the same height as the others.
                title + "\n" * (n_lines - 1 - title.count("\n")),
                (start - 0.4, 1),
                xycoords=("data", "axes fraction"),
                xytext=(0, 6),
                textcoords="offset points",
                fontweight="bold" if panel.accent else "normal",
            )
        ticks = [start + place for start in starts for place in range(len(bar_names))]
        axes.set_xticks(ticks, [*bar_names] * len(panels))
        axes.set_xlim(-0.6, ticks[-1] + 0.6)
        axes.set_xlabel(axis)
        # The scale ends at the first fifth that no bar exceeds.
        highest = max(share for panel in panels for share in panel.shares)
        fifths = range(next((n for n in range(1, 5) if highest <= n / 5), 5) + 1)
        axes.set_yticks([n / 5 for n in fifths], [f"{n * 20}%" for n in fifths])
        axes.set_ylim(0, fifths[-1] / 5)
        axes.grid(axis="y", linewidth=0.6)
        return as_svg(figure, label)
