"""What the related challenges share: samples marked simulated, and files without a header."""

from collections.abc import Callable
from pathlib import Path

import pytest

from common import challenge, io, layout, origins, provenance
from common.errors import InputError
from common.schema import Column

Write = Callable[[str, str | bytes], Path]
GENERATOR = "related_challenges/cloze/generate_sample.py"
COLUMNS = (Column("user"), Column("item"))


def test_sample_is_marked_repeatable_and_replaced(
    run: Callable[..., object], tmp_path: Path
) -> None:
    content = {}
    for name, seed in (("a", 0), ("b", 0), ("b", 1)):
        run([GENERATOR, "--output_dir", tmp_path / name, "--seed", seed])
        simulated = provenance.simulated_files(tmp_path / name)
        paths = sorted((tmp_path / name / "train_data").iterdir())
        content[name, seed] = [path.read_bytes() for path in paths]
        assert simulated == paths and len(paths) == 2
    assert content["a", 0] == content["b", 0]
    assert content["a", 0] != content["b", 1]
    assert not list(tmp_path.rglob("*.partial"))


def test_sample_never_overwrites_real_files(write: Write, fails: Callable[..., str]) -> None:
    path = write("train_data/KCT_train_public.txt", "real")
    line = fails([GENERATOR, "--output_dir", path.parent.parent])
    assert "is not a simulated file and would be overwritten" in line
    assert path.read_text() == "real"
    assert provenance.simulated_files(path.parent.parent) == []


def test_reads_a_file_without_a_header(write: Write) -> None:
    source = io.file_source(write("a.csv", "\ufeff1,2\r\n3,4"), ("user", "item"))
    data = io.to_arrays(io.read_table(source, COLUMNS), COLUMNS)
    assert data["user"].tolist() == [1, 3]
    assert data["item"].tolist() == [2, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,2\n", "column 'user': row 1 is 'x'"),
        ("1,2\n3,\n", "column 'item': row 2 is empty"),
        ("1,2\n3\n", "row 2 has 1 columns, expected 2"),
        ("1\n3\n", "row 1 has 1 columns, expected 2"),
        ("", "is empty, expected rows"),
    ],
)
def test_rows_without_a_header_count_from_1(write: Write, content: str, message: str) -> None:
    source = io.file_source(write("a.csv", content), ("user", "item"))
    with pytest.raises(InputError, match=message):
        io.read_table(source, COLUMNS)


def test_writes_a_file_without_a_header(tmp_path: Path) -> None:
    io.write_csv(tmp_path / "a.csv", {"user": [1, 3], "item": [2, 4]}, header=False)
    assert (tmp_path / "a.csv").read_text() == "1,2\n3,4\n"


@pytest.mark.parametrize(
    ("folder", "hint"),
    [
        ("train_data", "`python related_challenges/cloze/generate_sample.py` simulates"),
        ("test_input", "`python related_challenges/cloze/local_data_split.py` makes it"),
        ("test_output", "every sample model in related_challenges/cloze makes one"),
        ("elsewhere", ""),
    ],
)
def test_missing_files_name_the_command(folder: str, hint: str) -> None:
    found = layout.where_to_get(layout.RELATED_DIR / "cloze/data" / folder / "file.csv")
    assert found.startswith(hint)
    assert bool(found) == bool(hint)


def test_a_submission_tells_how_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["related_challenges/cloze/my_idea.py", "--seed", "2"])
    path = tmp_path / "submission.csv"
    challenge.write_submission(path, {"id": ["a"], "label": ["b"]})
    origin = origins.read_origin(path)
    assert origin is not None
    assert (origin.model, origin.seed, origin.split) == ("my_idea", 2, "")
    folds_file = tmp_path / "folds.csv"
    folds_file.write_text("id,fold\na,0\nb,1\n")
    challenge.write_submission(path, {"id": ["a"]}, header=False, folds_file=folds_file)
    assert path.read_text() == "a\n"
    origin = origins.read_origin(path)
    assert origin is not None and origin.split.startswith("2 folds ")
    assert not list(tmp_path.glob(".*"))
