"""Task 4, run as a user runs it: split, train, evaluate, package."""

import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Run
from page_reading import Page, read_page

from common import metadata
from common.adaptive import isolation

Succeeds = Callable[..., str]
Fails = Callable[..., str]
Evaluate = Callable[..., tuple[str, float, Page]]
PUBLISHED = Path(__file__).parent / "published_entry"
EVALUATE = "task_4/numpy/local_evaluation.py"
TRAIN = "task_4/numpy/train_model.py"


def most_popular_score(train: pd.DataFrame, valid: pd.DataFrame, mask: str = "IsTarget") -> float:
    """The baseline's score in plain pandas; a tie counts as wrong, as in the official arrays."""
    mostly_right = train.groupby("QuestionId").IsCorrect.mean() > 0.5
    targets = valid[valid[mask] == 1]
    prediction = targets.QuestionId.map(mostly_right).fillna(train.IsCorrect.mean() > 0.5)
    return float((prediction.astype(int) == targets.IsCorrect).mean())


def read_split(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    train, valid = (pd.read_csv(folder / f"{name}_task_4.csv") for name in ("train", "valid"))
    return train, valid


@pytest.fixture(scope="module")
def kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory, succeeds: Succeeds) -> Path:
    """A kit with the baseline trained on its local split: tests only read from it."""
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("task_4") / "kit"))
    succeeds([TRAIN, "--local"], kit=kit)
    return kit


@pytest.fixture
def package(kit: Path, tmp_path: Path) -> Path:
    """A copy of the trained baseline, which a test may change."""
    return Path(shutil.copytree(kit / "task_4/numpy", tmp_path / "package"))


@pytest.fixture
def evaluate(kit: Path, tmp_path: Path, succeeds: Succeeds) -> Evaluate:
    """Score the baseline, or another submission; return what is printed, the score, the page."""

    def run(*flags: object, script: object = EVALUATE, name: str = "task_4") -> Any:
        printed = succeeds([script, *flags, "--output_dir", tmp_path], kit=kit)
        score = (tmp_path / f"scores_{name}.txt").read_text().removeprefix("score:")
        return printed, float(score), read_page((tmp_path / f"scores_{name}.html").read_text())

    return run


# ---- Scores ------------------------------------------------------------------------------------


def test_local_evaluation(kit: Path, evaluate: Evaluate, tmp_path: Path) -> None:
    printed, score, page = evaluate()
    train, valid = read_split(kit / "data/test_input")
    assert not set(train.UserId) & set(valid.UserId)
    expected = most_popular_score(train, valid)
    assert score == pytest.approx(expected)
    assert printed.startswith(f"score {expected:.4f} (one mask, targets may not be asked, ")
    assert not (tmp_path / "entry_output_task_4.txt").exists()
    assert "From simulated answers" in page.text
    facts = dict(page.tables[0].rows)
    assert facts["Phase"] == "local split"
    assert facts["Weights trained by"] == f"python {TRAIN} --local"
    assert facts["Students"] == f"{valid.UserId.nunique()}"
    assert facts["Targets scored"] == f"{valid.IsTarget.sum()}"
    assert facts["Rules"] == "targets may not be asked, unobserved = -1"
    assert facts["Isolation"] == isolation.describe(min(isolation.landlock_version(), 6))
    curve = page.table("Accuracy after each question")
    # This entry learns nothing from the answers.
    assert curve.rows == [[str(n), f"{expected:.4f}", f"{expected:.4f}"] for n in range(11)]
    assert [row[0] for row in page.table("Confusion matrix").rows[1:]] == ["wrong", "right"]


def test_every_selection_is_written_and_shown(
    kit: Path, evaluate: Evaluate, fails: Fails, tmp_path: Path
) -> None:
    """The most answered questions in order: in the file, on the page, printed if asked for."""
    script = "task_4/local_evaluation.py"
    show = "--skip_curve", "--show_sequences", 2
    printed, _, page = evaluate(kit / "task_4/numpy", *show, script=script)
    train, valid = read_split(kit / "data/test_input")
    askable = valid[valid.IsTarget == 0]
    askable = askable.assign(n=askable.QuestionId.map(train.QuestionId.value_counts()).fillna(0))
    askable = askable.sort_values(["UserId", "n", "QuestionId"], ascending=[True, False, True])
    expected = askable.groupby("UserId").head(10).reset_index(drop=True)
    expected["Mask"], expected["Round"] = "IsTarget", expected.groupby("UserId").cumcount() + 1
    columns = ["Mask", "UserId", "Round", "QuestionId", "IsCorrect"]
    written = pd.read_csv(tmp_path / "sequence_task_4.csv")
    pd.testing.assert_frame_equal(written, expected[columns], check_dtype=False)
    names = np.array(["wrong", "right"])
    of_student: dict[Any, Any] = {
        student: list(zip(rows.QuestionId.astype(str), names[rows.IsCorrect], strict=True))
        for student, rows in expected.groupby("UserId")
    }
    assert [line for line in printed.splitlines() if line.startswith("UserId")] == [
        f"UserId {student}, IsTarget: {', '.join(map(' '.join, of_student[student]))}"
        for student in list(of_student)[:2]
    ]
    tables = [t for t in page.tables if t.caption.startswith("UserId")]
    assert len(tables) == 3
    subjects = metadata.name_subjects(
        kit / "data/metadata/question_metadata_task_3_4.csv",
        kit / "data/metadata/subject_metadata.csv",
        np.arange(80),
    )
    for table in tables:
        rows = of_student[int(table.caption.removeprefix("UserId "))]
        assert table.rows == [
            [f"{number}", question, subjects[int(question)], outcome]
            for number, (question, outcome) in enumerate(rows, start=1)
        ]
    # A run that fails leaves nothing of the last one behind.
    fails([script, tmp_path / "none", "--output_dir", tmp_path], kit=kit)
    assert not (tmp_path / "sequence_task_4.csv").exists()
    assert not (tmp_path / "scores_task_4.txt").exists()


BELIEVES = """
    def predict_probabilities(self, masked_data, masked_binary_data):
        return 0.25 + 0.5 * self.predict(masked_data, masked_binary_data)
"""


def test_probabilities_are_written_and_scored(
    kit: Path, evaluate: Evaluate, fails: Fails, package: Path, tmp_path: Path
) -> None:
    path = tmp_path / "p.parquet"
    flags = ["--submission", package, "--skip_curve", "--probabilities", path]
    message = fails([EVALUATE, *flags, "--output_dir", tmp_path], kit=kit)
    assert "predict_probabilities, which --probabilities asks for: class Submission" in message
    assert not path.exists()
    entry = package / "submission_model_task_4.py"
    entry.write_text(entry.read_text() + BELIEVES)
    printed, score, page = evaluate(*flags)
    written = pd.read_parquet(path)
    train, valid = read_split(kit / "data/test_input")
    assert score == pytest.approx(most_popular_score(train, valid))
    targets = valid.query("IsTarget == 1")
    joined = targets.merge(written, on=["UserId", "QuestionId"], validate="one_to_one")
    assert len(joined) == len(targets) == len(written)
    p = joined.ProbabilityCorrect
    assert (((p > 0.5) == joined.IsCorrect).mean()) == pytest.approx(score)
    p_of_truth = np.where(joined.IsCorrect == 1, p, 1 - p)
    log_loss = f"{-np.log(p_of_truth).mean():.4f}"
    assert f"log loss {log_loss}, AUC" in printed
    assert page.headings[-1] == "Probabilities"
    assert log_loss in page.text
    contradicted = "predictions are not the most probable value"
    assert contradicted not in printed
    entry.write_text(entry.read_text().replace("0.25 + 0.5 *", "0.75 - 0.5 *"))
    assert f"{len(targets)} {contradicted}" in evaluate(*flags)[0]


def test_phases_average_their_ten_masks(
    kit: Path, evaluate: Evaluate, succeeds: Succeeds, package: Path, tmp_path: Path
) -> None:
    succeeds([package / "train_model.py"], kit=kit)
    flags = ["--phase", "public", "--skip_curve", "--unobserved", "0"]
    script = package / "local_evaluation.py"
    printed, score, page = evaluate(*flags, script=script, name="task_4_public")
    train = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    valid = pd.read_csv(kit / "data/test_data/test_public_task_4_more_splits.csv")
    masks = [f"IsTarget_{k}" for k in range(10)]
    scores = [most_popular_score(train, valid, mask) for mask in masks]
    assert score == pytest.approx(np.mean(scores))
    deviation = f"{np.std(scores, ddof=1):.4f}"
    assert f"score {np.mean(scores):.4f} ± {deviation} (mean of 10 masks, " in printed
    facts = dict(page.tables[0].rows)
    assert facts["Phase"] == "public"
    assert facts["Rules"] == "targets may not be asked, unobserved = 0"
    assert facts["Deviation over masks"] == deviation
    # Every mask's accuracy, and no curve.
    (chart,) = page.charts
    assert chart.titles == [f"{m}: {one:.4f}" for m, one in zip(masks, scores, strict=True)]
    assert "No curve: not asked for." in page.text
    sequences = pd.read_csv(tmp_path / "sequence_task_4_public.csv")
    for mask in masks:
        asked = sequences[sequences.Mask == mask].merge(valid, validate="one_to_one")
        assert (asked[mask] == 0).all()
        assert len(asked) == 10 * valid.UserId.nunique()


def test_files_without_options(
    kit: Path, evaluate: Evaluate, succeeds: Succeeds, package: Path, tmp_path: Path
) -> None:
    """A file of QuestionId, UserId and IsCorrect is enough, and no metadata are needed."""
    answers = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    answers[["QuestionId", "UserId", "IsCorrect"]].to_csv(tmp_path / "right.csv", index=False)
    split = tmp_path / "test_input"
    data = ["--input_dir", tmp_path, "--train_data", "right.csv"]
    succeeds(["task_4/local_data_split.py", *data, "--output_dir", split, "--seed", 5], kit=kit)
    there = ["--input_dir", split]
    succeeds([package / "train_model.py", *there, "--train_data", "train_task_4.csv"], kit=kit)
    _, score, _ = evaluate(*there, "--skip_curve", script=package / "local_evaluation.py")
    train, valid = read_split(split)
    assert set(valid.UserId) != set(read_split(kit / "data/test_input")[1].UserId)
    assert score == pytest.approx(most_popular_score(train, valid))


def test_published_entry_runs_unchanged(
    kit: Path, evaluate: Evaluate, succeeds: Succeeds, tmp_path: Path
) -> None:
    entry = Path(shutil.copytree(PUBLISHED, tmp_path / "entry"))
    train, _ = read_split(kit / "data/test_input")
    share = train.groupby("QuestionId").IsCorrect.mean().reindex(range(80)).fillna(0.5)
    np.save(entry / "model_task_4_difficulty.npy", 1 - share.to_numpy())
    printed, score, page = evaluate("--submission", entry, "--unobserved", "0")
    _, own, random = page.table("Accuracy after each question").rows[-1]
    assert f"with questions chosen at random {random}\n" in printed
    assert f"{score:.4f}" == own != random
    # It takes -1 for an answer, so that the reading of the rules makes a difference.
    assert evaluate("--submission", entry, "--skip_curve")[1] != score
    pack = ["task_4/package.py", entry, "--output_dir", tmp_path, "--unobserved", "0"]
    assert "left out: nothing\n" in succeeds(pack, kit=kit)


# ---- The zip -----------------------------------------------------------------------------------


def test_what_goes_into_the_zip(
    kit: Path, run: Run, evaluate: Evaluate, package: Path, tmp_path: Path
) -> None:
    for name in ("notes.txt", "drafts/idea.py", "weights/model_task_4_a.npy", "model_task_4.pt"):
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).touch()
    pack = ["task_4/package.py", package, "--output_dir", tmp_path]
    done = run(pack, kit=kit)
    assert done.returncode == 0
    assert done.stderr == (
        f"warning: {package}: its model was trained with --local and never saw the answers of the "
        f"validation students; `python {package}/train_model.py` learns from all\n"
    )
    assert "left out: drafts/, local_evaluation.py, notes.txt, train_model.py\n" in done.stdout
    with zipfile.ZipFile(tmp_path / "submission_task_4.zip") as archive:
        names = set(archive.namelist())
    assert {"model_task_4.pt", "weights/model_task_4_a.npy"} < names
    assert not {"notes.txt", "drafts/idea.py", "train_model.py"} & names
    (package / "model_task_4_training.json").write_text("damaged")
    assert run(pack, kit=kit).stderr == ""
    _, _, page = evaluate("--submission", package, "--skip_curve")
    assert dict(page.tables[0].rows)["Weights trained by"] == "not recorded"


def test_a_model_of_all_students_is_packed_without_a_warning_and_not_scored_on_them(
    kit: Path, succeeds: Succeeds, fails: Fails, package: Path, tmp_path: Path
) -> None:
    """Nor is an entry that is given their answers in its training file."""
    succeeds([package / "train_model.py"], kit=kit)
    succeeds(["task_4/package.py", package, "--output_dir", tmp_path], kit=kit)
    evaluate = [package / "local_evaluation.py", "--output_dir", tmp_path]
    message = fails(evaluate, kit=kit)
    assert re.search(r"trained on UserId \d+ of .*valid_task_4.csv.*`train_model.py --l", message)
    test_input = tmp_path / "test_input"
    test_input.mkdir()
    shutil.copy(kit / "data/test_input/valid_task_4.csv", test_input)
    shutil.copy(kit / "data/train_data/train_task_3_4.csv", test_input / "train_task_4.csv")
    message = fails([*evaluate, "--input_dir", test_input], kit=kit)
    assert re.search(r"train_task_4.csv: holds UserId \d+ of .*valid_task_4.csv", message)


def test_the_zip_is_not_written_unless_it_runs(
    kit: Path, fails: Fails, package: Path, tmp_path: Path
) -> None:
    command = ["task_4/package.py", package, "--output_dir", tmp_path / "output"]
    entry = package / "submission_model_task_4.py"
    for code, message in (
        ("import common.io\n" + entry.read_text(), "shared code, which is not there in the chall"),
        (entry.read_text().replace("return", "return 1 +"), "select_questions"),
        ("def", "is not Python"),
    ):
        entry.write_text(code)
        assert message in fails(command, kit=kit)
    entry.unlink()
    assert "file not found" in fails(command, kit=kit)
    assert not (tmp_path / "output").exists()


def test_faults_are_one_line(
    split_kit: Path, kit: Path, fails: Fails, package: Path, tmp_path: Path
) -> None:
    # As in a fresh clone.
    message = fails([EVALUATE], kit=split_kit)
    assert f"{split_kit}/task_4/numpy: holds no weights (model_task_4…)" in message
    assert f"`python {TRAIN}` writes (with --local for the local split)" in message
    # A folder for the probabilities is noticed before the games, which would show that there are
    # none.
    for flags, expected in (
        (["--ref_data", "none.csv"], r"none.csv: file not found; the folder holds .*, valid_task_"),
        (["--probabilities", tmp_path], "is a folder, expected the name of a file to write"),
        (["--time_limit", "0.01"], "has not finished; expected a whole game within 0.01 s"),
        (["--memory_limit", "0.01"], "expected at most 0.01 GiB"),
        ([], "starting Submission: raised FileNotFoundError"),
    ):
        if flags[:1] == ["--memory_limit"] and sys.platform != "linux":
            continue
        if not flags:
            (package / "model_task_4_num_answers.npy").unlink()
        command = [EVALUATE, "--submission", package, "--output_dir", tmp_path / "output", *flags]
        assert re.search(expected, fails(command, kit=kit))
    assert not (tmp_path / "output/scores_task_4.txt").exists()
