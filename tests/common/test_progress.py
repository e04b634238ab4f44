"""The steps of a fit: their bar, their log, and Control-C."""

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from common import progress

SCRIPT = """
from common import progress
with progress.steps(4, "fitting") as (steps, show):
    for step in steps:
        show(loss=1 / (1 + step))
        if step == {last}:
            raise KeyboardInterrupt
print("going on")
"""


def events(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_step_is_a_line_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with progress.steps(3, "fitting", log) as (steps, show):
        for step in steps:
            show(loss=0.5 - step / 10)
    start, *lines = events(log)
    assert start["event"] == "start"
    assert [(line["event"], line["step"], line["loss"]) for line in lines] == [
        ("step", 1, 0.5),
        ("step", 2, 0.4),
        ("step", 3, 0.3),
    ]


def test_control_c_leaves_the_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    done = []
    with progress.steps(9, "fitting", log) as (steps, _):
        for step in steps:
            done.append(step)
            if step == 2:
                raise KeyboardInterrupt
    assert done == [0, 1, 2]
    assert events(log)[-1]["event"] == "stopped early"
    assert events(log)[-1]["step"] == 3
    assert capsys.readouterr().err == (
        "interrupted: predicting with what has been learned so far\n"
    )


def test_other_errors_pass_through() -> None:
    with (
        pytest.raises(ZeroDivisionError),
        progress.steps(2, "fitting", disable=True) as (steps, _),
    ):
        for step in steps:
            print(1 / step)


def shown_on_terminal(last: int) -> str:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    command = [sys.executable, "-c", SCRIPT.format(last=last)]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = ""
        try:
            while part := os.read(ours, 4096).decode():
                shown += part
        except OSError:  # Linux says so at the end.
            pass
        assert process.wait() == 0
    os.close(ours)
    return shown


def test_a_bar_ends_at_100_percent_and_fits_80_columns() -> None:
    lines = shown_on_terminal(last=-1).replace("\r\n", "\n").split("\n")
    final = lines[0].split("\r")[-1]
    assert final.startswith("fitting: 100%")
    assert "loss=0.2500" in final
    assert len(final) <= 80
    assert lines[1] == "going on"


def test_a_bar_says_that_it_stopped_early() -> None:
    lines = shown_on_terminal(last=1).replace("\r\n", "\n").split("\n")
    final = lines[0].split("\r")[-1]
    assert "stopped early" in final
    assert "100%" not in final
    assert len(final) <= 80
    assert lines[1:3] == ["interrupted: predicting with what has been learned so far", "going on"]
