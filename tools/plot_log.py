"""Draw the logs of fits: how the loss fell, and the accuracy on held-out answers.

    python task_1/sample_model_item_response.py --local --log data/test_output/fit.jsonl
    python -m tools.plot_log data/test_output/fit.jsonl
    python -m tools.plot_log first.jsonl second.jsonl --output both.html

A log holds a line of JSON for every step, and may hold several runs. Every number that the steps
have is drawn: loss (on the answers that are learned from), held_out_loss and held_out_accuracy (if
the model holds answers out), and any number that a model of your own logs. The page is written
beside the first log.
"""

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from common import charts, cli, pages, provenance, reading, writing
from common.errors import InputError, quote

# A quantity that is drawn in the chart of another quantity, so that the two can be compared.
_DRAWN_WITH = {"held_out_loss": "loss"}
# Titles of charts. The chart of any other quantity has the quantity's name as title.
_TITLES = {"loss": "Loss", "held_out_accuracy": "Accuracy on held-out answers"}
# Names of curves that share a chart.
_CURVE_NAMES = {"loss": "answers learned from", "held_out_loss": "held-out answers"}
# Larger values are not drawn: the scale of a chart is computed from sums of values, which could
# overflow.
_LARGEST = 1e100


@dataclass(frozen=True)
class Run:
    """A run of a script, as its log describes it."""

    # The script and its options.
    name: str
    # The key is the name of a logged quantity, such as loss. The values are its points
    # (step, value).
    series: dict[str, list[tuple[float, float]]]
    # The names of all events in the log, in order.
    events: list[str]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="what --log wrote")
    help_text = "the page (default: the first log's, .html)"
    parser.add_argument("--output", type=Path, metavar="FILE", help=help_text)
    return parser


def main() -> None:
    """Read the logs, write the page."""
    options = build_parser().parse_args()
    output = options.output or options.logs[0].with_suffix(".html")
    cli.require_outputs([output], options.logs)
    runs = [run for path in options.logs for run in read_runs(path)]
    lines = [describe(run) for run in runs]
    page = pages.render("log.html", title="Fits", tab="", lines=lines, charts=draw(runs))
    writing.write_files({output: page})
    print("\n".join(lines))
    print(f"written: {cli.show(output)}")


def read_runs(path: Path) -> list[Run]:
    """Read the runs of a log that have steps.

    Raises `InputError` if a line is not an event in JSON, or if there are no steps.
    """
    reading.require_file(path)
    runs: list[Run] = []
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            event_name = event["event"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InputError(
                f"{path}: row {number} is {quote(line)}, expected a line of a log, as --log writes"
            ) from None
        # A run begins with the event "start". If the log has lost its beginning, its first event
        # begins a run.
        if event_name == "start" or not runs:
            runs.append(Run(name=_name_run(event, path), series={}, events=[]))
        runs[-1].events.append(event_name)
        _add_points(runs[-1], event)
    runs = [run for run in runs if run.series]
    if not runs:
        raise InputError(
            f"{path}: holds no steps, expected the log of a fit, as sample models write (--log)"
        )
    return runs


def _add_points(run: Run, event: dict[str, Any]) -> None:
    """Add the quantities of a step, such as losses, to the points of a run; ignore other events."""
    step = event.get("step")
    if not _is_number(step):
        return
    for key, value in event.items():
        if key not in ("step", "seconds") and _is_number(value):
            run.series.setdefault(key, []).append((step, value))


def _is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value can be drawn: a bool, NaN or infinity cannot."""
    return type(value) in (int, float) and abs(value) <= _LARGEST


def _name_run(event: dict[str, Any], path: Path) -> str:
    """Name a run by its script and options, except paths; or by the log if these are unknown."""
    command = event.get("command")
    options = event.get("options")
    if not isinstance(command, list) or not isinstance(options, dict):
        return cli.show(path)
    script = Path(str(command[0])).stem.removeprefix("sample_model_")
    # `settings` leaves out the options that are paths.
    flags = provenance.flags_of(provenance.settings(options))
    return " ".join([script, *map(str, flags)])


def describe(run: Run) -> str:
    """Say in one line how the losses of a run fell, and how high its other quantities rose."""
    parts = []
    # A point is a pair of a step and the value of the quantity at this step.
    for quantity, points in run.series.items():
        name = quantity.replace("_", " ").replace("held out", "held-out")
        if quantity.endswith("loss"):
            _, first_loss = points[0]
            _, last_loss = points[-1]
            parts.append(f"{name} {first_loss:.4f} to {last_loss:.4f}")
        else:
            step, highest = max(points, key=lambda point: point[1])
            parts.append(f"{name} up to {highest:.4f}, at step {step:g}")
    n_steps = max(len(points) for points in run.series.values())
    early = ", stopped early" if "stopped early" in run.events else ""
    return f"{run.name}: {n_steps} steps{early}; {'; '.join(parts)}"


def draw(runs: list[Run]) -> list[tuple[str, pages.Html]]:
    """Return the title and the chart of each logged quantity, with a curve for each run.

    A quantity in `_DRAWN_WITH` has no chart of its own: its curve is dashed in the chart of the
    quantity that `_DRAWN_WITH` names.
    """
    # The curves of each chart, by the quantity of the chart. A dict keeps its order, so the charts
    # that have a title in `_TITLES` come first.
    curves_by_chart: dict[str, list[charts.Curve]] = {chart: [] for chart in _TITLES}
    # A run keeps its number in all charts, so that its curves have the same colour in all of them.
    for number, (run, name) in enumerate(zip(runs, _distinct_names(runs), strict=True)):
        for quantity, points in run.series.items():
            label = f"{name}, {_CURVE_NAMES[quantity]}" if quantity in _CURVE_NAMES else name
            # A point is a pair of a step and the value at this step.
            steps, values = zip(*points, strict=True)
            is_dashed = quantity in _DRAWN_WITH
            curve = charts.Curve(label, steps, values, number=number, is_dashed=is_dashed)
            chart = _DRAWN_WITH.get(quantity, quantity)
            curves_by_chart.setdefault(chart, []).append(curve)
    drawn = []
    for chart, curves in curves_by_chart.items():
        # A chart of `_TITLES` has no curves if no run has logged its quantity.
        if curves:
            title = _TITLES.get(chart, chart)
            drawn.append((title, charts.curve_chart(curves, label=title, axis="step")))
    return drawn


def _distinct_names(runs: list[Run]) -> list[str]:
    """Return the names of the runs. Runs with the same name get numbers."""
    n_runs = Counter(run.name for run in runs)
    n_before = Counter[str]()
    names = []
    for run in runs:
        n_before[run.name] += 1
        number = n_before[run.name]
        names.append(f"{run.name} (run {number})" if n_runs[run.name] > 1 else run.name)
    return names


if __name__ == "__main__":
    cli.run(main)
