"""Tasks 1 and 2, run as a user runs them: split, sample model, evaluation, upload."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Run

KEYS = ["UserId", "QuestionId"]
COLUMN = {1: "IsCorrect", 2: "AnswerValue"}
Fails = Callable[..., str]
TASKS = pytest.mark.parametrize("task", [1, 2])


def read_score(folder: Path, task: int, end: str = "") -> float:
    return float((folder / f"scores_task_{task}{end}.txt").read_text().removeprefix("score:"))


@TASKS
def test_local_split_model_evaluation(tiny_kit: Path, run: Run, task: int) -> None:
    """The whole way with nothing but defaults, from another working directory."""
    for command in (
        [f"task_{task}/local_data_split.py"],
        [f"task_{task}/sample_model_majority.py", "--local"],
        [f"task_{task}/local_evaluation.py"],
    ):
        done = run(command, kit=tiny_kit)
        assert done.returncode == 0, done.stderr
    test_input, test_output = tiny_kit / "data/test_input", tiny_kit / "data/test_output"
    train = pd.read_csv(test_input / "train_task_1_2.csv")
    valid = pd.read_csv(test_input / "valid_task_1_2.csv")
    template = pd.read_csv(test_input / "test_submission_task_1_2.csv")
    submission = pd.read_csv(test_output / f"test_submission_task_{task}.csv")
    official = pd.read_csv(tiny_kit / "data/train_data/train_task_1_2.csv")
    assert len(train) + len(valid) == len(official)
    assert len(valid) == round(0.2 * len(official))
    pd.testing.assert_frame_equal(submission[template.columns], template)

    # The same in plain pandas; a tie goes to the overall majority, or to the smaller option.
    column = COLUMN[task]
    counts = pd.crosstab(train.QuestionId, train[column])
    most_common = counts.idxmax(axis=1)
    if task == 1:
        most_common[counts[0] == counts[1]] = counts.sum().idxmax()
    expected = submission.QuestionId.map(most_common).fillna(counts.sum().idxmax())
    assert np.array_equal(submission[column], expected)
    assert read_score(test_output, task) == pytest.approx(np.mean(valid[column] == expected))
    page = (test_output / f"scores_task_{task}.html").read_text()
    assert "simulated" in page
    assert "Confusion matrix" in page


@TASKS
@pytest.mark.parametrize("phase", ["public", "private"])
def test_official_template_and_phases(tiny_kit: Path, run: Run, task: int, phase: str) -> None:
    done = run([f"task_{task}/sample_model_majority.py"], kit=tiny_kit)
    assert done.returncode == 0, done.stderr
    folder = tiny_kit / "submissions"
    path = folder / f"submission_task_{task}.csv"
    template = pd.read_csv(tiny_kit / "submission_templates/submission_task_1_2.csv", dtype=str)
    submission = pd.read_csv(path, dtype=str)
    column = COLUMN[task]
    untouched = [name for name in template.columns if name != column]
    pd.testing.assert_frame_equal(submission[untouched], template[untouched])
    with zipfile.ZipFile(path.with_suffix(".zip")) as archive:
        assert archive.namelist() == [path.name]
        assert archive.read(path.name) == path.read_bytes()

    truth = pd.read_csv(tiny_kit / f"data/test_data/test_{phase}_answers_task_{task}.csv")
    merged = truth.merge(pd.read_csv(path), on=KEYS, suffixes=("", "_predicted"))
    expected = np.mean(merged[column] == merged[f"{column}_predicted"])
    for name in (path.name, path.with_suffix(".zip").name):
        evaluation = [f"task_{task}/local_evaluation.py", "--phase", phase, "--submit_data", name]
        done = run(evaluation, kit=tiny_kit)
        assert done.returncode == 0, done.stderr
        output = tiny_kit / "data/test_output"
        assert read_score(output, task, f"_{phase}") == pytest.approx(expected)
        assert f"{len(submission) - len(truth):,} rows of the other phase ignored\n" in done.stdout


@TASKS
def test_zip_holds_the_official_name_whatever_the_file_is_called(
    tiny_kit: Path, run: Run, task: int, tmp_path: Path
) -> None:
    output = ["--output_dir", tmp_path, "--output_file", "my_idea.csv"]
    done = run([f"task_{task}/sample_model_majority.py", *output], kit=tiny_kit)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "my_idea.zip") as archive:
        assert archive.namelist() == [f"submission_task_{task}.csv"]


def test_the_seed_decides_the_split(tiny_kit: Path, run: Run, tmp_path: Path) -> None:
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        arguments = ["--output_dir", tmp_path / folder, "--seed", seed]
        assert run(["task_2/local_data_split.py", *arguments], kit=tiny_kit).returncode == 0
    a, b, c = ((tmp_path / name / "valid_task_1_2.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c
    # Both tasks have the same split.
    run(["task_1/local_data_split.py", "--output_dir", tmp_path / "d"], kit=tiny_kit)
    assert (tmp_path / "d/valid_task_1_2.csv").read_bytes() == a


ANSWERS = """QuestionId,UserId,IsCorrect,CorrectAnswer,AnswerValue
7,1,1,3,3
7,2,1,3,3
8,1,0,3,2
8,2,0,3,2
"""
SCRIPT_FLAGS = {
    "local_data_split.py": {
        "--input_dir": "data/train_data/answers.csv",
        "--train_data": "mine/train_task_1_2.csv",
        "--output_dir": "data/test_input/valid_task_1_2.csv",
    },
    "sample_model_majority.py": {
        "--input_dir": "data/train_data/answers.csv",
        "--train_data": "mine/train_task_1_2.csv",
        "--submission_template_dir": "submission_templates/pairs.csv",
        "--submission_template_file": "mine/submission_task_1_2.csv",
        "--output_dir": "submissions/predicted.csv",
        "--output_file": "out/submission_task_{task}.csv",
    },
    "local_evaluation.py": {
        "--input_dir": "data/test_input/answers.csv",
        "--ref_data": "mine/valid_task_1_2.csv",
        "--submission_dir": "data/test_output/guesses_{task}.csv",
        "--submit_data": "mine/test_submission_task_{task}.csv",
        "--output_dir": "data/test_output/scores_task_{task}.txt",
    },
}


@TASKS
@pytest.mark.parametrize("script", SCRIPT_FLAGS)
def test_every_shared_flag_has_its_effect(
    tiny_kit: Path, run: Run, fails: Fails, task: int, script: str
) -> None:
    """Everything lies elsewhere under other names; without a flag, its default is used instead."""
    mine, out = tiny_kit / "mine", tiny_kit / "out"
    mine.mkdir()
    (mine / "answers.csv").write_text(ANSWERS)
    (mine / "pairs.csv").write_text("UserId,QuestionId\n91,8\n92,7\n91,7\n")
    (mine / "guesses_1.csv").write_text("QuestionId,UserId,IsCorrect\n8,2,0\n8,1,0\n7,1,1\n7,2,0\n")
    guesses = "QuestionId,UserId,AnswerValue\n8,2,2\n8,1,2\n7,1,3\n7,2,1\n"
    (mine / "guesses_2.csv").write_text(guesses)
    values = {
        "--input_dir": mine,
        "--train_data": "answers.csv",
        "--ref_data": "answers.csv",
        "--submission_template_dir": mine,
        "--submission_template_file": "pairs.csv",
        "--submission_dir": mine,
        "--submit_data": f"guesses_{task}.csv",
        "--output_dir": out,
        "--output_file": "predicted.csv",
    }

    def command(*without: str) -> list[object]:
        flags = [flag for flag in SCRIPT_FLAGS[script] if flag not in without]
        return [f"task_{task}/{script}", *(word for flag in flags for word in (flag, values[flag]))]

    def written(*without: str) -> set[str]:
        before = set(tiny_kit.rglob("*"))
        done = run(command(*without), kit=tiny_kit)
        assert done.returncode == 0, done.stderr
        return {path.relative_to(tiny_kit).as_posix() for path in set(tiny_kit.rglob("*")) - before}

    files = written()
    assert all(name == "out" or name.startswith("out/") for name in files)
    if script == "local_data_split.py":
        n_rows = {path.name: len(path.read_text().splitlines()) - 1 for path in out.glob("*.csv")}
        template = "test_submission_task_1_2.csv"
        assert n_rows == {"train_task_1_2.csv": 3, "valid_task_1_2.csv": 1, template: 1}
    elif script == "sample_model_majority.py":
        right, wrong = {1: (1, 0), 2: (3, 2)}[task]
        expected = f"UserId,QuestionId,{COLUMN[task]}\n91,8,{wrong}\n92,7,{right}\n91,7,{right}\n"
        assert (out / "predicted.csv").read_text() == expected
    else:
        assert read_score(out, task) == 0.75
    for flag, default in SCRIPT_FLAGS[script].items():
        default = default.format(task=task)
        if flag.startswith("--output"):
            assert default in written(flag)
        else:
            line = fails(command(flag), kit=tiny_kit)
            assert line.startswith(f"{tiny_kit / default}: file not found"), line


def test_right_wrong_only_answers_are_enough_for_task_1(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(q, s, rng.integers(2)) for s in range(30) for q in range(20)]
    frame = pd.DataFrame(rows, columns=["QuestionId", "UserId", "IsCorrect"])
    frame.to_csv(tmp_path / "answers.csv", index=False)
    place = ["--input_dir", tmp_path, "--train_data", "answers.csv"]
    assert run(["task_1/local_data_split.py", *place, "--output_dir", tmp_path]).returncode == 0
    template = "test_submission_task_1_2.csv"
    done = run(
        ["task_1/sample_model_majority.py", "--input_dir", tmp_path, "--output_dir", tmp_path,
         "--submission_template_dir", tmp_path, "--submission_template_file", template]
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    evaluation = ["--input_dir", tmp_path, "--submission_dir", tmp_path, "--output_dir", tmp_path]
    done = run(
        ["task_1/local_evaluation.py", *evaluation, "--submit_data", "submission_task_1.csv"]
    )
    assert done.returncode == 0, done.stderr
    # The answers are coin flips: a model that does better than chance has seen them.
    n_scored = 0.2 * len(frame)
    assert abs(read_score(tmp_path, 1) - 0.5) < 4 * 0.5 / n_scored**0.5


@TASKS
def test_random_predictions_score_at_chance(simulated_kit: Path, run: Run, tmp_path: Path,
                                            task: int) -> None:  # fmt: skip
    values = 2 if task == 1 else 4
    truth_name = f"test_public_answers_task_{task}.csv"
    truth = pd.read_csv(simulated_kit / "data/test_data" / truth_name)
    rng = np.random.default_rng(0)
    truth[COLUMN[task]] = rng.integers(values, size=len(truth)) + (task == 2)
    truth.to_csv(tmp_path / "random.csv", index=False)
    arguments = ["--phase", "public", "--submission_dir", tmp_path, "--submit_data", "random.csv"]
    arguments += ["--output_dir", tmp_path]
    done = run([f"task_{task}/local_evaluation.py", *map(str, arguments)], kit=simulated_kit)
    assert done.returncode == 0, done.stderr
    chance = 1 / values
    deviation = (chance * (1 - chance) / len(truth)) ** 0.5
    assert abs(read_score(tmp_path, task, "_public") - chance) < 4 * deviation


VALID = """QuestionId,UserId,IsCorrect,CorrectAnswer,AnswerValue
1,10,1,2,2
2,10,0,1,4
1,11,0,2,3
"""


@pytest.fixture
def evaluate(write: Callable[[str, str], Path], fails: Fails, tmp_path: Path) -> Fails:
    """Evaluate a submission's text against three known answers; it must be refused."""

    def run_evaluation(content: str, task: int = 1) -> str:
        write("valid_task_1_2.csv", VALID)
        write("mine.csv", content)
        folder = ["--input_dir", tmp_path, "--submission_dir", tmp_path, "--output_dir", tmp_path]
        line = fails([f"task_{task}/local_evaluation.py", *folder, "--submit_data", "mine.csv"])
        assert not list(tmp_path.glob("scores_*"))
        assert not list(tmp_path.glob("*.partial"))
        return line

    return run_evaluation


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "QuestionId,UserId,IsCorrect\n1,10,1\n1,11,0\n",
            "1 of 3 pairs are missing, first UserId 10 and QuestionId 2",
        ),
        (
            "QuestionId,UserId,IsCorrect\n1,10,1\n2,10,0\n1,11,0\n2,10,1\n",
            "row 5 repeats row 3: UserId 10 and QuestionId 2",
        ),
        ("QuestionId,UserId,IsCorrect\n1,10,1\n2,10,0.7\n1,11,0\n", "row 3 is '0.7'"),
        ("QuestionId,UserId,IsCorrect\n1,10,1\n2,10,\n1,11,0\n", "row 3 is empty"),
        ("QuestionId,UserId,AnswerValue\n1,10,1\n2,10,2\n1,11,1\n", "'IsCorrect' is missing"),
        ("QuestionId,UserId,IsCorrect\n1,10,1\n2,10\n", "row 3 has 2 columns, expected 3"),
        ("", "is empty"),
    ],
)
def test_no_score_for_a_faulty_submission(evaluate: Fails, content: str, expected: str) -> None:
    line = evaluate(content)
    assert "mine.csv" in line
    assert expected in line


def test_no_score_for_an_option_out_of_range(evaluate: Fails) -> None:
    line = evaluate("QuestionId,UserId,AnswerValue\n1,10,5\n2,10,1\n1,11,1\n", task=2)
    assert "column 'AnswerValue': row 2 is '5', expected a whole number from 1 to 4" in line


def test_a_missing_pair_of_the_phase_is_an_error(tiny_kit: Path, run: Run, fails: Fails) -> None:
    assert run(["task_1/sample_model_majority.py"], kit=tiny_kit).returncode == 0
    path = tiny_kit / "submissions/submission_task_1.csv"
    whole = pd.read_csv(path, dtype=str)
    truth = pd.read_csv(tiny_kit / "data/test_data/test_public_answers_task_1.csv", dtype=str)
    is_public = whole.merge(truth[KEYS], on=KEYS, how="left", indicator=True)._merge == "both"
    evaluation = ["task_1/local_evaluation.py", "--phase", "public"]

    whole.drop(index=is_public.idxmax()).to_csv(path, index=False)
    assert "1 of" in fails(evaluation, kit=tiny_kit)
    # A submission for the public phase alone is complete.
    whole[is_public].to_csv(path, index=False)
    done = run(evaluation, kit=tiny_kit)
    assert done.returncode == 0
    n_private = len(whole) - is_public.sum()
    assert (
        f"0 rows of the other phase ignored; {n_private:,} of its {n_private:,} pairs are missing, "
        "expected in an upload"
    ) in done.stdout
    whole.drop(index=[(~is_public).idxmax()]).to_csv(path, index=False)
    done = run(evaluation, kit=tiny_kit)
    assert f"; 1 of its {n_private:,} pairs are missing" in done.stdout
    # A pair of neither phase is not.
    odd = whole[is_public.to_numpy()].iloc[[0]].assign(UserId="999999")
    pd.concat([whole, odd]).to_csv(path, index=False)
    assert "first row" in fails(evaluation, kit=tiny_kit)
    assert "UserId 999999" in fails(evaluation, kit=tiny_kit)


@pytest.mark.parametrize(
    "script",
    ["local_data_split.py", "sample_model_majority.py", "local_evaluation.py"],
)
def test_missing_files_are_named_before_any_work(fails: Fails, tmp_path: Path, script: str) -> None:
    arguments: list[object] = [f"task_1/{script}", "--input_dir", tmp_path / "nowhere"]
    if script == "local_evaluation.py":
        (tmp_path / "mine.csv").write_text("QuestionId,UserId,IsCorrect\n1,10,1\n")
        arguments += ["--submission_dir", tmp_path, "--submit_data", "mine.csv"]
    line = fails(arguments)
    assert str(tmp_path / "nowhere") in line
    assert "file not found" in line


def test_contradicting_answers_are_refused(fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(VALID.replace("2,10,0,1,4", "2,10,1,1,4"))
    place = ["--input_dir", tmp_path, "--train_data", "a.csv", "--output_dir", tmp_path / "out"]
    line = fails(["task_1/local_data_split.py", *place])
    assert "row 3: column 'IsCorrect' is 1, but AnswerValue is 4 and CorrectAnswer is 1" in line
    assert not (tmp_path / "out").exists()


@TASKS
@pytest.mark.parametrize("folder", ["eedi_tasks_3_4", "eedi_tasks_1_2_sample"])
def test_real_answers(real_data: Path, run: Run, tmp_path: Path, task: int, folder: str) -> None:
    """The scripts run on real answers, in the official columns."""
    (train,) = (real_data / folder / "train_data").glob("train_task_?_?.csv")
    place = ["--input_dir", train.parent, "--train_data", train.name, "--output_dir", tmp_path]
    template = ["--submission_template_dir", tmp_path]
    template += ["--submission_template_file", "test_submission_task_1_2.csv"]
    here = ["--input_dir", tmp_path, "--output_dir", tmp_path]
    name = f"submission_task_{task}.zip"
    for command in (
        [f"task_{task}/local_data_split.py", *place],
        [f"task_{task}/sample_model_majority.py", *here, *template],
        [f"task_{task}/local_evaluation.py", *here, "--submission_dir", tmp_path,
         "--submit_data", name],
    ):  # fmt: skip
        done = run(command)
        assert done.returncode == 0, done.stderr
    # Above chance even with two answers per question, and no better than the best models can be.
    assert {1: 0.55, 2: 0.35}[task] < read_score(tmp_path, task) < 0.7
    assert "simulated" not in (tmp_path / f"scores_task_{task}.html").read_text()
