"""The record of all scores: what a line holds, where it is written, and which lines are read."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from common import layout, provenance
from common.evaluation import record
from common.evaluation.record import Evaluation, Result
from common.metrics import Score
from tools.results import read_results

import malformed
import pytest
from conftest import run, succeeds
from recorded import RESULT, made_by

NAME = "results.jsonl"


def read(folder: Path) -> list[Result]:
    """Read the record of scores (results.jsonl) in a folder."""
    return read_results(folder / NAME)


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    """Write a submission to task 1 with a single prediction; return its path."""
    path = tmp_path / "submission_task_1.csv"
    path.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n")
    return path


def describe_origin(submission: Path, split: str = "") -> bytes:
    """Return the JSON that names this process as the one that has made a submission."""
    with submission.open("rb") as file:
        return provenance.this_process(submission.parent, {submission: file}, split=split).as_json()


def append(submission: Path, task: int | str = 1, **changes: Any) -> Result:
    """Append a score to the results.jsonl beside a submission; read its line and return it."""
    evaluation = Evaluation(
        task=task,
        metric="accuracy",
        score=Score(0.25),
        submission=submission,
        reference=submission,
        phase="local",
        parts={"right": float("nan")},
    )
    record.append_result(submission.parent, replace(evaluation, **changes))
    return read(submission.parent)[-1]


# ---- What a line holds -------------------------------------------------------------------------


def test_a_line_says_what_was_scored_and_what_made_it(scored_kit: Path) -> None:
    """The record of scores (results.jsonl) has a line for each evaluation of an entry.

    The first evaluation of `scored_kit` is of the majority sample of task 1. Its line has two
    `parts`, the accuracy for the answers that are wrong and the accuracy for the answers that are
    right.
    """
    first, *_ = read(scored_kit / "data/test_output")
    assert first.task == 1
    assert first.phase == "local"
    assert first.model == "majority"
    assert first.seed is None
    assert first.origin == "simulated"
    assert {*first.parts} == {"wrong", "right"}
    assert made_by(first) == "python task_1/sample_model_majority.py --local"
    assert first.command == "python task_1/local_evaluation.py"
    assert first.seconds is not None
    assert first.seconds > 0


def test_scores_on_the_same_true_answers_have_the_same_data(scored_kit: Path) -> None:
    local_task_1, _, local_task_2, public_task_1, *_ = read(scored_kit / "data/test_output")
    assert local_task_1.data == local_task_2.data
    assert local_task_1.data != public_task_1.data


def test_every_task_and_phase_has_lines(scored_kit: Path) -> None:
    """The record has a line for each evaluation that `scored_kit` has run, in this order.

    A line holds, among other things, the task, the phase and the model. The models are samples of
    the kit. The local phase scores on a split of the training answers, the public phase on the
    public test.
    """
    lines = [(line.task, line.phase, line.model) for line in read(scored_kit / "data/test_output")]
    assert lines == [
        (1, "local", "majority"),
        (1, "local", "matrix_factorization"),
        (2, "local", "majority"),
        (1, "public", "majority"),
        (3, "public", "random"),
        (3, "public", "entropy"),
        (4, "local", "numpy"),
    ]


def test_a_zip_has_a_line_in_the_folder_of_the_output(scored_kit: Path, tmp_path: Path) -> None:
    flags = ["--phase", "private", "--submit_data", "submission_task_1.zip"]
    succeeds(["task_1/local_evaluation.py", *flags, "--output_dir", tmp_path], kit=scored_kit)
    (line,) = read(tmp_path)
    assert line.task == 1
    assert line.phase == "private"
    assert line.model == "majority"


@dataclass(frozen=True)
class LinesOfCode:
    """The lines of the record for three scores of a script, in a kit under version control."""

    # The script and what it imports are as in the commit.
    committed: Result
    # A module that the script imports was edited.
    edited: Result
    # The script is a copy that is not under version control.
    untracked: Result


@pytest.fixture(scope="module")
def lines_by_version(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> LinesOfCode:
    """Score a script three times; return the lines of the three scores in the record.

    The first score is made after a commit of the script, the second after an edit of a module that
    the script imports, and the third by a copy of the script that is not under version control.
    """
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("versions") / "kit"))
    git = ["git", "-C", str(kit), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in ("init -q", "add task_1 common/submission.py", "commit -q -m first"):
        subprocess.run([*git, *command.split()], check=True)
    script = kit / "task_1/sample_model_majority.py"
    imported = kit / "common/submission.py"
    untracked = Path(shutil.copyfile(script, kit / "task_1/own.py"))

    def predict_and_evaluate(model: Path) -> Result:
        """Run a model and its evaluation; return the line that was added to the record."""
        succeeds([model, "--local"], kit=kit)
        succeeds(["task_1/local_evaluation.py"], kit=kit)
        return read(kit / "data/test_output")[-1]

    line_of_committed = predict_and_evaluate(script)
    imported.write_text(imported.read_text() + "# Edited.\n")
    line_of_edited = predict_and_evaluate(script)
    line_of_untracked = predict_and_evaluate(untracked)
    return LinesOfCode(line_of_committed, line_of_edited, line_of_untracked)


def test_a_line_has_a_fingerprint_of_a_script_and_what_it_imports(
    lines_by_version: LinesOfCode,
) -> None:
    assert re.fullmatch("[0-9a-f]{12}", lines_by_version.committed.code)
    assert lines_by_version.committed.code != lines_by_version.edited.code


def test_a_line_names_the_commit_of_the_code(lines_by_version: LinesOfCode) -> None:
    """The revision is the commit, and "-dirty" if the script or its imports were edited since."""
    revision = lines_by_version.committed.revision
    assert revision is not None
    assert re.fullmatch("[0-9a-f]{7,}", revision)
    assert lines_by_version.edited.revision == f"{revision}-dirty"


def test_a_script_that_is_not_under_version_control_has_no_revision(
    lines_by_version: LinesOfCode,
) -> None:
    assert lines_by_version.untracked.revision is None


@dataclass(frozen=True)
class LinesOfEntry:
    """The lines of the record for three scores of an entry of task 4."""

    as_folder: Result
    as_zip: Result
    # The entry is scored as a folder again, after one of its files was edited.
    edited: Result


@pytest.fixture(scope="module")
def lines_of_entry(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> LinesOfEntry:
    """Train an entry with the seed 5, and score it as a folder, as a zip, and after an edit.

    The result holds the lines of the three scores in the record.
    """
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("entry") / "kit"))
    trainer = kit / "task_4/numpy/train_model.py"
    entry_code = kit / "task_4/numpy/model.py"
    # The trainer has no flag --seed. Add one.
    returned = "    return training.training_parser(__doc__)\n"
    with_seed = """
    parser = training.training_parser(__doc__)
    parser.add_argument("--seed")
    return parser
"""
    assert returned in trainer.read_text()
    trainer.write_text(trainer.read_text().replace(returned, with_seed))

    succeeds([trainer, "--local", "--seed", 5], kit=kit)
    assert run(["task_4/package.py", kit / "task_4/numpy"], kit=kit).returncode == 0
    evaluate = ["task_4/numpy/local_evaluation.py", "--skip_curve"]
    succeeds(evaluate, kit=kit)
    succeeds([*evaluate, "--submission", kit / "submissions/submission_task_4.zip"], kit=kit)
    entry_code.write_text(entry_code.read_text() + "# Edited.\n")
    succeeds(evaluate, kit=kit)
    # The lines of the record are in the order of the three evaluations.
    as_folder, as_zip, edited = read(kit / "data/test_output")
    return LinesOfEntry(as_folder, as_zip, edited)


def test_a_line_of_task_4_says_how_the_entry_was_trained(lines_of_entry: LinesOfEntry) -> None:
    line = lines_of_entry.as_folder
    assert line.model == "numpy"
    assert line.seed == 5
    assert made_by(line) == "python task_4/numpy/train_model.py --local --seed 5"


def test_a_zip_of_an_entry_has_the_code_and_the_training_of_its_folder(
    lines_of_entry: LinesOfEntry,
) -> None:
    assert lines_of_entry.as_zip.code == lines_of_entry.as_folder.code
    assert made_by(lines_of_entry.as_zip) == made_by(lines_of_entry.as_folder)


def test_an_edited_file_of_an_entry_changes_its_code(lines_of_entry: LinesOfEntry) -> None:
    assert lines_of_entry.edited.code != lines_of_entry.as_folder.code


def append_related(submission: Path, true_answers: Path) -> Result:
    """Append a score on a related challenge named "x" to the record; return the new line."""
    return append(
        submission,
        task="x",
        score=Score(2.5),
        reference=true_answers,
        phase="",
        rules="3 labels",
    )


@pytest.fixture
def true_answers(submission: Path) -> Path:
    """Make a folder of true answers that holds one file; return its path."""
    folder = submission.parent / "true"
    folder.mkdir()
    (folder / "one.xml").write_text("1")
    return folder


def test_the_result_of_a_related_challenge_says_how_the_data_were_split(
    submission: Path, true_answers: Path
) -> None:
    """The score's line says how the data were split, for example "5 folds".

    The evaluation reads this from the .json that records the origin of the submission.
    """
    origin = describe_origin(submission, split="5 folds")
    submission.with_suffix(".json").write_bytes(origin)
    line = append_related(submission, true_answers)
    assert line.task == "x"
    assert line.score == 2.5
    assert line.rules == "3 labels, 5 folds"


def test_the_fingerprint_of_the_data_changes_with_a_file_of_true_answers(
    submission: Path, true_answers: Path
) -> None:
    first = append_related(submission, true_answers)
    (true_answers / "one.xml").write_text("2")
    second = append_related(submission, true_answers)
    assert first.data != second.data


@pytest.mark.parametrize(
    ("flags", "seed"),
    [("--local --seed 3", 3), ("--seed=12 --local", 12), ("--local", None), ("--seed", None)],
)
def test_a_line_names_the_model_and_its_seed(
    submission: Path, monkeypatch: pytest.MonkeyPatch, flags: str, seed: int | None
) -> None:
    """A line in the record of scores names the model's script, its flags and its seed.

    The script notes these in a JSON file beside the submission, and the evaluation reads them
    there. "--seed" without a value names no seed. A time that is infinite counts as unknown.
    """
    monkeypatch.setattr("sys.argv", [str(layout.ROOT / "task_1/my_idea.py"), *flags.split()])
    # Make the time infinite. JSON has no infinity, but Python reads 1e999 as infinity.
    origin = re.sub(rb'"seconds": [^,]*', b'"seconds": 1e999', describe_origin(submission))
    submission.with_suffix(".json").write_bytes(origin)
    line = append(submission)
    assert line.model == "my_idea"
    assert line.seed == seed
    assert line.seconds is None
    # In the recorded command, a flag and its value are two words, even if they were joined by "=".
    assert made_by(line) == f"python task_1/my_idea.py {flags.replace('=', ' ')}"


# A regular expression, and the text that replaces its match in the JSON of a submission's origin.
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("(?s).+", "{", id="not JSON"),
        # The match ends just before the digits of the file's size. A 1 before the digits makes the
        # size larger.
        pytest.param(
            r'"files": \{\s*"[^"]*": \{\s*"bytes": ', r"\g<0>1", id="another size of the file"
        ),
        pytest.param('"seconds": [^,]*', f'"seconds": {"9" * 400}', id="a time beyond all floats"),
    ],
)
def test_a_submission_of_unknown_origin_has_the_name_of_its_file(
    submission: Path, old: str, new: str
) -> None:
    """A score is recorded with the file's name as its model if nothing reliable says what made it.

    The JSON file beside a submission names the script that made the submission. Here this JSON is
    damaged: `new` replaces the match of the pattern `old`. So the script, its seed and its time are
    not known.
    """
    text, n_changed = re.subn(old, new, describe_origin(submission).decode())
    assert n_changed == 1
    submission.with_suffix(".json").write_text(text)

    recorded = append(submission)

    assert recorded.model == submission.as_posix()
    assert recorded.submission == submission.as_posix()
    assert recorded.seed is None
    assert recorded.seconds is None
    assert made_by(recorded) == ""
    # `append` records a NaN as the accuracy for right answers, and the record reads it as None.
    assert recorded.parts == {"right": None}


def test_a_submission_that_a_notebook_makes_is_called_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    origin = provenance.this_process(tmp_path)
    assert origin.script == "notebook"
    assert origin.model == "notebook"
    assert origin.command == "python notebook"
    assert origin.code == ""


@pytest.mark.parametrize("template", ["submission_task_1_2.csv", "test_submission_task_1_2.csv"])
def test_a_line_names_the_files_that_the_model_has_learned_from_without_templates(
    submission: Path, template: str
) -> None:
    """A model reads training answers and a template, but it learns only from training answers.

    The JSON file beside a submission lists all files that the model has read. The record of the
    score names those that the model can have learned from: all but the template of the submission.
    """
    files_read = [submission.with_name(name) for name in ("train.csv", template)]
    for path in files_read:
        path.write_text("UserId,QuestionId\n")
    with submission.open("rb") as file:
        origin = provenance.this_process(
            submission.parent, files={submission: file}, made_from=files_read
        )
    submission.with_suffix(".json").write_bytes(origin.as_json())

    learned_from = append(submission).learned_from

    assert learned_from is not None
    assert [Path(name).name for name in learned_from] == ["train.csv"]


def test_without_a_record_nobody_knows_what_a_model_has_learned_from(submission: Path) -> None:
    assert append(submission).learned_from is None


# ---- Where lines are written -------------------------------------------------------------------

CLOZE = layout.RELATED_DIR / "cloze"


@pytest.mark.parametrize(
    "folder",
    [
        layout.TEST_OUTPUT_DIR,
        layout.TEST_OUTPUT_DIR / "a",
        CLOZE / "data/test_output",
        CLOZE / "data/test_output/mix",
    ],
)
def test_default_folders_and_those_in_them_share_one_record(folder: Path) -> None:
    assert record.results_path(folder) == layout.TEST_OUTPUT_DIR / NAME


@pytest.mark.parametrize("folder", [Path("elsewhere").absolute(), CLOZE / "data", CLOZE])
def test_another_folder_has_a_record_of_its_own(folder: Path) -> None:
    assert record.results_path(folder) == folder / NAME


# ---- Which lines are read ----------------------------------------------------------------------

# Fields that former versions of the kit did not write into a line.
LATER_FIELDS = {"code", "memory", "outcomes", "metric_name", "doubts", "learned_from"}
OLD = {name: value for name, value in asdict(RESULT).items() if name not in LATER_FIELDS}
OF_TASK = {**OLD, "parts": {"right": 0.5, "wrong": None}, "seed": 3}
# A related challenge has no phase. Its score may exceed 1, for example if it is a sum.
RELATED = {**OLD, "task": "debiasing", "phase": "", "score": 1.1175, "metric_name": "NDCG@50"}


NOT_RECORDED = {**OLD, "learned_from": None}


@pytest.mark.parametrize(
    "line", [OLD, OF_TASK, RELATED, NOT_RECORDED], ids=["old", "task", "related", "not recorded"]
)
def test_a_line_with_the_right_fields_and_types_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: dict[str, Any]
) -> None:
    (tmp_path / NAME).write_text(json.dumps(line) + "\n")
    (result,) = read(tmp_path)
    # None of these lines says from which files the model has learned. Earlier versions of the kit
    # did not record this.
    assert result.learned_from is None
    assert capsys.readouterr().err == ""


# Damaged lines of the record, which malformed.py makes from a valid line. The key names the damage.
DAMAGED = dict(malformed.damage_record(json.dumps(OF_TASK).encode()))
# Each of these changes makes `RELATED`, the line of a score in a related challenge, invalid.
CHANGES: list[dict[str, Any]] = [
    {"task": ""},
    {"task": "<b>"},
    {"phase": "local"},
    {"metric_name": 3},
    {"doubts": "fit interrupted"},
    {"doubts": ["fit interrupted", None]},
    {"learned_from": []},
    {"learned_from": {"train_data/train_task_1_2.csv": None}},
    {"score": -0.1},
    {"score": 1e13},
    {"task": 4, "phase": "local"},
    {"time": "yesterday"},
    {"seconds": True},
    {"seed": -1},
    {"memory": -1},
    {"options": {"seed": 1}},
    {"data": "<b>"},
    {"code": "<b>"},
    {"outcomes": "../secret"},
]
INVALID = DAMAGED | {str(change): json.dumps({**RELATED, **change}).encode() for change in CHANGES}


def test_there_are_many_ways_to_damage_a_line() -> None:
    assert len(DAMAGED) > 100


@pytest.mark.parametrize("damage", INVALID)
def test_an_invalid_line_is_ignored_and_the_user_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    path = tmp_path / NAME
    path.write_bytes(INVALID[damage] + b"\n")
    assert read(tmp_path) == []
    assert capsys.readouterr().err == f"{path}: ignored 1 invalid line\n"


def test_valid_lines_beside_invalid_ones_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two lines are valid, two are invalid, and an empty line counts as neither."""
    path = tmp_path / NAME
    valid = json.dumps(OLD).encode()
    cut_off = valid[:40]
    path.write_bytes(b"\n".join([valid, b"[1]", b"", valid, cut_off]))
    assert read(tmp_path) == [RESULT] * 2
    assert capsys.readouterr().err == f"{path}: ignored 2 invalid lines\n"


@pytest.mark.parametrize("score", ["0.6", "", True, None, [0.6]])
def test_a_recorded_score_that_is_no_number_is_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], score: object
) -> None:
    line = {**asdict(RESULT), "score": score}
    (tmp_path / NAME).write_text(json.dumps(line) + "\n")
    assert read(tmp_path) == []
    assert capsys.readouterr().err == f"{tmp_path / NAME}: ignored 1 invalid line\n"


def read_former(folder: Path, command: str) -> Result:
    """Write a line as former versions of the kit did, then read it and return the result.

    Such a line has a command in the place of the script and its options.
    """
    line = {**asdict(RESULT), "made_by": command}
    del line["script"]
    del line["options"]
    (folder / NAME).write_text(json.dumps(line) + "\n")
    (result,) = read(folder)
    return result


def test_a_former_line_s_command_is_read_as_script_and_options(tmp_path: Path) -> None:
    command = "python -m tools.blend --n 1 --n=2 a/b.parquet --local 'c d.parquet' e.parquet"
    result = read_former(tmp_path, command)
    assert result.script == "tools/blend.py"
    files = ["a/b.parquet", "c d.parquet", "e.parquet"]
    assert result.options == {"n": "2", "files": files, "local": True}
    assert result.name == "majority --n 2 b c d e"


def test_a_former_line_without_a_command_has_no_script(tmp_path: Path) -> None:
    result = read_former(tmp_path, "")
    assert (result.script, result.options) == ("", {})
