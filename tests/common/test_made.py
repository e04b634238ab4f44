"""Simulated files are distinguished from real ones, and derived files from those of other data."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from common import layout, made, simulated
from common.errors import InputError

import pytest
from conftest import Write, fails, succeeds
from page_reading import read_page

GENERATOR = "related_challenges/cloze/generate_sample.py"


def drop_last_row(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def test_each_group_of_tasks_is_judged_by_its_own_files(tiny_kit: Path) -> None:
    """Real files of tasks 3/4 beside simulated ones make no score of task 1 real, or vice versa."""
    train = ["task_4/numpy/train_model.py", "--local"]
    for command in ("task_1/local_data_split.py", "task_4/local_data_split.py"):
        succeeds([command], kit=tiny_kit)
    # Now they are answers that nobody simulated.
    drop_last_row(tiny_kit / "data/train_data/train_task_3_4.csv")
    line = fails(train, kit=tiny_kit)
    assert "train_task_4.csv: was made from other data than now lie in" in line
    assert "`python task_4/local_data_split.py` makes it again" in line
    for command in (
        "task_1/sample_model_majority.py --local",
        "task_1/local_evaluation.py",
        "task_4/local_data_split.py",
        " ".join(train),
        "task_4/numpy/local_evaluation.py --skip_curve",
    ):
        succeeds(command.split(), kit=tiny_kit)
    folder = tiny_kit / "data/test_output"
    pages = [read_page((folder / f"scores_task_{task}.html").read_text()) for task in (1, 4)]
    assert ["From simulated answers" in page.text for page in pages] == [True, False]
    lines = (folder / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["simulated"] for line in lines] == [True, False]


def test_a_stale_template_is_refused_and_the_command_mends_it(tiny_kit: Path) -> None:
    submission = tiny_kit / "submissions/submission_task_1.zip"
    model = ["task_1/sample_model_majority.py"]
    succeeds(model, kit=tiny_kit)
    drop_last_row(tiny_kit / "data/test_data/test_public_answers_task_1.csv")
    for command in (model, ["-m", "tools.check_submission", submission]):
        line = fails(command, kit=tiny_kit, cwd=tiny_kit)
        assert "submission_task_1_2.csv: was made from other data than now lie in" in line
        assert "`python -m tools.templates` makes it again" in line
    succeeds(["-m", "tools.templates"], kit=tiny_kit, cwd=tiny_kit)
    succeeds(model, kit=tiny_kit)
    # One of the user's own needs no record.
    template = tiny_kit / "submission_templates/submission_task_1_2.csv"
    template.write_text("QuestionId,UserId\n0,0\n1,0\n")
    assert "remove the .json if the file is your own" in fails(model, kit=tiny_kit)
    (tiny_kit / "submission_templates/template_task_1_2.json").unlink()
    succeeds(model, kit=tiny_kit)


def test_files_of_two_splits_are_never_used_together(tiny_kit: Path) -> None:
    """A kill between two renames leaves the training answers of one split with files of another."""
    record = tiny_kit / "data/test_input/split_task_1_2.json"
    succeeds(["task_1/local_data_split.py"], kit=tiny_kit)
    former = record.read_bytes()
    succeeds(["task_1/local_data_split.py", "--seed", 1], kit=tiny_kit)
    record.write_bytes(former)
    line = fails(["task_1/sample_model_majority.py", "--local"], kit=tiny_kit)
    assert "is not the file that" in line and "of another split" in line
    assert "`python task_1/local_data_split.py` makes it again" in line


def test_a_marker_never_reaches_outside_its_folder(write: Write) -> None:
    outside = write("outside.csv", "mine\n")
    known = made.fingerprint(outside)
    files, replaced = {"../outside.csv": known}, {str(outside): known}
    markers = [{"files": files}, {"files": {}, "replaced": replaced}]
    for number, marker in enumerate([*map(json.dumps, markers), "{half", "[" * 100_000]):
        data = write(f"{number}/{layout.SIMULATED_MARKER_NAME}", marker).parent
        assert made.simulated_files(data) == []
        succeeds([GENERATOR, "--output_dir", data])
        assert outside.read_text() == "mine\n"


def test_a_damaged_record_is_reported(tmp_path: Path) -> None:
    path = tmp_path / layout.TRAIN_TASK_4
    path.touch()
    former = '{"command": "python x", "files": {}, "made_from": {}, "simulated": true}'
    for content in ("{half", "[]", "{}", "[" * 100_000, former):
        (tmp_path / "split_task_4.json").write_text(content)
        with pytest.raises(InputError, match=r"split_task_4\.json: is damaged"):
            made.require_current([path])


@pytest.mark.parametrize("size", [10, 5 << 20])
def test_a_fingerprint_tells_files_apart_and_those_of_former_versions_count(
    tmp_path: Path, size: int
) -> None:
    """Of a large file the beginning, the end and what lies between are looked at, not all of it."""
    path, content = tmp_path / "train_data/a.csv", bytes(size)
    path.parent.mkdir()
    path.write_bytes(content)
    former = {"bytes": size, "sha256": sha256(content).hexdigest()}
    for known in (made.fingerprint(path), former):
        marker = {"files": {"train_data/a.csv": known}}
        (tmp_path / layout.SIMULATED_MARKER_NAME).write_text(json.dumps(marker))
        for changed, expected in (
            (content, True), (b"x" + content[1:], False), (content[:-1] + b"x", False),
            (content[1:], False), (b"x" * size, False),
        ):  # fmt: skip
            path.write_bytes(changed)
            assert made.is_simulated(path) == expected


def place(folder: Path, text: str) -> None:
    """Place two simulated files that hold a text."""

    def write(folder: Path) -> dict[str, Any]:
        (folder / "train_data").mkdir()
        for name in "ab":
            (folder / "train_data" / name).write_text(f"{name} {text}")
        return {}

    simulated.place_simulated(folder, ["train_data"], write)


@pytest.mark.parametrize(
    ("n_renames", "left"), [(0, "old old"), (1, "old old"), (2, "new old"), (3, "new new")]
)
def test_wherever_a_run_ends_all_files_are_whole_and_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_renames: int, left: str
) -> None:
    """By Control-C before the marker is renamed, or a file, or at the end."""
    folder = tmp_path / "train_data"
    place(tmp_path, "old")
    done: list[Path] = []
    rename = Path.replace

    def ends_there(self: Path, target: Path) -> Path:
        if len(done) == n_renames:
            raise KeyboardInterrupt
        done.append(target)
        return rename(self, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", ends_there)
        place(tmp_path, "new")
    texts = [path.read_text() for path in sorted(folder.iterdir())]
    assert texts == [f"{name} {text}" for name, text in zip("ab", left.split(), strict=True)]
    assert made.simulated_files(tmp_path) == [folder / "a", folder / "b"]
    assert not list(tmp_path.glob("*.partial")) and not list(tmp_path.glob(".*.partial"))
    place(tmp_path, "newer")
    assert sorted(path.read_text() for path in folder.iterdir()) == ["a newer", "b newer"]


@pytest.mark.skipif(os.name == "nt", reason="Windows does not tell whether a process runs")
def test_what_a_process_is_writing_holds_until_it_ends(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    claims = [tmp_path / f".simulation.{n}.partial" for n in (os.getppid(), gone.pid, os.getpid())]
    for claim in claims:
        (claim / "train_data").mkdir(parents=True)
    with pytest.raises(InputError, match=rf"another process \({os.getppid()}\)"):
        place(tmp_path, "new")
    assert [claim.exists() for claim in claims] == [True, False, False]
    claims[0].rename(claims[1])
    place(tmp_path, "new")
    assert not claims[1].exists()
