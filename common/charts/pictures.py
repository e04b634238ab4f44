"""A chart as a file of its own, for pages that show it as an image."""

import re
from html import escape

from common.charts.style import LINE_HEIGHT, WIDTH, page_style, wrap

# An image cannot take the colours of the page that shows it: it brings its own, and a ground to
# stand on, so that it can be read even where the page and the browser disagree on light or dark.
_STYLE = """
:root { --text: #1f2328; --soft: #59636e; --grey: #8c959f; --line: #d1d9e0; --ground: #ffffff;
        --accent: 37 99 235; }
@media (prefers-color-scheme: dark) {
  :root { --text: #f0f6fc; --soft: #9198a1; --grey: #656c76; --line: #3d444d; --ground: #0d1117;
          --accent: 96 165 250; }
}
svg { color: var(--text); font-family: system-ui, sans-serif; }
"""
_MARGIN = 10.0


def picture(svg: str, title: str) -> str:
    """Return a chart as an SVG file, light or dark as the browser's settings say.

    Parameters
    ----------
    svg
        A chart of this package.
    title
        Written above it.

    Returns
    -------
    str
        Contents of the file.
    """
    with page_style(title):
        lines = wrap(title, WIDTH - 2 * _MARGIN, "bold").split("\n")
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert size is not None
    top = LINE_HEIGHT * len(lines) + 2 * _MARGIN
    width = float(size[1]) + 2 * _MARGIN
    height = float(size[2]) + top + _MARGIN
    for old, new in (
        ("color-mix(in srgb, currentColor 70%, Canvas)", "var(--soft)"),
        ("color-mix(in srgb, currentColor 40%, Canvas)", "var(--grey)"),
    ):
        svg = svg.replace(old, new)
    chart = svg.replace(
        "<svg ",
        f'<svg x="{_MARGIN:g}" y="{top:g}" width="{float(size[1]):g}" height="{float(size[2]):g}" ',
        1,
    )
    text = "".join(
        f'<text x="{_MARGIN:g}" y="{_MARGIN + LINE_HEIGHT * (row + 0.8):g}" font-size="11.5" '
        f'font-weight="600" fill="currentColor">{escape(line)}</text>\n'
        for row, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}">\n<style>{_STYLE}</style>\n'
        f'<rect width="100%" height="100%" rx="6" fill="var(--ground)"/>\n{text}{chart}</svg>\n'
    )
