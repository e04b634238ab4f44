"""Charts: well-formed, on scale, and no text that could break the page."""

import xml.etree.ElementTree as ElementTree

import pytest

from common.scores.charts import Interval, Panel, bar_panels, interval_chart


def test_intervals_lie_on_one_scale() -> None:
    rows = [
        Interval("a < b", 0.5, 0.25, 1.0, mark=0.75, band=(0.5, 0.6)),
        Interval("all", 1.0, 0.0, 1.0),
    ]
    chart = ElementTree.fromstring(interval_chart(rows, label='says "so"'))
    dots = [float(dot.attrib["cx"]) for dot in chart.iter("circle")]
    lines = [line for line in chart.iter("line") if line.attrib["class"] == "interval"]
    left, right = (float(lines[1].attrib[end]) for end in ("x1", "x2"))
    assert dots == [(left + right) / 2, right]
    assert float(lines[0].attrib["x1"]) == left + (right - left) / 4
    assert len(list(chart.iter("path"))) == len(list(chart.iter("rect"))) == 1
    assert "a < b" in [text.text for text in chart.iter("text")]
    assert chart.attrib["aria-label"] == 'says "so"'


@pytest.mark.parametrize("highest", [0.0, 0.2, 0.55, 1.0])
def test_bars_grow_with_their_shares(highest: float) -> None:
    panels = [Panel("one", [0.0, highest / 2], False), Panel("two", [highest, highest], True)]
    chart = ElementTree.fromstring(bar_panels(panels, ["x", "y"], label="bars"))
    bars = list(chart.iter("rect"))
    heights = [float(bar.attrib["height"]) for bar in bars]
    assert heights == pytest.approx([0, heights[2] / 2, heights[2], heights[2]], abs=0.11)
    assert [bar.attrib["class"] for bar in bars] == ["other", "other", "good", "good"]
    # The highest bar stays within the grid and uses most of it.
    tops = [float(line.attrib["y1"]) for line in chart.iter("line")]
    grid = max(tops) - min(tops)
    assert heights[2] <= grid + 0.1
    assert heights[2] >= grid / 2 or highest == 0
