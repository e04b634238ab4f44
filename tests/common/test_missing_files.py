"""The message about a missing file names the command that makes it."""

from pathlib import Path

from common import layout
from common.missing_files import where_to_get

import pytest

RELATED = layout.RELATED_DIR / "cloze/data"
# A part of the hint for a missing file; "" if there is no hint.
HINTS = {
    layout.TRAIN_DIR / layout.TRAIN_TASK_1_2: "`python data/generate_sample.py` simulates",
    Path(layout.TEMPLATE_TASK_1_2): "`python -m tools.templates` builds it",
    RELATED / "train_data/a.csv": "`python related_challenges/cloze/generate_sample.py` sim",
    RELATED / "test_input/a.csv": "`python related_challenges/cloze/local_data_split.py` mak",
    # This is no official name: the user has probably mistyped the name of their own file.
    layout.TRAIN_DIR / "train_task_1_2_mine.csv": "",
}


@pytest.mark.parametrize(("path", "hint"), HINTS.items())
def test_missing_files_name_the_command_that_makes_them(path: Path, hint: str) -> None:
    assert hint in where_to_get(path)
    assert bool(where_to_get(path)) == bool(hint)
