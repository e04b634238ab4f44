"""Logs of fits as a page."""

import json
import sys
from pathlib import Path

import pytest
from page_reading import read_page as check_page

from common import plot_log
from common.errors import InputError

START = {"event": "start", "command": ["task_1/sample_model_partial_vae.py", "--log", "x.jsonl"]}


def write(path: Path, *events: object) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


def step(number: int, **values: float) -> dict[str, object]:
    return {"event": "step", "step": number, "seconds": 0.1, **values}


def test_runs_of_a_log(tmp_path: Path) -> None:
    flags = ["--dimensions", "3", "--output_dir", "here", "--seed=4", "--train_data=a.csv"]
    second = {"event": "start", "command": [*START["command"], *flags]}
    path = write(
        tmp_path / "fit.jsonl",
        START,
        step(1, loss=0.7),
        step(2, loss=0.6),
        second,
        step(1, loss=0.8, held_out_accuracy=0.5),
        {"event": "stopped early", "step": 1},
    )
    first, other = plot_log.read_runs(path)
    assert first == plot_log.Run("partial_vae", {"loss": [(1, 0.7), (2, 0.6)]}, False)
    assert other.name == "partial_vae --dimensions 3 --seed=4"
    assert other.series == {"loss": [(1, 0.8)], "held_out_accuracy": [(1, 0.5)]}
    assert other.stopped_early
    assert plot_log.describe(first) == "partial_vae: 2 steps; loss 0.7000 to 0.6000"
    assert plot_log.describe(other) == (
        "partial_vae --dimensions 3 --seed=4: 1 steps, stopped early; loss 0.8000 to 0.8000; "
        "held out accuracy up to 0.5000, at step 1"
    ).replace("held out", "held-out")


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [step(n, loss=1 / n, held_out_loss=1.1 / n, held_out_accuracy=n / 9) for n in (1, 2, 3)]
    log = write(tmp_path / "fit.jsonl", START, *steps)
    other = write(tmp_path / "other.jsonl", START, *steps[:2])
    monkeypatch.setattr(sys, "argv", ["plot_log", str(log), str(other)])
    plot_log.main()
    text = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert len(check_page(text).charts) == 2
    for name in ("Loss", "Accuracy on held-out answers", "partial_vae (run 1)", "(run 2)"):
        assert name in text
    assert "partial_vae: 3 steps" in capsys.readouterr().out


def test_names_are_escaped(tmp_path: Path) -> None:
    log = write(
        tmp_path / "a.jsonl", {"event": "start", "command": ["x.py", "<b>"]}, step(1, loss=1)
    )
    text = plot_log.as_page(plot_log.read_runs(log))
    assert "<b>" not in text
    assert "&lt;b&gt;" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "holds no steps, expected the log of a fit"),
        ('{"event": "start", "command": []}\n', "holds no steps"),
        ('{"event": "step", "step": 1, "loss": null}\n', "holds no steps"),
        ('{"event": "step", "step": 1, "loss": NaN}\n', "holds no steps"),
        ('{"event": "step", "step": 1, "loss": -Infinity}\n', "holds no steps"),
        ('{"event": "step", "step": 1, "loss": 1' + "0" * 400 + "}\n", "holds no steps"),
        ('{"event": "start"}\nnonsense\n', "row 2 is 'nonsense', expected a line of a log"),
        ("[1]\n", r"row 1 is '\[1\]', expected a line of a log"),
        ('{"loss": 1}\n', "row 1 is"),
    ],
)
def test_logs_that_are_none(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "fit.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=expected):
        plot_log.read_runs(path)


def test_a_log_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path / "fit.html", START, step(1, loss=1.0))
    monkeypatch.setattr(sys, "argv", ["plot_log", str(log)])
    with pytest.raises(InputError, match="is a log, expected another name for the page"):
        plot_log.main()
    assert log.read_text(encoding="utf-8").startswith("{")
