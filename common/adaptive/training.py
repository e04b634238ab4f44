"""Shared by the scripts `train_model.py` of task 4: flags, reading answers, saving weights."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from common import cli, fingerprints, layout, provenance, reading, schema, writing
from common.adaptive.weights import (
    TRAINED_STUDENTS,
    TRAINER,
    TRAINING,
    copy_package,
    move_record,
)
from common.adaptive.weights_origin import find_weights_origin, read_students_if_valid
from common.answers import read_students
from common.arrays import IntArray
from common.fingerprints import Fingerprint

import numpy as np
import pandas as pd


def training_parser(doc: str | None, *, several_files: bool = True) -> argparse.ArgumentParser:
    """Return the parser of a `train_model.py`, whose docstring is `doc`.

    `several_files` adds the flag for further training files.
    """
    parser = cli.parser(doc)
    cli.add_optional_folder(parser, "--input_dir", "data/train_data")
    parser.add_argument("--train_data", help=f"default {layout.TRAIN_TASK_3_4}")
    parser.add_argument(
        "--local",
        action="store_true",
        help=f"use the local split: defaults become data/test_input and {layout.TRAIN_TASK_4}",
    )
    if several_files:
        add_more_train_data_flag(parser)
    return parser


def add_more_train_data_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names further training files."""
    parser.add_argument(
        "--more_train_data",
        nargs="+",
        metavar="FILE",
        default=[],
        help="further files in the same folder, with answers of other students",
    )


def training_paths(options: argparse.Namespace) -> tuple[list[Path], Path]:
    """Return the training files that the flags name, and the folder that may hold the metadata."""
    if options.local:
        default_dir = layout.TEST_INPUT_DIR
        default_train = layout.TRAIN_TASK_4
    else:
        default_dir = layout.TRAIN_DIR
        default_train = layout.TRAIN_TASK_3_4
    input_dir = options.input_dir or default_dir
    # Not every `train_model.py` has the flag --more_train_data.
    more_names = getattr(options, "more_train_data", ())
    first_name = options.train_data or default_train
    paths = [input_dir / name for name in (first_name, *more_names)]
    # Refuse a file that has changed since it was made.
    provenance.require_current(paths)
    return paths, input_dir.parent / layout.METADATA_DIR.name


def count_questions(train: Path | None, metadata_dir: Path) -> int:
    """Return the number of columns of task 4's arrays: the largest known QuestionId plus 1.

    QuestionIds are read from the question metadata and from a training file, whichever exist. The
    number is 0 if neither exists.
    """
    paths = [metadata_dir / layout.QUESTION_METADATA_TASK_3_4, train]
    n_questions = 0
    for path in paths:
        if path is not None and reading.is_there(path):
            ids = reading.read_table(path, [schema.QUESTION_ID])["QuestionId"]
            n_questions = max(n_questions, int(ids.max()) + 1)
    return n_questions


def read_training(paths: list[Path], metadata_dir: Path) -> tuple[pd.DataFrame, int]:
    """Return the answers of all training files, and the number of questions of the game.

    An entry gets arrays with a column for each question of the game. The number of questions is the
    largest QuestionId in the training files and in the metadata, plus 1.
    """
    answers = read_students(paths)
    n_in_metadata = count_questions(None, metadata_dir)
    n_in_answers = int(answers["QuestionId"].to_numpy().max(initial=-1)) + 1
    return answers, max(n_in_metadata, n_in_answers)


@contextmanager
def replace_weights(folder: Path, student: IntArray) -> Iterator[Path]:
    """Yield an empty folder for new weights; when the `with` block ends, move them to the package.

    Two more files are written beside the weights. The first lists the students of the training
    answers, whom the evaluation refuses to examine. The second records the training: its command,
    and the fingerprints of its code, of its input files and of the weights. If saving fails, the
    package keeps its old weights.

    Parameters
    ----------
    folder
        The package. Weights of the same names are replaced.
    student
        The UserIds of the training answers. A UserId may be repeated.
    """
    students = np.unique(student)
    old_students = read_students_if_valid(folder)
    partial = writing.partial_beside(folder / "weights")
    partial.mkdir()
    try:
        yield partial
        fingerprint_by_name = {}
        for path in sorted(partial.rglob("*")):
            if path.is_file():
                name = path.relative_to(partial).as_posix()
                fingerprint_by_name[name] = fingerprints.fingerprint(path)
        # If the process is killed while it moves files, the package holds both old and new weights.
        # So until all files are moved, the package lists the students of both trainings, and its
        # record has no fingerprints of weights.
        both_students = students if old_students is None else np.union1d(old_students, students)
        _record_training(folder, both_students, files={})
        for path in sorted(partial.iterdir()):
            path.replace(folder / path.name)
        _record_training(folder, students, files=fingerprint_by_name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    if old_students is not None and not np.array_equal(old_students, students):
        print(f"replaced weights that were trained on other students ({len(old_students):,})")


def _record_training(folder: Path, students: IntArray, files: Mapping[str, Fingerprint]) -> None:
    """Write the students that weights are trained on, and how this process has made the weights.

    `files` are the fingerprints of the files of weights, by name.
    """
    with writing.atomic_write(folder / TRAINED_STUDENTS, folder / TRAINING) as (file, record_file):
        np.save(file, students)
        record = replace(provenance.this_process(folder), files=dict(files))
        record_file.write(record.as_json())


@contextmanager
def package_without_local_students(package: Path, reference: Path) -> Iterator[Path]:
    """Yield a package whose weights are not trained on the students that the local split examines.

    Usually this is `package` itself. But if a record says that its weights were trained on students
    in the file `reference`, a temporary copy of the package is yielded instead. The copy is trained
    with the options in the record plus the flag --local, which selects other training answers.
    """
    trainer = package / TRAINER
    if not trainer.is_file():
        yield package
        return
    weights_origin = find_weights_origin(package)
    record = weights_origin.record
    trained = weights_origin.students
    examined = reading.read_table(reference, [schema.USER_ID])["UserId"]
    # A copy is needed only if the weights are trained on students who are examined. Without a
    # record of the training, or without a list of its students, nothing says so.
    if record is None or trained is None or not np.isin(examined, trained).any():
        yield package
        return
    options = {**provenance.settings(record.options), "local": True}
    shown_trainer = provenance.show_path(trainer)
    # For the message, the command line that trains with --local: `command` makes it from the script
    # and the options of the record.
    command = replace(record, script=shown_trainer, options=options).command
    print(f"its weights know the local split: `{command}` trains a copy", flush=True)
    with tempfile.TemporaryDirectory(prefix="task_4_local_") as folder:
        copy = Path(folder) / package.name
        copy_package(package, copy)
        _train(copy, provenance.flags_of(options))
        # The copy's record names files relative to the temporary folder. Rewrite the record as if
        # the package itself had been trained.
        move_record(folder=copy, copy=copy, package=package)
        yield copy


def _train(package: Path, flags: Sequence[str]) -> None:
    """Run the trainer of a package with some flags; end this process if the trainer fails."""
    command = [sys.executable, str(package / TRAINER), *flags]
    environment = {**os.environ, "PYTHONPATH": str(layout.ROOT)}
    exit_code = subprocess.call(command, stdout=subprocess.DEVNULL, env=environment)
    if exit_code != 0:
        # The trainer has printed the error.
        sys.exit(2)
