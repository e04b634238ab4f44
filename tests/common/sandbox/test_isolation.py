"""The isolation of an entry refuses every attempt to break out of the entry's process.

`escape_attempts.py` beside this file holds the attempts: Python expressions that try to read the
answers, to do damage outside the entry's folder, or to pass a message to another game. Each attempt
is also made without isolation, where it must succeed. The isolation consists of several protections
(`common.sandbox.inside.protections`), each of which is also tested without the others.
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
from pathlib import Path
from types import SimpleNamespace

from common.errors import InputError
from common.sandbox import EntryError, IsolatedEntry, Limits
from common.sandbox.inside import landlock, protections, readable_paths, system_calls
from common.sandbox.inside.protections import Protections

import pytest
from isolated_entries import ALL_PROTECTIONS, LANDLOCK, isolate, limit_protections
from platforms import on_linux, on_unix
from run_scripts import run_process

ATTEMPTS_FILE = Path(__file__).with_name("escape_attempts.py")
ATTEMPTS = SimpleNamespace(**runpy.run_path(str(ATTEMPTS_FILE)))
# Tables of attempts to read the hidden answers: with Python's file functions, and without them.
READ_ANSWERS = ("READ_BY_PYTHON", "READ_BY_SYSTEM")
ENTRY = """
import escape_attempts

class Submission:
    select_questions = update_model = predict = None

    def __init__(self):
        escape_attempts.try_all(*ARGUMENTS)
"""
# How the attempts ended. The key is the Python expression of an attempt. The value is "succeeded",
# or "blocked: " and the error or value that shows why.
Outcomes = dict[str, str]

linux = on_linux("namespaces, Landlock, and attempts to escape them")


@dataclass(frozen=True)
class Outside:
    """Targets of the attempts, outside the entry's process."""

    # A folder. Each run of the attempts has a folder in it, with the files to damage.
    base: Path
    answers: Path
    # A process that has opened the file of the answers, and has an answer in its environment.
    process: subprocess.Popen[bytes]
    # The port at which the test listens, so that an entry could connect to it.
    port: int


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """Make the targets of the attempts: the answers, a process and three sockets.

    The process has opened the file of the answers and has an answer in its environment, so an
    attempt to read another process could find the answers there. The test listens at the sockets,
    so connecting to a socket succeeds unless it is refused. One socket has a port, another one a
    path, and the third one a name in Linux's abstract namespace.
    """
    base = tmp_path_factory.mktemp("outside")
    answers = base / "answers/answers.csv"
    answers.parent.mkdir()
    answers.write_text(ATTEMPTS.TABLE)
    environment = {**os.environ, "ANSWER": ATTEMPTS.SECRET}
    with (
        answers.open() as file,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as by_path,
        subprocess.Popen(
            ["sleep", "1000"], stdin=file, cwd=answers.parent, env=environment
        ) as process,
    ):
        # The name of a socket in the abstract namespace begins with a zero byte.
        abstract.bind(f"\0{base}")
        abstract.listen(20)
        by_path.bind(str(base / "listening"))
        by_path.listen(20)
        _, port = server.getsockname()
        yield Outside(base, answers, process, port)
        process.kill()


def find_environment(pid: int) -> tuple[int, int]:
    """Return where the environment of a process lies in its memory: address and number of bytes."""
    # In /proc/PID/stat, the fields `env_start` and `env_end` have the numbers 50 and 51. Only the
    # fields from number 3 on are split here, since field 2, a name in parentheses, may hold spaces.
    text = Path(f"/proc/{pid}/stat").read_text()
    fields_from_3 = text.rpartition(")")[2].split()
    start = int(fields_from_3[50 - 3])
    end = int(fields_from_3[51 - 3])
    return start, end - start


def make_arguments(outside: Outside, run: str, *tables: str) -> tuple[object, ...]:
    """Return the arguments with which an entry calls `escape_attempts.try_all`.

    The file escape_attempts.py has tables of attempts, such as DAMAGE. `try_all` makes the attempts
    in the named `tables`. Its further arguments are the folder of the answers, a folder of things
    to damage, and a dict of things outside the entry's process to reach, such as another process.

    This function also makes the things to damage, in the new folder `run`. Each attempt to do
    damage gets a folder that holds a file and an empty folder.
    """
    targets = outside.base / run
    for number in range(len(ATTEMPTS.DAMAGE)):
        target = targets / str(number)
        (target / "folder").mkdir(parents=True, exist_ok=True)
        (target / "file").write_text("whole")
        # Set the time of change to a known value, so that an attempt to change it is noticed.
        os.utime(target / "file", (1, 1))
    # The comment on OUTSIDE in escape_attempts.py explains these values.
    things_outside = {
        "process": outside.process.pid,
        "environment": find_environment(outside.process.pid),
        "port": outside.port,
        "abstract": f"\0{outside.base}",
        "path": f"{outside.base}/listening",
        "note": f"note-{os.getpid()}",
        "number": os.getpid(),
    }
    return tables, str(outside.answers.parent), str(targets), things_outside


def read_outcomes(output: str) -> Outcomes:
    """Return the outcomes that `escape_attempts.try_all` has printed on a line of the output.

    Other lines are ignored: a helper process may have printed warnings.
    """
    (line,) = [line for line in output.splitlines() if line.startswith(ATTEMPTS.MARK)]
    return Outcomes(json.loads(line.removeprefix(ATTEMPTS.MARK)))


def find_succeeded(outcomes: Outcomes) -> set[str]:
    """Return the expressions of the attempts that succeeded."""
    return {expression for expression, outcome in outcomes.items() if outcome == "succeeded"}


@pytest.fixture(scope="module")
def unisolated(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Make all attempts in a process without isolation, and return their outcomes.

    `escape_attempts.py` then also writes the answers in the other formats that attempts try to
    read, such as a database.
    """
    outcomes = Outcomes()
    # A dishonest entry could leave a message for the entry of the next game. "LEAVE_MESSAGE" holds
    # attempts to do this, for instance in a file, and "FIND_MESSAGE" attempts of a later process to
    # read the message. So the second run, "next", looks for the messages of the first run.
    tables_by_run = {
        "unisolated": (*READ_ANSWERS, "DAMAGE", "LEAVE_MESSAGE"),
        "next": ("FIND_MESSAGE",),
    }
    for run, tables in tables_by_run.items():
        arguments = json.dumps(make_arguments(outside, run, *tables))
        folder = tmp_path_factory.mktemp("own")
        done = run_process([ATTEMPTS_FILE, arguments], cwd=folder, timeout=300)
        assert done.returncode == 0, done.stderr
        outcomes |= read_outcomes(done.stdout)
    return outcomes


@linux
def test_without_isolation_every_attempt_succeeds(unisolated: Outcomes) -> None:
    """A refused attempt proves something only if it would succeed without isolation.

    An attempt may fail here if the machine lacks what the attempt needs (`Attempt.needs`).
    """
    tables = (*READ_ANSWERS, "DAMAGE", "LEAVE_MESSAGE", "FIND_MESSAGE")
    attempts = [attempt for table in tables for attempt in ATTEMPTS.TABLES[table]]
    required = {attempt.expression for attempt in attempts if not attempt.needs}
    assert required - find_succeeded(unisolated) == set()


@linux
def test_there_are_as_many_attempts_as_the_readme_says() -> None:
    assert len(ATTEMPTS.READ_BY_PYTHON) + len(ATTEMPTS.READ_BY_SYSTEM) > 55
    assert len(ATTEMPTS.DAMAGE) > 40


# ---- Isolated entries --------------------------------------------------------------------------


def find_not_refused(names: tuple[str, ...], landlock_version: int) -> set[str]:
    """Return the expressions that must succeed in an entry if only some protections are used.

    `ATTEMPTS` lists attempts to break out, each with its Python expression and with the protections
    that refuse it. An attempt must succeed if none of the used protections refuses it: otherwise
    the list would name the wrong protections. What an entry is allowed to do must succeed, too.

    Parameters
    ----------
    names
        Names of the protections that are used, among `ALL_PROTECTIONS`.
    landlock_version
        The version of Landlock, a module of the Linux kernel that is a further protection. 0 if it
        is not used.
    """
    not_refused = set()
    for table in (*READ_ANSWERS, "DAMAGE"):
        for attempt in ATTEMPTS.TABLES[table]:
            first_version = attempt.landlock
            by_landlock = first_version is not None and first_version <= landlock_version
            by_others = any(name in names for name in attempt.protections)
            if not by_landlock and not by_others:
                not_refused.add(attempt.expression)
    for action in ATTEMPTS.ALLOWED:
        # Some actions are possible only because of a protection. For example, an entry can list
        # /dev/shm only if it has a file system root of its own, where /dev/shm is an empty folder.
        if not action.only_with or action.only_with in names:
            not_refused.add(action.expression)
    return not_refused


def try_in_entry(outside: Outside, folder: Path, run: str, *tables: str) -> IsolatedEntry:
    """Let an isolated entry make the attempts of the named tables; return the ended entry.

    Parameters
    ----------
    outside
        The targets of the attempts.
    folder
        The entry's folder.
    run
        The name of a new folder with files to damage, in `outside.base`.
    tables
        Names of tables in escape_attempts.py.
    """
    shutil.copy(ATTEMPTS_FILE, folder)
    arguments = make_arguments(outside, run, *tables)
    code = ENTRY.replace("ARGUMENTS", repr(arguments))
    (folder / "submission_model_task_4.py").write_text(code)
    with isolate(folder, outside.answers, Limits(seconds=300)) as entry:
        pass
    return entry


ALL_TABLES = (*READ_ANSWERS, "DAMAGE", "ALLOWED")
COMBINATIONS = [
    pytest.param(ALL_PROTECTIONS, LANDLOCK, ALL_TABLES, id="all"),
    pytest.param(ALL_PROTECTIONS, 0, ALL_TABLES, id="no Landlock"),
    pytest.param(("seccomp",), LANDLOCK, ALL_TABLES, id="no namespaces"),
    # Landlock, a security module of the Linux kernel, is the only protection, in each of its
    # versions. Versions that are newer than this kernel's are skipped.
    *(
        pytest.param((), version, ("DAMAGE", "ALLOWED"), id=f"Landlock {version}")
        for version in range(1, 8)
    ),
    # The system protects nothing. Only the kit's guard in Python's file functions is left, which
    # refuses to open the file of the answers.
    pytest.param((), 0, ("READ_BY_PYTHON",), id="nothing"),
]


@linux
@pytest.mark.parametrize(("names", "landlock_version", "tables"), COMBINATIONS)
def test_each_protection_refuses_the_attempts_that_it_should_and_nothing_else(
    outside: Outside,
    unisolated: Outcomes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, ...],
    landlock_version: int,
    tables: tuple[str, ...],
) -> None:
    """A dishonest entry tries to break out while only some protections of the system are in force.

    These protections are `names` (fields of `Protections`) and a version of Landlock (0 means
    none). An attempt is a Python expression, for instance one that reads the hidden answers. The
    attempts lie in `tables` of escape_attempts.py, with the protections that refuse each of them.
    The table "ALLOWED" holds expressions that must succeed.
    """
    allowed = limit_protections(monkeypatch, names, landlock_version)
    run = f"{len(names)} {landlock_version}"

    entry = try_in_entry(outside, tmp_path, run, *tables)

    outcomes = read_outcomes(entry.output)
    can_succeed = {action.expression for action in ATTEMPTS.ALLOWED}
    if names or landlock_version:
        # Add the attempts that succeed on this machine without isolation: only these can succeed in
        # the entry.
        can_succeed |= find_succeeded(unisolated)
    # Otherwise the system protects nothing (the case "nothing"). The entry then makes only the
    # attempts in READ_BY_PYTHON. The kit's guard in Python's file functions refuses all of them, so
    # none can succeed.
    not_refused = find_not_refused(names, landlock_version)
    was_made = outcomes.keys()
    assert find_succeeded(outcomes) == not_refused & can_succeed & was_made, outcomes
    assert_no_damage_by_refused(outcomes, outside.base / run, has_own_root="root" in names)
    assert outside.process.poll() is None
    assert outside.answers.read_text() == ATTEMPTS.TABLE
    assert entry.isolation == protections.describe(allowed)


def assert_no_damage_by_refused(outcomes: Outcomes, targets: Path, *, has_own_root: bool) -> None:
    """Assert that refused attempts to do damage have changed nothing.

    `ATTEMPTS.DAMAGE` lists the attempts, and `outcomes` has "succeeded" or an error for each one
    that was made. Attempts that succeeded or were not made are not looked at. `targets` holds a
    folder to damage for each attempt, named by the number of the attempt.
    """
    for number, attempt in enumerate(ATTEMPTS.DAMAGE):
        outcome = outcomes.get(attempt.expression)
        # The outcome is None if the attempt was not made.
        if outcome is None or outcome == "succeeded":
            continue
        # An entry with a file system root of its own does not see the folder to damage. For any
        # other entry, "No such file" would mean that the test has not made this folder.
        if not has_own_root:
            assert "No such file" not in outcome, attempt
        assert_undamaged(targets / str(number), attempt.expression)


def assert_undamaged(target: Path, expression: str) -> None:
    """Assert that the evaluation of an expression has changed nothing in its target folder."""
    assert (target / "file").read_text() == "whole", expression
    assert (target / "file").stat().st_mtime == 1, expression
    assert sorted(path.name for path in target.iterdir()) == ["file", "folder"], expression


@linux
@pytest.mark.usefixtures("unisolated")
@pytest.mark.parametrize(
    "names", [ALL_PROTECTIONS, ("namespaces", "root"), ("seccomp",)], ids=" ".join
)
def test_no_game_finds_a_message_that_the_game_before_has_left(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    """A message might outlive a game in a file, shared memory, a queue, a semaphore or a key.

    An entry plays one game for each mask, and no game may tell the next one anything.
    """
    limit_protections(monkeypatch, names, LANDLOCK)
    try_in_entry(outside, tmp_path, "mask 0", "LEAVE_MESSAGE")
    entry = try_in_entry(outside, tmp_path, "mask 1", "FIND_MESSAGE")
    outcomes = read_outcomes(entry.output)
    assert find_succeeded(outcomes) == set(), outcomes


# ---- Landlock and the other protections --------------------------------------------------------


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
def test_the_ruleset_names_all_rights_that_a_version_of_landlock_can_restrict(
    version: int, n_file_rights: int, n_network_rights: int, n_scopes: int
) -> None:
    """A ruleset tells Landlock, a module of the Linux kernel, which rights a process is to lose.

    It has three numbers: for rights on files, for rights on the network, and for scopes (processes
    that signals, for example, may reach). Each right is a bit. Each version of Landlock adds the
    next higher bits (landlock(7)), so the n rights of a version are the lowest n bits.
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


def test_the_description_says_what_stays_open_without_protections() -> None:
    guard = "Python's own file functions only (this system offers neither namespaces nor Landlock)"
    assert protections.describe(Protections()).startswith(
        f"{guard}; open: which files exist and when "
    )


def test_the_description_says_what_stays_open_with_landlock_alone() -> None:
    assert protections.describe(Protections(landlock=4)) == (
        "enforced by the operating system (Landlock 4): files, cutting files short, TCP; open: "
        "which files exist and when they were read, modes and times of files, UDP and other "
        "networks, sockets by path, signals, memory shared between programs, kernel keyring"
    )


def test_the_description_says_that_nothing_stays_open_with_all_protections() -> None:
    everything = Protections(namespaces=True, root=True, seccomp=True, landlock=7)
    assert "open" not in protections.describe(everything)


# ---- Paths that an entry may read or write -------------------------------------------------------


@on_unix("LD_LIBRARY_PATH")
def test_an_entry_may_read_what_an_interpreter_needs_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry may read folders of modules and libraries, unless these hold the answers."""
    answers = tmp_path / "answers"
    modules = tmp_path / "modules"
    # The folders in which Python looks for modules. The first one holds the folder of the answers.
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(modules)])
    # Two folders of libraries: a relative path, and a path with dots and a slash at the end.
    monkeypatch.setenv("LD_LIBRARY_PATH", f"lib:{tmp_path}/a/../libraries/:")

    must_not_be_readable = [str(answers)]
    readable = {*readable_paths.readable_paths(must_not_be_readable)}

    assert str(modules) in readable
    assert f"{tmp_path}/libraries" in readable
    assert str(Path("lib").absolute()) in readable
    # Python itself and its standard library.
    assert sys.executable in readable
    assert str(Path(os.__file__).parent) in readable
    too_much = {str(tmp_path), "/", "/etc", "/opt", "/usr", "/usr/share", "/var", "/home"}
    assert not too_much & readable


@pytest.mark.parametrize("place", ["answers", "working folder"])
def test_no_game_begins_if_the_answers_or_the_working_folder_lie_among_the_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """An entry has to read the folder of Python's libraries, so it could read any file in it.

    Therefore the answers (`place` "answers") may not lie in this folder. The working folder, in
    which the user may keep answers, may not lie in it either. The game refuses to start.
    """
    libraries = Path(os.__file__).parent
    (tmp_path / "submission_model_task_4.py").write_text("")
    if place == "answers":
        answers = libraries / "valid.csv"
    else:
        answers = tmp_path / "answers/valid.csv"
        monkeypatch.chdir(libraries)
    folder = re.escape(str(libraries.resolve()))
    refusal = f"^{folder}: lies in .*, which an entry has to read for its libraries; expec"
    game = isolate(tmp_path, answers, Limits(seconds=60))
    with pytest.raises(InputError, match=refusal) as caught, game:
        pass
    # The user's setup is at fault, not the entry.
    assert not isinstance(caught.value, EntryError)


# This entry tries to make a folder in each of several folders, and prints where that succeeds. It
# removes the new folders again.
PRINT_WRITABLE_FOLDERS = """
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
@pytest.mark.parametrize("landlock_version", [0, LANDLOCK])
def test_an_entry_can_write_only_to_its_own_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, landlock_version: int
) -> None:
    """An entry with a file system root of its own cannot write elsewhere, even without Landlock.

    The entry tries to write into several folders, and prints the folders in which it succeeds.
    Landlock is a further protection by the kernel; version 0 means that it is not used.

    In the entry's root, /dev/shm is a new folder. Beside the working folder lie the temporary
    folder, "../tmp", and the program of the sandbox, "../inside".
    """
    limit_protections(monkeypatch, ("namespaces", "root"), landlock_version)
    not_writable = ["/", "/dev", "/usr", "/usr/lib", "/tmp", "..", "../inside", sys.prefix]
    not_writable += [str(Path(os.__file__).parent), "/proc", "/proc/self"]
    own = [".", "../tmp", "/dev/shm"]
    code = PRINT_WRITABLE_FOLDERS.replace("FOLDERS", repr([*not_writable, *own]))
    (tmp_path / "submission_model_task_4.py").write_text(code)
    with isolate(tmp_path, tmp_path / "answers/answers.csv", Limits(seconds=60)) as entry:
        pass
    assert json.loads(entry.output) == own
