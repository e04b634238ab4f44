"""Folds for cross-validation in a file, `id` and `fold`, so that all models use the same ones."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from common import fingerprints, provenance, reading
from common.answers import match_ids
from common.arrays import BoolArray, IntArray
from common.schema import INT32, TEXT, Column

import numpy as np
import numpy.typing as npt

ID = Column("id", TEXT)
_FOLD = Column("fold", INT32, 0, 9_999)


def describe_folds(path: Path) -> str:
    """Say how folds were made: ``10 folds --by_question``; the user's own have a fingerprint."""
    n_folds = len(np.unique(reading.read_table(path, (_FOLD,))[_FOLD.name]))
    record = provenance.read(path)
    if record is None:
        return f"{n_folds} folds {fingerprints.digest(path):.8}"
    kept = {k: value for k, value in provenance.settings(record.options).items() if k != "folds"}
    return " ".join([f"{n_folds} folds", *provenance.flags_of(kept)])


def read_folds(path: Path, ids: Sequence[str]) -> npt.NDArray[np.int32]:
    """Read the fold of every example, shape (examples,); the file holds just these, once each."""
    provenance.require_current([path])
    source = reading.file_source(path)
    found = reading.read_table(source, (ID, _FOLD))
    rows = match_ids(source, ID.name, found[ID.name].to_numpy(object), ids, "the training examples")
    return found[_FOLD.name].to_numpy()[rows]


def splits(fold: IntArray) -> Iterator[tuple[BoolArray, BoolArray]]:
    """Yield for every fold which examples to learn from and which to predict, as booleans."""
    for number in np.unique(fold):
        yield fold != number, fold == number
