"""The charts of the pages: drawn by matplotlib, as SVG that lies in a page and follows its style.

Text stays text, in the page's font; colours are the page's own, light or dark. matplotlib is
imported only when a chart is drawn, so that scripts without charts start fast.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import StringIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

# Stand-ins for the page's own colours, which matplotlib cannot name.
_TEXT, _SOFT, _GREY = "#010203", "#010204", "#010205"
_ACCENT, _LINE = "#010206", "#010207"
_PAGE_COLOURS = {
    _TEXT: "currentColor",
    _SOFT: "color-mix(in srgb, currentColor 70%, Canvas)",
    _GREY: "color-mix(in srgb, currentColor 40%, Canvas)",
    _ACCENT: "rgb(var(--accent))",
    _LINE: "var(--line)",
}
# Lengths in points; a chart is as wide as a phone, where its text must stay readable.
_WIDTH = 340.0
_FONT_SIZE = 11.0
_ROW_HEIGHT = 21.0
_LINE_HEIGHT = 13.5
_CHART_STYLE: dict[str, Any] = {
    "figure.dpi": 72,
    "font.size": _FONT_SIZE,
    "svg.fonttype": "none",
    "text.parse_math": False,
    "text.color": _TEXT,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _SOFT,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "grid.color": _LINE,
    "xtick.bottom": False,
    "xtick.labelcolor": _SOFT,
    "xtick.labelsize": 10,
    "ytick.left": False,
    "ytick.labelcolor": _SOFT,
    "ytick.labelsize": 10,
}


@dataclass(frozen=True)
class Dot:
    """A row of `dot_chart`.

    Attributes
    ----------
    label
        Name of the row.
    value
        Position of the dot; None for a row that has only a mark.
    interval
        Ends of a line through the dot; None for none.
    mark
        Another value to compare with, drawn as a diamond; None for none.
    band
        A range to compare with, drawn in grey; None for none.
    accent
        Whether to draw dot and line in the page's accent colour.
    """

    label: str
    value: float | None
    interval: tuple[float, float] | None = None
    mark: float | None = None
    band: tuple[float, float] | None = None
    accent: bool = True


def dot_chart(
    rows: Sequence[Dot],
    *,
    label: str,
    digits: int,
    limits: tuple[float, float] | None = None,
    chance: float | None = None,
) -> str:
    """Draw values on one scale, a row for each, its name on the left and its number on the right.

    Parameters
    ----------
    rows
        From top to bottom.
    label
        What the chart shows, for screen readers; unique on its page, as ids are made from it.
    digits
        Decimal places of the numbers.
    limits
        Ends of the scale; None: fitted to the values.
    chance
        What guessing reaches, drawn as a dashed line; None for none.

    Returns
    -------
    str
        An SVG element.
    """
    with _page_style(label):
        names = [_wrap(row.label, 0.4 * _WIDTH) for row in rows]
        heights = [_ROW_HEIGHT + _LINE_HEIGHT * name.count("\n") for name in names]
        bottoms = list(accumulate(heights))
        middles = [bottom - height / 2 for bottom, height in zip(bottoms, heights, strict=True)]
        figure = _new_figure(bottoms[-1] + 26)
        axes = figure.add_subplot()
        if chance is not None:
            axes.axvline(chance, color=_SOFT, linewidth=0.9, dashes=(3, 4))
        for row, y, height in zip(rows, middles, heights, strict=True):
            colour = _ACCENT if row.accent else _TEXT
            if row.band:
                low, high = row.band
                axes.barh(y, high - low, height, left=low, color=_LINE, linewidth=0)
            if row.interval:
                (line,) = axes.plot(row.interval, (y, y), color=colour, linewidth=1.6)
                line.set(solid_capstyle="round", clip_on=False)
            for value, marker, fill in ((row.mark, "D", "none"), (row.value, "o", colour)):
                if value is not None:
                    edge = colour if marker == "o" else _TEXT
                    (dot,) = axes.plot(value, y, marker, color=edge, markerfacecolor=fill)
                    dot.set(markersize=5.5, clip_on=False)
                    _set_tooltip(dot, f"{row.label}: {value:.{digits}f}")
            shown = row.mark if row.value is None else row.value
            axes.annotate(
                f"{shown:.{digits}f}",
                (1, y),
                xycoords=("axes fraction", "data"),
                xytext=(9, 0),
                textcoords="offset points",
                verticalalignment="center_baseline",
            )
        axes.set_yticks(middles, names, fontsize=_FONT_SIZE, color=_TEXT)
        axes.set_ylim(bottoms[-1], 0)
        if limits:
            axes.set_xlim(limits)
        else:
            axes.margins(x=0.1)
        axes.locator_params(axis="x", nbins=4)
        axes.grid(axis="x", linewidth=0.6)
        return _as_svg(figure, label)


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
    """

    title: str
    shares: Sequence[float]
    accent: bool


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
    with _page_style(label):
        width = (_WIDTH - 40) / len(panels) - 6
        titles = [_wrap(panel.title, width, "bold") for panel in panels]
        n_lines = 1 + max(title.count("\n") for title in titles)
        figure = _new_figure(150 + _LINE_HEIGHT * n_lines)
        axes = figure.add_subplot()
        # Panels have a bar's room between them.
        starts = range(0, len(panels) * (len(bar_names) + 1), len(bar_names) + 1)
        for start, panel, title in zip(starts, panels, titles, strict=True):
            places = range(start, start + len(bar_names))
            bars = axes.bar(places, panel.shares, color=_ACCENT if panel.accent else _GREY)
            for bar, name, share in zip(bars, bar_names, panel.shares, strict=True):
                _set_tooltip(bar, f"{panel.title}, {name}: {share:.0%}")
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
        return _as_svg(figure, label)


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
    with _page_style(label):
        figure = _new_figure(190)
        axes = figure.add_subplot()
        for line_name, shares, colour, width in (
            (other_name, others, _SOFT, 1.1),
            (name, values, _ACCENT, 2.2),
        ):
            (line,) = axes.plot(shares, color=colour, linewidth=width, clip_on=False)
            _set_tooltip(line, line_name)
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
        push = max(_LINE_HEIGHT + 1 - abs(height - other_height), 0) / 2
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
        return _as_svg(figure, label)


# ---- What all charts share -------------------------------------------------------------------


@contextmanager
def _page_style(label: str) -> Iterator[None]:
    """Draw with the kit's style alone, whatever a user's own settings of matplotlib are."""
    from matplotlib import style

    chart_style = {**_CHART_STYLE, "svg.hashsalt": label}
    with style.context(["default", chart_style]), warnings.catch_warnings():
        # The browser's fonts draw the text, whatever matplotlib's own font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def _new_figure(height: float) -> "Figure":
    """Return a figure of the common width, laid out so that no text is cut."""
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH / 72, height / 72), layout="constrained")


def _text_width(text: str, weight: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=_FONT_SIZE, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def _wrap(text: str, width: float, weight: str = "normal") -> str:
    """Break a text into lines: after spaces, in longer words after underscores, else anywhere."""
    pieces = [text]
    for after in (" ", "_", ""):
        pieces = [
            part
            for piece in pieces
            for part in (
                [piece] if _text_width(piece, weight) <= width else re.split(f"(?<={after})", piece)
            )
        ]
    lines = [""]
    for piece in pieces:
        if lines[-1] and _text_width(lines[-1] + piece.rstrip(), weight) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _set_tooltip(artist: "Artist", text: str) -> None:
    """Make browsers show a text beside the pointer: `_as_svg` turns this id into a title."""
    artist.set_gid(f"tooltip:{text}")


def _as_svg(figure: "Figure", label: str) -> str:
    """Return a figure as an SVG element for a page."""
    file = StringIO()
    figure.savefig(file, format="svg", transparent=True)
    svg = file.getvalue()
    _, size, content = re.split(r'<svg[^>]*(viewBox="[^"]*")[^>]*>', svg, maxsplit=1)
    # A style element would apply to the whole page, and its font is to be used here.
    content = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", content, flags=re.DOTALL)
    content = re.sub(r" font-family: '[^;]*;", "", content)
    content = re.sub(
        r"<g id=([\"'])tooltip:(.*?)\1>", r"<g><title>\2</title>", content, flags=re.DOTALL
    )
    # Nothing refers to the other groups, whose ids are the same in every chart.
    content = re.sub(r'<g id="[^"]*"', "<g", content)
    for old, new in (*_PAGE_COLOURS.items(), ("xlink:href", "href")):
        content = content.replace(old, new)
    return f'<svg class="chart" {size} role="img" aria-label="{escape(label)}">{content}'
