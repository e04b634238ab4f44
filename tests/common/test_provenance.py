"""Files made from other data or of another split are refused; the message says what to do."""

import json
import sys
from pathlib import Path
from types import ModuleType

from common import layout, provenance
from common.errors import InputError

import pandas as pd
import pytest
from changed_files import drop_last_line
from conftest import Write, fails, succeeds
from page_reading import read_page


def renumber_students(path: Path) -> None:
    """Replace the UserIds in a file of simulated answers by others, which the kit does not know."""
    answers = pd.read_csv(path)
    answers.assign(UserId=answers["UserId"] + 1_000_000).to_csv(path, index=False)


def test_whether_a_score_counts_as_simulated_depends_on_the_files_of_its_task(
    tiny_kit: Path,
) -> None:
    """Answers of other students replace the training answers of tasks 3 and 4, but not of task 1.

    The kit recognises simulated answers by their rows. It does not know the rows of the other
    students, so the origin of these answers is unknown. Task 4 is trained and scored on a split of
    them, so the origin of its score is unknown, too. The score of task 1 still counts as simulated.
    """
    renumber_students(tiny_kit / "data/train_data/train_task_3_4.csv")
    succeeds(["task_1/local_data_split.py"], kit=tiny_kit)
    succeeds(["task_1/sample_model_majority.py", "--local"], kit=tiny_kit)
    succeeds(["task_1/local_evaluation.py"], kit=tiny_kit)
    succeeds(["task_4/local_data_split.py"], kit=tiny_kit)
    succeeds(["task_4/numpy/train_model.py", "--local"], kit=tiny_kit)
    succeeds(["task_4/numpy/local_evaluation.py", "--skip_curve"], kit=tiny_kit)

    folder = tiny_kit / "data/test_output"
    page_of_task_1 = read_page((folder / "scores_task_1.html").read_text())
    page_of_task_4 = read_page((folder / "scores_task_4.html").read_text())
    assert "From simulated answers" in page_of_task_1.text
    assert "From simulated answers" not in page_of_task_4.text
    lines = (folder / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["origin"] for line in lines] == ["simulated", "unknown"]


def test_a_split_of_answers_that_have_changed_is_refused_until_it_is_made_again(
    tiny_kit: Path,
) -> None:
    train = ["task_4/numpy/train_model.py", "--local"]
    succeeds(["task_4/local_data_split.py"], kit=tiny_kit)
    renumber_students(tiny_kit / "data/train_data/train_task_3_4.csv")
    line = fails(train, kit=tiny_kit)
    assert "train_task_4.csv: was made from other data than now lie in" in line
    assert "`python task_4/local_data_split.py` makes it again" in line
    succeeds(["task_4/local_data_split.py"], kit=tiny_kit)
    succeeds(train, kit=tiny_kit)


def test_a_stale_template_is_refused_and_the_command_mends_it(tiny_kit: Path) -> None:
    submission = tiny_kit / "submissions/submission_task_1.zip"
    model = ["task_1/sample_model_majority.py"]
    succeeds(model, kit=tiny_kit)
    drop_last_line(tiny_kit / "data/test_data/test_public_answers_task_1.csv")
    for command in (model, ["-m", "tools.check_submission", submission]):
        line = fails(command, kit=tiny_kit, cwd=tiny_kit)
        assert "submission_task_1_2.csv: was made from other data than now lie in" in line
        assert "`python -m tools.templates` makes it again" in line
    succeeds(["-m", "tools.templates"], kit=tiny_kit, cwd=tiny_kit)
    succeeds(model, kit=tiny_kit)


def test_a_template_written_by_the_user_is_used_without_its_record(tiny_kit: Path) -> None:
    """A .json beside a template records how the kit has built the template.

    If the user replaces the template by one of their own, the record no longer describes it. So the
    kit refuses the template until the user removes the record.
    """
    model = ["task_1/sample_model_majority.py"]
    template = tiny_kit / "submission_templates/submission_task_1_2.csv"
    template.write_text("QuestionId,UserId\n0,0\n1,0\n")
    assert "remove the .json if the file is your own" in fails(model, kit=tiny_kit)

    (tiny_kit / "submission_templates/template_task_1_2.json").unlink()

    succeeds(model, kit=tiny_kit)


def test_files_of_two_splits_are_never_used_together(tiny_kit: Path) -> None:
    """A split that is killed while it replaces its files leaves files of two splits.

    The record of a split, a .json, lists the files of the split with their fingerprints. Here, the
    record comes from the split with seed 0, and the other files come from the split with seed 1. A
    model must refuse these files.
    """
    record = tiny_kit / "data/test_input/split_task_1_2.json"
    succeeds(["task_1/local_data_split.py"], kit=tiny_kit)
    record_of_first_split = record.read_bytes()
    succeeds(["task_1/local_data_split.py", "--seed", 1], kit=tiny_kit)
    record.write_bytes(record_of_first_split)

    line = fails(["task_1/sample_model_majority.py", "--local"], kit=tiny_kit)
    assert "is not the file that" in line
    assert "of another split" in line
    assert "`python task_1/local_data_split.py` makes it again" in line


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("{half", id="cut off"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="without fields"),
        pytest.param("[" * 100_000, id="nested too deeply"),
        pytest.param(
            '{"command": "python x", "files": {}, "made_from": {}, "simulated": true}',
            id="of a former version",
        ),
    ],
)
def test_a_damaged_record_is_reported(tmp_path: Path, content: str) -> None:
    path = tmp_path / layout.TRAIN_TASK_4
    path.touch()
    (tmp_path / "split_task_4.json").write_text(content)
    with pytest.raises(InputError, match=r"split_task_4\.json: is damaged"):
        provenance.require_current([path])


def test_code_of_the_kit_is_noted_without_the_libraries_in_its_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a script starts, the kit notes the files of the code that it has imported.

    `provenance.RUN` holds these notes. Later the kit checks whether this code has changed. Files in
    a virtual environment in the kit's folder are left out: there are more than a thousand. The test
    enters a script of the kit and a library into `sys.modules`, as if they had been imported.
    """
    script = write("task_1/idea.py", "1")
    library = write(".venv/lib/python3/site-packages/library.py", "2")
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    monkeypatch.setattr(provenance, "RUN", provenance.ThisRun())
    for path in (script, library):
        module = ModuleType(path.stem)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, path.stem, module)
    provenance.note_code()
    assert list(provenance.RUN.code_at_start) == [script]
