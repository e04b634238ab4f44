"""The evaluations of tasks 1 and 2 as a user runs them: page, probabilities, what is left out."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Write, fails, succeeds
from page_reading import Page, read_page
from planted_answers import COLUMN, KEYS, TASKS
from sample_blocks import needs_blocks
from sklearn.metrics import log_loss, roc_auc_score

NAMES = {1: ["ProbabilityCorrect"], 2: [f"ProbabilityOption{k}" for k in (1, 2, 3, 4)]}


@pytest.fixture(scope="module")
def predicted(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with the majority's predictions and probabilities: only read from it."""
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("predicted") / "kit"))
    for task in (1, 2):
        flags = ["--local", "--probabilities", kit / f"p{task}.parquet"]
        succeeds([f"task_{task}/sample_model_majority.py", *flags], kit=kit)
    # Three predictions contradict their probabilities.
    table = pd.read_parquet(kit / "p1.parquet")
    table["ProbabilityCorrect"] = table.ProbabilityCorrect.where(table.index >= 3, lambda p: 1 - p)
    assert (table.ProbabilityCorrect[:3] != 0.5).all()
    table.sample(frac=1, random_state=0).to_parquet(kit / "p1.parquet")
    return kit


def page_in(folder: Path, name: str) -> Page:
    return read_page((folder / f"scores_{name}.html").read_text())


@needs_blocks(*(f"task_{task}/sample_model_majority.py" for task in (1, 2)))
@TASKS
def test_the_page_explains_the_score(predicted: Path, tmp_path: Path, task: int) -> None:
    kit, probabilities = predicted, predicted / f"p{task}.parquet"
    flags = ["--probabilities", probabilities, "--output_dir", tmp_path]
    told = succeeds([f"task_{task}/local_evaluation.py", *flags], kit=kit).splitlines()
    printed = re.fullmatch(r"score (0\.\d{4}) ± (0\.\d{4}) \(accuracy on [\d,]+ pairs\)", told[0])
    assert printed
    page = page_in(tmp_path, f"task_{task}")
    by_option = ["By which option is right"] * (task == 2)
    assert page.headings[1:] == [
        "Confusion matrix", "Probabilities", "Where predictions are right",
        "By difficulty of the question", "By number of known answers of the student",
        "By number of known answers to the question", *by_option, "By subject",
        "By subject, one level further down", "By known or unknown quiz", "Where most is lost",
        "Questions", "Subjects", "Groups of students", "Gender", "Pupil premium",
        "Age in years on 2019-09-01",
    ]  # fmt: skip
    assert len(page.charts) == 8 + len(by_option)
    facts = {row[0]: row[1] for row in page.tables[0].rows}
    assert facts["Entry"] == "majority"
    assert facts["Made by"].endswith(f"majority.py --local --probabilities {probabilities}")
    assert re.fullmatch(r"\d+\.\d s, memory \d\.\d\d GB", facts["Fit and predict"])
    # The majority model is the majority.
    assert told[1] == f"majority {printed[1]}"
    limits = json.loads((kit / "data/SIMULATED.json").read_text())["best_expected_accuracy"]
    best = limits["1_2"][{1: "right_or_wrong", 2: "option"}[task]]
    assert page.charts[0].titles == [
        f"this entry: {printed[1]}", f"majority: {printed[1]}", f"best possible: {best:.4f}",
    ]  # fmt: skip

    valid = pd.read_csv(kit / "data/test_input/valid_task_1_2.csv")
    joined = valid.merge(pd.read_parquet(probabilities), on=KEYS)
    p = joined[NAMES[task]].to_numpy()
    loss = log_loss(joined[COLUMN[task]], np.c_[1 - p, p] if task == 1 else p)
    auc = f"AUC {roc_auc_score(joined.IsCorrect, p[:, 0]):.4f}, " if task == 1 else ""
    happened = joined[[COLUMN[task]]].to_numpy() == np.arange(1, p.shape[1] + 1)
    brier = ((p - happened) ** 2).sum(axis=1).mean()
    assert told[2].startswith(f"log loss {loss:.4f}, {auc}Brier score {brier:.4f}, ")
    for part in told[2].split(", "):
        name, figure = part.rsplit(" ", 1)
        assert page.table("Probabilities").row(name[0].upper() + name[1:])[1] == figure
    contradicted = ["3 predictions are not the most probable value"] * (task == 1)
    assert [line for line in told if " predictions " in line] == contradicted
    assert ("In 3 pairs the submission does not predict" in page.text) == (task == 1)
    submission = pd.read_csv(kit / f"data/test_output/test_submission_task_{task}.csv")
    both = valid.merge(submission, on=KEYS, suffixes=("", "_predicted"))
    truth, predictions = both[COLUMN[task]], both[f"{COLUMN[task]}_predicted"]
    assert printed[1] == f"{(truth == predictions).mean():.4f}"
    pattern = r"(\S+), 95 % interval (\S+) to (\S+): (\d+) students, .*"
    said = re.fullmatch(pattern, facts["Standard error"])
    assert said and (said[1], int(said[4])) == (printed[2], both.UserId.nunique())
    low, high = float(said[2]), float(said[3])
    assert low < float(printed[1]) < high
    assert high - low == pytest.approx(2 * 1.96 * float(said[1]), rel=0.1)
    # The rows of the confusion matrix are the truth.
    counts = pd.crosstab(truth, predictions).to_numpy()
    for row, n in zip(page.table("Of the answers").rows[1:], counts, strict=True):
        assert row[1:] == [f"{count / sum(n):.1%}{count:,}" for count in n]


@TASKS
def test_no_score_with_wrong_probabilities(predicted: Path, tmp_path: Path, task: int) -> None:
    """No score of an earlier run is left, and nothing is recorded."""
    path = tmp_path / "mine.parquet"
    pd.read_parquet(predicted / f"p{task}.parquet")[:-1].to_parquet(path)
    for end in ("txt", "html"):
        (tmp_path / f"scores_task_{task}.{end}").write_text("of an earlier run")
    flags = ["--probabilities", path, "--output_dir", tmp_path]
    line = fails([f"task_{task}/local_evaluation.py", *flags], kit=predicted)
    assert line.startswith(f"{path}: ") and " pairs are missing, first UserId" in line
    assert [*tmp_path.iterdir()] == [path]


@TASKS
def test_a_score_needs_nothing_but_the_answers(write: Write, tmp_path: Path, task: int) -> None:
    """Without training answers and metadata, and by a submission whose maker is not known."""
    write("given/answers.csv", "QuestionId,UserId,IsCorrect,AnswerValue\n1,7,1,2\n2,7,0,3\n")
    write("given/mine.csv", "QuestionId,UserId,IsCorrect,AnswerValue\n1,7,1,2\n2,7,1,2\n")
    given = ["--input_dir", tmp_path / "given", "--submission_dir", tmp_path / "given"]
    files = ["--ref_data", "answers.csv", "--submit_data", "mine.csv", "--output_dir", tmp_path]
    printed = succeeds([f"task_{task}/local_evaluation.py", *given, *files]).splitlines()
    # One student tells nothing about others: there is no standard error.
    assert printed[0] == "score 0.5000 (accuracy on 2 pairs)"
    assert len(printed) == 2
    assert (tmp_path / f"scores_task_{task}.txt").read_text() == "score:0.5\n"
    page = page_in(tmp_path, f"task_{task}")
    assert "Entry not known" in page.text
    assert "Standard error not known: all answers are of one student" in page.text
    assert page.text.count("is not there.") == 4
    assert "By difficulty" not in page.text


def test_a_score_does_not_depend_on_what_explains_it(predicted: Path, tmp_path: Path) -> None:
    """But on the true answers: those of another split give none, and leave none that was there."""
    kit = Path(shutil.copytree(predicted, tmp_path / "kit"))
    evaluation = ["task_1/local_evaluation.py", "--output_dir", tmp_path]
    first = succeeds(evaluation, kit=kit).splitlines()[0]
    path = kit / "data/metadata/student_metadata_task_1_2.csv"
    path.write_text("UserId,Gender\n1,x\n")
    # A training file of another split is no training file of this one.
    train = kit / "data/test_input/train_task_1_2.csv"
    train.write_bytes(train.read_bytes()[:-1])
    again, *others = succeeds(evaluation, kit=kit).splitlines()
    assert again == first
    majority, students = (line for line in others if line.startswith("left out: "))
    assert f"{train}: is not the file that" in majority
    assert f"{path}: column 'Gender': row 2 is 'x'" in students
    page = page_in(tmp_path, "task_1")
    assert "Left out The majority" in page.text
    assert "By subject" in page.headings
    assert "Diamond" not in page.text
    valid = kit / "data/test_input/valid_task_1_2.csv"
    valid.write_bytes(valid.read_bytes()[:-1])
    assert f"{valid}: is not the file that" in fails(evaluation, kit=kit)
    assert not list(tmp_path.glob("scores_*"))
