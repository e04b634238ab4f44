"""The list of the kit's files holds every file of the kit, and no file that a user adds."""

import os
import re
from pathlib import Path

from tools.kit_files import find_kit_files, glob_kit

import pytest
import sample_blocks
from conftest import PAGES, ROOT, commands, imported

pytestmark = pytest.mark.files
# Names of the entries that the commands in WRITE_YOUR_OWN_ENTRY.md make.
ENTRIES_OF_THE_GUIDE = ("my_idea", "my_ranking", "my_questions")


def test_modules_that_the_kit_imports_belong_to_it() -> None:
    """A module of the kit lies beside the file that imports it, or in one of the kit's packages."""
    files = {*find_kit_files()}
    programs = [path for path in files if path.suffix == ".py"]
    for path in programs:
        for name in imported(path):
            for folder in (path.parent, ROOT):
                module = folder / f"{name.replace('.', '/')}.py"
                assert module in files or not module.exists(), f"{path} imports {module}"


def test_files_that_pages_link_to_belong_to_the_kit() -> None:
    files = {*find_kit_files()}
    folders = {folder for path in files for folder in path.parents}
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
            path = Path(os.path.normpath(ROOT / page.parent / target))
            assert path in files | folders, f"{page} links to {path}"


def test_scripts_that_pages_run_belong_to_the_kit() -> None:
    files = {*find_kit_files()}
    for page in PAGES:
        for _, script, *_ in commands(ROOT / page):
            is_made_by_the_guide = any(name in script for name in ENTRIES_OF_THE_GUIDE)
            if script.endswith(".py") and not is_made_by_the_guide:
                assert {ROOT / script, ROOT / page.parent / script} & files, f"{page} runs {script}"


def test_files_that_a_user_adds_do_not_belong_to_the_kit(tmp_path: Path) -> None:
    """A file belongs to the kit if the kit lists its name, or the whole folder in which it lies.

    All of common/ belongs to the kit, except cached files (__pycache__). The test makes files of
    both kinds in an empty folder.
    """
    files_of_the_kit = (
        "README.md",
        "task_1/sample_model_majority.py",
        "common/item_response/model.py",
    )
    files_of_the_user = (
        "NOTES.md",
        "my_idea.py",
        "data/mine.csv",
        "data/train_data/notes.md",
        "task_1/my_idea.py",
        "task_4/my_questions/model.py",
        "related_challenges/cloze/my_idea.py",
        "course/a.py",
        "submissions/old.py",
        "common/__pycache__/io.cpython-311.pyc",
    )
    for name in (*files_of_the_kit, *files_of_the_user):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert find_kit_files(tmp_path) == sorted(tmp_path / name for name in files_of_the_kit)
    # `glob_kit` finds those of the kit's files that match a pattern.
    assert glob_kit("task_*/*.py", tmp_path) == [tmp_path / "task_1/sample_model_majority.py"]


@pytest.mark.skipif(not os.environ.get("KIT_AS_PUBLISHED"), reason="only .ci/run asks for it")
def test_the_record_holds_the_marked_blocks_of_all_sample_models() -> None:
    """If this fails, run `python tests/sample_blocks.py`.

    The record, tests/sample_blocks.json, tells whether a user has edited the marked block of a
    sample model. Tests of an edited model are skipped. If the record were out of date, tests would
    be skipped although no user has edited a block.
    """
    recorded = sample_blocks.RECORD.read_text(encoding="utf-8")
    assert recorded == sample_blocks.format_record()
