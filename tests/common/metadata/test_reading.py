"""Files of metadata may be missing; none belong to answers without a folder of them."""

from pathlib import Path

from common import layout
from common.metadata import find


def test_a_file_that_is_not_there_is_not_known(tmp_path: Path) -> None:
    name = layout.ANSWER_METADATA_TASK_1_2
    assert find(None, name) is None
    assert find(tmp_path, name) is None
    (tmp_path / name).write_text("")
    assert find(tmp_path, name) == tmp_path / name
    # A broken link is a fault, which the reader reports.
    (tmp_path / layout.SUBJECT_METADATA).symlink_to(tmp_path / "moved")
    assert find(tmp_path, layout.SUBJECT_METADATA) is not None
