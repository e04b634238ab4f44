"""Reading the pages that the kit writes, as a person does: texts, tables, charts; not their tags.

Reading a page checks it: every element closed, no id twice, no script, nothing from elsewhere.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, fromstring

_EMPTY = re.compile(r"<((?:meta|link|br|hr|img|input|wbr)\b[^>]*?)/?>")
_HEADINGS = {"h1", "h2", "h3", "h4", "summary"}
# Between these a reader sees no gap.
_INLINE = {"a", "b", "code", "em", "i", "small", "span", "strong", "sub", "sup", "wbr"}
_UNREAD = {"head", "svg"}


@dataclass
class Table:
    """A table: the heading above it, its caption, its rows; a cell is its text."""

    heading: str
    caption: str
    columns: list[str]
    rows: list[list[str]]

    def row(self, first: str) -> list[str]:
        """Return the only row whose first cell says this."""
        (row,) = (row for row in self.rows if row[0] == first)
        return row

    def column(self, name: str) -> list[str]:
        """Return the cells below a column's name."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


@dataclass
class Chart:
    """A drawing: what is written in it, what its marks say when pointed at, how they are drawn."""

    heading: str
    texts: list[str]
    titles: list[str]
    styles: list[str]
    key: str = ""


class Page:
    """A page, read: `text` is all that is to be read, on one line."""

    def __init__(self, html: str) -> None:
        # As XML has it, which does not forgive an element that stays open.
        html = html.removeprefix("<!doctype html>").replace("<details open>", "<details>")
        root = fromstring(_EMPTY.sub(r"<\1/>", html))
        self.text = _line(root)
        self.folded = " ".join(map(_line, root.iter("details")))
        attributes = [pair for element in root.iter() for pair in element.attrib.items()]
        self.ids = [value for name, value in attributes if name == "id"]
        self.references = [value for name, value in attributes if name in ("src", "href")]
        values = " ".join(value for _, value in attributes)
        self.references += re.findall(r"url\(([^)]*)\)", values)
        self.headings: list[str] = []
        self.tables: list[Table] = []
        self.charts: list[Chart] = []
        for element in root.iter():
            assert element.tag != "script"
            above = self.headings[-1] if self.headings else ""
            if element.tag in _HEADINGS:
                self.headings.append(_line(element))
            elif element.tag == "table":
                rows = [[_line(cell) for cell in row] for row in element.iter("tr")]
                n_above = len(element.findall("thead/tr"))
                columns = rows.pop(n_above - 1) if n_above else []
                caption = "".join(map(_line, element.findall("caption")))
                self.tables.append(Table(above, caption, columns, rows))
            elif element.tag == "svg":
                marks = [mark for mark in element.iter() if mark.find("title") is not None]
                titles = [mark.findtext("title", "") for mark in marks]
                styles = [mark[1].attrib["style"] for mark in marks]
                texts = [_line(text) for text in element.iter("text")]
                self.charts.append(Chart(above, texts, titles, styles))
            elif element.tag == "figcaption" and self.charts:
                self.charts[-1].key = f"{self.charts[-1].key} {_line(element)}".strip()

    def table(self, heading: str) -> Table:
        """Return the only table whose caption or heading begins so."""
        return _only(heading, self.tables, "caption")

    def chart(self, heading: str) -> Chart:
        """Return the only chart whose key or heading begins so."""
        return _only(heading, self.charts, "key")


def read_page(html: str, links: Collection[str] = ()) -> Page:
    """Read a whole page, and check it; it may link to other files only as told."""
    assert html.startswith("<!doctype html>")
    page = Page(html)
    assert len(page.ids) == len({*page.ids})
    for reference in page.references:
        assert reference in ("data:,", *links) or reference[1:] in page.ids, reference
    return page


def _line(element: Element) -> str:
    """Return what there is to read of an element."""
    return " ".join(_read(element).split())


def _read(element: Element) -> str:
    parts = [("" if part.tag in _UNREAD else _read(part)) + (part.tail or "") for part in element]
    gap = "" if element.tag in _INLINE else " "
    return "".join((gap, element.text or "", *parts, gap))


def _only(words: str, found: Collection[Any], other: str) -> Any:
    n = len(words)
    fit = [one for one in found if words in (one.heading[:n], getattr(one, other)[:n])]
    assert len(fit) == 1, f"{len(fit)} of {words!r}"
    return fit[0]
