"""Small charts as SVG that lies in a page itself: they follow its font, and light or dark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

# What a page with charts adds to its style; `--accent` comes from the page.
STYLE = """
.chart { display: block; width: 100%; min-width: 30rem; height: auto; font-size: 14px;
         fill: currentColor; }
.chart .grid { stroke: var(--line); } .chart .soft { opacity: .7; font-size: 12.5px; }
.chart .band { fill: currentColor; opacity: .09; } .chart .end { text-anchor: end; }
.chart .interval { stroke: rgb(var(--accent)); stroke-width: 2.5; stroke-linecap: round; }
.chart .dot, .chart .good { fill: rgb(var(--accent)); } .chart .mid { text-anchor: middle; }
.chart .mark { fill: none; stroke: currentColor; stroke-width: 1.5; opacity: .8; }
.chart .other { fill: color-mix(in srgb, currentColor 38%, Canvas); }
.chart .bold { font-weight: 600; } figure:has(.chart) { overflow-x: auto; }
.chart .line { fill: none; stroke: rgb(var(--accent)); stroke-width: 3; }
.chart .thin { fill: none; stroke: currentColor; stroke-width: 1.5; opacity: .6; }
.chart .chance { stroke: currentColor; stroke-dasharray: 3 4; opacity: .55; }
"""

# Steps that the axis of a line chart may have.
_TICK_STEPS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Interval:
    """A share with its interval, one row of `interval_chart`; all values from 0 to 1.

    Attributes
    ----------
    label
        Name of the row.
    share, low, high
        The share and the ends of its interval.
    mark
        Another share to compare it with, drawn as a diamond; None for none.
    band
        A range to compare it with, drawn as a grey band; None for none.
    """

    label: str
    share: float
    low: float
    high: float
    mark: float | None = None
    band: tuple[float, float] | None = None


def interval_chart(rows: Sequence[Interval], *, label: str, chance: float = 0.5) -> str:
    """Draw shares with their intervals on one scale from 0 to 1.

    Parameters
    ----------
    rows
        From top to bottom.
    label
        What the chart shows, for those who cannot see it.
    chance
        What guessing reaches, drawn as a dashed line.

    Returns
    -------
    str
        An SVG element, 640 units wide.
    """
    left, right, row_height, top = 90, 590, 32, 8
    bottom = top + row_height * len(rows)

    def x(share: float) -> str:
        return f"{left + share * (right - left):.1f}"

    parts = [
        f'<line class="grid" x1="{x(tick / 4)}" x2="{x(tick / 4)}" y1="{top}" y2="{bottom}"/>'
        f'<text class="soft mid" x="{x(tick / 4)}" y="{bottom + 18}">{tick / 4:g}</text>'
        for tick in range(5)
    ]
    parts.append(
        f'<line class="chance" x1="{x(chance)}" x2="{x(chance)}" y1="{top}" y2="{bottom}"/>'
    )
    for place, row in enumerate(rows):
        y = top + row_height * (place + 0.5)
        if row.band:
            width = (row.band[1] - row.band[0]) * (right - left)
            parts.append(
                f'<rect class="band" x="{x(row.band[0])}" y="{y - 12}" width="{width:.1f}" '
                'height="24" rx="3"/>'
            )
        parts.append(
            f'<text class="end" x="{left - 14}" y="{y + 5}">{escape(row.label)}</text>'
            f'<line class="interval" x1="{x(row.low)}" x2="{x(row.high)}" y1="{y}" y2="{y}"/>'
        )
        if row.mark is not None:
            parts.append(
                f'<path class="mark" transform="translate({x(row.mark)} {y})" '
                'd="M0 -8 L8 0 L0 8 L-8 0 Z"/>'
            )
        parts.append(
            f'<circle class="dot" cx="{x(row.share)}" cy="{y}" r="5"/>'
            f'<text class="bold" x="{right + 14}" y="{y + 5}">{row.share:.2f}</text>'
        )
    return _svg(640, bottom + 26, label, parts)


@dataclass(frozen=True)
class Panel:
    """One small bar chart of `bar_panels`.

    Attributes
    ----------
    title
        Name of the panel.
    shares
        Height of every bar, from 0 to 1.
    is_good
        Whether to draw it in the page's accent colour.
    """

    title: str
    shares: Sequence[float]
    is_good: bool


def bar_panels(panels: Sequence[Panel], bar_names: Sequence[str], *, label: str) -> str:
    """Draw small bar charts side by side on one scale.

    Parameters
    ----------
    panels
        From left to right, each with as many bars as there are names.
    bar_names
        Names of the bars, the same in every panel.
    label
        What the chart shows, for those who cannot see it.

    Returns
    -------
    str
        An SVG element, 640 units wide.
    """
    left, right, top, height, gap = 48, 636, 34, 170, 22
    width = (right - left - gap * (len(panels) - 1)) / len(panels)
    # A whole number of fifths, so that the grid lines fall on round shares.
    highest = max((share for panel in panels for share in panel.shares), default=0.0)
    fifths = next((n for n in range(1, 5) if highest <= n / 5), 5)

    def y(share: float) -> float:
        return top + height * (1 - share * 5 / fifths)

    parts = [
        f'<line class="grid" x1="{left}" x2="{right}" y1="{y(n / 5):.1f}" y2="{y(n / 5):.1f}"/>'
        f'<text class="soft end" x="{left - 8}" y="{y(n / 5) + 4:.1f}">{n * 20}%</text>'
        for n in range(fifths + 1)
    ]
    for place, panel in enumerate(panels):
        start = left + place * (width + gap)
        step = width / max(len(bar_names), 1)
        weight = ' class="bold"' if panel.is_good else ""
        parts.append(f'<text{weight} x="{start + 2:.1f}" y="18">{escape(panel.title)}</text>')
        for number, (name, share) in enumerate(zip(bar_names, panel.shares, strict=True)):
            middle = start + step * (number + 0.5)
            colour = "good" if panel.is_good else "other"
            parts.append(
                f'<rect class="{colour}" x="{middle - step * 0.4:.1f}" '
                f'width="{step * 0.8:.1f}" y="{y(share):.1f}" '
                f'height="{top + height - y(share):.1f}" rx="2"><title>{escape(panel.title)}, '
                f"{escape(name)}: {share:.0%}</title></rect>"
                f'<text class="soft mid" x="{middle:.1f}" y="{top + height + 18}">{escape(name)}'
                "</text>"
            )
    return _svg(640, top + height + 26, label, parts)


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
        What the chart shows, for those who cannot see it.
    axis
        What the steps are.

    Returns
    -------
    str
        An SVG element, 640 units wide; the scale does not start at 0.
    """
    left, right, top, bottom = 56, 500, 12, 250
    lowest, highest = min(*values, *others), max(*values, *others)
    step = next((step for step in _TICK_STEPS if highest - lowest <= 6 * step), _TICK_STEPS[-1])
    first = math.floor(lowest / step)
    last = max(math.ceil(highest / step), first + 1)

    def x(place: int) -> str:
        return f"{left + (right - left) * place / (len(values) - 1):.1f}"

    def y(share: float) -> float:
        return bottom - (bottom - top) * (share / step - first) / (last - first)

    parts = []
    for tick in range(first, last + 1):
        height = f"{y(tick * step):.1f}"
        parts.append(
            f'<line class="grid" x1="{left}" x2="{right}" y1="{height}" y2="{height}"/>'
            f'<text class="soft end" x="{left - 8}" y="{height}" dy="4">{tick * step:.3f}</text>'
        )
    for place in range(len(values)):
        parts.append(f'<text class="soft mid" x="{x(place)}" y="{bottom + 18}">{place}</text>')
    parts.append(
        f'<text class="soft mid" x="{(left + right) / 2}" y="{bottom + 38}">{escape(axis)}</text>'
    )
    # The names stand at the ends of the lines, far enough apart to be read.
    end, other_end = y(values[-1]), y(others[-1])
    if abs(end - other_end) < 16:
        other_end = end + (16 if other_end >= end else -16)
    for kind, text, shares, height_of_text in (
        ("thin", other_name, others, other_end),
        ("line", name, values, end),
    ):
        points = " ".join(f"{x(place)},{y(share):.1f}" for place, share in enumerate(shares))
        weight = ' class="bold"' if kind == "line" else ""
        parts.append(
            f'<polyline class="{kind}" points="{points}"/>'
            f'<text{weight} x="{right + 8}" y="{height_of_text + 4:.1f}">{escape(text)}</text>'
        )
    return _svg(640, bottom + 46, label, parts)


def _svg(width: int, height: int, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label)}">' + "\n".join(parts) + "</svg>"
    )
