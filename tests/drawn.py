"""Reading what a chart draws, as a browser would show it: lengths in its units, y downwards."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path


@dataclass(frozen=True)
class Text:
    """A text of a chart and the box that it fills."""

    text: str
    left: float
    right: float
    top: float
    bottom: float

    @property
    def middle(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2


@dataclass(frozen=True)
class Drawing:
    """Size, texts; points and styles of what has a tooltip, by that; of all paths, dashed ones."""

    size: tuple[float, float]
    texts: list[Text]
    shapes: dict[str, np.ndarray]
    styles: dict[str, str]
    paths: list[list[float]]
    dashed: list[list[float]]

    def places(self, titles: Sequence[str]) -> np.ndarray:
        """Return where the first points of these shapes are, shape (2, titles)."""
        return np.array([self.shapes[title][0] for title in titles]).T

    def has_path(self, points: Sequence[float]) -> bool:
        """Return whether there is a path of these points."""
        return any(path == pytest.approx(points, abs=0.05) for path in self.paths)

    def check_texts(self, *expected: str) -> None:
        """All these are there, inside the chart; no text covers another."""
        # A text may be broken into lines.
        said = "".join(text.text for text in self.texts).replace(" ", "")
        assert [text for text in expected if text.replace(" ", "") not in said] == []
        width, height = self.size
        for text in self.texts:
            assert text.left >= -0.5 and text.right <= width + 0.5, text
            assert text.top >= -0.5 and text.bottom <= height + 0.5, text
        for one, other in combinations(self.texts, 2):
            shared_width = min(one.right, other.right) - max(one.left, other.left)
            shared_height = min(one.bottom, other.bottom) - max(one.top, other.top)
            assert min(shared_width, shared_height) < 1, (one, other)


def on_scale(values: Sequence[float], places: Sequence[float]) -> Callable[[float], float]:
    """Check that places are to scale; return where any value is."""
    slope, offset = np.polyfit(values, places, 1)
    assert places == pytest.approx(offset + slope * np.array(values), abs=0.05)
    return lambda value: float(offset + slope * value)


def draw(svg: str) -> Drawing:
    """Read a chart."""
    root = ElementTree.fromstring(svg)
    marked = [group for group in root.iter("g") if group.find("title") is not None]
    marks = {group.findtext("title", ""): group[1].attrib for group in marked}
    shapes = {title: np.reshape(numbers(mark["d"]), (-1, 2)) for title, mark in marks.items()}
    styles = {title: mark["style"] for title, mark in marks.items()}
    texts = [_read_text(element) for element in root.iter("text") if element.text]
    paths = list(root.iter("path"))
    dashed = [path for path in paths if "dasharray" in path.get("style", "")]
    width, height = numbers(root.attrib["viewBox"])[2:]
    drawn = ([numbers(path.attrib["d"]) for path in some] for some in (paths, dashed))
    return Drawing((width, height), texts, shapes, styles, *drawn)


def numbers(text: str) -> list[float]:
    """Return the numbers of a text."""
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def _read_text(element: ElementTree.Element) -> Text:
    style = dict(part.split(": ", 1) for part in element.attrib["style"].split("; "))
    x, y = float(element.attrib["x"]), float(element.attrib["y"])
    size = float(style["font-size"].removesuffix("px"))
    font = FontProperties(size=size, weight=int(style.get("font-weight", 400)))
    text = element.text or ""
    width, height, descent = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    left = x - width * {"start": 0, "middle": 0.5, "end": 1}[style.get("text-anchor", "start")]
    return Text(text, left, left + width, y - height + descent, y + descent)
