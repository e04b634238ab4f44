"""Reading the pages that the kit writes, as a person does: texts, tables, charts; not their tags.

    page = read_page(path.read_text())
    page.text                     everything that is to be read, on one line
    page.headings                 in their order
    page.table("Confusion matrix").rows
    page.chart("Calibration").marks

Reading a page checks it: every element closed, no id twice, nothing loaded from elsewhere, no
script.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_SHAPES = {"path", "use", "rect", "circle", "line"}
_EMPTY = {"meta", "link", "br", "hr", "img", "input", "wbr", *_SHAPES}
_HEADINGS = {"h1", "h2", "h3", "h4", "summary"}
# Between these a reader sees no gap.
_INLINE = {"a", "b", "code", "em", "i", "small", "span", "strong", "sub", "sup", "wbr"}


@dataclass
class Table:
    """A table: the heading above it, its caption, its rows; a cell is its text."""

    heading: str
    caption: str = ""
    rows: list[list[str]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)

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
    """A drawing: what is written in it, and its marks, each with what it says when pointed at."""

    heading: str
    key: str = ""
    texts: list[str] = field(default_factory=list)
    marks: list["Mark"] = field(default_factory=list)

    @property
    def titles(self) -> list[str]:
        """Return what the marks say, in the order in which they are drawn."""
        return [mark.title for mark in self.marks]


@dataclass
class Mark:
    """A bar, a point, a cell of a chart: what it says, how it is drawn."""

    title: str
    style: str = ""


class Page(HTMLParser):
    """A page, read."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.tables: list[Table] = []
        self.charts: list[Chart] = []
        self.folded = ""
        self.ids: Counter[str] = Counter()
        self.references: list[str] = []
        self._open: list[str] = []
        self._kept: list[tuple[int, list[str], Callable[[str], None]]] = []
        self._parts: list[str] = []
        self._folded: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], self._open
        self.text = _line(self._parts)
        self.folded = _line(self._folded)

    def table(self, heading: str) -> Table:
        """Return the only table whose caption or heading begins so."""
        return _only(heading, self.tables, "caption")

    def chart(self, heading: str) -> Chart:
        """Return the only chart whose key or heading begins so."""
        return _only(heading, self.charts, "key")

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        told = {name: value or "" for name, value in attributes}
        assert tag != "script"
        self.ids.update([told["id"]] if "id" in told else [])
        self.references += [told[n] for n in ("src", "href", "xlink:href") if n in told]
        for value in told.values():
            self.references += re.findall(r"url\(([^)]*)\)", value)
        if tag not in _EMPTY:
            self._open.append(tag)
        in_chart = "svg" in self._open
        if tag not in _INLINE and not in_chart:
            self._say(" ")
        if tag == "svg":
            self.charts.append(Chart(self.headings[-1] if self.headings else ""))
        elif in_chart and tag == "title":
            self._keep(lambda text: self.charts[-1].marks.append(Mark(text)))
        elif in_chart and tag == "text":
            self._keep(lambda text: self.charts[-1].texts.append(text))
        elif in_chart and tag in _SHAPES and self.charts[-1].marks:
            mark = self.charts[-1].marks[-1]
            mark.style = mark.style or told.get("style", "") or told.get("fill", "")
        elif tag in _HEADINGS:
            self._keep(self.headings.append)
        elif tag == "table":
            self.tables.append(Table(self.headings[-1] if self.headings else ""))
        elif tag == "caption":
            self._keep(lambda text: setattr(self.tables[-1], "caption", text))
        elif tag == "figcaption":
            self._keep(self._caption)
        elif tag == "tr":
            self.tables[-1].rows.append([])
        elif tag in ("td", "th"):
            self._keep(self.tables[-1].rows[-1].append)

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag in _EMPTY:
            return
        assert self._open.pop() == tag, tag
        while self._kept and self._kept[-1][0] > len(self._open):
            _, parts, receive = self._kept.pop()
            receive(_line(parts))
        if tag == "thead":
            self.tables[-1].columns = self.tables[-1].rows.pop()
        if tag not in _INLINE and "svg" not in self._open:
            self._say(" ")

    def handle_data(self, data: str) -> None:
        """Read text."""
        if not {"style", "head"} & {*self._open}:
            self._say(data)

    def _say(self, text: str) -> None:
        if "svg" not in self._open:
            self._parts.append(text)
            if "details" in self._open:
                self._folded.append(text)
        for _, parts, _receive in self._kept:
            parts.append(text)

    def _keep(self, receive: Callable[[str], None]) -> None:
        """Give the text of the element that begins here to a function, once it ends."""
        self._kept.append((len(self._open), [], receive))

    def _caption(self, text: str) -> None:
        if self.charts:
            self.charts[-1].key = f"{self.charts[-1].key} {text}".strip()


def read_page(html: str, links: Collection[str] = ()) -> Page:
    """Read a whole page, and check it; it may link to other files only as told."""
    assert html.startswith("<!doctype html>")
    page = Page(html)
    assert all(count == 1 for count in page.ids.values()), page.ids.most_common(3)
    for reference in page.references:
        assert reference in ("data:,", *links) or reference[1:] in page.ids, reference
    return page


def _line(parts: list[str]) -> str:
    return " ".join("".join(parts).split())


def _only(words: str, found: Collection[Any], other: str) -> Any:
    beginnings = [(one.heading[: len(words)], getattr(one, other)[: len(words)]) for one in found]
    fit = [one for one, begins in zip(found, beginnings, strict=True) if words in begins]
    assert len(fit) == 1, f"{len(fit)} of {words!r}"
    return fit[0]
