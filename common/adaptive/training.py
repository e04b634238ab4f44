"""What a `train_model.py` of task 4 reads and saves: flags, answers, weights and their students."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from common import cli, layout, provenance, reading, schema, source_code, writing
from common.adaptive.entry_files import read_trained_students
from common.adaptive.weights import TRAINED_STUDENTS, TRAINING, copy_package, read_origin
from common.answers import read_students
from common.arrays import IntArray
from common.errors import InputError

import numpy as np
import pandas as pd


def training_parser(doc: str | None, *, several: bool = True) -> argparse.ArgumentParser:
    """Make the parser of a `train_model.py`, for one file or several, of different students."""
    p = cli.parser(doc)
    cli.add_optional_folder(p, "--input_dir", "data/train_data")
    p.add_argument("--train_data", help=f"default {layout.TRAIN_TASK_3_4}")
    local = f"use the local split: defaults become data/test_input and {layout.TRAIN_TASK_4}"
    p.add_argument("--local", action="store_true", help=local)
    if several:
        add_more_train_data_flag(p)
    return p


def add_more_train_data_flag(p: argparse.ArgumentParser) -> None:
    """Add the flag that names further training files."""
    more = "further files in the same folder, with answers of other students"
    p.add_argument("--more_train_data", nargs="+", metavar="FILE", default=[], help=more)


def training_paths(options: argparse.Namespace) -> tuple[list[Path], Path]:
    """Return the training files that the flags name, and the folder that may hold the metadata."""
    input_dir, train = layout.TRAIN_DIR, layout.TRAIN_TASK_3_4
    if options.local:
        input_dir, train = layout.TEST_INPUT_DIR, layout.TRAIN_TASK_4
    input_dir = options.input_dir or input_dir
    names = [options.train_data or train, *getattr(options, "more_train_data", ())]
    paths = [input_dir / name for name in names]
    provenance.require_current(paths)
    return paths, input_dir.parent / layout.METADATA_DIR.name


def count_questions(train: Path | None, metadata_dir: Path) -> int:
    """Count the columns of task 4's arrays: the largest QuestionId known, plus one, or 0."""
    paths = [metadata_dir / layout.QUESTION_METADATA_TASK_3_4, train]
    known = [path for path in paths if path is not None and reading.is_there(path)]
    ids = [reading.read_table(path, [schema.QUESTION_ID])["QuestionId"] for path in known]
    return max((int(column.max()) + 1 for column in ids), default=0)


def read_training(paths: list[Path], metadata_dir: Path) -> tuple[pd.DataFrame, int]:
    """Read the answers of the students of all training files, and count the arrays' columns."""
    answers = read_students(paths)
    known = count_questions(None, metadata_dir)
    return answers, max(known, int(answers["QuestionId"].to_numpy().max(initial=-1)) + 1)


@contextmanager
def replace_weights(folder: Path, student: IntArray) -> Iterator[Path]:
    """Give an empty folder to save weights in; put them into the package's `folder`, in place of
    files of the same names, with how they were made; `student` is the UserId of every answer.

    Beside the weights come the students, whom the evaluation refuses to examine, and the command
    with its code, for the record. Weights that are not saved whole replace nothing, and whenever a
    run is killed, no student that the weights may know is missing beside them.
    """
    students, before = np.unique(student), _trained_students(folder)
    partial = writing.partial_beside(folder / "weights")
    partial.mkdir()
    try:
        yield partial
        # Until all are replaced, the weights may be those of either.
        _record_training(folder, students if before is None else np.union1d(before, students))
        for file in sorted(partial.iterdir()):
            file.replace(folder / file.name)
        _record_training(folder, students)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    if before is not None and not np.array_equal(before, students):
        print(f"replaced weights that were trained on other students ({len(before):,})")


def _trained_students(package: Path) -> IntArray | None:
    try:
        return read_trained_students(package)
    except InputError:  # Who plays the entry says that it is damaged.
        return None


def _record_training(folder: Path, students: IntArray) -> None:
    with writing.atomic_write(folder / TRAINED_STUDENTS, folder / TRAINING) as (file, origin_file):
        np.save(file, students)
        origin_file.write(provenance.this_process(folder).as_json())


@contextmanager
def for_local_split(package: Path, reference: Path) -> Iterator[Path]:
    """Give a package; if it knows students of the local split, a copy trained with --local."""
    trainer, origin = package / "train_model.py", read_origin(package)
    known = _trained_students(package) if trainer.is_file() else None
    examined = reading.read_table(reference, [schema.USER_ID])["UserId"]
    if origin is None or known is None or not np.isin(examined, known).any():
        yield package
        return
    options = {**provenance.settings(origin.options), "local": True}
    command = replace(origin, script=provenance.show_path(trainer), options=options).command
    print(f"its weights know the local split: `{command}` trains a copy", flush=True)
    with tempfile.TemporaryDirectory(prefix="task_4_local_") as folder:
        copy = Path(folder) / package.name
        copy_package(package, copy)
        words = [sys.executable, f"{copy / trainer.name}", *provenance.flags_of(options)]
        environment = {**os.environ, "PYTHONPATH": str(layout.ROOT)}
        if subprocess.call(words, stdout=subprocess.DEVNULL, env=environment):
            sys.exit(2)  # It has said why.
        if origin := read_origin(copy):
            code = source_code.fingerprint(trainer)
            origin = replace(origin, script=provenance.show_path(trainer), code=code)
            (copy / TRAINING).write_bytes(origin.as_json())
        yield copy
