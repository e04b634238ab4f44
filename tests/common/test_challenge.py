"""What the related challenges share: samples marked simulated, submissions with their origin."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run

from common import challenge, origins, provenance

GENERATOR = "related_challenges/cloze/generate_sample.py"


def test_sample_is_marked_repeatable_and_replaced(run: Run, tmp_path: Path) -> None:
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


def test_sample_never_overwrites_real_files(
    write: Callable[[str, str], Path], fails: Callable[..., str]
) -> None:
    path = write("train_data/KCT_train_public.txt", "real")
    line = fails([GENERATOR, "--output_dir", path.parent.parent])
    assert "is not a simulated file and would be overwritten" in line
    assert path.read_text() == "real"
    assert provenance.simulated_files(path.parent.parent) == []


def test_a_submission_tells_how_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["related_challenges/cloze/my_idea.py", "--seed", "2"])
    path, folds_file = tmp_path / "submission.csv", tmp_path / "folds.csv"
    folds_file.write_text("id,fold\na,0\nb,1\n")
    challenge.write_submission(path, {"id": ["a"], "label": ["b"]})
    origin = origins.read_origin(path)
    assert origin is not None
    assert (origin.model, origin.seed, origin.split) == ("my_idea", 2, "")
    challenge.write_submission(path, {"id": ["a"]}, header=False, folds_file=folds_file)
    assert path.read_text() == "a\n"
    origin = origins.read_origin(path)
    assert origin is not None and origin.split.startswith("2 folds ")
    assert not list(tmp_path.glob(".*"))
