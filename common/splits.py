"""Seeded splits that keep training and validation apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from common import io, layout, made, schema
from common.answers import IntArray, read_answers
from common.errors import InputError

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

BoolArray = npt.NDArray[np.bool_]

PAIR_COLUMNS = ("QuestionId", "UserId", "AnswerId")


def hold_out_answers(n_answers: int, share: float, seed: int | Sequence[int]) -> BoolArray:
    """Choose answers at random for validation (tasks 1 and 2).

    Parameters
    ----------
    n_answers
        How many answers there are.
    share
        Share to hold out, from 0 to 1; rounded to whole answers.
    seed
        The same seed, a number or several, gives the same choice.

    Returns
    -------
    array of bool, shape (n_answers,)
        True for the answers to be held out.
    """
    held_out = np.zeros(n_answers, bool)
    rng = np.random.default_rng(seed)
    held_out[rng.permutation(n_answers)[: round(n_answers * share)]] = True
    return held_out


def hold_out_students(student: IntArray, share: float, seed: int) -> BoolArray:
    """Choose students at random for validation, each with all answers (task 4).

    Parameters
    ----------
    student
        UserId of every answer.
    share
        Share of the students to hold out, from 0 to 1; rounded to whole students.
    seed
        The same seed gives the same choice.

    Returns
    -------
    array of bool, shape (answers,)
        True for the answers of the students held out.
    """
    students, place = np.unique(student, return_inverse=True)
    return hold_out_answers(len(students), share, seed)[place]


def split_answers_file(train: Path, output_dir: Path, seed: int, share: float = 0.2) -> list[Path]:
    """Split a training file of tasks 1 and 2 by answers into a local one and its validation.

    Parameters
    ----------
    train
        The training file.
    output_dir
        Folder for the three files: training, validation, and the template to fill in.
    seed
        The same seed gives the same split.
    share
        Share of the answers to hold out.

    Returns
    -------
    list of Path
        The files written.
    """
    table = read_answers(train, ids=True)
    held_out = hold_out_answers(len(table), share, seed)
    _require_both_parts(train, held_out, "answers")
    valid = table[held_out]
    template = valid[[name for name in PAIR_COLUMNS if name in table]]
    paths = [
        output_dir / name
        for name in (layout.TRAIN_TASK_1_2, layout.VALID_TASK_1_2, layout.LOCAL_TEMPLATE_TASK_1_2)
    ]
    _write_parts(train, paths, (table[~held_out], valid, template))
    return paths


def split_students_file(train: Path, output_dir: Path, seed: int, share: float = 0.2) -> list[Path]:
    """Split a training file of tasks 3 and 4 by students, and mark targets for the held out.

    Parameters
    ----------
    train
        The training file.
    output_dir
        Folder for the two files: training, and validation with the column IsTarget.
    seed
        The same seed gives the same split.
    share
        Share of the students to hold out, and of their answers to be targets.

    Returns
    -------
    list of Path
        The files written.
    """
    table = read_answers(train, ids=True)
    student = table["UserId"].to_numpy()
    held_out = hold_out_students(student, share, seed)
    _require_both_parts(train, held_out, "students")
    valid = table[held_out]
    # A different stream of random numbers from the one that chose the students.
    targets = hold_out_answers(len(valid), share, seed + 1)
    valid = valid.assign(**{schema.IS_TARGET: targets.astype(np.int8)})
    paths = [output_dir / name for name in (layout.TRAIN_TASK_4, layout.VALID_TASK_4)]
    _write_parts(train, paths, (table[~held_out], valid))
    return paths


def _write_parts(train: Path, paths: Sequence[Path], parts: Sequence[pd.DataFrame]) -> None:
    """Write the parts of a split under one stamp, so that none is used with another split's."""
    _require_other_file(train, paths)
    folder = paths[0].parent
    stamp = folder / layout.STAMP_OF_FILE[paths[0].name]
    with io.atomic_write(stamp, *paths) as (stamp_file, *files):
        for file, part in zip(files, parts, strict=True):
            io.write_csv_to(file, part)
        written = dict(zip((path.name for path in paths), files, strict=True))
        stamp_file.write(made.this_process(folder, written, [train]).as_json())


def _require_both_parts(train: Path, held_out: BoolArray, of_what: str) -> None:
    if held_out.all() or not held_out.any():
        raise InputError(f"{train}: holds too few {of_what} to hold some out, expected more")


def _require_other_file(train: Path, paths: Sequence[Path]) -> None:
    # The local training file has the official one's name: a split in place would destroy it.
    for path in paths:
        if path.resolve() == train.resolve():
            raise InputError(f"{path}: is the file to be split, expected another --output_dir")
