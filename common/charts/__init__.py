"""The charts of the pages: drawn by matplotlib, as SVG that lies in a page, in its colours."""

from common.charts.bars import Panel, bar_panels
from common.charts.calibration import calibration_chart
from common.charts.columns import Mark, column_chart, compact
from common.charts.curves import Curve, curve_chart
from common.charts.heat import heat_map
from common.charts.intervals import Step, interval_chart
from common.charts.lines import line_chart
from common.charts.pictures import picture
from common.charts.rows import Dot, dot_chart
from common.charts.shares import ShareRow, share_chart
from common.charts.style import PAGE_WIDTH, WIDTH

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
