"""The fingerprint of a script changes with its code and its imports, and with nothing else."""

import shutil
from pathlib import Path

from common import layout, source_code

import pytest
from conftest import Write

# An entry that imports in all ways, and what else lies beside what it uses.
USED = {
    "common/__init__.py": "",
    "common/a.py": "from . import b\n",
    "common/b.py": "x = (1  # Not Python.\n",
    "common/deep/__init__.py": "",
    "common/deep/c.py": "import common.b\n",
    "task_1/entry.py": "import numpy, helper\nfrom common import (  # Why.\n    a as z,\n)\n",
    "task_1/helper.py": "def f():\n    from common.deep import c\n",
}
# A folder with the name of a library is not a file of the kit.
UNUSED = {"common/unused.py": "y = 1\n", "task_1/other.py": "", "task_1/numpy/model.py": ""}


def test_the_fingerprint_changes_with_what_is_used_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    for name, text in {**USED, **UNUSED}.items():
        write(name, text)
    entry = tmp_path / "task_1/entry.py"
    files = source_code.files_of(entry)
    assert {path.relative_to(tmp_path.resolve()).as_posix() for path in files} == {*USED}
    for name in [*USED, *UNUSED]:
        before = source_code.fingerprint(entry)
        path = tmp_path / name
        path.write_text(path.read_text() + "z = 2\n")
        assert (source_code.fingerprint(entry) != before) == (name in USED), name
    # Line ends and the place change nothing.
    before = source_code.fingerprint(entry)
    entry.write_bytes(entry.read_bytes().replace(b"\n", b"\r\n"))
    moved = Path(shutil.copytree(tmp_path / "task_1", tmp_path / "elsewhere/task_1"))
    assert source_code.fingerprint(moved / "entry.py") == before
