"""The steps of a fit: their bar, their log, and Control-C."""

import json
import os
from pathlib import Path

import pytest
from conftest import ROOT
from terminal import COLUMNS, run_on_terminal

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
INTERRUPTED = "interrupted: predicting with what has been learned so far"


def events(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_step_is_a_line_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with progress.steps(3, "fitting", log) as (steps, show):
        for step in steps:
            show(loss=0.5 - step / 10)
    start, *lines = events(log)
    assert start["event"] == "start"
    told = [(line["event"], line["step"], line["loss"]) for line in lines]
    assert told == [("step", 1, 0.5), ("step", 2, 0.4), ("step", 3, 0.3)]


def test_control_c_leaves_the_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other errors pass through."""
    log = tmp_path / "log.jsonl"
    done = []
    with progress.steps(9, "fitting", log) as (steps, _):
        for step in steps:
            done.append(step)
            if step == 2:
                raise KeyboardInterrupt
    assert done == [0, 1, 2]
    last = events(log)[-1]
    assert (last["event"], last["step"]) == ("stopped early", 3)
    assert capsys.readouterr().err == f"{INTERRUPTED}\n"
    with pytest.raises(ZeroDivisionError), progress.steps(2, "fitting") as (steps, _):
        raise ZeroDivisionError


@pytest.mark.skipif(os.name == "nt", reason="needs a terminal as on Unix")
@pytest.mark.parametrize("last", [-1, 1])
def test_a_bar_ends_at_100_percent_or_says_that_it_stopped_early(last: int) -> None:
    code, (bar, *after), _ = run_on_terminal(["-c", SCRIPT.format(last=last)], ROOT)
    assert code == 0
    assert len(bar) <= COLUMNS
    if last < 0:
        assert bar.startswith("fitting: 100%") and "loss=0.2500" in bar
        assert after[0] == "going on"
    else:
        assert "stopped early" in bar and "100%" not in bar
        assert after[:2] == [INTERRUPTED, "going on"]
