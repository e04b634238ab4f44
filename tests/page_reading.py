"""Reading the pages that the kit writes, as a person does: texts, tables, charts; not their tags.

    page = read_page(path.read_text())
    page.text                     everything that is to be read, on one line
    page.headings                 in their order
    page.table("Confusion matrix").rows
    page.chart("Calibration").titles

Reading a page checks it: every element closed, no id twice, nothing loaded from elsewhere, no
script.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

_SHAPES = {"path", "use", "rect", "circle", "line"}
_EMPTY = {"meta", "link", "br", "hr", "img", "input", "wbr", *_SHAPES}
_HEADINGS = {"h1", "h2", "h3", "h4", "summary"}
# Between these a reader sees no gap.
_INLINE = {"a", "b", "code", "em", "i", "small", "span", "strong", "sub", "sup", "wbr"}
_UNREAD = {"style", "head", "svg"}


@dataclass
class Table:
    """A table: the heading above it, its caption, its rows; a cell is its text."""

    heading: str
    caption: str
    rows: list[list[str]]
    columns: list[str]

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
    """A drawing: what is written in it; of its marks what each says when pointed at, and style."""

    heading: str
    key: str = ""
    texts: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)


class Page(HTMLParser):
    """A page, read."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self._open: list[str] = []
        self._tree = TreeBuilder()
        self.feed(html)
        self.close()
        assert self._open == [], self._open
        root = self._tree.close()
        self.text = _text(root, hidden=_UNREAD)
        self.folded = " ".join(_text(part, hidden=_UNREAD) for part in root.iter("details"))
        self.ids = Counter(part.attrib["id"] for part in root.iter() if "id" in part.attrib)
        self.references: list[str] = []
        self.headings: list[str] = []
        self.tables: list[Table] = []
        self.charts: list[Chart] = []
        for part in root.iter():
            self._read(part)

    def table(self, heading: str) -> Table:
        """Return the only table whose caption or heading begins so."""
        return _only(heading, self.tables, "caption")

    def chart(self, heading: str) -> Chart:
        """Return the only chart whose key or heading begins so."""
        return _only(heading, self.charts, "key")

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        assert tag != "script"
        self._tree.start(tag, {name: value or "" for name, value in attributes})
        self._open.append(tag)
        if tag in _EMPTY:
            self._end(tag)

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag not in _EMPTY:
            self._end(tag)

    def handle_data(self, data: str) -> None:
        """Read text."""
        self._tree.data(data)

    def _end(self, tag: str) -> None:
        assert self._open.pop() == tag, tag
        self._tree.end(tag)

    def _read(self, part: Element) -> None:
        """Take what an element holds into the lists."""
        self.references += [
            part.attrib[n] for n in ("src", "href", "xlink:href") if n in part.attrib
        ]
        for value in part.attrib.values():
            self.references += re.findall(r"url\(([^)]*)\)", value)
        heading = self.headings[-1] if self.headings else ""
        if part.tag in _HEADINGS:
            self.headings.append(_text(part))
        elif part.tag == "table":
            caption = " ".join(map(_text, part.iter("caption")))
            rows = [[_text(cell) for cell in row] for row in part.iter("tr")]
            head = part.find("thead")
            columns = [] if head is None else rows.pop(len(head) - 1)
            self.tables.append(Table(heading, caption, rows, columns))
        elif part.tag == "svg":
            self.charts.append(Chart(heading, texts=[_text(text) for text in part.iter("text")]))
        elif part.tag == "title" and self.charts:
            self.charts[-1].titles.append(_text(part))
            self.charts[-1].styles.append("")
        elif part.tag in _SHAPES and self.charts and self.charts[-1].styles:
            style = part.get("style") or part.get("fill", "")
            self.charts[-1].styles[-1] = self.charts[-1].styles[-1] or style
        elif part.tag == "figcaption" and self.charts:
            self.charts[-1].key = f"{self.charts[-1].key} {_text(part)}".strip()


def read_page(html: str, links: Collection[str] = ()) -> Page:
    """Read a whole page, and check it; it may link to other files only as told."""
    assert html.startswith("<!doctype html>")
    page = Page(html)
    assert all(count == 1 for count in page.ids.values()), page.ids.most_common(3)
    for reference in page.references:
        assert reference in ("data:,", *links) or reference[1:] in page.ids, reference
    return page


def _text(element: Element, hidden: Collection[str] = ()) -> str:
    """Return the text of an element on one line, without that of some elements in it."""

    def parts(one: Element) -> Iterator[str]:
        gap = "" if one.tag in _INLINE else " "
        yield gap
        if one.tag not in hidden:
            yield one.text or ""
            for inner in one:
                yield from parts(inner)
        yield gap + (one.tail or "")

    element.tail = None
    return " ".join("".join(parts(element)).split())


def _only(words: str, found: Collection[Any], other: str) -> Any:
    beginnings = [(one.heading[: len(words)], getattr(one, other)[: len(words)]) for one in found]
    fit = [one for one, begins in zip(found, beginnings, strict=True) if words in begins]
    assert len(fit) == 1, f"{len(fit)} of {words!r}"
    return fit[0]
