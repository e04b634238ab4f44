"""Which files of a folder belong to an entry, and what is said of their names."""

from pathlib import Path

from common.adaptive import entry_files
from common.errors import InputError

import pytest
from conftest import Write
from run_scripts import ROOT

TAKEN = {
    "submission_model_task_4.py", "model.py", "train_model.py", "parts/first.py", "notes/common.py",
    "parts/table.csv", "model_task_4.npy", "weights/model_task_4_a.pt", "model_task_4_b/fold_0.pt",
    "mine.pt", "weights/mine.NPZ",
}  # fmt: skip
LEFT = {
    ".hidden/model_task_4.pt", "__pycache__/model.pyc", ".model_task_4.npy.partial", ".DS_Store",
    "model_task_4.npy.partial", "parts/__pycache__/first.pyc", "__MACOSX/model_task_4.pt",
}  # fmt: skip


@pytest.fixture
def package(tmp_path: Path, write: Write) -> Path:
    for name in TAKEN | LEFT:
        write(f"package/{name}", "")
    write("package/common.py", (ROOT / "task_4/numpy/common.py").read_text())
    return tmp_path / "package"


def test_all_beside_the_entry_is_taken(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = entry_files.collect(package)
    assert files == {name: package / name for name in sorted(TAKEN)}
    (tmp_path / "link").symlink_to(package)
    assert set(entry_files.collect(tmp_path / "link")) == TAKEN
    entry_files.warn_of_names(package)
    assert [line.split(": ")[2].split()[0] for line in capsys.readouterr().err.splitlines()] == [
        "mine.pt",
        "weights/mine.NPZ",
    ]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("model_task_4_link", ".."),
        ("notes.txt", "nowhere"),
        ("model.py", "../secret"),
        ("submission_model_task_4.py", "../secret"),
    ],
)
def test_links_that_lead_out_are_refused(
    package: Path, write: Write, name: str, target: str
) -> None:
    write("secret", "")
    (package / name).unlink(missing_ok=True)
    (package / name).symlink_to(target)
    with pytest.raises(InputError, match=f"{name}: is a link that leads out of the entry's folder"):
        entry_files.collect(package)


def test_what_no_zip_can_hold_is_refused(package: Path) -> None:
    (package / "folder").symlink_to("parts")
    with pytest.raises(InputError, match="folder: is not a file, expected one"):
        entry_files.collect(package)
    (package / "folder").unlink()
    with (package / "mine.pt").open("wb") as file:
        # A hole, which takes no place.
        file.truncate(9 << 30)
    with pytest.raises(InputError, match=r"package: holds 9,663,676,416 bytes, expected at most 8"):
        entry_files.collect(package)
    (package / "mine.pt").rename(package / "mine\udc80.pt")
    with pytest.raises(InputError, match="has a name of odd characters, expected plain text"):
        entry_files.collect(package)
