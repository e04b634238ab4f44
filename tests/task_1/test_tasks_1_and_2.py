"""Tasks 1 and 2, run as a user runs them: sample model, evaluation, upload, every flag."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import answers_frame, copy_kit, fails, succeeds
from planted_answers import COLUMN, KEYS, TASKS
from sample_blocks import needs_blocks


def read_score(folder: Path, task: int, end: str = "") -> float:
    return float((folder / f"scores_task_{task}{end}.txt").read_text().removeprefix("score:"))


@TASKS
def test_official_template_and_phases(simulated_kit: Path, tmp_path: Path, task: int) -> None:
    script, out = f"task_{task}/sample_model_majority.py", ["--output_dir", tmp_path]
    succeeds([script, *out], kit=simulated_kit)
    succeeds([script, *out, "--output_file", "my_idea.csv"], kit=simulated_kit)
    path, column = tmp_path / f"submission_task_{task}.csv", COLUMN[task]
    official = simulated_kit / "submission_templates/submission_task_1_2.csv"
    template, whole = (pd.read_csv(file, dtype=str) for file in (official, path))
    untouched = [name for name in template.columns if name != column]
    pd.testing.assert_frame_equal(whole[untouched], template[untouched])
    # The zip holds the official name, whatever the file is called.
    for name in (path.name, "my_idea.csv"):
        with zipfile.ZipFile((tmp_path / name).with_suffix(".zip")) as archive:
            assert archive.namelist() == [path.name]
            assert archive.read(path.name) == path.read_bytes()

    def evaluation(phase: str, name: str) -> list[object]:
        place = ["--submission_dir", tmp_path, "--submit_data", name, *out]
        return [f"task_{task}/local_evaluation.py", "--phase", phase, *place]

    test_data = simulated_kit / "data/test_data"
    for phase, name in (("public", path.name), ("private", "my_idea.zip")):
        truth = pd.read_csv(test_data / f"test_{phase}_answers_task_{task}.csv", dtype=str)
        merged = truth.merge(whole, on=KEYS, suffixes=("", "_predicted"))
        expected = np.mean(merged[column] == merged[f"{column}_predicted"])
        printed = succeeds(evaluation(phase, name), kit=simulated_kit)
        assert read_score(tmp_path, task, f"_{phase}") == pytest.approx(expected)
        assert f"{len(whole) - len(truth):,} rows of the other phase ignored\n" in printed

    # A pair of the phase must not be missing; of the other phase, all may, but not in an upload.
    is_private = whole.merge(truth[KEYS], on=KEYS, how="left", indicator=True)._merge == "both"
    n, missing = int((~is_private).sum()), "pairs are missing, expected in an upload"
    unknown = pd.concat([whole, whole[:1].assign(UserId="999999")])
    for check, rows, said in (
        (succeeds, whole[is_private], f"0 rows of the other phase ignored; {n:,} of its {n:,} "),
        (succeeds, whole.drop(index=(~is_private).idxmax()), f"; 1 of its {n:,} {missing}"),
        (fails, whole.drop(index=is_private.idxmax()), "1 of"),
        (fails, unknown, f"first row {len(whole) + 2} with UserId 999999"),
    ):
        rows.to_csv(path, index=False)
        assert said in check(evaluation("private", path.name), kit=simulated_kit)


MAJORITY = ("task_1/sample_model_majority.py", "task_2/sample_model_majority.py")
OWN_TRAIN = "--input_dir mine --train_data answers.csv"
OWN_TEMPLATE = "--submission_template_dir mine --submission_template_file pairs.csv"
OWN_FILES = {
    "local_data_split": f"{OWN_TRAIN} --output_dir out",
    "sample_model_majority": f"{OWN_TRAIN} {OWN_TEMPLATE} --output_dir out --output_file p.csv",
    "local_evaluation": "--input_dir mine --ref_data answers.csv --submission_dir mine "
    "--submit_data guesses.csv --output_dir out",
}


@needs_blocks(*MAJORITY)
@TASKS
def test_everything_may_lie_elsewhere_under_other_names(tmp_path: Path, task: int) -> None:
    """Of a tied question most are what most of all answers are, or the smaller option."""
    kit = copy_kit(tmp_path / "kit")
    mine, out, column = kit / "mine", kit / "out", COLUMN[task]
    mine.mkdir()
    # Right or wrong is enough for task 1.
    is_right = [1, 1, 0, 0, 1, 0, 1, 1]
    options = ([2 + right for right in is_right], 3) if task == 2 else ()
    answers = answers_frame([1, 2] * 4, [7, 7, 8, 8, 9, 9, 10, 10], is_right, *options)
    answers.to_csv(mine / "answers.csv", index=False)
    (mine / "pairs.csv").write_text("UserId,QuestionId\n91,8\n92,7\n91,9\n91,11\n")
    # In another order, the first of them wrong.
    answers[column] = answers[column].where(answers.index > 0, {1: 0, 2: 1}[task])
    answers[::-1][[*KEYS, column]].to_csv(mine / "guesses.csv", index=False)
    before = {*kit.rglob("*")}
    for script, flags in OWN_FILES.items():
        succeeds([f"task_{task}/{script}.py", *flags.split()], kit=kit, cwd=kit)
    assert {*kit.rglob("*")} - before == {out, *out.rglob("*")}
    for name, n in (("train", 6), ("valid", 2), ("test_submission", 2)):
        assert len(pd.read_csv(out / f"{name}_task_1_2.csv")) == n
    right, wrong, tied = {1: (1, 0, 1), 2: (3, 2, 2)}[task]
    expected = f"91,8,{wrong}\n92,7,{right}\n91,9,{tied}\n91,11,{right}\n"
    assert (out / "p.csv").read_text() == f"UserId,QuestionId,{column}\n{expected}"
    assert read_score(out, task) == 0.875


@needs_blocks(*MAJORITY)
@TASKS
@pytest.mark.parametrize("folder", ["eedi_tasks_3_4", "eedi_tasks_1_2_sample"])
def test_real_answers(real_data: Path, tmp_path: Path, task: int, folder: str) -> None:
    (train,) = (real_data / folder / "train_data").glob("train_task_?_?.csv")
    kit = copy_kit(tmp_path / "kit")
    for command in (
        f"local_data_split.py --input_dir {train.parent} --train_data {train.name}",
        "sample_model_majority.py --local",
        f"local_evaluation.py --submit_data test_submission_task_{task}.zip",
    ):
        succeeds(f"task_{task}/{command}".split(), kit=kit)
    # Above chance even with two answers per question, and no better than the best models can be.
    scores = kit / "data/test_output"
    assert {1: 0.55, 2: 0.35}[task] < read_score(scores, task) < 0.7
    assert "simulated" not in (scores / f"scores_task_{task}.html").read_text()
