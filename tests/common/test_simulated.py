"""Simulated files replace former ones as a whole, and are known whenever a run ends."""

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
    """Place two simulated files that hold a text."""

    def write(folder: Path) -> dict[str, Any]:
        (folder / "train_data").mkdir()
        for name in "ab":
            (folder / "train_data" / name).write_text(f"{name} {text}")
        return {}

    simulated.place_simulated(folder, ["train_data"], write)


@pytest.mark.parametrize(
    ("n_renames", "left"), [(0, "old old"), (1, "old old"), (2, "new old"), (3, "new new")]
)
def test_wherever_a_run_ends_all_files_are_whole_and_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_renames: int, left: str
) -> None:
    """By Control-C before the marker is renamed, or a file, or at the end."""
    folder = tmp_path / "train_data"
    place(tmp_path, "old")
    done: list[Path] = []
    rename = Path.replace

    def ends_there(self: Path, target: Path) -> Path:
        if len(done) == n_renames:
            raise KeyboardInterrupt
        done.append(target)
        return rename(self, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", ends_there)
        place(tmp_path, "new")
    texts = [path.read_text() for path in sorted(folder.iterdir())]
    assert texts == [f"{name} {text}" for name, text in zip("ab", left.split(), strict=True)]
    assert fingerprints.simulated_files(tmp_path) == [folder / "a", folder / "b"]
    assert not list(tmp_path.glob("*.partial")) and not list(tmp_path.glob(".*.partial"))
    place(tmp_path, "newer")
    assert sorted(path.read_text() for path in folder.iterdir()) == ["a newer", "b newer"]


@on_unix("harmless signal that tells whether a process runs")
def test_what_a_process_is_writing_holds_until_it_ends(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    claims = [tmp_path / f".simulation.{n}.partial" for n in (os.getppid(), gone.pid, os.getpid())]
    for claim in claims:
        (claim / "train_data").mkdir(parents=True)
    with pytest.raises(InputError, match=rf"another process \({os.getppid()}\)"):
        place(tmp_path, "new")
    assert [claim.exists() for claim in claims] == [True, False, False]
    claims[0].rename(claims[1])
    place(tmp_path, "new")
    assert not claims[1].exists()
