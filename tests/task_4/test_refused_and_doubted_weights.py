"""Task 4: no score without its origin. Each test follows weights from training to score.

The package is task_4/numpy, whose weights are trained on the local split or on all students. If the
training is unknown, or its code or data have changed, the score gets a doubt or is refused. A doubt
is a reason why a score may be wrong.
"""

import json
import shutil
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import provenance
from common.adaptive import weights
from common.adaptive.entry_files import ENTRY_FILE
from tools.quickstart import run_step

import numpy as np
import pandas as pd
import pytest
from changed_files import drop_last_line
from conftest import fails, run, succeeds
from page_reading import read_page
from sample_blocks import needs_blocks
from toy_bundle import entry as toy_entry

# The fixture `evaluate` is a function that scores a package or a zip and returns the results.
Evaluate = Callable[..., "Scored"]
EVALUATE = "task_4/local_evaluation.py"
MAY_HAVE_SEEN = "may have seen these answers"
EARLIER_CODE = "made by earlier code"
# A zip needs these files besides the weights, by the guide of the challenge of 2020.
GUIDE_FILES = ["model.py", ENTRY_FILE]
NUMPY_WEIGHTS = ["model_task_4_most_popular.npy", "model_task_4_num_answers.npy"]
UNKNOWN_NUMPY = f"{MAY_HAVE_SEEN}: no record of training names {', '.join(NUMPY_WEIGHTS)}"

# A train_model.py that leaves no record of training, since it saves the weights itself and does not
# call the kit's `replace_weights`. It reads no answers, and writes two zeros into each file of
# weights.
UNRECORDED_TRAINER = """
import sys
from pathlib import Path
import numpy as np

def build_parser():
    raise NotImplementedError

for name in ("most_popular", "num_answers"):
    np.save(Path(__file__).with_name(f"model_task_4_{name}.npy"), np.zeros(2, int))
"""


@dataclass(frozen=True)
class Scored:
    """The results of an evaluation: what it prints, shows on its page and records for the score."""

    output: str
    facts: list[list[str]]
    result: dict[str, Any]

    @property
    def notes(self) -> list[str]:
        """The doubts about the score, as the evaluation prints them."""
        lines = self.output.splitlines()
        return [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]

    @property
    def doubts_on_page(self) -> list[str]:
        """The doubts about the score, as the page shows them."""
        return [value for name, value in self.facts if name == "Doubt"]


def copy_needed(scored_kit: Path, destination: Path) -> Path:
    """Copy only what these tests need of a kit, to save time.

    The copy lacks some folders, and has only two of the ten masks. A mask decides which answers are
    hidden.
    """
    left_out = shutil.ignore_patterns("hosting", "related_challenges", "tests", "task_[123]")
    kit = Path(shutil.copytree(scored_kit, destination, ignore=left_out))
    path = kit / "data/test_data/test_public_task_4_more_splits.csv"
    answers = pd.read_csv(path)
    answers.drop(columns=[f"IsTarget_{mask}" for mask in range(2, 10)]).to_csv(path, index=False)
    return kit


@pytest.fixture
def kit(scored_kit: Path, tmp_path: Path) -> Path:
    """Return a kit that the test may change. Its package task_4/numpy is trained with --local.

    So the weights have not learned from the students whom the local split examines.
    """
    return copy_needed(scored_kit, tmp_path / "kit")


@pytest.fixture
def evaluate(kit: Path, tmp_path: Path) -> Evaluate:
    """Return a function that scores a package or a zip, by default on the local split."""

    def score(*flags: object, script: object = EVALUATE) -> Scored:
        output_dir = tmp_path / "output"
        output = succeeds([script, *flags, "--skip_curve", "--output_dir", output_dir], kit=kit)
        (page_path,) = output_dir.glob("scores_task_4*.html")
        page = read_page(page_path.read_text())
        results = (output_dir / "results.jsonl").read_text().splitlines()
        page_path.unlink()
        return Scored(output, page.tables[0].rows, json.loads(results[-1]))

    return score


def zip_by_hand(package: Path, names: Iterable[str] = (*GUIDE_FILES, *NUMPY_WEIGHTS)) -> Path:
    """Write a zip with some files of a package, and return its path.

    By default, the zip holds the weights, but no record of their training.
    """
    path = package.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.write(package / name, name)
    return path


def has_doubt(scored: Scored, mark: str, sentence: str) -> bool:
    """Return whether output, page and record of the score all have this doubt and no other.

    The output and the page show the doubt as `sentence`. The record holds only its name, `mark`.
    """
    return (
        scored.notes == [sentence]
        and scored.doubts_on_page == [sentence]
        and scored.result["doubts"] == [mark]
    )


def has_no_doubt(scored: Scored) -> bool:
    """Return whether output, page and record of a score all express no doubt about the score."""
    return not (scored.notes or scored.doubts_on_page or scored.result["doubts"])


def change_code(path: Path) -> None:
    """Change a file of code without changing what it does: add a comment."""
    with path.open("a") as file:
        file.write("\n# A better idea.\n")


# ---- Zips made by hand ---------------------------------------------------------------------------


def test_a_zip_by_hand_is_traced_to_the_package_that_trained_its_weights(
    kit: Path, evaluate: Evaluate
) -> None:
    """The evaluation of a zip names the command that trained its weights, even without a record.

    The zip holds weights from a package of the kit, but not the record of their training. This
    record lies only in the package. The evaluation recognises the weights by their content, and so
    finds the record.
    """
    package = kit / "task_4/numpy"
    scored_zip = evaluate(zip_by_hand(package))
    scored_package = evaluate(package)
    for scored in (scored_zip, scored_package):
        assert has_no_doubt(scored)
        # After "on", the output has a date, such as 2026-05-04.
        assert ", made by `python task_4/numpy/train_model.py --local` on 20" in scored.output
        assert ["Weights trained by", "python task_4/numpy/train_model.py --local"] in scored.facts
    for name in ("script", "options", "code", "score"):
        assert scored_zip.result[name] == scored_package.result[name]


def test_a_zip_by_hand_whose_weights_know_the_students_is_refused(
    kit: Path, tmp_path: Path
) -> None:
    package = Path(shutil.copytree(kit / "task_4/numpy", kit / "task_4/mine"))
    succeeds([package / "train_model.py"], kit=kit)
    archive = Path(shutil.move(zip_by_hand(package), tmp_path / "upload.zip"))
    for entry in (archive, package):
        message = fails([EVALUATE, entry, "--output_dir", tmp_path / "output"], kit=kit)
        assert message.startswith(f"{entry}: its model is trained on UserId ")
        assert "`train_model.py --local` trains for the local split" in message
    assert not list((tmp_path / "output").glob("scores*"))


def test_a_zip_by_hand_of_all_students_is_scored_by_a_phase(kit: Path, evaluate: Evaluate) -> None:
    package = kit / "task_4/numpy"
    succeeds([package / "train_model.py"], kit=kit)
    scored = evaluate(zip_by_hand(package), "--phase", "public")
    assert has_no_doubt(scored)
    assert ", made by `python task_4/numpy/train_model.py` on 20" in scored.output


def test_weights_of_two_packages_have_learned_from_the_students_of_both(
    kit: Path, tmp_path: Path
) -> None:
    """A zip holds two files of weights, from two packages. One package was trained on all students.

    So one file has learned from the students whom the local split examines, and the kit refuses to
    score the zip on the local split.
    """
    package = Path(shutil.copytree(kit / "task_4/numpy", kit / "task_4/mine"))
    succeeds([package / "train_model.py"], kit=kit)
    # The zip gets the first file of weights from task_4/numpy, which was trained without the
    # students that the local split examines. The second file is from task_4/mine, trained on all
    # students.
    shutil.copy(kit / "task_4/numpy" / NUMPY_WEIGHTS[0], package)
    message = fails([EVALUATE, zip_by_hand(package), "--output_dir", tmp_path], kit=kit)
    assert "its model is trained on UserId " in message


def test_weights_that_no_package_has_written_may_have_seen_the_answers(
    kit: Path, evaluate: Evaluate
) -> None:
    """No record of training describes the weights in the zip, so the score gets a doubt.

    The weights were zipped without their record. Then the package was trained again, and its record
    now describes the new weights.
    """
    package = kit / "task_4/numpy"
    archive = zip_by_hand(package)
    succeeds([package / "train_model.py"], kit=kit)
    scored = evaluate(archive)
    assert has_doubt(scored, MAY_HAVE_SEEN, UNKNOWN_NUMPY)
    assert ["Weights trained by", "not recorded"] in scored.facts
    assert scored.output.startswith("scored: task_4/numpy.zip\n")


def test_a_large_file_of_weights_is_traced(kit: Path, evaluate: Evaluate) -> None:
    """The kit finds out which run has trained a large file of weights, so the score has no doubt.

    A run of training leaves a record with fingerprints of the weights that it wrote. An evaluation
    compares them with the fingerprints of the weights in a zip. The fingerprint of a file over 4 MB
    is made from only some of its bytes.
    """
    package = kit / "task_4/numpy"
    # One of the two files of weights holds the number of answers to each question, as int64. Change
    # the model so that it counts 700,000 questions: 5.6 MB. The next lines of the model then use
    # this number of questions, too.
    model = package / "model.py"
    source = model.read_text()
    count_answers = "self.num_answers = np.bincount(question, minlength=n_questions)"
    count_for_more_questions = (
        "self.num_answers = np.bincount(question, minlength=700_000)\n"
        "        n_questions = len(self.num_answers)"
    )
    assert count_answers in source
    model.write_text(source.replace(count_answers, count_for_more_questions))
    succeeds([package / "train_model.py", "--local"], kit=kit)
    weights_file = package / "model_task_4_num_answers.npy"
    assert weights_file.stat().st_size > 5e6

    assert has_no_doubt(evaluate(zip_by_hand(package)))


# ---- Folders without a record --------------------------------------------------------------------


def test_a_package_that_saves_weights_without_a_record_may_have_seen_the_answers(
    kit: Path, evaluate: Evaluate
) -> None:
    package = make_unrecorded_package(kit)
    succeeds([package / "train_model.py"], kit=kit)
    scored_by_task = evaluate(package)
    scored_by_package = evaluate(script=package / "local_evaluation.py")
    for scored in (scored_by_task, scored_by_package):
        assert has_doubt(scored, MAY_HAVE_SEEN, UNKNOWN_NUMPY)


def make_unrecorded_package(kit: Path) -> Path:
    """Return a copy of task_4/numpy without weights, whose train_model.py leaves no record."""
    package = kit / "task_4/mine"
    weights.copy_package(kit / "task_4/numpy", package)
    (package / "train_model.py").write_text(UNRECORDED_TRAINER)
    return package


def cross_validate(kit: Path, package: Path) -> tuple[list[str], list[str]]:
    """Cross-validate a package; return the doubts about its score, as printed and as recorded."""
    output = succeeds(["-m", "tools.cross_validate", package, "--folds", 2], kit=kit)
    notes = [line for line in output.splitlines() if line.startswith("note")]
    lines = (kit / "data/test_output/results.jsonl").read_text().splitlines()
    doubts: list[str] = json.loads(lines[-1])["doubts"]
    return notes, doubts


def test_a_cross_validation_of_a_package_without_records_has_the_doubt(kit: Path) -> None:
    notes, doubts = cross_validate(kit, make_unrecorded_package(kit))
    assert notes == [f"note: {UNKNOWN_NUMPY}"]
    assert doubts == [MAY_HAVE_SEEN]


def test_a_cross_validation_of_a_package_with_records_has_no_doubt(kit: Path) -> None:
    notes, doubts = cross_validate(kit, kit / "task_4/numpy")
    assert notes == []
    assert doubts == []


@pytest.mark.parametrize("name", ["model_task_4_old.npy", "tables/answers.csv"])
def test_a_file_beside_recorded_weights_may_have_seen_the_answers(
    kit: Path, evaluate: Evaluate, name: str
) -> None:
    package = kit / "task_4/numpy"
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("1,1,0")
    scored = evaluate(package)
    sentence = f"{MAY_HAVE_SEEN}: no record of training names {name}"
    assert has_doubt(scored, MAY_HAVE_SEEN, sentence)
    assert ["Weights trained by", "python task_4/numpy/train_model.py --local"] in scored.facts


def test_many_files_without_a_record_are_counted(kit: Path, evaluate: Evaluate) -> None:
    package = kit / "task_4/numpy"
    for number in range(5):
        (package / f"{number}.csv").touch()
    sentence = f"{MAY_HAVE_SEEN}: no record of training names 0.csv, 1.csv, 2.csv and 2 more"
    assert evaluate(package).notes == [sentence]


def test_an_entry_of_code_and_texts_alone_has_no_doubt(evaluate: Evaluate, tmp_path: Path) -> None:
    folder = tmp_path / "entry"
    folder.mkdir()
    for name, text in {**toy_entry(), "README.md": "# Mine", "LICENSE": "", ".notes": ""}.items():
        (folder / name).write_text(text)
    archive = Path(shutil.make_archive(f"{folder}", "zip", folder))
    for entry in (folder, archive):
        assert has_no_doubt(evaluate(entry))


def test_copied_weights_that_know_the_students_are_recognised_and_not_scored(
    kit: Path, evaluate: Evaluate
) -> None:
    """Weights that are trained on all students must not be scored on students of the local split.

    Here such weights are copied into another package, without the record of their training. The
    evaluation recognises the weights by their content and does not score them. Instead, it trains
    weights in a copy of the package, without the students of the local split, and scores these.
    """
    original = kit / "task_4/numpy"
    package = kit / "task_4/mine"
    weights.copy_package(original, package)
    succeeds([original / "train_model.py"], kit=kit)
    for name in NUMPY_WEIGHTS:
        shutil.copy(original / name, package)
    # The script in the package itself scores the package on the local split.
    scored = evaluate(script=package / "local_evaluation.py")
    command = "python task_4/mine/train_model.py --local"
    assert f"its weights know the local split: `{command}` trains a copy\n" in scored.output
    assert has_no_doubt(scored)
    assert ["Weights trained by", command] in scored.facts


def test_a_record_of_an_earlier_version_names_no_files_and_raises_no_doubt(
    kit: Path, evaluate: Evaluate
) -> None:
    package = kit / "task_4/numpy"
    record = json.loads((package / weights.TRAINING).read_text())
    for name in ("files", "time", "interrupted", "code_changed"):
        del record[name]
    (package / weights.TRAINING).write_text(json.dumps(record))
    scored = evaluate(package)
    assert has_no_doubt(scored)
    assert ", made by `python task_4/numpy/train_model.py --local`\n" in scored.output


@pytest.mark.parametrize(
    "files",
    [
        # A training script that saves its weights in a wrong folder leaves a record without files.
        pytest.param({}, id="no files"),
        pytest.param({"a.npy": 1, "b.npy": {"bytes": [1]}}, id="damaged"),
    ],
)
def test_a_record_that_names_no_files_or_is_damaged_explains_no_weights(
    kit: Path, evaluate: Evaluate, files: dict[str, Any]
) -> None:
    """A record of training covers only the weights that it lists under "files"."""
    package = kit / "task_4/numpy"
    record = json.loads((package / weights.TRAINING).read_text())
    record["files"] = files
    (package / weights.TRAINING).write_text(json.dumps(record))
    assert has_doubt(evaluate(package), MAY_HAVE_SEEN, UNKNOWN_NUMPY)


# ---- Edited, not trained again -------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", ["train_model.py", "model.py"])
def test_weights_of_earlier_code_are_marked(
    kit: Path, evaluate: Evaluate, name: str, zipped: bool
) -> None:
    """If a file of code is changed after the training, the score gets the doubt EARLIER_CODE.

    train_model.py trains the weights. model.py is used in the training, and again in the game, in
    which the model asks students questions and predicts their answers.
    """
    package = kit / "task_4/numpy"
    before = evaluate(package)
    change_code(package / name)
    entry = zip_by_hand(package) if zipped else package
    scored = evaluate(entry)
    sentence = (
        "task_4/numpy/train_model.py or a file that it imports has changed since it trained the "
        "weights: train them again to score the code as it is"
    )
    assert has_doubt(scored, EARLIER_CODE, sentence)
    # The recorded "code" is a fingerprint of all code that has run for this score: to train the
    # weights, and to play the game. The changed model.py has played the game, so the fingerprint is
    # another one. The changed train_model.py has not run yet.
    if name == "model.py":
        assert scored.result["code"] != before.result["code"]
    else:
        assert scored.result["code"] == before.result["code"]


@pytest.mark.parametrize("name", ["train_model.py", "model.py"])
def test_training_again_with_the_changed_code_removes_the_doubt(
    kit: Path, evaluate: Evaluate, name: str
) -> None:
    """If code changes, the score has a doubt only until the new code has trained the weights."""
    package = kit / "task_4/numpy"
    before = evaluate(package)
    change_code(package / name)
    changed = evaluate(package)
    succeeds([package / "train_model.py", "--local"], kit=kit)
    trained_again = evaluate(package)
    assert has_no_doubt(trained_again)
    # The recorded "code" is a fingerprint of all code that has run for this score: to train the
    # weights, and to play the game. Now the changed code has done both.
    assert trained_again.result["code"] != before.result["code"]
    assert trained_again.result["code"] != changed.result["code"]


@pytest.mark.parametrize("place", ["kit/task_4/a_copy", "kit/zoo/copy", "another/copy"])
def test_a_copied_package_has_a_doubt_only_if_it_was_edited(
    kit: Path, evaluate: Evaluate, tmp_path: Path, place: str
) -> None:
    """A copy of a package may lie in any folder. Its score gets a doubt only after an edit."""
    package = Path(shutil.copytree(kit / "task_4/numpy", tmp_path / place))
    assert has_no_doubt(evaluate(package))
    change_code(package / "train_model.py")
    assert evaluate(package).result["doubts"] == [EARLIER_CODE]


def test_packing_weights_of_earlier_code_warns(kit: Path, tmp_path: Path) -> None:
    succeeds(["task_4/numpy/train_model.py"], kit=kit)
    pack = ["task_4/package.py", "task_4/numpy", "--output_dir", tmp_path]
    succeeds(pack, kit=kit, cwd=kit)
    change_code(kit / "task_4/numpy/train_model.py")
    warning = run(pack, kit=kit, cwd=kit).stderr
    assert warning.startswith("warning: task_4/numpy: task_4/numpy/train_model.py or a file that")
    assert warning.endswith("train them again to score the code as it is\n")


def test_an_interrupted_training_is_marked(kit: Path, evaluate: Evaluate) -> None:
    package = kit / "task_4/numpy"
    record = weights.read_record(package)
    assert record is not None
    (package / weights.TRAINING).write_bytes(replace(record, interrupted=True).as_json())
    assert evaluate(package).result["doubts"] == ["fit interrupted"]


# ---- Training data that have changed -------------------------------------------------------------


# The weights of task_4/numpy are made from this file and from answers. To change the training data,
# the tests change this file. They do not change the answers, because the evaluation would then stop
# for another reason: the local split was made from other answers.
METADATA = "data/metadata/question_metadata_task_3_4.csv"

# A package can be scored on the local split in four ways. A zip "by hand" holds no record of its
# training.
ways_to_score = pytest.mark.parametrize(
    "way", ["package", "zip by hand", "zip with records", "package's own script"]
)


def scoring_command(package: Path, way: str) -> list[Any]:
    """Return the command that scores a package in one of the `ways_to_score`: script and arguments.

    If the way is a zip, the zip is written first.
    """
    if way == "package":
        return [EVALUATE, package]
    if way == "zip by hand":
        return [EVALUATE, zip_by_hand(package)]
    if way == "zip with records":
        records = [weights.TRAINING, weights.TRAINED_STUDENTS]
        return [EVALUATE, zip_by_hand(package, [*GUIDE_FILES, *NUMPY_WEIGHTS, *records])]
    return [package / "local_evaluation.py"]


@ways_to_score
def test_weights_of_other_data_are_refused_on_the_local_split(
    kit: Path, tmp_path: Path, way: str
) -> None:
    """If data change after the training, the message says so and how to train weights again."""
    command = scoring_command(kit / "task_4/numpy", way)
    drop_last_line(kit / METADATA)
    message = fails([*command, "--output_dir", tmp_path / "output"], kit=kit)
    assert f"was made from other data than now lie in {METADATA}; " in message
    assert message.endswith("; `python task_4/numpy/train_model.py --local` makes it again")


@ways_to_score
def test_weights_whose_data_are_gone_are_scored(kit: Path, evaluate: Evaluate, way: str) -> None:
    """If a file of training data was deleted, nobody can tell whether it had changed before.

    So the kit does not refuse the weights that were trained with it.
    """
    script, *flags = scoring_command(kit / "task_4/numpy", way)
    (kit / METADATA).unlink()
    assert has_no_doubt(evaluate(*flags, script=script))


def test_weights_of_other_answers_are_refused_by_a_phase(kit: Path, tmp_path: Path) -> None:
    package = kit / "task_4/numpy"
    succeeds([package / "train_model.py"], kit=kit)
    train = kit / "data/train_data/train_task_3_4.csv"
    drop_last_line(train)
    command = [EVALUATE, package, "--phase", "public", "--output_dir", tmp_path / "output"]
    message = fails(command, kit=kit)
    assert f"was made from other data than now lie in {train.relative_to(kit)}; " in message
    assert message.endswith("; `python task_4/numpy/train_model.py` makes it again")


def test_a_copied_package_of_other_data_names_its_own_script(kit: Path, tmp_path: Path) -> None:
    package = Path(shutil.copytree(kit / "task_4/numpy", kit / "task_4/mine"))
    drop_last_line(kit / METADATA)
    message = fails([EVALUATE, package, "--output_dir", tmp_path / "output"], kit=kit)
    assert message.endswith("; `python task_4/mine/train_model.py --local` makes it again")


# ---- Weights trained in another kit --------------------------------------------------------------


@pytest.fixture(scope="module")
def student_zip(scored_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a zip of task_4/numpy, whose weights another kit has trained on another local split.

    In a course, a student would send such a zip to the teacher, who scores it in this kit. The
    tests share the zip and only read it.
    """
    folder = tmp_path_factory.mktemp("student")
    student_kit = copy_needed(scored_kit, folder / "kit")
    succeeds(["task_4/local_data_split.py", "--seed", 5], kit=student_kit)
    succeeds(["task_4/numpy/train_model.py", "--local"], kit=student_kit)
    pack = ["task_4/package.py", "task_4/numpy", "--output_dir", folder]
    warning = run(pack, kit=student_kit, cwd=student_kit).stderr
    assert "its model was trained with --local" in warning
    shutil.rmtree(student_kit)
    return folder / "submission_task_4.zip"


def test_weights_from_elsewhere_are_not_compared_with_the_files_of_this_kit(
    kit: Path, evaluate: Evaluate, tmp_path: Path, student_zip: Path
) -> None:
    """Weights from another kit get no doubt, although this kit has other data files than that kit.

    The record of training holds fingerprints of the data files, but those of the other kit.
    """
    folder = tmp_path / "unpacked"
    shutil.unpack_archive(student_zip, folder)
    for entry in (student_zip, folder):
        scored = evaluate(entry, "--phase", "public")
        assert has_no_doubt(scored)
        assert ["Weights trained by", "python task_4/numpy/train_model.py --local"] in scored.facts


def test_weights_from_elsewhere_are_not_compared_with_the_trainer_of_this_kit(
    kit: Path, evaluate: Evaluate, student_zip: Path
) -> None:
    change_code(kit / "task_4/numpy/train_model.py")
    assert has_no_doubt(evaluate(student_zip, "--phase", "public"))


def test_weights_from_elsewhere_may_share_a_file_with_the_weights_of_this_kit(
    kit: Path, evaluate: Evaluate, tmp_path: Path, student_zip: Path
) -> None:
    """A zip from another kit is scored even if one of its files of weights also exists in this kit.

    Two local splits can give small files of weights with the same content. In this test, the
    metadata of this kit change after its training, so the weights of this kit are refused. The
    weights in the zip must be scored nevertheless, although one of the files is the same.
    """
    package = kit / "task_4/numpy"
    from_zip = tmp_path / "unpacked"
    shutil.unpack_archive(student_zip, from_zip)
    # Copy one of the two files of weights from the zip into the package of this kit.
    shared_name = NUMPY_WEIGHTS[0]
    shutil.copy(from_zip / shared_name, package / shared_name)
    # Change the package's record as if its own training had written this file.
    record = weights.read_record(package)
    assert record is not None
    fingerprints = {**record.files, shared_name: provenance.fingerprint(package / shared_name)}
    changed_record = replace(record, files=fingerprints)
    (package / weights.TRAINING).write_bytes(changed_record.as_json())
    # Change the metadata from which the package in this kit was trained.
    drop_last_line(kit / METADATA)

    assert has_no_doubt(evaluate(student_zip, "--phase", "public"))


def test_weights_from_elsewhere_that_know_the_students_are_refused(
    kit: Path, tmp_path: Path, student_zip: Path
) -> None:
    message = fails([EVALUATE, student_zip, "--output_dir", tmp_path / "output"], kit=kit)
    assert message.startswith(f"{student_zip}: its model is trained on UserId ")


def test_an_interrupted_training_elsewhere_is_marked(
    evaluate: Evaluate, tmp_path: Path, student_zip: Path
) -> None:
    folder = tmp_path / "unpacked"
    shutil.unpack_archive(student_zip, folder)
    record = weights.read_record(folder)
    assert record is not None
    (folder / weights.TRAINING).write_bytes(replace(record, interrupted=True).as_json())
    assert evaluate(folder, "--phase", "public").result["doubts"] == ["fit interrupted"]


# ---- Further scripts -----------------------------------------------------------------------------


def test_the_quickstart_leaves_a_record_of_the_packages_own_script(
    kit: Path, evaluate: Evaluate
) -> None:
    """The record of training names the package's own script, although a copy was trained.

    The quickstart trains in a copy of the package, copies the weights with their record to the
    package, and may delete the copy. The record must then not name files of the copy.
    """
    package = kit / "task_4/numpy"
    copy = kit / "data/test_output/packages/numpy"
    weights.copy_package(package, copy)
    succeeds([copy / "train_model.py", "--local"], kit=kit)
    # `bring_back_weights` is the step of the quickstart that copies the weights and their record to
    # the package. Without the patch, it would look for the package in the real kit, because it runs
    # in this process and not in a script of the copied kit.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("common.layout.ROOT", kit)
        run_step.bring_back_weights(copy, package)
    shutil.rmtree(copy)

    record = weights.read_record(package)
    assert record is not None
    assert record.script == "task_4/numpy/train_model.py"
    # `made_from` holds the fingerprint of each data file, by its path relative to the package.
    answers = "../../data/test_input/train_task_4.csv"
    assert record.made_from[answers] == provenance.fingerprint(package / answers)
    assert has_no_doubt(evaluate(package))


@needs_blocks("task_4/item_response/train_model.py")
def test_the_report_on_a_student_says_that_the_model_may_have_seen_the_answers(
    kit: Path, tmp_path: Path
) -> None:
    """The report has the doubt MAY_HAVE_SEEN only if the weights have no record of training."""
    package = kit / "task_4/item_response"
    succeeds([package / "train_model.py", "--local"], kit=kit)
    student = pd.read_csv(kit / "data/test_input/valid_task_4.csv").UserId.min()
    command = ["task_4/student_report.py", "--student", student, "--output_dir", tmp_path]
    page = tmp_path / f"student_{student}.html"

    output = succeeds(command, kit=kit)
    assert MAY_HAVE_SEEN not in output
    assert MAY_HAVE_SEEN not in page.read_text()

    (package / weights.TRAINING).unlink()
    (package / weights.TRAINED_STUDENTS).unlink()
    output = succeeds(command, kit=kit)
    doubt = f"{MAY_HAVE_SEEN}: no record of training names model_task_4_item_response.npz"
    assert f"note: {doubt}\n" in output
    assert ["Doubt", doubt] in read_page(page.read_text()).tables[0].rows


def test_a_list_of_training_students_counts_without_a_record_of_training(
    kit: Path, tmp_path: Path
) -> None:
    """A package is refused if its list of training students names a student of the local split.

    A user's training script may save this list beside the weights, but leave no record of training.
    To imitate such a script, the test deletes the record.
    """
    package = kit / "task_4/numpy"
    examined = pd.read_csv(kit / "data/test_input/valid_task_4.csv").UserId.unique()
    np.save(package / weights.TRAINED_STUDENTS, examined[:1])
    (package / weights.TRAINING).unlink()
    message = fails([EVALUATE, package, "--output_dir", tmp_path / "output"], kit=kit)
    assert f"its model is trained on UserId {examined[0]} of " in message
