"""Student metadata: gender, date of birth without nonsense, pupil premium."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from common.metadata import read_student_metadata

Write = Callable[[str, str | bytes], Path]
HEADER = "UserId,Gender,DateOfBirth,PremiumPupil\n"


def test_students_are_joined_by_id(write: Write) -> None:
    path = write(
        "students.csv",
        HEADER
        + "4,2,2006-08-01 00:00:00.000,1.0\n"
        + "900000000,0,,\n"
        + "2,1,2008-11-01 00:00:00.000,0.0\n"
        + "3,3,2008-11-01 00:00:00.000,\n",
    )
    found = read_student_metadata(path, np.array([3, 4, 5, 4, 900000000, 2]))
    assert found.gender.tolist() == [3, 2, -1, 2, 0, 1]
    dates = ["2008-11-01", "2006-08-01", "NaT", "2006-08-01", "NaT", "2008-11-01"]
    expected = np.array(dates, "datetime64[D]")
    assert np.array_equal(found.date_of_birth, expected, equal_nan=True)
    assert found.date_of_birth.dtype == "datetime64[D]"
    assert found.premium_pupil.tolist() == [-1, 1, -1, 1, -1, 0]
    assert found.gender.dtype == found.premium_pupil.dtype == np.int8


def test_nonsense_dates_of_birth_are_missing(write: Write) -> None:
    nonsense = ["1756-03-01", "1997-12-01", "2015-01-01", "9999-12-01"]
    dates = ["1998-01-01", "2014-12-31", *nonsense]
    rows = "".join(f"{place},2,{date} 23:59:00.000,1.0\n" for place, date in enumerate(dates))
    found = read_student_metadata(write("students.csv", HEADER + rows), np.arange(6))
    expected = np.array([*dates[:2], *["NaT"] * 4], "datetime64[D]")
    assert np.array_equal(found.date_of_birth, expected, equal_nan=True)


def test_columns_that_are_not_there_are_not_known(write: Write) -> None:
    path = write("students.csv", "PremiumPupil,UserId\n1,4\n,5\n")
    found = read_student_metadata(path, np.array([5, 4]))
    assert found.premium_pupil.tolist() == [-1, 1]
    assert found.gender.tolist() == [-1, -1]
    assert np.isnat(found.date_of_birth).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("4,4,,\n", "column 'Gender': row 2 is '4', expected a whole number from 0 to 3"),
        ("4,1,2006-13-01,\n", "column 'DateOfBirth': row 2 is '2006-13-01', expected a date such"),
        ("4,1,,2.0\n", "column 'PremiumPupil': row 2 is '2.0', expected a whole number from 0 to"),
        ("4,1,,\n5,1,,\n4,2,,\n", "column 'UserId': row 4 repeats 4 of row 2"),
        ("5,1,,\n", "column 'UserId': holds none of the 2 asked for; the file belongs to other"),
        ("4,1,,\n5,1,,", "row 3 has no line end; is the file cut off"),
    ],
)
def test_faulty_student_metadata(write: Write, rows: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_student_metadata(write("students.csv", HEADER + rows), np.array([4, 8]))


@pytest.mark.parametrize(
    "name",
    [
        "eedi_tasks_1_2_sample/metadata/student_metadata_task_1_2.csv",
        "eedi_tasks_3_4/metadata/student_metadata_task_3_4.csv",
    ],
)
def test_real_student_metadata(real_data: Path, name: str) -> None:
    """Official files beside pandas, which reads the dates as text."""
    path = real_data / name
    frame = pd.read_csv(path, dtype={"DateOfBirth": str}).sort_values("UserId")
    found = read_student_metadata(path, frame.UserId.to_numpy())
    assert np.array_equal(found.gender, frame.Gender)
    assert np.array_equal(found.premium_pupil, frame.PremiumPupil.fillna(-1))
    year = frame.DateOfBirth.str[:4].fillna("0").astype(int)
    is_known = ~np.isnat(found.date_of_birth)
    assert np.array_equal(is_known, year.between(1998, 2014))
    known = found.date_of_birth[is_known].astype(str)
    assert np.array_equal(known, frame.DateOfBirth.str[:10][is_known])
