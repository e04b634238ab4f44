"""Columns, shades and pictures: to scale, every text whole, readable light and dark."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from drawn import draw

from common.charts import Dot, Mark, column_chart, compact, dot_chart, heat_map, picture


@pytest.mark.parametrize("heights", [[3], [0, 0], [10**7, 0, 1, 5 * 10**6], [*range(40)]])
def test_columns_are_as_high_as_their_values(heights: list[int]) -> None:
    names = [f"column {place}" for place in range(len(heights))]
    mark = Mark(len(names) - 0.5, "here")
    chart = draw(column_chart(heights, names, [], label="l", axis="a", unit="u", mark=mark))
    chart.check_texts("a", "u", "here")
    assert list(chart.shapes) == names
    drawn = np.array([np.ptp(points[:, 1]) for points in chart.shapes.values()])
    assert drawn == pytest.approx(drawn.max() * np.array(heights) / (max(heights) or 1), abs=0.01)
    left = np.array([points[:, 0].min() for points in chart.shapes.values()])
    assert np.diff(left, 2) == pytest.approx(0, abs=0.01)
    ((line, *_),) = chart.dashed
    assert line == pytest.approx(chart.shapes[names[-1]][:, 0].mean(), abs=0.01)


@pytest.mark.parametrize(("n", "n_shown"), [(8, 8), (60, 20)])
def test_names_that_have_no_room_are_left_out(n: int, n_shown: int) -> None:
    ticks = [(place + 0.5, f"n{place}") for place in range(n)]
    names = [f"c{place}" for place in range(n)]
    chart = draw(column_chart([1] * n, names, ticks, label="", axis="", unit=""))
    named = [text for text in chart.texts if text.text.startswith("n")]
    assert named[0].text == "n0"
    assert n_shown / 2 < len(named) <= n_shown
    for text in named:
        column = chart.shapes[f"c{text.text[1:]}"]
        assert (text.left + text.right) / 2 == pytest.approx(column[:, 0].mean(), abs=0.1)
    for left, right in pairwise(named):
        assert right.left - left.right > 3


def test_compact_numbers() -> None:
    numbers = [compact(number) for number in (0, 950, 1500, 20_000, 3e6, 2.5e9)]
    assert numbers == ["0", "950", "1.5k", "20k", "3M", "2.5G"]


@pytest.mark.parametrize("limits", [None, (2, 6), (1, 11)])
def test_more_is_darker(limits: tuple[float, float] | None) -> None:
    values = np.array([[2.0, 3, np.nan], [4, 6, 5]])
    names = [["2", "3", "none"], ["4", "6", "5"]]
    chart = draw(heat_map(
        values, ["one", "two"], ["x", "", "z"], names,
        label="l", axis="a", side="s", key=lambda value: f"{value:g} things", limits=limits,
    ))  # fmt: skip
    low, high = limits or (0, 6)
    # A place without a value is in the colour of lines.
    assert "fill: var(--line)" in chart.styles.pop("none")
    assert chart.styles.keys() == {*"23456"}
    for name, style in chart.styles.items():
        (opacity,) = re.findall(r"opacity: ([\d.]+)", style) or ["1"]
        expected = 0.1 + 0.9 * (float(name) - low) / (high - low)
        assert float(opacity) == pytest.approx(expected, abs=0.01)
        assert "fill: rgb(var(--accent))" in style
    chart.check_texts("one", "two", "x", "z", "a", "s")
    places = {text.text: text.left for text in chart.texts}
    assert places[f"{low} things"] < places[f"{high} things"]
    middles = {name: points.mean(axis=0) for name, points in chart.shapes.items()}
    assert middles["2"][0] == pytest.approx(middles["4"][0], abs=0.01)
    assert middles["2"][1] < middles["4"][1]


def test_equal_values_have_one_shade() -> None:
    chart = draw(heat_map(
        np.full((1, 2), 0.5), ["r"], ["a", "b"], [["x", "y"]],
        label="l", axis="", key=str, limits=(0.5, 0.5),
    ))  # fmt: skip
    assert not any("opacity" in style for style in chart.styles.values())


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
    assert float(root.attrib["height"]) > draw(chart).size[1]
