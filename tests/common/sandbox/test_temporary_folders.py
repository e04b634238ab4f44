"""An entry runs in any folder for temporary files, or the message names TMPDIR."""

import errno
import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from common.errors import InputError
from common.sandbox import EntryError, IsolatedEntry, Limits
from common.sandbox.inside.faults import describe_fault

import pytest
from isolated_entries import ALL_PROTECTIONS, LANDLOCK, isolate, limit_protections
from platforms import on_linux

# This entry writes to its temporary folder and its own folder, which it may. Then it tries to write
# elsewhere, which it may not.
ENTRY = """
import os, tempfile
from pathlib import Path

class Submission:
    select_questions = update_model = predict = None

    def __init__(self):
        tempfile.NamedTemporaryFile().write(b"mine")
        Path("own").write_text("mine")
        for path in ("../inside/new", "../new", OUTSIDE):
            try:
                Path(path).write_text("mine")
                print("can write", path)
            except OSError:
                pass
        BODY
        print("has run")
"""
# `multiprocessing` makes a local socket in the folder for temporary files.
MAKE_SOCKET = "import multiprocessing; multiprocessing.Manager().shutdown()"


def run_in(monkeypatch: pytest.MonkeyPatch, package: Path, folder: str, body: str = "") -> str:
    """Run an entry, whose files are copied into the temporary folder; return what it prints."""
    package.mkdir()
    code = ENTRY.replace("BODY", body).replace("OUTSIDE", repr(f"{folder}/new"))
    (package / "submission_model_task_4.py").write_text(code)
    monkeypatch.setenv("TMPDIR", folder)
    # `tempfile` remembers the folder for temporary files. Let it read the variable TMPDIR again.
    monkeypatch.setattr(tempfile, "tempdir", None)
    with isolate(package, package.parent / "answers/answers.csv", Limits(seconds=60)) as entry:
        pass
    return entry.output


@pytest.fixture
def shared_memory() -> Iterator[Path]:
    """Make a folder in /dev/shm, Linux's file system in memory; check at the end that it is empty.

    An entry with a root file system of its own sees another /dev/shm, without this folder.
    """
    folder = Path("/dev/shm", f"test-{uuid.uuid4()}")
    folder.mkdir()
    yield folder
    # The folder must be empty by now, or `rmdir` fails.
    folder.rmdir()


@on_linux("/dev/shm")
@pytest.mark.parametrize(
    ("names", "landlock_version"),
    [
        pytest.param(ALL_PROTECTIONS, LANDLOCK, id="all"),
        pytest.param(ALL_PROTECTIONS, 0, id="no Landlock"),
        pytest.param(("seccomp",), LANDLOCK, id="no namespaces"),
    ],
)
def test_an_entry_may_lie_in_shared_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared_memory: Path,
    names: tuple[str, ...],
    landlock_version: int,
) -> None:
    """TMPDIR names a folder in /dev/shm, so the copy of the entry lies there.

    The entry must run with each combination of protections (`names` and a version of Landlock), and
    leave nothing in the folder.
    """
    limit_protections(monkeypatch, names, landlock_version)
    output = run_in(monkeypatch, tmp_path / "package", str(shared_memory))
    # The entry prints "can write" for each path outside its own folders that it can write. With the
    # protection "root", it has a root folder of its own with a new /dev/shm, where it may write.
    if "root" in names:
        assert output == f"can write {shared_memory}/new\nhas run\n"
    else:
        assert output == "has run\n"
    assert not [*shared_memory.iterdir()]


@pytest.mark.parametrize("name", [".", "relative", "answers", "a b'\"ü", "line\nbreak"])
def test_an_entry_runs_in_folders_of_odd_names_and_in_hidden_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The folder for temporary files, `name`, may have an odd name, or be hidden from the entry.

    An odd name holds, for example, a line end. The hidden folders are the working folder (".") and
    the folder "answers": an entry cannot see them. The entry runs, and leaves nothing behind.
    """
    if os.name == "nt" and not name.isalpha():
        pytest.skip("Windows allows no such names")
    monkeypatch.chdir(tmp_path)
    # The name is a path relative to the working folder.
    Path(name).mkdir(exist_ok=True)
    assert "has run\n" in run_in(monkeypatch, tmp_path / "package", name)
    # The entry ran in a copy of its files, in a folder of this name. That folder is gone.
    assert not [*tmp_path.rglob("task_4_entry_*")]


@on_linux("a root of its own")
def test_workers_start_below_a_folder_with_a_long_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`multiprocessing` makes a local socket in the folder for temporary files.

    The path of a local socket has at most 107 bytes. Yet this must work if TMPDIR names a folder
    with a longer path.
    """
    limit_protections(monkeypatch, ALL_PROTECTIONS, LANDLOCK)
    folder = tmp_path / ("a" * 120)
    folder.mkdir()
    assert run_in(monkeypatch, tmp_path / "package", str(folder), MAKE_SOCKET) == "has run\n"


# ---- Folders that do not work --------------------------------------------------------------------


def test_where_no_temporary_folder_can_be_made_the_fault_names_tmpdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(no_folder))
    with pytest.raises(InputError, match=r"^no folder can be made .* TMPDIR name a") as caught:
        isolate(tmp_path, tmp_path / "answers.csv", Limits(seconds=60)).__enter__()
    assert not isinstance(caught.value, EntryError)


def test_where_the_temporary_folder_is_full_the_fault_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder for temporary files is full when the entry's files are copied into it.

    The error of the operating system names the file that was copied, although the folder is full.
    The message of the kit must name the folder.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def find_folder_full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "training.csv")

    entry = IsolatedEntry(find_folder_full, tmp_path / "answers.csv", Limits(seconds=60))
    with pytest.raises(InputError, match=r"No space left on device, .*TMPDIR") as caught, entry:
        pass
    assert str(caught.value).startswith(f"{tmp_path}: ")
    assert "training.csv" not in str(caught.value)
    assert not [*tmp_path.iterdir()]


@on_linux("folders in which nothing may be executed")
@pytest.mark.parametrize(
    "error",
    [
        pytest.param("PermissionError(13, 'Permission denied', 'OWN/program')", id="program"),
        pytest.param("OSError('OWN/a.so: failed to map segment from shared object')", id="library"),
    ],
)
def test_where_nothing_may_be_executed_the_fault_names_tmpdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    fault = eval(error.replace("OWN", str(tmp_path)))
    assert "TMPDIR" not in describe_fault(fault, tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    assert "TMPDIR" in describe_fault(fault, tmp_path)
    # An error about a file outside the temporary folder must not blame the temporary folder.
    elsewhere = PermissionError(13, "Permission denied", "/answers.csv")
    assert "TMPDIR" not in describe_fault(elsewhere, tmp_path)
