"""Cross-validation runs an entry's script on every fold and leaves one line of the record."""

import re
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from common import layout, source_code
from common.adaptive.entry_files import ENTRY_FILE
from common.evaluation import outcomes
from common.evaluation.record import Result
from common.provenance import Provenance
from tools import cross_validate
from tools.cross_validate import EntryCode, FoldRun
from tools.results import read_results

import pandas as pd
import pytest
from conftest import fails, succeeds
from recorded import made_by
from run_scripts import run_process

VALIDATE = ["-m", "tools.cross_validate"]
TRAIN = "data/train_data/train_task_1_2.csv"
RECORD = "data/test_output/results.jsonl"
# The code of an entry that always predicts one value. The entry starts quickly, because it imports
# nothing of the kit. It checks that its training answers hold none of the answers to be predicted.
# The text is a template for `str.format`, so {{ stands for {.
ENTRY = """
import argparse, csv, json, sys
from hashlib import sha256
from pathlib import Path

def build_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--metadata_dir")
    return parser

def read_pairs(path):
    return [row["UserId"] + "," + row["QuestionId"] for row in csv.DictReader(path.open())]

def main():
    flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    folder = Path(flags["--output_dir"])
    known = read_pairs(folder / flags["--train_data"])
    asked = read_pairs(folder / flags["--submission_template_file"])
    assert known and asked and not {{*known}} & {{*asked}}
    assert flags.get("--metadata_dir") == {metadata!r}
    assert flags.get("--dimensions") == {dimensions!r}
    lines = ["UserId,QuestionId,{column}", *(pair + ",{value}" for pair in asked)]
    text = "\\n".join(lines).encode()
    (folder / "submission_task_{task}.csv").write_bytes(text)
    files = dict(it=dict(bytes=len(text), sha256=sha256(text).hexdigest()))
    origin = dict(script="x.py", options=dict(), seconds=3, memory=1000, files=files)
    (folder / "submission_task_{task}.json").write_text(json.dumps(origin))

if __name__ == "__main__":
    main()
"""


def constant_entry(
    kit: Path, *, task: int = 1, value: int = 1, dimensions: str | None = None
) -> str:
    """Return the code of an entry that always predicts `value`, from the template `ENTRY`.

    The entry checks its own flags. If the kit has metadata, it must get the flag --metadata_dir
    with their folder. If `dimensions` is given, it must get the flag --dimensions with this value;
    otherwise it must not get this flag.
    """
    metadata = kit / "data/metadata"
    return ENTRY.format(
        task=task,
        value=value,
        # The entry must get the flags --dimensions and --metadata_dir with these values. None means
        # that it must not get the flag.
        dimensions=dimensions,
        metadata=str(metadata) if metadata.exists() else None,
        column={1: "IsCorrect", 2: "AnswerValue"}[task],
    )


def files_of(kit: Path) -> set[str]:
    """Return the files in a kit, as paths in the kit, without caches and files of outcomes."""
    files = set()
    for path in kit.rglob("*"):
        is_left_out = bool({"__pycache__", "outcomes"} & {*path.parts})
        if path.is_file() and not is_left_out:
            files.add(str(path.relative_to(kit)))
    return files


@dataclass(frozen=True)
class Case:
    """A cross-validation, and the fields that its line in the record of scores must have."""

    # The arguments of tools/cross_validate.py. {data} stands for the kit's folder of data.
    words: str
    # The fields `model` and `rules` that the line must have.
    model: str
    rules: str
    # The command that made the predictions, according to the line, without the word `python`.
    command: str
    seed: int | None = None


# Entries that the fixture `validated` writes. Each entry predicts the same outcome for all answers:
# right (1), wrong (0), or the second option (2).
RIGHT = "task_1/always_1.py"
WRONG = "task_1/always_0.py"
SECOND_OPTION = "task_2/always_2.py"
CASES = [
    Case(RIGHT, "always_1", "5 folds, seed 0", RIGHT),
    Case(WRONG, "always_0", "5 folds, seed 0", WRONG),
    Case(
        f"{SECOND_OPTION} --folds 2 --repeats 2 --seed 3 -- --dimensions 2 --seed 5",
        "always_2",
        "2 folds, 2 repeats, seed 3",
        f"{SECOND_OPTION} --dimensions 2 --seed 5",
        seed=5,
    ),
    Case(
        f"{RIGHT} --folds 2 --metadata_dir {{data}}/metadata",
        "always_1",
        "2 folds, seed 0, metadata of data/metadata",
        RIGHT,
    ),
    Case(
        "task_4/numpy --folds 2 --targets_queryable",
        "numpy",
        "targets may be asked, unobserved = -1, 2 folds, seed 0",
        "task_4/numpy/train_model.py",
    ),
]


@dataclass(frozen=True)
class Validated:
    """A kit in which the cross-validations in `CASES` were run, one after the other."""

    kit: Path
    # The output of each cross-validation.
    outputs: list[str]
    # The lines of the file results.jsonl, in the order of `CASES`. Each cross-validation adds a
    # line with its score.
    results: list[Result]
    # Files that the cross-validations have left in the kit.
    new_files: set[str]
    # Files that the cross-validations have left in the folder for temporary files.
    temporary_files: list[Path]


@pytest.fixture(scope="module")
def validated(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Validated:
    """Cross-validate entries in a copy of the kit, with the arguments of all `CASES`.

    The entries `RIGHT` and `WRONG` of task 1 and `SECOND_OPTION` of task 2 always predict the same
    value.
    """
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("validated") / "kit"))
    (kit / RIGHT).write_text(constant_entry(kit, value=1))
    (kit / WRONG).write_text(constant_entry(kit, value=0))
    # This entry expects the flag --dimensions 2, which its case in `CASES` passes.
    second_option = constant_entry(kit, task=2, value=2, dimensions="2")
    (kit / SECOND_OPTION).write_text(second_option)
    files_before = files_of(kit)
    # The tool makes its temporary files in this folder. Tests look at what is left there.
    temporary = tmp_path_factory.mktemp("temporary")
    outputs = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        for case in CASES:
            arguments = case.words.format(data=kit / "data").split()
            outputs.append(succeeds([*VALIDATE, *arguments], kit=kit, cwd=kit))
    return Validated(
        kit=kit,
        outputs=outputs,
        results=read_results(kit / RECORD),
        new_files=files_of(kit) - files_before,
        temporary_files=list(temporary.iterdir()),
    )


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_cross_validation_is_a_line_of_the_record(validated: Validated, number: int) -> None:
    case = CASES[number]
    result = validated.results[number]
    assert result.phase == "cross-validation"
    assert result.origin == "simulated"
    assert result.model == case.model
    assert result.rules == case.rules
    assert made_by(result).removeprefix("python ") == case.command
    assert result.seed == case.seed
    words = case.words.format(data=validated.kit / "data")
    assert result.command == f"python -m tools.cross_validate {words}"


@pytest.mark.parametrize("number", range(3))
def test_the_record_holds_the_cost_that_the_entry_has_recorded(
    validated: Validated, number: int
) -> None:
    """Each line has the time and the memory that the entry has noted: 3 seconds and 1,000 bytes.

    The first three cases have entries that note these costs.
    """
    result = validated.results[number]
    assert result.seconds == 3
    assert result.memory == 1000


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_score_is_the_mean_over_the_folds(validated: Validated, number: int) -> None:
    result = validated.results[number]
    output = validated.outputs[number]
    scores = list(result.parts.values())
    assert result.score == pytest.approx(statistics.fmean(scores))
    assert f"score {result.score:.4f} ± {statistics.stdev(scores):.4f}" in output
    for part, score in result.parts.items():
        assert f"{part}: {score:.4f}\n" in output


def test_each_repeat_has_other_folds(validated: Validated) -> None:
    assert list(validated.results[0].parts) == [f"fold {number}" for number in range(1, 6)]
    parts = validated.results[2].parts
    assert list(parts) == [
        "repeat 1, fold 1",
        "repeat 1, fold 2",
        "repeat 2, fold 1",
        "repeat 2, fold 2",
    ]
    assert len({*parts.values()}) == 4


def test_only_the_record_is_left_behind(validated: Validated) -> None:
    assert validated.temporary_files == []
    assert validated.new_files == {RECORD}


@pytest.mark.parametrize(
    ("number", "predicted"),
    [
        # `number` is the position of the case in `CASES`, and `predicted` is what its entry always
        # predicts.
        pytest.param(0, 1, id="right"),
        pytest.param(1, 0, id="wrong"),
    ],
)
def test_every_answer_is_predicted_once(validated: Validated, number: int, predicted: int) -> None:
    """As many predictions are right as there are answers with the predicted outcome."""
    answers = pd.read_csv(validated.kit / TRAIN)
    result = validated.results[number]
    kept = outcomes.read(validated.kit / f"data/test_output/outcomes/{result.outcomes}.npz")
    assert kept.distinct
    assert len(kept.right) == len(answers)
    assert kept.right.sum() == (answers["IsCorrect"] == predicted).sum()


def test_two_entries_that_had_the_same_folds_can_be_compared(validated: Validated) -> None:
    compared = succeeds(["-m", "tools.compare", "2", "1"], kit=validated.kit)
    assert "task 1, cross-validation, 5 folds, seed 0, simulated" in compared
    assert "B is better by" in compared


@pytest.fixture(scope="module")
def faulty_kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with entries that each fail in a different way; tests do not change the kit."""
    kit = tmp_path_factory.mktemp("faulty") / "kit"
    shutil.copytree(simulated_kit, kit, ignore=shutil.ignore_patterns("metadata"))
    # This entry writes no submission.
    (kit / "task_1/my_silence.py").touch()
    # This entry predicts only the first of the pairs that it is asked for. The code of a complete
    # entry has the loop "for pair in asked".
    complete = constant_entry(kit)
    with_gap = complete.replace("for pair in asked)", "for pair in asked[:1])")
    (kit / "task_1/my_gap.py").write_text(with_gap)
    # This entry fails without a message.
    (kit / "task_1/my_fault.py").write_text("raise SystemExit(7)\n")
    # This entry prints much text, and then fails with a message.
    (kit / "task_4/my_fault").mkdir()
    long_output = "print('x\\n' * 3_000_000)\nraise SystemExit('error: the end')\n"
    (kit / "task_4/my_fault/train_model.py").write_text(long_output)
    # This entry breaks the rules: it asks every student question -1, which does not exist. To do
    # so, it multiplies its array of chosen questions by 0 and subtracts 1.
    shutil.copytree(kit / "task_4/numpy", kit / "task_4/my_breach")
    entry = kit / "task_4/my_breach" / ENTRY_FILE
    selection = "self.model.select(can_query)"
    entry.write_text(entry.read_text().replace(selection, f"{selection} * 0 - 1"))
    return kit


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("task_1/my_fault.py", "^task_1/my_fault.py: ended with exit code 7 on fold 1: it printed"),
        ("task_1/my_silence.py", "has not written submission_task_1.csv on fold 1"),
        ("task_1/my_gap.py", r"my_gap.py: fold 1: submission_task_1.csv: \d+ of \d+ pairs are mi"),
        ("task_1/sample_model_majority.py -- --nonsense 1", "unrecognized arguments: --nons"),
        (
            "task_1/my_gap.py -- --dimensions 2 --train_data=train_task_1_2.csv",
            "^'--train_data=train_task_1_2.csv' after --: says w",
        ),
        ("task_1/my_gap.py -- --dimensions 2 --train", "^'--train' after --: says w"),
        ("task_1/my_gap.py -- --dimensions 2 --local", "^'--local' after --: says w"),
        ("task_4/my_fault -- --more_train_data valid_task_4.csv", "^'--more_train_data' after --"),
        ("task_1/my_gap.py --metadata_dir gone", "gone: not found, expected a folder of metadata"),
        ("task_1/my_fault.py --unobserved 0", "expected no flags of task 4"),
        ("task_1", "task_1/train_model.py: file not found"),
        ("task_3/sample_model_random.py", "expected a script in task_1/ or task_2/"),
        ("task_4/numpy --folds 500000", "--folds is 500000, expected a whole number"),
        ("task_4/my_breach", "my_breach: fold 1: IsTarget, round 1, select_questions: student 0"),
        ("task_4/my_fault", "^task_4/my_fault/train_model.py: ended with .* on fold 1: the end$"),
    ],
)
def test_entries_and_flags_that_cannot_be_cross_validated_are_refused(
    faulty_kit: Path, words: str, expected: str
) -> None:
    line = fails([*VALIDATE, *words.split()], kit=faulty_kit, cwd=faulty_kit)
    assert re.search(expected, line)
    assert not (faulty_kit / "data/test_output").exists()


# ---- Doubts --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def doubtful_kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit to which tests add entries; the scores of these entries are doubtful."""
    return Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("doubtful") / "kit"))


def write_entry(kit: Path, folder: Path, name: str, *edits: tuple[str, str]) -> Path:
    """Write an entry of task 1 that always predicts 1; return its path.

    An edit (old, new) replaces the text `old` in the code of the entry (`ENTRY`) by `new`.
    """
    text = constant_entry(kit)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


# The line of `ENTRY` with which the main function begins.
BEGIN_OF_MAIN = "def main():\n"


def begin_main_with(lines: str) -> tuple[str, str]:
    """Return the edit of `ENTRY` that adds lines of code at the beginning of the main function."""
    return BEGIN_OF_MAIN, f"{BEGIN_OF_MAIN}{lines}"


def add_to_record(fields: str) -> tuple[str, str]:
    """Return the edit of `ENTRY` that adds fields to the record that the entry writes.

    The record is the .json beside the entry's submission. `fields` are written as arguments of a
    call.
    """
    end_of_record = "files=files)"
    return end_of_record, f"files=files, {fields})"


# A field of the record that an entry writes: the files from which it has made its submission.
LEARNED = "made_from={'train.csv': {}, 'template.csv': {}}"
# Reasons to doubt a score, in the words of the record of scores.
MAY_HAVE_SEEN = "may have seen these answers"
CHANGED = "its code changed while it ran"


@pytest.mark.parametrize(
    ("record", "doubts"),
    [
        pytest.param(f"{LEARNED}, code='abc'", {}, id="nothing_to_doubt"),
        pytest.param(
            "made_from={'template.csv': {}}",
            {MAY_HAVE_SEEN: f"{MAY_HAVE_SEEN}: no record says what it has learned from"},
            id="learned_from_nothing_known",
        ),
        pytest.param(
            f"{LEARNED}, unknown_sources=True",
            {MAY_HAVE_SEEN: f"{MAY_HAVE_SEEN}: no record says what it has learned from"},
            id="unknown_sources",
        ),
        pytest.param(
            f"{LEARNED}, interrupted=True, code_changed=True",
            {
                CHANGED: "task_1/doubtful.py or a file that it imports changed while it ran: run "
                "it again to score the code as it is",
                "fit interrupted": "the fit was interrupted: it has learned less than its options "
                "say",
            },
            id="interrupted_and_changed",
        ),
    ],
)
def test_what_the_records_of_the_folds_say_is_noted_once(
    doubtful_kit: Path, record: str, doubts: dict[str, str]
) -> None:
    kit = doubtful_kit
    entry = write_entry(kit, kit / "task_1", "doubtful.py", add_to_record(record))
    output = succeeds([*VALIDATE, entry, "--folds", 2], kit=kit, cwd=kit)
    notes = [line for line in output.splitlines() if line.startswith("note: ")]
    assert notes == [f"note: {sentence}" for sentence in doubts.values()]
    assert read_results(kit / RECORD)[-1].doubts == list(doubts)


def test_an_entry_that_writes_no_record_may_have_seen_the_answers(doubtful_kit: Path) -> None:
    kit = doubtful_kit
    entry = write_entry(kit, kit / "task_1", "silent.py", (".json", ".txt"))
    output = succeeds([*VALIDATE, entry, "--folds", 2], kit=kit, cwd=kit)
    assert output.count(f"note: {MAY_HAVE_SEEN}") == 1
    assert read_results(kit / RECORD)[-1].doubts == [MAY_HAVE_SEEN]


@pytest.mark.parametrize("is_edited", [True, False])
def test_an_entry_outside_the_kit_whose_code_changes_meanwhile_is_doubted(
    doubtful_kit: Path, tmp_path: Path, is_edited: bool
) -> None:
    """An edit of an entry outside the kit changes what later folds run, so its score is doubtful.

    Cross-validation copies only entries in the kit. If `is_edited`, the entry adds a comment to its
    own code when it runs. The record of its submission names the files that it has learned from
    (`LEARNED`). Without this record, the score would be doubtful for another reason.
    """
    kit = doubtful_kit
    edits = [add_to_record(LEARNED)]
    if is_edited:
        edit_itself = "    Path(__file__).open('a').write('# An edit.\\n')\n"
        edits.append(begin_main_with(edit_itself))
    entry = write_entry(kit, tmp_path / "task_1", "outside.py", *edits)
    output = succeeds([*VALIDATE, entry, "--folds", 2], kit=kit, cwd=kit)
    is_noted = f"note: {entry} or a file that it imports changed while it ran" in output
    assert is_noted == is_edited
    assert read_results(kit / RECORD)[-1].doubts == ([CHANGED] if is_edited else [])


@pytest.mark.parametrize(("codes", "is_doubted"), [(["a", "a"], False), (["a", "b"], True)])
def test_a_score_is_doubted_if_the_code_of_a_package_differs_between_folds(
    tmp_path: Path, codes: list[str], is_doubted: bool
) -> None:
    """An entry of task 4 is a package with a trainer, train_model.py, and code of its model.

    Cross-validation trains the package in each fold. The record of a fold has the fingerprint of
    the whole code of the package, here an element of `codes`. If the fingerprints differ, the
    package was edited between the folds, and the score is marked as doubtful (`CHANGED`). The
    trainer itself stays the same in this test.
    """
    trainer = tmp_path / "train_model.py"
    trainer.touch()
    trainer_before = source_code.fingerprint(trainer)
    runs = []
    for code in codes:
        record = Provenance(script=str(trainer), options={}, seconds=1, code=code)
        # The predictions do not matter here.
        runs.append(FoldRun(title="fold", predicted=pd.DataFrame(), training=record))
    # The package lies outside the kit. Cross-validation copies only entries in the kit, so there is
    # no copy: every fold runs the trainer itself.
    entry_code = EntryCode(script=trainer, frozen_script=trainer, kit_copy=None)
    doubts = cross_validate.doubt_changes(entry_code, trainer_before, runs)
    assert [doubt.mark for doubt in doubts] == ([CHANGED] if is_doubted else [])


# ---- The frozen copy -----------------------------------------------------------------------------


def test_the_frozen_copy_has_the_metadata_but_no_answers(doubtful_kit: Path) -> None:
    """Cross-validation runs an entry in a temporary copy of the kit's code, the frozen copy.

    So edits of the kit do not change what the folds run. The name of the copy's folder begins with
    "frozen_". The copy has a link to the kit's metadata, but no folder of training answers, and no
    compiled code.

    The entry of this test checks these facts by assertions before its `main`. If an assertion
    failed, the cross-validation would fail too.
    """
    kit = doubtful_kit
    checks_and_main = (
        "from common import layout\n\n"
        "assert layout.ROOT == Path(__file__).parents[1] and 'frozen_' in str(layout.ROOT)\n"
        "assert (layout.METADATA_DIR / layout.QUESTION_METADATA_TASK_1_2).is_file()\n"
        "assert not layout.TRAIN_DIR.exists()\n"
        "assert not [*layout.ROOT.rglob('__pycache__')]\n\n"
        f"{BEGIN_OF_MAIN}"
    )
    entry = write_entry(kit, kit / "task_1", "looks.py", (BEGIN_OF_MAIN, checks_and_main))
    assert "fold 2: " in succeeds([*VALIDATE, entry, "--folds", 2], kit=kit, cwd=kit)
    # The copy has a link to the folder of metadata. Removing the copy must not remove this folder.
    assert (kit / "data/metadata" / layout.QUESTION_METADATA_TASK_1_2).is_file()


def test_all_folds_run_the_code_as_it_was_at_the_start(doubtful_kit: Path) -> None:
    """All folds run the code of an entry as it was at the start.

    This entry edits its own file in the kit, as a user might while the folds run. The new text, 1 /
    0, would raise an error if a fold ran it.
    """
    kit = doubtful_kit
    file_in_kit = kit / "task_1/frozen.py"
    edit_it = f"    Path({str(file_in_kit)!r}).write_text('1 / 0')\n"
    entry = write_entry(kit, file_in_kit.parent, file_in_kit.name, begin_main_with(edit_it))
    code_at_start = source_code.fingerprint(entry)
    output = succeeds([*VALIDATE, entry, "--folds", 3], kit=kit, cwd=kit)
    assert file_in_kit.read_text() == "1 / 0"
    assert "fold 3: " in output
    assert read_results(kit / RECORD)[-1].code == code_at_start


def test_without_symlinks_a_folder_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("a required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata/one.csv").write_text("1")
    cross_validate.link_folder(tmp_path / "link", tmp_path / "metadata")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link/one.csv").read_text() == "1"


def test_notes_name_the_entry_in_the_kit(doubtful_kit: Path) -> None:
    """A note to the user names the entry task_1/plain.py, not the copy that is run.

    Cross-validation runs a temporary copy, which lies in a folder "frozen_…". The note says that
    the entry has no function `build_parser`.
    """
    kit = doubtful_kit
    rename_build_parser = ("def build_parser", "def parser")
    # An entry without `build_parser` gets no folder of metadata. The code of the entry checks which
    # folder it gets. So replace the folder in this check by None.
    metadata_literal = repr(str(kit / "data/metadata"))
    expect_no_metadata = (metadata_literal, "None")
    edits = [rename_build_parser, expect_no_metadata]
    entry = write_entry(kit, kit / "task_1", "plain.py", *edits)
    output = succeeds([*VALIDATE, entry, "--folds", 2], kit=kit, cwd=kit)
    assert output.count("note: task_1/plain.py has no function build_parser(), which") == 1
    assert "frozen_" not in output


@pytest.mark.parametrize(
    ("last_line", "expected"),
    [
        ("str(ROOT / 'data/gone.csv')", ": data/gone.csv$"),
        ("f'in {ROOT}'", ": in {kit}$"),
        # The tool first removes the path of the copy's folder, and only then shortens a long
        # message.
        ("'x' * 190 + f' {Path(__file__)}'", ": x{190} task_1/f…$"),
    ],
)
def test_messages_name_paths_in_the_kit(doubtful_kit: Path, last_line: str, expected: str) -> None:
    kit = doubtful_kit
    fail = f"    ROOT = Path(__file__).parents[1]\n    sys.exit({last_line})\n"
    entry = write_entry(kit, kit / "task_1", "fails.py", begin_main_with(fail))
    line = fails([*VALIDATE, entry, "--folds", 2], kit=kit, cwd=kit)
    assert "frozen_" not in line
    assert re.search(expected.replace("{kit}", re.escape(str(kit))), line)


def test_a_fault_of_build_parser_names_the_entry_in_the_kit(doubtful_kit: Path) -> None:
    kit = doubtful_kit
    edit = ("parser = argparse.ArgumentParser()", "raise ValueError(__file__)")
    entry = write_entry(kit, kit / "task_1", "no_flags.py", edit)
    line = fails([*VALIDATE, entry, "--folds", 2], kit=kit, cwd=kit)
    assert " task_1/no_flags.py: ended with exit code 1 on asking for its flags: " in line
    assert line.endswith("ValueError: task_1/no_flags.py")


def test_a_package_finds_the_kit_in_a_plain_clone(split_kit: Path, tmp_path: Path) -> None:
    """The trainer runs in a temporary folder, with no installed kit and no PYTHONPATH."""
    kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    command = [*VALIDATE, "task_4/numpy", "--folds", "2"]
    done = run_process(command, kit=kit, cwd=kit, environment={"PYTHONPATH": ""})
    assert (done.returncode, done.stderr) == (0, "")
