"""Folds for cross-validation, kept in a file so that all models of a challenge use the same ones.

The file has the columns `id` and `fold`, one row for each example.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from common import fingerprints, provenance, reading
from common.answers import match_ids
from common.arrays import BoolArray, IntArray
from common.schema import INT32, TEXT, Column

import numpy as np
import numpy.typing as npt

ID = Column("id", TEXT)
_FOLD = Column("fold", INT32, low=0, high=9_999)


def describe_folds(path: Path) -> str:
    """Describe how a file of folds was made, for the record of a score.

    Parameters
    ----------
    path : Path
        File of folds.

    Returns
    -------
    str
        Number of folds and the flags of the script that made them, such as
        ``10 folds --by_question``. For a file that no script of the kit has made, the number of
        folds and a fingerprint of the file.
    """
    n_folds = len(np.unique(reading.read_table(path, (_FOLD,))[_FOLD.name]))
    record = provenance.read(path)
    if record is None:
        fingerprint = fingerprints.digest(path)[:8]
        return f"{n_folds} folds {fingerprint}"
    settings = provenance.settings(record.options)
    # The text begins with the number of folds, so the flag --folds is left out.
    settings = {name: value for name, value in settings.items() if name != "folds"}
    return " ".join([f"{n_folds} folds", *provenance.flags_of(settings)])


def read_folds(path: Path, ids: Sequence[str]) -> npt.NDArray[np.int32]:
    """Read the fold of every training example.

    Parameters
    ----------
    path : Path
        File of folds. It must hold each of `ids` once and no other id.
    ids : sequence of str
        Ids of the training examples.

    Returns
    -------
    ndarray of int32, shape (examples,)
        Folds in the order of `ids`.

    Raises
    ------
    InputError
        If the file is faulty, or if it was made from other training data.
    """
    provenance.require_current([path])
    source = reading.file_source(path)
    table = reading.read_table(source, (ID, _FOLD))
    file_ids = table[ID.name].to_numpy(object)
    rows = match_ids(source, ID.name, file_ids, ids, "the training examples")
    return table[_FOLD.name].to_numpy()[rows]


def train_and_test(fold: IntArray) -> Iterator[tuple[BoolArray, BoolArray]]:
    """For each fold, yield a mask of the examples to train on, and a mask of those to predict.

    Parameters
    ----------
    fold : ndarray of int, shape (examples,)
        Fold of every example.

    Yields
    ------
    train : ndarray of bool, shape (examples,)
        Examples to train on: those of all other folds.
    test : ndarray of bool, shape (examples,)
        Examples to predict: those of the fold.
    """
    for test_fold in np.unique(fold):
        yield fold != test_fold, fold == test_fold
