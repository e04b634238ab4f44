"""Simulated files replace former ones whole, and stay marked even if a run is interrupted."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import fingerprints, simulated
from common.errors import InputError

import pytest
from platforms import on_unix


def place(folder: Path, text: str) -> None:
    """Place two files, train_data/a and train_data/b, as a generator of simulated data would.

    Their contents are "a TEXT" and "b TEXT", where TEXT stands for `text`.
    """

    def write(folder: Path) -> dict[str, Any]:
        (folder / "train_data").mkdir()
        for name in "ab":
            (folder / "train_data" / name).write_text(f"{name} {text}")
        return {}

    simulated.place_simulated(folder, ["train_data"], write)


def place_and_interrupt(folder: Path, text: str, n_renames: int) -> None:
    """Place files as `place` does, and press Control-C after a number of renames.

    `place` calls `place_simulated`, which writes new files beside the old ones. Then it replaces
    the old files by four renames, in this order:

    1. a marker that lists old and new simulated files
    2. the file a
    3. the file b
    4. the final marker
    """
    renamed: list[Path] = []
    rename = Path.replace

    def rename_or_interrupt(self: Path, target: Path) -> Path:
        if len(renamed) == n_renames:
            raise KeyboardInterrupt
        renamed.append(target)
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", rename_or_interrupt)
        place(folder, text)


@pytest.mark.parametrize(
    ("n_renames", "expected"),
    [
        (0, ["a old", "b old"]),
        (1, ["a old", "b old"]),
        (2, ["a new", "b old"]),
        (3, ["a new", "b new"]),
    ],
)
def test_after_control_c_all_files_are_whole_and_marked_as_simulated(
    tmp_path: Path, n_renames: int, expected: list[str]
) -> None:
    folder = tmp_path / "train_data"
    place(tmp_path, "old")
    place_and_interrupt(tmp_path, "new", n_renames)
    assert [path.read_text() for path in sorted(folder.iterdir())] == expected
    assert fingerprints.simulated_files(tmp_path) == [folder / "a", folder / "b"]
    assert not list(tmp_path.glob("*.partial"))
    assert not list(tmp_path.glob(".*.partial"))


@pytest.mark.parametrize("n_renames", range(4))
def test_the_run_after_control_c_replaces_all_files(tmp_path: Path, n_renames: int) -> None:
    place(tmp_path, "old")
    place_and_interrupt(tmp_path, "new", n_renames)
    place(tmp_path, "newer")
    paths = (tmp_path / "train_data").iterdir()
    assert sorted(path.read_text() for path in paths) == ["a newer", "b newer"]


# A process writes a simulation to a temporary folder that has the process id in its name. Another
# process sends signal 0, which does nothing, to this id to learn whether the process still runs.

needs_signal_0 = on_unix("harmless signal that tells whether a process runs")


def make_temporary_folder(folder: Path, pid: int) -> Path:
    """Make the temporary folder of a simulation by the process with this id; return its path."""
    temporary = folder / f".simulation.{pid}.partial"
    (temporary / "train_data").mkdir(parents=True)
    return temporary


@pytest.fixture
def ended_pid() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@needs_signal_0
def test_a_process_that_is_writing_a_simulation_excludes_others(tmp_path: Path) -> None:
    # The parent of this process serves as another process that is still running.
    running_pid = os.getppid()
    temporary = make_temporary_folder(tmp_path, running_pid)
    with pytest.raises(InputError, match=rf"another process \({running_pid}\)"):
        place(tmp_path, "new")
    assert temporary.exists()


@needs_signal_0
def test_a_process_that_has_ended_excludes_no_others(tmp_path: Path, ended_pid: int) -> None:
    temporary = make_temporary_folder(tmp_path, ended_pid)
    place(tmp_path, "new")
    assert not temporary.exists()


@needs_signal_0
def test_folders_of_ended_processes_are_removed_even_if_another_one_is_writing(
    tmp_path: Path, ended_pid: int
) -> None:
    make_temporary_folder(tmp_path, os.getppid())
    folder_of_ended = make_temporary_folder(tmp_path, ended_pid)
    # An earlier process that had the same id as this process may have left a folder, too.
    folder_of_same_id = make_temporary_folder(tmp_path, os.getpid())
    with pytest.raises(InputError, match="another process"):
        place(tmp_path, "new")
    assert not folder_of_ended.exists()
    assert not folder_of_same_id.exists()
