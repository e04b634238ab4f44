"""Simulated files are distinguished from real ones, and derived files from those of other data."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Run

from common import io, layout, provenance, simulated_tree
from common.errors import InputError

Fails = Callable[..., str]
HEADER = "QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue\n"


def real_answers(n_students: int = 40, n_questions: int = 30) -> str:
    """Return answers that nobody simulated, in the official columns."""
    pairs = [(q, s) for s in range(n_students) for q in range(n_questions)]
    rows = [
        f"{q},{s},{row},{int((q + s) % 3 > 0)},1,{1 if (q + s) % 3 else 2}"
        for row, (q, s) in enumerate(pairs)
    ]
    return HEADER + "\n".join(rows) + "\n"


def replace(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def page(kit: Path, task: int) -> str:
    return (kit / f"data/test_output/scores_task_{task}.html").read_text()


def test_each_group_of_tasks_is_judged_by_its_own_files(tiny_kit: Path, run: Run) -> None:
    """Real files of tasks 3/4 beside simulated ones make no score of task 1 real, or vice versa."""
    replace(tiny_kit / "data/train_data/train_task_3_4.csv", real_answers())
    for script, *flags in (
        ("task_1/local_data_split.py",),
        ("task_1/sample_model_majority.py", "--local"),
        ("task_1/local_evaluation.py",),
        ("task_4/local_data_split.py",),
        ("task_4/numpy/train_model.py", "--local"),
        ("task_4/numpy/local_evaluation.py", "--skip_curve"),
    ):
        done = run([script, *flags], kit=tiny_kit)
        assert done.returncode == 0, done.stderr
    assert "From simulated answers" in page(tiny_kit, 1)
    assert "From simulated answers" not in page(tiny_kit, 4)
    lines = (tiny_kit / "data/test_output/results.jsonl").read_text().splitlines()
    assert [json.loads(line)["simulated"] for line in lines] == [True, False]


def test_a_stale_template_is_refused_and_the_command_mends_it(
    tiny_kit: Path, run: Run, fails: Fails
) -> None:
    submission = tiny_kit / "submissions/submission_task_1.zip"
    assert run(["task_1/sample_model_majority.py"], kit=tiny_kit).returncode == 0
    answers = tiny_kit / "data/test_data/test_public_answers_task_1.csv"
    rows = answers.read_text().splitlines()
    replace(answers, "\n".join(rows[:-1]) + "\n")
    for command in (
        ["task_1/sample_model_majority.py"],
        ["-m", "common.check_submission", submission],
    ):
        line = fails(command, kit=tiny_kit, cwd=tiny_kit)
        assert "submission_task_1_2.csv: was made from other data than now lie in" in line
        assert "`python -m common.templates` makes it again" in line
    assert run(["-m", "common.templates"], kit=tiny_kit, cwd=tiny_kit).returncode == 0
    assert run(["task_1/sample_model_majority.py"], kit=tiny_kit).returncode == 0
    # The ranking's template is made from other files and stays current.
    assert run(["task_3/sample_model_random.py"], kit=tiny_kit).returncode == 0


def test_a_template_of_ones_own_needs_no_stamp(tiny_kit: Path, run: Run, fails: Fails) -> None:
    template = tiny_kit / "submission_templates/submission_task_1_2.csv"
    template.write_text("QuestionId,UserId\n0,0\n1,0\n")
    line = fails(["task_1/sample_model_majority.py"], kit=tiny_kit)
    assert "remove the .json if the file is your own" in line
    (tiny_kit / "submission_templates/template_task_1_2.json").unlink()
    assert run(["task_1/sample_model_majority.py"], kit=tiny_kit).returncode == 0


def test_files_of_two_splits_are_never_used_together(
    tiny_kit: Path, run: Run, fails: Fails, tmp_path: Path
) -> None:
    """A kill between two renames leaves the training answers of one split with files of another."""
    for seed in (0, 1):
        done = run(["task_1/local_data_split.py", "--seed", seed], kit=tiny_kit)
        assert done.returncode == 0, done.stderr
        shutil.copytree(tiny_kit / "data/test_input", tmp_path / f"split_{seed}")
    assert run(["task_1/sample_model_majority.py", "--local"], kit=tiny_kit).returncode == 0
    names = ["split_task_1_2.json", "train_task_1_2.csv", "valid_task_1_2.csv"]
    for n_renamed in (1, 2):
        folder = tiny_kit / "data/test_input"
        for path in (tmp_path / "split_1").iterdir():
            is_renamed = path.name in names[:n_renamed]
            source = tmp_path / ("split_0" if is_renamed else "split_1") / path.name
            shutil.copy(source, folder / path.name)
        script = ("task_1/sample_model_majority.py", "--local")
        line = fails(script if n_renamed == 1 else ["task_1/local_evaluation.py"], kit=tiny_kit)
        assert "is not the file that" in line and "of another split" in line
        assert "`python task_1/local_data_split.py --seed 0` makes it again" in line


def test_a_split_of_former_data_is_refused(tiny_kit: Path, run: Run, fails: Fails) -> None:
    assert run(["task_4/local_data_split.py"], kit=tiny_kit).returncode == 0
    replace(tiny_kit / "data/train_data/train_task_3_4.csv", real_answers())
    line = fails(["task_4/numpy/train_model.py", "--local"], kit=tiny_kit)
    assert "train_task_4.csv: was made from other data than now lie in" in line
    assert "`python task_4/local_data_split.py` makes it again" in line


@pytest.mark.parametrize(
    "marker",
    [
        "{half",
        "[]",
        '"text"',
        "{}",
        '{"files": []}',
        '{"files": {"train_data/a.csv": 7}}',
        '{"files": {"train_data/a.csv": {"bytes": "7", "sha256": null}}}',
        '{"files": {"../outside.csv": {"bytes": 5, "sha256": "HASH"}}}',
        '{"files": {"train_data/../../outside.csv": {"bytes": 5, "sha256": "HASH"}}}',
        '{"files": {"train_data\\\\..\\\\..\\\\outside.csv": {"bytes": 5, "sha256": "HASH"}}}',
        '{"files": {}, "replaced": {"/OUTSIDE": {"bytes": 5, "sha256": "HASH"}}}',
        '{"files": {}, "replaced": 5}',
        "[" * 100_000,
    ],
)
def test_a_marker_never_reaches_outside_its_folder(tmp_path: Path, run: Run, marker: str) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text("mine\n")
    digest = str(provenance.fingerprint(outside)["sha256"])
    data = tmp_path / "data"
    data.mkdir()
    marker = marker.replace("HASH", digest).replace("/OUTSIDE", str(outside))
    (data / layout.SIMULATED_MARKER_NAME).write_text(marker)
    assert provenance.simulated_files(data) == []
    done = run(["related_challenges/cloze/generate_sample.py", "--output_dir", data])
    assert done.returncode == 0, done.stderr
    assert outside.read_text() == "mine\n"


def test_a_damaged_stamp_is_reported(tmp_path: Path) -> None:
    path = tmp_path / layout.TRAIN_TASK_4
    path.write_text(HEADER)
    for content in ("{half", "[]", "{}", '{"files": {}, "made_from": {}, "simulated": 1}'):
        (tmp_path / "split_task_4.json").write_text(content)
        with pytest.raises(InputError, match=r"split_task_4\.json: is damaged"):
            provenance.require_current([path])


def write_two_files(folder: Path) -> dict[str, Any]:
    (folder / "train_data").mkdir()
    for name in ("a", "b"):
        (folder / "train_data" / name).write_text(f"{name} of {os.getpid()}")
    return {}


def test_a_full_disk_leaves_the_former_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever writing fails, all of the former files are there and known as simulated."""
    simulated_tree.place_simulated(tmp_path, ["train_data"], write_two_files)
    before = {path.name: path.read_bytes() for path in (tmp_path / "train_data").iterdir()}

    def fails_at_once(folder: Path) -> dict[str, Any]:
        (folder / "train_data").mkdir()
        (folder / "train_data" / "a").write_text("new")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        simulated_tree.place_simulated(tmp_path, ["train_data"], fails_at_once)

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(io, "write_text", full_disk)
        simulated_tree.place_simulated(tmp_path, ["train_data"], write_two_files)
    assert {p.name: p.read_bytes() for p in (tmp_path / "train_data").iterdir()} == before
    assert len(provenance.simulated_files(tmp_path)) == 2
    assert not list(tmp_path.glob("*.partial")) and not list(tmp_path.glob(".*.partial"))


def test_killed_between_two_renames_all_files_are_still_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = [lambda folder, text=text: _write(folder, text) for text in ("old", "new", "newer")]
    simulated_tree.place_simulated(tmp_path, ["train_data"], write[0])
    rename, n_renames = Path.replace, []

    def killed_at_the_second(self: Path, target: Path) -> Path:
        if self.name in "ab":
            n_renames.append(1)
            if len(n_renames) == 2:
                raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", killed_at_the_second)
        simulated_tree.place_simulated(tmp_path, ["train_data"], write[1])
    folder = tmp_path / "train_data"
    assert sorted(path.read_text() for path in folder.iterdir()) == ["a new", "b old"]
    assert len(provenance.simulated_files(tmp_path)) == 2
    simulated_tree.place_simulated(tmp_path, ["train_data"], write[2])
    assert sorted(path.read_text() for path in folder.iterdir()) == ["a newer", "b newer"]


def _write(folder: Path, text: str) -> dict[str, Any]:
    (folder / "train_data").mkdir()
    for name in "ab":
        (folder / "train_data" / name).write_text(f"{name} {text}")
    return {}


def test_two_generators_never_mix(tmp_path: Path) -> None:
    """Of two that start together at most one writes; the files left in the end are of one seed."""
    command = [
        *(sys.executable, ROOT / "data/generate_sample.py", "--size", "tiny"),
        *("--output_dir", tmp_path / "data", "--seed"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [
        subprocess.Popen([*command, str(seed)], stderr=subprocess.PIPE, env=environment, text=True)
        for seed in (3, 4)
    ]
    errors = [process.communicate()[1] for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) in ([0, 0], [0, 2])
    for code, error in zip(codes, errors, strict=True):
        assert (code == 0) or "another process" in error
    marker = provenance.read_marker(tmp_path / "data")
    assert marker is not None
    assert len(provenance.simulated_files(tmp_path / "data")) == len(marker["files"])


@pytest.mark.skipif(os.name == "nt", reason="Windows does not tell whether a process runs")
def test_a_claim_holds_as_long_as_its_process(tmp_path: Path) -> None:
    claim = tmp_path / ".simulation.partial"
    claim.mkdir()
    (claim / ".process").write_text(str(os.getpid()))
    with pytest.raises(InputError, match=f"another process \\({os.getpid()}\\)"):
        simulated_tree.place_simulated(tmp_path, ["train_data"], write_two_files)
    # The folder of a killed run is removed.
    gone = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    gone.start()
    assert gone.pid is not None
    (claim / ".process").write_text(str(gone.pid))
    os.kill(gone.pid, signal.SIGKILL)
    gone.join()
    simulated_tree.place_simulated(tmp_path, ["train_data"], write_two_files)
    assert not claim.exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows does not tell whether a process runs")
def test_leftovers_of_killed_runs_are_swept(tmp_path: Path) -> None:
    path = tmp_path / "scores [1].txt"
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True)  # fmt: skip
    dead = path.with_name(f".{path.name}.{done.stdout.strip()}.partial")
    alive = path.with_name(f".{path.name}.{os.getppid()}.partial")
    other = path.with_name(f".other.txt.{done.stdout.strip()}.partial")
    for file in (dead, alive, other):
        file.write_text("half")
    io.write_text(path, "whole")
    assert path.read_text() == "whole"
    assert not dead.exists()
    assert alive.exists() and other.exists()
