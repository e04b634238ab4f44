"""Ways to the answers' contents and to harm: none gets through where Landlock is in force.

`ways_out.py` beside this file holds the ways. All of them are tried in one process that is not
isolated, so that each is known to lead somewhere, in an entry's under Landlock, and in an entry's
with nothing but Python's guard.
"""

import importlib.util
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from common.adaptive import isolation
from common.adaptive.entry_process import EntryProcess, Limits

WAYS_FILE = Path(__file__).with_name("ways_out.py")
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
landlock = pytest.mark.skipif(not VERSION, reason="this kernel has no Landlock")


def load_ways() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ways_out", WAYS_FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WAYS = load_ways()
CONTENTS = sorted(WAYS.contents()) if sys.platform == "linux" else []


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


def read_outcome(output: str) -> Outcome:
    """Return what the marked line says; others (a helper process that warns) may follow it."""
    (line,) = [line for line in output.splitlines() if line.startswith(WAYS.MARK)]
    return Outcome(json.loads(line.removeprefix(WAYS.MARK)))


def try_as_an_entry(outside: Outside, name: str, package: Path) -> tuple[Outcome, str]:
    shutil.copy(WAYS_FILE, package)
    code = ENTRY.replace("ARGUMENTS", repr(outside.arguments(name)))
    (package / "submission_model_task_4.py").write_text(code)
    with EntryProcess(package, {}, Limits(300), outside.answers) as entry:
        pass
    return read_outcome(entry.output), entry.isolation


@pytest.fixture(scope="module")
def isolated(
    outside: Outside, unisolated: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    outcome, words = try_as_an_entry(outside, "isolated", tmp_path_factory.mktemp("isolated"))
    assert words.startswith("enforced by the operating system (Landlock ")
    return outcome


@pytest.fixture(scope="module")
def guarded(
    outside: Outside, unisolated: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolation, "landlock_version", lambda: 0)
        outcome, words = try_as_an_entry(outside, "guarded", tmp_path_factory.mktemp("guarded"))
    assert words == "Python's own file functions only (this system offers no Landlock)"
    return outcome


@linux
def test_the_ways_are_many_and_lead_somewhere(unisolated: Outcome) -> None:
    """Some need root, a program or a library; most must work, or they would prove nothing."""
    got = [way for way in CONTENTS if unisolated[way] == "got"]
    assert len(got) >= 90
    done = [way for way, outcome in unisolated.items() if outcome == "done"]
    assert len(done) >= 30


@linux
@landlock
@pytest.mark.parametrize("way", CONTENTS)
def test_no_way_leads_to_the_contents(unisolated: Outcome, isolated: Outcome, way: str) -> None:
    assert isolated[way].startswith("met ")
    if unisolated[way] != "got":
        pytest.skip(f"leads nowhere on this machine in any case: {unisolated[way]}")


@linux
@landlock
@pytest.mark.parametrize(
    ("way", "since"),
    [
        *((way, 3 if way == "os.truncate" else 1) for way in WAYS.FILES_HARMED),
        *((way, 1) for way in WAYS.DEBUGGED),
        *((way, 4) for way in WAYS.NETWORK),
        *((way, 6) for way in (*WAYS.OTHER_PROCESSES, *WAYS.ABSTRACT_SOCKET)),
    ],
)
def test_no_way_does_harm(unisolated: Outcome, isolated: Outcome, way: str, since: int) -> None:
    if since > VERSION:
        pytest.skip(f"Landlock refuses this from version {since} on, this kernel has {VERSION}")
    assert isolated[way].startswith("met "), isolated[way]
    assert "No such file" not in isolated[way]
    if unisolated[way] != "done":
        pytest.skip(f"does no harm on this machine in any case: {unisolated[way]}")


@linux
@landlock
def test_the_victims_are_as_they_were(outside: Outside, isolated: Outcome) -> None:
    for name in WAYS.FILES_HARMED:
        victim = outside.base / "isolated" / name
        assert (victim / "file").read_text() == "whole"
        assert sorted(path.name for path in victim.iterdir()) == ["file", "folder"]
    assert outside.process.poll() is None
    assert outside.answers.read_text() == WAYS.TABLE


# What the guard promises without Landlock: it covers files that are opened through Python.
GUARDED = """
    open|open bytes|io.FileIO|io.open_code|opener|os.open|os.open to write|chdir|pathlib|through ..
    |/proc/self/root|codecs|fileinput|linecache|tokenize|csv|json|gzip|zipfile|configparser|mmap
    |sendfile|copy_file_range|urllib file:|import from a zip|pkgutil|thread|shutil.copy|tarfile
    |symbolic link|link to the folder|fork|multiprocessing fork|multiprocessing pool|process pool
    |root of a process|folder of a process|descriptor of a process|environment of a process
    |memory of a process|np.fromfile|np.memmap|np.loadtxt|np.genfromtxt|np.load|np.load memory map
    |np.load zip|pd.read_csv c|pd.read_csv python|pd.read_table|pd.read_json|pd.read_pickle
    |joblib.load|torch.load
"""


@linux
@pytest.mark.parametrize("way", [name.strip() for name in GUARDED.split("|")])
def test_without_landlock_the_guard_stays(guarded: Outcome, way: str) -> None:
    assert guarded[way].startswith("met ")


TRIES = """
import json, os, signal, socket

def met(act):
    try:
        act()
    except OSError as error:
        return type(error).__name__
    return "nothing"

ANSWERS, VICTIM, PROCESS = ARGUMENTS

class Submission:
    def __init__(self):
        print(json.dumps({
            "open": met(lambda: open(ANSWERS)),
            "remove": met(lambda: os.remove(VICTIM)),
            "TCP": met(lambda: socket.socket().bind(("127.0.0.1", 0))),
            "signal": met(lambda: os.kill(PROCESS, 0)),
            "own file": met(lambda: open("own", "w").close()),
            "own rename": met(lambda: os.rename("own", "renamed")),
            "shared memory": met(lambda: os.listdir("/dev/shm")),
            "null": met(lambda: open(os.devnull, "w").close()),
            "status": met(lambda: open("/proc/self/status").close()),
            "home": met(lambda: open(os.path.expanduser("~/settings"), "w").close()),
        }))

    def select_questions(self, *arrays): pass
    def update_model(self, *arrays): pass
    def predict(self, *arrays): pass
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
    package = tmp_path / "package"
    package.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("whole")
    arguments = (str(outside.answers), str(victim), outside.process.pid)
    code = TRIES.replace("ARGUMENTS", repr(arguments))
    (package / "submission_model_task_4.py").write_text(code)
    with EntryProcess(package, {}, Limits(60), outside.answers) as entry:
        pass
    assert f"(Landlock {version})" in entry.isolation
    assert ("does not cover" in entry.isolation) == (version < 6)
    denied, allowed = "PermissionError", "nothing"
    assert json.loads(entry.output) == {
        "open": denied,
        "remove": denied,
        "TCP": denied if version >= 4 else allowed,
        "signal": denied if version >= 6 else allowed,
        **dict.fromkeys(
            ("own file", "own rename", "shared memory", "null", "status", "home"), allowed
        ),
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


def test_a_rule_is_packed_without_padding() -> None:
    assert isolation.path_rule(0b101, 7) == b"\x05" + bytes(7) + (7).to_bytes(4, sys.byteorder)


@pytest.mark.skipif(sys.byteorder != "little", reason="written down for this order")
def test_a_rule_byte_by_byte() -> None:
    assert isolation.path_rule(1 << 14, 3).hex() == "004000000000000003000000"


def test_a_system_that_refuses_leaves_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_call", lambda *_: -1)
    assert isolation.landlock_version() == 0
    assert isolation.restrict(["/usr"], ["/tmp"], 6) == 0


def test_no_other_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation.sys, "platform", "darwin")
    assert isolation.landlock_version() == 0


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
    monkeypatch.setattr(isolation, "_SYSTEM", (str(root), str(root / "app/data/deep")))
    monkeypatch.setattr(sys, "path", [str(root), str(root / "search")])
    found = isolation.readable_paths([str(root / "app/data"), str(root / "elsewhere")])
    inside = {Path(path) for path in found if Path(path).is_relative_to(root)}
    # What is searched for packages and holds the answers is left out; the rest is spread out.
    assert inside == {
        root / name for name in ("app/data/deep", "app/code", "library", "search", "file")
    }
