"""Checks that a page that the kit writes is well-formed and self-contained, for the tests."""

import re
from collections import Counter
from html.parser import HTMLParser


class Page(HTMLParser):
    """Collects what a page holds: open elements must be closed, ids are counted."""

    EMPTY = frozenset({"meta", "link", "br", "wbr", "path", "use", "rect", "line", "circle"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.references: list[str] = []
        self.open: list[str] = []
        self.n_charts = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.n_charts += tag == "svg"
        for name, value in attributes:
            if name == "id":
                self.ids[value or ""] += 1
            if name in ("src", "href", "xlink:href"):
                self.references.append(value or "")
            self.references += re.findall(r"url\(([^)]*)\)", value or "")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


def check_page(text: str) -> Page:
    """Check a page: whole, no id twice, nothing loaded from elsewhere, no script; give it read."""
    assert text.startswith("<!doctype html>")
    page = Page(text)
    assert page.open == []
    assert all(count == 1 for count in page.ids.values()), page.ids.most_common(3)
    for reference in page.references:
        assert reference == "data:," or reference[1:] in page.ids, reference
    assert "<script" not in text
    return page
