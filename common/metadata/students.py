"""Who the students are: gender, date of birth, pupil premium."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import schema
from common.answers import IntArray
from common.metadata.reading import find_described, read_whole, take
from common.schema import Column

import numpy as np
import numpy.typing as npt

# The challenge's answers were given at school from September 2018 to May 2020. Who was younger than
# four or older than twenty at the end of 2018 has given a wrong date of birth, as teachers do who
# try a quiz: 2.6 % of the official dates, which reach from 1756 to 9999. Both are inclusive.
FIRST_DATE_OF_BIRTH = np.datetime64("1998-01-01")
LAST_DATE_OF_BIRTH = np.datetime64("2014-12-31")

UNSPECIFIED, FEMALE, MALE, OTHER = range(4)


@dataclass(frozen=True)
class StudentMetadata:
    """Who students are, one row for each student asked for, as equally long columns.

    Attributes
    ----------
    gender
        0 unspecified, 1 female, 2 male, 3 other, int8; -1 for a student who is not listed.
    date_of_birth
        DateOfBirth, first of a month, datetime64[D]; NaT where missing or nonsense, that is before
        `FIRST_DATE_OF_BIRTH` or after `LAST_DATE_OF_BIRTH`.
    premium_pupil
        1 entitled to pupil premium (financial need), 0 not, int8; -1 where missing.
    """

    gender: npt.NDArray[np.int8]
    date_of_birth: npt.NDArray[np.datetime64]
    premium_pupil: npt.NDArray[np.int8]


def read_student_metadata(path: Path, student_id: IntArray) -> StudentMetadata:
    """Read the metadata of given students.

    Parameters
    ----------
    path
        A `student_metadata_task_….csv`. Gender, DateOfBirth and PremiumPupil may be left out, but
        not all three.
    student_id
        UserIds, shape (n,), in any order; the same one may be there often.

    Returns
    -------
    StudentMetadata
        n rows, in the order of `student_id`; all values missing for one who is not listed.

    Raises
    ------
    InputError
        If the file is not as expected, names a student twice, or describes none of the students.
    """
    optional = (schema.GENDER, schema.DATE_OF_BIRTH, schema.PREMIUM_PUPIL)
    data = read_whole(path, [schema.USER_ID], optional)
    rows = find_described(path, schema.USER_ID, data["UserId"], student_id)

    def column(column: Column, missing: Any) -> npt.NDArray[Any]:
        if column.name not in data:
            return np.full(len(rows), missing, column.dtype)
        return take(data[column.name], rows, missing)

    birth = column(schema.DATE_OF_BIRTH, np.datetime64("NaT")).astype("datetime64[D]")
    # NaT fails both comparisons.
    birth[~((birth >= FIRST_DATE_OF_BIRTH) & (birth <= LAST_DATE_OF_BIRTH))] = np.datetime64("NaT")
    premium = column(schema.PREMIUM_PUPIL, np.nan)
    return StudentMetadata(
        gender=column(schema.GENDER, -1),
        date_of_birth=birth,
        premium_pupil=np.where(np.isnan(premium), -1, premium).astype(np.int8),
    )
