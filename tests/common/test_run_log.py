"""Logs of long runs: each line is one event, and several writers leave whole lines."""

import json
import subprocess
import sys
from pathlib import Path

from common import run_log

import numpy as np
from run_scripts import PATIENCE, ROOT


def test_without_a_file_an_event_is_not_written() -> None:
    run_log.open_log(None)("epoch", loss=float("inf"))


def test_a_log_holds_the_starts_of_all_runs_and_every_event(tmp_path: Path) -> None:
    """A run appends its start and its events to the log, after the lines of earlier runs.

    NumPy's numbers and arrays become numbers and lists. NaN, which JSON lacks, becomes null.
    """
    path = tmp_path / "new folder" / "fit.jsonl"
    log_event = run_log.open_log(path)
    log_event("epoch", epoch=1, loss=0.5)
    log_event("epoch", epoch=np.int64(2), loss=np.float32(0.25), shares=np.array([0.5, np.nan]))
    # A second run.
    run_log.open_log(path)

    lines = path.read_text(encoding="utf-8").splitlines()
    start, epoch_1, epoch_2, second_start = map(json.loads, lines)
    assert start["event"] == "start"
    assert second_start["event"] == "start"
    assert start["command"] == sys.argv
    assert epoch_1["epoch"] == 1
    assert epoch_1["loss"] == 0.5
    assert epoch_2["epoch"] == 2
    assert epoch_2["loss"] == 0.25
    assert epoch_2["shares"] == [0.5, None]
    assert 0 <= epoch_1["seconds"] <= epoch_2["seconds"]


# A program that appends 300 lines to a file.
WRITER = """
import sys
from pathlib import Path
from common.run_log import append_line
for number in range(300):
    append_line(Path(sys.argv[1]), {"writer": sys.argv[2], "number": number, "text": "é" * 200})
"""


def test_lines_of_processes_that_write_at_the_same_time_stay_whole(tmp_path: Path) -> None:
    """Two processes append 300 lines each to a file, and no line mixes with another.

    At first, the file holds one line without an end. The lines that are appended must not continue
    this line.
    """
    path = tmp_path / "results.jsonl"
    # An earlier process was killed while it wrote this line.
    path.write_text('{"sco', encoding="utf-8")

    command = [sys.executable, "-c", WRITER, path]
    writers = [subprocess.Popen([*command, name], cwd=ROOT) for name in "ab"]
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0]

    lines = path.read_text(encoding="utf-8").split("\n")
    # Each process may add the missing line end. If both do so at the same time, a blank line stays.
    unfinished, *written = [line for line in lines if line]
    assert unfinished == '{"sco'
    records = [json.loads(line) for line in written]
    for name in "ab":
        numbers = [record["number"] for record in records if record["writer"] == name]
        assert numbers == [*range(300)]
