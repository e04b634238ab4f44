"""A score is marked if its answers were joined to metadata of other data."""

import json
import shutil
from pathlib import Path

from common import layout
from common.evaluation import joined_metadata
from tools.results import read_results

import pandas as pd
import pytest
from conftest import succeeds
from page_reading import read_page

# The evaluation prints this mark beside a score if the entry or the page has used metadata that do
# not describe the scored answers.
MARK = "metadata of other data"
QUESTIONS = layout.QUESTION_METADATA_TASK_1_2


@pytest.fixture(scope="module")
def other_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with tiny simulated data, drawn with another seed than the kit's data."""
    folder = tmp_path_factory.mktemp("other") / "data"
    succeeds(["data/generate_sample.py", "--size", "tiny", "--seed", 7, "--output_dir", folder])
    return folder


@pytest.fixture
def kit(split_kit: Path, tmp_path: Path) -> Path:
    """Return a copy of the kit with simulated data and local splits; the test may change it."""
    return Path(shutil.copytree(split_kit, tmp_path / "kit"))


def own_answers(kit: Path, folder: Path) -> Path:
    """Write true answers that the kit does not know as simulated; return the path of the file."""
    answers = pd.read_csv(kit / "data/test_input" / layout.VALID_TASK_1_2)
    outcomes = ["IsCorrect", "CorrectAnswer", "AnswerValue"]
    # The kit recognises simulated answers by their rows, and shuffled outcomes change the rows.
    answers[outcomes] = answers[outcomes].sample(frac=1, random_state=0).to_numpy()
    path = folder / "test_input" / layout.VALID_TASK_1_2
    path.parent.mkdir()
    answers.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("answers", "metadata", "is_foreign"),
    [
        ("simulated", "of the same simulation", False),
        ("simulated, saved again", "of the same simulation", False),
        ("simulated", "of another simulation", True),
        ("simulated", "of unknown origin", True),
        ("of unknown origin", "of another simulation", True),
        ("of unknown origin", "of unknown origin", False),
    ],
)
def test_metadata_are_foreign_if_a_simulation_made_them_or_the_answers_but_not_both(
    kit: Path, other_data: Path, tmp_path: Path, answers: str, metadata: str, is_foreign: bool
) -> None:
    """Metadata are foreign if they describe other students or questions than the answers.

    The kit finds foreign metadata by comparing the origins of the two files. If neither file is
    simulated, both origins are unknown, and the metadata are taken to belong to the answers.
    """
    answers_file = write_answers(answers, kit, tmp_path)
    metadata_file = write_metadata(metadata, kit, other_data, tmp_path)
    expected = [metadata_file] if is_foreign else []
    assert joined_metadata.find_foreign(answers_file, [metadata_file]) == expected


def write_answers(origin: str, kit: Path, folder: Path) -> Path:
    """Return the path of a file of true answers of the given origin.

    The function writes the file, unless it is the kit's own file of simulated answers.
    """
    simulated = kit / "data/test_input" / layout.VALID_TASK_1_2
    if origin == "of unknown origin":
        return own_answers(kit, folder)
    if origin == "simulated, saved again":
        # The new file has the same rows but other line ends, so its fingerprint differs.
        again = kit / "data/test_input/again.csv"
        pd.read_csv(simulated).to_csv(again, index=False, lineterminator="\r\n")
        return again
    return simulated


def write_metadata(origin: str, kit: Path, other_data: Path, folder: Path) -> Path:
    """Return the path of a file of question metadata of the given origin.

    The function writes the file only if its origin is to be unknown.
    """
    if origin == "of another simulation":
        return other_data / "metadata" / QUESTIONS
    if origin == "of unknown origin":
        path = folder / QUESTIONS
        path.write_text("QuestionId,SubjectId\n0,[3]\n")
        return path
    return kit / "data/metadata" / QUESTIONS


def test_a_model_that_read_metadata_of_other_data_is_marked(
    kit: Path, other_data: Path, tmp_path: Path
) -> None:
    """A model is scored twice: after it has read metadata of its answers, and of other data."""
    model = ["task_1/sample_model_item_response.py", "--local", "--dimensions", 1]
    evaluation = ["task_1/local_evaluation.py", "--output_dir", tmp_path]
    succeeds(model, kit=kit)
    assert "note:" not in succeeds(evaluation, kit=kit)
    succeeds([*model, "--metadata_dir", other_data / "metadata"], kit=kit)
    printed = succeeds(evaluation, kit=kit)
    (note,) = [line for line in printed.splitlines() if line.startswith("note: ")]
    assert note.startswith(f"note: {MARK} than the answers: ")
    assert note.endswith("; what the entry has learned from them may mean nothing")
    with_own_metadata, with_other_metadata = read_results(tmp_path / "results.jsonl")
    assert with_own_metadata.doubts == []
    assert with_other_metadata.doubts == [MARK]
    page = read_page((tmp_path / "scores_task_1.html").read_text(encoding="utf-8"))
    assert f"Doubt {MARK}" in page.text


@pytest.mark.parametrize("is_foreign", [False, True])
def test_a_ranking_from_foreign_metadata_is_marked_though_the_origin_of_the_panel_is_unknown(
    kit: Path, other_data: Path, tmp_path: Path, is_foreign: bool
) -> None:
    """The metadata of a ranking (task 3) must belong to the answers that the ranking was made from.

    The ranking is scored by a panel, a file of judgements that the user wrote. The kit does not
    know its origin. So the panel cannot show whether the metadata are foreign: the kit must compare
    them with the answers.
    """
    data = other_data if is_foreign else kit / "data"
    flags = ["--metadata_dir", data / "metadata"]
    succeeds(["task_3/sample_model_confidence.py", *flags], kit=kit)
    # The user's panel has one judge, "me", who judges one pair: the first two questions of the
    # template. A 1 says that the judge prefers the left question.
    template = pd.read_csv(kit / "submission_templates/submission_task_3.csv")
    left, right = template["QuestionId"][:2]
    panel = pd.DataFrame({"left": [left], "right": [right], "me": [1]})
    panel.to_csv(tmp_path / "mine.csv", index=False)
    flags = ["--input_dir", tmp_path, "--ref_data", "mine.csv", "--output_dir", tmp_path]
    printed = succeeds(["task_3/local_evaluation.py", *flags], kit=kit)
    assert (MARK in printed) == is_foreign


def test_a_note_warns_if_the_page_groups_students_by_foreign_metadata(
    kit: Path, other_data: Path, tmp_path: Path
) -> None:
    """The page of a score groups students by their metadata, such as gender.

    Here, a file of another simulation replaces the kit's file of these metadata.
    """
    succeeds(["task_1/sample_model_majority.py", "--local"], kit=kit)
    name = layout.STUDENT_METADATA_TASK_1_2
    shutil.copyfile(other_data / "metadata" / name, kit / "data/metadata" / name)
    # SIMULATED.json lists the files of the kit's simulation with their fingerprints. It still lists
    # the name of the replaced file, so only the fingerprint can show the replacement.
    marker = kit / "data" / layout.SIMULATED_MARKER_NAME
    assert any(name in file for file in json.loads(marker.read_text())["files"])
    evaluation = ["task_1/local_evaluation.py", "--output_dir", tmp_path]
    printed = succeeds(evaluation, kit=kit)
    (note,) = [line for line in printed.splitlines() if line.startswith("note: ")]
    assert name in note
    assert note.endswith("; the page's groups by them may mean nothing")
