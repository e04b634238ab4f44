"""The partial VAE of tasks 1 and 2, run as a user runs it, on answers with a known origin."""

import os
import pty
import re
import runpy
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import ROOT, Run

COLUMN = {1: "IsCorrect", 2: "AnswerValue"}
KEYS = ["QuestionId", "UserId"]
TASKS = pytest.mark.parametrize("task", [1, 2])
UNKNOWN_QUESTION, UNKNOWN_STUDENT = 9_999_999, 2_000_000_000
Predict = Callable[..., Any]


def simulate(
    n_abilities: int = 1, n_students: int = 300, n_questions: int = 40
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return answers to learn from, and answers to score, which ability decides.

    Each question asks for one of the abilities; able students avoid some wrong options more than
    others. QuestionIds and UserIds are large and have gaps.
    """
    rng = np.random.default_rng(0)
    ability = rng.standard_normal((n_students, n_abilities))
    ability = ability[:, np.arange(n_questions) % n_abilities]
    key = rng.integers(0, 4, n_questions)
    slope = rng.normal(0, 1, (n_questions, 4))
    slope[np.arange(n_questions), key] = 3
    offset = rng.normal(0, 1, (n_questions, 4))
    logit = offset + slope * ability[:, :, None]
    option = (logit + rng.gumbel(size=logit.shape)).argmax(axis=2)
    student, question = (rng.random(option.shape) < 0.6).nonzero()
    option = option[student, question]
    frame = pd.DataFrame(
        {
            "QuestionId": 200_000 * question + 17,
            "UserId": 5_000_000 * student + 3,
            "IsCorrect": (option == key[question]).astype(int),
            "CorrectAnswer": key[question] + 1,
            "AnswerValue": option + 1,
        }
    ).sample(frac=1, random_state=0)
    n_test = len(frame) // 5
    return frame[n_test:], frame[:n_test]


TRAIN, TEST = simulate()


def command(task: int, folder: Path, *flags: object) -> list[str]:
    """Return the command that predicts folder/template.csv from folder/train.csv."""
    place = ["--input_dir", folder, "--train_data", "train.csv", "--output_dir", folder]
    template = ["--submission_template_dir", folder, "--submission_template_file", "template.csv"]
    script = ROOT / f"task_{task}/sample_model_partial_vae.py"
    return [str(part) for part in (script, *place, *template, *flags)]


def write_files(folder: Path, train: pd.DataFrame = TRAIN, template: pd.DataFrame = TEST) -> None:
    train.to_csv(folder / "train.csv", index=False)
    template[KEYS].to_csv(folder / "template.csv", index=False)


def read_prediction(folder: Path, task: int) -> Any:
    return pd.read_csv(folder / f"submission_task_{task}.csv")[COLUMN[task]].to_numpy()


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run a script in this process, which has imported PyTorch already; return its exit code."""

    def run_command(arguments: list[str]) -> int:
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(arguments[0], run_name="__main__")
        return int(ended.value.code or 0)

    return run_command


@pytest.fixture
def predict(start: Callable[..., int], tmp_path: Path) -> Predict:
    """Train on answers; return the prediction for every row of a template."""

    def train_and_predict(
        task: int, *flags: object, train: pd.DataFrame = TRAIN, template: pd.DataFrame = TEST
    ) -> Any:
        write_files(tmp_path, train, template)
        assert start(command(task, tmp_path, *flags)) == 0
        return read_prediction(tmp_path, task)

    return train_and_predict


def accuracy(prediction: Any, task: int, test: pd.DataFrame = TEST) -> float:
    return float(np.mean(prediction == test[COLUMN[task]]))


def majority(task: int) -> "pd.Series[Any]":
    """Return the most frequent answer of each QuestionId."""
    return TRAIN.groupby("QuestionId")[COLUMN[task]].agg(lambda answers: answers.mode()[0])


def majority_accuracy(task: int) -> float:
    return accuracy(TEST.QuestionId.map(majority(task)), task)


# ---- What it predicts --------------------------------------------------------------------------


@TASKS
def test_beats_the_majority(predict: Predict, task: int) -> None:
    assert accuracy(predict(task), task) > majority_accuracy(task) + 0.05


@TASKS
def test_random_answers_are_predicted_at_chance(predict: Predict, task: int) -> None:
    rng = np.random.default_rng(0)
    coins = TRAIN.assign(AnswerValue=rng.integers(1, 5, len(TRAIN)))
    coins["IsCorrect"] = coins.CorrectAnswer == coins.AnswerValue
    if task == 1:
        coins = TRAIN[KEYS].assign(IsCorrect=rng.integers(0, 2, len(TRAIN)))
    truth = rng.integers(0, 2, len(TEST)) if task == 1 else rng.integers(1, 5, len(TEST))
    coins = coins.astype(int)
    chance = 1 / 2 if task == 1 else 1 / 4
    error = (chance * (1 - chance) / len(TEST)) ** 0.5
    assert abs(np.mean(predict(task, train=coins) == truth) - chance) < 4 * error


@TASKS
def test_an_unknown_student_answers_like_most(predict: Predict, task: int) -> None:
    counts = pd.crosstab(TRAIN.QuestionId, TRAIN[COLUMN[task]], normalize="index")
    ordered = np.sort(counts.to_numpy(), axis=1)
    clear = counts.index[ordered[:, -1] - ordered[:, -2] > 0.15]
    assert len(clear) > 15
    template = pd.DataFrame({"QuestionId": clear, "UserId": UNKNOWN_STUDENT})
    assert np.array_equal(predict(task, template=template), majority(task)[clear])


def test_an_unknown_question_is_one_like_all(predict: Predict) -> None:
    """Able students are predicted to answer it correctly, others are not."""
    share = TRAIN.groupby("UserId").IsCorrect.mean().sort_values()
    template = pd.DataFrame({"QuestionId": UNKNOWN_QUESTION, "UserId": share.index})
    prediction = predict(1, template=template)
    assert prediction[:60].mean() < 0.05
    assert prediction[-60:].mean() > 0.95


@TASKS
def test_unknown_students_at_unknown_questions(predict: Predict, task: int) -> None:
    """The one most frequent answer is left, whichever that is."""
    template = pd.DataFrame({"QuestionId": [UNKNOWN_QUESTION], "UserId": [UNKNOWN_STUDENT]})
    for most in (1, 3) if task == 2 else (0, 1):
        train = TRAIN.assign(AnswerValue=most, CorrectAnswer=most, IsCorrect=1)
        rest = np.arange(len(train)) % 3 == 0
        if task == 2:
            train.loc[rest, ["AnswerValue", "CorrectAnswer"]] = 2
        else:
            train = TRAIN[KEYS].assign(IsCorrect=np.where(rest, 1 - most, most))
        assert predict(task, train=train, template=template) == [most]


@TASKS
@pytest.mark.parametrize("n_answers", [1, 10])
def test_a_handful_of_answers_is_enough(predict: Predict, task: int, n_answers: int) -> None:
    prediction = predict(task, train=TRAIN[:n_answers])
    assert len(prediction) == len(TEST)
    # The first question in the file is predicted as its answer was.
    first = TRAIN[:1]
    assert predict(task, train=first, template=first) == first[COLUMN[task]].to_numpy()


# ---- Flags -------------------------------------------------------------------------------------


def every_pair() -> pd.DataFrame:
    """Return a template of all students and questions, to see more of a model than its test."""
    product = [TRAIN.QuestionId.unique(), TRAIN.UserId.unique()]
    return pd.MultiIndex.from_product(product, names=KEYS).to_frame(index=False)


@TASKS
def test_the_seed_decides_the_prediction(predict: Predict, task: int) -> None:
    """The same seed gives the same, with several threads too; another seed another start."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, again, other = (
            predict(task, "--steps", 60, "--seed", seed, template=every_pair())
            for seed in (0, 0, 1)
        )
    finally:
        torch.set_num_threads(threads)
    assert np.array_equal(first, again)
    assert 0 < np.mean(first != other) < 0.1


@TASKS
def test_two_abilities_need_two_dimensions(predict: Predict, task: int) -> None:
    train, test = simulate(n_abilities=2)
    one, two = (
        accuracy(predict(task, "--dimensions", k, train=train, template=test), task, test)
        for k in (1, 2)
    )
    assert two > one + 0.04


@TASKS
def test_training_goes_as_far_as_its_flags_say(predict: Predict, task: int) -> None:
    """More steps learn more, and so do larger ones; tiny ones learn nothing of the students."""

    def reached(steps: int, rate: float) -> float:
        return accuracy(predict(task, "--steps", steps, "--learning_rate", rate), task)

    assert reached(200, 1e-9) < majority_accuracy(task) + 0.02
    few, many, larger = reached(5, 0.01), reached(200, 0.01), reached(5, 0.1)
    assert few + 0.03 < many
    assert few + 0.01 < larger


@TASKS
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--dimensions", 0], "--dimensions is 0, expected"),
        (["--dimensions", -3], "--dimensions is -3, expected"),
        (["--steps", 0], "--steps is 0, expected"),
        (["--steps", -1], "--steps is -1, expected"),
        (["--learning_rate", 0], "--learning_rate is 0.0, expected"),
        (["--learning_rate", -0.1], "--learning_rate is -0.1, expected"),
        (["--learning_rate", "nan"], "--learning_rate is nan, expected"),
        (["--learning_rate", 1e30], "expected a smaller --learning_rate"),
        (["--device", "cuda"], "--device is cuda, but"),
    ],
)  # fmt: skip
def test_wrong_flags_are_refused_in_one_line(
    start: Callable[..., int],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    task: int,
    flags: list[object],
    expected: str,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    write_files(tmp_path)
    assert start(command(task, tmp_path, *flags)) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert line.startswith("error: ")
    assert expected in line
    assert not list(tmp_path.glob("submission*"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@TASKS
def test_cuda_predicts_what_the_processor_predicts(predict: Predict, task: int) -> None:
    assert accuracy(predict(task, "--device", "cuda"), task) > majority_accuracy(task) + 0.05


# ---- Interruption and several processes --------------------------------------------------------


@TASKS
def test_control_c_predicts_with_what_was_learned(tmp_path: Path, task: int) -> None:
    """In a terminal, which shows a bar with the loss."""
    write_files(tmp_path)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    process = subprocess.Popen(
        [sys.executable, *command(task, tmp_path, "--steps", 100_000)],
        stdout=subprocess.PIPE, stderr=theirs, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.close(theirs)
    shown = ""
    try:
        # 300 to 999 steps: enough to have learned something, far from all.
        while not re.search(r" [3-9]\d\d/100000 .*loss=\d\.\d+", shown):
            assert select.select([ours], [], [], 60)[0], f"no progress in {shown}"
            shown += os.read(ours, 4096).decode(errors="replace")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        shown += os.read(ours, 1 << 16).decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert process.returncode == 0, shown
    assert "stopped early" in shown
    assert "interrupted: predicting with what has been learned so far" in shown
    assert accuracy(read_prediction(tmp_path, task), task) > majority_accuracy(task) + 0.03


@TASKS
def test_two_processes_predict_what_one_predicts(
    predict: Predict, run: Run, tmp_path: Path, task: int
) -> None:
    alone = predict(task)
    (tmp_path / f"submission_task_{task}.csv").unlink()
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 2, "--"]
    done = run([*launcher, *command(task, tmp_path)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("written: ") == 1
    together = read_prediction(tmp_path, task)
    assert accuracy(together, task) == pytest.approx(accuracy(alone, task), abs=0.02)
    assert np.mean(together == alone) > 0.95


def test_a_process_without_students_does_not_wait(run: Run, tmp_path: Path) -> None:
    write_files(tmp_path, train=TRAIN[:1])
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 3, "--"]
    done = run([*launcher, *command(1, tmp_path, "--steps", 3)])
    assert done.returncode == 0, done.stderr
    assert len(read_prediction(tmp_path, 1)) == len(TEST)
