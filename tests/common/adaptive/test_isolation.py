"""Ways to the answers' contents and to harm: none gets through where Landlock is in force.

`ways_out.py` beside this file holds the ways. All of them are tried in one process that is not
isolated, so that each is known to lead somewhere, in an entry's under Landlock, and those that
Python's guard is there for in an entry's with nothing but that.
"""

import ctypes
import importlib.util
import json
import os
import runpy
import shutil
import site
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from common.adaptive import isolation
from common.adaptive.entry_process import EntryProcess, Limits

WAYS_FILE = Path(__file__).with_name("ways_out.py")
ENTRY = """
class Submission:
    def __init__(self):
        {}

    def select_questions(self, *arrays): pass
    def update_model(self, *arrays): pass
    def predict(self, *arrays): pass
"""
Outcome = dict[str, str]

VERSION = isolation.landlock_version()
linux = pytest.mark.skipif(sys.platform != "linux", reason="the ways are those of Linux")
landlock = pytest.mark.skipif(not VERSION, reason="this kernel has no Landlock")


def load_ways() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ways_out", WAYS_FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WAYS = load_ways()


class Outside:
    """What lies outside an entry's process: answers, victims, a process and two that listen."""

    def __init__(self, base: Path) -> None:
        self.folder = base / "answers"
        self.folder.mkdir()
        self.answers = self.folder / "answers.csv"
        self.answers.write_text(WAYS.TABLE)
        self.base = base
        with self.answers.open() as file:
            self.process = subprocess.Popen(
                ["sleep", "1000"], stdin=file, cwd=self.folder,
                env={**os.environ, "ANSWER": WAYS.SECRET},
            )  # fmt: skip
        self.server = socket.create_server(("127.0.0.1", 0))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0{base}")
        self.abstract.listen()

    def arguments(self, run: str) -> tuple[str, str, dict[str, object]]:
        """Make victims for a run, and return the arguments of the ways."""
        victims = self.base / run
        for name in WAYS.FILES_HARMED:
            (victims / name / "folder").mkdir(parents=True)
            (victims / name / "file").write_text("whole")
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        outside = {
            "process": self.process.pid,
            "environment": (int(stat[47]), int(stat[48]) - int(stat[47])),
            "port": self.server.getsockname()[1],
            "socket": f"\0{self.base}",
        }
        return str(self.folder), str(victims), outside

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.server.close()
        self.abstract.close()


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    place = Outside(tmp_path_factory.mktemp("outside"))
    yield place
    place.close()


def read_outcome(output: str) -> Outcome:
    """Return what the marked line says; others (a helper process that warns) may follow it."""
    (line,) = [line for line in output.splitlines() if line.startswith(WAYS.MARK)]
    return Outcome(json.loads(line.removeprefix(WAYS.MARK)))


@pytest.fixture(scope="module")
def unisolated(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Make the answers in all formats, and try every way without isolation."""
    folder, victims, rest = outside.arguments("unisolated")
    done = subprocess.run(
        [sys.executable, str(WAYS_FILE), folder, victims, json.dumps(rest)],
        cwd=tmp_path_factory.mktemp("unisolated"), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return read_outcome(done.stdout)


def start(package: Path, line: str, outside: Outside) -> EntryProcess:
    """Start an entry that does one thing, and return it when that is done."""
    shutil.copy(WAYS_FILE, package)
    (package / "submission_model_task_4.py").write_text(ENTRY.format(f"import ways_out; {line}"))
    with EntryProcess(package, {}, Limits(300), outside.answers) as entry:
        return entry


def leaks(outcome: Outcome) -> Outcome:
    return {way: what for way, what in outcome.items() if not what.startswith("met ")}


@pytest.fixture(scope="module")
def isolated(
    outside: Outside, unisolated: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    package = tmp_path_factory.mktemp("isolated")
    entry = start(package, f"ways_out.try_all(*{outside.arguments('isolated')})", outside)
    assert entry.isolation.startswith("enforced by the operating system (Landlock ")
    return read_outcome(entry.output)


@linux
def test_the_ways_lead_somewhere(unisolated: Outcome) -> None:
    """Some need privileges that a user may lack; the others must work, or they prove nothing."""
    assert leaks(unisolated).keys() >= unisolated.keys() - WAYS.PRIVILEGED


@linux
@landlock
def test_no_way_leads_to_the_contents_or_does_harm(outside: Outside, isolated: Outcome) -> None:
    since = dict.fromkeys(isolated, 1) | {"os.truncate": 3} | dict.fromkeys(WAYS.NETWORK, 4)
    since |= dict.fromkeys((*WAYS.OTHER_PROCESSES, *WAYS.ABSTRACT_SOCKET), 6)
    assert not {way: what for way, what in leaks(isolated).items() if since[way] <= VERSION}
    for name in WAYS.FILES_HARMED:
        assert "No such file" not in isolated[name], name
        victim = outside.base / "isolated" / name
        assert (victim / "file").read_text() == "whole", name
        assert sorted(path.name for path in victim.iterdir()) == ["file", "folder"]
    assert outside.process.poll() is None
    assert outside.answers.read_text() == WAYS.TABLE


@linux
def test_without_landlock_the_guard_stays(
    outside: Outside, unisolated: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "landlock_version", lambda: 0)
    call = f"ways_out.try_all(*{outside.arguments('guarded')}, only_guarded=True)"
    entry = start(tmp_path, call, outside)
    assert entry.isolation == "Python's own file functions only (this system offers no Landlock)"
    outcome = read_outcome(entry.output)
    assert outcome.keys() == WAYS.GUARDED.keys()
    assert not leaks(outcome)


TRIES = """
import json, os, signal, socket

def met(act):
    try:
        act()
    except OSError as error:
        return type(error).__name__
    return "nothing"

def write(path):
    open(path, "w").close()

def try_all(answers, victim, process):
    print(json.dumps({
        "open": met(lambda: open(answers)),
        "remove": met(lambda: os.remove(victim)),
        "cut short": met(lambda: os.truncate(victim, 5)),
        "TCP": met(lambda: socket.socket().bind(("127.0.0.1", 0))),
        "signal": met(lambda: os.kill(process, 0)),
        "own file": met(lambda: write("own")),
        "own rename": met(lambda: os.rename("own", "renamed")),
        "shared memory": met(lambda: os.listdir("/dev/shm")),
        "null": met(lambda: write(os.devnull)),
        "status": met(lambda: open("/proc/self/status").close()),
        "home": met(lambda: write(os.path.expanduser("~/settings"))),
    }))
"""


@landlock
@pytest.mark.parametrize("version", range(1, 7))
def test_older_kernels_refuse_what_they_can(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """The kernel takes the rights of every version up to its own, so that all can be tried."""
    if version > VERSION:
        pytest.skip(f"this kernel has version {VERSION}")
    monkeypatch.setattr(isolation, "landlock_version", lambda: version)
    package, victim = tmp_path / "package", tmp_path / "victim"
    package.mkdir()
    victim.write_text("whole")
    (package / "tries.py").write_text(TRIES)
    arguments = (str(outside.answers), str(victim), outside.process.pid)
    entry = start(package, f"import tries; tries.try_all(*{arguments})", outside)
    covered = ["files", *["TCP"] * (version >= 4), *["signals"] * (version >= 6)]
    assert f"(Landlock {version}): {', '.join(covered)}" in entry.isolation
    lacking = {"cutting files short": 3, "TCP": 4, "signals": 6}
    missing = ", ".join(name for name, since in lacking.items() if version < since)
    assert entry.isolation.partition("; this kernel's version does not cover ")[2] == missing
    since = {"open": 1, "remove": 1, "cut short": 3, "TCP": 4, "signal": 6}
    outcome = json.loads(entry.output)
    assert outcome == {
        act: "PermissionError" if version >= since.get(act, 7) else "nothing" for act in outcome
    }
    assert victim.read_text() == "whole"


@pytest.mark.parametrize(
    ("version", "n_rights", "tcp", "scopes"),
    [(1, 13, 0, 0), (2, 14, 0, 0), (3, 15, 0, 0), (4, 15, 3, 0), (5, 16, 3, 0), (6, 16, 3, 3)],
)
def test_the_ruleset_holds_what_a_version_knows(
    version: int, n_rights: int, tcp: int, scopes: int
) -> None:
    """The rights are the lowest bits, by the version that brought them (landlock(7))."""
    expected = (1 << n_rights) - 1
    assert isolation.ruleset(version) == struct.pack("=QQQ", expected, tcp, scopes)


def test_a_system_that_refuses_leaves_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a kernel that knows no such call nor another system is counted as isolating."""
    refusing = SimpleNamespace(syscall=lambda *_: -1)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_: refusing)
    fresh = runpy.run_path(isolation.__file__)
    assert fresh["landlock_version"]() == 0
    assert fresh["restrict"](["/usr"], ["/tmp"], 6) == 0
    refusing.syscall = lambda *_: 6
    monkeypatch.setattr(sys, "platform", "darwin")
    assert fresh["landlock_version"]() == 0


@linux
def test_what_lies_around_the_answers_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kit in a folder of the system, as in many containers, or beneath Python's own."""
    root = tmp_path.resolve()
    for name in ("app/data/deep", "app/code", "library/deep", "search"):
        (root / name).mkdir(parents=True)
    (root / "file").write_text("")
    (root / "link").symlink_to(root / "app/data")
    places = [str(root), str(root / "app/data/deep")]
    monkeypatch.setattr(site, "getsitepackages", lambda: places)
    monkeypatch.setattr(sys, "path", [str(root), str(root / "search")])
    found = isolation.readable_paths([str(root / "app/data"), str(root / "elsewhere")])
    inside = {Path(path) for path in found if Path(path).is_relative_to(root)}
    # What is searched for packages and holds the answers is left out; the rest is spread out.
    assert inside == {
        root / name for name in ("app/data/deep", "app/code", "library", "search", "file")
    }
