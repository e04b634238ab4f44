"""What all charts share: colours that follow the page, sizes, and the way from matplotlib to SVG.

Text stays text, in the page's font; colours are the page's own, light or dark. matplotlib is
imported only when a chart is drawn, so that scripts without charts start fast.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

# Stand-ins for the page's own colours, which matplotlib cannot name.
TEXT, SOFT, GREY = "#010203", "#010204", "#010205"
ACCENT, LINE = "#010206", "#010207"
# Colours of curves, after the accent; told apart by those who see no red or green too (Okabe and
# Ito 2008), and mixed with the text's colour, so that they stand out on light and dark pages.
_HUES = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#808080")
HUES = tuple(f"#0103{number:02x}" for number in range(len(_HUES)))
_PAGE_COLOURS = {
    TEXT: "currentColor",
    SOFT: "color-mix(in srgb, currentColor 70%, Canvas)",
    GREY: "color-mix(in srgb, currentColor 40%, Canvas)",
    ACCENT: "rgb(var(--accent))",
    LINE: "var(--line)",
    **{
        stand_in: f"color-mix(in srgb, currentColor 12%, {hue})"
        for stand_in, hue in zip(HUES, _HUES, strict=True)
    },
}
# Lengths in points. A chart is as wide as a phone, where its text must stay readable, or as wide as
# the text of a page on a larger screen.
WIDTH = 340.0
PAGE_WIDTH = 552.0
FONT_SIZE = 11.0
ROW_HEIGHT = 21.0
LINE_HEIGHT = 13.5
_CHART_STYLE: dict[str, Any] = {
    "figure.dpi": 72,
    "font.size": FONT_SIZE,
    "svg.fonttype": "none",
    "text.parse_math": False,
    "text.color": TEXT,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "grid.color": LINE,
    "xtick.bottom": False,
    "xtick.labelcolor": SOFT,
    "xtick.labelsize": 10,
    "ytick.left": False,
    "ytick.labelcolor": SOFT,
    "ytick.labelsize": 10,
}


@contextmanager
def page_style(label: str) -> Iterator[None]:
    """Draw with the kit's style alone, whatever a user's own settings of matplotlib are."""
    from matplotlib import style

    chart_style = {**_CHART_STYLE, "svg.hashsalt": label}
    with style.context(["default", chart_style]), warnings.catch_warnings():
        # The browser's fonts draw the text, whatever matplotlib's own font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def new_figure(height: float, width: float = WIDTH) -> "Figure":
    """Return a figure, a phone's width if not said otherwise, laid out so that no text is cut."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 72, height / 72), layout="constrained")


def text_width(text: str, weight: str = "normal") -> float:
    """Return about how wide a text is in points, in the charts' usual size."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=FONT_SIZE, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def wrap(text: str, width: float, weight: str = "normal") -> str:
    """Break a text into lines: after spaces, in longer words after underscores, else anywhere."""
    pieces = [text]
    for after in (" ", "_", ""):
        pieces = [
            part
            for piece in pieces
            for part in (
                [piece] if text_width(piece, weight) <= width else re.split(f"(?<={after})", piece)
            )
        ]
    lines = [""]
    for piece in pieces:
        if lines[-1] and text_width(lines[-1] + piece.rstrip(), weight) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def set_tooltip(artist: "Artist", text: str) -> None:
    """Make browsers show a text beside the pointer: `as_svg` turns this id into a title."""
    artist.set_gid(f"tooltip:{text}")


def as_svg(figure: "Figure", label: str) -> str:
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
