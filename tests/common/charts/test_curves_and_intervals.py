"""Curves over steps, and a value with its interval after every step."""

import re

import pytest
from drawn import draw, on_scale

from common.charts import Curve, Step, curve_chart, interval_chart


def colours(curves: list[Curve]) -> list[str]:
    styles = draw(curve_chart(curves, label="curves", axis="step")).styles
    return [re.findall(r"stroke: ([^;]*)", style)[0] for style in styles.values()]


def test_eight_curves_are_told_apart_and_named() -> None:
    names = [f"strategy {n}" for n in range(7)] + ["_idea"]
    curves = [Curve(name, [0, 1, 2], [0.5, 0.6, 0.6 + n / 100], n) for n, name in enumerate(names)]
    chart = draw(curve_chart(curves, label="eight", axis="questions", value_axis="accuracy"))
    assert len({*colours(curves)}) == 8
    assert {*names, "accuracy", "questions"} <= {text.text for text in chart.texts}
    # At the last step the eighth is highest up.
    on_scale(range(8), [chart.shapes[name][-1, 1] for name in names])


def test_colours_that_come_again_have_other_markers() -> None:
    def first_marker(number: int) -> str:
        svg = curve_chart([Curve("one", [0, 1], [0.5, 0.6], number)], label="marks", axis="step")
        return str(re.findall(r"<path id=\"m[^>]* d=\"([^\"]*)\"", svg)[0])

    markers = [first_marker(number) for number in range(8)]
    assert len({*markers}) == 8
    assert len({markers[0], first_marker(8), first_marker(16)}) == 3


def test_curves_of_one_number_share_a_colour() -> None:
    pair = [Curve("learned", [1, 2], [3, 2], 1), Curve("held out", [1, 2], [3, 2.5], 1, True)]
    assert len({*colours(pair)}) == 1
    styles = draw(curve_chart(pair, label="pair", axis="step")).styles
    assert ["dasharray" in styles[curve.name] for curve in pair] == [False, True]


@pytest.mark.parametrize(("n_points", "n_marked"), [(1, 1), (25, 25), (26, 0)])
def test_many_points_have_no_markers(n_points: int, n_marked: int) -> None:
    steps = list(range(n_points))
    svg = curve_chart([Curve("one", steps, [0.5] * n_points)], label="marks", axis="step")
    # A marker is used at each point, and once in the legend.
    assert len(re.findall(r"<use [^>]*rgb\(var\(--accent\)\)", svg)) == n_marked + bool(n_marked)


STEPS = [
    Step(0.0, (-1.5, 1.5), "D", "before"),
    Step(1.0, (0.25, 1.75), "o", "right & <early>"),
    Step(-0.5, (-1.0, 0.0), "x", "wrong"),
]


def test_values_and_intervals_lie_on_one_scale() -> None:
    chart = draw(interval_chart(STEPS, label="Ability", axis="questions asked", unit="ability"))
    chart.check_texts("questions asked", "ability")
    assert list(chart.shapes) == [step.tooltip for step in STEPS]
    x, y = chart.places([step.tooltip for step in STEPS])
    on_scale(range(3), x)
    height = on_scale([step.value for step in STEPS], y)
    assert height(0) - height(1) > 20
    for place, step in zip(x, STEPS, strict=True):
        low, high = map(height, step.interval)
        assert chart.has_path([place, low, place, high])
    assert [path[1] for path in chart.dashed] == [pytest.approx(height(0), abs=0.05)]
    alone = draw(interval_chart(STEPS[:1], label="Ability", axis="asked", unit="ability"))
    assert list(alone.shapes) == ["before"]
