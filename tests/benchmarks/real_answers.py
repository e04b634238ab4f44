"""The real answers that the benchmarks measure on, and their ten fixed splits.

The environment variable KIT_REAL_DATA names a folder that holds them, in eedi_tasks_3_4/ and
csc311_subset/; the answers belong to their publishers and are not part of the kit.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from common import layout
from common.answers import read_answers
from common.errors import InputError
from common.splits import hold_out_answers

import numpy as np
import pandas as pd
import pyarrow.csv as pa_csv

SEEDS = range(10)
HELD_OUT_SHARE = 0.2


def real_data_dir() -> Path:
    """Return the folder of the real data.

    Raises
    ------
    InputError
        If the environment variable KIT_REAL_DATA is not set.
    """
    if not os.environ.get("KIT_REAL_DATA"):
        raise InputError("the environment variable KIT_REAL_DATA is not set, expected a folder")
    return Path(os.environ["KIT_REAL_DATA"])


def read_pool() -> pd.DataFrame:
    """Read the pool: the real answers of tasks 3 and 4 together.

    The pool holds the answers of train_task_3_4.csv and of the public test of task 4. These files
    have answers of only some of the students.

    Returns
    -------
    DataFrame
        150,271 answers of 861 students to 942 questions, with the options.
    """
    folder = real_data_dir() / "eedi_tasks_3_4"
    parts = [
        read_answers(folder / "train_data" / "train_task_3_4.csv", options=True),
        read_answers(folder / "test_data" / "test_public_task_4_more_splits.csv", options=True),
    ]
    return pd.concat(parts, ignore_index=True)


def split_pool(pool: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split the pool's answers at random into 80 % for training and 20 % for scoring.

    Parameters
    ----------
    pool
        From `read_pool`.
    seed
        One of `SEEDS`.

    Returns
    -------
    train, test : DataFrame
        120,217 and 30,054 answers.
    """
    held_out = hold_out_answers(len(pool), HELD_OUT_SHARE, seed)
    return pool[~held_out], pool[held_out]


def pool_splits(pool: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame, pd.DataFrame]]:
    """Split the pool with each of `SEEDS`; yield the seed, the training and the test answers."""
    for seed in SEEDS:
        yield seed, *split_pool(pool, seed)


def read_course_subset(part: str) -> pd.DataFrame:
    """Read a part of the course subset: answers of tasks 1 and 2 that the course csc311 hands out.

    The subset tells whether answers are right or wrong, but not which options were chosen.

    Parameters
    ----------
    part
        "train" (56,688 answers) or "valid" (7,086 answers).
    """
    table = pa_csv.read_csv(real_data_dir() / "csc311_subset" / f"{part}_data.csv")
    return pd.DataFrame(
        {
            "UserId": table["user_id"].to_numpy().astype(np.int32),
            "QuestionId": table["question_id"].to_numpy().astype(np.int32),
            "IsCorrect": table["is_correct"].to_numpy().astype(np.int8),
        }
    )


def write_pool_metadata(folder: Path) -> None:
    """Write the metadata of the pool's questions and students, named as in tasks 1 and 2."""
    metadata = real_data_dir() / "eedi_tasks_3_4" / "metadata"
    for source, target in (
        (layout.QUESTION_METADATA_TASK_3_4, layout.QUESTION_METADATA_TASK_1_2),
        (layout.STUDENT_METADATA_TASK_3_4, layout.STUDENT_METADATA_TASK_1_2),
        (layout.SUBJECT_METADATA, layout.SUBJECT_METADATA),
    ):
        shutil.copyfile(metadata / source, folder / target)


def write_course_metadata(folder: Path) -> None:
    """Write the metadata of the course subset with the official names of files and columns.

    The subset has metadata of questions and students, but no tree of subjects.
    """
    course = real_data_dir() / "csc311_subset"
    copy_with_header(
        course / "question_meta.csv",
        folder / layout.QUESTION_METADATA_TASK_1_2,
        header="QuestionId,SubjectId",
    )
    copy_with_header(
        course / "student_meta.csv",
        folder / layout.STUDENT_METADATA_TASK_1_2,
        header="UserId,Gender,DateOfBirth,PremiumPupil",
    )


def copy_with_header(source: Path, target: Path, header: str) -> None:
    """Copy a CSV file, with another first line."""
    text = source.read_text(encoding="utf-8-sig")
    _old_header, rows = text.split("\n", maxsplit=1)
    target.write_text(f"{header}\n{rows}", encoding="utf-8")
