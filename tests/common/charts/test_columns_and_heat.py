"""Columns, shades and pictures: to scale, every text whole, readable light and dark."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.charts import Dot, Mark, column_chart, compact, dot_chart, heat_map, picture
from common.charts.columns import thin
from common.charts.style import text_width


def shapes(svg: str) -> dict[str, np.ndarray]:
    """Return the points of everything that has a tooltip."""
    found = {}
    for group in ElementTree.fromstring(svg).iter("g"):
        title, path = group.find("title"), next(group.iter("path"), None)
        if title is not None and path is not None:
            numbers = re.findall(r"-?\d+(?:\.\d+)?", path.attrib["d"])
            found[title.text or ""] = np.reshape([float(number) for number in numbers], (-1, 2))
    return found


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("text")]


def opacities(svg: str) -> dict[str, float]:
    found = re.findall(r"<title>(.*?)</title>\s*<path([^>]*)>", svg, re.DOTALL)
    stated = {title: re.findall(r"opacity: ([\d.]+)", path) for title, path in found}
    return {title: float(opacity[0]) if opacity else 1.0 for title, opacity in stated.items()}


@settings(max_examples=15)
@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=40))
def test_columns_are_as_high_as_their_values(heights: list[int]) -> None:
    names = [f"column {place}" for place in range(len(heights))]
    svg = column_chart(heights, names, [], label="l", axis="a", unit="u", mark=Mark(0.5, "here"))
    found = shapes(svg)
    assert list(found) == names
    drawn = np.array([np.ptp(found[name][:, 1]) for name in names])
    expected = np.array(heights) / (max(heights) or 1)
    assert drawn == pytest.approx(drawn.max() * expected, abs=0.01)
    left = np.array([found[name][:, 0].min() for name in names])
    assert np.diff(left, 2) == pytest.approx(0, abs=0.01)
    assert {"a", "u", "here"} <= set(texts(svg))


def test_a_mark_stands_where_it_belongs() -> None:
    svg = column_chart([1, 1], ["x", "y"], [], label="l", axis="", unit="", mark=Mark(1.5, "m"))
    (line,) = re.findall(r'<path d="M ([\d.]+) [^"]*"[^>]*dasharray', svg)
    assert float(line) == pytest.approx(shapes(svg)["y"][:, 0].mean(), abs=0.01)


@given(st.lists(st.integers(0, 99_999), min_size=1, max_size=30), st.floats(1, 40))
def test_names_that_have_no_room_are_left_out(numbers: list[int], width: float) -> None:
    ticks = [(float(place), str(number)) for place, number in enumerate(numbers)]
    shown = thin(ticks, width)
    assert shown[0] == ticks[0]
    assert set(shown) <= set(ticks)
    for (place, text), (next_place, next_text) in pairwise(shown):
        room = (next_place - place) * width
        assert room >= (text_width(text) + text_width(next_text)) / 2 * 10 / 11 + 5 - 1e-6
    assert thin(ticks, 1000) == ticks


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (950, "950"), (1500, "1.5k"), (20_000, "20k"), (3e6, "3M"), (2.5e9, "2.5G")],
)
def test_compact_numbers(number: float, text: str) -> None:
    assert compact(number) == text


@pytest.mark.parametrize("limits", [None, (2, 6), (1, 11)])
def test_more_is_darker(limits: tuple[float, float] | None) -> None:
    values = np.array([[2.0, 3, np.nan], [4, 6, 5]])
    names = [["2", "3", "none"], ["4", "6", "5"]]
    svg = heat_map(
        values, ["one", "two"], ["x", "", "z"], names,
        label="l", axis="a", side="s", key=lambda value: f"{value:g} things", limits=limits,
    )  # fmt: skip
    shade = opacities(svg)
    low, high = limits or (0, 6)
    for name in ("2", "3", "4", "5", "6"):
        expected = 0.1 + 0.9 * (float(name) - low) / (high - low)
        assert shade[name] == pytest.approx(expected, abs=0.01)
    assert {"one", "two", "x", "z", "a", "s", f"{low} things", f"{high} things"} <= set(texts(svg))
    # A place without a value is in the colour of lines.
    fills = dict(re.findall(r"<title>(.*?)</title>\s*<path[^>]*fill: ([^;\"]*)", svg, re.DOTALL))
    assert fills.pop("none") == "var(--line)"
    assert set(fills.values()) == {"rgb(var(--accent))"}
    found = shapes(svg)
    assert found["2"][:, 0].mean() == pytest.approx(found["4"][:, 0].mean(), abs=0.01)
    assert found["2"][:, 1].mean() < found["4"][:, 1].mean()


def test_equal_values_have_one_shade() -> None:
    svg = heat_map(
        np.full((1, 2), 0.5), ["r"], ["a", "b"], [["x", "y"]],
        label="l", axis="", key=str, limits=(0.5, 0.5),
    )  # fmt: skip
    assert set(opacities(svg).values()) == {1.0}


def test_a_picture_stands_alone() -> None:
    chart = dot_chart([Dot("a < b", 0.5)], label="l", digits=2)
    title = "a title so long that it is broken into lines, <b> & all: " + "word " * 12
    file = picture(chart, title)
    root = ElementTree.fromstring(file)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    said = " ".join("".join(root.itertext()).split())
    assert " ".join(title.split()) in said
    assert "a < b" in said
    # Colours of its own, for light and for dark.
    light, dark = file.split("prefers-color-scheme: dark")
    for name in set(re.findall(r"var\((--\w+)\)", file)):
        assert f"{name}:" in light
        assert f"{name}:" in dark.split("</style>")[0]
    assert "Canvas" not in file
    assert float(root.attrib["height"]) > float(re.findall(r'viewBox="0 0 \S+ ([\d.]+)"', chart)[0])
