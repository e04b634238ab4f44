"""Reading the pages that the kit writes, as a person does: texts, tables, charts; not their tags.

Reading a page checks it: every element closed, no id twice, no script, nothing from elsewhere.
"""

import re
from collections.abc import Collection, Iterable
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
        self.headings: list[str] = []
        self.tables: list[Table] = []
        self.charts: list[Chart] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        for element in root.iter():
            assert element.tag != "script"
            self.ids += [element.attrib["id"]] if "id" in element.attrib else []
            self.references += [element.attrib[n] for n in ("src", "href") if n in element.attrib]
            for value in element.attrib.values():
                self.references += re.findall(r"url\(([^)]*)\)", value)
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
    return " ".join("".join(_parts(element)).split())


def _parts(element: Element) -> Iterable[str]:
    gap = "" if element.tag in _INLINE else " "
    yield gap + (element.text or "")
    for inside in element:
        if inside.tag not in _UNREAD:
            yield from _parts(inside)
        yield inside.tail or ""
    yield gap


def _only(words: str, found: Collection[Any], other: str) -> Any:
    beginnings = [(one.heading[: len(words)], getattr(one, other)[: len(words)]) for one in found]
    fit = [one for one, begins in zip(found, beginnings, strict=True) if words in begins]
    assert len(fit) == 1, f"{len(fit)} of {words!r}"
    return fit[0]
