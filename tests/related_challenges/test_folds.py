"""Folds from a file: every example once, groups together, exactly the ids expected."""

from pathlib import Path

from common import io
from common.errors import InputError
from related_challenges import folds

import pytest


def test_folds_are_described_as_they_were_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags = f"--output_dir {tmp_path} --folds 3 --input_dir=x --by_question --seed 1 --train_data a"
    monkeypatch.setattr("sys.argv", ["split.py", *flags.split()])
    path, source = tmp_path / "folds.csv", tmp_path / "train.txt"
    source.write_text("x")
    table = {"id": ["01", "1", "b,c"], "fold": [2, 0, 1]}
    io.write({path: table}, record=path.with_suffix(".json"), made_from=[source])
    assert folds.describe_folds(path) == "3 folds --by_question --seed 1"
    assert folds.read_folds(path, ["b,c", "01", "1"]).tolist() == [1, 2, 0]
    source.write_text("y")
    with pytest.raises(InputError, match="was made from other data"):
        folds.read_folds(path, ["01", "1", "b,c"])
    path.with_suffix(".json").unlink()
    # The user's own: told apart by what they hold.
    assert folds.describe_folds(path).startswith("3 folds ")
    path.write_text("id,fold\n01,0\n1,-1\n")
    with pytest.raises(InputError, match="column 'fold': row 3 is '-1'"):
        folds.read_folds(path, ["01", "1"])
