"""Charts: to scale, in the page's colours, every text whole, inside the chart and legible."""

import re
from itertools import pairwise, takewhile

import matplotlib as mpl
import numpy as np
import pytest
from drawn import draw, on_scale
from run_scripts import run_process

from common import charts
from common.charts import Dot, Panel, ShareRow

LONG_NAME = "my_model_with_a_very_long_name_indeed --n_dimensions 16 --learning_rate 0.003"
WIDE_NAME = "W" * 60
PAGE_COLOURS = {"none", "currentColor", "rgb(var(--accent))", "var(--line)"}
GREY = "color-mix(in srgb, currentColor 40%, Canvas)"
DOTS = [
    Dot("a < b & $x_1$", 0.5, interval=(0.25, 1.0), mark=0.75, band=(0.5, 0.6)),
    Dot(LONG_NAME, 1.0, accent=False),
    Dot('says "so"', 0.0),
    Dot(WIDE_NAME, None, mark=0.125),
]
SHARES = [
    ShareRow(LONG_NAME, 0.7, 0.5, (0.69, 0.72), 0.6, "many"),
    ShareRow("$a_b$ < c", 0.8, 0.004, (0.1, 1.0), None, "few"),
    ShareRow(WIDE_NAME, None, 0.25, (0.0, 1.0), tooltip="too few"),
    ShareRow("none", 0.65, 0.0, tooltip="nothing"),
]
EXPECTED = [0.05, 0.12, 0.25, 0.31, float("nan"), 0.55, 0.65, 0.75, 0.85, 1.0]
HAPPENED = [0.0, 0.2, 0.3, 0.3, float("nan"), 0.5, 0.6, 0.8, 0.9, 1.0]
COUNTS = [7, 999, 1000, 9960, 0, 999_499, 999_500, 1_234_567, 15_867_850, 3]


def lines(own: list[float], other: list[float], label: str = "lines") -> str:
    return charts.line_chart("<own>", own, "other", other, label=label, axis="steps")


def shares(rows: list[ShareRow] = SHARES, label: str = "shares") -> str:
    return charts.share_chart(rows, label=label, value_name="accuracy", share_name="answers")


def calibration(label: str = "calibration") -> str:
    names = {"expected_name": "predicted", "happened_name": "happened"}
    return charts.calibration_chart(EXPECTED, HAPPENED, COUNTS, label=label, **names)


@pytest.mark.parametrize(("limits", "width"), [(None, charts.WIDTH), ((0, 1), charts.PAGE_WIDTH)])
def test_dots_lie_on_one_scale_beside_their_names_and_figures(
    limits: tuple[float, float] | None, width: float
) -> None:
    look = {"label": "dots", "digits": 3, "axis": "share right", "chance": 0.5}
    chart = draw(charts.dot_chart(DOTS, limits=limits, width=width, **look))  # type: ignore[arg-type]
    assert chart.size[0] == width
    chart.check_texts("share right", *(row.label for row in DOTS))
    for flag in ("--n_dimensions 16", "--learning_rate 0.003"):
        assert any(flag in text.text for text in chart.texts)
    shown = [f"{row.label}: {row.value or row.mark or 0:.3f}" for row in DOTS]
    places, heights = chart.places([*shown, "a < b & $x_1$: 0.750"])
    x = on_scale([0.5, 1, 0, 0.125, 0.75], places)
    assert x(1) - x(0) > 100
    for text in chart.texts:
        if text.text in ("0.25", "0.50", "0.75"):
            assert (text.left + text.right) / 2 == pytest.approx(x(float(text.text)), abs=0.1)
    # Rows from top to bottom, each with its figure.
    assert list(heights[:4]) == sorted(heights[:4])
    for height, figure in zip(heights, ("0.500", "1.000", "0.000", "0.125"), strict=False):
        (text,) = (text for text in chart.texts if text.text == figure)
        assert text.top < height < text.bottom
    # The interval, the band and the dashed line have no tooltip; they are where the numbers say.
    assert chart.has_path([x(0.25), heights[0], x(1), heights[0]])
    bands = [sorted({*path[::2]}) for path in chart.paths if len(path) == 8]
    assert [x(0.5), x(0.6)] in [pytest.approx(band, abs=0.05) for band in bands]
    assert [path[0] for path in chart.dashed] == [pytest.approx(x(0.5), abs=0.05)]


@pytest.mark.parametrize("highest", [0.0, 0.2, 0.55, 1.0])
def test_bars_grow_with_their_shares(highest: float) -> None:
    panels = [
        Panel("<one>", [0.0, highest / 2], False),
        Panel("the other option, which is right: 'Antidisestablishmentarianism'",
              [highest, highest / 4], True),
        # The second one rests on too little.
        Panel("option 3", [0.1 * highest] * 2, False, [False, True]),
    ]  # fmt: skip
    chart = draw(charts.bar_panels(panels, ["x", "y"], label="bars", axis="which bar"))
    chart.check_texts("which bar", *(panel.title for panel in panels))
    names = [f"{panel.title}, {name}" for panel in panels for name in "xy"]
    bars = [share for panel in panels for share in panel.shares]
    titles = [f"{name}: {share:.0%}" for name, share in zip(names, bars, strict=True)]
    assert list(chart.shapes) == titles
    drawn = [float(np.ptp(chart.shapes[title][:, 1])) for title in titles]
    assert drawn == pytest.approx([max(drawn) * bar / (highest or 1) for bar in bars], abs=0.01)
    fills = [re.findall("fill: ([^;]*)", chart.styles[title])[0] for title in titles]
    accent = "rgb(var(--accent))"
    assert fills == [GREY, GREY, accent, accent, GREY, "var(--line)"]
    # The axis agrees: its labels are as high as the bars that reach them.
    ticks = {float(text.text[:-1]) / 100: text.bottom
             for text in chart.texts if text.text.endswith("%")}  # fmt: skip
    scale = (ticks[0.0] - ticks[max(ticks)]) / max(ticks)
    assert max(drawn) == pytest.approx(scale * highest, abs=0.5)
    assert highest <= max(ticks) <= max(highest + 0.2, 0.2)


UP = [0.6 + 0.01 * step for step in range(11)]


@pytest.mark.parametrize(
    ("own", "other"),
    [
        (UP, UP[::-1]),
        (UP[::-1], [0.0, 1.0] * 5 + [0.999]),
        # Those that end together stand apart nevertheless.
        (UP, [0.5] * 10 + [UP[-1] - 0.001]),
        (UP, [0.5] * 10 + [UP[-1] + 0.001]),
        ([0.5] * 11, [0.5] * 11),
    ],
)
def test_lines_are_drawn_to_scale(own: list[float], other: list[float]) -> None:
    chart = draw(lines(own, other))
    chart.check_texts("steps")
    x, heights = chart.shapes["<own>"].T
    across = on_scale(range(11), x)
    assert across(10) - across(0) > 150
    texts = {text.text: text for text in chart.texts}
    assert {*map(str, range(11))} <= texts.keys()
    assert (texts["<own>"].top < texts["other"].top) == (own[10] >= other[10])
    # Both lines on one scale, the higher share higher up, as the axis says.
    values, heights = own + other, np.r_[heights, chart.shapes["other"][:, 1]]
    if np.ptp(values):
        y = on_scale(values, heights)
        assert y(min(values)) - y(max(values)) > 80
        ticks = [text for name, text in texts.items() if re.fullmatch(r"\d\.\d+", name)]
        assert len(ticks) > 2
        for tick in ticks:
            assert (tick.top + tick.bottom) / 2 == pytest.approx(y(float(tick.text)), abs=1.5)


def test_dots_and_bars_of_shares_are_to_scale() -> None:
    chart = draw(shares())
    chart.check_texts(*(row.label for row in SHARES))
    shown = {text.text for text in chart.texts}
    assert {"0.700", "0.800", "0.650", "–", "50%", "<1%", "25%", "0%"} <= shown
    many, diamond = f"{LONG_NAME}: many", f"{LONG_NAME}: diamond, many"
    places, heights = chart.places([many, diamond, "$a_b$ < c: few", "none: nothing"])
    x = on_scale([0.7, 0.6, 0.8, 0.65], places)
    assert x(1) - x(0) > 300
    assert chart.has_path([x(0.69), heights[0], x(0.72), heights[0]])
    # No dot for what rests on too little, whose interval would say anything.
    assert f"{WIDE_NAME}: too few" not in chart.shapes
    bars = [chart.shapes[f"{row.label}, bar: {row.tooltip}"][:, 0] for row in SHARES]
    widths = [2 * row.share * np.ptp(bars[0]) for row in SHARES]
    assert [np.ptp(bar) for bar in bars] == pytest.approx(widths, abs=0.05)
    # A wide interval widens the scale, but not that of the small group above.
    widened = draw(shares([ShareRow("wide", 0.8, 0.5, (0.1, 1.0)), *SHARES[:1]]))
    far = -np.diff(widened.places([many, diamond])[0])
    assert places[0] - places[1] > 3 * far > 0


@pytest.mark.parametrize(
    "rows",
    [
        [("one", 0.5)],
        [("none", None)],
        [(LONG_NAME, 0.123), ("other", 0.1231)],
        [(LONG_NAME, 0.0), ("other", 1.0)],
        [("short", 0.333), ("other", 0.42)],
    ],
)
def test_the_scale_of_shares_can_be_read(rows: list[tuple[str, float | None]]) -> None:
    chart = draw(shares([ShareRow(name, value, 0.5) for name, value in rows]))
    chart.check_texts()
    # The scale is drawn first, then the names.
    ticks = list(takewhile(lambda text: re.fullmatch(r"[\d.]+", text.text), chart.texts))
    assert 1 <= len(ticks) <= 3
    for left, right in pairwise(ticks):
        assert left.right + 3 < right.left


def test_calibration_is_drawn_to_scale_with_the_counts() -> None:
    chart = draw(calibration())
    short = ["7", "999", "1.0k", "10k", "0", "999k", "1.0M", "1.2M", "16M", "3"]
    chart.check_texts("predicted", "happened", "answers")
    assert {*short} <= {text.text for text in chart.texts}
    filled = [(e, h, n) for e, h, n in zip(EXPECTED, HAPPENED, COUNTS, strict=True) if n]
    dots = [f"{e:.3f} predicted, {h:.3f} happened, {n:,} answers" for e, h, n in filled]
    across, down = chart.places(dots)
    x, y = on_scale([e for e, _, _ in filled], across), on_scale([h for _, h, _ in filled], down)
    assert x(1) - x(0) > 150
    assert y(0) - y(1) > 150
    assert chart.dashed == [pytest.approx([x(0), y(0), x(1), y(1)], abs=0.05)]
    bars = [f"{k / 10:.1f} to {(k + 1) / 10:.1f}: {n:,} answers" for k, n in enumerate(COUNTS)]
    heights = np.array([np.ptp(chart.shapes[bar][:, 1]) for bar in bars])
    assert heights == pytest.approx(np.array(COUNTS) / max(COUNTS) * max(heights), abs=0.05)


def draw_all(prefix: str = "") -> list[str]:
    panels = [Panel("one", [0.5], True), Panel("two", [0.5], False)]
    return [
        charts.dot_chart(DOTS, label=f'{prefix}"dots"', digits=2),
        charts.bar_panels(panels, ["x"], label=f"{prefix}bars", axis="x"),
        lines([0.5, 0.6], [0.5, 0.4], f"{prefix}lines"),
        shares(label=f"{prefix}shares"),
        calibration(f"{prefix}calibration"),
    ]


def test_charts_follow_the_page_and_nothing_else() -> None:
    drawn = draw_all()
    for svg in drawn:
        for colour in re.findall(r"(?:fill|stroke): ([^;\"]*)", svg):
            assert colour in PAGE_COLOURS or colour.startswith("color-mix(in srgb, currentColor")
        for outside in ("font-family", "<style", "<script", "http", "date"):
            assert outside not in svg
    assert 'aria-label="&quot;dots&quot;"' in drawn[0]
    # The same values give the same bytes, and no two charts of a page the same ids.
    with mpl.rc_context({"font.family": "monospace", "axes.linewidth": 9}):
        assert draw_all() == drawn
    page = "".join(drawn + draw_all("other "))
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) > 6
    assert set(re.findall(r'(?:url\(|href=")#([^")]*)', page)) == set(ids)


@pytest.mark.filterwarnings("error")
def test_names_in_any_script_are_drawn_without_a_warning() -> None:
    svg = charts.dot_chart([Dot("\u6a21\u578b", 0.5)], label="dots", digits=2)
    assert ">\u6a21\u578b</text>" in svg


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
    done = run_process(["-c", code])
    assert done.returncode == 0, done.stderr
