"""The evaluations of tasks 1 and 2 as a user runs them: page, probabilities, what is left out."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Run
from page_reading import read_page as check_page
from sklearn.metrics import log_loss, roc_auc_score

KEYS = ["UserId", "QuestionId"]
COLUMN = {1: "IsCorrect", 2: "AnswerValue"}
NAMES = {1: ["ProbabilityCorrect"], 2: [f"ProbabilityOption{k}" for k in (1, 2, 3, 4)]}
Fails = Callable[..., str]
TASKS = pytest.mark.parametrize("task", [1, 2])


def in_page(page: str) -> str:
    """Return the texts of a page, without tags, on one line."""
    page = re.sub("<wbr>|<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<title>.*?</title>|<[^>]*>", " ", page).split())


@pytest.fixture(scope="module")
def predicted(simulated_kit: Path, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with a local split and the majority's predictions and probabilities.

    It is shared by all tests: only read from it.
    """
    kit = tmp_path_factory.mktemp("predicted") / "kit"
    shutil.copytree(simulated_kit, kit)
    assert run(["task_1/local_data_split.py"], kit=kit).returncode == 0
    for task in (1, 2):
        flags = ["--local", "--probabilities", kit / f"p{task}.parquet"]
        done = run([f"task_{task}/sample_model_majority.py", *flags], kit=kit)
        assert done.returncode == 0, done.stderr
    return kit


@TASKS
def test_the_page_explains_the_score(predicted: Path, run: Run, tmp_path: Path, task: int) -> None:
    kit = predicted
    flags = ["--probabilities", kit / f"p{task}.parquet", "--output_dir", tmp_path]
    done = run([f"task_{task}/local_evaluation.py", *flags], kit=kit)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"scores_task_{task}.html").read_text()
    assert len(check_page(page).charts) == {1: 8, 2: 9}[task]
    text = in_page(page)
    for title in ("By difficulty of the question", "By number of known answers of the student",
                  "By number of known answers to the question", "By subject", "Confusion matrix",
                  "By known or unknown quiz", "Where most is lost", "Groups of students",
                  "Pupil premium", "Gender", "Age in years", "Probabilities"):  # fmt: skip
        assert title in text, title
    assert ("By which option is right" in text) == (task == 2)
    assert "Left out" not in text
    assert "Entry majority" in text
    assert f"sample_model_majority.py --local --probabilities {kit}/p{task}.parquet" in text
    assert re.search(r"Fit and predict \d+\.\d s, memory 0\.\d\d GB", text)

    score, figures, *others = done.stdout.splitlines()
    printed = re.fullmatch(r"score (0\.\d{4}) ± (0\.\d{4}) \(accuracy on [\d,]+ pairs\)", score)
    assert printed
    limits = json.loads((kit / "data/SIMULATED.json").read_text())["best_expected_accuracy"]
    best = limits["1_2"][{1: "right_or_wrong", 2: "option"}[task]]
    # The majority model is the majority.
    assert figures == f"majority {printed[1]}"
    for name, value in (("this entry", printed[1]), ("best possible", f"{best:.4f}")):
        assert f"<title>{name}: {value}</title>" in page

    valid = pd.read_csv(kit / "data/test_input/valid_task_1_2.csv")
    joined = valid.merge(pd.read_parquet(kit / f"p{task}.parquet"), on=KEYS)
    p = joined[NAMES[task]].to_numpy()
    loss = log_loss(joined[COLUMN[task]], np.c_[1 - p, p] if task == 1 else p)
    expected = f"log loss {loss:.4f}, "
    if task == 1:
        expected += f"AUC {roc_auc_score(joined.IsCorrect, p[:, 0]):.4f}, "
    assert others[0].startswith(f"{expected}Brier score 0.")
    for part in others[0].split(", "):
        assert re.sub(r"^[a-z]", lambda m: m[0].upper(), part) in text
    # The standard error, written out.
    submission = pd.read_csv(kit / f"data/test_output/test_submission_task_{task}.csv")
    both = valid.merge(submission, on=KEYS, suffixes=("", "_predicted"))
    right = both[COLUMN[task]] == both[f"{COLUMN[task]}_predicted"]
    sums = (right - right.mean()).groupby(both.UserId).sum()
    error = np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(both)
    assert printed[2] == f"{error:.4f}"


def test_local_and_phases_have_pages_of_their_own(
    predicted: Path, run: Run, tmp_path: Path
) -> None:
    output = ["--output_dir", tmp_path]
    assert run(["task_1/sample_model_majority.py", *output], kit=predicted).returncode == 0
    evaluation = ["task_1/local_evaluation.py", *output]
    assert run(evaluation, kit=predicted).returncode == 0
    kept = (tmp_path / "scores_task_1.html").read_bytes()
    for phase in ("public", "private"):
        flags = ["--phase", phase, "--submission_dir", tmp_path]
        assert run([*evaluation, *flags], kit=predicted).returncode == 0
    assert (tmp_path / "scores_task_1.html").read_bytes() == kept
    scores = [(tmp_path / f"scores_task_1{end}.txt").read_text() for end in ("", "_public")]
    assert scores[0] != scores[1]
    page = (tmp_path / "scores_task_1_private.html").read_text()
    # The training answers and metadata of the phases are those of the challenge.
    assert "Left out" not in page
    assert "Groups of students" in page


def test_the_submission_may_contradict_the_probabilities(
    predicted: Path, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "other.parquet"
    table = pd.read_parquet(predicted / "p1.parquet")
    table["ProbabilityCorrect"] = table.ProbabilityCorrect.where(table.index >= 3, lambda p: 1 - p)
    assert (table.ProbabilityCorrect[:3] != 0.5).all()
    table.sample(frac=1, random_state=0).to_parquet(path)
    flags = ["--probabilities", path, "--output_dir", tmp_path]
    done = run(["task_1/local_evaluation.py", *flags], kit=predicted)
    assert done.returncode == 0, done.stderr
    assert "\n3 predictions are not the most probable value\n" in done.stdout
    page = (tmp_path / "scores_task_1.html").read_text()
    assert "In 3 pairs the submission does not predict" in page


Damage = Callable[[pd.DataFrame], pd.DataFrame]


def put(row: int, name: str, value: float) -> Damage:
    def damage(table: pd.DataFrame) -> pd.DataFrame:
        table.loc[row, name] = value
        return table

    return damage


@pytest.mark.parametrize(
    ("task", "damage", "expected"),
    [
        (1, put(4, "ProbabilityCorrect", 1.5), "row 5 is 1.5 (1 such rows), expected a number"),
        (1, put(4, "ProbabilityCorrect", -0.1), "row 5 is -0.1"),
        (1, put(4, "ProbabilityCorrect", float("nan")), "'ProbabilityCorrect': row 5 is"),
        (2, put(4, "ProbabilityOption2", 0.99), "row 5: ProbabilityOption1 to ProbabilityOption4"),
        (1, lambda table: table.drop(index=7), "1 of 1600 pairs are missing, first UserId"),
        (2, lambda table: pd.concat([table, table[:1]]), "row 1601 repeats UserId"),
        (1, lambda table: table.drop(columns="UserId"), "column 'UserId' is missing"),
        (2, lambda table: table.drop(columns="ProbabilityOption4"), "'ProbabilityOption4' is"),
        (1, lambda table: table[:0], "has no rows"),
    ],
)
def test_no_score_with_wrong_probabilities(
    predicted: Path, fails: Fails, tmp_path: Path, task: int, damage: Damage, expected: str
) -> None:
    table = pd.read_parquet(predicted / f"p{task}.parquet")
    path = tmp_path / "mine.parquet"
    table.pipe(damage).to_parquet(path)
    expected = expected.replace("1600", str(len(table))).replace("1601", str(len(table) + 1))
    line = refuse(predicted, fails, path, task)
    assert line.startswith(f"{path}: ")
    assert expected in line


def refuse(kit: Path, fails: Fails, path: Path, task: int) -> str:
    """Evaluate with probabilities that must be refused: no score is left, nothing is recorded."""
    output = path.parent
    for name in (f"scores_task_{task}.txt", f"scores_task_{task}.html"):
        (output / name).write_text("of an earlier run")
    flags = ["--probabilities", path, "--output_dir", output]
    line = fails([f"task_{task}/local_evaluation.py", *flags], kit=kit)
    assert not [*output.glob("scores_*"), *output.glob("results*")]
    return line


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "file not found"), (b"UserId,QuestionId\n1,2\n", "is not a Parquet file")],
)
def test_no_score_without_a_file_of_probabilities(
    predicted: Path, fails: Fails, tmp_path: Path, content: bytes | None, expected: str
) -> None:
    path = tmp_path / "mine.parquet"
    if content is not None:
        path.write_bytes(content)
    assert expected in refuse(predicted, fails, path, 1)


@TASKS
def test_a_score_needs_nothing_but_the_answers(
    write: Callable[[str, str], Path], run: Run, tmp_path: Path, task: int
) -> None:
    """Without training answers and metadata, and by a submission whose maker is not known."""
    write("given/answers.csv", "QuestionId,UserId,IsCorrect,AnswerValue\n1,7,1,2\n2,7,0,3\n")
    write("given/mine.csv", "QuestionId,UserId,IsCorrect,AnswerValue\n1,7,1,2\n2,7,1,2\n")
    given = ["--input_dir", tmp_path / "given", "--submission_dir", tmp_path / "given"]
    files = ["--ref_data", "answers.csv", "--submit_data", "mine.csv", "--output_dir", tmp_path]
    done = run([f"task_{task}/local_evaluation.py", *given, *files])
    assert done.returncode == 0, done.stderr
    # One student tells nothing about others: there is no standard error.
    assert done.stdout.splitlines()[0] == "score 0.5000 (accuracy on 2 pairs)"
    assert len(done.stdout.splitlines()) == 2
    assert (tmp_path / f"scores_task_{task}.txt").read_text() == "score:0.5\n"
    page = (tmp_path / f"scores_task_{task}.html").read_text()
    check_page(page)
    text = in_page(page)
    assert "Entry not known" in text
    assert "Standard error not known: all answers are of one student" in text
    assert text.count("is not there.") == 4
    assert "By difficulty" not in text


def test_a_score_does_not_depend_on_what_explains_it(
    predicted: Path, run: Run, tmp_path: Path
) -> None:
    kit = shutil.copytree(predicted, tmp_path / "kit")
    assert run(["task_1/local_evaluation.py"], kit=kit).returncode == 0
    score = (kit / "data/test_output/scores_task_1.txt").read_text()
    path = kit / "data/metadata/student_metadata_task_1_2.csv"
    path.write_text("UserId,Gender\n1,x\n")
    # A training file of another split is no training file of this one.
    train = kit / "data/test_input/train_task_1_2.csv"
    train.write_bytes(train.read_bytes()[:-1])
    done = run(["task_1/local_evaluation.py"], kit=kit)
    assert done.returncode == 0, done.stderr
    assert (kit / "data/test_output/scores_task_1.txt").read_text() == score
    faults = [line for line in done.stdout.splitlines() if line.startswith("left out: ")]
    assert len(faults) == 2
    assert f"{train}: is not the file that" in faults[0]
    assert f"{path}: column 'Gender': row 2 is 'x'" in faults[1]
    page = in_page((kit / "data/test_output/scores_task_1.html").read_text())
    assert "Left out The majority" in page
    assert "By subject" in page
    assert "Diamond" not in page
