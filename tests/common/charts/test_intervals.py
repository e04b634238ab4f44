"""The chart of a value with its interval after every step."""

import re
from xml.etree import ElementTree

import pytest

from common.charts import Step, interval_chart

STEPS = [
    Step(0.0, (-1.5, 1.5), "D", "before"),
    Step(1.0, (0.25, 1.75), "o", "right & <early>"),
    Step(-0.5, (-1.0, 0.0), "x", "wrong"),
]


def test_values_and_intervals_lie_on_one_scale() -> None:
    svg = interval_chart(STEPS, label="Ability", axis="questions asked", unit="ability")
    root = ElementTree.fromstring(svg)
    places = {}
    for group in root.iter("g"):
        title = group.find("title")
        if title is not None:
            (use,) = group.iter("use")
            places[title.text] = (float(use.attrib["x"]), float(use.attrib["y"]))
    assert list(places) == [step.tooltip for step in STEPS]
    (left, zero), (middle, one), (right, _) = places.values()
    assert right - middle == pytest.approx(middle - left)

    def height(value: float) -> float:
        return zero + value * (one - zero)

    assert one < zero - 20
    assert places["wrong"][1] == pytest.approx(height(-0.5), abs=0.01)
    paths = [
        [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path.attrib["d"])]
        for path in root.iter("path")
    ]
    for (x, _), step in zip(places.values(), STEPS, strict=True):
        low, high = map(height, step.interval)
        assert [x, low, x, high] in [pytest.approx(path, abs=0.01) for path in paths]
    (dashed,) = (path for path in root.iter("path") if "dash" in path.get("style", ""))
    assert float(dashed.attrib["d"].split()[2]) == pytest.approx(zero, abs=0.01)
    assert "questions asked" in svg


def test_one_step_is_enough() -> None:
    assert "before" in interval_chart(STEPS[:1], label="Ability", axis="asked", unit="ability")
