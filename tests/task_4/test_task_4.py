"""Task 4, run as a user runs it: split, train, evaluate, package."""

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Run

Fails = Callable[..., str]
WEIGHTS = {"model_task_4_most_popular.npy", "model_task_4_num_answers.npy"}
PUBLISHED = Path(__file__).parent / "published_entry"
EVALUATE = "task_4/numpy/local_evaluation.py"
TRAIN = "task_4/numpy/train_model.py"


def read_score(folder: Path) -> float:
    return float((folder / "scores_task_4.txt").read_text().removeprefix("score:"))


def run_all(run: Run, kit: Path, *commands: list[object]) -> str:
    printed = ""
    for command in commands:
        done = run(command, kit=kit)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        printed += done.stdout
    return printed


def most_popular_score(train: pd.DataFrame, valid: pd.DataFrame, mask: str) -> float:
    """The baseline's score in plain pandas; a tie counts as wrong, as in the official arrays."""
    mostly_right = train.groupby("QuestionId").IsCorrect.mean() > 0.5
    targets = valid[valid[mask] == 1]
    prediction = targets.QuestionId.map(mostly_right).fillna(train.IsCorrect.mean() > 0.5)
    return float((prediction.astype(int) == targets.IsCorrect).mean())


def test_local_split_training_evaluation(tiny_kit: Path, run: Run) -> None:
    """The whole way with nothing but defaults, from another working directory."""
    run_all(run, tiny_kit, ["task_4/local_data_split.py"], [TRAIN, "--local"])
    assert {path.name for path in (tiny_kit / "task_4/numpy").glob("*.npy")} > WEIGHTS
    printed = run_all(run, tiny_kit, [EVALUATE])
    test_input, test_output = tiny_kit / "data/test_input", tiny_kit / "data/test_output"
    train = pd.read_csv(test_input / "train_task_4.csv")
    valid = pd.read_csv(test_input / "valid_task_4.csv")
    assert not set(train.UserId) & set(valid.UserId)
    expected = most_popular_score(train, valid, "IsTarget")
    assert read_score(test_output) == pytest.approx(expected)
    assert printed.startswith(f"score {expected:.4f} (one mask, targets may not be asked, ")

    page = (test_output / "scores_task_4.html").read_text()
    for text in (
        "simulated",
        "Confusion matrix",
        "<svg",
        "targets may not be asked",
        "local split",
    ):
        assert text in page
    assert not (test_output / "entry_output_task_4.txt").exists()
    # The questions shown are the most answered ones that this student may be asked.
    student = int(re.search(r"UserId (\d+)", page)[1])  # type: ignore[index]
    askable = valid[(valid.UserId == student) & (valid.IsTarget == 0)].set_index("QuestionId")
    n_answers = train.QuestionId.value_counts().reindex(askable.index).fillna(0)
    expected_order = sorted(n_answers.index, key=lambda question: (-n_answers[question], question))
    shown = re.findall(r'<th scope="row">(\d+)</th><td>(\d+)</td><td>(.*?)</td><td>(\w+)', page)
    assert [int(row[1]) for row in shown[:10]] == expected_order[:10]
    outcome = {0: "wrong", 1: "right"}
    assert [row[3] for row in shown[:10]] == [
        outcome[askable.IsCorrect[question]] for question in expected_order[:10]
    ]
    metadata = tiny_kit / "data/metadata"
    names = pd.read_csv(metadata / "subject_metadata.csv", encoding="utf-8-sig").Name
    assert all(row[2] in page and row[2].split(",")[0] in " ".join(names) for row in shown)


@pytest.mark.parametrize("phase", ["public", "private"])
def test_phases_average_their_ten_masks(tiny_kit: Path, run: Run, phase: str) -> None:
    printed = run_all(
        run, tiny_kit, [TRAIN], [EVALUATE, "--phase", phase, "--skip_curve", "--unobserved", "0"]
    )
    train = pd.read_csv(tiny_kit / "data/train_data/train_task_3_4.csv")
    valid = pd.read_csv(tiny_kit / f"data/test_data/test_{phase}_task_4_more_splits.csv")
    scores = [most_popular_score(train, valid, f"IsTarget_{k}") for k in range(10)]
    assert read_score(tiny_kit / "data/test_output") == pytest.approx(np.mean(scores))
    assert f"score {np.mean(scores):.4f} ± {np.std(scores, ddof=1):.4f} (mean of 10" in printed
    page = (tiny_kit / "data/test_output/scores_task_4.html").read_text()
    assert "unobserved = 0" in page
    assert phase in page
    assert "<svg" not in page


def test_files_without_options(tiny_kit: Path, run: Run, tmp_path: Path) -> None:
    """A file of QuestionId, UserId and IsCorrect is enough, and no metadata are needed."""
    train = pd.read_csv(tiny_kit / "data/train_data/train_task_3_4.csv")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    train[["QuestionId", "UserId", "IsCorrect"]].to_csv(folder / "right_wrong.csv", index=False)
    split = folder / "test_input"
    data = ["--input_dir", folder, "--train_data", "right_wrong.csv"]
    run_all(
        run,
        tiny_kit,
        ["task_4/local_data_split.py", *data, "--output_dir", split, "--seed", 5],
        [TRAIN, "--input_dir", split, "--train_data", "train_task_4.csv"],
        [EVALUATE, "--input_dir", split, "--output_dir", folder],
    )
    train, valid = (pd.read_csv(split / f"{name}_task_4.csv") for name in ("train", "valid"))
    assert read_score(folder) == pytest.approx(most_popular_score(train, valid, "IsTarget"))


def test_targets_may_be_asked_if_the_rules_say_so(tiny_kit: Path, run: Run) -> None:
    """Then the baseline asks a target sooner or later, which it may not by default."""
    run_all(run, tiny_kit, ["task_4/local_data_split.py"], [TRAIN, "--local"])
    valid = pd.read_csv(tiny_kit / "data/test_input/valid_task_4.csv")
    targets = valid[valid.IsTarget == 1].groupby("UserId").QuestionId.agg(set)
    n_asked = {}
    for flag in ([], ["--targets_queryable"]):
        run_all(run, tiny_kit, [EVALUATE, "--skip_curve", *flag])
        page = (tiny_kit / "data/test_output/scores_task_4.html").read_text()
        parts = re.split(r"UserId (\d+)", page)[1:]
        questions = [re.findall(r"</th><td>(\d+)</td>", part) for part in parts[1::2]]
        n_asked[bool(flag)] = sum(
            len(targets[int(student)] & {int(question) for question in asked})
            for student, asked in zip(parts[::2], questions, strict=True)
        )
        assert ("targets may be asked" in page) == bool(flag)
    assert n_asked[False] == 0
    assert n_asked[True] > 0


def test_published_entry_runs_unchanged(tiny_kit: Path, run: Run, tmp_path: Path) -> None:
    run_all(run, tiny_kit, ["task_4/local_data_split.py"])
    entry = Path(shutil.copytree(PUBLISHED, tmp_path / "entry"))
    train = pd.read_csv(tiny_kit / "data/test_input/train_task_4.csv")
    questions = pd.read_csv(tiny_kit / "data/metadata/question_metadata_task_3_4.csv").QuestionId
    share = train.groupby("QuestionId").IsCorrect.mean()
    difficulty = 1 - share.reindex(range(questions.max() + 1)).fillna(0.5)
    np.save(entry / "model_task_4_difficulty.npy", difficulty.to_numpy())
    evaluate = [EVALUATE, "--submission", entry]
    printed = run_all(run, tiny_kit, [*evaluate, "--unobserved", "0"])
    zeros = read_score(tiny_kit / "data/test_output")
    run_all(run, tiny_kit, [*evaluate, "--skip_curve"])
    # It takes -1 for an answer, so that the reading of the rules makes a difference.
    assert read_score(tiny_kit / "data/test_output") != zeros
    assert "with questions chosen at random" in printed


def test_package_holds_what_the_entry_needs(tiny_kit: Path, run: Run, tmp_path: Path) -> None:
    package = tiny_kit / "task_4/numpy"
    (package / "notes.txt").write_text("not needed")
    (package / "model_task_4.pt").write_text("the guide's own name for weights")
    run_all(run, tiny_kit, ["task_4/local_data_split.py"], [TRAIN, "--local"])
    printed = run_all(run, tiny_kit, ["task_4/package.py", package])
    assert "left out: local_evaluation.py, notes.txt, train_model.py" in printed
    path = tiny_kit / "submissions/submission_task_4.zip"
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == WEIGHTS | {
            "model.py",
            "model_task_4.pt",
            "model_task_4_students.npy",
            "submission_model_task_4.py",
        }
        archive.extractall(tmp_path / "empty")
    run_all(run, tiny_kit, [EVALUATE, "--skip_curve"])
    score = read_score(tiny_kit / "data/test_output")
    run_all(run, tiny_kit, [EVALUATE, "--skip_curve", "--submission", path])
    assert read_score(tiny_kit / "data/test_output") == score

    # Without the kit, as in the challenge.
    code = (
        "import sys, numpy; sys.modules['common'] = None; sys.path.insert(0, '')\n"
        "from submission_model_task_4 import Submission\n"
        "ones = numpy.ones((2, 30), int)\n"
        "print(Submission().select_questions(-ones, -ones, ones).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path / "empty", capture_output=True, text=True
    )
    assert done.stdout.strip() == "(2,)", done.stderr


def test_package_is_not_written_unless_it_runs(tiny_kit: Path, fails: Fails) -> None:
    package = tiny_kit / "task_4/numpy"
    entry = package / "submission_model_task_4.py"
    message = fails(["task_4/package.py", package], kit=tiny_kit)
    assert "starting Submission: raised FileNotFoundError" in message
    entry.write_text("from common import io\n" + entry.read_text())
    message = fails(["task_4/package.py", package], kit=tiny_kit)
    assert "the kit's shared code, which is not there in the challenge" in message
    entry.write_text("def")
    assert "is not Python" in fails(["task_4/package.py", package], kit=tiny_kit)
    entry.unlink()
    assert "file not found" in fails(["task_4/package.py", package], kit=tiny_kit)
    assert not (tiny_kit / "submissions").exists()


def test_faults_are_one_line(tiny_kit: Path, run: Run, fails: Fails) -> None:
    message = fails([EVALUATE], kit=tiny_kit)
    assert (
        "valid_task_4.csv: file not found; `python task_4/local_data_split.py` makes it" in message
    )
    run_all(run, tiny_kit, ["task_4/local_data_split.py"])
    assert "starting Submission: raised FileNotFoundError" in fails([EVALUATE], kit=tiny_kit)
    run_all(run, tiny_kit, [TRAIN])
    assert re.search(
        r"its model is trained on UserId \d+ of .*valid_task_4.csv",
        message := fails([EVALUATE], kit=tiny_kit),
    ), message
    run_all(run, tiny_kit, [TRAIN, "--local"])
    message = fails([EVALUATE, "--time_limit", "0.01"], kit=tiny_kit)
    assert "has not finished; expected a whole game within 0.01 s" in message
    assert not (tiny_kit / "data/test_output/scores_task_4.txt").exists()

    # The full training file in the place of the local one would give the hidden answers away.
    shutil.copy(
        tiny_kit / "data/train_data/train_task_3_4.csv",
        tiny_kit / "data/test_input/train_task_4.csv",
    )
    message = fails([EVALUATE], kit=tiny_kit)
    assert re.search(r"train_task_4.csv: holds UserId \d+ of .*valid_task_4.csv", message)
    assert "train_task_3_4.csv: file not found" in fails(
        [TRAIN, "--input_dir", tiny_kit], kit=tiny_kit
    )


@pytest.mark.parametrize("folder", ["task_4", "task_4/numpy"])
def test_numpy_is_not_shadowed(run: Run, tiny_kit: Path, folder: str) -> None:
    """Scripts in these folders, and Python started there, import the real NumPy."""
    assert not (tiny_kit / "task_4/numpy/__init__.py").exists()
    script = tiny_kit / folder / "probe.py"
    script.write_text("import numpy; print(numpy.arange(3).sum())")
    assert run([f"{folder}/probe.py"], kit=tiny_kit).stdout.strip() == "3"
    script.unlink()
    code = ["-c", "import numpy; print(numpy.arange(3).sum())"]
    assert run(code, kit=tiny_kit, cwd=tiny_kit / folder).stdout.strip() == "3"
