"""Paths of scripts: which metadata a sample model reads, and that no input is overwritten."""

import os
import shutil
from pathlib import Path

from common import cli, layout

import pytest
from conftest import fails, succeeds
from platforms import CAN_LINK, on_linux, on_unix, with_links

# A sample model that prints its paths.
MODEL = """
from common import cli, run_log, sample_models
def main():
    parser = sample_models.parser("A model.", 1)
    sample_models.add_metadata_flag(parser)
    run_log.add_log_flag(parser)
    options = parser.parse_args()
    paths = sample_models.paths(options, 1)
    run_log.open_log(options.log)
    print(paths.metadata, paths.output)
cli.run(main)
"""


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """Make a kit of empty data files and the script `model.py`.

    The script finds the paths of the metadata and of its output from the flags of its command, such
    as `--input_dir`, and prints the paths.

    The kit also holds three links: a symlink to the folder of training data, a symlink that leads
    to itself, and a hard link to a training file.
    """
    kit = tmp_path / "kit"
    for file in (
        f"data/train_data/{layout.TRAIN_TASK_1_2}",
        f"data/test_input/{layout.TRAIN_TASK_1_2}",
        f"data/test_input/{layout.LOCAL_TEMPLATE_TASK_1_2}",
        f"submission_templates/{layout.TEMPLATE_TASK_1_2}",
        f"elsewhere/{layout.TRAIN_TASK_1_2}",
    ):
        (kit / file).parent.mkdir(parents=True, exist_ok=True)
        (kit / file).touch()
    (kit / "model.py").write_text(MODEL)
    if CAN_LINK:
        (kit / "link").symlink_to(kit / "data/train_data")
        (kit / "circle").symlink_to("circle")
    (kit / "hard.csv").hardlink_to(kit / f"elsewhere/{layout.TRAIN_TASK_1_2}")
    return kit


LOCAL = "data/test_output/test_submission_task_1.csv"
# A case is the flags of the model, the folder of metadata that it reads, and the file that it
# writes.
PATHS = [
    # By default, the folder of metadata is data/metadata, whether it exists or not.
    ("", "data/metadata", "submissions/submission_task_1.csv"),
    ("--local", "data/metadata", LOCAL),
    (
        "--input_dir data/test_input/../train_data --output_dir new/a",
        "data/metadata",
        "new/a/submission_task_1.csv",
    ),
    # Answers in another folder have no metadata, unless a flag names them.
    ("--input_dir elsewhere", None, "submissions/submission_task_1.csv"),
    (
        "--input_dir elsewhere --metadata_dir elsewhere --output_file a.csv",
        "elsewhere",
        "submissions/a.csv",
    ),
    ("--local --metadata_dir elsewhere", "elsewhere", LOCAL),
]


@pytest.mark.parametrize(("flags", "metadata", "output"), PATHS)
def test_metadata_belong_to_the_training_answers_and_flags_name_the_output(
    kit: Path, flags: str, metadata: str | None, output: str
) -> None:
    printed_metadata, printed_output = succeeds(
        ["model.py", *flags.split()], kit=kit, cwd=kit
    ).split()
    # Without metadata, the model prints "None".
    assert kit / printed_metadata == kit / str(metadata)
    assert kit / printed_output == kit / output


# Flags that are refused, and a part of the error message.
FAULTS = [
    ("--metadata_dir no\x1bne", r"no\x1bne: not found, expected a folder of metadata"),
    ("--output_file mine.zip", "mine.zip: is the name of the CSV, expected one that ends"),
    ("--output_dir . --output_file a.csv --probabilities a.csv", "choose another name"),
    pytest.param(
        "--output_dir link --output_file train_task_1_2.csv",
        "is an input data file and would be",
        marks=with_links,
    ),
    ("--probabilities submission_templates/submission_task_1_2.csv", "is an input data file and"),
    (
        "--input_dir elsewhere --output_dir . --output_file hard.csv",
        "hard.csv: is an input or another",
    ),
    pytest.param(
        "--output_dir /proc/self --probabilities p",
        "/proc/self: cannot be written to (",
        marks=on_linux("/proc"),
    ),
    # The file "circle" is a link to itself. The message depends on the version of Python, so the
    # test looks for the name only.
    pytest.param("--input_dir circle --train_data a.csv", "circle", marks=with_links),
    ("--log data/train_data/train_task_1_2.csv", "is an input data file and would be"),
    ("--log elsewhere/train_task_1_2.csv --input_dir elsewhere", "is an input or another"),
    ("--log model.py", "model.py: holds something else than a log, expected another --log"),
]


@pytest.mark.parametrize(("flags", "expected"), FAULTS)
def test_wrong_paths_are_refused_before_any_work(kit: Path, flags: str, expected: str) -> None:
    assert expected in fails(["model.py", *flags.split()], kit=kit, cwd=kit)


TRAIN = "data/train_data/train_task_1_2.csv"
IS_DATA = "is an input data file and would be overwritten; choose another name"
# A command, its last argument, and a part of the message that refuses it.
OVERWRITING = [
    ("-m tools.plot_log fit.jsonl --output", TRAIN, IS_DATA),
    (
        "task_4/package.py task_4/numpy --output_dir data --output_file",
        TRAIN.removeprefix("data/"),
        IS_DATA,
    ),
    (
        "task_4/numpy/local_evaluation.py --probabilities",
        "data/test_input/valid_task_4.csv",
        IS_DATA,
    ),
    pytest.param(
        "hosting/make_bundle.py --output",
        "/dev/null",
        "is a pipe or a device",
        marks=on_unix("/dev/null"),
    ),
    (
        "task_1/local_evaluation.py --submission_dir data/test_output --submit_data",
        "scores_task_1.txt",
        "scores_task_1.txt: is an input or another output too and would be",
    ),
    ("-m tools.scoreboard --results", "{tmp}/scoreboard.html", "scoreboard.html: is an input or"),
    ("-m tools.plot_log", "{tmp}/scoreboard.html", "scoreboard.html: is an input or"),
]


def list_times(folder: Path) -> dict[Path, int]:
    """Return when each file of a folder was last written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize(("command", "file", "expected"), OVERWRITING)
def test_no_command_writes_over_what_it_reads_or_scores_on(
    scored_kit: Path, tmp_path: Path, command: str, file: str, expected: str
) -> None:
    (tmp_path / "scoreboard.html").touch()
    before = list_times(scored_kit / "data")
    words = [*command.split(), file.format(tmp=tmp_path)]
    assert expected in fails(words, kit=scored_kit, cwd=scored_kit)
    assert list_times(scored_kit / "data") == before


# A name with a byte that is not UTF-8 (ff), a sequence that makes a terminal write in red (1b 5b 33
# 31 6d), and a character that separates lines (e2 80 a8).
ODD = os.fsdecode(b"a\xff\x1b[31mb\xe2\x80\xa8")
# The second command reads a file that the first one writes.
ODD_COMMANDS = [
    "task_1/local_evaluation.py --submission_dir {tmp} --submit_data {odd}.csv --output_dir {out}",
    "-m tools.scoreboard --results {out}/results.jsonl",
    "task_1/sample_model_majority.py --local --output_dir {out} --output_file {odd}.csv",
]


@on_linux("file names that are not UTF-8")
def test_odd_names_are_shown_escaped(scored_kit: Path, tmp_path: Path) -> None:
    shutil.copyfile(scored_kit / "1_majority.csv", tmp_path / f"{ODD}.csv")
    for command in ODD_COMMANDS:
        words = [word.format(tmp=tmp_path, odd=ODD, out=tmp_path / ODD) for word in command.split()]
        printed = succeeds(words, kit=scored_kit, cwd=scored_kit)
        assert r"a\udcff\x1b[31mb\u2028" in printed, command
        assert printed.replace("\n", "").isprintable(), command
    # The scoreboard, which the second command writes, shows the name too.
    assert r"a\udcff" in (tmp_path / ODD / "scoreboard.html").read_text(encoding="utf-8")


def test_an_input_file_is_sought_in_its_folder_then_in_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    # If the file is in neither folder, the function returns its path in the given folder. The
    # message about the missing file then names this folder.
    assert cli.input_file(folder, "mine.csv") == folder / "mine.csv"
    Path("mine.csv").touch()
    assert cli.input_file(folder, "mine.csv") == Path("mine.csv")
    (folder / "mine.csv").touch()
    assert cli.input_file(folder, "mine.csv") == folder / "mine.csv"
