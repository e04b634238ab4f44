"""In an isolated entry, libraries start processes and threads, which see no other process.

`library_workers.py` beside this file holds the work of the libraries. An entry with a file system
root of its own has a /proc of its own too, in which each process finds itself.
"""

import json
import os
import runpy
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.sandbox import EntryError, Limits

import pytest
from isolated_entries import (
    ALL_PROTECTIONS,
    LANDLOCK,
    isolate,
    limit_protections,
    require_new_proc,
)
from platforms import on_linux

WORKERS_FILE = Path(__file__).with_name("library_workers.py")
MARK = runpy.run_path(str(WORKERS_FILE))["MARK"]
ENTRY = """
class Submission:
    select_questions = update_model = predict = None

    def __init__(self):
        BODY
"""
linux = on_linux("protections that might hinder workers")
with_and_without_landlock = pytest.mark.parametrize("landlock_version", [LANDLOCK, 0])


def run_entry(folder: Path, body: str) -> str:
    """Run an entry whose `__init__` has the given body; return what it prints."""
    code = ENTRY.replace("BODY", body.strip().replace("\n", "\n        "))
    (folder / "submission_model_task_4.py").write_text(code)
    with isolate(folder, folder / "answers/answers.csv", Limits(seconds=300)) as entry:
        pass
    return entry.output


@linux
@pytest.mark.slow
def test_workers_of_libraries_do_their_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_protections(monkeypatch, ALL_PROTECTIONS, LANDLOCK)
    require_new_proc()
    shutil.copy(WORKERS_FILE, tmp_path)

    output = run_entry(tmp_path, "import library_workers; library_workers.do_all()")

    (line,) = [line for line in output.splitlines() if line.startswith(MARK)]
    results = json.loads(line.removeprefix(MARK))
    assert len(results) > 5
    assert {name: result for name, result in results.items() if result is not True} == {}


@linux
@pytest.mark.parametrize("code", ["multiprocessing.Lock()", "multiprocessing.Pool(1)"])
def test_without_namespaces_the_fault_says_that_nothing_can_be_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Python's multiprocessing needs shared memory in /dev/shm for locks and pools.

    Without Linux namespaces, an entry has no /dev/shm of its own, and may not write to that of the
    machine. The message of the failed entry must explain this.
    """
    limit_protections(monkeypatch, ("seccomp",), LANDLOCK)
    with pytest.raises(EntryError, match=r"processes share.*n_jobs=1.*\(submission_model_.*line"):
        run_entry(tmp_path, f"import multiprocessing; {code}")


# ---- What a child process finds in /proc ---------------------------------------------------------

# This code prints what lies in /proc, and the texts of the files in it.
PRINT_PROC = """
import json, os
texts = {}
for name in os.listdir("/proc"):
    path = f"/proc/{name}"
    if os.path.isdir(path):
        texts[name] = " ".join(os.listdir(path))
    else:
        with open(path) as file:
            texts[name] = file.read()
print(json.dumps([os.getpid(), os.getppid(), texts]))
"""
# Names in /proc that lie, through a link, in the folder of the process that reads them. A process
# may always read its own folder.
LINKS = {"self", "thread-self", "mounts", "net"}
# Files and folders in /proc that describe the machine. An entry may read them. The last three
# describe GPUs.
MACHINE = {"cpuinfo", "filesystems", "meminfo", "stat", "sys", "version"}
MACHINE |= {"devices", "driver", "modules"}


@dataclass(frozen=True)
class Proc:
    """The content of /proc as a child process of an isolated entry sees it."""

    # The ids of the entry's process and of the child.
    own_processes: set[int]
    # The key is the name of a file or folder. The value is the text of the file, or the names in
    # the folder.
    texts: dict[str, str]


def look_at_proc(folder: Path) -> Proc:
    """Let a child process of an entry, i.e. of submitted code that is isolated, look at /proc."""
    (folder / "print_proc.py").write_text(PRINT_PROC)
    body = "import subprocess, sys; subprocess.run([sys.executable, 'print_proc.py'], check=True)"
    printed: list[Any] = json.loads(run_entry(folder, body))
    child, entry, texts = printed
    return Proc({child, entry}, texts)


@linux
@with_and_without_landlock
def test_a_child_finds_the_processes_of_the_entry_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, landlock_version: int
) -> None:
    """In /proc, a child process of the entry sees the entry's process and itself, and no other.

    The kit has started one more process in the same Linux namespace, the process with the id 1. The
    child must not see it.
    """
    limit_protections(monkeypatch, ALL_PROTECTIONS, landlock_version)
    require_new_proc()
    proc = look_at_proc(tmp_path)
    # A process has a folder named by its id, a number.
    seen_processes = {int(name) for name in proc.texts if name.isdecimal()}
    assert seen_processes == proc.own_processes
    assert 1 not in proc.own_processes


@linux
@with_and_without_landlock
def test_proc_tells_constant_facts_of_the_machine_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, landlock_version: int
) -> None:
    """What an entry may read in /proc about the machine must not change from game to game.

    Otherwise, an entry could pass a message to its next game: it could change a counter in one game
    and read it in the next.
    """
    limit_protections(monkeypatch, ALL_PROTECTIONS, landlock_version)
    require_new_proc()
    texts = look_at_proc(tmp_path).texts
    about_machine = {name: text for name, text in texts.items() if not name.isdecimal()}
    readable = {name for name, text in about_machine.items() if text}
    assert readable - LINKS <= MACHINE
    assert {*texts["sys"].split()} == {"kernel", "vm"}


@linux
def test_proc_tells_when_the_machine_has_started_and_no_times_of_its_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happens on the machine must not change what an entry sees in /proc/stat.

    Only "btime", the time when the machine has started, is the true value. The times of the
    processors are 0, and the counters `intr`, `ctxt` and `processes` are missing. The entry runs
    with all protections.
    """
    limit_protections(monkeypatch, ALL_PROTECTIONS, LANDLOCK)
    require_new_proc()
    texts = look_at_proc(tmp_path).texts
    for line in texts["stat"].splitlines():
        name, *values = line.split()
        if name == "btime":
            assert line in Path("/proc/stat").read_text().splitlines()
        else:
            assert name.startswith("cpu")
            assert {*values} == {"0"}


# This code prints the exit codes of three commands that look at /proc.
RUN_COMMANDS = """
import subprocess
codes = []
for command in ("ls /proc", "cat /proc/self/statm", "cat /proc/PID/cmdline"):
    codes.append(subprocess.run(command.split(), capture_output=True).returncode)
print(codes)
"""


@linux
def test_without_a_root_a_child_finds_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a file system root of its own, an entry sees the /proc of the machine.

    Landlock, the kernel's protection of files, permits the entry to read the folder of only one
    process there: the first process of the entry. So a child process finds no process in /proc, not
    even itself.
    """
    if LANDLOCK == 0:
        pytest.skip("this kernel has no Landlock")
    limit_protections(monkeypatch, ("seccomp",), LANDLOCK)
    output = run_entry(tmp_path, RUN_COMMANDS.replace("PID", str(os.getpid())))
    assert 0 not in json.loads(output)
