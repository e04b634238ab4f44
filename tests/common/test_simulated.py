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
    """Simulate the files a and b in train_data, with the contents "a TEXT" and "b TEXT"."""

    def write(folder: Path) -> dict[str, Any]:
        (folder / "train_data").mkdir()
        for name in "ab":
            (folder / "train_data" / name).write_text(f"{name} {text}")
        return {}

    simulated.place_simulated(folder, ["train_data"], write)


@pytest.mark.parametrize(
    ("n_renames", "expected"),
    [
        # First, a marker that lists the simulated files gets its name, then the files a and b, and
        # at last the final marker.
        (0, ["a old", "b old"]),
        (1, ["a old", "b old"]),
        (2, ["a new", "b old"]),
        (3, ["a new", "b new"]),
    ],
)
def test_after_control_c_all_files_are_whole_and_marked_as_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_renames: int, expected: list[str]
) -> None:
    """Files are written beside the old ones, and then replace these by renames.

    Control-C comes when `n_renames` of the four renames have been made.
    """
    folder = tmp_path / "train_data"
    place(tmp_path, "old")
    renamed: list[Path] = []
    rename = Path.replace

    def rename_or_interrupt(self: Path, target: Path) -> Path:
        if len(renamed) == n_renames:
            raise KeyboardInterrupt
        renamed.append(target)
        return rename(self, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", rename_or_interrupt)
        place(tmp_path, "new")

    assert [path.read_text() for path in sorted(folder.iterdir())] == expected
    assert fingerprints.simulated_files(tmp_path) == [folder / "a", folder / "b"]
    assert not list(tmp_path.glob("*.partial"))
    assert not list(tmp_path.glob(".*.partial"))
    # The next run replaces all files.
    place(tmp_path, "newer")
    assert sorted(path.read_text() for path in folder.iterdir()) == ["a newer", "b newer"]


@on_unix("harmless signal that tells whether a process runs")
def test_a_process_that_is_writing_a_simulation_excludes_others_until_it_ends(
    tmp_path: Path,
) -> None:
    """A process writes a simulation to a temporary folder that has the process id in its name."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    def partial_of(pid: int) -> Path:
        """Return the temporary folder of the process with this id."""
        return tmp_path / f".simulation.{pid}.partial"

    # The parent process stands for another process that is running.
    of_running = partial_of(os.getppid())
    of_ended = partial_of(ended.pid)
    # An earlier process that had the same id as this one has left this folder.
    of_this = partial_of(os.getpid())
    for folder in (of_running, of_ended, of_this):
        (folder / "train_data").mkdir(parents=True)

    with pytest.raises(InputError, match=rf"another process \({os.getppid()}\)"):
        place(tmp_path, "new")
    # Although nothing is written, folders that ended processes have left are removed.
    assert of_running.exists()
    assert not of_ended.exists()
    assert not of_this.exists()

    # Renaming the folder of the running process makes it the folder of a process that has ended.
    of_running.rename(of_ended)
    place(tmp_path, "new")
    assert not of_ended.exists()
