"""Seeded splits that keep training and validation apart: the `local_data_split.py` of the tasks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from common import cli, layout, writing
from common.answers import read_answers
from common.arrays import BoolArray, IntArray
from common.errors import InputError

import numpy as np
import numpy.typing as npt
import pandas as pd

PAIR_COLUMNS = ("QuestionId", "UserId", "AnswerId")
# Of the answers of tasks 1 and 2.
_HELD_OUT = 0.2


def hold_out_answers(n_answers: int, share: float, seed: int | Sequence[int]) -> BoolArray:
    """Choose a share of answers at random for validation: True for those held out."""
    held_out = np.zeros(n_answers, bool)
    rng = np.random.default_rng(seed)
    held_out[rng.permutation(n_answers)[: round(n_answers * share)]] = True
    return held_out


def parser(doc: str | None, train_name: str) -> argparse.ArgumentParser:
    """Return the parser of a `local_data_split.py`, with the default name of the training file."""
    parser = cli.parser(doc)
    cli.add_folder(parser, "--input_dir", layout.TRAIN_DIR)
    cli.add_file_name(parser, "--train_data", train_name)
    cli.add_folder(parser, "--output_dir", layout.TEST_INPUT_DIR)
    cli.add_number(parser, "--seed", 0, "seed of the split")
    return parser


def run(
    options: argparse.Namespace, split: Callable[[pd.DataFrame, int], dict[str, pd.DataFrame]]
) -> None:
    """Split the answers that the flags name, and record how.

    `split` gets the answers and the seed. It returns the parts by file name.
    """
    train = options.input_dir / options.train_data
    parts = split(read_answers(train, ids=True), options.seed)
    if any(part.empty for part in parts.values()):
        raise InputError(
            f"{train}: holds too few answers or students to hold some out, expected more"
        )
    tables = {options.output_dir / name: part for name, part in parts.items()}
    for path in tables:
        # The local training file has the official one's name: a split in place would destroy it.
        if path.resolve() == train.resolve():
            raise InputError(f"{path}: is the file to be split, expected another --output_dir")
    record = options.output_dir / layout.STAMP_OF_FILE[next(iter(parts))]
    writing.write_files(tables, record=record, made_from=[train])
    print(f"written: {', '.join(map(cli.show, tables))}")


def assign_folds(group: IntArray, n_folds: int, seed: int | Sequence[int]) -> npt.NDArray[np.int32]:
    """Return the fold of each example, whose groups, numbered from 0, the folds share evenly."""
    n_groups = int(group.max(initial=-1)) + 1
    if not 2 <= n_folds <= n_groups:
        raise InputError(
            f"--folds is {n_folds}, expected a whole number from 2 to the number of examples, or "
            f"groups of these, to deal out, which is {n_groups}"
        )
    fold_of_group = np.random.default_rng(seed).permutation(n_groups) % n_folds
    return np.asarray(fold_of_group[group], np.int32)


def split_answers(answers: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame]:
    """Split the answers of tasks 1 and 2; the third part is the template to fill in."""
    held_out = hold_out_answers(len(answers), _HELD_OUT, seed)
    valid = answers[held_out]
    return {
        layout.TRAIN_TASK_1_2: answers[~held_out],
        layout.VALID_TASK_1_2: valid,
        layout.LOCAL_TEMPLATE_TASK_1_2: valid.filter(PAIR_COLUMNS),
    }


def hold_out_students(answers: pd.DataFrame, share: float, seed: int) -> BoolArray:
    """Choose a share of the students: True for their answers."""
    students, place = np.unique(answers["UserId"].to_numpy(), return_inverse=True)
    return hold_out_answers(len(students), share, seed)[place]
