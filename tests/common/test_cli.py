"""Paths of a sample model: the metadata that belong to its training answers."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from common import cli, layout
from common.errors import InputError

Paths = Callable[..., cli.SampleModelPaths]


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """Parse flags in an empty kit."""
    kit = tmp_path / "kit"
    for name, folder, file in (
        ("TRAIN_DIR", "data/train_data", layout.TRAIN_TASK_1_2),
        ("TEMPLATE_DIR", "submission_templates", layout.TEMPLATE_TASK_1_2),
        ("TEST_INPUT_DIR", "data/test_input", layout.TRAIN_TASK_1_2),
    ):
        (kit / folder).mkdir(parents=True)
        (kit / folder / file).touch()
        monkeypatch.setattr(layout, name, kit / folder)
    (kit / "data/test_input" / layout.LOCAL_TEMPLATE_TASK_1_2).touch()
    monkeypatch.setattr(layout, "METADATA_DIR", kit / "data/metadata")
    # What a local split was made from is not at issue here.
    monkeypatch.setattr(cli.provenance, "require_current", lambda _: None)

    def parse(*flags: object, reads_metadata: bool = True) -> cli.SampleModelPaths:
        monkeypatch.setattr(sys, "argv", ["model.py", *map(str, flags)])
        parser = cli.sample_model_parser("A model.", 1, reads_metadata=reads_metadata)
        return cli.sample_model_paths(parser.parse_args(), 1)

    return parse


def test_default_answers_have_the_default_metadata(paths: Paths, tmp_path: Path) -> None:
    # Also where it does not exist: its files are then not known.
    assert paths().metadata == paths("--local").metadata == tmp_path / "kit/data/metadata"
    named = paths("--input_dir", tmp_path / "kit/data/test_input/../train_data")
    assert named.metadata == tmp_path / "kit/data/metadata"


def test_other_answers_have_none_unless_they_are_named(paths: Paths, tmp_path: Path) -> None:
    (tmp_path / layout.TRAIN_TASK_1_2).touch()
    other = ("--input_dir", tmp_path)
    assert paths(*other).metadata is None
    assert paths(*other, "--metadata_dir", tmp_path).metadata == tmp_path
    assert paths("--local", "--metadata_dir", tmp_path).metadata == tmp_path


def test_a_folder_that_is_named_must_be_there(paths: Paths, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none: not found, expected a folder of metadata$"):
        paths("--metadata_dir", tmp_path / "none")


def test_a_model_that_reads_no_metadata_gets_none(paths: Paths, tmp_path: Path) -> None:
    assert paths(reads_metadata=False).metadata is None
    with pytest.raises(SystemExit):
        paths("--metadata_dir", tmp_path, reads_metadata=False)


def test_what_cannot_be_written_is_reported_before_any_work(paths: Paths, tmp_path: Path) -> None:
    file, templates = tmp_path / "file", tmp_path / "kit/submission_templates"
    file.touch()
    for flags, expected in (
        ("--output_file mine.zip", r"mine\.zip: is the name of the CSV, expected one that ends"),
        ("--output_file mine.json", r"mine\.json: is the name of the CSV"),
        (f"--probabilities {tmp_path}", "is a folder, expected the name of a file to write$"),
        (f"--probabilities {file}/p", "file: is no folder, expected one to write p to$"),
        (f"--output_dir {file}/below", "file: is no folder"),
        ("--output_dir . --output_file a.csv --probabilities a.csv", "expected another name$"),
        (f"--output_dir {templates} --output_file {layout.TEMPLATE_TASK_1_2}", "is read, or"),
    ):
        with pytest.raises(InputError, match=expected):
            paths(*flags.split())
    assert paths("--output_dir", tmp_path / "new/folder").output.parent == tmp_path / "new/folder"
