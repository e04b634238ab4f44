"""What the folder of an entry may not hold."""

from pathlib import Path

from common.adaptive import entry_files
from common.errors import InputError

import pytest
from conftest import Write


@pytest.fixture
def package(tmp_path: Path, write: Write) -> Path:
    for name in ("submission_model_task_4.py", "model.py", "mine.pt", "parts/table.csv"):
        write(f"package/{name}", "")
    return tmp_path / "package"


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
    package: Path, write: Write, tmp_path: Path, name: str, target: str
) -> None:
    write("secret", "")
    (package / name).unlink(missing_ok=True)
    (package / name).symlink_to(target)
    with pytest.raises(InputError, match=f"{name}: is a link that leads out of the entry's folder"):
        entry_files.unpack(package, tmp_path / "copy")


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
