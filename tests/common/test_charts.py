"""Charts: to scale, every text whole, inside the chart and legible."""

import re
from math import isnan, nan
from typing import Any

from common import charts
from common.charts import Curve, Dot, Panel

import numpy as np
import pandas as pd
import pytest
from drawn import draw, on_scale

LONG_NAME = "my_model_with_a_very_long_name_indeed --n_dimensions 16 --learning_rate 0.003"
WIDE_NAME = "W" * 60
ACCENT = "rgb(var(--accent))"
GREY = "color-mix(in srgb, currentColor 40%, Canvas)"
DOTS = [
    Dot("a < b & $x_1$", 0.5, interval=(0.25, 1.0), mark=0.75, band=(0.5, 0.6)),
    Dot(LONG_NAME, 1.0, accent=False),
    Dot('says "so"', 0.0),
    Dot(WIDE_NAME, nan, mark=0.125),
]
SHARES = pd.DataFrame(
    [
        (0.7, 0.69, 0.72, 0.6, 0.5, 5000),
        (0.8, 0.1, 1.0, 0.75, 0.004, 40),
        (*[np.nan] * 4, 0.25, 19),
        (0.65, 0.65, 0.65, 0.65, 0.0, 0),
    ],
    [LONG_NAME, "$a_b$ < c", WIDE_NAME, "none"],
    ["accuracy", "low", "high", "majority", "share", "n_answers"],
)


@pytest.mark.parametrize("limits", [None, (0.0, 1.0)])
def test_dots_lie_on_one_scale_beside_their_names_and_figures(limits: Any) -> None:
    look: dict[str, Any] = {"digits": 3, "axis": "share right", "chance": 0.5}
    chart = draw(charts.dot_chart(DOTS, label='"dots"', limits=limits, **look))
    assert chart.size[0] == 340
    chart.check_texts("share right", *(row.label for row in DOTS))
    values = [row.mark if isnan(row.value) else row.value for row in DOTS]
    shown = [f"{row.label}: {value:.3f}" for row, value in zip(DOTS, values, strict=True)]
    places, heights = chart.places([*shown, "a < b & $x_1$: 0.750"])
    x = on_scale([0.5, 1, 0, 0.125, 0.75], places)
    assert x(1) - x(0) > 100
    ticks = [text for text in chart.texts if re.fullmatch(r"\d\.\d\d?", text.text)]
    assert 2 < len(ticks) < 6
    assert [t.middle[0] for t in ticks] == pytest.approx([x(float(t.text)) for t in ticks], abs=0.1)
    # Rows from top to bottom, each with its figure.
    assert list(heights[:4]) == sorted(heights[:4])
    figures = {text.text: text for text in chart.texts}
    for height, figure in zip(heights, ("0.500", "1.000", "0.000", "0.125"), strict=False):
        assert figures[figure].top < height < figures[figure].bottom
    # The interval, the band and the dashed line have no tooltip; they are where the numbers say.
    assert chart.has_path([x(0.25), heights[0], x(1), heights[0]])
    bands = [sorted({*path[::2]}) for path in chart.paths if len(path) == 8]
    assert [x(0.5), x(0.6)] in [pytest.approx(band, abs=0.05) for band in bands]
    assert [path[0] for path in chart.dashed] == [pytest.approx(x(0.5), abs=0.05)]


def test_dots_and_bars_of_shares_are_to_scale() -> None:
    chart = draw(charts.share_chart(SHARES, label=""))
    chart.check_texts(*SHARES.index, "accuracy", "answers")
    shown = {text.text for text in chart.texts}
    assert {"0.700", "0.800", "0.650", "–", "50%", "<1%", "25%", "0%"} <= shown
    dots = [f"{LONG_NAME}: 0.700", f"{LONG_NAME}: 0.600", "$a_b$ < c: 0.800", "$a_b$ < c: 0.750"]
    places, heights = chart.places(dots)
    x = on_scale([0.7, 0.6, 0.8, 0.75], places)
    assert x(1) - x(0) > 300
    # A wide interval of few answers is cut off, and does not widen the scale.
    cut = [path for path in chart.paths if path[1::2] == [heights[2]] * 2]
    assert [x(0.1) < path[0] < x(0.65) and x(0.8) < path[2] < x(1) for path in cut] == [True]
    # No dot for what rests on too little, but a bar.
    titles = [title for title in chart.shapes if WIDE_NAME in title]
    assert titles == [f"{WIDE_NAME}: 19 answers"]
    bars = [np.ptp(shape[:, 0]) for title, shape in chart.shapes.items() if " answers" in title]
    assert bars == pytest.approx([2 * share * bars[0] for share in SHARES["share"]], abs=0.05)


@pytest.mark.parametrize("values", [[0.5], [np.nan], [0.123, 0.1231], [0.0, 1.0], [0.333, 0.42]])
def test_no_text_covers_another_on_any_scale(values: list[float]) -> None:
    figures = dict.fromkeys(("accuracy", "low", "high"), values)
    rows = pd.DataFrame({**figures, "share": 0.5, "n_answers": 30}, [WIDE_NAME, "b"][: len(values)])
    for limits in (None, (0, 1)):
        draw(charts.share_chart(rows, label="", limits=limits)).check_texts("50%")


@pytest.mark.parametrize("highest", [0.0, 0.2, 1.0])
def test_bars_grow_with_their_shares(highest: float) -> None:
    long = "the other option, which is right: 'Antidisestablishmentarianism'"
    panels = [
        Panel("<one>", [0.0, highest / 2], False),
        Panel(long, [highest, highest / 4], True),
        # The second one rests on too little.
        Panel("option 3", [0.1 * highest] * 2, False, [False, True]),
    ]
    chart = draw(charts.bar_panels(panels, ["x", "y"], label="bars", axis="which bar"))
    chart.check_texts("which bar", *(panel.title for panel in panels))
    bars = {
        f"{panel.title}, {name}: {share:.0%}": share
        for panel in panels
        for name, share in zip("xy", panel.shares, strict=True)
    }
    assert list(chart.shapes) == list(bars)
    drawn = [float(np.ptp(points[:, 1])) for points in chart.shapes.values()]
    expected = [max(drawn) * share / (highest or 1) for share in bars.values()]
    assert drawn == pytest.approx(expected, abs=0.01)
    fills = [re.findall("fill: ([^;]*)", style)[0] for style in chart.styles.values()]
    assert fills == [GREY, GREY, ACCENT, ACCENT, GREY, "var(--line)"]
    # The axis agrees: its labels are as high as the bars that reach them.
    percents = [text for text in chart.texts if text.text.endswith("%")]
    ticks = {float(text.text[:-1]) / 100: text.bottom for text in percents}
    scale = (ticks[0.0] - ticks[max(ticks)]) / max(ticks)
    assert max(drawn) == pytest.approx(scale * highest, abs=0.5)
    assert highest <= max(ticks) <= max(highest + 0.2, 0.2)


def test_curves_are_told_apart_by_colour_marker_and_dashes() -> None:
    """Those of one number share a colour and a marker."""
    names = [*(f"strategy {n}" for n in range(9)), "held out"]
    curves = [
        Curve(name, [0, 1], [0.5, 0.6 + place / 100], place % 9, place == 9)
        for place, name in enumerate(names)
    ]
    svg = charts.curve_chart(curves, label="", axis="questions", value_axis="accuracy")
    chart = draw(svg)
    shown = [text.text for text in chart.texts]
    assert [text for text in shown if text in names] == names
    assert {"accuracy", "questions"} <= {*shown}
    styles = [chart.styles[name] for name in names]
    assert ["dasharray" in style for style in styles] == [False] * 9 + [True]
    # In the legend, which is drawn last, a line and its marker; the ninth has the first's colour.
    legend = re.findall(r'stroke: ([^;]*).*\n<path d="M \S+ \S+ (m [^"]*)"', svg)[-10:]
    assert legend[9] == legend[0] and len({*legend}) == 9
    colours = [re.findall(r"stroke: ([^;]*)", style)[0] for style in styles]
    assert [colour for colour, _ in legend] == colours
    # At the last step the later curves are higher up.
    y = on_scale(range(10), [chart.shapes[name][-1, 1] for name in names])
    assert y(9) < y(0)
