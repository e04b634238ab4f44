"""Curves over steps."""

import re

import pytest

from common.charts import Curve, curve_chart


def colours(svg: str) -> set[str]:
    """Return the colours of lines that are no grid and no axis."""
    found = re.findall(r"stroke: (rgb\(var\(--accent\)\)|color-mix\([^;\"]*#[^;\"]*)", svg)
    return set(found)


def test_eight_curves_are_told_apart_and_named() -> None:
    curves = [Curve(f"strategy {n}", [0, 1, 2], [0.5, 0.6, 0.6 + n / 100], n) for n in range(8)]
    svg = curve_chart(curves, label="eight", axis="questions", value_axis="accuracy")
    assert len(colours(svg)) == 8
    for curve in curves:
        assert f">{curve.name}</text>" in svg
        assert f"<title>{curve.name}</title>" in svg
    assert ">accuracy</text>" in svg
    assert ">questions</text>" in svg


def test_colours_that_come_again_have_other_markers() -> None:
    def first_marker(number: int) -> str:
        svg = curve_chart([Curve("one", [0, 1], [0.5, 0.6], number)], label="marks", axis="step")
        return re.findall(r"<path id=\"m[^>]* d=\"([^\"]*)\"", svg)[0]

    assert len({first_marker(number) for number in range(8)}) == 8
    assert first_marker(8) != first_marker(0)
    assert first_marker(16) not in {first_marker(0), first_marker(8)}


def test_a_name_that_begins_with_an_underscore_is_in_the_legend() -> None:
    svg = curve_chart([Curve("_idea", [1, 2], [0.2, 0.1])], label="names", axis="step")
    assert ">_idea</text>" in svg


def test_curves_of_one_number_share_a_colour() -> None:
    pair = [Curve("learned", [1, 2], [3, 2], 1), Curve("held out", [1, 2], [3, 2.5], 1, True)]
    svg = curve_chart(pair, label="pair", axis="step")
    assert len(colours(svg)) == 1
    assert "stroke-dasharray" in svg


@pytest.mark.parametrize(("n_points", "is_marked"), [(1, True), (25, True), (26, False)])
def test_many_points_have_no_markers(n_points: int, is_marked: bool) -> None:
    steps = list(range(n_points))
    svg = curve_chart([Curve("one", steps, [0.5] * n_points)], label="marks", axis="step")
    # A marker is used at each point, and once in the legend.
    n_used = len(re.findall(r"<use [^>]*rgb\(var\(--accent\)\)", svg))
    assert n_used == (n_points + 1 if is_marked else 0)
