"""The charts of the pages: drawn by matplotlib, as SVG that lies in a page, in its colours."""

from common.charts.bars import Panel, bar_panels
from common.charts.calibration import calibration_chart
from common.charts.curves import Curve, curve_chart
from common.charts.lines import line_chart
from common.charts.rows import Dot, dot_chart
from common.charts.shares import ShareRow, share_chart

__all__ = [
    "Curve",
    "Dot",
    "Panel",
    "ShareRow",
    "bar_panels",
    "calibration_chart",
    "curve_chart",
    "dot_chart",
    "line_chart",
    "share_chart",
]
