"""Gradient boosting on features, tasks 1 and 2, run as a user runs it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Run

COLUMN = {1: "IsCorrect", 2: "AnswerValue"}
TASKS = pytest.mark.parametrize("task", [1, 2])
Fails = Callable[..., str]
WITHOUT_METADATA = {1: "model, rates, context, habits", 2: "options, rates, context, habits"}
# None of the groups that take a fit of item response theory for each twentieth of the answers.
FAST = ("--features", "rates", "context")


def simulate(noise: bool = False) -> pd.DataFrame:
    """Answers of 250 students to 48 questions in quizzes of eight.

    Each student knows the topic of a quiz or does not; whoever does not, clicks at one place all
    through the quiz.
    """
    rng = np.random.default_rng(0)
    student, question = (a.ravel() for a in np.indices((250, 48)))
    quiz = question // 8
    taken = (rng.random((250, 6)) < 0.7)[student, quiz]
    student, question, quiz = student[taken], question[taken], quiz[taken]
    knows = (rng.random((250, 6)) < 0.5)[student, quiz]
    favourite = rng.integers(1, 5, (250, 6))[student, quiz]
    key = rng.integers(1, 5, 48)[question]
    slips = rng.random(len(student)) < 0.1
    option = np.where(knows, key, favourite)
    option = np.where(slips | noise, rng.integers(1, 5, len(student)), option)
    right = (option == key).astype(int)
    columns = [question, student, np.arange(len(student)), right, key, option]
    names = ["QuestionId", "UserId", "AnswerId", "IsCorrect", "CorrectAnswer", "AnswerValue"]
    frame = pd.DataFrame(dict(zip(names, columns, strict=True)))
    return frame.sample(frac=1, random_state=0, ignore_index=True)


def write(folder: Path, answers: pd.DataFrame, n_train: int) -> pd.DataFrame:
    """Write training answers and a template; return the answers that the template asks for."""
    answers[:n_train].to_csv(folder / "train_task_1_2.csv", index=False)
    rest = answers[n_train:].reset_index(drop=True)
    rest[["UserId", "QuestionId", "AnswerId"]].to_csv(
        folder / "submission_task_1_2.csv", index=False
    )
    return rest


def command(task: int, folder: Path, *flags: object) -> list[object]:
    return [
        *(f"task_{task}/sample_model_gradient_boosting.py", "--input_dir", folder),
        *("--submission_template_dir", folder, "--submission_template_file"),
        *("submission_task_1_2.csv", "--output_dir", folder / "out", *flags),
    ]


def predict(run: Run, task: int, folder: Path, *flags: object) -> tuple["pd.Series[int]", str]:
    """Return what is predicted, and the groups of features that the script says to have used."""
    done = run(command(task, folder, *flags))
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    first = done.stdout.splitlines()[0]
    prediction = pd.read_csv(folder / "out" / f"submission_task_{task}.csv")[COLUMN[task]]
    return prediction, first.removeprefix("features: ")


@TASKS
def test_it_finds_context_and_habits(run: Run, tmp_path: Path, task: int) -> None:
    answers = simulate()
    truth = write(tmp_path, answers, 6_500)
    scores = {}
    for flags in ((), ("--features", "rates"), FAST, (*FAST, "habits")):
        prediction, groups = predict(run, task, tmp_path, *flags)
        scores[groups] = float((prediction == truth[COLUMN[task]]).mean())
    assert list(scores) == [
        WITHOUT_METADATA[task], "rates", "rates, context", "rates, context, habits",
    ]  # fmt: skip
    everything, rates, context, habits = scores.values()
    if task == 1:
        assert context > rates + 0.05
        assert habits > context - 0.01
    else:  # Who does not know clicks anywhere, unless it is known where.
        assert habits > context + 0.05
    assert everything > habits - 0.02
    # Nobody can know more than nine answers in ten, and a quarter of the others.
    assert 0.85 < everything < 0.95


@TASKS
def test_random_labels_score_at_chance(run: Run, tmp_path: Path, task: int) -> None:
    truth = write(tmp_path, simulate(noise=True), 6_500)
    prediction, _ = predict(run, task, tmp_path, *FAST, "habits")
    score = (prediction == truth[COLUMN[task]]).mean()
    assert score == pytest.approx(0.75 if task == 1 else 0.25, abs=0.03)


@TASKS
def test_same_seed_same_bytes_another_seed_a_similar_model(
    run: Run, tmp_path: Path, task: int
) -> None:
    truth = write(tmp_path, simulate(), 6_500)
    path = tmp_path / "out" / f"submission_task_{task}.csv"
    flags = (*FAST, "habits")
    first, _ = predict(run, task, tmp_path, *flags)
    content = path.read_bytes()
    predict(run, task, tmp_path, *flags, "--seed", 0)
    assert path.read_bytes() == content
    other, _ = predict(run, task, tmp_path, *flags, "--seed", 1)
    assert 0.85 < (first == other).mean() < 1
    score, again = ((p == truth[COLUMN[task]]).mean() for p in (first, other))
    assert score == pytest.approx(again, abs=0.03)


@TASKS
def test_all_metadata_or_what_is_there_of_them(
    tiny_kit: Path, run: Run, tmp_path: Path, task: int
) -> None:
    assert run([f"task_{task}/local_data_split.py"], kit=tiny_kit).returncode == 0
    script = f"task_{task}/sample_model_gradient_boosting.py"
    done = run([script, "--local"], kit=tiny_kit)
    assert done.returncode == 0, done.stderr
    of_answers = "quiz, order, classes, time, confidence"
    first = WITHOUT_METADATA[task].replace("rates,", "rates, subjects,")
    assert done.stdout.startswith(f"features: {first}, students, {of_answers}\n")
    assert run([f"task_{task}/local_evaluation.py"], kit=tiny_kit).returncode == 0

    for name in ("question_metadata_task_1_2.csv", "subject_metadata.csv"):
        shutil.copy(tiny_kit / "data" / "metadata" / name, tmp_path)
    flags = ["--local", "--metadata_dir", tmp_path]
    done = run([script, *flags], kit=tiny_kit)
    assert done.stdout.startswith(f"features: {first}\n")
    (tmp_path / "subject_metadata.csv").unlink()
    done = run([script, *flags, *FAST, "subjects"], kit=tiny_kit)
    assert done.stdout.startswith("features: rates, context, subjects\n")


@TASKS
def test_what_cannot_be(run: Run, fails: Fails, tmp_path: Path, task: int) -> None:
    write(tmp_path, simulate(), 6_500)
    message = fails(command(task, tmp_path, "--features", "quiz"))
    assert "'quiz' need the answer metadata" in message
    done = run(command(task, tmp_path, "--features", "quizzes"))
    assert done.returncode == 2 and "'quizzes'" in done.stderr
    write(tmp_path, simulate(), 150)
    message = fails(command(task, tmp_path))
    assert "train_task_1_2.csv: needs 100 right and 100 wrong answers" in message


@TASKS
def test_unknown_ids_and_few_answers(run: Run, tmp_path: Path, task: int) -> None:
    answers = simulate()
    answers.UserId += 2_000_000_000
    answers.QuestionId += 9_999_900
    # Two options of every question are never chosen, which does not make them impossible.
    is_wrong = answers.IsCorrect == 0
    answers.loc[is_wrong, "AnswerValue"] = answers.CorrectAnswer[is_wrong] % 4 + 1
    rest = write(tmp_path, answers, 400)
    rest.loc[0, "UserId"], rest.loc[1, "QuestionId"] = 1, 1
    rest[["UserId", "QuestionId"]].to_csv(tmp_path / "submission_task_1_2.csv", index=False)
    prediction, _ = predict(run, task, tmp_path, "--probabilities", tmp_path / "p.parquet")
    assert prediction.isin([0, 1] if task == 1 else [1, 2, 3, 4]).all()
    p = pd.read_parquet(tmp_path / "p.parquet").filter(like="Probability")
    assert (p.to_numpy() > 0).all()


def test_right_and_wrong_are_enough_for_task_1(run: Run, tmp_path: Path) -> None:
    write(tmp_path, simulate()[["QuestionId", "UserId", "AnswerId", "IsCorrect"]], 6_500)
    _, groups = predict(run, 1, tmp_path)
    assert groups == "model, rates, context"


@TASKS
def test_a_feature_that_is_hardly_ever_known_does_no_harm(
    run: Run, tmp_path: Path, task: int
) -> None:
    answers = simulate()
    truth = write(tmp_path, answers, 6_500)
    of_students = pd.DataFrame({"UserId": range(250), "Gender": 1, "PremiumPupil": np.nan})
    of_students.loc[3, "PremiumPupil"] = 1.0
    of_students.to_csv(tmp_path / "student_metadata_task_1_2.csv", index=False)
    flags = ("--metadata_dir", tmp_path, "--features", "rates", "students")
    prediction, groups = predict(run, task, tmp_path, *flags)
    assert groups == "rates, students"
    chance = 0.5 if task == 1 else 0.25
    assert (prediction == truth[COLUMN[task]]).mean() > chance + 0.1
