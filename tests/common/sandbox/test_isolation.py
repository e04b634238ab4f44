"""Ways to the answers' contents, to harm and to the next mask: none that is closed gets through.

`ways_out.py` beside this file holds them; all are tried without isolation too, and lead somewhere.
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
CONTENTS = ("GUARDED", "BEYOND")
ENTRY = """
import ways_out

class Submission:
    select_questions = update_model = predict = None

    def __init__(self):
        ways_out.try_all(*ARGUMENTS)
"""
Outcome = dict[str, str]
Outside = SimpleNamespace

VERSION = landlock.landlock_version()
ALL = ("namespaces", "root", "seccomp")
TRY_NAMESPACES = ["unshare", "-Urmnip", "true"]
linux = on_linux("namespaces, Landlock, and the ways out of them")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """What lies outside an entry's process: answers, victims, a process and some that listen."""
    base = tmp_path_factory.mktemp("outside")
    answers = base / "answers/answers.csv"
    answers.parent.mkdir()
    answers.write_text(WAYS.TABLE)
    secret = {**os.environ, "ANSWER": WAYS.SECRET}
    with (
        answers.open() as file,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as by_path,
        subprocess.Popen(["sleep", "1000"], stdin=file, cwd=answers.parent, env=secret) as process,
    ):
        for listener, name in ((abstract, f"\0{base}"), (by_path, str(base / "listening"))):
            listener.bind(name)
            listener.listen(20)
        port = server.getsockname()[1]
        yield Outside(base=base, answers=answers, process=process, port=port)
        process.kill()


def arguments(outside: Outside, run: str, *tables: str) -> tuple[object, ...]:
    """Make victims for a run, and return the arguments of the ways."""
    victims = outside.base / run
    for number in range(len(WAYS.ways("HARM"))):
        (victims / f"{number}/folder").mkdir(parents=True, exist_ok=True)
        (victims / f"{number}/file").write_text("whole")
        os.utime(victims / f"{number}/file", (1, 1))
    pid = outside.process.pid
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    known = {
        "process": pid,
        "environment": (int(stat[47]), int(stat[48]) - int(stat[47])),
        "port": outside.port,
        "abstract": f"\0{outside.base}",
        "path": f"{outside.base}/listening",
        "note": f"note-{os.getpid()}",
        "number": os.getpid(),
    }
    return tables, str(outside.answers.parent), str(victims), known


def read_outcome(output: str) -> Outcome:
    """Return what the marked line says; others (a helper process that warns) may follow it."""
    (line,) = [line for line in output.splitlines() if line.startswith(WAYS.MARK)]
    return Outcome(json.loads(line.removeprefix(WAYS.MARK)))


@pytest.fixture(scope="module")
def unisolated(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Make the answers in all formats, and try every way without isolation."""
    outcome = Outcome()
    for run, tables in (("unisolated", (*CONTENTS, "HARM", "LEAVE")), ("next", ("FIND",))):
        given = json.dumps(arguments(outside, run, *tables))
        done = run_process([WAYS_FILE, given], cwd=tmp_path_factory.mktemp("own"), timeout=300)
        assert done.returncode == 0, done.stderr
        outcome |= read_outcome(done.stdout)
    return outcome


def leaks(outcome: Outcome) -> set[str]:
    return {way for way, what in outcome.items() if not what.startswith("met ")}


@linux
def test_the_ways_lead_somewhere(unisolated: Outcome) -> None:
    """Some need what a machine may lack; the others must work, or they prove nothing."""
    assert [way for way in unisolated.keys() - leaks(unisolated) if "# needs " not in way] == []
    # So many as common/sandbox/README.md says.
    assert len(WAYS.ways("GUARDED") + WAYS.ways("BEYOND")) > 55 and len(WAYS.ways("HARM")) > 40


def allow(monkeypatch: pytest.MonkeyPatch, means: tuple[str, ...], version: int) -> Walls:
    """Have some walls only, and return all; skip a test of what this system lacks."""
    if version > VERSION:
        pytest.skip(f"this kernel has version {VERSION}")
    # Many containers allow none.
    if "namespaces" in means and subprocess.run(TRY_NAMESPACES, capture_output=True).returncode:
        pytest.skip("this system allows no namespaces")
    allowed = Walls(**{name: name in means for name in ALL}, landlock=version)
    monkeypatch.setattr(walls, "ALL", allowed)
    return allowed


def is_open(way: str, means: tuple[str, ...], version: int) -> bool:
    """Tell whether a way is open by these walls: what it says of itself, or that it is allowed."""
    _, _, wall = way.partition("  # with ")
    if way in WAYS.ways("ALLOWED"):
        return not wall or wall in means
    _, _, refusing = way.partition("  # by ")
    walls = refusing.partition("  #")[0].split() or ["1", "root"]
    return not any(int(wall) <= version if wall.isdigit() else wall in means for wall in walls)


def isolate(package: Path, answers: Path, limits: Limits) -> IsolatedEntry:
    """Return an entry of the files in a folder."""
    copy_files = partial(shutil.copytree, package, dirs_exist_ok=True)
    return IsolatedEntry(copy_files, answers, limits)


def enter(outside: Outside, folder: Path, run: str, *tables: str) -> IsolatedEntry:
    """Try ways in an entry, and return its process when it has ended."""
    shutil.copy(WAYS_FILE, folder)
    code = ENTRY.replace("ARGUMENTS", repr(arguments(outside, run, *tables)))
    (folder / "submission_model_task_4.py").write_text(code)
    with isolate(folder, outside.answers, Limits(300)) as entry:
        pass
    return entry


@linux
@pytest.mark.parametrize(
    ("means", "version", "tables"),
    [
        pytest.param(ALL, VERSION, (*CONTENTS, "HARM", "ALLOWED"), id="all"),
        pytest.param(ALL, 0, (*CONTENTS, "HARM", "ALLOWED"), id="no Landlock"),
        pytest.param(("seccomp",), VERSION, (*CONTENTS, "HARM", "ALLOWED"), id="no namespaces"),
        *(pytest.param((), n, ("HARM", "ALLOWED"), id=f"Landlock {n}") for n in range(1, 8)),
        pytest.param((), 0, ("GUARDED",), id="nothing"),
    ],
)
def test_no_way_leads_to_the_contents_or_does_harm(
    outside: Outside,
    unisolated: Outcome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    means: tuple[str, ...],
    version: int,
    tables: tuple[str, ...],
) -> None:
    """By Landlock alone as each version up to the kernel's; without any wall, Python's guard."""
    allowed = allow(monkeypatch, means, version)
    run = f"{len(means)} {version}"
    entry = enter(outside, tmp_path, run, *tables)
    outcome = read_outcome(entry.output)
    known = {*WAYS.ways("ALLOWED"), *(leaks(unisolated) if means or version else ())}
    expected = {way for way in outcome if is_open(way, means, version)} & known
    assert leaks(outcome) == expected, outcome
    for number, way in enumerate(WAYS.ways("HARM")):
        if outcome.get(way, "done") != "done":
            assert "root" in means or "No such file" not in outcome[way], way
            victim = outside.base / run / str(number)
            assert (victim / "file").read_text() == "whole", way
            assert (victim / "file").stat().st_mtime == 1, way
            assert sorted(path.name for path in victim.iterdir()) == ["file", "folder"]
    assert outside.process.poll() is None
    assert outside.answers.read_text() == WAYS.TABLE
    assert entry.isolation == walls.describe(allowed)


@linux
@pytest.mark.usefixtures("unisolated")
@pytest.mark.parametrize("means", [ALL, ("namespaces", "root"), ("seccomp",)])
def test_games_of_two_masks_tell_each_other_nothing(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, means: tuple[str, ...]
) -> None:
    """By what outlives a process: files, shared memory, queues, semaphores, keys."""
    allow(monkeypatch, means, VERSION)
    enter(outside, tmp_path, "mask 0", "LEAVE")
    found = read_outcome(enter(outside, tmp_path, "mask 1", "FIND").output)
    assert not leaks(found), found


def test_the_ruleset_holds_what_a_version_knows() -> None:
    """The rights are the lowest bits, by the version that brought them (landlock(7))."""
    n_rights = [13, 14, 15, 15, 16, 16, 16, 16, 17, 17]
    network, scopes = [0, 0, 0, 3, 3, 3, 3, 3, 3, 15], [0, 0, 0, 0, 0, 3, 3, 3, 3, 3]
    for version, (n, *others) in enumerate(zip(n_rights, network, scopes, strict=True), 1):
        assert landlock.ruleset(version) == struct.pack("=QQQ", (1 << n) - 1, *others)


def test_a_system_that_refuses_leaves_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a kernel that knows no such call nor another system is counted as isolating."""
    refusing = SimpleNamespace(syscall=lambda *_: -1)
    monkeypatch.setattr(system_calls, "c_library", lambda: refusing)
    assert landlock.landlock_version() == 0
    assert landlock.restrict(["/usr"], ["/tmp"], 6) == 0
    refusing.syscall = lambda *_: 6
    monkeypatch.setattr(sys, "platform", "darwin")
    assert landlock.landlock_version() == 0


def test_a_system_without_landlock_and_namespaces_says_so() -> None:
    said = "Python's own file functions only (this system offers neither namespaces nor Landlock)"
    assert walls.describe(Walls()).startswith(f"{said}; open: which files exist and when ")
    assert walls.describe(Walls(landlock=4)) == (
        "enforced by the operating system (Landlock 4): files, cutting files short, TCP; open: "
        "which files exist and when they were read, modes and times of files, UDP and other "
        "networks, sockets by path, signals, memory shared between programs, kernel keyring"
    )
    assert "open" not in walls.describe(Walls(True, True, True, landlock=7))


@on_unix("LD_LIBRARY_PATH")
def test_what_an_interpreter_needs_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is only searched for packages and holds the answers is left out."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "search")])
    monkeypatch.setenv("LD_LIBRARY_PATH", f"lib:{tmp_path}/a/../libraries/:")
    found = readable_paths.readable_paths([str(tmp_path / "answers")])
    assert {f"{tmp_path}/search", f"{tmp_path}/libraries", str(Path("lib").absolute())} <= {*found}
    too_much = {str(tmp_path), "/", "/etc", "/opt", "/usr", "/usr/share", "/var", "/home"}
    assert not too_much & {*found}
    assert {sys.executable, str(Path(os.__file__).parent)} <= {*found}


@pytest.mark.parametrize("hidden", ["answers", "working folder"])
def test_no_game_where_an_entry_may_read_the_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    """They lie among Python's libraries."""
    place = Path(os.__file__).parent
    (tmp_path / "submission_model_task_4.py").write_text("")
    answers = (place if hidden == "answers" else tmp_path / "answers") / "valid.csv"
    if hidden == "working folder":
        monkeypatch.chdir(place)
    held = re.escape(str(place.resolve()))
    refusal = f"^{held}: lies in .*, which an entry has to read for its libraries; expec"
    with pytest.raises(InputError, match=refusal) as caught:
        isolate(tmp_path, answers, Limits(60)).__enter__()
    assert not isinstance(caught.value, EntryError)


# Prints in which folders the entry can make something; it removes what it has made.
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
@pytest.mark.parametrize("version", [0, VERSION])
def test_the_root_is_for_reading_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """By itself, without Landlock, too: the kernel refuses what lies outside the own folders."""
    allow(monkeypatch, ("namespaces", "root"), version)
    closed = ["/", "/dev", "/usr", "/usr/lib", "/tmp", "..", "../inside", sys.prefix]
    closed += [str(Path(os.__file__).parent), "/proc", "/proc/self"]
    own = [".", "../tmp", "/dev/shm"]
    (tmp_path / "submission_model_task_4.py").write_text(
        WRITES.replace("FOLDERS", repr([*closed, *own]))
    )
    with isolate(tmp_path, tmp_path / "answers/answers.csv", Limits(60)) as entry:
        pass
    assert json.loads(entry.output) == own
