"""Tasks 1 and 2, run as a user runs them: sample model, evaluation, upload, every flag."""

import shutil
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
from conftest import answers_frame, copy_kit, fails, succeeds
from planted_answers import COLUMN, KEYS, TASKS
from sample_blocks import needs_blocks


def read_score(folder: Path, task: int, end: str = "") -> float:
    """Return the score in a text file of scores.

    `end` is the end of the file's name: `_public`, `_private`, `_own` or empty.
    """
    return float((folder / f"scores_task_{task}{end}.txt").read_text().removeprefix("score:"))


# ---- Submissions to a phase --------------------------------------------------------------------


@dataclass(frozen=True)
class Submitted:
    """The majority model's submission: `submission_task_N.csv` and a copy with another name."""

    kit: Path
    task: int
    folder: Path

    @property
    def path(self) -> Path:
        """The path of the submission under the name that the challenge asks for."""
        return self.folder / f"submission_task_{self.task}.csv"

    def read(self) -> pd.DataFrame:
        """Return the rows of the submission as a table of text."""
        return pd.read_csv(self.path, dtype=str)

    def read_truth(self, phase: str) -> pd.DataFrame:
        """Return the true answers of a phase as a table of text."""
        name = f"test_{phase}_answers_task_{self.task}.csv"
        return pd.read_csv(self.kit / "data/test_data" / name, dtype=str)

    def evaluation(self, phase: str, name: str) -> list[object]:
        """Return the command that scores the file `name` by the true answers of a phase."""
        folders = ["--submission_dir", self.folder, "--output_dir", self.folder]
        script = f"task_{self.task}/local_evaluation.py"
        return [script, "--phase", phase, "--submit_data", name, *folders]


@pytest.fixture(scope="module", params=[1, 2])
def shared(
    request: pytest.FixtureRequest,
    simulated_kit: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Submitted:
    """Run the majority model of task 1, or of task 2; it predicts the pairs of both phases."""
    folder = tmp_path_factory.mktemp("submitted")
    command = [f"task_{request.param}/sample_model_majority.py", "--output_dir", folder]
    succeeds(command, kit=simulated_kit)
    succeeds([*command, "--output_file", "my_idea.csv"], kit=simulated_kit)
    return Submitted(simulated_kit, request.param, folder)


@pytest.fixture
def submitted(shared: Submitted, tmp_path: Path) -> Submitted:
    """Return a copy of the submission that the test may change."""
    folder = Path(shutil.copytree(shared.folder, tmp_path / "submitted"))
    return replace(shared, folder=folder)


def test_a_submission_adds_one_column_to_the_template(submitted: Submitted) -> None:
    template = pd.read_csv(
        submitted.kit / "submission_templates/submission_task_1_2.csv", dtype=str
    )
    untouched = [name for name in template.columns if name != COLUMN[submitted.task]]
    pd.testing.assert_frame_equal(submitted.read()[untouched], template[untouched])


def test_the_zip_holds_the_official_name_whatever_the_file_is_called(submitted: Submitted) -> None:
    for name in (submitted.path.name, "my_idea.csv"):
        with zipfile.ZipFile((submitted.folder / name).with_suffix(".zip")) as archive:
            assert archive.namelist() == [submitted.path.name]
            assert archive.read(submitted.path.name) == submitted.path.read_bytes()


@pytest.mark.parametrize(
    ("phase", "name"), [("public", "submission_task_{}.csv"), ("private", "my_idea.zip")]
)
def test_only_rows_of_the_phase_are_scored(submitted: Submitted, phase: str, name: str) -> None:
    """A submission holds the pairs of both phases, and the other phase's pairs are ignored.

    The evaluation scores a CSV file or a zip, under any name. In `name`, {} stands for the number
    of the task, as in submission_task_1.csv.
    """
    rows = submitted.read()
    truth = submitted.read_truth(phase)
    command = submitted.evaluation(phase, name.format(submitted.task))

    output = succeeds(command, kit=submitted.kit)

    column = COLUMN[submitted.task]
    rows_of_phase = truth.merge(rows, on=KEYS, suffixes=("", "_predicted"))
    is_right = rows_of_phase[column] == rows_of_phase[f"{column}_predicted"]
    score = read_score(submitted.folder, submitted.task, f"_{phase}")
    assert score == pytest.approx(is_right.mean())
    n_ignored = len(rows) - len(truth)
    assert f"{n_ignored:,} rows of the other phase ignored\n" in output


def find_private_rows(submitted: Submitted) -> "pd.Series[bool]":
    """Return for each row of the submission whether its pair belongs to the private phase."""
    pairs = submitted.read_truth("private")[KEYS]
    merged = submitted.read().merge(pairs, on=KEYS, how="left", indicator=True)
    return merged["_merge"] == "both"


def test_rows_of_the_other_phase_may_be_missing(submitted: Submitted) -> None:
    """A file is scored in the private phase although it lacks rows of the public phase.

    An upload to the challenge must hold the rows of both phases. So the output says how many rows
    of the public phase are missing. This test removes first all of these rows, then only one.
    """
    rows = submitted.read()
    is_private = find_private_rows(submitted)
    public_rows = rows.index[~is_private]
    n_public = len(public_rows)
    command = submitted.evaluation("private", submitted.path.name)

    rows[is_private].to_csv(submitted.path, index=False)
    output = succeeds(command, kit=submitted.kit)
    assert f"0 rows of the other phase ignored; {n_public:,} of its {n_public:,} " in output

    rows.drop(index=public_rows[0]).to_csv(submitted.path, index=False)
    output = succeeds(command, kit=submitted.kit)
    assert f"; 1 of its {n_public:,} pairs are missing, expected in an upload" in output


def test_rows_of_the_phase_may_not_be_missing(submitted: Submitted) -> None:
    first_private = find_private_rows(submitted).idxmax()
    submitted.read().drop(index=first_private).to_csv(submitted.path, index=False)
    command = submitted.evaluation("private", submitted.path.name)
    assert "1 of" in fails(command, kit=submitted.kit)


def test_rows_of_neither_phase_are_refused(submitted: Submitted) -> None:
    rows = submitted.read()
    unknown = rows[:1].assign(UserId="999999")
    pd.concat([rows, unknown]).to_csv(submitted.path, index=False)
    command = submitted.evaluation("private", submitted.path.name)
    # The header is row 1 of the file.
    assert f"first row {len(rows) + 2} with UserId 999999" in fails(command, kit=submitted.kit)


# ---- Files of a user ---------------------------------------------------------------------------


MAJORITY = ("task_1/sample_model_majority.py", "task_2/sample_model_majority.py")
OWN_TRAIN = "--input_dir mine --train_data answers.csv"
OWN_TEMPLATE = "--submission_template_dir mine --submission_template_file pairs.csv"
# The flags of each script, in the order in which the scripts run. The split and the model read the
# user's files answers.csv and pairs.csv. The evaluation compares guesses.csv with answers.csv.
FLAGS_OF_OWN_FILES = {
    "local_data_split": f"{OWN_TRAIN} --output_dir out",
    "sample_model_majority": f"{OWN_TRAIN} {OWN_TEMPLATE} --output_dir out --output_file p.csv",
    "local_evaluation": "--input_dir mine --ref_data answers.csv --submission_dir mine "
    "--submit_data guesses.csv --output_dir out",
}


@needs_blocks(*MAJORITY)
@TASKS
def test_everything_may_lie_elsewhere_under_other_names(tmp_path: Path, task: int) -> None:
    """The scripts read files of the user's folder `mine` and write only into the folder `out`.

    `mine` holds answers.csv with the user's own answers, pairs.csv with the pairs to predict, and
    guesses.csv with predictions to evaluate. FLAGS_OF_OWN_FILES holds the flags with these names.
    """
    kit = copy_kit(tmp_path / "kit")
    mine = kit / "mine"
    out = kit / "out"
    column = COLUMN[task]
    mine.mkdir()
    students = [1, 2] * 4
    questions = [7, 7, 8, 8, 9, 9, 10, 10]
    # Both students answer questions 7 and 10 right and question 8 wrong. On question 9 they differ.
    is_right = [1, 1, 0, 0, 1, 0, 1, 1]
    if task == 1:
        answers = answers_frame(students, questions, is_right)
    else:
        # A right answer is option 3, a wrong answer is option 2.
        chosen_options = [2 + right for right in is_right]
        right_option = 3
        answers = answers_frame(students, questions, is_right, chosen_options, right_option)
    answers.to_csv(mine / "answers.csv", index=False)
    (mine / "pairs.csv").write_text("UserId,QuestionId\n91,8\n92,7\n91,9\n91,11\n")
    # The rows of the guesses are in reverse order. Only the guess of the first answer is wrong, so
    # seven of the eight guesses are right.
    wrong_guess = {1: 0, 2: 1}[task]
    guesses = answers[[*KEYS, column]].copy()
    guesses.loc[0, column] = wrong_guess
    guesses[::-1].to_csv(mine / "guesses.csv", index=False)
    files_before = {*kit.rglob("*")}

    for script, flags in FLAGS_OF_OWN_FILES.items():
        succeeds([f"task_{task}/{script}.py", *flags.split()], kit=kit, cwd=kit)

    assert {*kit.rglob("*")} - files_before == {out, *out.rglob("*")}
    # The split holds out a fifth of the eight answers: 1.6, rounded to 2. The file test_submission
    # lists the student and the question of each held-out answer.
    for name, n_rows in (("train", 6), ("valid", 2), ("test_submission", 2)):
        assert len(pd.read_csv(out / f"{name}_task_1_2.csv")) == n_rows
    # The model predicts the majority of a question's answers: `right` for question 7, `wrong` for
    # question 8. Question 9 has one right and one wrong answer: its prediction `tied` is the
    # majority of all answers in task 1, and the smaller option in task 2. Question 11 has no
    # answers, so its prediction is the majority of all answers.
    right, wrong, tied = {1: (1, 0, 1), 2: (3, 2, 2)}[task]
    expected = f"91,8,{wrong}\n92,7,{right}\n91,9,{tied}\n91,11,{right}\n"
    assert (out / "p.csv").read_text() == f"UserId,QuestionId,{column}\n{expected}"
    # Seven of eight guesses are right.
    assert read_score(out, task, "_own") == 7 / 8


@needs_blocks(*MAJORITY)
@TASKS
@pytest.mark.parametrize("folder", ["eedi_tasks_3_4", "eedi_tasks_1_2_sample"])
def test_real_answers_are_predicted_above_chance(
    real_data: Path, tmp_path: Path, task: int, folder: str
) -> None:
    """The majority model predicts real answers better than guessing does.

    It is fitted to and scored on a local split. `folder` holds a part of the official answers.
    eedi_tasks_1_2_sample has only about two answers to a question.
    """
    (train,) = (real_data / folder / "train_data").glob("train_task_?_?.csv")
    kit = copy_kit(tmp_path / "kit")
    commands: list[list[object]] = [
        ["local_data_split.py", "--input_dir", train.parent, "--train_data", train.name],
        ["sample_model_majority.py", "--local"],
        ["local_evaluation.py", "--submit_data", f"test_submission_task_{task}.zip"],
    ]
    for script, *flags in commands:
        succeeds([f"task_{task}/{script}", *flags], kit=kit)
    output = kit / "data/test_output"
    # With random guesses, the accuracy is 1/2 in task 1, and 1/4 in task 2 with its four options.
    above_chance = {1: 0.55, 2: 0.35}[task]
    too_good_for_this_model = 0.7
    assert above_chance < read_score(output, task) < too_good_for_this_model
    page = (output / f"scores_task_{task}.html").read_text()
    # The kit cannot recognise these answers as official: they are only a part of an official file,
    # so their file has another checksum.
    assert "simulated" not in page and "answers of unknown origin" in page
