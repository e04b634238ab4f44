"""Outcomes: which answers a submission has predicted right.

With outcomes, any two scores on the same answers can be compared answer by answer.

A file of outcomes is kept with every score, and the record of scores names the file. It holds no id
and no answer. A fingerprint tells to which answers the outcomes belong.
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
    """Whether each answer was predicted right, in an order that depends only on the answers."""

    # Fingerprint of the answers that were predicted: of their students, questions and true values.
    # Two submissions can be compared only if their outcomes have the same fingerprint.
    answers: str
    # Number of answers in each part and unit, shape (parts, units). A part is an expert in task 3,
    # a mask in task 4, a fold in cross-validation; other scores have a single part. A unit is what
    # a bootstrap resamples: a pair of questions in task 3, otherwise a student. Students are
    # ordered by UserId.
    counts: npt.NDArray[np.int64]
    # Whether each answer was predicted right, shape (answers,). The answers are ordered by part,
    # within a part by unit, and within a unit by question.
    right: BoolArray
    # True if no answer belongs to several parts. False in task 3, where several experts judge the
    # same pair. Also False in task 4 if an answer is a target of several masks.
    distinct: bool

    def count_right(self) -> npt.NDArray[np.int64]:
        """Return the number of answers predicted right in each part and unit.

        The result has the shape (parts, units), like `counts`.
        """
        # For each answer, the index of its cell (its part and unit) in `counts.ravel()`.
        cell = np.repeat(np.arange(self.counts.size), self.counts.ravel())
        return np.bincount(cell[self.right], minlength=self.counts.size).reshape(self.counts.shape)


def of_predictions(answers: pd.DataFrame) -> Outcomes:
    """Return the outcomes of predictions.

    Parameters
    ----------
    answers
        A row for each answer, with the columns UserId, QuestionId, truth and predicted. If the
        answers are scored in several parts, such as masks or folds, the column `part` holds the
        number of each answer's part, from 0.
    """
    keys = pair_keys(answers["UserId"], answers["QuestionId"])
    truth = answers["truth"].to_numpy()
    predicted = answers["predicted"].to_numpy()
    part = answers["part"].to_numpy() if "part" in answers else np.zeros(len(keys), np.int8)
    # Sort the answers by student and question, then by part. The second sort is stable: it keeps
    # the order by student and question within each part.
    by_pair = np.argsort(keys)
    by_part = np.argsort(part[by_pair], kind="stable")
    order = by_pair[by_part]

    # `student` numbers the students from 0, by increasing UserId.
    student_ids, student = number_ids(answers["UserId"])
    n_students = len(student_ids)
    n_parts = int(part.max()) + 1
    # Count the answers of each student in each part. `bincount` needs one number for each answer:
    # the number of its cell in `counts`, where the cells are numbered row by row.
    cell = part.astype(np.int64) * n_students + student
    counts = np.bincount(cell, minlength=n_parts * n_students).reshape(n_parts, n_students)
    # Within a part, each pair of student and question appears only once. So if a pair appears
    # twice, its answer is in two parts, and `distinct` is False.
    distinct = n_parts == 1 or len(np.unique(keys)) == len(keys)
    fingerprint = _fingerprint_arrays(
        keys[order], part[order].astype(np.int32), truth[order].astype(np.int8)
    )
    is_right = truth == predicted
    return Outcomes(answers=fingerprint, counts=counts, right=is_right[order], distinct=distinct)


def of_judgements(judgements: pd.DataFrame, agrees: pd.DataFrame) -> Outcomes:
    """Return the outcomes of a ranking (task 3): whether it agrees with each judgement.

    Both tables have a row for each pair and a column for each expert. `agrees` is 1 if the ranking
    agrees with the judgement, 0 if not, and NaN if there is no judgement.
    """
    # The index holds a tuple for each pair: the left and the right QuestionId.
    question_pairs = np.array([*judgements.index], np.int64)
    left, right = question_pairs.T
    # In `Outcomes`, arrays have a row for each part and a column for each unit. Here a part is an
    # expert and a unit is a pair. The tables have a row for each pair, so transpose them.
    is_judged = agrees.notna().to_numpy().T
    is_agreed = agrees.to_numpy().T == 1
    # A judgement that is missing enters the fingerprint as 0.
    fingerprint = _fingerprint_arrays(left, right, judgements.fillna(0).to_numpy(np.int8).T)
    counts = is_judged.astype(np.int64)
    # `distinct` is False: several experts judge the same pair, so a pair belongs to several parts.
    return Outcomes(answers=fingerprint, counts=counts, right=is_agreed[is_judged], distinct=False)


def _fingerprint_arrays(*arrays: Array) -> str:
    """Return 16 hexadecimal digits that depend on types, shapes and values of arrays."""
    digest = sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def write(folder: Path, outcomes: Outcomes) -> str:
    """Write outcomes to a folder; return the file's name without its suffix.

    Equal outcomes get the same name, so the folder keeps them only once.
    """
    content = BytesIO()
    largest_count = int(outcomes.counts.max(initial=0))
    smallest_dtype = np.min_scalar_type(largest_count)
    np.savez_compressed(
        content,
        answers=np.array(outcomes.answers),
        counts=outcomes.counts.astype(smallest_dtype),
        right=np.packbits(outcomes.right),
        distinct=np.array(outcomes.distinct),
    )
    name = sha256(content.getvalue()).hexdigest()[:16]
    # `atomic_write` yields a list of open files, which has one element here.
    with writing.atomic_write(folder / f"{name}.npz") as (file,):
        file.write(content.getvalue())
    return name


def read(path: Path) -> Outcomes:
    """Read which answers a submission predicted right, from a file that `write` has written.

    Raises `InputError` if the file is missing, or its content has changed since.
    """
    reading.require_file(path)
    # `write` names a file after the digest of its content. If name and digest differ, the content
    # has changed, or another file was copied to this name.
    if fingerprints.digest(path)[:16] != path.stem:
        raise InputError(
            f"{path}: is damaged or holds other outcomes than the file that an evaluation wrote "
            "under this name, expected the unchanged file"
        )
    with np.load(path, allow_pickle=False) as file:
        counts = file["counts"].astype(np.int64)
        # `right` is packed: a byte holds eight answers. `counts` says how many answers there are in
        # all.
        right = np.unpackbits(file["right"], count=int(counts.sum())).astype(bool)
        return Outcomes(
            # The file holds only the fingerprint of the answers, not the answers.
            answers=str(file["answers"]),
            counts=counts,
            right=right,
            distinct=bool(file["distinct"]),
        )
