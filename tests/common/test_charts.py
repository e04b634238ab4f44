"""Charts: marks are to scale, and every text is complete, inside the chart and legible."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isnan, nan

from common import charts
from common.charts import Curve, Dot, Panel

import numpy as np
import pandas as pd
import pytest
from drawn import Drawing, draw, on_scale

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
# The interval of an accuracy reaches from low to high. The second group has so few answers that its
# interval is wide. The third group has too few answers, so its accuracy is not shown.
SHARES = pd.DataFrame(
    {
        "accuracy": [0.7, 0.8, nan, 0.65],
        "low": [0.69, 0.1, nan, 0.65],
        "high": [0.72, 1.0, nan, 0.65],
        "majority": [0.6, 0.75, nan, 0.65],
        "share": [0.5, 0.004, 0.25, 0.0],
        "n_answers": [5000, 40, 19, 0],
    },
    index=[LONG_NAME, "$a_b$ < c", WIDE_NAME, "none"],
)


# ---- Dots --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DotChart:
    """The chart of `DOTS`, and the scale of its axis, which follows from the positions of dots."""

    chart: Drawing
    # The horizontal position of a value.
    x: Callable[[float], float]
    # The vertical positions of the rows.
    heights: np.ndarray


@pytest.fixture(scope="module", params=[None, (0.0, 1.0)], ids=["fitting limits", "limits 0 and 1"])
def dots(request: pytest.FixtureRequest) -> DotChart:
    """Draw `DOTS`, with an axis whose limits fit the values, or with the limits 0 and 1.

    A row of the chart may show two values: `value` by a dot, and `mark` by a mark, such as a
    diamond.
    """
    svg = charts.dot_chart(
        DOTS, label='"dots"', limits=request.param, digits=3, axis="share right", chance=0.5
    )
    chart = draw(svg)
    # Find out how the axis turns a value into a horizontal position. Use one shape of each row: its
    # dot, or its mark if its value is NaN and it has no dot. Also use the mark of the first row,
    # since marks must be on the same scale as dots.
    labels = [row.label for row in DOTS] + [DOTS[0].label]
    values = [row.mark if isnan(row.value) else row.value for row in DOTS] + [DOTS[0].mark]
    # The tooltip of a shape shows its label and value. `places` finds the positions of the shapes
    # with the given tooltips.
    tooltips = [f"{label}: {value:.3f}" for label, value in zip(labels, values, strict=True)]
    places, heights = chart.places(tooltips)
    # `on_scale` checks that all positions fit one scale, and returns the scale.
    x_of_value = on_scale(values, places)
    return DotChart(chart, x_of_value, heights)


def test_a_dot_chart_shows_its_names(dots: DotChart) -> None:
    assert dots.chart.size[0] == 340
    dots.chart.check_texts("share right", *(row.label for row in DOTS))


def test_the_axis_has_the_scale_of_the_dots(dots: DotChart) -> None:
    """The labels of the axis lie where their numbers are on the scale of the dots, `dots.x`."""
    assert dots.x(1) - dots.x(0) > 100
    ticks = [text for text in dots.chart.texts if re.fullmatch(r"\d\.\d\d?", text.text)]
    assert 2 < len(ticks) < 6
    expected = [dots.x(float(tick.text)) for tick in ticks]
    assert [tick.middle[0] for tick in ticks] == pytest.approx(expected, abs=0.1)


def test_each_row_has_its_figure_beside_its_dot(dots: DotChart) -> None:
    heights = dots.heights[:4]
    assert list(heights) == sorted(heights)
    figures = {text.text: text for text in dots.chart.texts}
    for height, figure in zip(heights, ("0.500", "1.000", "0.000", "0.125"), strict=True):
        assert figures[figure].top < height < figures[figure].bottom


def test_the_interval_the_band_and_the_line_of_chance_are_to_scale(dots: DotChart) -> None:
    x = dots.x
    height = dots.heights[0]
    assert dots.chart.has_path([x(0.25), height, x(1), height])
    bands = [sorted({*path[::2]}) for path in dots.chart.paths if len(path) == 8]
    assert [x(0.5), x(0.6)] in [pytest.approx(band, abs=0.05) for band in bands]
    assert [path[0] for path in dots.chart.dashed] == [pytest.approx(x(0.5), abs=0.05)]


# ---- Shares ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shares() -> Drawing:
    """Return the chart of `SHARES`."""
    return draw(charts.share_chart(SHARES, label=""))


def test_a_chart_of_shares_shows_names_and_figures(shares: Drawing) -> None:
    shares.check_texts(*SHARES.index, "accuracy", "answers")
    shown = {text.text for text in shares.texts}
    assert {"0.700", "0.800", "0.650", "–", "50%", "<1%", "25%", "0%"} <= shown


def test_a_wide_interval_is_cut_off_and_does_not_widen_the_scale(shares: Drawing) -> None:
    dots = [f"{LONG_NAME}: 0.700", f"{LONG_NAME}: 0.600", "$a_b$ < c: 0.800", "$a_b$ < c: 0.750"]
    places, heights = shares.places(dots)
    x = on_scale([0.7, 0.6, 0.8, 0.75], places)
    assert x(1) - x(0) > 300
    (interval,) = [path for path in shares.paths if path[1::2] == [heights[2]] * 2]
    assert x(0.1) < interval[0] < x(0.65)
    assert x(0.8) < interval[2] < x(1)


def test_a_group_of_too_few_answers_has_a_bar_but_no_dot(shares: Drawing) -> None:
    titles = [title for title in shares.shapes if WIDE_NAME in title]
    assert titles == [f"{WIDE_NAME}: 19 answers"]


def test_bars_of_shares_are_to_scale(shares: Drawing) -> None:
    widths = [np.ptp(shape[:, 0]) for title, shape in shares.shapes.items() if " answers" in title]
    width_per_share = widths[0] / SHARES["share"].iloc[0]
    expected = [width_per_share * share for share in SHARES["share"]]
    assert widths == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("values", [[0.5], [np.nan], [0.123, 0.1231], [0.0, 1.0], [0.333, 0.42]])
@pytest.mark.parametrize("limits", [None, (0, 1)], ids=["fitting limits", "limits 0 and 1"])
def test_no_text_covers_another_on_any_scale(
    values: list[float], limits: tuple[float, float] | None
) -> None:
    figures = dict.fromkeys(("accuracy", "low", "high"), values)
    names = [WIDE_NAME, "b"][: len(values)]
    rows = pd.DataFrame({**figures, "share": 0.5, "n_answers": 30}, names)
    draw(charts.share_chart(rows, label="", limits=limits)).check_texts("50%")


# ---- Bars --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BarChart:
    """Panels of bars; each bar shows a share."""

    # The share of the highest bar, from 0 to 1.
    highest_share: float
    panels: list[Panel]
    chart: Drawing

    @property
    def heights(self) -> list[float]:
        """The heights of the bars as they are drawn."""
        return [float(np.ptp(points[:, 1])) for points in self.chart.shapes.values()]

    @property
    def shares(self) -> dict[str, float]:
        """The share of each bar, by the title that the chart gives the bar, such as "A, x: 25%"."""
        share_by_title = {}
        for panel in self.panels:
            for name, share in zip("xy", panel.shares, strict=True):
                share_by_title[f"{panel.title}, {name}: {share:.0%}"] = share
        return share_by_title


@pytest.fixture(scope="module", params=[0.0, 0.2, 1.0])
def bars(request: pytest.FixtureRequest) -> BarChart:
    """Draw panels of two bars each; the highest bar of all panels shows 0, 20 or 100 %.

    The panel of the right option has the accent colour. A bar that rests on too few answers is
    faint.
    """
    highest = request.param
    long = "the other option, which is right: 'Antidisestablishmentarianism'"
    panels = [
        Panel("<one>", shares=[0.0, highest / 2], accent=False),
        Panel(long, shares=[highest, highest / 4], accent=True),
        Panel("option 3", shares=[0.1 * highest] * 2, accent=False, faint=[False, True]),
    ]
    svg = charts.bar_panels(panels, ["x", "y"], label="bars", axis="which bar")
    return BarChart(highest, panels, draw(svg))


def test_a_chart_of_bars_shows_its_texts(bars: BarChart) -> None:
    bars.chart.check_texts("which bar", *(panel.title for panel in bars.panels))


def test_bars_are_as_high_as_their_shares(bars: BarChart) -> None:
    assert list(bars.chart.shapes) == list(bars.shares)
    tallest = max(bars.heights)
    # All heights are 0 if the highest share is 0.
    expected = [tallest * share / (bars.highest_share or 1) for share in bars.shares.values()]
    assert bars.heights == pytest.approx(expected, abs=0.01)


def test_the_right_option_and_bars_of_few_answers_have_other_colours(bars: BarChart) -> None:
    fills = [re.findall("fill: ([^;]*)", style)[0] for style in bars.chart.styles.values()]
    assert fills == [GREY, GREY, ACCENT, ACCENT, GREY, "var(--line)"]


def test_the_axis_of_bars_is_to_scale(bars: BarChart) -> None:
    """The labels of the axis are percentages. A bar of 50 % reaches up to the label 50%."""
    # The vertical position of each label, by the share that it names. Positions are counted from
    # the top.
    y_by_share = {}
    for text in bars.chart.texts:
        if text.text.endswith("%"):
            share = float(text.text.removesuffix("%")) / 100
            y_by_share[share] = text.bottom
    highest_label = max(y_by_share)
    height_per_share = (y_by_share[0.0] - y_by_share[highest_label]) / highest_label
    # Heights and positions are in units of the drawing. Rounding may change them by half a unit.
    drawn_height = max(bars.heights)
    assert drawn_height == pytest.approx(height_per_share * bars.highest_share, abs=0.5)
    # The axis is not much longer than the highest bar.
    assert bars.highest_share <= highest_label <= max(bars.highest_share + 0.2, 0.2)


# ---- Curves ------------------------------------------------------------------------------------

NAMES = [*(f"strategy {n}" for n in range(9)), "held out"]


@pytest.fixture(scope="module")
def curves() -> tuple[str, Drawing]:
    """Return a chart of ten curves: its SVG, and the shapes and texts that a browser would draw.

    Each curve ends a little higher than the curve before. The number of a curve sets its colour and
    its marker. The tenth curve has the number 0, like the first curve, but it is dashed.
    """
    lines = [
        Curve(
            name,
            steps=[0, 1],
            values=[0.5, 0.6 + position / 100],
            number=position % 9,
            is_dashed=position == 9,
        )
        for position, name in enumerate(NAMES)
    ]
    svg = charts.curve_chart(lines, label="", axis="questions", value_axis="accuracy")
    return svg, draw(svg)


def test_a_chart_of_curves_shows_its_names(curves: tuple[str, Drawing]) -> None:
    _, chart = curves
    shown = [text.text for text in chart.texts]
    assert [text for text in shown if text in NAMES] == NAMES
    assert {"accuracy", "questions"} <= {*shown}


def read_legend(svg: str) -> list[tuple[str, str]]:
    """Return the colour and the path of the marker of each of the ten curves in the legend.

    The legend is the last part of the SVG. It describes each curve by two lines of SVG text, where
    M 3 4 is the position of the marker:

        … stroke: COLOUR; …
        <path d="M 3 4 m PATH OF THE MARKER"
    """
    entries: list[tuple[str, str]] = re.findall(
        r'stroke: ([^;]*).*\n<path d="M \S+ \S+ (m [^"]*)"', svg
    )
    return entries[-10:]


def test_curves_of_one_number_share_colour_and_marker_and_differ_in_dashes(
    curves: tuple[str, Drawing],
) -> None:
    svg, chart = curves
    styles = [chart.styles[name] for name in NAMES]
    assert ["dasharray" in style for style in styles] == [False] * 9 + [True]
    legend = read_legend(svg)
    assert legend[9] == legend[0]
    assert len({*legend}) == 9
    colours = [re.findall(r"stroke: ([^;]*)", style)[0] for style in styles]
    assert [colour for colour, _ in legend] == colours


def test_curves_are_to_scale(curves: tuple[str, Drawing]) -> None:
    _, chart = curves
    # The curves end at evenly spaced accuracies. `on_scale` checks that their ends are evenly
    # spaced in the drawing, too. It returns a function, `y`: for the position of a curve in
    # `NAMES`, `y` gives the vertical position of the end of the curve.
    ends = [chart.shapes[name][-1, 1] for name in NAMES]
    y = on_scale(range(10), ends)
    # Later curves end higher: at a smaller vertical position, since positions count from the top.
    assert y(9) < y(0)
