"""The order of the quickstart's steps, how many run at a time, and what is printed about them."""

import os
import threading
import time
from pathlib import Path

from tools.quickstart import side_by_side
from tools.quickstart.processes import CommandError
from tools.quickstart.steps import LOCAL_SPLIT, Step

import pytest
from run_scripts import PATIENCE, wait_for


def named_step(name: str, title: str = "task 1") -> Step:
    """Return a step of the quickstart without commands and data; `title` names its task."""
    return Step(title, name, commands=(), output_dir=Path(), data=())


class Recorder:
    """Records the steps that begin, instead of running them, as on a machine with `n_cores`.

    A step takes 10 ms, or ends when the test says so (`end_by_name`). It fails if its name begins
    with "broken".
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n_cores: int) -> None:
        # The names of the steps that have begun, in the order of their beginning.
        self.begun: list[str] = []
        # A step whose name is a key runs until the test sets the event.
        self.end_by_name: dict[str, threading.Event] = {}
        # The greatest number of steps that ran at the same time.
        self.most_at_a_time = 0
        self._n_running = 0
        self._lock = threading.Lock()
        monkeypatch.setattr(os, "cpu_count", lambda: n_cores)
        monkeypatch.setattr(side_by_side, "run_step", self.run_step)

    def run_step(self, python: str, step: Step, children: object) -> str:
        """Stand in for `run_step`: note that a step has begun; return how long it seems to take."""
        with self._lock:
            self.begun.append(step.name)
            self._n_running += 1
            self.most_at_a_time = max(self.most_at_a_time, self._n_running)
        if step.name in self.end_by_name:
            was_ended_by_test = self.end_by_name[step.name].wait(PATIENCE)
            assert was_ended_by_test
        else:
            time.sleep(0.01)
        with self._lock:
            self._n_running -= 1
        if step.name.startswith("broken"):
            raise CommandError(f"{step.name} has failed")
        return "1.0 s"


def test_one_worker_takes_the_quick_steps_the_other_the_slow_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With two cores, one worker begins with the slowest step, and the other with the quickest.

    The quickstart has a list of slow models, `SLOW`; the slowest model is "pytorch". In this test,
    the step "pytorch" runs until the other worker has done all other steps.
    """
    recorder = Recorder(monkeypatch, n_cores=2)
    recorder.end_by_name = {"pytorch": threading.Event()}
    names = ["pytorch", "majority", "item_response", "gradient_boosting", "entropy"]
    steps = [named_step(name) for name in names]

    thread = threading.Thread(target=side_by_side.run_side_by_side, args=("python", steps))
    thread.start()

    # While the slowest step runs, the other worker begins the other steps from the quickest to the
    # slowest.
    others = ["majority", "entropy", "item_response", "gradient_boosting"]
    assert wait_for(lambda: [name for name in recorder.begun if name != "pytorch"] == others)
    # The two workers begin at the same time, so "pytorch" is one of the first two steps.
    assert "pytorch" in recorder.begun[:2]

    recorder.end_by_name["pytorch"].set()
    thread.join(timeout=20)
    assert not thread.is_alive()


def test_splits_end_before_the_first_model_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, n_cores=4)
    side_by_side.run_side_by_side("python", [named_step("majority"), named_step(LOCAL_SPLIT)])
    assert recorder.begun == [LOCAL_SPLIT, "majority"]


@pytest.mark.parametrize("n_cores", [1, 2, 3])
def test_no_more_steps_run_than_there_are_cores(
    n_cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(monkeypatch, n_cores)
    steps = [named_step(str(number)) for number in range(12)]
    assert side_by_side.run_side_by_side("python", steps) == []
    assert sorted(recorder.begun, key=int) == [step.name for step in steps]
    assert recorder.most_at_a_time <= n_cores


def test_on_large_data_one_step_runs_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    steps = [Step("task 1", "majority", commands=(), output_dir=Path(), data=(tmp_path,))]
    (tmp_path / "train.csv").write_bytes(bytes(1000))
    assert side_by_side.count_workers(steps) == 4
    monkeypatch.setattr(side_by_side, "LARGE_DATA", 999)
    assert side_by_side.count_workers(steps) == 1


def test_results_and_failures_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failed step stops no other step, and failures are returned in the order of the steps.

    The steps do not really run: `Recorder` replaces `run_step`, and lets every step fail whose name
    begins with "broken".
    """
    Recorder(monkeypatch, n_cores=1)
    # side_by_side.py takes the models in this list for slow.
    monkeypatch.setattr(side_by_side, "SLOW", ("broken_slow",))
    steps = [
        named_step("broken_slow"),
        named_step("majority"),
        named_step("broken_2", title="task 2"),
    ]

    failures = side_by_side.run_side_by_side("python", steps)

    assert failures == [
        "failed: task 1, broken_slow: broken_slow has failed",
        "failed: task 2, broken_2: broken_2 has failed",
    ]
    # There is one core and so one worker, which runs the slow step last.
    assert capsys.readouterr().out.splitlines() == [
        "[1/3] task 1  majority: 1.0 s",
        "[2/3] task 2  broken_2: failed",
        "[3/3] task 1  broken_slow: failed",
    ]
