"""Charts: to scale, in the page's colours, every text whole, inside the chart and legible."""

import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import combinations, pairwise, takewhile
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from common.charts import (
    PAGE_WIDTH,
    WIDTH,
    Dot,
    Panel,
    ShareRow,
    bar_panels,
    calibration_chart,
    dot_chart,
    line_chart,
    share_chart,
)

LONG_NAME = "my_model_with_a_very_long_name_indeed --n_dimensions 16 --learning_rate 0.003"
WIDE_NAME = "W" * 60
PAGE_COLOURS = {"none", "currentColor", "rgb(var(--accent))", "var(--line)"}


@dataclass(frozen=True)
class Text:
    """A text of a chart and the box that it fills."""

    text: str
    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Chart:
    """What a browser would show: sizes in units of the chart, y downwards."""

    size: tuple[float, float]
    texts: list[Text]
    # What has a tooltip: its points, and its colour.
    shapes: dict[str, np.ndarray]
    colours: dict[str, str]


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def read_text(element: ElementTree.Element) -> Text:
    style = dict(part.split(": ", 1) for part in element.attrib["style"].split("; "))
    if "x" in element.attrib:
        x, y = float(element.attrib["x"]), float(element.attrib["y"])
    else:
        x, y = numbers(element.attrib["transform"])
    size = float(style["font-size"].removesuffix("px"))
    font = FontProperties(size=size, weight=int(style.get("font-weight", 400)))
    text = element.text or ""
    width, height, descent = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    left = x - width * {"start": 0, "middle": 0.5, "end": 1}[style.get("text-anchor", "start")]
    return Text(text, left, left + width, y - height + descent, y + descent)


def read_chart(svg: str) -> Chart:
    root = ElementTree.fromstring(svg)
    shapes, colours = {}, {}
    for group in root.iter("g"):
        title = group.find("title")
        if title is not None:
            uses = list(group.iter("use"))
            path = [point for part in group.iter("path") for point in numbers(part.attrib["d"])]
            points = [float(use.attrib[axis]) for use in uses for axis in "xy"] or path
            shapes[title.text or ""] = np.reshape(points, (-1, 2))
            colours[title.text or ""] = (uses or list(group.iter("path")))[0].attrib["style"]
    texts = [read_text(element) for element in root.iter("text") if element.text]
    return Chart((*numbers(root.attrib["viewBox"])[2:],), texts, shapes, colours)  # type: ignore[arg-type]


def check_texts(chart: Chart) -> None:
    """Every text lies inside the chart, and none covers another."""
    width, height = chart.size
    for text in chart.texts:
        assert min(text.left, text.top) >= -0.5, text
        assert text.right <= width + 0.5, text
        assert text.bottom <= height + 0.5, text
    for one, other in combinations(chart.texts, 2):
        shared_width = min(one.right, other.right) - max(one.left, other.left)
        shared_height = min(one.bottom, other.bottom) - max(one.top, other.top)
        assert min(shared_width, shared_height) < 1, (one, other)


def all_texts(chart: Chart) -> str:
    """All texts as one, without spaces, since a text may be broken into lines."""
    return "".join(text.text for text in chart.texts).replace(" ", "")


DOTS = [
    Dot("a < b & $x_1$", 0.5, interval=(0.25, 1.0), mark=0.75, band=(0.5, 0.6)),
    Dot(LONG_NAME, 1.0, accent=False),
    Dot('says "so"', 0.0),
    Dot(WIDE_NAME, None, mark=0.125),
]


def test_dots_lie_on_one_scale() -> None:
    svg = dot_chart(DOTS, label="dots", digits=3, limits=(0, 1), chance=0.5)
    chart = read_chart(svg)
    ends = chart.shapes['says "so": 0.000'][0, 0], chart.shapes[f"{LONG_NAME}: 1.000"][0, 0]

    def x(value: float) -> float:
        return float(ends[0] + value * (ends[1] - ends[0]))

    assert ends[1] - ends[0] > 100
    assert chart.shapes["a < b & $x_1$: 0.500"][0, 0] == pytest.approx(x(0.5), abs=0.01)
    assert chart.shapes["a < b & $x_1$: 0.750"][0, 0] == pytest.approx(x(0.75), abs=0.01)
    assert chart.shapes[f"{WIDE_NAME}: 0.125"][0, 0] == pytest.approx(x(0.125), abs=0.01)
    for text in chart.texts:
        if text.text in ("0.25", "0.50", "0.75"):
            assert (text.left + text.right) / 2 == pytest.approx(x(float(text.text)), abs=0.1)
    # The interval and the dashed line have no tooltip; they are where the numbers say.
    paths = [numbers(path.attrib["d"]) for path in ElementTree.fromstring(svg).iter("path")]
    y = chart.shapes["a < b & $x_1$: 0.500"][0, 1]
    assert [x(0.25), y, x(1), y] in [pytest.approx(path, abs=0.01) for path in paths]
    dashed = [p for p in ElementTree.fromstring(svg).iter("path") if "dash" in p.attrib["style"]]
    assert [numbers(path.attrib["d"])[0] for path in dashed] == [pytest.approx(x(0.5), abs=0.01)]


def test_rows_stand_in_order_with_their_figures() -> None:
    chart = read_chart(dot_chart(DOTS, label="dots", digits=3))
    heights = [chart.shapes[key][0, 1] for key in (
        "a < b & $x_1$: 0.500", f"{LONG_NAME}: 1.000", 'says "so": 0.000', f"{WIDE_NAME}: 0.125",
    )]  # fmt: skip
    assert heights == sorted(heights)
    for height, figure in zip(heights, ("0.500", "1.000", "0.000", "0.125"), strict=True):
        (text,) = (text for text in chart.texts if text.text == figure)
        assert text.top < height < text.bottom


@pytest.mark.parametrize("limits", [None, (0, 1)])
@pytest.mark.parametrize("width", [WIDTH, PAGE_WIDTH])
def test_names_are_never_cut(limits: tuple[float, float] | None, width: float) -> None:
    svg = dot_chart(DOTS, label="dots", digits=4, limits=limits, axis="share right", width=width)
    chart = read_chart(svg)
    assert chart.size[0] == width
    check_texts(chart)
    assert "share right" in {text.text for text in chart.texts}
    for row in DOTS:
        assert row.label.replace(" ", "") in all_texts(chart)
    for flag in ("--n_dimensions 16", "--learning_rate 0.003"):
        assert any(flag in text.text for text in chart.texts)


@pytest.mark.parametrize("highest", [0.0, 0.2, 0.55, 1.0])
def test_bars_grow_with_their_shares(highest: float) -> None:
    panels = [
        Panel("<one>", [0.0, highest / 2], False),
        Panel("the other option, which is right: 'Antidisestablishmentarianism'",
              [highest, highest / 4], True),
        *(Panel(f"option {k}", [0.1 * highest] * 2, False) for k in (3, 4)),
    ]  # fmt: skip
    chart = read_chart(bar_panels(panels, ["x", "y"], label="bars", axis="which bar"))
    check_texts(chart)
    drawn = []
    for panel in panels:
        assert panel.title.replace(" ", "") in all_texts(chart)
        for name, share in zip("xy", panel.shares, strict=True):
            key = f"{panel.title}, {name}: {share:.0%}"
            drawn.append((share, float(np.ptp(chart.shapes[key][:, 1]))))
            assert ("--accent" in chart.colours[key]) == panel.accent
    full = max(height for _, height in drawn)
    for share, height in drawn:
        assert height == pytest.approx(full * share / (highest or 1), abs=0.01)
    # The axis agrees: its labels are as high as the bars that reach them.
    ticks = {float(text.text[:-1]) / 100: text.bottom
             for text in chart.texts if text.text.endswith("%")}  # fmt: skip
    scale = (ticks[0.0] - ticks[max(ticks)]) / max(ticks)
    assert full == pytest.approx(scale * highest, abs=0.5)
    assert highest <= max(ticks) <= max(highest + 0.2, 0.2)


def test_bars_that_rest_on_too_little_lose_their_colour() -> None:
    panels = [Panel("one", [0.5, 0.5], True, [True, False]), Panel("two", [0.5, 0.5], False)]
    chart = read_chart(bar_panels(panels, ["x", "y"], label="bars", axis="which bar"))
    fills = {key: re.findall("fill: ([^;]*)", style)[0] for key, style in chart.colours.items()}
    assert fills["one, x: 50%"] == "var(--line)"
    assert fills["one, y: 50%"] == "rgb(var(--accent))"
    assert fills["two, x: 50%"] == fills["two, y: 50%"]
    assert fills["two, x: 50%"] not in (fills["one, x: 50%"], fills["one, y: 50%"])


shares = st.lists(st.floats(0, 1), min_size=11, max_size=11)


@settings(max_examples=25, deadline=None)
@given(own=shares, other=shares)
def test_lines_are_drawn_to_scale(own: list[float], other: list[float]) -> None:
    chart = read_chart(line_chart("<own>", own, "other", other, label="lines", axis="steps"))
    check_texts(chart)
    x = chart.shapes["<own>"][:, 0]
    assert np.allclose(np.diff(x), np.ptp(x) / 10, atol=0.01)
    assert np.ptp(x) > 150
    # Both lines on one scale, the higher share higher up.
    values = np.r_[own, other]
    heights = np.r_[chart.shapes["<own>"][:, 1], chart.shapes["other"][:, 1]]
    if np.ptp(values) > 1e-6:
        slope, offset = np.polyfit(values, heights, 1)
        assert slope < 0
        assert np.allclose(slope * values + offset, heights, atol=0.05)
        assert np.ptp(heights) > 80
    names = {text.text: text for text in chart.texts}
    assert (names["<own>"].top < names["other"].top) == (heights[10] <= heights[21])


@pytest.mark.parametrize("difference", [-0.001, 0.001])
def test_names_of_lines_that_end_together_stand_apart(difference: float) -> None:
    own, other = [0.5, 0.6 + difference], [0.5, 0.6]
    chart = read_chart(line_chart("own", own, "other", other, label="lines", axis="steps"))
    check_texts(chart)
    names = {text.text: text for text in chart.texts}
    assert (names["own"].top < names["other"].top) == (difference > 0)


def test_the_axis_of_lines_says_what_they_reach() -> None:
    own = [0.6 + 0.01 * step for step in range(11)]
    chart = read_chart(line_chart("own", own, "other", own[::-1], label="lines", axis="steps"))
    heights = chart.shapes["own"][:, 1]
    ticks = {text.text: (text.top + text.bottom) / 2 for text in chart.texts}
    for text, step in (("0.62", 2), ("0.68", 8)):
        assert ticks[text] == pytest.approx(heights[step], abs=1.5)
    assert {str(step) for step in range(11)} <= set(ticks)


SHARES = [
    ShareRow(LONG_NAME, 0.7, 0.5, (0.69, 0.72), 0.6, "many"),
    ShareRow("$a_b$ < c", 0.8, 0.004, (0.1, 1.0), None, "few"),
    ShareRow(WIDE_NAME, None, 0.25, (0.0, 1.0), tooltip="too few"),
    ShareRow("none", 0.65, 0.0, tooltip="nothing"),
]


def draw_shares(rows: list[ShareRow] = SHARES) -> str:
    return share_chart(rows, label="shares", value_name="accuracy", share_name="answers")


def test_dots_and_bars_of_shares_are_to_scale() -> None:
    chart = read_chart(draw_shares())
    check_texts(chart)
    x = {name: chart.shapes[key][0, 0] for name, key in (
        ("0.7", f"{LONG_NAME}: many"), ("0.6", f"{LONG_NAME}: diamond, many"),
        ("0.8", "$a_b$ < c: few"), ("0.65", "none: nothing"),
    )}  # fmt: skip
    slope, offset = np.polyfit([float(value) for value in x], list(x.values()), 1)
    assert slope > 300
    for value, place in x.items():
        assert place == pytest.approx(offset + slope * float(value), abs=0.05)
    # No dot for what rests on too little, whose interval would say anything.
    assert f"{WIDE_NAME}: too few" not in chart.shapes
    widths = {row.label: np.ptp(chart.shapes[f"{row.label}, bar: {row.tooltip}"][:, 0])
              for row in SHARES}  # fmt: skip
    for row in SHARES:
        assert widths[row.label] == pytest.approx(2 * row.share * widths[LONG_NAME], abs=0.05)
        assert row.label.replace(" ", "") in all_texts(chart)
    shown = {text.text for text in chart.texts}
    assert {"0.700", "0.800", "0.650", "–", "50%", "<1%", "25%", "0%"} <= shown


def test_a_wide_interval_of_a_small_group_does_not_hide_the_others() -> None:
    x = read_chart(draw_shares()).shapes
    widened = [ShareRow("wide", 0.8, 0.5, (0.1, 1.0)), *SHARES[:1]]
    y = read_chart(draw_shares(widened)).shapes
    own, other = f"{LONG_NAME}: many", f"{LONG_NAME}: diamond, many"
    assert x[own][0, 0] - x[other][0, 0] > 3 * (y[own][0, 0] - y[other][0, 0]) > 0


@settings(max_examples=25)
@given(st.floats(0, 1), st.floats(1e-4, 1), st.sampled_from(["short", LONG_NAME]))
def test_the_scale_of_shares_can_be_read(value: float, width: float, name: str) -> None:
    rows = [ShareRow(name, value, 0.5), ShareRow("other", min(value + width, 1), 0.5)]
    chart = read_chart(draw_shares(rows))
    check_texts(chart)
    # The scale is drawn first, then the names.
    ticks = list(takewhile(lambda text: re.fullmatch(r"[\d.]+", text.text), chart.texts))
    assert 1 <= len(ticks) <= 3
    for left, right in pairwise(ticks):
        assert left.right + 3 < right.left


@pytest.mark.parametrize("row", [ShareRow("one", 0.5, 1.0), ShareRow("none", None, 0.5)])
def test_a_single_row_of_shares_is_drawn(row: ShareRow) -> None:
    check_texts(read_chart(draw_shares([row])))


EXPECTED = [0.05, 0.12, 0.25, 0.31, float("nan"), 0.55, 0.65, 0.75, 0.85, 1.0]
HAPPENED = [0.0, 0.2, 0.3, 0.3, float("nan"), 0.5, 0.6, 0.8, 0.9, 1.0]
COUNTS = [7, 999, 1000, 9960, 0, 999_499, 999_500, 1_234_567, 15_867_850, 3]


def draw_calibration() -> str:
    return calibration_chart(
        EXPECTED, HAPPENED, COUNTS, label="calibration", expected_name="predicted",
        happened_name="happened",
    )  # fmt: skip


def test_calibration_is_drawn_to_scale_with_the_counts() -> None:
    chart = read_chart(draw_calibration())
    check_texts(chart)
    filled = [k for k, n in enumerate(COUNTS) if n]
    places = np.array([
        chart.shapes[f"{EXPECTED[k]:.3f} predicted, {HAPPENED[k]:.3f} happened, "
                     f"{COUNTS[k]:,} answers"][0]
        for k in filled
    ])  # fmt: skip
    for values, axis, sign in ((EXPECTED, 0, 1), (HAPPENED, 1, -1)):
        slope, offset = np.polyfit([values[k] for k in filled], places[:, axis], 1)
        assert sign * slope > 150
        fitted = offset + slope * np.array([values[k] for k in filled])
        assert np.allclose(fitted, places[:, axis], atol=0.05)
    heights = [
        np.ptp(chart.shapes[f"{k / 10:.1f} to {(k + 1) / 10:.1f}: {n:,} answers"][:, 1])
        for k, n in enumerate(COUNTS)
    ]
    assert np.allclose(heights, np.array(COUNTS) / max(COUNTS) * max(heights), atol=0.05)
    shown = [text.text for text in chart.texts]
    for text in ("7", "999", "1.0k", "10k", "0", "999k", "1.0M", "1.2M", "16M", "3"):
        assert text in shown, text


def draw_all(prefix: str = "") -> list[str]:
    panels = [Panel("one", [0.5], True), Panel("two", [0.5], False)]
    return [
        dot_chart(DOTS, label=f"{prefix}dots", digits=2),
        bar_panels(panels, ["x"], label=f"{prefix}bars", axis="x"),
        line_chart("own", [0.5, 0.6], "other", [0.5, 0.4], label=f"{prefix}lines", axis="steps"),
        share_chart(SHARES, label=f"{prefix}shares", value_name="v", share_name="s"),
        calibration_chart(EXPECTED, HAPPENED, COUNTS, label=f"{prefix}calibration",
                          expected_name="p", happened_name="h"),
    ]  # fmt: skip


def test_charts_follow_the_page_and_nothing_else() -> None:
    for svg in draw_all():
        for colour in re.findall(r"(?:fill|stroke): ([^;\"]*)", svg):
            assert colour in PAGE_COLOURS or colour.startswith("color-mix(in srgb, currentColor")
        for outside in ("font-family", "<style", "<script", "http", "date"):
            assert outside not in svg
    assert 'aria-label="says &quot;so&quot;"' in dot_chart(DOTS, label='says "so"', digits=2)


@pytest.mark.filterwarnings("error")
def test_names_in_any_script_are_drawn_without_a_warning() -> None:
    svg = dot_chart([Dot("\u6a21\u578b", 0.5)], label="dots", digits=2)
    assert ">\u6a21\u578b</text>" in svg


def test_ids_of_different_charts_differ() -> None:
    page = "".join(draw_all() + draw_all("other "))
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) > 6
    assert set(re.findall(r'(?:url\(|href=")#([^")]*)', page)) == set(ids)


def test_the_same_values_give_the_same_bytes() -> None:
    expected = draw_all()
    with mpl.rc_context({"font.family": "monospace", "axes.linewidth": 9}):
        assert draw_all() == expected


def test_only_drawing_imports_matplotlib() -> None:
    code = (
        "import sys\n"
        "import common.pair_evaluation, common.adaptive.evaluation, common.scores.scoreboard_page\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import common.charts as charts\n"
        "charts.line_chart('a', [0, 1], 'b', [1, 0], label='', axis='')\n"
        "assert 'matplotlib' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
