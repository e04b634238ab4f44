"""Draw the logs of fits: how the loss fell, and what was reached on held-out answers.

    python task_1/sample_model_item_response.py --local --log data/test_output/fit.jsonl
    python -m tools.plot_log data/test_output/fit.jsonl
    python -m tools.plot_log first.jsonl second.jsonl --output both.html

A log holds a line of JSON for every step, and may hold several runs. Every number of the steps is
drawn: loss (on the answers learned from), held_out_loss, held_out_accuracy (of models that hold
answers out), and whatever else a model of your own logs. Writes a page beside the first log.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from common import charts, cli, pages, provenance, reading, writing
from common.errors import InputError, quote

# What is drawn in one chart, so that one can be held against the other.
_TOGETHER = {"held_out_loss": "loss"}
_TITLES = {"loss": "Loss", "held_out_accuracy": "Accuracy on held-out answers"}
_LINE_NAMES = {"loss": "answers learned from", "held_out_loss": "held-out answers"}
_LARGEST = 1e100


class Run(NamedTuple):
    """A run of a script: its points (step, value) for each number logged, and other events."""

    name: str
    series: dict[str, list[tuple[float, float]]]
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
    """Read the runs of a log that have steps; every line must be one of a log."""
    reading.require_file(path)
    runs: list[Run] = []
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            kind = event["event"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InputError(
                f"{path}: row {number} is {quote(line)}, expected a line of a log, as --log writes"
            ) from None
        if kind == "start" or not runs:
            runs.append(Run(_name_run(event, path), {}, []))
        runs[-1].events.append(kind)
        step = event.pop("step", None)
        for key, value in event.items():
            if _is_number(step) and _is_number(value) and key != "seconds":
                runs[-1].series.setdefault(key, []).append((step, value))
    runs = [run for run in runs if run.series]
    if not runs:
        raise InputError(
            f"{path}: holds no steps, expected the log of a fit, as sample models write (--log)"
        )
    return runs


def _is_number(value: Any) -> TypeGuard[float]:
    # NaN fails the comparison; of larger numbers not even a sum would be one.
    return type(value) in (int, float) and abs(value) <= _LARGEST


def _name_run(event: dict[str, Any], path: Path) -> str:
    """Return the script and its options but for folders and files; the log of an unknown script."""
    command, options = event.get("command"), event.get("options")
    if not isinstance(command, list) or not isinstance(options, dict):
        return cli.show(path)
    script = Path(str(command[0])).stem.removeprefix("sample_model_")
    return " ".join([script, *map(str, provenance.flags_of(provenance.settings(options)))])


def describe(run: Run) -> str:
    """Say in one line what a run reached."""
    parts = []
    for key, points in run.series.items():
        name = key.replace("_", " ").replace("held out", "held-out")
        if key.endswith("loss"):
            parts.append(f"{name} {points[0][1]:.4f} to {points[-1][1]:.4f}")
        else:
            step, best = max(points, key=lambda point: point[1])
            parts.append(f"{name} up to {best:.4f}, at step {step:g}")
    n_steps = max(map(len, run.series.values()))
    early = ", stopped early" if "stopped early" in run.events else ""
    return f"{run.name}: {n_steps} steps{early}; {'; '.join(parts)}"


def draw(runs: list[Run]) -> list[tuple[str, pages.Html]]:
    """Return title and chart for each number, a curve for each run."""
    drawn: dict[str, list[charts.Curve]] = {key: [] for key in _TITLES}
    n_runs, n_seen = Counter(run.name for run in runs), Counter[str]()
    for number, run in enumerate(runs):
        n_seen[run.name] += 1
        name = f"{run.name} (run {n_seen[run.name]})" if n_runs[run.name] > 1 else run.name
        for key, points in run.series.items():
            label = f"{name}, {_LINE_NAMES[key]}" if key in _LINE_NAMES else name
            steps, values = zip(*points, strict=True)
            curve = charts.Curve(label, steps, values, number, key in _TOGETHER)
            drawn.setdefault(_TOGETHER.get(key, key), []).append(curve)
    titled = [(_TITLES.get(key, key), curves) for key, curves in drawn.items() if curves]
    return [(title, charts.curve_chart(own, label=title, axis="step")) for title, own in titled]


if __name__ == "__main__":
    cli.run(main)
