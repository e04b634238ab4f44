"""Answers are official, simulated, or of unknown origin; pages and records say which."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
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

# The text of a file of answers. The origin of the file (official, simulated or unknown) is unknown,
# unless a test writes a record that says otherwise.
OWN = "UserId,QuestionId,IsCorrect\n1,2,0\n"


def write_provenance(path: Path, **fields: Any) -> None:
    """Write the record of a file that `task_1/local_data_split.py` seems to have made.

    A script leaves such a record, a JSON file, beside each file that it makes. `fields` holds
    further fields of the record, such as the origin of the file.
    """
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
    first = write("data/train_data/a.csv", "train_data")
    second = write("data/test_data/a.csv", "test_data")
    make_official(tmp_path / "data", first)
    make_official(tmp_path / "data", second)
    assert provenance.origin_of(first, second) is Origin.OFFICIAL


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
    """A file of a split counts as official while its source is an unchanged official file.

    Once the source has changed, the file has the origin that its record states, here `recorded`.
    This may be "unknown", even if the source was official, because earlier versions of the kit
    could not recognise official files.
    """
    source = write("data/train_data/train.csv", OWN)
    make_official(tmp_path / "data", source)
    other_answers = OWN.replace("0", "1")
    file_of_split = write("data/test_input/valid.csv", other_answers)
    made_from = {"../train_data/train.csv": fingerprints.fingerprint(source)}
    write_provenance(file_of_split, origin=recorded, made_from=made_from)
    assert provenance.origin_of(file_of_split) is Origin.OFFICIAL

    changed_source = OWN.replace("2", "3")
    source.write_text(changed_source)

    assert provenance.origin_of(file_of_split) is recorded


def test_a_record_that_names_its_own_file_as_a_source_leads_nowhere(write: Write) -> None:
    path = write("data/test_input/valid.csv", OWN)
    write_provenance(path, made_from={"valid.csv": fingerprints.fingerprint(path)})
    assert provenance.origin_of(path) is Origin.UNKNOWN


# ---- Records of earlier versions -----------------------------------------------------------------


# Earlier versions of the kit recorded only whether answers are simulated (true or false). They
# called all answers real that are not simulated.
as_in_earlier_versions = pytest.mark.parametrize(
    ("simulated", "expected"), [(True, Origin.SIMULATED), (False, Origin.UNKNOWN)]
)


@as_in_earlier_versions
def test_files_that_earlier_versions_called_real_are_of_unknown_origin(
    write: Write, simulated: bool, expected: Origin
) -> None:
    path = write("valid.csv", OWN)
    write_provenance(path)
    record = json.loads(path.with_suffix(".json").read_text())
    del record["origin"]
    record["simulated"] = simulated
    path.with_suffix(".json").write_text(json.dumps(record))
    assert provenance.origin_of(path) is expected


@as_in_earlier_versions
def test_scores_that_earlier_versions_called_real_are_of_unknown_origin(
    tmp_path: Path, simulated: bool, expected: Origin
) -> None:
    record = asdict(RESULT)
    del record["origin"]
    record["simulated"] = simulated
    results = tmp_path / "results.jsonl"
    results.write_text(json.dumps(record) + "\n")
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


# Each of the following functions reads a file of simulated answers, `source`, and makes another
# file from it, `target`.


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
    """Return the origin of the latest score in a folder, and whether the score's page shows it.

    The origin says whether the answers were official, simulated, or of unknown origin.
    """
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
    """A file of answers has the name, columns and ids of a simulated file, but other outcomes.

    The page of the score on these answers says that their origin is unknown.
    """
    path = tmp_path / layout.VALID_TASK_1_2
    answers = pd.read_csv(predicted_kit / "data/test_input" / layout.VALID_TASK_1_2)
    # Shuffle the outcomes, but leave the ids where they are.
    outcomes = ["IsCorrect", "CorrectAnswer", "AnswerValue"]
    answers[outcomes] = answers[outcomes].sample(frac=1, random_state=0).to_numpy()
    answers.to_csv(path, index=False)
    flags = ["--input_dir", tmp_path, "--output_dir", tmp_path]
    printed = succeeds(["task_1/local_evaluation.py", *flags], kit=predicted_kit)
    origin, is_on_page = origin_on_page(tmp_path, "task_1")
    assert origin == "unknown"
    assert is_on_page
    # In the terminal, the evaluation names an origin only if the answers are simulated.
    assert "origin" not in printed


# ---- A test of one's own -------------------------------------------------------------------------


PUBLIC_SCORES = ["scores_task_3_public.txt", "scores_task_3_public.html"]


@dataclass(frozen=True)
class OwnPanel:
    """A ranking that was scored in the public phase, and then with the user's own panel."""

    kit: Path
    # The contents of the files PUBLIC_SCORES before the ranking was scored with the user's panel.
    public_scores_before: list[bytes]
    # The output of the evaluation with the user's panel.
    printed: str

    @property
    def output(self) -> Path:
        """The folder of the scores."""
        return self.kit / "data/test_output"


@pytest.fixture(scope="module")
def own_panel(predicted_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> OwnPanel:
    """Score a ranking in the public phase, and then with the user's own panel of experts.

    Tests check that the second evaluation leaves the files of the first evaluation unchanged. The
    user's panel has a single expert, "me", with the judgements of the official expert T1_ALR.
    """
    folder = tmp_path_factory.mktemp("own_panel")
    kit = Path(shutil.copytree(predicted_kit, folder / "kit"))
    evaluation = ["task_3/local_evaluation.py", "--phase", "public"]
    succeeds(evaluation, kit=kit)
    before = [(kit / "data/test_output" / name).read_bytes() for name in PUBLIC_SCORES]

    official_panel = pd.read_csv(kit / "data/test_data/quality_response_remapped_public.csv")
    panel = official_panel[["left", "right", "T1_ALR"]].rename(columns={"T1_ALR": "me"})
    panel.to_csv(folder / "mine.csv", index=False)
    own = [*evaluation, "--input_dir", folder, "--ref_data", "mine.csv"]
    return OwnPanel(kit, before, succeeds(own, kit=kit))


def test_a_panel_of_ones_own_leaves_the_files_of_the_official_phase_alone(
    own_panel: OwnPanel,
) -> None:
    after = [(own_panel.output / name).read_bytes() for name in PUBLIC_SCORES]
    assert after == own_panel.public_scores_before


def test_scores_by_a_panel_of_ones_own_have_files_and_a_phase_of_their_own(
    own_panel: OwnPanel,
) -> None:
    assert "scores_task_3_own.txt" in own_panel.printed
    page = read_page((own_panel.output / "scores_task_3_own.html").read_text(encoding="utf-8"))
    assert page.headings[0] == "Task 3: question quality, a test of your own"
    results = read_results(own_panel.output / "results.jsonl")
    assert [result.phase for result in results] == ["public", "own"]


def test_scores_of_a_simulated_ranking_by_a_panel_of_ones_own_are_simulated(
    own_panel: OwnPanel,
) -> None:
    """A score is simulated if its ranking was made from simulated answers.

    The origin of the panel of experts is unknown here.
    """
    kit = own_panel.kit
    printed = " ".join(succeeds(["-m", "tools.scoreboard"], kit=kit, cwd=kit).split())
    table = "agreement with the best expert, test of your own, simulated answers"
    assert f"Task 3: question quality: {table}" in printed


def test_students_of_ones_own_in_task_4_have_files_of_their_own(
    split_kit: Path, tmp_path: Path
) -> None:
    """Scores on a file of the user's own students go to files with "own" in their names."""
    kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    succeeds(["task_4/numpy/train_model.py", "--local"], kit=kit)
    answers = pd.read_csv(kit / "data/test_input" / layout.VALID_TASK_4)
    first_five = answers["UserId"].unique()[:5]
    answers_of_few = answers[answers["UserId"].isin(first_five)]
    answers_of_few.to_csv(kit / "data/test_input/few.csv", index=False)
    flags = ["--ref_data", "few.csv", "--skip_curve", "--output_dir", tmp_path]
    succeeds(["task_4/numpy/local_evaluation.py", *flags], kit=kit)
    names = {path.name for path in tmp_path.glob("*task_4*")}
    assert names == {"scores_task_4_own.txt", "scores_task_4_own.html", "sequence_task_4_own.csv"}
    origin, is_on_page = origin_on_page(tmp_path, "task_4_own")
    assert origin == "simulated"
    assert is_on_page


# ---- Hosted simulated answers --------------------------------------------------------------------


@pytest.fixture
def hosted(tmp_path: Path) -> Path:
    """Return the data folder of a participant in a competition with simulated answers.

    The folder holds the public training answers. A marker says that the answers are simulated and
    belong to a competition ("hosted").
    """
    data = tmp_path / "data"

    def write_training_answers(folder: Path) -> dict[str, Any]:
        path = folder / "train_data" / layout.TRAIN_TASK_1_2
        path.parent.mkdir()
        path.write_text(OWN)
        # Facts about the simulation, which `place_simulated` would add to the marker: none here.
        return {}

    place_simulated(data, ["train_data"], write_training_answers)
    marker_path = data / layout.SIMULATED_MARKER_NAME
    marker = json.loads(marker_path.read_text())
    marker["hosted"] = True
    marker_path.write_text(json.dumps(marker))
    return data


def test_another_simulation_never_replaces_files_of_a_competition(hosted: Path) -> None:
    """`place_simulated` refuses to replace files of a competition.

    Only the organiser of the competition could simulate these files again.
    """
    path = hosted / "train_data" / layout.TRAIN_TASK_1_2
    assert provenance.origin_of(path) is Origin.SIMULATED
    with pytest.raises(InputError, match="is not a simulated file and would be overwritten"):
        place_simulated(hosted, ["train_data"], lambda folder: {})
    assert path.read_text() == OWN


def test_generating_data_refuses_a_folder_with_files_of_a_competition(hosted: Path) -> None:
    message = fails(["data/generate_sample.py", "--size", "tiny", "--output_dir", hosted])
    assert "would be overwritten" in message
