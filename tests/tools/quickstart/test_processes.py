"""Child processes of the quickstart: what they print, why they fail, and how they are ended."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.quickstart.processes import Children, CommandError, StoppedError, failure, run_python

import pytest
from platforms import on_unix
from run_scripts import wait_for

SLEEP = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(100)"
# A child that runs this code exits with 0 on SIGTERM. A training script may also exit with 0 when
# it is stopped, after it has saved what it has learned so far.
END_WELL = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); "


def test_exit_code_and_both_outputs_are_returned() -> None:
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    ended = Children().run([sys.executable, "-c", code])
    assert ended.code == 3
    assert ended.printed.split() == ["out", "err"]


def test_children_have_the_environment_given() -> None:
    code = "import os; print(os.environ['COLOUR'])"
    assert Children({"COLOUR": "red"}).run([sys.executable, "-c", code]).printed == "red\n"


def test_stop_ends_a_child_of_another_thread_and_refuses_new_ones(tmp_path: Path) -> None:
    children = Children()
    begun = tmp_path / "begun"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(children.run, [sys.executable, "-c", SLEEP, str(begun)])
        assert wait_for(begun.exists)
        children.stop()
        with pytest.raises(StoppedError):
            future.result(20)
    with pytest.raises(StoppedError):
        children.run([sys.executable, "-c", ""])


@on_unix("way to tell a program to end")
def test_a_stopped_child_that_exits_with_0_does_not_count_as_finished(tmp_path: Path) -> None:
    children = Children()
    begun = tmp_path / "begun"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(children.run, [sys.executable, "-c", END_WELL + SLEEP, str(begun)])
        assert wait_for(begun.exists)
        children.stop()
        with pytest.raises(StoppedError):
            future.result(20)


def test_a_failure_shows_the_last_lines() -> None:
    printed = "\n".join(f"line {number}" for number in range(20))
    first, *more = str(failure("python x.py", 1, printed)).splitlines()
    assert first == "`python x.py` ended with exit code 1"
    assert more == [f"  line {number}" for number in range(8, 20)]


def test_a_command_that_fails_is_named() -> None:
    with pytest.raises(CommandError, match=r"^`python -c import nothing_like_it` ended with exit"):
        run_python(sys.executable, "-c", "import nothing_like_it")
