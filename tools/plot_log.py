"""Draw the logs of fits: how the loss fell, and what was reached on held-out answers.

    python task_1/sample_model_item_response.py --local --log data/test_output/fit.jsonl
    python -m tools.plot_log data/test_output/fit.jsonl
    python -m tools.plot_log first.jsonl second.jsonl --output both.html

A log holds a line of JSON for every step, and may hold several runs. Every number of the steps is
drawn: loss (on the answers learned from), held_out_loss, held_out_accuracy (of models that hold
answers out), and whatever else a model of your own logs. Writes a page beside the first log.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeGuard

from common import charts, cli, io, pages
from common.errors import InputError, quote

# What is drawn in one chart, so that one can be held against the other.
_TOGETHER = {"held_out_loss": "loss"}
_TITLES = {"loss": "Loss", "held_out_accuracy": "Accuracy on held-out answers"}
_LINE_NAMES = {"loss": "answers learned from", "held_out_loss": "held-out answers"}
# Numbers that say which step it is.
_PLACES = ("step", "seconds")

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Run:
    """A run of a script.

    Attributes
    ----------
    name
        The script and its flags, but for folders and files.
    series
        For each number logged, by its name, the points (step, value).
    stopped_early
        Whether it was interrupted.
    """

    name: str
    series: dict[str, Points]
    stopped_early: bool


def main() -> None:
    """Read the logs, write the page."""
    p = cli.parser(__doc__)
    p.prog = "python -m tools.plot_log"
    p.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="what --log wrote")
    p.add_argument(
        "--output", type=Path, metavar="FILE", help="the page (default: the first log's, .html)"
    )
    options = p.parse_args()
    runs = [run for path in options.logs for run in read_runs(path)]
    output = options.output or options.logs[0].with_suffix(".html")
    if output.resolve() in [path.resolve() for path in options.logs]:
        raise InputError(f"{output}: is a log, expected another name for the page with --output")
    io.write_text(output, as_page(runs))
    for run in runs:
        print(describe(run))
    print(f"written: {cli.show(output)}")


def read_runs(path: Path) -> list[Run]:
    """Read the runs of a log that have steps.

    Raises
    ------
    InputError
        If the log is missing, has a line that is none, or no steps.
    """
    io.require_file(path)
    runs: list[Run] = []
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            event = io.parse_json(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or "event" not in event:
            raise InputError(
                f"{path}: row {number} is {quote(line)}, expected a line of a log, as --log writes"
            )
        if event["event"] == "start" or not runs:
            runs.append(Run(_name(event.get("command"), path), {}, False))
        if event["event"] == "stopped early":
            runs[-1] = Run(runs[-1].name, runs[-1].series, True)
        step = event.get("step")
        if not _is_number(step):
            continue
        for key, value in event.items():
            if _is_number(value) and key not in _PLACES:
                runs[-1].series.setdefault(key, []).append((float(step), float(value)))
    runs = [run for run in runs if run.series]
    if not runs:
        raise InputError(
            f"{path}: holds no steps, expected the log of a fit, as sample models write (--log)"
        )
    return runs


def _is_number(value: Any) -> TypeGuard[float]:
    # NaN fails the comparison, as do infinities, and whole numbers too large for a float.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _name(command: Any, path: Path) -> str:
    """Return the script and the flags that are not folders or files."""
    if not isinstance(command, list) or not command:
        return cli.show(path)
    words = [str(word) for word in command[1:]]
    kept = [Path(str(command[0])).stem.removeprefix("sample_model_")]
    while words:
        word = words.pop(0)
        is_path = word.partition("=")[0] in ("--log", "--probabilities", "--train_data") or (
            word.partition("=")[0].endswith(("_dir", "_file"))
        )
        if not is_path:
            kept.append(word)
        elif "=" not in word and words:
            words.pop(0)
    return " ".join(kept)


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
    n_steps = max(len(points) for points in run.series.values())
    early = ", stopped early" if run.stopped_early else ""
    return f"{run.name}: {n_steps} steps{early}; {'; '.join(parts)}"


def as_page(runs: Sequence[Run]) -> str:
    """Return the page: a chart for each number, a curve for each run."""
    drawn: dict[str, list[charts.Curve]] = {}
    names = _distinct([run.name for run in runs])
    for number, (name, run) in enumerate(zip(names, runs, strict=True)):
        for key, points in run.series.items():
            chart = _TOGETHER.get(key, key)
            line = _LINE_NAMES.get(key, "")
            steps, values = zip(*points, strict=True)
            label = ", ".join(filter(None, (name, line)))
            curve = charts.Curve(label, steps, values, number, key in _TOGETHER)
            drawn.setdefault(chart, []).append(curve)
    parts = [f"<p>{escape(describe(run))}</p>" for run in runs]
    for key in sorted(drawn, key=lambda key: list(_TITLES).index(key) if key in _TITLES else 9):
        title = _TITLES.get(key, key)
        svg = charts.curve_chart(drawn[key], label=title, axis="step")
        parts.append(f"<h2>{escape(title)}</h2><figure>{svg}</figure>")
    return pages.page("Fits", "\n".join(parts))


def _distinct(names: Sequence[str]) -> list[str]:
    """Number names that are the same."""
    return [
        f"{name} (run {names[: place + 1].count(name)})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


if __name__ == "__main__":
    cli.run(main)
