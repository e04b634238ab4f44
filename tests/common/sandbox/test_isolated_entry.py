"""An entry in its own process: what it gets, and the message for every violation."""

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
from common.sandbox.inside import walls
from common.sandbox.inside.walls import Walls

import pytest
from entry_folders import STUDENTS, make_setting, with_entry
from platforms import on_linux
from run_scripts import ROOT, ends, wait_for

linux = on_linux("/proc, and memory limits that hold")


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """An entry's folder, and a file of hidden answers."""
    return make_setting(tmp_path)


CHEATS = {
    "opens the answers": ("__init__", "open('ANSWERS')", "denied .*valid_task_4.csv, which is n"),
    "raises": ("update_model", "raise KeyError('nothing here')", "round 1, update_model: raised "
               r"KeyError: 'nothing here' \(submission_model_task_4.py, line 14\)"),
    "counts what it does not see": ("update_model", "np.bincount(masked_data.ravel())",
                                    "; an entry written for 0 as unobserved needs --unobserved 0$"),
    "exits": ("update_model", "raise SystemExit(3)", "ended the program with exit code 3"),
    "ends its process": ("predict", "import os; os._exit(3)", "process ended with exit code 3"),
    "crashes": ("predict", "import ctypes; ctypes.string_at(0)", "process was ended by SIGSEGV"),
    "allocates much": ("predict", "np.ones(1 << 30)", "ran out of memory.*, expected at most 1 G"),
    "reads from the keyboard": ("update_model", "input()", "raised EOFError"),
    "prints forever": ("predict", "while True: print('x' * 1000)", "printed more than 5 MB"),
    "imports the kit": ("__init__", "import common.reading", "imports common.*, the kit's shared"),
}  # fmt: skip
OF_LINUX = {"crashes", "allocates much"}


@pytest.mark.parametrize(
    "cheat", [pytest.param(name, marks=[linux] * (name in OF_LINUX)) for name in CHEATS]
)
def test_every_misdeed_has_its_message(setting: Setting, cheat: str) -> None:
    method, body, message = CHEATS[cheat]
    with_entry(setting, **{method: body.replace("ANSWERS", str(setting.reference))})
    with pytest.raises(InputError, match=message) as caught:
        play_all(setting, STUDENTS)
    assert str(caught.value).startswith(f"{setting.submission}: mask, ")
    assert "\n" not in str(caught.value)


def test_no_path_tells_where_the_answers_are(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFERENCE", str(setting.reference))
    for name in ("PWD", "OLDPWD"):
        monkeypatch.setenv(name, str(setting.reference.parent))
    monkeypatch.chdir(setting.reference.parent)
    print_all = "import os, sys\nprint([sys.argv, sys.path, dict(os.environ), os.getcwd()])"
    played = play_all(with_entry(setting, __init__=print_all), STUDENTS)
    assert "'path'" in played.output.lower()
    assert setting.reference.name not in played.output
    assert str(setting.reference.parent) not in played.output


# In seconds: whoever waited for one of these would take longer, and a busy machine does not.
SOONER = 40


def find_processes(text: str) -> list[int]:
    """Find the processes whose command line holds a text: to themselves they have other numbers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [int(path.parent.name)] if text.encode() in path.read_bytes() else []
    return found


# A session of its own, an orphan, and a session that starts others.
STARTING = """import os, subprocess, sys
others = "for i in $(seq 100); do setsid sleep SECONDS & sleep 0.05; done"
subprocess.Popen(["sleep", "SECONDS"], start_new_session=True)
os.system("setsid sleep SECONDS > /dev/null 2>&1 &")
subprocess.Popen(["sh", "-c", others], start_new_session=True)
print("started")
sys.stdout.flush()
"""


@linux
@pytest.mark.parametrize(
    ("wanted", "then", "fault"),
    [
        (walls.ALL, "1 / 0", "predict: raised ZeroDivisionError"),
        (walls.ALL, "import time; time.sleep(99)", "a whole game within 5 s"),
        (Walls(), "os.killpg(0, 9)", "predict: its process was ended by SIGKILL"),
    ],
)
def test_what_an_entry_started_ends_with_it(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, wanted: Walls, then: str, fault: str
) -> None:
    """Though it holds the pipes that the evaluator reads: closing must not wait for them."""
    monkeypatch.setattr(walls, "ALL", wanted)
    # A time that no other process sleeps.
    mark = f"60.{time.time_ns()}"
    output = setting.submission.parent / "output.txt"
    entry = with_entry(setting, predict=STARTING.replace("SECONDS", mark) + then)
    # The limit leaves a busy machine time to get as far as `predict`.
    limits, started = Limits(5 if "sleep" in then else 60), time.monotonic()
    with pytest.raises(InputError, match=fault):
        play_all(replace(entry, limits=limits), STUDENTS, output)
    assert time.monotonic() - started < SOONER
    assert "started" in output.read_text()
    assert all(ends(pid, 0.1) for pid in find_processes(mark))


@linux
def test_closing_does_not_wait_for_who_holds_a_pipe(setting: Setting) -> None:
    """Closing returns even if others, here this process, hold the other end of a pipe."""
    entry = with_entry(setting, __init__="import os\nprint(os.getcwd())")
    with isolate(entry) as process:
        folder = Path(wait_for(lambda: process.output).strip()).parent
        pipes = [Path(f"/proc/{pid}/fd/2") for pid in find_processes(str(folder))]
        (held,) = [pipe for pipe in pipes if str(pipe.readlink()).startswith("pipe:")]
        started = time.monotonic()
        with held.open("wb"):
            process.__exit__()
        assert time.monotonic() - started < SOONER


EVALUATOR = """import pathlib, sys
import shutil
from common.sandbox import IsolatedEntry
def copy_files(folder): shutil.copytree(sys.argv[1], folder, dirs_exist_ok=True)
IsolatedEntry(copy_files, pathlib.Path("none")).__enter__()
"""


@linux
def test_an_entry_ends_when_the_evaluator_is_killed(setting: Setting, tmp_path: Path) -> None:
    """Its folder goes with it."""
    tell = "import time\nopen('told', 'w').close()\n"
    entry = with_entry(setting, __init__=f"{tell}time.sleep(1000)")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    evaluator = subprocess.Popen(
        [sys.executable, "-c", EVALUATOR, str(entry.submission)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
    )
    assert wait_for(lambda: [*temporary.glob("*/entry/told")])
    started = find_processes(f"{temporary}/task_4")
    assert started
    evaluator.kill()
    evaluator.wait()
    assert all(ends(pid) for pid in started)
    assert wait_for(lambda: not [*temporary.iterdir()])
