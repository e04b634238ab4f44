"""Seeded splits into training and validation, for `local_data_split.py` and cross-validation."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from common import answer_options, cli, layout, schema, writing
from common.answers import read_answers, read_right_or_wrong
from common.arrays import BoolArray, IntArray
from common.errors import InputError

import numpy as np
import numpy.typing as npt
import pandas as pd

# Columns of a template: the file that lists the pairs of student and question to predict. AnswerId
# and NumberOfOptions are left out if the answers do not have them.
PAIR_COLUMNS = ("QuestionId", "UserId", "AnswerId", schema.NUMBER_OF_OPTIONS.name)
# Share of the answers of tasks 1 and 2 that the local split holds out for validation.
_HELD_OUT = 0.2


def hold_out_answers(n_answers: int, share: float, seed: int | Sequence[int]) -> BoolArray:
    """Choose a share of the answers at random for validation.

    Parameters
    ----------
    n_answers
        The number of answers.
    share
        The share to hold out, from 0 to 1.
    seed
        Seed of the random numbers.

    Returns
    -------
    array of bool, shape (n_answers,)
        True for answers that are held out.
    """
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
    options: argparse.Namespace,
    split: Callable[[pd.DataFrame, int], dict[str, pd.DataFrame]],
    *,
    leaves_out_faulty_options: bool = False,
) -> None:
    """Split a file of answers into parts, write them, and record how they were made.

    The flags name the file and the folder to write to.

    Parameters
    ----------
    options
        The flags, parsed by the parser that the function `parser` returns.
    split
        Called with the answers and the seed; returns a table for each file to write, by file name.
    leaves_out_faulty_options
        If True and the options in the file are faulty, the answers are read without their options;
        see `read_right_or_wrong`. By default, faulty options raise `InputError`.

    Raises
    ------
    InputError
        If the file is faulty, a part is empty, or a part would overwrite the file.
    """
    train = options.input_dir / options.train_data
    if leaves_out_faulty_options:
        answers = read_right_or_wrong(train)
    else:
        answers = read_answers(train, ids=True)
    parts = split(answers, options.seed)
    if any(part.empty for part in parts.values()):
        raise InputError(
            f"{train}: holds too few answers or students to hold some out, expected more"
        )
    tables = {options.output_dir / name: part for name, part in parts.items()}
    for path in tables:
        # In tasks 1 and 2, the local training file has the name of the official one. A wrong
        # --output_dir would overwrite the official file.
        if path.resolve() == train.resolve():
            raise InputError(f"{path}: is the file to be split, expected another --output_dir")
    # The files of a split share one record: a JSON file that says how they were made.
    # `RECORD_OF_FILE` names the same record for each of these files, so look up the first file.
    first_name = next(iter(parts))
    record = options.output_dir / layout.RECORD_OF_FILE[first_name]
    writing.write_files(tables, record=record, made_from=[train])
    if schema.NUMBER_OF_OPTIONS.name in answers:
        print(f"questions have up to {answer_options.count_options(answers)} options")
    print(f"written: {', '.join(map(cli.show, tables))}")


def assign_folds(group: IntArray, n_folds: int, seed: int | Sequence[int]) -> npt.NDArray[np.int32]:
    """Assign groups of examples to folds at random.

    Any two folds differ by at most one in their number of groups.

    Parameters
    ----------
    group
        The group of each example, numbered from 0, shape (n,).
    n_folds
        The number of folds.
    seed
        Seed of the random numbers.

    Returns
    -------
    array of int32, shape (n,)
        The fold of each example, from 0 to `n_folds` - 1. A group is never split.

    Raises
    ------
    InputError
        If `n_folds` is less than 2 or exceeds the number of groups.
    """
    n_groups = int(group.max(initial=-1)) + 1
    if not 2 <= n_folds <= n_groups:
        raise InputError(
            f"--folds is {n_folds}, expected a whole number from 2 to the number of examples, or "
            f"groups of these, to deal out, which is {n_groups}"
        )
    fold_of_group = np.random.default_rng(seed).permutation(n_groups) % n_folds
    return np.asarray(fold_of_group[group], np.int32)


def split_answers(answers: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame]:
    """Split the answers of tasks 1 and 2 at random for local evaluation.

    Returns
    -------
    dict
        The training answers, the validation answers and the template to fill in, by file name. The
        template has only the columns `PAIR_COLUMNS` of the validation answers.
    """
    held_out = hold_out_answers(len(answers), _HELD_OUT, seed)
    valid = answers[held_out]
    return {
        layout.TRAIN_TASK_1_2: answers[~held_out],
        layout.VALID_TASK_1_2: valid,
        layout.LOCAL_TEMPLATE_TASK_1_2: valid.filter(PAIR_COLUMNS),
    }


def hold_out_students(answers: pd.DataFrame, share: float, seed: int) -> BoolArray:
    """Choose a share of the students at random for validation, with all their answers.

    Parameters
    ----------
    answers
        Answers with UserId.
    share
        The share of the students to hold out, from 0 to 1.
    seed
        Seed of the random numbers.

    Returns
    -------
    array of bool, shape (answers,)
        True for the answers of students who are held out.
    """
    students, student_index = np.unique(answers["UserId"].to_numpy(), return_inverse=True)
    # `hold_out_answers` only needs the number of things to choose from, here of students.
    is_held_out = hold_out_answers(len(students), share, seed)
    return is_held_out[student_index]
