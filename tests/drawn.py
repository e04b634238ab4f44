"""Read an SVG chart back: positions are in the units of its viewBox, and y points down."""

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
    """A chart read from SVG."""

    # Width and height of the viewBox.
    size: tuple[float, float]
    texts: list[Text]
    # The key is the text of a tooltip. The value holds the points of the shape with this tooltip: a
    # row of x and y for each point.
    shapes: dict[str, np.ndarray]
    # The key is the text of a tooltip. The value is the CSS style of the shape with this tooltip.
    styles: dict[str, str]
    # The coordinates x, y, x, y, … of every path.
    paths: list[list[float]]
    # The coordinates of the dashed paths alone.
    dashed: list[list[float]]

    def places(self, titles: Sequence[str]) -> np.ndarray:
        """Return the first point of each shape with one of these tooltips.

        The array has a row with the x and a row with the y of these points.
        """
        return np.array([self.shapes[title][0] for title in titles]).T

    def has_path(self, points: Sequence[float]) -> bool:
        """Return whether there is a path with the coordinates x, y, x, y, … of these points."""
        return any(path == pytest.approx(points, abs=0.05) for path in self.paths)

    def check_texts(self, *expected: str) -> None:
        """Check that the chart shows these texts, that none is cut off, and that none overlap."""
        # The chart may break a text into several lines, so blanks do not count.
        shown = "".join(text.text for text in self.texts).replace(" ", "")
        missing = [text for text in expected if text.replace(" ", "") not in shown]
        assert missing == []

        # The boxes of texts are measured without a browser, so each side may be wrong a little.
        tolerance = 0.5
        width, height = self.size
        for text in self.texts:
            assert text.left >= -tolerance, text
            assert text.right <= width + tolerance, text
            assert text.top >= -tolerance, text
            assert text.bottom <= height + tolerance, text
        for one, other in combinations(self.texts, 2):
            shared_width = min(one.right, other.right) - max(one.left, other.left)
            shared_height = min(one.bottom, other.bottom) - max(one.top, other.top)
            # Both boxes may be too large by the tolerance.
            assert min(shared_width, shared_height) < 2 * tolerance, (one, other)


def on_scale(values: Sequence[float], places: Sequence[float]) -> Callable[[float], float]:
    """Check that places in the chart are a linear function of the values; return the function."""
    slope, offset = np.polyfit(values, places, 1)
    assert places == pytest.approx(offset + slope * np.array(values), abs=0.05)
    return lambda value: float(offset + slope * value)


def draw(svg: str) -> Drawing:
    """Return the drawing in an SVG: the texts, paths and marks of a chart, as numbers.

    A mark is a shape with a tooltip: a group of a title and a path. Only marks have an entry in
    `shapes` and `styles`; `paths` holds all paths.
    """
    root = ElementTree.fromstring(svg)
    shapes = {}
    styles = {}
    for group in root.iter("g"):
        title = group.findtext("title")
        if title is not None:
            # The first child is the title, which a browser shows as a tooltip. The second child is
            # the path, whose attribute `d` holds the coordinates x, y, x, y, …
            path = group[1]
            shapes[title] = np.reshape(numbers(path.attrib["d"]), (-1, 2))
            styles[title] = path.attrib["style"]
    texts = [_read_text(element) for element in root.iter("text") if element.text]
    paths = []
    dashed = []
    for path in root.iter("path"):
        coordinates = numbers(path.attrib["d"])
        paths.append(coordinates)
        if "dasharray" in path.get("style", ""):
            dashed.append(coordinates)
    _left, _top, width, height = numbers(root.attrib["viewBox"])
    return Drawing((width, height), texts, shapes, styles, paths, dashed)


def numbers(text: str) -> list[float]:
    """Return the numbers of a text."""
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def _read_text(element: ElementTree.Element) -> Text:
    """Return a text and its box, which is measured with the font of matplotlib."""
    style = dict(part.split(": ", 1) for part in element.attrib["style"].split("; "))
    x, y = float(element.attrib["x"]), float(element.attrib["y"])
    size = float(style["font-size"].removesuffix("px"))
    font = FontProperties(size=size, weight=int(style.get("font-weight", 400)))
    text = element.text or ""
    width, height, descent = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    left = x - width * {"start": 0, "middle": 0.5, "end": 1}[style.get("text-anchor", "start")]
    # `y` is the baseline of the text; `descent` is the part of its height below the baseline.
    return Text(text, left, left + width, y - height + descent, y + descent)
