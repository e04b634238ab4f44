"""No way out of an entry's process leads to the answers, to harm elsewhere, or to another game.

`ways_out.py` beside this file holds the ways. Each is also tried without isolation, where it must
lead somewhere.
"""

import json
import os
import re
import runpy
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from common.errors import InputError
from common.sandbox import EntryError, IsolatedEntry, Limits
from common.sandbox.inside import landlock, readable_paths, system_calls, walls
from common.sandbox.inside.walls import Walls

import pytest
from platforms import on_linux, on_unix
from run_scripts import run_process

WAYS_FILE = Path(__file__).with_name("ways_out.py")
WAYS = SimpleNamespace(**runpy.run_path(str(WAYS_FILE)))
# Tables of the ways to the hidden answers.
TO_ANSWERS = ("GUARDED", "BEYOND")
ENTRY = """
import ways_out

class Submission:
    select_questions = update_model = predict = None

    def __init__(self):
        ways_out.try_all(*ARGUMENTS)
"""
# For the expression of each way: "done", or "met" and the error that has stopped it.
Outcome = dict[str, str]

LANDLOCK = landlock.landlock_version()
ALL_WALLS = ("namespaces", "root", "seccomp")
TRY_NAMESPACES = ["unshare", "-Urmnip", "true"]
linux = on_linux("namespaces, Landlock, and the ways out of them")


@dataclass(frozen=True)
class Outside:
    """Targets of the ways, outside the entry's process."""

    # Holds a folder for each run, with the victims: the files that ways try to harm.
    base: Path
    answers: Path
    # A process that has the answers open, and in its environment.
    process: subprocess.Popen[bytes]
    # The port of a server.
    port: int


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """Make answers, a process that holds them, a server, and sockets at which somebody listens."""
    base = tmp_path_factory.mktemp("outside")
    answers = base / "answers/answers.csv"
    answers.parent.mkdir()
    answers.write_text(WAYS.TABLE)
    environment = {**os.environ, "ANSWER": WAYS.SECRET}
    with (
        answers.open() as file,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as by_path,
        subprocess.Popen(
            ["sleep", "1000"], stdin=file, cwd=answers.parent, env=environment
        ) as process,
    ):
        abstract.bind(f"\0{base}")
        abstract.listen(20)
        by_path.bind(str(base / "listening"))
        by_path.listen(20)
        yield Outside(base, answers, process, server.getsockname()[1])
        process.kill()


def make_arguments(outside: Outside, run: str, *tables: str) -> tuple[object, ...]:
    """Make a file and an empty folder for each way to harm; return the arguments of `try_all`."""
    victims = outside.base / run
    for number in range(len(WAYS.HARM)):
        victim = victims / str(number)
        (victim / "folder").mkdir(parents=True, exist_ok=True)
        (victim / "file").write_text("whole")
        os.utime(victim / "file", (1, 1))
    pid = outside.process.pid
    # Start and end of the environment: fields 50 and 51 of proc_pid_stat(5), which counts from 1.
    # Fields 1 and 2 end at the parenthesis and are cut off here, so that the indices are 47 and 48.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    start = int(fields[47])
    end = int(fields[48])
    # The values of `ways_out.OUTSIDE`.
    names = {
        "process": pid,
        "environment": (start, end - start),
        "port": outside.port,
        "abstract": f"\0{outside.base}",
        "path": f"{outside.base}/listening",
        "note": f"note-{os.getpid()}",
        "number": os.getpid(),
    }
    return tables, str(outside.answers.parent), str(victims), names


def read_outcome(output: str) -> Outcome:
    """Return what the marked line says. A helper process may have printed warnings after it."""
    (line,) = [line for line in output.splitlines() if line.startswith(WAYS.MARK)]
    return Outcome(json.loads(line.removeprefix(WAYS.MARK)))


def find_done(outcome: Outcome) -> set[str]:
    """Return the expressions of the ways that led somewhere."""
    return {way for way, result in outcome.items() if not result.startswith("met ")}


@pytest.fixture(scope="module")
def unisolated(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Make the answers in all formats, and try every way without isolation."""
    outcome = Outcome()
    # The second run finds the notes that the first one leaves.
    for run, tables in (("unisolated", (*TO_ANSWERS, "HARM", "LEAVE")), ("next", ("FIND",))):
        arguments = json.dumps(make_arguments(outside, run, *tables))
        folder = tmp_path_factory.mktemp("own")
        done = run_process([WAYS_FILE, arguments], cwd=folder, timeout=300)
        assert done.returncode == 0, done.stderr
        outcome |= read_outcome(done.stdout)
    return outcome


@linux
def test_without_isolation_every_way_leads_somewhere(unisolated: Outcome) -> None:
    """If a way never leads anywhere, its refusal proves nothing.

    A way that has `needs` may fail, because a machine may lack them.
    """
    tables = (*TO_ANSWERS, "HARM", "LEAVE", "FIND")
    required = {way.expression for table in tables for way in WAYS.TABLES[table] if not way.needs}
    assert required - find_done(unisolated) == set()


@linux
def test_there_are_as_many_ways_as_the_readme_says() -> None:
    assert len(WAYS.GUARDED) + len(WAYS.BEYOND) > 55
    assert len(WAYS.HARM) > 40


# ---- Isolated entries --------------------------------------------------------------------------


def allow(monkeypatch: pytest.MonkeyPatch, means: tuple[str, ...], version: int) -> Walls:
    """Put up only some walls, and return them; skip a test of what this system lacks."""
    if version > LANDLOCK:
        pytest.skip(f"this kernel has version {LANDLOCK}")
    # Many containers allow no namespaces.
    if "namespaces" in means and subprocess.run(TRY_NAMESPACES, capture_output=True).returncode:
        pytest.skip("this system allows no namespaces")
    allowed = Walls(**{name: name in means for name in ALL_WALLS}, landlock=version)
    monkeypatch.setattr(walls, "ALL", allowed)
    return allowed


def find_open(means: tuple[str, ...], version: int) -> set[str]:
    """Return the expressions that these walls do not refuse."""
    is_open = set()
    for table in (*TO_ANSWERS, "HARM"):
        for way in WAYS.TABLES[table]:
            by_landlock = way.landlock is not None and way.landlock <= version
            by_wall = any(wall in means for wall in way.walls)
            if not by_landlock and not by_wall:
                is_open.add(way.expression)
    for need in WAYS.ALLOWED:
        if not need.only_with or need.only_with in means:
            is_open.add(need.expression)
    return is_open


def isolate(package: Path, answers: Path, limits: Limits) -> IsolatedEntry:
    """Return an entry of the files in a folder."""
    copy_files = partial(shutil.copytree, package, dirs_exist_ok=True)
    return IsolatedEntry(copy_files, answers, limits)


def try_in_entry(outside: Outside, folder: Path, run: str, *tables: str) -> IsolatedEntry:
    """Try ways in an entry, and return the entry when its process has ended."""
    shutil.copy(WAYS_FILE, folder)
    arguments = make_arguments(outside, run, *tables)
    code = ENTRY.replace("ARGUMENTS", repr(arguments))
    (folder / "submission_model_task_4.py").write_text(code)
    with isolate(folder, outside.answers, Limits(300)) as entry:
        pass
    return entry


WALLS = [
    pytest.param(ALL_WALLS, LANDLOCK, (*TO_ANSWERS, "HARM", "ALLOWED"), id="all"),
    pytest.param(ALL_WALLS, 0, (*TO_ANSWERS, "HARM", "ALLOWED"), id="no Landlock"),
    pytest.param(("seccomp",), LANDLOCK, (*TO_ANSWERS, "HARM", "ALLOWED"), id="no namespaces"),
    # Each version of Landlock alone. Versions above the kernel's are skipped.
    *(
        pytest.param((), version, ("HARM", "ALLOWED"), id=f"Landlock {version}")
        for version in range(1, 8)
    ),
    # Only Python's guard.
    pytest.param((), 0, ("GUARDED",), id="nothing"),
]


@linux
@pytest.mark.parametrize(("means", "version", "tables"), WALLS)
def test_walls_refuse_the_ways_that_they_close_and_nothing_else(
    outside: Outside,
    unisolated: Outcome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    means: tuple[str, ...],
    version: int,
    tables: tuple[str, ...],
) -> None:
    allowed = allow(monkeypatch, means, version)
    run = f"{len(means)} {version}"

    entry = try_in_entry(outside, tmp_path, run, *tables)

    outcome = read_outcome(entry.output)
    # Some ways do not work on this machine even without isolation, so they cannot work here.
    possible = {need.expression for need in WAYS.ALLOWED}
    if means or version:
        possible |= find_done(unisolated)
    expected = find_open(means, version) & possible & outcome.keys()
    assert find_done(outcome) == expected, outcome
    # Ways that were refused have harmed nothing.
    for number, way in enumerate(WAYS.HARM):
        result = outcome.get(way.expression, "done")
        if result != "done":
            # "No such file" would mean that the test lacks the victim, unless the entry has a file
            # system root of its own, in which the victim is not to be seen.
            assert "root" in means or "No such file" not in result, way
            assert_whole(outside.base / run / str(number), way.expression)
    assert outside.process.poll() is None
    assert outside.answers.read_text() == WAYS.TABLE
    assert entry.isolation == walls.describe(allowed)


def assert_whole(victim: Path, way: str) -> None:
    """Assert that a way has changed nothing of a victim."""
    assert (victim / "file").read_text() == "whole", way
    assert (victim / "file").stat().st_mtime == 1, way
    assert sorted(path.name for path in victim.iterdir()) == ["file", "folder"], way


@linux
@pytest.mark.usefixtures("unisolated")
@pytest.mark.parametrize("means", [ALL_WALLS, ("namespaces", "root"), ("seccomp",)], ids=" ".join)
def test_games_of_two_masks_tell_each_other_nothing(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, means: tuple[str, ...]
) -> None:
    """Files, shared memory, queues, semaphores and keys may outlive a process."""
    allow(monkeypatch, means, LANDLOCK)
    try_in_entry(outside, tmp_path, "mask 0", "LEAVE")
    outcome = read_outcome(try_in_entry(outside, tmp_path, "mask 1", "FIND").output)
    assert find_done(outcome) == set(), outcome


# ---- Landlock and the other walls --------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "n_file_rights", "n_network_rights", "n_scopes"),
    [
        (1, 13, 0, 0),
        (2, 14, 0, 0),
        (3, 15, 0, 0),
        (4, 15, 2, 0),
        (5, 16, 2, 0),
        (6, 16, 2, 2),
        (7, 16, 2, 2),
        (8, 16, 2, 2),
        (9, 17, 2, 2),
        (10, 17, 4, 2),
    ],
)
def test_the_ruleset_holds_what_a_version_knows(
    version: int, n_file_rights: int, n_network_rights: int, n_scopes: int
) -> None:
    """Each right is a bit, and a version adds the next higher bits (landlock(7)).

    The n rights that a version knows are therefore the lowest n bits.
    """
    masks = [(1 << n) - 1 for n in (n_file_rights, n_network_rights, n_scopes)]
    assert landlock.ruleset(version) == struct.pack("=QQQ", *masks)


def replace_system_calls(monkeypatch: pytest.MonkeyPatch, result: int) -> None:
    """Let every system call do nothing and return `result`."""
    library = SimpleNamespace(syscall=lambda *_: result)
    monkeypatch.setattr(system_calls, "c_library", lambda: library)


def test_a_kernel_without_landlock_does_not_count_as_isolating(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace_system_calls(monkeypatch, -1)
    assert landlock.landlock_version() == 0
    assert landlock.restrict(["/usr"], ["/tmp"], 6) == 0


def test_another_system_than_linux_does_not_count_as_isolating(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace_system_calls(monkeypatch, 6)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert landlock.landlock_version() == 0


def test_the_description_says_what_stays_open_without_walls() -> None:
    guard = "Python's own file functions only (this system offers neither namespaces nor Landlock)"
    assert walls.describe(Walls()).startswith(f"{guard}; open: which files exist and when ")


def test_the_description_says_what_stays_open_with_landlock_alone() -> None:
    assert walls.describe(Walls(landlock=4)) == (
        "enforced by the operating system (Landlock 4): files, cutting files short, TCP; open: "
        "which files exist and when they were read, modes and times of files, UDP and other "
        "networks, sockets by path, signals, memory shared between programs, kernel keyring"
    )


def test_the_description_says_that_nothing_stays_open_with_all_walls() -> None:
    assert "open" not in walls.describe(Walls(True, True, True, landlock=7))


# ---- Paths that an entry may read or write -------------------------------------------------------


@on_unix("LD_LIBRARY_PATH")
def test_an_entry_may_read_what_an_interpreter_needs_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The interpreter also searches the parent folder of the answers, which must not be readable.
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "search")])
    monkeypatch.setenv("LD_LIBRARY_PATH", f"lib:{tmp_path}/a/../libraries/:")
    readable = {*readable_paths.readable_paths([str(tmp_path / "answers")])}
    assert f"{tmp_path}/search" in readable
    assert f"{tmp_path}/libraries" in readable
    assert str(Path("lib").absolute()) in readable
    assert sys.executable in readable
    assert str(Path(os.__file__).parent) in readable
    too_much = {str(tmp_path), "/", "/etc", "/opt", "/usr", "/usr/share", "/var", "/home"}
    assert not too_much & readable


@pytest.mark.parametrize("place", ["answers", "working folder"])
def test_no_game_begins_if_the_answers_or_the_working_folder_lie_among_the_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """An entry has to read the libraries, and the working folder may hold the answers."""
    libraries = Path(os.__file__).parent
    (tmp_path / "submission_model_task_4.py").write_text("")
    if place == "answers":
        answers = libraries / "valid.csv"
    else:
        answers = tmp_path / "answers/valid.csv"
        monkeypatch.chdir(libraries)
    folder = re.escape(str(libraries.resolve()))
    refusal = f"^{folder}: lies in .*, which an entry has to read for its libraries; expec"
    with pytest.raises(InputError, match=refusal) as caught:
        isolate(tmp_path, answers, Limits(60)).__enter__()
    # The entry is not to blame.
    assert not isinstance(caught.value, EntryError)


# This entry prints in which folders it can make a folder, which it removes again.
WRITES = """
import json, os, tempfile

class Submission:
    select_questions = update_model = predict = None

    def __init__(self):
        writable = []
        for folder in FOLDERS:
            made = os.path.join(folder, "made_by_an_entry")
            try:
                os.mkdir(made)
                os.rmdir(made)
                writable.append(folder)
            except OSError:
                pass
        print(json.dumps(writable))
"""


@linux
@pytest.mark.parametrize("version", [0, LANDLOCK])
def test_an_entry_can_write_only_to_its_own_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Without Landlock, the entry's own file system root alone keeps other folders closed."""
    allow(monkeypatch, ("namespaces", "root"), version)
    closed = ["/", "/dev", "/usr", "/usr/lib", "/tmp", "..", "../inside", sys.prefix]
    closed += [str(Path(os.__file__).parent), "/proc", "/proc/self"]
    own = [".", "../tmp", "/dev/shm"]
    code = WRITES.replace("FOLDERS", repr([*closed, *own]))
    (tmp_path / "submission_model_task_4.py").write_text(code)
    with isolate(tmp_path, tmp_path / "answers/answers.csv", Limits(60)) as entry:
        pass
    assert json.loads(entry.output) == own
