"""Cross-validation: the entry's own script on every fold, one line of the record, no traces."""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Run

from common import cross_validate
from common.scores import outcomes

VALIDATE = ["-m", "common.cross_validate"]


def files_of(kit: Path) -> set[str]:
    paths = (path for path in kit.rglob("*") if "__pycache__" not in path.parts)
    return {path.relative_to(kit).as_posix() for path in paths if path.is_file()}


def record_of(kit: Path) -> list[dict[str, Any]]:
    text = (kit / "data/test_output/results.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_scripts_and_packages_on_every_fold(tiny_kit: Path, run: Run, tmp_path: Path) -> None:
    before = files_of(tiny_kit)

    def ok(*words: str) -> str:
        temporary = tmp_path / "temporary"
        temporary.mkdir(exist_ok=True)
        os.environ["TMPDIR"] = str(temporary)
        done = run([*VALIDATE, *words], kit=tiny_kit, cwd=tiny_kit)
        del os.environ["TMPDIR"]
        assert done.returncode == 0, done.stderr
        assert list(temporary.iterdir()) == []
        return str(done.stdout)

    first = ok("task_1/sample_model_majority.py")
    flags = ("--folds", "2", "--repeats", "2", "--seed", "3", "--", "--dimensions", "2")
    second = ok("task_2/sample_model_matrix_factorization.py", *flags, "--seed", "5")
    third = ok("task_4/numpy", "--folds", "3", "--targets_queryable")
    ok("task_1/sample_model_matrix_factorization.py")

    lines = record_of(tiny_kit)
    assert [line["phase"] for line in lines] == ["cross-validation"] * 4
    assert [line["rules"] for line in lines[:3]] == [
        "5 folds, seed 0",
        "2 folds, 2 repeats, seed 3",
        "targets may be asked, unobserved = -1, 3 folds, seed 0",
    ]
    assert [line["model"] for line in lines[:3]] == ["majority", "matrix_factorization", "numpy"]
    assert [line["made_by"] for line in lines[:3]] == [
        "python task_1/sample_model_majority.py",
        "python task_2/sample_model_matrix_factorization.py --dimensions 2 --seed 5",
        "python task_4/numpy/train_model.py",
    ]
    assert [line["seed"] for line in lines[:3]] == [None, 5, None]
    assert list(lines[0]["parts"]) == [f"fold {k}" for k in range(1, 6)]
    assert list(lines[1]["parts"]) == [f"repeat {r}, fold {k}" for r in (1, 2) for k in (1, 2)]
    for line, printed in zip(lines, (first, second, third), strict=False):
        scores = list(line["parts"].values())
        assert line["score"] == pytest.approx(statistics.fmean(scores))
        assert f"score {line['score']:.4f} ± {statistics.stdev(scores):.4f}" in printed
        for title, score in line["parts"].items():
            assert f"\n{title}: {score:.4f}\n" in f"\n{printed}"
        assert line["seconds"] > 0 and line["memory"] > 1e7 and line["simulated"]

    # Nothing but the record is left behind.
    new = {name for name in files_of(tiny_kit) - before if "/outcomes/" not in name}
    assert new == {"data/test_output/results.jsonl"}

    # Of the same folds: two entries can be compared, and stand in one table.
    compared = run(["-m", "common.compare", "1", "4"], kit=tiny_kit).stdout
    assert re.search(r"task 1, cross-validation, 5 folds, seed 0, simulated", compared)
    assert "B is better by" in compared
    board = run(["-m", "common.scoreboard"], kit=tiny_kit).stdout
    table = board[board.index("Task 1: right or wrong: accuracy, cross-validation") :]
    spread = statistics.stdev(lines[0]["parts"].values())
    assert re.search(rf"  majority +{lines[0]['score']:.4f} ± {spread:.4f} +1 ", table)


def test_every_answer_is_predicted_once_by_what_never_saw_it(tiny_kit: Path, run: Run) -> None:
    """A script that remembers its training answers knows none of those it predicts.

    It gets the metadata, where it reads any, since the answers are those of data/.
    """
    script = tiny_kit / "task_1/remember.py"
    text = (tiny_kit / "task_1/sample_model_majority.py").read_text()
    start, end = text.index("    n_questions = "), text.index("    # ---- End of the model.")
    block = (
        "    known = set(zip(answers.student.tolist(), answers.question.tolist()))\n"
        "    asked = zip(template.student.tolist(), template.question.tolist())\n"
        "    assert not any(pair in known for pair in asked)\n"
        "    prediction = np.ones(len(template.student), np.int8)\n"
        "    p_right = prediction / 2\n"
    )
    reading = "cli.sample_model_parser(__doc__, TASK, reads_metadata=True)"
    before = text[:start].replace("cli.sample_model_parser(__doc__, TASK)", reading)
    block += f"    assert str(paths.metadata) == {str(tiny_kit / 'data/metadata')!r}\n"
    script.write_text(before + block + text[end:])
    done = run([*VALIDATE, "task_1/remember.py", "--folds", "4"], kit=tiny_kit, cwd=tiny_kit)
    assert done.returncode == 0, done.stderr
    (line,) = record_of(tiny_kit)
    kept = outcomes.read(tiny_kit / f"data/test_output/outcomes/{line['outcomes']}.npz")
    rows = (tiny_kit / "data/train_data/train_task_1_2.csv").read_text().splitlines()[1:]
    assert kept.distinct and len(kept.right) == len(rows)
    # Always "right" is right as often as the answers are.
    header = (tiny_kit / "data/train_data/train_task_1_2.csv").read_text().split("\n", 1)[0]
    place = header.split(",").index("IsCorrect")
    assert kept.right.sum() == sum(row.split(",")[place] == "1" for row in rows)


def test_a_student_of_task_4_stays_in_one_fold() -> None:
    student = np.random.default_rng(0).integers(100, 140, 1000)
    table = pa.table({"UserId": student})
    fold = cross_validate.deal(table, 4, 5, [0, 0])
    assert all(len(np.unique(fold[student == s])) == 1 for s in np.unique(student))
    assert np.bincount([fold[student == s][0] for s in np.unique(student)]).tolist() == [8] * 5
    by_answer = cross_validate.deal(table, 1, 5, [0, 0])
    assert np.bincount(by_answer).tolist() == [200] * 5
    assert not np.array_equal(by_answer, cross_validate.deal(table, 1, 5, [0, 1]))
    assert np.array_equal(by_answer, cross_validate.deal(table, 1, 5, [0, 0]))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["task_1/my_fault.py"], r"^task_1/my_fault.py: ended with exit code 1 on fold 1: Runtime"),
        (["task_1/my_silence.py"], "has not written submission_task_1.csv on fold 1"),
        (
            ["task_1/my_gap.py"],
            r"^task_1/my_gap.py: fold 1: submission_task_1.csv: \d+ of \d+ pairs are missing",
        ),
        (["task_1/sample_model_majority.py", "--", "--nonsense"], "unrecognized arguments: --nons"),
        (["task_1/sample_model_majority.py", "--unobserved", "0"], "expected no flags of task 4"),
        (["task_1/my_fault.py", "--output_dir", "task_1/my_gap.py"], "my_gap.py: is no folder"),
        (["task_1/gone.py"], "task_1/gone.py: file not found"),
        (["task_3/sample_model_random.py"], "is no script in task_1/ or task_2/"),
        (["task_4/numpy", "--train_data", "gone.csv"], "gone.csv: file not found"),
        (["task_4/numpy", "--folds", "500000"], "--folds is 500000, expected a whole number"),
        (
            ["task_1/sample_model_majority.py", "--folds", "1"],
            "--folds is 1, expected a whole number",
        ),
        (
            ["task_4/my_breach"],
            r"^task_4/my_breach: fold 1: IsTarget, round 1, select_questions: student 0",
        ),
        (["task_4/my_fault"], r"^task_4/my_fault/train_model.py: ended with exit code 1 on fold 1"),
    ],
)
def test_what_cannot_be_cross_validated(
    tiny_kit: Path, fails: Callable[..., str], words: list[str], expected: str
) -> None:
    model = (tiny_kit / "task_1/sample_model_majority.py").read_text()
    written = "    submission.write_predictions(template, TASK, prediction, paths.output)\n"
    assert written in model
    (tiny_kit / "task_1/my_fault.py").write_text("raise RuntimeError('it broke')\n")
    (tiny_kit / "task_1/my_silence.py").write_text(model.replace(written, ""))
    shorter = written + "    paths.output.write_text('UserId,QuestionId,IsCorrect\\n1,1,1\\n')\n"
    (tiny_kit / "task_1/my_gap.py").write_text(model.replace(written, shorter))
    breach = tiny_kit / "task_4/my_breach"
    shutil.copytree(tiny_kit / "task_4/numpy", breach)
    entry = breach / "submission_model_task_4.py"
    ask = "self.model.select(can_query)"
    assert ask in entry.read_text()
    entry.write_text(entry.read_text().replace(ask, f"{ask} * 0 - 1"))
    package = tiny_kit / "task_4/my_fault"
    package.mkdir()
    (package / "train_model.py").write_text("raise RuntimeError('it broke')\n")
    assert re.search(expected, fails([*VALIDATE, *words], kit=tiny_kit, cwd=tiny_kit))
    assert not (tiny_kit / "data/test_output").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_control_c_leaves_nothing_behind(tiny_kit: Path, tmp_path: Path) -> None:
    script = tiny_kit / "task_1/slow.py"
    sign = tmp_path / "begun"
    script.write_text(f"import pathlib, time\npathlib.Path({str(sign)!r}).touch()\ntime.sleep(60)")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tiny_kit), "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [sys.executable, *VALIDATE, "task_1/slow.py"],
        cwd=tiny_kit, env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not sign.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate()
    assert process.returncode == 130
    assert printed.strip() == "stopped"
    assert list(temporary.iterdir()) == []
    assert not (tiny_kit / "data/test_output").exists()
