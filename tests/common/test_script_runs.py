"""Scripts that are run for their user: their faults become one line, and they end with the kit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from common import layout, script_runs
from common.errors import InputError

Write = Callable[[str, str], Path]


def test_the_last_line_of_a_script_that_fails_is_told(write: Write) -> None:
    script = write("idea.py", "print('begun')\nraise ValueError('no such thing')\n")
    expected = r"idea\.py: ended with exit code 1 on fold 3: ValueError: no such thing$"
    with pytest.raises(InputError, match=expected):
        script_runs.run_script([script], "fold 3")
    silent = write("silent.py", "raise SystemExit(7)\n")
    with pytest.raises(InputError, match="exit code 7 on fold 1: it printed nothing"):
        script_runs.run_script([silent], "fold 1")
    with pytest.raises(InputError, match=r"^task_4/x/train_model.py: ended"):
        script_runs.run_script([silent], "fold 1", layout.ROOT / "task_4/x/train_model.py")


def test_a_script_that_prints_much_does_no_harm(write: Write) -> None:
    script = write("idea.py", "print('x\\n' * 3_000_000)\nraise SystemExit('error: the end')\n")
    with pytest.raises(InputError, match=r"fold 1: the end$"):
        script_runs.run_script([script], "fold 1")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_no_script_outlives_the_command_that_runs_it(write: Write, tmp_path: Path) -> None:
    """Also one that goes on after Control-C, as the sample models do."""
    sign = tmp_path / "alive"
    script = write(
        "idea.py",
        "import pathlib, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"for k in range(600):\n    pathlib.Path({str(sign)!r}).write_text(str(k))\n"
        "    time.sleep(0.05)\n",
    )
    code = (
        "from common import cli, script_runs\n"
        f"cli.run(lambda: script_runs.run_script([{str(script)!r}], 'fold 1'))\n"
    )
    for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        sign.unlink(missing_ok=True)
        process = subprocess.Popen([sys.executable, "-c", code], cwd=layout.ROOT)
        while not sign.exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait() == expected
        last = sign.read_text()
        time.sleep(0.3)
        assert sign.read_text() == last


def test_the_task_of_an_entry(tmp_path: Path) -> None:
    assert script_runs.task_of(layout.ROOT / "task_1/sample_model_majority.py") == 1
    assert script_runs.task_of(layout.ROOT / "task_2/sample_model_majority.py") == 2
    assert script_runs.task_of(layout.ROOT / "task_4/numpy") == 4
    for path in ("task_3/sample_model_random.py", "task_1/README.md"):
        with pytest.raises(InputError, match=r"is no script in task_1/ or task_2/"):
            script_runs.task_of(layout.ROOT / path)
    with pytest.raises(InputError, match=r"train_model\.py: file not found"):
        script_runs.task_of(tmp_path)


def test_metadata_belong_to_answers_in_data_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TRAIN_DIR", "TEST_INPUT_DIR", "METADATA_DIR"):
        monkeypatch.setattr(layout, name, tmp_path / name)
    assert script_runs.metadata_of(layout.TRAIN_DIR / "a.csv") is None
    layout.METADATA_DIR.mkdir()
    assert script_runs.metadata_of(layout.TRAIN_DIR / "a.csv") == layout.METADATA_DIR
    assert script_runs.metadata_of(tmp_path / "elsewhere" / "a.csv") is None
    reads = [
        script_runs.reads_metadata(layout.ROOT / f"task_1/sample_model_{name}.py")
        for name in ("majority", "item_response", "gradient_boosting")
    ]
    assert reads == [False, True, True]


def test_a_script_need_not_be_written_in_utf_8(tmp_path: Path) -> None:
    script = tmp_path / "idea.py"
    script.write_bytes("# coding: latin-1\nname = 'é'  # --metadata_dir\n".encode("latin-1"))
    assert script_runs.reads_metadata(script)
