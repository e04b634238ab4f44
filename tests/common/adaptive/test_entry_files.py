"""An entry's folder is refused if no zip can hold its files, or if it is too large."""

from pathlib import Path

from common.adaptive import entry_files
from common.errors import InputError

import pytest
from conftest import Write
from platforms import on_linux, on_unix, with_links

LEADS_OUT = "is a link that leads out of the entry's folder"


@with_links
@pytest.mark.parametrize(
    ("name", "target", "fault"),
    [
        pytest.param("notes.txt", "nowhere", LEADS_OUT, id="link to nothing"),
        pytest.param(entry_files.ENTRY_FILE, "../secret", LEADS_OUT, id="link out of the folder"),
        pytest.param("folder", "parts", "is not a file, expected one", id="link to a folder"),
        pytest.param(
            "mine\udc80.pt",
            "parts/table.csv",
            "has a name of odd characters, expected plain text",
            id="name that is not UTF-8",
            marks=on_linux("file names that are not UTF-8"),
        ),
    ],
)
def test_a_file_that_no_zip_can_hold_is_refused(
    write: Write, tmp_path: Path, name: str, target: str, fault: str
) -> None:
    """An entry may be submitted as a folder, but only with files that the zip could hold, too.

    The file `name` of the entry's folder is a symlink to `target`. The message ends in `fault`.
    """
    # Files to which a symlink may lead, outside the folder and in it, and the entry's code.
    for existing in ("secret", "package/parts/table.csv", f"package/{entry_files.ENTRY_FILE}"):
        write(existing, "")
    package = tmp_path / "package"
    (package / name).unlink(missing_ok=True)
    (package / name).symlink_to(target)

    # The message escapes odd characters of a name, so the test looks only for the name's first
    # letters.
    first_letters = name[:4]
    with pytest.raises(InputError, match=rf"{first_letters}\S*: {fault}"):
        entry_files.unpack(package, tmp_path / "copy")


@on_unix("holes in files")
def test_a_folder_that_is_too_large_is_refused(write: Write, tmp_path: Path) -> None:
    with write(f"package/{entry_files.ENTRY_FILE}", "").open("wb") as file:
        # This makes a sparse file of 9 GiB, which takes no space on the disk.
        file.truncate(9 << 30)
    with pytest.raises(InputError, match=r"package: holds 9,663,676,416 bytes, expected at most 8"):
        entry_files.collect(tmp_path / "package")
