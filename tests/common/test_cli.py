"""Paths of a sample model: the metadata that belong to its training answers, what it writes."""

from collections.abc import Callable
from pathlib import Path

from common import layout

import pytest
from conftest import Run

Show = Callable[..., str]
MODEL = """
from common import cli
def main():
    parser = cli.sample_model_parser("A model.", 1)
    if {reads_metadata}:
        cli.add_metadata_flag(parser)
    paths = cli.sample_model_paths(parser.parse_args(), 1)
    print(paths.metadata, paths.output)
cli.run(main)
"""


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """Make a kit whose files are empty, with a model that shows its paths."""
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
    (kit / "model.py").write_text(MODEL.format(reads_metadata=True))
    return kit


LOCAL = "data/test_output/test_submission_task_1.csv"
PATHS = [
    # Also where it does not exist: its files are then not known.
    ("", "data/metadata", "submissions/submission_task_1.csv"),
    ("--local", "data/metadata", LOCAL),
    ("--input_dir data/test_input/../train_data --output_dir new/a", "data/metadata",
     "new/a/submission_task_1.csv"),
    # Other answers have none unless they are named.
    ("--input_dir elsewhere", None, "submissions/submission_task_1.csv"),
    ("--input_dir elsewhere --metadata_dir elsewhere --output_file a.csv", "elsewhere",
     "submissions/a.csv"),
    ("--local --metadata_dir elsewhere", "elsewhere", LOCAL),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "metadata", "output"), PATHS)
def test_paths(kit: Path, succeeds: Show, flags: str, metadata: str | None, output: str) -> None:
    words = succeeds(["model.py", *flags.split()], kit=kit, cwd=kit).split()
    assert [kit / word for word in words] == [kit / str(metadata), kit / output]


def test_a_model_that_reads_no_metadata_gets_none(kit: Path, run: Run, succeeds: Show) -> None:
    (kit / "model.py").write_text(MODEL.format(reads_metadata=False))
    assert succeeds(["model.py"], kit=kit).startswith("None ")
    done = run(["model.py", "--metadata_dir", kit], kit=kit)
    assert "unrecognized arguments: --metadata_dir" in done.stderr


FAULTS = [
    ("--metadata_dir none", "none: not found, expected a folder of metadata"),
    ("--output_file mine.zip", "mine.zip: is the name of the CSV, expected one that ends"),
    ("--probabilities data", "is a folder, expected the name of a file to write"),
    ("--probabilities model.py/p", "model.py: is no folder, expected one to write p to"),
    ("--output_dir model.py/below", "model.py: is no folder"),
    ("--output_dir . --output_file a.csv --probabilities a.csv", "expected another name"),
    ("--output_dir data/test_input --output_file train_task_1_2.csv --local", "is read, or"),
]


@pytest.mark.parametrize(("flags", "expected"), FAULTS)
def test_what_cannot_be_is_reported_before_any_work(
    kit: Path, fails: Show, flags: str, expected: str
) -> None:
    assert expected in fails(["model.py", *flags.split()], kit=kit, cwd=kit)
