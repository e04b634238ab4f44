"""The charts of the pages: SVG that lies in a page, in its colours, light or dark."""

from common.charts.columns import Mark, Panel, bar_panels, column_chart, heat_map
from common.charts.lines import (
    Curve,
    Step,
    calibration_chart,
    curve_chart,
    interval_chart,
    line_chart,
)
from common.charts.rows import Dot, ShareRow, dot_chart, share_chart
from common.charts.style import PAGE_WIDTH, WIDTH, compact, picture

__all__ = [
    "PAGE_WIDTH",
    "WIDTH",
    "Curve",
    "Dot",
    "Mark",
    "Panel",
    "ShareRow",
    "Step",
    "bar_panels",
    "calibration_chart",
    "column_chart",
    "compact",
    "curve_chart",
    "dot_chart",
    "heat_map",
    "interval_chart",
    "line_chart",
    "picture",
    "share_chart",
]
