"""Read the HTML pages that the kit writes as a person would: their texts, tables and charts.

Reading a page also checks it: every element is closed, no id occurs twice, there is no script, and
the page needs no other file.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, fromstring

_EMPTY = re.compile(r"<((?:meta|link|br|hr|img|input|wbr)\b[^>]*?)/?>")
_HEADINGS = {"h1", "h2", "h3", "h4", "summary"}
# A browser shows no space before and after these elements.
_INLINE = {"a", "b", "code", "em", "i", "small", "span", "strong", "sub", "sup", "wbr"}
# The text of these elements is not part of a page's text: a reader does not see it, or sees it only
# in a chart.
_UNREAD = {"head", "svg"}


@dataclass
class Table:
    """A table: the heading above it, its caption, its rows; a cell is its text."""

    heading: str
    caption: str
    columns: list[str]
    rows: list[list[str]]

    def row(self, first: str) -> list[str]:
        """Return the only row whose first cell is `first`."""
        (row,) = (row for row in self.rows if row[0] == first)
        return row

    def column(self, name: str) -> list[str]:
        """Return the cells of the column with this name."""
        index = self.columns.index(name)
        return [row[index] for row in self.rows]


@dataclass
class Chart:
    """An SVG chart."""

    heading: str
    # The texts in the chart.
    texts: list[str]
    # The tooltips of the chart's bars, points and other shapes.
    titles: list[str]
    # The CSS styles of the shapes that have tooltips, in the same order.
    styles: list[str]
    # The text below the chart: the joined texts of all its <figcaption> elements.
    caption: str = ""


class Page:
    """A page that has been read.

    `text` is all visible text on one line, `folded` the text inside <details>, and `references` are
    the targets of src, href and url().
    """

    def __init__(self, html: str) -> None:
        root = _parse(html)
        # `_line` returns the text of an element on one line.
        self.text = _line(root)
        # A browser shows the text inside <details> only if the reader unfolds it.
        self.folded = " ".join(map(_line, root.iter("details")))
        # The ids of all elements, and the targets of all references, such as links.
        self.ids: list[str] = []
        self.references: list[str] = []
        for element in root.iter():
            self._read_attributes(element)
        self.headings: list[str] = []
        self.tables: list[Table] = []
        self.charts: list[Chart] = []
        self._read_elements(root)

    def _read_attributes(self, element: Element) -> None:
        """Collect the id of an element, and the targets of its references."""
        for name, value in element.attrib.items():
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href"):
                self.references.append(value)
            self.references += re.findall(r"url\(([^)]*)\)", value)

    def _read_elements(self, root: Element) -> None:
        """Collect headings, tables and charts; a table or chart gets the last heading above it."""
        for element in root.iter():
            assert element.tag != "script"
            heading = self.headings[-1] if self.headings else ""
            if element.tag in _HEADINGS:
                self.headings.append(_line(element))
            elif element.tag == "table":
                self.tables.append(_read_table(element, heading))
            elif element.tag == "svg":
                self.charts.append(_read_chart(element, heading))
            elif element.tag == "figcaption" and self.charts:
                chart = self.charts[-1]
                chart.caption = f"{chart.caption} {_line(element)}".strip()

    def table(self, words: str) -> Table:
        """Return the only table whose caption or heading begins with these words."""
        return _only(words, self.tables)

    def chart(self, words: str) -> Chart:
        """Return the only chart whose caption or heading begins with these words."""
        return _only(words, self.charts)


def read_page(html: str, links: Collection[str] = ()) -> Page:
    """Read a whole page, and check its ids and links.

    The ids must be unique. Each link must lead to an id of the page, or be one of `links`.
    """
    assert html.startswith("<!doctype html>")
    page = Page(html)
    assert len(page.ids) == len({*page.ids})
    for reference in page.references:
        assert reference in ("data:,", *links) or reference[1:] in page.ids, reference
    return page


def _parse(html: str) -> Element:
    """Parse a page as XML, because an XML parser refuses unclosed elements."""
    # An XML parser also refuses three things that are valid HTML. So remove the doctype and
    # attributes without a value, and close empty elements such as <br>.
    html = html.removeprefix("<!doctype html>").replace("<details open>", "<details>")
    return fromstring(_EMPTY.sub(r"<\1/>", html))


def _read_table(table: Element, heading: str) -> Table:
    rows = [[_line(cell) for cell in row] for row in table.iter("tr")]
    n_head_rows = len(table.findall("thead/tr"))
    # The last row of the table's head holds the names of the columns.
    columns = rows.pop(n_head_rows - 1) if n_head_rows else []
    caption = "".join(map(_line, table.findall("caption")))
    return Table(heading, caption, columns, rows)


def _read_chart(svg: Element, heading: str) -> Chart:
    # A group with a tooltip has two children: the title, which is the tooltip, and the shape.
    groups = [group for group in svg.iter() if group.find("title") is not None]
    titles = [group.findtext("title", "") for group in groups]
    styles = [group[1].attrib["style"] for group in groups]
    texts = [_line(text) for text in svg.iter("text")]
    return Chart(heading, texts, titles, styles)


def _line(element: Element) -> str:
    """Return the text of an element on one line, with single blanks between words."""
    return " ".join(_read(element).split())


def _read(element: Element) -> str:
    parts = [("" if part.tag in _UNREAD else _read(part)) + (part.tail or "") for part in element]
    gap = "" if element.tag in _INLINE else " "
    return "".join((gap, element.text or "", *parts, gap))


def _only(words: str, items: Collection[Table] | Collection[Chart]) -> Any:
    """Return the only table or chart whose heading or caption begins with these words."""
    matches = [
        item for item in items if item.heading.startswith(words) or item.caption.startswith(words)
    ]
    assert len(matches) == 1, f"{len(matches)} of {words!r}"
    return matches[0]
