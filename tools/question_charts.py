"""Charts of `tools.question_statistics`: a map of the questions, and how well a question fits."""

from collections.abc import Hashable
from typing import Any

from common.charts import (
    ACCENT,
    GREY,
    PAD,
    TEXT,
    Axes,
    Drawing,
    Interval,
    axes_with_y_labels,
    stroke,
    ticks,
)
from common.item_response.significance import QUANTILE_90
from common.pages import Html

import numpy as np
import pandas as pd

# Numbers of cells of the map, from left to right and from bottom to top.
_COLUMNS = 34
_ROWS = 22
_MAP_HEIGHT = 250.0
_FIT_HEIGHT = 190.0
# An observed share is drawn as a square. This is half the length of its side.
_RADIUS = 2.8
# Distance from the upper edge of a chart to the baseline of its title.
_TITLE_BASELINE = PAD + 8


def map_chart(parameters: pd.DataFrame) -> Html:
    """Draw a map of the questions, with cells for ranges of difficulty and discrimination.

    At each end of an axis, the 0.5 % most extreme questions may be outside of the chart. The
    opacity of a cell shows its number of questions.
    """
    known = parameters.dropna(subset=["difficulty", "discrimination"])
    difficulty = known["difficulty"].to_numpy()
    discrimination = known["discrimination"].to_numpy()
    x_limits = _inner_limits(difficulty)
    y_limits = _inner_limits(discrimination)
    counts, x_edges, y_edges = np.histogram2d(
        difficulty, discrimination, bins=(_COLUMNS, _ROWS), range=(x_limits, y_limits)
    )
    axes = _axes(_MAP_HEIGHT, x_limits, y_limits, y_name="discrimination", x_name="difficulty")
    axes.draw_x_axis(ticks(*x_limits, 6), "difficulty")
    # Only cells with questions are drawn.
    for column, row in np.argwhere(counts).tolist():
        n = int(counts[column, row])
        # The opacity grows with the square root of the number of questions, so that a cell with few
        # questions can be seen beside a cell with many.
        opacity = 0.15 + 0.85 * np.sqrt(n / counts.max())
        # In the drawing, y runs downwards: the upper edge of a cell comes first.
        axes.drawing.box(
            (axes.x(x_edges[column]), axes.x(x_edges[column + 1])),
            (axes.y(y_edges[row + 1]), axes.y(y_edges[row])),
            f"fill: {ACCENT}; fill-opacity: {opacity:.2f}",
            f"{n} questions",
        )
    return axes.drawing.svg("Difficulty and discrimination of the questions")


def fit_chart(groups: pd.DataFrame, question: int) -> Html:
    """Draw how well the model fits one question: shares of right answers, observed and expected.

    The students who answered the question are divided into groups by ability. `groups` has a row
    for each group, from the table of `QuestionStatistics.fit_groups`.
    """
    records = groups.to_dict("records")
    n_groups = len(records)
    # The groups have the positions 1 to n_groups on the horizontal axis, with half a step of free
    # space at both ends. The two texts are centred so far from the ends that they are not cut off.
    x_limits = (0.5, n_groups + 0.5)
    axes = _axes(_FIT_HEIGHT, x_limits, y_limits=(0.0, 1.0), y_name="share right")
    axes.draw_x_axis([(1.5, "least able"), (n_groups - 0.5, "most able")])
    # The column `group` counts the groups from 0, and the axis counts them from 1.
    expected_points = []
    for group in records:
        expected_points.append((axes.x(group["group"] + 1), axes.y(group["expected"])))
    axes.drawing.line(expected_points, stroke(GREY, 2), "expected")
    for group in records:
        _draw_observed(axes, group)
    middle = (axes.left + axes.right) / 2
    title = f"question {question}"
    axes.drawing.text(middle, _TITLE_BASELINE, title, anchor="middle", colour=TEXT)
    return axes.drawing.svg(f"Observed and expected shares of right answers to question {question}")


def _draw_observed(axes: Axes, group: dict[Hashable, Any]) -> None:
    """Draw a group's observed share of right answers as a square, and its 90 % interval."""
    x = axes.x(group["group"] + 1)
    observed = group["observed"]
    half_interval = QUANTILE_90 * group["error"]
    low = axes.y(max(observed - half_interval, 0))
    high = axes.y(min(observed + half_interval, 1))
    axes.drawing.line([(x, low), (x, high)], stroke(ACCENT, 1.4))
    y = axes.y(observed)
    tooltip = f"{group['n']} answers, {observed:.0%} right, expected {group['expected']:.0%}"
    x_edges = (x - _RADIUS, x + _RADIUS)
    y_edges = (y - _RADIUS, y + _RADIUS)
    axes.drawing.box(x_edges, y_edges, f"fill: {ACCENT}", tooltip)


def _axes(
    height: float, x_limits: Interval, y_limits: Interval, *, y_name: str, x_name: str = ""
) -> Axes:
    """Return the axes of a new drawing, with about five labels at the vertical axis.

    `y_name`, the name of the vertical axis, is written above it. For `x_name`, the name of the
    horizontal axis, space is left; `draw_x_axis` writes it.
    """
    y_labels = ticks(*y_limits, 5)
    return axes_with_y_labels(
        Drawing(height), x_limits, y_limits, y_labels, title=y_name, axis=x_name
    )


def _inner_limits(values: np.ndarray) -> Interval:
    """Return a range, with margins, of all values but the 0.5 % most extreme ones at each end."""
    low, high = np.quantile(values, [0.005, 0.995]).tolist()
    # The margin is at least 0.05, so that the range is not empty if all values are equal.
    margin = max(0.05 * (high - low), 0.05)
    return low - margin, high + margin
