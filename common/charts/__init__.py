"""The charts of the pages: drawn by matplotlib, as SVG that lies in a page, in its colours."""

from common.charts.bars import Panel, bar_panels
from common.charts.columns import Mark, column_chart, compact
from common.charts.heat import heat_map
from common.charts.lines import line_chart
from common.charts.pictures import picture
from common.charts.rows import Dot, dot_chart

__all__ = [
    "Dot",
    "Mark",
    "Panel",
    "bar_panels",
    "column_chart",
    "compact",
    "dot_chart",
    "heat_map",
    "line_chart",
    "picture",
]
