"""The fingerprint of a script changes with its code and its imports, and with nothing else."""

import shutil
from pathlib import Path

from common import layout, source_code

import pytest
from conftest import Write

# Files that an entry imports, directly or through other files. All forms of import occur.
USED = {
    "common/__init__.py": "",
    "common/a.py": "from . import b\n",
    "common/b.py": "x = (1  # Not Python.\n",
    "common/deep/__init__.py": "",
    "common/deep/c.py": "import common.b\n",
    "task_1/entry.py": "import numpy, helper\nfrom common import (  # Why.\n    a as z,\n)\n",
    "task_1/helper.py": "def f():\n    from common.deep import c\n",
}
# Files of the kit that the entry does not import. In task_1/entry.py, `import numpy` imports the
# library and not the folder task_1/numpy, which lacks the file __init__.py of a package.
UNUSED = {"common/unused.py": "y = 1\n", "task_1/other.py": "", "task_1/numpy/model.py": ""}


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write) -> Path:
    """Make a kit of the files in USED and UNUSED; return the path of its entry, task_1/entry.py."""
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    for name, text in {**USED, **UNUSED}.items():
        write(name, text)
    return tmp_path / "task_1/entry.py"


def test_the_files_of_an_entry_are_those_that_it_imports(entry: Path, tmp_path: Path) -> None:
    files = source_code.files_of(entry)
    assert {path.relative_to(tmp_path.resolve()).as_posix() for path in files} == {*USED}


@pytest.mark.parametrize("name", [*USED, *UNUSED])
def test_the_fingerprint_changes_only_with_files_that_are_imported(
    entry: Path, tmp_path: Path, name: str
) -> None:
    before = source_code.fingerprint(entry)
    path = tmp_path / name
    path.write_text(path.read_text() + "z = 2\n")
    has_changed = source_code.fingerprint(entry) != before
    assert has_changed == (name in USED)


def test_the_fingerprint_changes_if_an_imported_file_is_removed_or_added(entry: Path) -> None:
    helper = entry.with_name("helper.py")
    before = source_code.fingerprint(entry)
    content = helper.read_bytes()
    helper.unlink()
    assert source_code.fingerprint(entry) != before
    helper.write_bytes(content)
    assert source_code.fingerprint(entry) == before


def test_line_ends_do_not_change_the_fingerprint(entry: Path) -> None:
    before = source_code.fingerprint(entry)
    entry.write_bytes(entry.read_bytes().replace(b"\n", b"\r\n"))
    assert source_code.fingerprint(entry) == before


def test_modules_of_a_folder_without_init_are_found(entry: Path, tmp_path: Path) -> None:
    entry.write_text("from task_1 import other\nimport task_1.helper\n")
    files = source_code.files_of(entry)
    assert {tmp_path.resolve() / f"task_1/{name}.py" for name in ("other", "helper")} < set(files)


def test_moving_an_entry_does_not_change_the_fingerprint(entry: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(tmp_path / "task_1", tmp_path / "elsewhere/task_1"))
    assert source_code.fingerprint(moved / "entry.py") == source_code.fingerprint(entry)
