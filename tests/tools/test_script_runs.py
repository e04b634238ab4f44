"""Scripts that are run for their user: their faults become one line."""

from pathlib import Path

from common import layout
from common.errors import InputError
from tools import script_runs

import pytest
from conftest import Write


def test_the_last_line_of_a_script_that_fails_is_told(write: Write) -> None:
    for text, expected in (
        ("raise SystemExit(7)\n", "exit code 7 on fold 3: it printed nothing$"),
        ("print('x\\n' * 3_000_000)\nraise SystemExit('error: the end')\n", "fold 3: the end$"),
    ):
        script = write("idea.py", text)
        with pytest.raises(InputError, match=expected):
            script_runs.run_script([script], "fold 3")


def test_no_metadata_are_named_that_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "METADATA_DIR", tmp_path / "none")
    assert script_runs.metadata_of(layout.TRAIN_DIR / "a.csv") is None


def test_a_script_that_reads_metadata_is_known_by_its_text(write: Write) -> None:
    names = ("majority", "item_response", "gradient_boosting")
    scripts = [layout.ROOT / f"task_1/sample_model_{name}.py" for name in names]
    assert [script_runs.reads_metadata(script) for script in scripts] == [False, True, True]
    text = "# coding: latin-1\nname = 'é'  # --metadata_dir\n".encode("latin-1")
    assert script_runs.reads_metadata(write("idea.py", text))
