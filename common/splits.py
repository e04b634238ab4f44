"""Seeded splits that keep training and validation apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from common import io, layout, schema
from common.answers import read_answers
from common.errors import InputError

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

BoolArray = npt.NDArray[np.bool_]

PAIR_COLUMNS = ("QuestionId", "UserId", "AnswerId")


def hold_out_answers(n_answers: int, share: float, seed: int | Sequence[int]) -> BoolArray:
    """Choose a share of answers at random for validation: True for those held out."""
    held_out = np.zeros(n_answers, bool)
    rng = np.random.default_rng(seed)
    held_out[rng.permutation(n_answers)[: round(n_answers * share)]] = True
    return held_out


def split_answers_file(train: Path, output_dir: Path, seed: int, share: float = 0.2) -> list[Path]:
    """Split a training file of tasks 1 and 2 by answers; return the three files written.

    They are the training answers, the share held out for validation, and the template to fill in.
    """
    table = read_answers(train, ids=True)
    held_out = hold_out_answers(len(table), share, seed)
    _require_both_parts(train, held_out, "answers")
    valid = table[held_out]
    template = valid[[name for name in PAIR_COLUMNS if name in table]]
    names = (layout.TRAIN_TASK_1_2, layout.VALID_TASK_1_2, layout.LOCAL_TEMPLATE_TASK_1_2)
    return _write_parts(train, output_dir, names, (table[~held_out], valid, template))


def halve_students_file(train: Path, output_dir: Path, seed: int) -> list[Path]:
    """Split a training file of tasks 3 and 4 into two halves of the students; return both files."""
    halves = _hold_out_students(train, 0.5, seed)
    return _write_parts(train, output_dir, (layout.TRAIN_TASK_3, layout.VALID_TASK_3), halves)


def split_students_file(train: Path, output_dir: Path, seed: int, share: float = 0.2) -> list[Path]:
    """Split a training file of tasks 3 and 4 by students; return the two files written.

    The answers of the students held out have a column IsTarget: the same share of them are targets.
    """
    learned, valid = _hold_out_students(train, share, seed)
    # A different stream of random numbers from the one that chose the students.
    targets = hold_out_answers(len(valid), share, seed + 1)
    valid = valid.assign(**{schema.IS_TARGET: targets.astype(np.int8)})
    names = (layout.TRAIN_TASK_4, layout.VALID_TASK_4)
    return _write_parts(train, output_dir, names, (learned, valid))


def _hold_out_students(train: Path, share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read answers; return those of most students, and those of a share of them."""
    table = read_answers(train, ids=True)
    students, place = np.unique(table["UserId"].to_numpy(), return_inverse=True)
    held_out = hold_out_answers(len(students), share, seed)[place]
    _require_both_parts(train, held_out, "students")
    return table[~held_out], table[held_out]


def _require_both_parts(train: Path, held_out: BoolArray, of_what: str) -> None:
    if held_out.all() or not held_out.any():
        raise InputError(f"{train}: holds too few {of_what} to hold some out, expected more")


def _write_parts(
    train: Path, folder: Path, names: Sequence[str], parts: Sequence[pd.DataFrame]
) -> list[Path]:
    """Write the parts of a split with one record, so that none is used with another split's."""
    paths = [folder / name for name in names]
    for path in paths:
        # The local training file has the official one's name: a split in place would destroy it.
        if path.resolve() == train.resolve():
            raise InputError(f"{path}: is the file to be split, expected another --output_dir")
    record = folder / layout.STAMP_OF_FILE[names[0]]
    io.write_recorded(dict(zip(paths, parts, strict=True)), record, [train])
    return paths
