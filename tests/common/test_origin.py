"""Answers are official, simulated, or of unknown origin; pages and records say which."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from common import fingerprints, layout, official_files, provenance
from common.errors import InputError
from common.origin import Origin, combine
from common.provenance import Provenance
from common.simulated import place_simulated
from tools.results import read_results

import pandas as pd
import pytest
from conftest import Write, fails, succeeds
from page_reading import read_page
from recorded import RESULT

OWN = "UserId,QuestionId,IsCorrect\n1,2,0\n"


def write_provenance(path: Path, **fields: Any) -> None:
    """Write the record of a file, which a script made."""
    record = Provenance("task_1/local_data_split.py", {}, 0.0, **fields)
    content = asdict(record) | {"files": {path.name: fingerprints.fingerprint(path)}}
    path.with_suffix(".json").write_text(json.dumps(content))


def make_official(data_dir: Path, *paths: Path) -> None:
    """Write the record that data/download.py leaves for files in a data folder."""
    for record, content in official_files.record_of(data_dir, paths).items():
        record.write_text(content)


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ([Origin.OFFICIAL, Origin.OFFICIAL], Origin.OFFICIAL),
        ([Origin.OFFICIAL, Origin.UNKNOWN], Origin.UNKNOWN),
        ([Origin.OFFICIAL, Origin.UNKNOWN, Origin.SIMULATED], Origin.SIMULATED),
        ([], Origin.UNKNOWN),
    ],
)
def test_what_is_made_from_several_files_is_official_only_if_all_are(
    origins: list[Origin], expected: Origin
) -> None:
    assert combine(origins) is expected


# ---- Official files ------------------------------------------------------------------------------


def test_a_file_of_an_official_name_is_not_official(write: Write) -> None:
    path = write(f"data/train_data/{layout.TRAIN_TASK_1_2}", OWN)
    assert provenance.origin_of(path) is Origin.UNKNOWN


def test_a_file_with_the_checksum_of_an_official_file_is_official_under_any_name(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"bytes": len(OWN), "sha256": sha256(OWN.encode()).hexdigest()}
    monkeypatch.setattr(official_files, "_TRAINING_FILES", (known,))
    assert provenance.origin_of(write("elsewhere.csv", OWN)) is Origin.OFFICIAL
    # Another file of the same size.
    changed = write("changed.csv", OWN.replace("0", "1"))
    assert provenance.origin_of(changed) is Origin.UNKNOWN


def test_an_unpacked_file_is_official_until_it_changes(write: Write, tmp_path: Path) -> None:
    path = write("data/test_data/answers.csv", OWN)
    make_official(tmp_path / "data", path)
    assert provenance.origin_of(path) is Origin.OFFICIAL
    path.write_text(OWN.replace("0", "1"))
    assert provenance.origin_of(path) is Origin.UNKNOWN


def test_the_record_of_official_files_keeps_files_of_earlier_runs(
    write: Write, tmp_path: Path
) -> None:
    paths = [write(f"data/{folder}/a.csv", folder) for folder in ("train_data", "test_data")]
    for path in paths:
        make_official(tmp_path / "data", path)
    assert provenance.origin_of(*paths) is Origin.OFFICIAL


@pytest.mark.parametrize("content", ["{half", "[]", '{"files": 7}', '{"files": {"a.csv": 7}}'])
def test_a_damaged_record_of_official_files_makes_nothing_official(
    write: Write, content: str
) -> None:
    path = write("data/test_data/a.csv", OWN)
    write(f"data/{layout.OFFICIAL_MARKER_NAME}", content)
    assert provenance.origin_of(path) is Origin.UNKNOWN


@pytest.mark.parametrize("recorded", [Origin.OFFICIAL, Origin.UNKNOWN])
def test_a_split_of_official_answers_is_official(
    write: Write, tmp_path: Path, recorded: Origin
) -> None:
    """Also one that was made before the kit knew official files, as long as these are there."""
    train = write("data/train_data/train.csv", OWN)
    make_official(tmp_path / "data", train)
    valid = write("data/test_input/valid.csv", OWN.replace("0", "1"))
    made_from = {"../train_data/train.csv": fingerprints.fingerprint(train)}
    write_provenance(valid, origin=recorded, made_from=made_from)
    assert provenance.origin_of(valid) is Origin.OFFICIAL
    train.write_text(OWN.replace("2", "3"))
    assert provenance.origin_of(valid) is recorded


def test_a_record_that_names_its_own_file_as_a_source_leads_nowhere(write: Write) -> None:
    path = write("data/test_input/valid.csv", OWN)
    write_provenance(path, made_from={"valid.csv": fingerprints.fingerprint(path)})
    assert provenance.origin_of(path) is Origin.UNKNOWN


# ---- Records of earlier versions -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("simulated", "expected"), [(True, Origin.SIMULATED), (False, Origin.UNKNOWN)]
)
def test_files_and_scores_that_earlier_versions_called_real_are_of_unknown_origin(
    write: Write, tmp_path: Path, simulated: bool, expected: Origin
) -> None:
    path = write("valid.csv", OWN)
    write_provenance(path)
    record = json.loads(path.with_suffix(".json").read_text())
    del record["origin"]
    path.with_suffix(".json").write_text(json.dumps(record | {"simulated": simulated}))
    assert provenance.origin_of(path) is expected
    line = asdict(RESULT)
    del line["origin"]
    results = tmp_path / "results.jsonl"
    results.write_text(json.dumps(line | {"simulated": simulated}) + "\n")
    assert [result.origin for result in read_results(results)] == [expected]


@pytest.mark.parametrize("field", ['"simulated": 1', '"origin": "real"', '"origin": []'])
def test_a_record_with_another_origin_is_damaged(field: str) -> None:
    content = f'{{"script": "a.py", "options": {{}}, "seconds": 1, {field}}}'
    assert provenance.parse(content) is None


# ---- Simulated answers ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def predicted_kit(split_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with a submission for the local split of task 1 and a ranking."""
    kit = Path(shutil.copytree(split_kit, tmp_path_factory.mktemp("predicted") / "kit"))
    succeeds(["task_1/sample_model_majority.py", "--local"], kit=kit)
    succeeds(["task_3/sample_model_entropy.py"], kit=kit)
    return kit


def copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


def save_again(source: Path, target: Path) -> None:
    pd.read_csv(source).to_csv(target, index=False, lineterminator="\r\n")


def keep_most(source: Path, target: Path) -> None:
    pd.read_csv(source).iloc[:-1].to_csv(target, index=False)


def shuffle(source: Path, target: Path) -> None:
    pd.read_csv(source).sample(frac=1, random_state=0).to_csv(target, index=False)


def keep_columns(source: Path, target: Path) -> None:
    pd.read_csv(source)[["UserId", "QuestionId", "IsCorrect"]].to_csv(target, index=False)


WAYS = [copy, save_again, keep_most, shuffle]


def origin_on_page(folder: Path, name: str) -> tuple[str, bool]:
    """Return the origin of the latest score in a folder, and whether its page says so."""
    origin = read_results(folder / "results.jsonl")[-1].origin
    page = read_page((folder / f"scores_{name}.html").read_text(encoding="utf-8"))
    return str(origin), f"Origin {origin.answers}" in page.text


@pytest.mark.parametrize("way", [*WAYS, keep_columns])
@pytest.mark.parametrize("name", [layout.VALID_TASK_1_2, "mine.csv"])
def test_simulated_answers_stay_simulated_in_another_file(
    predicted_kit: Path, tmp_path: Path, way: Callable[[Path, Path], None], name: str
) -> None:
    way(predicted_kit / "data/test_input" / layout.VALID_TASK_1_2, tmp_path / name)
    flags = ["--input_dir", tmp_path, "--ref_data", name, "--output_dir", tmp_path]
    succeeds(["task_1/local_evaluation.py", *flags], kit=predicted_kit)
    task = "task_1" if name == layout.VALID_TASK_1_2 else "task_1_own"
    assert origin_on_page(tmp_path, task) == ("simulated", True)


@pytest.mark.parametrize("way", WAYS)
def test_a_split_of_a_copied_training_file_is_simulated(
    split_kit: Path, tmp_path: Path, way: Callable[[Path, Path], None]
) -> None:
    way(split_kit / "data/train_data" / layout.TRAIN_TASK_1_2, tmp_path / "mine.csv")
    flags = ["--input_dir", tmp_path, "--train_data", "mine.csv", "--output_dir", tmp_path / "out"]
    succeeds(["task_1/local_data_split.py", *flags], kit=split_kit)
    record = json.loads((tmp_path / "out/split_task_1_2.json").read_text())
    assert record["origin"] == "simulated"


@pytest.mark.parametrize("way", WAYS)
def test_a_simulated_panel_stays_simulated_in_another_file(
    predicted_kit: Path, tmp_path: Path, way: Callable[[Path, Path], None]
) -> None:
    way(predicted_kit / "data/test_data/quality_response_remapped_public.csv", tmp_path / "p.csv")
    flags = ["--input_dir", tmp_path, "--ref_data", "p.csv", "--output_dir", tmp_path]
    succeeds(["task_3/local_evaluation.py", *flags], kit=predicted_kit)
    assert origin_on_page(tmp_path, "task_3_own") == ("simulated", True)


def test_the_marker_has_a_sketch_of_every_file_with_outcomes(simulated_kit: Path) -> None:
    data = simulated_kit / "data"
    paths = [*data.glob("train_data/*.csv"), *data.glob("test_data/*.csv")]
    marker = json.loads((data / layout.SIMULATED_MARKER_NAME).read_text())
    assert set(marker["sketches"]) == {path.relative_to(data).as_posix() for path in paths}


def test_answers_of_other_students_are_of_unknown_origin(
    predicted_kit: Path, tmp_path: Path
) -> None:
    """They have the name, the columns and the numbers of the simulated file."""
    path = tmp_path / layout.VALID_TASK_1_2
    answers = pd.read_csv(predicted_kit / "data/test_input" / layout.VALID_TASK_1_2)
    outcomes = ["IsCorrect", "CorrectAnswer", "AnswerValue"]
    answers[outcomes] = answers[outcomes].sample(frac=1, random_state=0).to_numpy()
    answers.to_csv(path, index=False)
    flags = ["--input_dir", tmp_path, "--output_dir", tmp_path]
    printed = succeeds(["task_1/local_evaluation.py", *flags], kit=predicted_kit)
    assert origin_on_page(tmp_path, "task_1") == ("unknown", True)
    # The terminal says nothing of it: an honest run prints no more lines than one on other answers.
    assert "origin" not in printed


# ---- A test of one's own -------------------------------------------------------------------------


def test_a_panel_of_ones_own_leaves_the_files_of_the_official_phase_alone(
    predicted_kit: Path, tmp_path: Path
) -> None:
    kit = Path(shutil.copytree(predicted_kit, tmp_path / "kit"))
    evaluation = ["task_3/local_evaluation.py"]
    succeeds([*evaluation, "--phase", "public"], kit=kit)
    output = kit / "data/test_output"
    before = [(output / f"scores_task_3_public.{end}").read_bytes() for end in ("txt", "html")]
    panel = pd.read_csv(kit / "data/test_data/quality_response_remapped_public.csv")
    panel[["left", "right", "T1_ALR"]].rename(columns={"T1_ALR": "me"}).to_csv(
        tmp_path / "mine.csv", index=False
    )
    own = [*evaluation, "--phase", "public", "--input_dir", tmp_path, "--ref_data", "mine.csv"]
    assert "scores_task_3_own.txt" in succeeds(own, kit=kit)
    after = [(output / f"scores_task_3_public.{end}").read_bytes() for end in ("txt", "html")]
    assert before == after
    assert [result.phase for result in read_results(output / "results.jsonl")] == ["public", "own"]
    page = read_page((output / "scores_task_3_own.html").read_text(encoding="utf-8"))
    assert page.headings[0] == "Task 3: question quality, a test of your own"
    printed = " ".join(succeeds(["-m", "tools.scoreboard"], kit=kit, cwd=kit).split())
    # Nobody knows where the panel comes from, but the ranking was made from simulated answers.
    table = "agreement with the best expert, test of your own, simulated answers"
    assert f"Task 3: question quality: {table}" in printed


def test_students_of_ones_own_in_task_4_have_files_of_their_own(
    split_kit: Path, tmp_path: Path
) -> None:
    kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    succeeds(["task_4/numpy/train_model.py", "--local"], kit=kit)
    answers = pd.read_csv(kit / "data/test_input" / layout.VALID_TASK_4)
    first = answers["UserId"].unique()[:5]
    few = answers[answers["UserId"].isin(first)]
    few.to_csv(kit / "data/test_input/few.csv", index=False)
    flags = ["--ref_data", "few.csv", "--skip_curve", "--output_dir", tmp_path]
    succeeds(["task_4/numpy/local_evaluation.py", *flags], kit=kit)
    names = {path.name for path in tmp_path.glob("*task_4*")}
    assert names == {"scores_task_4_own.txt", "scores_task_4_own.html", "sequence_task_4_own.csv"}
    assert origin_on_page(tmp_path, "task_4_own") == ("simulated", True)


# ---- Hosted simulated answers --------------------------------------------------------------------


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Path]:
    """Return a data folder with the public simulated file of a competition."""
    data = tmp_path / "data"

    def write(folder: Path) -> dict[str, Any]:
        path = folder / "train_data" / layout.TRAIN_TASK_1_2
        path.parent.mkdir()
        path.write_text(OWN)
        return {}

    place_simulated(data, ["train_data"], write)
    marker = data / layout.SIMULATED_MARKER_NAME
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"hosted": True}))
    yield data


def test_another_simulation_never_replaces_files_of_a_competition(hosted: Path) -> None:
    """Nobody but the organiser could simulate them again."""
    path = hosted / "train_data" / layout.TRAIN_TASK_1_2
    assert provenance.origin_of(path) is Origin.SIMULATED
    with pytest.raises(InputError, match="is not a simulated file and would be overwritten"):
        place_simulated(hosted, ["train_data"], lambda folder: {})
    assert path.read_text() == OWN


def test_generating_data_refuses_a_folder_with_files_of_a_competition(hosted: Path) -> None:
    message = fails(["data/generate_sample.py", "--size", "tiny", "--output_dir", hosted])
    assert "would be overwritten" in message
