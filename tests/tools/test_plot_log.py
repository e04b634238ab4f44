"""The page about logs of fits."""

import json
from pathlib import Path

from common import provenance
from common.errors import InputError
from tools import plot_log

import pytest
from conftest import succeeds
from page_reading import read_page

PLOT = ["-m", "tools.plot_log"]


def start(*flags: str, script: str = "task_1/sample_model_partial_vae.py") -> dict[str, object]:
    """Return the event at the start of a run, as a line of a log holds it."""
    return {"event": "start", "command": [script, *flags], "options": provenance.options_of(flags)}


def step(number: int, **values: float) -> dict[str, object]:
    """Return the event of a step, as a line of a log holds it."""
    return {"event": "step", "step": number, "seconds": 0.1, **values}


def write(path: Path, *events: object) -> Path:
    """Write a log."""
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


# The tests read two logs, fit.jsonl and other.jsonl, with two runs each. This is the first run of
# both logs.
SAME_RUN = [
    start(),
    step(1, loss=1, held_out_loss=1.1, held_out_accuracy=1 / 9),
    step(2, loss=0.5, held_out_loss=0.55, held_out_accuracy=2 / 9),
]
# The second run of the first log, fit.jsonl. Flags that name paths are not part of a run's name.
STOPPED_RUN = [
    start("--dimensions", "3", "--output_dir", "here", "--seed=4", "--train_data=a.csv"),
    step(1, loss=0.8, held_out_accuracy=0.5),
    step(2, loss=0.7, held_out_accuracy=0.4),
    {"event": "stopped early", "step": 2},
]
# The second run of the second log, other.jsonl. A user's model logs a quantity that the user has
# named "own". The value 1e308 is too large to be drawn, so the tool leaves out its step.
OWN_RUN = [start("<b>", script="x.py"), step(1, own=1), step(2, own=1e308)]
# The lines that the tool prints about the runs.
LINE_OF_SAME_RUN = (
    "partial_vae: 2 steps; loss 1.0000 to 0.5000; held-out loss 1.1000 to 0.5500; "
    "held-out accuracy up to 0.2222, at step 2"
)
LINE_OF_STOPPED_RUN = (
    "partial_vae --dimensions 3 --seed 4: 2 steps, stopped early; loss 0.8000 to 0.7000; "
    "held-out accuracy up to 0.5000, at step 1"
)
LINE_OF_OWN_RUN = "x <b>: 1 steps; own up to 1.0000, at step 1"
LINES = [LINE_OF_SAME_RUN, LINE_OF_STOPPED_RUN, LINE_OF_SAME_RUN, LINE_OF_OWN_RUN]


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Write two logs with two runs each."""
    return [
        write(tmp_path / "fit.jsonl", *SAME_RUN, *STOPPED_RUN),
        write(tmp_path / "other.jsonl", *SAME_RUN, *OWN_RUN),
    ]


def test_every_run_of_the_logs_is_printed(logs: list[Path]) -> None:
    *printed, _ = succeeds([*PLOT, *logs]).splitlines()
    assert printed == LINES


def test_every_run_of_the_logs_is_drawn(logs: list[Path]) -> None:
    """The page beside the first log has a chart of the losses, of the accuracies and of "own".

    Each chart has curves of the runs. The two logs hold four runs. Both logs begin with `SAME_RUN`,
    so the page numbers these two runs of the same name.
    """
    succeeds([*PLOT, *logs])
    page = read_page(logs[0].with_suffix(".html").read_text(encoding="utf-8"))
    # Above the charts, the page shows the lines that the tool prints.
    assert " ".join(LINES) in page.text
    assert page.headings == ["Fits", "Loss", "Accuracy on held-out answers", "own"]
    loss, accuracy, own = page.charts
    assert set(loss.titles) == {
        # `SAME_RUN` has two losses.
        "partial_vae (run 1), answers learned from",
        "partial_vae (run 1), held-out answers",
        "partial_vae (run 2), answers learned from",
        "partial_vae (run 2), held-out answers",
        # `STOPPED_RUN` has one loss.
        "partial_vae --dimensions 3 --seed 4, answers learned from",
    }
    # These three runs have an accuracy. `OWN_RUN` has only the quantity "own".
    assert len(accuracy.titles) == 3
    assert len(own.titles) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"event": "start"}\n', "holds no steps, expected the log of a fit"),
        ('{"event": "step", "step": 1, "loss": NaN, "own": -Infinity}\n', "holds no steps"),
        ('{"event": "start"}\nnonsense\n', "row 2 is 'nonsense', expected a line of a log"),
        ("[1]\n", r"row 1 is '\[1\]', expected a line of a log"),
        ('{"loss": 1}\n', "row 1 is"),
    ],
)
def test_files_that_are_no_logs_of_fits_are_refused(
    tmp_path: Path, text: str, expected: str
) -> None:
    (tmp_path / "fit.jsonl").write_text(text)
    with pytest.raises(InputError, match=expected):
        plot_log.read_runs(tmp_path / "fit.jsonl")
