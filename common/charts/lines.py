"""Lines over steps."""

from collections.abc import Sequence

from common.charts.style import (
    ACCENT,
    LINE_HEIGHT,
    SOFT,
    as_svg,
    new_figure,
    page_style,
    set_tooltip,
)


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

    Returns
    -------
    str
        An SVG element; the scale does not start at 0.
    """
    with page_style(label):
        figure = new_figure(190)
        axes = figure.add_subplot()
        for line_name, shares, colour, width in (
            (other_name, others, SOFT, 1.1),
            (name, values, ACCENT, 2.2),
        ):
            (line,) = axes.plot(shares, color=colour, linewidth=width, clip_on=False)
            set_tooltip(line, line_name)
        axes.set_xlabel(axis)
        axes.margins(x=0)
        axes.locator_params(axis="x", integer=True, nbins=11)
        axes.locator_params(axis="y", nbins=6)
        axes.ticklabel_format(useOffset=False)
        axes.grid(axis="y", linewidth=0.6)
        # The names are at the ends of the lines, far enough apart to be read.
        figure.draw_without_rendering()
        ends = [(len(values) - 1, others[-1]), (len(values) - 1, values[-1])]
        other_height, height = axes.transData.transform(ends)[:, 1]
        push = max(LINE_HEIGHT + 1 - abs(height - other_height), 0) / 2
        push = push if height >= other_height else -push
        for line_name, end, up, weight in (
            (other_name, ends[0], -push, "normal"),
            (name, ends[1], push, "bold"),
        ):
            axes.annotate(
                line_name,
                end,
                xytext=(7, up),
                textcoords="offset points",
                verticalalignment="center_baseline",
                fontweight=weight,
            )
        return as_svg(figure, label)
