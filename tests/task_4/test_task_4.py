"""Task 4, run as a user runs it: split, train, evaluate, package."""

import ast
import json
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
from conftest import ROOT, Run, run_python
from page_reading import read_page as check_page

from common.adaptive import isolation

Fails = Callable[..., str]
WEIGHTS = {"model_task_4_most_popular.npy", "model_task_4_num_answers.npy"}
PUBLISHED = Path(__file__).parent / "published_entry"
EVALUATE = "task_4/numpy/local_evaluation.py"
TRAIN = "task_4/numpy/train_model.py"


def read_score(folder: Path, name: str = "task_4") -> float:
    return float((folder / f"scores_{name}.txt").read_text().removeprefix("score:"))


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


@pytest.fixture(scope="module")
def kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kit with a local split and the baseline trained on it: tests only read from it."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("task_4") / "kit"))
    run_all(run_python, kit, ["task_4/local_data_split.py"], [TRAIN, "--local"])
    return kit


@pytest.fixture
def package(kit: Path, tmp_path: Path) -> Path:
    """A copy of the trained baseline, which a test may change."""
    return Path(shutil.copytree(kit / "task_4/numpy", tmp_path / "package"))


def test_local_split_training_evaluation(kit: Path, run: Run) -> None:
    """The whole way with nothing but defaults, from another working directory."""
    printed = run_all(run, kit, [EVALUATE])
    assert {path.name for path in (kit / "task_4/numpy").glob("*.npy")} > WEIGHTS
    test_input, test_output = kit / "data/test_input", kit / "data/test_output"
    train = pd.read_csv(test_input / "train_task_4.csv")
    valid = pd.read_csv(test_input / "valid_task_4.csv")
    assert not set(train.UserId) & set(valid.UserId)
    expected = most_popular_score(train, valid, "IsTarget")
    assert read_score(test_output) == pytest.approx(expected)
    assert printed.startswith(f"score {expected:.4f} (one mask, targets may not be asked, ")
    assert f"with questions chosen at random {expected:.4f}" in printed

    page = (test_output / "scores_task_4.html").read_text()
    for text in (
        "simulated",
        "Confusion matrix",
        "<svg",
        "targets may not be asked",
        "local split",
        "Isolation",
        isolation.describe(min(isolation.landlock_version(), 6)),
    ):
        assert text in page
    assert not (test_output / "entry_output_task_4.txt").exists()
    # The questions shown are the most answered ones that this student may be asked.
    student = int(re.search(r"UserId (\d+)", page)[1])  # type: ignore[index]
    askable = valid[(valid.UserId == student) & (valid.IsTarget == 0)].set_index("QuestionId")
    n_answers = train.QuestionId.value_counts().reindex(askable.index).fillna(0)
    expected_order = sorted(n_answers.index, key=lambda question: (-n_answers[question], question))
    shown = re.findall(r'<th scope="row">\d+</th><td>(\d+)</td><td>(.*?)</td><td>(\w+)', page)
    assert [int(question) for question, _, _ in shown[:10]] == expected_order[:10]
    outcomes = [("wrong", "right")[askable.IsCorrect[question]] for question in expected_order[:10]]
    assert [outcome for _, _, outcome in shown[:10]] == outcomes
    subjects = pd.read_csv(kit / "data/metadata/subject_metadata.csv").set_index("SubjectId").Name
    metadata = pd.read_csv(kit / "data/metadata/question_metadata_task_3_4.csv")
    lists = metadata.set_index("QuestionId").SubjectId
    for question, subject, _ in shown:
        names = {subjects[number] for number in json.loads(lists[int(question)])}
        assert set(subject.split(", ")) <= {part for name in names for part in name.split(", ")}
        assert subject


def test_every_selection_goes_to_a_file(
    kit: Path, run: Run, fails: Fails, package: Path, tmp_path: Path
) -> None:
    """The most answered questions in order, as the page shows them; printed for those asked for."""
    printed = run_all(
        run,
        kit,
        ["task_4/local_evaluation.py", package, "--skip_curve", "--show_sequences", 2,
         "--output_dir", tmp_path],
    )  # fmt: skip
    sequences = pd.read_csv(tmp_path / "sequence_task_4.csv")
    assert list(sequences) == ["Mask", "UserId", "Round", "QuestionId", "IsCorrect"]
    train = pd.read_csv(kit / "data/test_input/train_task_4.csv")
    valid = pd.read_csv(kit / "data/test_input/valid_task_4.csv")
    n_answers = train.QuestionId.value_counts()
    askable = valid[valid.IsTarget == 0]
    askable = askable.assign(n=askable.QuestionId.map(n_answers).fillna(0))
    askable = askable.sort_values(["UserId", "n", "QuestionId"], ascending=[True, False, True])
    expected = askable.groupby("UserId").head(10).reset_index(drop=True)
    assert (sequences.Mask == "IsTarget").all()
    assert (sequences.Round == np.tile(np.arange(1, 11), valid.UserId.nunique())).all()
    columns = ["UserId", "QuestionId", "IsCorrect"]
    pd.testing.assert_frame_equal(sequences[columns], expected[columns])
    lines = [line for line in printed.splitlines() if line.startswith("UserId")]
    assert len(lines) == 2
    for line, (student, rows) in zip(lines, expected.groupby("UserId"), strict=False):
        asked = (
            f"{question} {('wrong', 'right')[is_right]}"
            for question, is_right in zip(rows.QuestionId, rows.IsCorrect, strict=True)
        )
        assert line == f"UserId {student}, IsTarget: {', '.join(asked)}"
    # A run that fails leaves nothing of the last one behind.
    fails(["task_4/local_evaluation.py", tmp_path / "none", "--output_dir", tmp_path], kit=kit)
    assert not (tmp_path / "sequence_task_4.csv").exists()


def test_the_script_for_any_entry_scores_like_the_packages_own(
    kit: Path, run: Run, fails: Fails, package: Path, tmp_path: Path
) -> None:
    run_all(run, kit, [EVALUATE, "--submission", package, "--output_dir", tmp_path / "own"])
    run_all(run, kit, ["task_4/local_evaluation.py", package, "--output_dir", tmp_path])
    assert read_score(tmp_path) == read_score(tmp_path / "own")
    page = (tmp_path / "scores_task_4.html").read_text()
    assert f"<td>python {TRAIN} --local</td>" in re.sub(r"<wbr>|</?span[^>]*>", "", page)
    (package / "model_task_4_training.json").unlink()
    run_all(run, kit, ["task_4/local_evaluation.py", package, "--output_dir", tmp_path])
    assert "not recorded" in (tmp_path / "scores_task_4.html").read_text()
    done = run(["task_4/local_evaluation.py"], kit=kit)
    assert done.returncode == 2
    assert "required: SUBMISSION" in done.stderr


BELIEVES = """
    def predict_probabilities(self, masked_data, masked_binary_data):
        return 0.25 + 0.5 * self.predict(masked_data, masked_binary_data)
"""


def test_probabilities_are_written_and_scored(
    kit: Path, run: Run, package: Path, tmp_path: Path
) -> None:
    evaluate = [package / "local_evaluation.py", "--output_dir", tmp_path, "--skip_curve"]
    path = tmp_path / "p.parquet"
    done = run([*evaluate, "--probabilities", path], kit=kit)
    assert done.returncode == 2
    assert "predict_probabilities, which --probabilities asks for: class Submission" in done.stderr
    assert not path.exists()
    entry = package / "submission_model_task_4.py"
    entry.write_text(entry.read_text() + BELIEVES)
    printed = run_all(run, kit, evaluate)
    score = read_score(tmp_path)
    assert "log loss" not in printed
    printed = run_all(run, kit, [*evaluate, "--probabilities", path])
    assert read_score(tmp_path) == score
    written = pd.read_parquet(path)
    valid = pd.read_csv(kit / "data/test_input/valid_task_4.csv").query("IsTarget == 1")
    joined = valid.merge(written, on=["UserId", "QuestionId"], validate="one_to_one")
    assert len(joined) == len(valid) == len(written)
    p = joined.ProbabilityCorrect
    assert (((p > 0.5) == joined.IsCorrect).mean()) == pytest.approx(score)
    p_of_truth = np.where(joined.IsCorrect == 1, p, 1 - p)
    assert f"log loss {-np.log(p_of_truth).mean():.4f}, AUC" in printed
    page = (tmp_path / "scores_task_4.html").read_text()
    assert "Calibration of the probabilities" in page
    contradicted = "predictions are not the most probable value"
    assert contradicted not in printed
    entry.write_text(entry.read_text().replace("0.25 + 0.5 *", "0.75 - 0.5 *"))
    assert f"{len(valid)} {contradicted}" in run_all(run, kit, [*evaluate, "--probabilities", path])


@pytest.mark.parametrize("phase", ["public", "private"])
def test_phases_average_their_ten_masks(
    kit: Path, run: Run, package: Path, tmp_path: Path, phase: str
) -> None:
    evaluate = [package / "local_evaluation.py", "--phase", phase, "--output_dir", tmp_path]
    printed = run_all(
        run,
        kit,
        [package / "train_model.py"],
        [*evaluate, "--skip_curve", "--unobserved", "0"],
    )
    train = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    valid = pd.read_csv(kit / f"data/test_data/test_{phase}_task_4_more_splits.csv")
    scores = [most_popular_score(train, valid, f"IsTarget_{k}") for k in range(10)]
    assert read_score(tmp_path, f"task_4_{phase}") == pytest.approx(np.mean(scores))
    assert f"score {np.mean(scores):.4f} ± {np.std(scores, ddof=1):.4f} (mean of 10" in printed
    page = (tmp_path / f"scores_task_4_{phase}.html").read_text()
    assert "unobserved = 0" in page
    assert phase in page
    # Every mask's accuracy, and no curve.
    assert len(check_page(page).charts) == 1
    for k, score in enumerate(scores):
        assert f"<title>IsTarget_{k}: {score:.4f}</title>" in page
    sequences = pd.read_csv(tmp_path / f"sequence_task_4_{phase}.csv")
    assert len(sequences) == 10 * 10 * valid.UserId.nunique()
    for k in range(10):
        asked = sequences[sequences.Mask == f"IsTarget_{k}"].merge(valid, validate="one_to_one")
        assert (asked[f"IsTarget_{k}"] == 0).all()
        assert len(asked) == 10 * valid.UserId.nunique()


def test_files_without_options(kit: Path, run: Run, package: Path, tmp_path: Path) -> None:
    """A file of QuestionId, UserId and IsCorrect is enough, and no metadata are needed."""
    train = pd.read_csv(kit / "data/train_data/train_task_3_4.csv")
    train[["QuestionId", "UserId", "IsCorrect"]].to_csv(tmp_path / "right_wrong.csv", index=False)
    split = tmp_path / "test_input"
    data = ["--input_dir", tmp_path, "--train_data", "right_wrong.csv"]
    run_all(
        run,
        kit,
        ["task_4/local_data_split.py", *data, "--output_dir", split, "--seed", 5],
        [package / "train_model.py", "--input_dir", split, "--train_data", "train_task_4.csv"],
        [package / "local_evaluation.py", "--input_dir", split, "--output_dir", tmp_path],
    )
    train, valid = (pd.read_csv(split / f"{name}_task_4.csv") for name in ("train", "valid"))
    assert read_score(tmp_path) == pytest.approx(most_popular_score(train, valid, "IsTarget"))


def test_targets_may_be_asked_if_the_rules_say_so(kit: Path, run: Run, tmp_path: Path) -> None:
    """Then the baseline asks a target sooner or later, which it may not by default."""
    valid = pd.read_csv(kit / "data/test_input/valid_task_4.csv")
    targets = valid[valid.IsTarget == 1].groupby("UserId").QuestionId.agg(set)
    n_asked = {}
    for flag in ([], ["--targets_queryable"]):
        run_all(run, kit, [EVALUATE, "--skip_curve", *flag, "--output_dir", tmp_path])
        page = (tmp_path / "scores_task_4.html").read_text()
        parts = re.split(r"UserId (\d+)", page)[1:]
        questions = [re.findall(r"</th><td>(\d+)</td>", part) for part in parts[1::2]]
        n_asked[bool(flag)] = sum(
            len(targets[int(student)] & {int(question) for question in asked})
            for student, asked in zip(parts[::2], questions, strict=True)
        )
        assert ("targets may be asked" in page) == bool(flag)
    assert n_asked[False] == 0
    assert n_asked[True] > 0


def test_published_entry_runs_unchanged(kit: Path, run: Run, tmp_path: Path) -> None:
    entry = Path(shutil.copytree(PUBLISHED, tmp_path / "entry"))
    train = pd.read_csv(kit / "data/test_input/train_task_4.csv")
    questions = pd.read_csv(kit / "data/metadata/question_metadata_task_3_4.csv").QuestionId
    share = train.groupby("QuestionId").IsCorrect.mean()
    difficulty = 1 - share.reindex(range(questions.max() + 1)).fillna(0.5)
    np.save(entry / "model_task_4_difficulty.npy", difficulty.to_numpy())
    evaluate = [EVALUATE, "--submission", entry, "--output_dir", tmp_path]
    printed = run_all(run, kit, [*evaluate, "--unobserved", "0"])
    assert "with questions chosen at random" in printed
    zeros = read_score(tmp_path)
    run_all(run, kit, [*evaluate, "--skip_curve"])
    # It takes -1 for an answer, so that the reading of the rules makes a difference.
    assert read_score(tmp_path) != zeros


def test_package_holds_what_the_entry_needs(
    kit: Path, run: Run, package: Path, tmp_path: Path
) -> None:
    (package / "notes.txt").write_text("not needed")
    (package / "drafts").mkdir()
    (package / "drafts" / "idea.py").write_text("")
    (package / "weights").mkdir()
    (package / "weights" / "model_task_4_more.npy").write_text("")
    (package / "model_task_4.pt").write_text("the guide's own name for weights")
    output = tmp_path / "output"
    done = run(["task_4/package.py", package, "--output_dir", output], kit=kit)
    assert done.returncode == 0
    assert done.stderr == (
        f"warning: {package}: its model was trained with --local and never saw the answers of the "
        f"validation students; `python {package}/train_model.py` learns from all\n"
    )
    printed = done.stdout
    assert "left out: drafts/, local_evaluation.py, notes.txt, train_model.py" in printed
    path = output / "submission_task_4.zip"
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == WEIGHTS | {
            "model.py",
            "model_task_4.pt",
            "model_task_4_students.npy",
            "model_task_4_training.json",
            "submission_model_task_4.py",
            "weights/model_task_4_more.npy",
        }
        archive.extractall(tmp_path / "empty")
    run_all(run, kit, [EVALUATE, "--skip_curve", "--submission", path, "--output_dir", tmp_path])
    test_input = kit / "data/test_input"
    train, valid = (pd.read_csv(test_input / f"{name}_task_4.csv") for name in ("train", "valid"))
    assert read_score(tmp_path) == pytest.approx(most_popular_score(train, valid, "IsTarget"))

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


def test_a_model_of_all_students_is_packed_without_a_warning(
    kit: Path, run: Run, package: Path, tmp_path: Path
) -> None:
    pack = ["task_4/package.py", package, "--output_dir", tmp_path]
    run_all(run, kit, [package / "train_model.py"], pack)
    (package / "model_task_4_training.json").write_text("damaged")
    run_all(run, kit, pack)


def test_package_is_not_written_unless_it_runs(
    kit: Path, fails: Fails, package: Path, tmp_path: Path
) -> None:
    command = ["task_4/package.py", package, "--output_dir", tmp_path / "output"]
    entry = package / "submission_model_task_4.py"
    entry.write_text("import common.io\n" + entry.read_text())
    message = fails(command, kit=kit)
    assert "the kit's shared code, which is not there in the challenge" in message
    entry.write_text("def")
    assert "is not Python" in fails(command, kit=kit)
    entry.unlink()
    assert "file not found" in fails(command, kit=kit)
    assert not (tmp_path / "output").exists()


def test_faults_are_one_line(kit: Path, fails: Fails, package: Path, tmp_path: Path) -> None:
    evaluate = [EVALUATE, "--submission", package, "--output_dir", tmp_path / "output"]
    message = fails([*evaluate, "--ref_data", "none.csv"], kit=kit)
    assert (
        "none.csv: file not found; the folder holds train_task_4.csv, valid_task_4.csv" in message
    )
    # Before the games, which would show that this entry has no probabilities.
    message = fails([*evaluate, "--probabilities", tmp_path], kit=kit)
    assert message == f"{tmp_path}: is a folder, expected the name of a file to write"
    message = fails([*evaluate, "--time_limit", "0.01"], kit=kit)
    assert "has not finished; expected a whole game within 0.01 s" in message
    if sys.platform == "linux":
        message = fails([*evaluate, "--memory_limit", "0.01"], kit=kit)
        assert "expected at most 0.01 GiB" in message
    (package / "model_task_4_num_answers.npy").unlink()
    assert "starting Submission: raised FileNotFoundError" in fails(evaluate, kit=kit)
    assert not (tmp_path / "output/scores_task_4.txt").exists()


def test_a_package_without_weights_names_its_trainer(
    simulated_kit: Path, fails: Fails, tmp_path: Path
) -> None:
    """As in a fresh clone: one line that says what to run, wherever it is met."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path / "kit"))
    assert run_python(["task_4/local_data_split.py"], kit=kit).returncode == 0
    package = kit / "task_4/numpy"
    for command in (
        [EVALUATE],
        ["task_4/package.py", package],
        ["-m", "common.check_submission", package],
    ):
        message = fails(command, kit=kit)
        assert f"{package}: holds no weights (model_task_4…)" in message
        assert f"`python {TRAIN}` writes (with --local for the local split)" in message


@pytest.mark.parametrize("script", ["package", "check"])
def test_entries_for_zeros_are_packaged_and_checked(
    kit: Path, run: Run, fails: Fails, tmp_path: Path, script: str
) -> None:
    """With the reading of the rules that they were written for."""
    entry = Path(shutil.copytree(PUBLISHED, tmp_path / "entry"))
    questions = pd.read_csv(kit / "data/metadata/question_metadata_task_3_4.csv").QuestionId
    np.save(entry / "model_task_4_difficulty.npy", np.full(questions.max() + 1, 0.5))
    code = entry / "submission_model_task_4.py"
    strict = "ability = self.model.ability(masked_data, masked_binary_data)\n"
    assert strict in code.read_text()
    embed = "        np.zeros(5)[:][[0] if masked_data.min() == 0 else [7]]\n"
    code.write_text(code.read_text().replace(strict, strict + embed))
    command = {
        "package": ["task_4/package.py", entry, "--output_dir", tmp_path / "output"],
        "check": ["-m", "common.check_submission", entry],
    }[script]
    message = fails(command, kit=kit, cwd=kit)
    assert "raised IndexError" in message
    assert message.endswith("; an entry written for 0 as unobserved needs --unobserved 0")
    run_all(run, kit, [*command, "--unobserved", "0", "--time_limit", "100"])


def test_nobody_is_examined_who_was_trained_on(
    kit: Path, run: Run, fails: Fails, package: Path, tmp_path: Path
) -> None:
    """Neither by the package's own weights nor by the training file that the entry is given."""
    run_all(run, kit, [package / "train_model.py"])
    evaluate = [package / "local_evaluation.py", "--output_dir", tmp_path]
    message = fails(evaluate, kit=kit)
    assert re.search(r"its model is trained on UserId \d+ of .*valid_task_4.csv", message)
    assert "`train_model.py --local`" in message

    test_input = tmp_path / "test_input"
    test_input.mkdir()
    shutil.copy(kit / "data/test_input/valid_task_4.csv", test_input)
    shutil.copy(kit / "data/train_data/train_task_3_4.csv", test_input / "train_task_4.csv")
    message = fails([*evaluate, "--input_dir", test_input], kit=kit)
    assert re.search(r"train_task_4.csv: holds UserId \d+ of .*valid_task_4.csv", message)


@pytest.mark.parametrize("folder", ["task_4", "task_4/numpy"])
def test_numpy_is_not_shadowed(run: Run, kit: Path, tmp_path: Path, folder: str) -> None:
    """Scripts in these folders, and Python started there, import the real NumPy."""
    assert not (kit / "task_4/numpy/__init__.py").exists()
    code = "import numpy; print(numpy.arange(3).sum())"
    script = tmp_path / folder / "probe.py"
    shutil.copytree(kit / "task_4", tmp_path / "task_4")
    script.write_text(code)
    assert run([script], kit=kit).stdout.strip() == "3"
    assert run(["-c", code], kit=kit, cwd=kit / folder).stdout.strip() == "3"


def test_the_packages_find_revealed_answers_alike() -> None:
    """They import nothing from each other or from common/, so both hold the function."""
    texts = []
    for package in ("item_response", "pytorch"):
        source = (ROOT / "task_4" / package / "model.py").read_text(encoding="utf-8")
        functions = {
            node.name: ast.get_source_segment(source, node)
            for node in ast.parse(source).body
            if isinstance(node, ast.FunctionDef)
        }
        texts.append(functions["find_revealed"])
    assert texts[0] == texts[1]


def test_what_goes_into_the_zip_imports_nothing_of_the_kit() -> None:
    for package in ("item_response", "numpy", "pytorch"):
        for name in ("model.py", "submission_model_task_4.py"):
            source = (ROOT / "task_4" / package / name).read_text(encoding="utf-8")
            assert not re.search(r"^\s*(from|import) common\b", source, re.MULTILINE)
