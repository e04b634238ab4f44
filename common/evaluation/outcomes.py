"""Which answers were predicted right: kept with every score, so that any two can be compared later.

A file, named in the record, holds no id and no answer; a fingerprint tells whose it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from common import fingerprints, reading, writing
from common.answers import number_ids, pair_keys
from common.arrays import Array, BoolArray
from common.errors import InputError

import numpy as np
import numpy.typing as npt
import pandas as pd


@dataclass(frozen=True)
class Outcomes:
    """What was predicted right, in an order that depends on the answers alone."""

    # Fingerprint of pairs and true values: only where it is the same can outcomes be compared.
    answers: str
    # Answers by part and unit, (parts, units). Units are drawn in a bootstrap: students by UserId,
    # in task 3 pairs of questions. Parts are masks (task 4), folds, experts (task 3), or one.
    counts: npt.NDArray[np.int64]
    # Whether each answer was predicted right, by part, unit and question, shape (answers,).
    right: BoolArray
    # Whether each counts once; an answer may be a target of several masks.
    distinct: bool

    def count_right(self) -> npt.NDArray[np.int64]:
        """Count what was predicted right, as `counts`, shape (parts, units)."""
        cell = np.repeat(np.arange(self.counts.size), self.counts.ravel())
        return np.bincount(cell[self.right], minlength=self.counts.size).reshape(self.counts.shape)


def of_predictions(answers: pd.DataFrame) -> Outcomes:
    """Return outcomes of answers: UserId, QuestionId, truth, predicted and perhaps part, from 0."""
    keys, student = pair_keys(answers["UserId"], answers["QuestionId"]), answers["UserId"]
    truth, predicted = answers["truth"].to_numpy(), answers["predicted"].to_numpy()
    part = answers["part"].to_numpy() if "part" in answers else np.zeros(len(keys), np.int8)
    order = np.argsort(keys)
    order = order[np.argsort(part[order], kind="stable")]
    students, place = number_ids(student)
    n_parts = int(part.max()) + 1
    cell = part.astype(np.int64) * len(students) + place
    # The keys are sorted within each part: equal neighbours there would be one pair twice.
    distinct = n_parts == 1 or len(np.unique(keys)) == len(keys)
    counts = np.bincount(cell, minlength=n_parts * len(students)).reshape(n_parts, -1)
    of = _fingerprint(keys[order], part[order].astype(np.int32), truth[order].astype(np.int8))
    return Outcomes(of, counts, (truth == predicted)[order], distinct)


def of_judgements(judgements: pd.DataFrame, agrees: pd.DataFrame) -> Outcomes:
    """Return the outcomes of a ranking (task 3): whether it agrees with each judgement, or NaN."""
    sides = np.array([*judgements.index], np.int64).T
    judged, right = agrees.notna().to_numpy().T, agrees.to_numpy().T == 1
    answers = _fingerprint(*sides, judgements.fillna(0).to_numpy(np.int8).T)
    return Outcomes(answers, judged.astype(np.int64), right[judged], distinct=False)


def _fingerprint(*arrays: Array) -> str:
    digest = sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def write(folder: Path, outcomes: Outcomes) -> str:
    """Write outcomes to a folder, the same once; return the file's name without its suffix."""
    content = BytesIO()
    np.savez_compressed(
        content,
        answers=np.array(outcomes.answers),
        counts=outcomes.counts.astype(np.min_scalar_type(int(outcomes.counts.max(initial=0)))),
        right=np.packbits(outcomes.right),
        distinct=np.array(outcomes.distinct),
    )
    name = sha256(content.getvalue()).hexdigest()[:16]
    with writing.atomic_write(folder / f"{name}.npz") as (file,):
        file.write(content.getvalue())
    return name


def read(path: Path) -> Outcomes:
    """Read outcomes; `InputError` if the file is missing or not what its name says."""
    reading.require_file(path)
    if fingerprints.digest(path)[:16] != path.stem:
        raise InputError(
            f"{path}: is damaged or holds other outcomes than those of its name, expected outcomes "
            "that an evaluation has kept"
        )
    with np.load(path, allow_pickle=False) as file:
        counts = file["counts"].astype(np.int64)
        right = np.unpackbits(file["right"], count=int(counts.sum())).astype(bool)
        return Outcomes(str(file["answers"]), counts, right, bool(file["distinct"]))
