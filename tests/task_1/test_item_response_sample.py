"""The item response sample models of tasks 1 and 2, run as a user runs them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, Run

from common import item_response, layout

TASKS = pytest.mark.parametrize("task", [1, 2])
COLUMN = {1: "IsCorrect", 2: "AnswerValue"}
# Of the tests that fit the same model themselves.
GUESSING = ["--guessing", 0.1]
COLUMNS = ["QuestionId", "UserId", "IsCorrect", "CorrectAnswer", "AnswerValue"]


def simulate(noise: bool = False, share: float = 0.5) -> pd.DataFrame:
    """Answers of 300 students to a share of 80 questions; even and odd ones ask for two skills."""
    rng = np.random.default_rng(0)
    ability, intercept = 1.8 * rng.standard_normal((300, 2)), rng.normal(0, 0.7, 80)
    student, question = np.nonzero(rng.random((300, 80)) < share)
    logit = ability[student, question % 2] + intercept[question]
    right = rng.random(len(student)) < 1 / (1 + np.exp(-logit))
    key, favourite = rng.integers(0, 4, 80), rng.integers(1, 4, 80)
    far_off = np.where(rng.random(len(student)) < 0.7, favourite[question], rng.integers(1, 4))
    option = np.where(right, key[question], (key[question] + far_off) % 4)
    if noise:
        option = rng.integers(0, 4, len(student))
        key[:] = 1
    columns = [question, student, option == key[question], key[question] + 1, option + 1]
    frame = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True))).astype(int)
    return frame.sample(frac=1, random_state=0, ignore_index=True)


def split(folder: Path, answers: pd.DataFrame, n_train: int) -> pd.DataFrame:
    """Write training answers and a template; return the answers that the template asks for."""
    folder.mkdir(exist_ok=True)
    answers[:n_train].to_csv(folder / "train_task_1_2.csv", index=False)
    template = folder / "submission_task_1_2.csv"
    answers[n_train:][["UserId", "QuestionId"]].to_csv(template, index=False)
    return answers[n_train:].reset_index(drop=True)


def command(task: int, folder: Path, *flags: object) -> list[object]:
    return [
        f"task_{task}/sample_model_item_response.py", "--input_dir", folder,
        "--submission_template_dir", folder, "--submission_template_file",
        "submission_task_1_2.csv", "--output_dir", folder, *flags,
    ]  # fmt: skip


def predict(run: Run, task: int, folder: Path, *flags: object) -> pd.DataFrame:
    done = run(command(task, folder, *flags))
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return read(task, folder)


def read(task: int, folder: Path) -> pd.DataFrame:
    frame = pd.read_csv(folder / f"submission_task_{task}.csv")
    assert frame[COLUMN[task]].isin([0, 1] if task == 1 else [1, 2, 3, 4]).all()
    return frame


def accuracy(task: int, prediction: pd.DataFrame, truth: pd.DataFrame) -> float:
    assert (prediction.UserId == truth.UserId).all()
    return float((prediction[COLUMN[task]] == truth[COLUMN[task]]).mean())


def majority(task: int, answers: pd.DataFrame, n_train: int) -> float:
    train, test = answers[:n_train], answers[n_train:]
    most_common = train.groupby("QuestionId")[COLUMN[task]].agg(lambda x: x.mode()[0])
    return float((test.QuestionId.map(most_common) == test[COLUMN[task]]).mean())


@TASKS
def test_beats_the_majority_on_the_local_split(tiny_kit: Path, run: Run, task: int) -> None:
    assert run([f"task_{task}/local_data_split.py"], kit=tiny_kit).returncode == 0
    scores = {}
    for name in ("majority", "item_response"):
        for script in (f"sample_model_{name}.py", "local_evaluation.py"):
            flags = ["--local"] if script.startswith("sample") else []
            done = run([f"task_{task}/{script}", *flags], kit=tiny_kit)
            assert done.returncode == 0, done.stderr
        text = (tiny_kit / f"data/test_output/scores_task_{task}.txt").read_text()
        scores[name] = float(text.removeprefix("score:"))
    assert scores["item_response"] > scores["majority"] + 0.01


@TASKS
def test_same_seed_same_bytes_another_seed_a_similar_model(
    run: Run, tmp_path: Path, task: int
) -> None:
    truth = split(tmp_path, simulate(), 9_000)
    path = tmp_path / f"submission_task_{task}.csv"
    first = predict(run, task, tmp_path)
    content = path.read_bytes()
    predict(run, task, tmp_path, "--seed", 0)
    assert path.read_bytes() == content
    other = predict(run, task, tmp_path, "--seed", 1)
    agreement = (first[COLUMN[task]] == other[COLUMN[task]]).mean()
    assert 0.9 < agreement < 1
    assert abs(accuracy(task, first, truth) - accuracy(task, other, truth)) < 0.02


@TASKS
def test_dimensions_are_the_abilities_that_it_can_tell_apart(
    run: Run, tmp_path: Path, task: int
) -> None:
    answers = simulate()
    truth = split(tmp_path, answers, 9_000)
    one, two, default = (
        accuracy(task, predict(run, task, tmp_path, *flags), truth)
        for flags in (["--dimensions", 1], ["--dimensions", 2], [])
    )
    assert one > majority(task, answers, 9_000) + 0.01
    assert two > one + 0.02
    # Dimensions that are not needed shrink away.
    assert default == pytest.approx(two, abs=0.015)


@TASKS
def test_who_can_guess_is_right_without_knowing(run: Run, tmp_path: Path, task: int) -> None:
    """With guessing at 0.9, no answer has a lower probability of being right."""
    # All answer all: there are no contexts, the habits in which would learn otherwise.
    truth = split(tmp_path, simulate(share=1), 9_000)
    prediction = predict(run, task, tmp_path, "--guessing", 0.9)[COLUMN[task]]
    assert (prediction == (1 if task == 1 else truth.CorrectAnswer)).all()


@TASKS
def test_random_labels_score_at_chance(run: Run, tmp_path: Path, task: int) -> None:
    truth = split(tmp_path, simulate(noise=True), 8_000)
    score = accuracy(task, predict(run, task, tmp_path), truth)
    # One in four is right, whichever option is meant.
    assert score == pytest.approx(0.75 if task == 1 else 0.25, abs=0.03)


def plant_context(blocks: bool, by_class: bool = False) -> pd.DataFrame:
    """Answers of 300 students with an effect of (student, quiz), and a habit of position there.

    If so told, all students of one of six classes have the same effect.

    Quizzes are ten questions each: of a student's own choice, or else blocks that are answered
    whole, so that they can be told from who answered what.
    """
    rng = np.random.default_rng(0)
    n_students, n_quizzes, size = 300, 20 if blocks else 8, 10
    student, place = np.indices((n_students, n_quizzes * size)).reshape(2, -1)
    if not blocks:
        place = rng.permuted(place.reshape(n_students, -1), axis=1).ravel()
    quiz = np.indices((n_students, n_quizzes, size))[1].ravel()
    answered = np.repeat(rng.random(n_students * n_quizzes) < (0.4 if blocks else 1), size)
    student, question, quiz = student[answered], place[answered], quiz[answered]
    easiness, key = rng.normal(0, 0.5, (200)), rng.integers(0, 4, 200)
    effect, favourite = rng.normal(0, 1.6, (300, 20)), rng.integers(0, 4, (300, 20))
    if by_class:
        effect = effect[np.arange(300) % 6]
    logit = rng.normal(0, 0.5, 300)[student] + easiness[question] + effect[student, quiz]
    right = rng.random(len(student)) < 1 / (1 + np.exp(-logit))
    own = favourite[student, quiz]
    other = (key[question] + rng.integers(1, 4, len(student))) % 4
    wrong = np.where((own != key[question]) & (rng.random(len(student)) < 0.7), own, other)
    option = np.where(right, key[question], wrong)
    columns = [question, student, right, key[question] + 1, option + 1]
    frame = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True))).astype(int)
    frame["QuizId"] = quiz + 1_000
    if by_class:
        frame["GroupId"] = student % 6 + 50
    frame = frame.sample(frac=1, random_state=0, ignore_index=True)
    frame["AnswerId"] = frame.index * 3 + 5
    return frame


def split_with_ids(folder: Path, answers: pd.DataFrame, n_train: int) -> pd.DataFrame:
    """As `split`, with AnswerIds in both files; quizzes and classes are written to metadata/."""
    truth = split(folder, answers[[*COLUMNS, "AnswerId"]], n_train)
    template = folder / "submission_task_1_2.csv"
    answers[n_train:][["UserId", "QuestionId", "AnswerId"]].to_csv(template, index=False)
    (folder / "metadata").mkdir()
    metadata = folder / "metadata" / layout.ANSWER_METADATA_TASK_1_2
    answers.drop(columns=COLUMNS).to_csv(metadata, index=False)
    return truth


def predict_without_context(task: int, train: pd.DataFrame, asked: pd.DataFrame) -> np.ndarray:
    """Return what the sample model with `GUESSING` would predict if it knew no contexts."""
    pairs = [train[name].to_numpy() for name in ("UserId", "QuestionId")]
    asked_for = [asked[name].to_numpy() for name in ("UserId", "QuestionId")]
    if task == 1:
        model = item_response.fit(*pairs, train.IsCorrect.to_numpy(), guessing=0.1)
        return (item_response.predict(model, *asked_for) > 0.5).astype(int)
    options = train.AnswerValue.to_numpy(), train.CorrectAnswer.to_numpy()
    chosen = item_response.fit_options(*pairs, *options, guessing=0.1)
    return item_response.predict_options(chosen, *asked_for).argmax(axis=1) + 1


@TASKS
def test_quizzes_of_the_metadata_raise_the_accuracy(run: Run, tmp_path: Path, task: int) -> None:
    answers = plant_context(blocks=False)
    truth = split_with_ids(tmp_path, answers, 20_000)
    without = predict(run, task, tmp_path, *GUESSING)
    # All students answer all questions, so nothing else tells the quizzes.
    same = predict_without_context(task, answers[:20_000], truth)
    assert (without[COLUMN[task]] == same).all()
    known = predict(run, task, tmp_path, *GUESSING, "--metadata_dir", tmp_path / "metadata")
    assert accuracy(task, known, truth) > accuracy(task, without, truth) + 0.05


@TASKS
def test_classes_of_the_metadata_raise_the_accuracy(run: Run, tmp_path: Path, task: int) -> None:
    """Students have too few answers in a quiz to tell much alone."""
    answers = plant_context(blocks=False, by_class=True)
    scores = []
    for name, table in (("quizzes", answers.drop(columns="GroupId")), ("classes", answers)):
        folder = tmp_path / name
        truth = split_with_ids(folder, table, 6_000)
        found = predict(run, task, folder, *GUESSING, "--metadata_dir", folder / "metadata")
        scores.append(accuracy(task, found, truth))
    assert scores[1] > scores[0] + (0.04 if task == 1 else 0.015)


@TASKS
def test_blocks_of_questions_raise_the_accuracy_without_metadata(
    run: Run, tmp_path: Path, task: int
) -> None:
    answers = plant_context(blocks=True)
    truth = split_with_ids(tmp_path, answers, 20_000)
    score = accuracy(task, predict(run, task, tmp_path, *GUESSING), truth)
    same = predict_without_context(task, answers[:20_000], truth)
    assert score > np.mean(same == truth[COLUMN[task]]) + 0.02
    # A folder that holds other files counts as no metadata.
    path = tmp_path / f"submission_task_{task}.csv"
    content = path.read_bytes()
    (tmp_path / "other").mkdir()
    predict(run, task, tmp_path, *GUESSING, "--metadata_dir", tmp_path / "other")
    assert path.read_bytes() == content


@TASKS
def test_the_metadata_of_the_kit_are_found(tiny_kit: Path, run: Run, task: int) -> None:
    assert run([f"task_{task}/local_data_split.py"], kit=tiny_kit).returncode == 0
    (tiny_kit / "empty").mkdir()
    found = []
    for flags in ([], ["--metadata_dir", "empty"]):
        script = [f"task_{task}/sample_model_item_response.py", "--local", *flags]
        done = run(script, kit=tiny_kit, cwd=tiny_kit)
        assert done.returncode == 0, done.stderr
        path = tiny_kit / "data" / "test_output" / layout.local_submission_name(task)
        found.append(path.read_bytes())
    assert found[0] != found[1]


def test_nothing_is_lost_on_a_test_that_all_answer(
    run: Run, tmp_path: Path, real_data: Path
) -> None:
    """SAT12, 600 students × 32 questions."""
    table = pd.read_csv(real_data / "sat12/sat12_600x32.csv").astype(int)
    # Five options; only right or wrong matters here.
    table["AnswerValue"] = table["CorrectAnswer"] = 1
    table.loc[table.IsCorrect == 0, "AnswerValue"] = 2
    table = table[COLUMNS].sample(frac=1, random_state=0, ignore_index=True)
    truth = split(tmp_path, table, 15_000)
    found = predict(run, 1, tmp_path, *GUESSING)
    assert (found.IsCorrect == predict_without_context(1, table[:15_000], truth)).all()
    assert accuracy(1, found, truth) > majority(1, table, 15_000) + 0.02


@TASKS
@pytest.mark.parametrize("n_train", [1, 10])
def test_tiny_inputs_huge_and_unknown_ids(
    run: Run, tmp_path: Path, task: int, n_train: int
) -> None:
    answers = simulate()[: n_train + 3]
    answers.QuestionId += 9_999_900
    answers.UserId += 2_000_000_000
    split(tmp_path, answers, n_train)
    asked = answers[["UserId", "QuestionId"]].copy()
    asked.loc[0, "UserId"] = 1
    asked.loc[1, "QuestionId"] = 0
    asked.to_csv(tmp_path / "submission_task_1_2.csv", index=False)
    assert len(predict(run, task, tmp_path)) == len(asked)


@TASKS
@pytest.mark.parametrize("label", ["right", "wrong"])
def test_answers_all_alike(run: Run, tmp_path: Path, task: int, label: str) -> None:
    answers = simulate()
    right = label == "right"
    answers["IsCorrect"] = int(right)
    answers["AnswerValue"] = answers.CorrectAnswer if right else answers.CorrectAnswer % 4 + 1
    truth = split(tmp_path, answers, 500)
    assert accuracy(task, predict(run, task, tmp_path), truth) > 0.99


@TASKS
def test_control_c_still_writes_a_submission(tmp_path: Path, task: int) -> None:
    """The script sends itself SIGINT in the third step."""
    answers = simulate()
    truth = split(tmp_path, answers, 9_000)
    script, *flags = (str(part) for part in command(task, tmp_path))
    path = str(ROOT / script)
    code = (
        "import os, runpy, signal, sys\n"
        "from common.item_response import fitting\n"
        "real, calls = fitting.run_step, []\n"
        "def run_step(*arguments):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 3:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(*arguments)\n"
        "fitting.run_step = run_step\n"
        f"sys.argv = {[path, *flags]!r}\n"
        f"runpy.run_path({path!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == "interrupted: going on with the model after step 2\n"
    assert accuracy(task, read(task, tmp_path), truth) > majority(task, answers, 9_000) + 0.01


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--dimensions", 0], "n_dimensions is 0, expected at least 1"),
        (["--guessing", 1], "guessing is 1.0, expected 0 to 0.9"),
    ],
)
def test_faults_are_one_line(
    fails: Callable[..., str], tmp_path: Path, flags: list[object], message: str
) -> None:
    split(tmp_path, simulate()[:20], 10)
    assert fails(command(2, tmp_path, *flags)) == message
    assert not (tmp_path / "submission_task_2.csv").exists()
