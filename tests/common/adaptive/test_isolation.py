"""Ways to the answers' contents and to harm: none gets through where Landlock is in force.

`ways_out.py` beside this file holds the ways. All of them are tried in one process that is not
isolated, so that each is known to lead somewhere, and in an entry's under Landlock; those that
Python's guard is there for in an entry's with nothing but that.
"""

import ctypes
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
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from common.adaptive import isolation
from common.adaptive.entry_process import EntryProcess, Limits

import pytest
from run_scripts import run_process

WAYS_FILE = Path(__file__).with_name("ways_out.py")
WAYS = SimpleNamespace(**runpy.run_path(str(WAYS_FILE)))
CONTENTS = ("GUARDED", "BEYOND")
ENTRY = """
import ways_out

class Submission:
    def __init__(self):
        ways_out.try_all(*ARGUMENTS)

    def select_questions(self, *arrays): pass
    def update_model(self, *arrays): pass
    def predict(self, *arrays): pass
"""
Outcome = dict[str, str]

VERSION = isolation.landlock_version()
linux = pytest.mark.skipif(sys.platform != "linux", reason="the ways are those of Linux")


@dataclass
class Outside:
    """What lies outside an entry's process: answers, victims, a process and two that listen."""

    base: Path
    process: subprocess.Popen[bytes]
    port: int

    def arguments(self, run: str, *tables: str) -> tuple[object, ...]:
        """Make victims for a run, and return the arguments of the ways."""
        victims = self.base / run
        for number in range(len(WAYS.ways("HARM"))):
            (victims / f"{number}/folder").mkdir(parents=True)
            (victims / f"{number}/file").write_text("whole")
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        outside = {
            "process": self.process.pid,
            "environment": (int(stat[47]), int(stat[48]) - int(stat[47])),
            "port": self.port,
            "abstract": f"\0{self.base}",
        }
        return tables, str(self.base / "answers"), str(victims), outside


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    base = tmp_path_factory.mktemp("outside")
    answers = base / "answers/answers.csv"
    answers.parent.mkdir()
    answers.write_text(WAYS.TABLE)
    secret = {**os.environ, "ANSWER": WAYS.SECRET}
    with (
        answers.open() as file,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        subprocess.Popen(["sleep", "1000"], stdin=file, cwd=answers.parent, env=secret) as process,
    ):
        abstract.bind(f"\0{base}")
        abstract.listen()
        yield Outside(base, process, server.getsockname()[1])
        process.kill()


def read_outcome(output: str) -> Outcome:
    """Return what the marked line says; others (a helper process that warns) may follow it."""
    (line,) = [line for line in output.splitlines() if line.startswith(WAYS.MARK)]
    return Outcome(json.loads(line.removeprefix(WAYS.MARK)))


@pytest.fixture(scope="module")
def unisolated(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Make the answers in all formats, and try every way without isolation."""
    arguments = json.dumps(outside.arguments("unisolated", *CONTENTS, "HARM"))
    done = run_process([WAYS_FILE, arguments], cwd=tmp_path_factory.mktemp("own"), timeout=300)
    assert done.returncode == 0, done.stderr
    return read_outcome(done.stdout)


def leaks(outcome: Outcome) -> set[str]:
    return {way for way, what in outcome.items() if not what.startswith("met ")}


@linux
def test_the_ways_lead_somewhere(unisolated: Outcome) -> None:
    """Some need what a machine may lack; the others must work, or they prove nothing."""
    assert [way for way in unisolated.keys() - leaks(unisolated) if "  # needs " not in way] == []
    # So many as task_4/ISOLATION.md says.
    assert len(WAYS.ways("GUARDED") + WAYS.ways("BEYOND")) > 120 and len(WAYS.ways("HARM")) > 30


@linux
@pytest.mark.usefixtures("unisolated")
@pytest.mark.parametrize("version", range(7))
def test_no_way_leads_to_the_contents_or_does_harm(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """With each version of Landlock that the kernel offers, and without any.

    The kernel takes the rights of every version up to its own, so that all can be tried; as to
    reading they do not differ. Without any, Python's guard remains.
    """
    if version > VERSION:
        pytest.skip(f"this kernel has version {VERSION}")
    latest = CONTENTS if version == min(VERSION, 6) else ()
    tables = ("HARM", "ALLOWED", *latest) if version else ("GUARDED",)
    monkeypatch.setattr(isolation, "landlock_version", lambda: version)
    run, answers = f"version_{version}", outside.base / "answers/answers.csv"
    shutil.copy(WAYS_FILE, tmp_path)
    code = ENTRY.replace("ARGUMENTS", repr(outside.arguments(run, *tables)))
    (tmp_path / "submission_model_task_4.py").write_text(code)
    with EntryProcess(tmp_path, {}, Limits(300), answers) as entry:
        pass
    outcome = read_outcome(entry.output)
    later = {f"  # since {since}" for since in range(version + 1, 7)}
    assert leaks(outcome) == {
        way for way in outcome if way in WAYS.ways("ALLOWED") or way[-len("  # since 1") :] in later
    }, outcome
    for number, way in enumerate(WAYS.ways("HARM")):
        if outcome.get(way, "done") != "done":
            assert "No such file" not in outcome[way], way
            victim = outside.base / run / str(number)
            assert (victim / "file").read_text() == "whole", way
            assert sorted(path.name for path in victim.iterdir()) == ["file", "folder"]
    assert outside.process.poll() is None
    assert answers.read_text() == WAYS.TABLE
    covered = ["files", *["TCP"] * (version >= 4), *["signals"] * (version >= 6)]
    lacking = ["cutting files short"] * (version < 3) + ["TCP"] * (version < 4)
    lacking += ["signals"] * (version < 6)
    missing = f"; this kernel's version does not cover {', '.join(lacking)}" if lacking else ""
    assert entry.isolation == (
        f"enforced by the operating system (Landlock {version}): {', '.join(covered)}{missing}"
        if version
        else "Python's own file functions only (this system offers no Landlock)"
    )


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
