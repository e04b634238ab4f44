"""An entry in a process of its own: what it can know, how it fails, and that it ends."""

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from common.adaptive.playing import isolate, play_all
from common.adaptive.setting import Setting
from common.errors import InputError
from common.sandbox import Limits
from common.sandbox.inside import protections
from common.sandbox.inside.protections import Protections

import pytest
from entry_folders import STUDENTS, make_setting, with_entry
from platforms import on_linux
from run_scripts import ROOT, ends_within, wait_for

linux = on_linux("/proc, and memory limits that hold")


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """Write an entry and a file of hidden answers; return the arguments of `play_all` for them."""
    return make_setting(tmp_path)


# ---- What an entry does wrong ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "body", "message"),
    [
        pytest.param(
            "__init__",
            "open('ANSWERS')",
            "denied .*valid_task_4.csv, which is n",
            id="opens the answers",
        ),
        pytest.param(
            "update_model",
            "raise KeyError('nothing here')",
            "round 1, update_model: raised KeyError: 'nothing here' "
            r"\(submission_model_task_4.py, line 14\)",
            id="raises an error",
        ),
        pytest.param(
            "update_model",
            "np.bincount(masked_data.ravel())",
            "; an entry written for 0 as unobserved needs --unobserved 0$",
            id="takes -1 for an option",
        ),
        pytest.param(
            "update_model",
            "raise SystemExit(3)",
            "ended the program with exit code 3",
            id="exits",
        ),
        pytest.param(
            "predict",
            "import os; os._exit(3)",
            "process ended with exit code 3",
            id="ends its process",
        ),
        pytest.param(
            "predict",
            "import ctypes; ctypes.string_at(0)",
            "process was ended by SIGSEGV",
            marks=linux,
            id="crashes",
        ),
        pytest.param(
            "predict",
            "np.ones(1 << 30)",
            "ran out of memory.*, expected at most 1 G",
            marks=linux,
            id="allocates too much",
        ),
        pytest.param("update_model", "input()", "raised EOFError", id="reads from the keyboard"),
        pytest.param(
            "predict",
            "while True: print('x' * 1000)",
            "printed more than 5 MB",
            id="prints forever",
        ),
        pytest.param(
            "__init__",
            "import common.reading",
            "imports common.*, the kit's shared",
            id="imports the kit",
        ),
    ],
)
def test_the_message_about_a_misdeed_has_one_line(
    setting: Setting, method: str, body: str, message: str
) -> None:
    with_entry(setting, **{method: body.replace("ANSWERS", str(setting.reference))})
    with pytest.raises(InputError, match=message) as caught:
        play_all(setting, STUDENTS)
    assert str(caught.value).startswith(f"{setting.submission}: mask, ")
    assert "\n" not in str(caught.value)


def test_nothing_that_an_entry_sees_tells_where_the_answers_are(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry prints its arguments, module paths, environment variables and working folder.

    None of these may name the file or the folder of the hidden answers. To make this hard, the
    environment of the process that starts the entry names both.
    """
    answers = setting.reference
    # Act as if the user had changed to the folder of the answers in a shell. A shell writes the
    # current and the last folder into the variables PWD and OLDPWD.
    folder = answers.parent
    monkeypatch.setenv("REFERENCE", str(answers))
    monkeypatch.setenv("PWD", str(folder))
    monkeypatch.setenv("OLDPWD", str(folder))
    monkeypatch.chdir(folder)
    print_all = "import os, sys\nprint([sys.argv, sys.path, dict(os.environ), os.getcwd()])"

    played = play_all(with_entry(setting, __init__=print_all), STUDENTS)

    # Check that the entry has printed its environment, which has a variable PATH (on Windows Path).
    assert "'path'" in played.output.lower()
    assert answers.name not in played.output
    assert str(folder) not in played.output


# ---- An entry ends with what it has started ----------------------------------------------------

# Within this number of seconds, a game and the processes that the entry has started must end. It is
# enough for a busy machine, but less than the 60 seconds that these processes would sleep.
ENDS_WITHIN = 40


def find_processes(text: str) -> list[int]:
    """Return the ids of the processes whose command line contains a text.

    The processes of an entry cannot simply print their ids: in the Linux namespace of the entry, a
    process has another id than outside, where the test runs.
    """
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in path.read_bytes():
                pids.append(int(path.parent.name))
    return pids


# Code of an entry that starts processes which are hard to end.
START_PROCESSES = """import os, subprocess, sys

# A process in a session of its own.
subprocess.Popen(["sleep", "SECONDS"], start_new_session=True)

# An orphan, whose parent has ended.
os.system("setsid sleep SECONDS > /dev/null 2>&1 &")

# A process that goes on to start a hundred sessions.
sessions = "for i in $(seq 100); do setsid sleep SECONDS & sleep 0.05; done"
subprocess.Popen(["sh", "-c", sessions], start_new_session=True)

print("started")
sys.stdout.flush()
"""


@linux
@pytest.mark.parametrize(
    ("allowed_protections", "last_line", "time_limit", "fault"),
    [
        pytest.param(protections.ALL, "1 / 0", 60, "predict: raised ZeroDivisionError", id="error"),
        # The limit of 5 seconds is enough even on a busy machine for the entry to reach `predict`.
        pytest.param(
            protections.ALL,
            "import time; time.sleep(99)",
            5,
            "a whole game within 5 s",
            id="time limit",
        ),
        pytest.param(
            Protections(),
            "os.killpg(0, 9)",
            60,
            "predict: its process was ended by SIGKILL",
            id="killed, without protections",
        ),
    ],
)
def test_processes_that_an_entry_has_started_end_with_the_entry(
    setting: Setting,
    monkeypatch: pytest.MonkeyPatch,
    allowed_protections: Protections,
    last_line: str,
    time_limit: int,
    fault: str,
) -> None:
    """The entry starts processes that sleep, and then ends in one of three ways (`last_line`).

    The sleeping processes inherit the entry's output pipes and keep them open. The process that has
    started the entry reads these pipes. It must not wait until they are closed, and it must end the
    sleeping processes. `allowed_protections` are the protections that the kit may use against the
    entry. `fault` is the expected message.
    """
    monkeypatch.setattr(protections, "ALL", allowed_protections)
    # The entry starts processes that sleep for this number of seconds, so the number is in their
    # command lines. No other process has exactly this number, so `find_processes` can look for it.
    seconds = f"60.{time.time_ns()}"
    code = START_PROCESSES.replace("SECONDS", seconds) + last_line
    entry = with_entry(setting, predict=code)
    output = setting.submission.parent / "output.txt"
    started = time.monotonic()

    with pytest.raises(InputError, match=fault):
        play_all(replace(entry, limits=Limits(seconds=time_limit)), STUDENTS, output)

    assert time.monotonic() - started < ENDS_WITHIN
    # The entry has started the processes, and has printed this word afterwards.
    assert "started" in output.read_text()
    assert all(ends_within(pid, 0.1) for pid in find_processes(seconds))


def find_stderr_pipe(working_folder: Path) -> Path:
    """Return the path in /proc of the pipe to which an entry writes its stderr.

    The entry's processes have the parent of its working folder in their command lines. Only one of
    these processes has a pipe as its stderr.
    """
    pipes = []
    for pid in find_processes(str(working_folder.parent)):
        # The file descriptor 2 of a process is its stderr.
        stderr = Path(f"/proc/{pid}/fd/2")
        if str(stderr.readlink()).startswith("pipe:"):
            pipes.append(stderr)
    (pipe,) = pipes
    return pipe


@linux
def test_closing_does_not_wait_for_another_process_that_holds_a_pipe(setting: Setting) -> None:
    """An entry may start processes that live longer than the entry and keep its stderr open.

    Closing the entry must not wait until such a process closes the pipe. Here the test itself opens
    the pipe of the entry's stderr, through /proc, and keeps it open.
    """
    setting = with_entry(setting, __init__="import os\nprint(os.getcwd())")
    with isolate(setting) as entry:
        working_folder = Path(wait_for(lambda: entry.output).strip())
        pipe = find_stderr_pipe(working_folder)

        started = time.monotonic()
        with pipe.open("wb"):
            # Close the entry now, before the end of the outer `with`, while the pipe is open.
            entry.__exit__()

        assert time.monotonic() - started < ENDS_WITHIN


# Code of a process that starts an entry, here called the evaluator. Its first argument is the
# folder from which it copies the entry's files.
EVALUATOR = """import pathlib, sys
import shutil
from common.sandbox import IsolatedEntry
def copy_files(folder): shutil.copytree(sys.argv[1], folder, dirs_exist_ok=True)
IsolatedEntry(copy_files, pathlib.Path("none")).__enter__()
"""


@linux
def test_an_entry_and_its_folder_go_when_the_evaluator_is_killed(
    setting: Setting, tmp_path: Path
) -> None:
    """The process that starts an entry, the evaluator, also ends it and removes its files.

    If the evaluator is killed, the entry's own processes must do this. The test starts an evaluator
    with an entry that sleeps, waits until the entry runs, and kills the evaluator.
    """
    sleep = "import time\nopen('started', 'w').close()\ntime.sleep(1000)"
    setting = with_entry(setting, __init__=sleep)
    # In this folder, the evaluator makes a folder with the entry's files.
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    evaluator = subprocess.Popen(
        [sys.executable, "-c", EVALUATOR, str(setting.submission)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
    )
    assert wait_for(lambda: [*temporary.glob("*/entry/started")])
    # The name of an entry's folder begins with "task_4".
    processes = find_processes(f"{temporary}/task_4")
    assert processes

    evaluator.kill()
    evaluator.wait()

    assert all(ends_within(pid) for pid in processes)
    assert wait_for(lambda: not [*temporary.iterdir()])
