"""Which files belong to the kit: all that it uses, and none that a user adds."""

import os
import re
from pathlib import Path

from tools.kit_files import find_kit_files, glob_kit

import pytest
import sample_blocks
from conftest import PAGES, ROOT, commands, imported

pytestmark = pytest.mark.files
# The guide makes these.
OF_THE_GUIDE = ("my_idea", "my_ranking", "my_questions")


def test_what_the_kit_imports_belongs_to_it() -> None:
    """A module beside a script of the kit, or in one of its packages."""
    files = {*find_kit_files()}
    for path in (path for path in files if path.suffix == ".py"):
        for name in imported(path):
            for folder in (path.parent, ROOT):
                module = folder / f"{name.replace('.', '/')}.py"
                assert module in files or not module.exists(), f"{path} imports {module}"


def test_what_pages_name_belongs_to_the_kit() -> None:
    files = {*find_kit_files()}
    folders = {folder for path in files for folder in path.parents}
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
            path = Path(os.path.normpath(ROOT / page.parent / target))
            assert path in files | folders, f"{page} links to {path}"
        for _, first, *_ in commands(ROOT / page):
            is_made = any(name in first for name in OF_THE_GUIDE)
            if first.endswith(".py") and not is_made:
                assert {ROOT / first, ROOT / page.parent / first} & files, f"{page} runs {first}"


def test_what_a_user_adds_does_not_belong_to_the_kit(tmp_path: Path) -> None:
    own = ("README.md", "task_1/sample_model_majority.py", "common/item_response/model.py")
    added = (
        "NOTES.md", "my_idea.py", "data/mine.csv", "data/train_data/notes.md", "task_1/my_idea.py",
        "task_4/my_questions/model.py", "related_challenges/cloze/my_idea.py", "course/a.py",
        "submissions/old.py", "common/__pycache__/io.cpython-311.pyc",
    )  # fmt: skip
    for name in (*own, *added):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_kit_files(tmp_path) == sorted(tmp_path / name for name in own)
    assert glob_kit("task_*/*.py", tmp_path) == [tmp_path / own[1]]


@pytest.mark.skipif(not os.environ.get("KIT_AS_PUBLISHED"), reason="only .ci/run asks for it")
def test_the_recorded_blocks_are_those_of_the_samples() -> None:
    """Otherwise tests are skipped that should run: `python tests/sample_blocks.py` records them."""
    recorded = sample_blocks.RECORD.read_text(encoding="utf-8")
    assert recorded == sample_blocks.format_record()
