"""Matrix factorisation of tasks 1 and 2, run as a user runs it, on answers with known truth."""

import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from conftest import ROOT, Run

COLUMN = {1: "IsCorrect", 2: "AnswerValue"}
KEYS = ["UserId", "QuestionId"]
TASKS = pytest.mark.parametrize("task", [1, 2])
Fails = Callable[..., str]


def sigmoid(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def planted(n_students: int, n_questions: int, seed: int) -> tuple[pd.DataFrame, dict[int, float]]:
    """Return all answers of students who differ in two abilities, and the best possible accuracies.

    Every question asks for one of the abilities only. Students with little of it make other errors
    than students with much of it. The accuracies are those of predicting from the true
    probabilities.
    """
    rng = np.random.default_rng(seed)
    abilities = rng.normal(0, 1.8, (n_students, 2))
    asked = rng.integers(0, 2, n_questions)
    easiness = rng.normal(0.5, 0.7, n_questions)
    student, question = (a.ravel() for a in np.indices((n_students, n_questions)))
    ability = abilities[student, asked[question]]
    p_right = sigmoid(easiness[question] + ability)
    p_first_wrong = sigmoid(1 + 1.5 * ability)
    p_wrong = (1 - p_right[:, None]) * np.column_stack(
        [p_first_wrong, 0.6 * (1 - p_first_wrong), 0.4 * (1 - p_first_wrong)]
    )
    p = np.column_stack([p_right, p_wrong])
    place = (rng.random((len(p), 1)) > p.cumsum(axis=1)[:, :3]).sum(axis=1)
    # Which option is correct, and which comes next, differs from question to question.
    option = rng.permuted(np.tile(np.arange(1, 5), (n_questions, 1)), axis=1)
    frame = pd.DataFrame(
        {
            # Ids with gaps, and large ones: a table for every id up to the largest would not fit.
            "QuestionId": 7 * question + 3,
            "UserId": 2_000_000_000 - 1_000 * student,
            "IsCorrect": (place == 0).astype(int),
            "CorrectAnswer": option[question, 0],
            "AnswerValue": option[question, place],
        }
    )
    best = {1: np.maximum(p_right, 1 - p_right).mean(), 2: p.max(axis=1).mean()}
    return frame, best


ANSWERS, BEST = planted(n_students=400, n_questions=100, seed=0)
HELD_OUT = np.random.default_rng(1).random(len(ANSWERS)) < 0.2
TRAIN, TEST = ANSWERS[~HELD_OUT], ANSWERS[HELD_OUT]


def command(task: int, folder: Path, train: pd.DataFrame, pairs: pd.DataFrame) -> list[object]:
    """Write the files that a model reads; return the command that reads them."""
    train.to_csv(folder / "train.csv", index=False)
    pairs[KEYS].to_csv(folder / "template.csv", index=False)
    return [
        *(f"task_{task}/sample_model_matrix_factorization.py", "--input_dir", folder),
        *("--train_data", "train.csv", "--submission_template_dir", folder),
        *("--submission_template_file", "template.csv", "--output_dir", folder),
    ]


@pytest.fixture
def predict(run: Run, tmp_path: Path) -> Callable[..., npt.NDArray[np.int64]]:
    """Train the model of a task and predict pairs: `predict(1, TRAIN, TEST, "--seed", 1)`."""

    def predict_pairs(
        task: int, train: pd.DataFrame, pairs: pd.DataFrame, *flags: object
    ) -> npt.NDArray[np.int64]:
        done = run([*command(task, tmp_path, train, pairs), *flags])
        assert done.returncode == 0, done.stderr
        submission = pd.read_csv(tmp_path / f"submission_task_{task}.csv")
        pd.testing.assert_frame_equal(submission[KEYS], pairs[KEYS].reset_index(drop=True))
        return submission[COLUMN[task]].to_numpy()

    return predict_pairs


Predict = Callable[..., npt.NDArray[np.int64]]


def accuracy(task: int, prediction: npt.NDArray[np.int64], truth: pd.DataFrame = TEST) -> float:
    return float(np.mean(prediction == truth[COLUMN[task]]))


def majority_accuracy(task: int) -> float:
    most_common = TRAIN.groupby("QuestionId")[COLUMN[task]].agg(lambda values: values.mode()[0])
    return accuracy(task, TEST.QuestionId.map(most_common).to_numpy())


@TASKS
def test_predicts_planted_abilities_nearly_as_well_as_possible(predict: Predict, task: int) -> None:
    score = accuracy(task, predict(task, TRAIN, TEST))
    assert score > BEST[task] - 0.02
    assert score > majority_accuracy(task) + 0.05


@TASKS
def test_more_dimensions_and_iterations_learn_what_fewer_cannot(
    predict: Predict, task: int
) -> None:
    """Two abilities do not fit into one dimension, and the second is not found in one pass."""
    score = accuracy(task, predict(task, TRAIN, TEST))
    assert accuracy(task, predict(task, TRAIN, TEST, "--dimensions", 1)) < score - 0.03
    assert accuracy(task, predict(task, TRAIN, TEST, "--iterations", 1)) < score - 0.03


@TASKS
def test_the_seed_decides_the_start(predict: Predict, tmp_path: Path, task: int) -> None:
    path = tmp_path / f"submission_task_{task}.csv"
    written = []
    for seed in (0, 0, 1):
        predict(task, TRAIN, TEST, "--iterations", 3, "--seed", seed)
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert written[0] != written[2]


@TASKS
def test_the_order_of_answers_does_not_matter(predict: Predict, task: int) -> None:
    shuffled = TRAIN.sample(frac=1, random_state=0)
    assert np.array_equal(predict(task, TRAIN, TEST), predict(task, shuffled, TEST))


@TASKS
def test_random_answers_are_predicted_at_chance(predict: Predict, task: int) -> None:
    rng = np.random.default_rng(0)
    noise = ANSWERS.assign(AnswerValue=rng.integers(1, 5, len(ANSWERS)))
    noise["CorrectAnswer"] = rng.integers(1, 5, 101)[(noise.QuestionId - 3) // 7]
    noise["IsCorrect"] = (noise.AnswerValue == noise.CorrectAnswer).astype(int)
    chance = 0.25
    if task == 1:  # as often correct as not
        noise = noise.drop(columns=["AnswerValue", "CorrectAnswer"])
        noise["IsCorrect"], chance = rng.integers(0, 2, len(noise)), 0.5
    score = accuracy(task, predict(task, noise[~HELD_OUT], noise[HELD_OUT]), noise[HELD_OUT])
    assert abs(score - chance) < 4 * (chance * (1 - chance) / HELD_OUT.sum()) ** 0.5


# ---- Students and questions never seen, or hardly ---------------------------------------------


def test_unknown_students_and_questions(predict: Predict) -> None:
    """An unknown student is an average one, an unknown question an average one."""
    by_question = TRAIN.groupby("QuestionId").IsCorrect.mean()
    by_student = TRAIN.groupby("UserId").IsCorrect.mean()
    easy, hard = by_question.idxmax(), by_question.idxmin()
    able, unable = by_student.idxmax(), by_student.idxmin()
    assert by_question[hard] < 0.4 < 0.5 < TRAIN.IsCorrect.mean()
    pairs = [(5, easy), (5, hard), (able, 9_999_999), (unable, 9_999_999), (5, 0)]
    assert list(predict(1, TRAIN, pd.DataFrame(pairs, columns=KEYS))) == [1, 0, 1, 0, 1]


def test_unknown_students_and_questions_of_options(predict: Predict) -> None:
    most_chosen = TRAIN.groupby("QuestionId").AnswerValue.agg(lambda values: values.mode()[0])
    shares = TRAIN.groupby("QuestionId").AnswerValue.agg(
        lambda values: values.value_counts(normalize=True).iloc[:2].diff().abs().iloc[1]
    )
    clear = most_chosen[shares > 0.2]
    assert len(clear) > 40
    pairs = pd.DataFrame({"UserId": 5, "QuestionId": [*clear.index, 9_999_999]})
    expected = [*clear, TRAIN.AnswerValue.mode()[0]]
    assert list(predict(2, TRAIN, pairs)) == expected


def test_one_answer_says_little_and_many_say_much(predict: Predict) -> None:
    by_question = TRAIN.groupby("QuestionId").IsCorrect.mean().sort_values()
    easy = by_question.index[-1]
    others = [int(q) for q in by_question.index if q != easy]
    wrong = pd.DataFrame({"QuestionId": [others[-1], *others], "UserId": [1] + [2] * len(others)})
    wrong["IsCorrect"] = 0
    columns = ["QuestionId", "UserId", "IsCorrect"]
    train = pd.concat([TRAIN[columns], wrong])
    pairs = pd.DataFrame({"UserId": [1, 2], "QuestionId": [easy, easy]})
    assert list(predict(1, train, pairs)) == [1, 0]


@TASKS
@pytest.mark.parametrize("n", [1, 10])
def test_a_handful_of_answers_is_enough(predict: Predict, task: int, n: int) -> None:
    """One answer of one student, or ten answers of ten students to one question."""
    few = ANSWERS[ANSWERS.QuestionId == 3].iloc[:n]
    most_chosen = few[COLUMN[task]].mode()[0]
    unknown = few.iloc[:1].assign(UserId=1, QuestionId=1)
    prediction = predict(task, few, pd.concat([few, unknown]))
    assert prediction[-1] == most_chosen
    assert np.mean(prediction[:-1] == few[COLUMN[task]]) >= np.mean(
        few[COLUMN[task]] == most_chosen
    )


# ---- Control-C and wrong flags -----------------------------------------------------------------


@TASKS
def test_control_c_predicts_with_what_was_learned(tmp_path: Path, task: int) -> None:
    first, *rest = command(task, tmp_path, TRAIN, TEST)
    terminal, end = pty.openpty()  # for the progress bar, which says when the fit is on its way
    termios.tcsetwinsize(end, (24, 100))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / str(first)), *map(str, rest), "--iterations", "5000"],
        stdout=subprocess.DEVNULL,
        stderr=end,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    os.close(end)
    shown = ""
    try:
        while "loss=" not in shown:
            shown += os.read(terminal, 1000).decode()
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            shown += read_rest(terminal)
        shown += read_rest(terminal)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert process.returncode == 0, shown
    (line,) = [line for line in shown.splitlines() if "interrupted" in line]
    assert line == "interrupted: predicting with what has been learned so far"
    assert "Traceback" not in shown
    submission = pd.read_csv(tmp_path / f"submission_task_{task}.csv")
    assert accuracy(task, submission[COLUMN[task]].to_numpy()) > majority_accuracy(task) + 0.02


def read_rest(terminal: int) -> str:
    """Read what is there; on Linux an error says that the other end is closed."""
    try:
        return os.read(terminal, 1000).decode()
    except OSError:
        return ""


@TASKS
@pytest.mark.parametrize(
    "flags", [("--dimensions", 0), ("--dimensions", -2), ("--iterations", 0)], ids=str
)
def test_wrong_flags_are_refused_in_one_line(
    fails: Fails, tmp_path: Path, task: int, flags: tuple[str, int]
) -> None:
    line = fails([*command(task, tmp_path, TRAIN.iloc[:50], TEST.iloc[:50]), *flags])
    assert flags[0] in line
    assert "at least 1" in line
    assert not list(tmp_path.glob("submission_*"))
