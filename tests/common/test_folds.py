"""Folds from a file: every example once, groups together, exactly the ids expected."""

from pathlib import Path

from common import folds, io
from common.errors import InputError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.integers(0, 30), min_size=1), st.integers(2, 10), st.integers(0, 5))
def test_groups_stay_together_in_folds_of_equal_size(
    values: list[int], n_folds: int, seed: int
) -> None:
    group = np.unique(values, return_inverse=True)[1]
    n_groups = group.max() + 1
    if n_folds > n_groups:
        with pytest.raises(InputError, match="--folds"):
            folds.assign_folds(group, n_folds, seed)
        return
    fold = folds.assign_folds(group, n_folds, seed)
    pairs = set(zip(group.tolist(), fold.tolist(), strict=True))
    assert len(pairs) == n_groups
    sizes = np.bincount([number for _, number in pairs], minlength=n_folds)
    assert len(sizes) == n_folds
    assert np.ptp(sizes) <= 1


def test_folds_are_described_as_they_were_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags = f"--output_dir {tmp_path} --folds 3 --input_dir=x --by_question --seed 1 --train_data a"
    monkeypatch.setattr("sys.argv", ["split.py", *flags.split()])
    path, source = tmp_path / "folds.csv", tmp_path / "train.txt"
    source.write_text("x")
    table = {"id": ["01", "1", "b,c"], "fold": [2, 0, 1]}
    io.write_recorded({path: table}, path.with_suffix(".json"), [source])
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
