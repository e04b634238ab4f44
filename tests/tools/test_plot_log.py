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
    """Return the first event of a run."""
    return {"event": "start", "command": [script, *flags], "options": provenance.options_of(flags)}


def step(number: int, **values: float) -> dict[str, object]:
    """Return the event of a step."""
    return {"event": "step", "step": number, "seconds": 0.1, **values}


def write(path: Path, *events: object) -> Path:
    """Write a log."""
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


def test_every_run_of_the_logs_is_printed_and_drawn(tmp_path: Path) -> None:
    """Two logs hold two runs each. The first run of either log is the same."""
    same_run = [
        start(),
        *(step(n, loss=1 / n, held_out_loss=1.1 / n, held_out_accuracy=n / 9) for n in (1, 2)),
    ]
    # Flags that name paths are not part of a run's name. The run has no held-out loss.
    flags = ["--dimensions", "3", "--output_dir", "here", "--seed=4", "--train_data=a.csv"]
    stopped_run = [
        start(*flags),
        *(step(n, loss=0.9 - n / 10, held_out_accuracy=0.6 - n / 10) for n in (1, 2)),
        {"event": "stopped early", "step": 2},
    ]
    # A model of the user's logs a quantity of its own; a value as large as 1e308 is not drawn.
    own_run = [start("<b>", script="x.py"), step(1, own=1), step(2, own=1e308)]
    log = write(tmp_path / "fit.jsonl", *same_run, *stopped_run)
    other = write(tmp_path / "other.jsonl", *same_run, *own_run)

    *printed, _ = succeeds([*PLOT, log, other]).splitlines()

    fell = "2 steps; loss 1.0000 to 0.5000; held-out loss 1.1000 to 0.5500"
    assert printed == [
        f"partial_vae: {fell}; held-out accuracy up to 0.2222, at step 2",
        "partial_vae --dimensions 3 --seed 4: 2 steps, stopped early; loss 0.8000 to 0.7000; "
        "held-out accuracy up to 0.5000, at step 1",
        f"partial_vae: {fell}; held-out accuracy up to 0.2222, at step 2",
        "x <b>: 1 steps; own up to 1.0000, at step 1",
    ]
    page = read_page((tmp_path / "fit.html").read_text(encoding="utf-8"))
    assert " ".join(printed) in page.text
    assert page.headings == ["Fits", "Loss", "Accuracy on held-out answers", "own"]
    loss, accuracy, own = page.charts
    assert {*loss.titles} == {
        "partial_vae (run 1), answers learned from",
        "partial_vae (run 1), held-out answers",
        "partial_vae (run 2), answers learned from",
        "partial_vae (run 2), held-out answers",
        "partial_vae --dimensions 3 --seed 4, answers learned from",
    }
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
