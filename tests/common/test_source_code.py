"""The fingerprint of a script changes with its code and its imports, and with nothing else."""

import shutil
from pathlib import Path

import pytest
from conftest import ROOT

from common import layout, source_code


def names(*scripts: Path) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for path in source_code.files_of(*scripts)
        if path.is_relative_to(ROOT)
    }


def test_files_of_a_sample_model() -> None:
    found = names(ROOT / "task_1/sample_model_majority.py")
    assert "task_1/sample_model_majority.py" in found
    assert {"common/__init__.py", "common/answers.py", "common/io.py", "common/cli.py"} <= found
    assert not any(name.startswith(("tests/", "data/", "task_2")) for name in found)
    assert "common/adaptive/game.py" not in found


def test_modules_beside_a_script_and_inside_functions() -> None:
    found = names(ROOT / "task_3/compare_features.py")
    assert {"task_3/question_features.py", "common/expert_judgements.py"} <= found
    assert "common/adaptive/playing.py" in names(ROOT / "common/check_submission.py")
    # task_4/numpy/ has the name of the library, which is not a file of the kit.
    assert "task_4/numpy/model.py" not in names(ROOT / "task_4/package.py")


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a small kit with an entry that imports in all ways."""
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    files = {
        "common/__init__.py": "",
        "common/a.py": "from . import b\n",
        "common/b.py": "x = 1\n",
        "common/unused.py": "y = 1\n",
        "common/deep/__init__.py": "",
        "common/deep/c.py": "import common.b\n",
        "task_1/entry.py": "import helper\nimport common.deep.c\nfrom common import a as z\n",
        "task_1/helper.py": "def f():\n    from common.deep import c\n",
        "task_1/other.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "task_1/entry.py"


USED = {"common/__init__.py", "common/a.py", "common/b.py", "common/deep/__init__.py",
        "common/deep/c.py", "task_1/entry.py", "task_1/helper.py"}  # fmt: skip


def test_every_import_is_followed_and_nothing_else(entry: Path) -> None:
    root = entry.parents[1]
    files = source_code.files_of(entry)
    assert {path.relative_to(root.resolve()).as_posix() for path in files} == USED


@pytest.mark.parametrize("name", [*sorted(USED), "common/unused.py", "task_1/other.py"])
def test_the_fingerprint_changes_with_what_is_used_only(entry: Path, name: str) -> None:
    before = source_code.fingerprint(entry)
    path = entry.parents[1] / name
    path.write_text(path.read_text() + "z = 2\n")
    assert (source_code.fingerprint(entry) != before) == (name in USED)


def test_line_ends_and_the_place_change_nothing(entry: Path, tmp_path: Path) -> None:
    before = source_code.fingerprint(entry)
    entry.write_bytes(entry.read_bytes().replace(b"\n", b"\r\n"))
    assert source_code.fingerprint(entry) == before
    moved = Path(shutil.copytree(tmp_path / "task_1", tmp_path / "elsewhere/task_1"))
    assert source_code.fingerprint(moved / "entry.py") == before


def test_a_file_that_is_not_python(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import (\n")
    assert source_code.files_of(path) == [path.resolve()]
    assert len(source_code.fingerprint(path)) == 12


def test_commands_in_a_header(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        '"""A.\n\nRun:     python b/a.py --local\n         python c.py\nWrites: python"""'
    )
    assert source_code.commands_in_header(path) == [["b/a.py", "--local"], ["c.py"]]
    path.write_text('"""Runs nothing: python."""')
    assert source_code.commands_in_header(path) == []
    path.write_text("")
    assert source_code.commands_in_header(path) == []
