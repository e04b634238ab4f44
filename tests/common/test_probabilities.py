"""Files of probabilities: pandas can write and read them, and faults are named."""

from pathlib import Path
from typing import Any

from common.errors import InputError
from common.probabilities import read_probabilities, write_probabilities

import numpy as np
import pandas as pd
import pytest

STUDENT = np.array([7, 7, 2, 5], np.int32)
QUESTION = np.array([1, 0, 3, 1], np.int32)
P_RIGHT = np.array([0.25, 1.0, 0.0, 0.5])
P_OPTION = np.array([[1, 0, 0, 0], [0.25] * 4, [0.1, 0.2, 0.3, 0.4], [0, 0, 0.5, 0.5]])


def frame(**changes: Any) -> pd.DataFrame:
    """Return probabilities of right answers, with some columns changed."""
    columns = {"UserId": STUDENT, "QuestionId": QUESTION, "ProbabilityCorrect": P_RIGHT}
    return pd.DataFrame({**columns, **changes})


def options_frame(p: Any = P_OPTION) -> pd.DataFrame:
    """Return probabilities of options."""
    columns = {f"ProbabilityOption{k + 1}": np.asarray(p)[:, k] for k in range(4)}
    return frame(**columns).drop(columns="ProbabilityCorrect")


def test_a_file_that_pandas_has_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    frame().astype({"UserId": "int64"}).to_parquet(path)
    probabilities = read_probabilities(path, 1)
    assert probabilities.value[:, 1].tolist() == P_RIGHT.tolist()
    assert probabilities.record is None


def test_pandas_reads_a_file_of_task_4_with_its_masks(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    masks = ["IsTarget_0", "IsTarget_0", "IsTarget_1", "IsTarget_1"]
    write_probabilities(frame(Mask=masks), 4, P_RIGHT, path)
    found = pd.read_parquet(path)
    assert list(found) == ["Mask", "UserId", "QuestionId", "ProbabilityCorrect"]
    assert found.Mask.tolist() == masks
    assert found.ProbabilityCorrect.tolist() == P_RIGHT.tolist()


NAN = float("nan")
# Each fault is a task, the table in a file for this task, and a regular expression that must match
# the message with which the file is refused.
FAULTS: list[tuple[int, pd.DataFrame, str]] = [
    (1, frame(ProbabilityCorrect=[0.1, 1.5, -2, 0]), "row 2 is 1.5 .2 such rows., expected a num"),
    (1, frame(ProbabilityCorrect=list("abcd")), "holds str, expected numbers"),
    (1, frame(ProbabilityCorrect=P_RIGHT > 0), "holds bool, expected numbers"),
    (1, frame(QuestionId=[0, 1, 2, None]), "'QuestionId': row 4 is empty .1 such rows., exp"),
    (1, frame(UserId=STUDENT.astype(np.uint64) + 2**63), "'UserId': row 1 is 9223372036854775815"),
    (1, frame(UserId=[7.0, 7, 2, 5]), "column 'UserId' holds float64, expected whole numbers"),
    (1, frame(UserId=[7, 7, 2, 7]), "row 4 repeats UserId 7 and QuestionId 1 .1 such rows., exp"),
    (1, frame().iloc[:0], "has no rows"),
    (1, options_frame(), "column 'ProbabilityCorrect' is missing .* found 'UserId'"),
    (2, options_frame(P_OPTION * 0.99), "row 1: .* sum to 0.9900 .4 such rows., expected 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "content", "expected"), [pytest.param(*fault, id=fault[2]) for fault in FAULTS]
)
def test_a_fault_is_told_in_one_line(
    tmp_path: Path, task: int, content: pd.DataFrame, expected: str
) -> None:
    path = tmp_path / "p.parquet"
    content.to_parquet(path)
    with pytest.raises(InputError, match=expected) as fault:
        read_probabilities(path, task)
    assert str(path) in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"file not found; the folder holds no \.parquet file"):
        read_probabilities(tmp_path / "p.parquet", 1)


@pytest.mark.parametrize("damage", ["empty", "CSV", "cut off", "a changed value"])
def test_a_file_of_another_format_or_a_damaged_one_is_refused(tmp_path: Path, damage: str) -> None:
    """`damage` names one of several contents that replace a valid Parquet file."""
    path = tmp_path / "p.parquet"
    write_probabilities(frame(), task=1, probability=P_RIGHT, path=path)
    valid = path.read_bytes()
    # Where the first byte of the first probability lies in the file.
    position = valid.index(P_RIGHT.astype(np.float32).tobytes())
    contents = {
        "empty": b"",
        "CSV": b"UserId,QuestionId\n",
        "cut off": valid[:-100],
        # Only a checksum reveals that one byte of a probability differs.
        "a changed value": valid[:position] + b"\1" + valid[position + 1 :],
    }

    path.write_bytes(contents[damage])

    with pytest.raises(InputError, match="is not a Parquet file, or a damaged one, expected"):
        read_probabilities(path, 1)


@pytest.mark.parametrize(
    ("task", "p", "expected"),
    [
        pytest.param(1, P_RIGHT[:3], r"have shape \(3,\), expected \(4,\)", id="too few"),
        pytest.param(2, P_RIGHT, r"have shape \(4,\), expected \(4, 4\)", id="of another task"),
        pytest.param(1, [0, 1, NAN, 0], "row 3 would be nan", id="NaN"),
        pytest.param(2, P_OPTION / 2, "sum to 0.5", id="sum below 1"),
    ],
)
def test_a_model_s_invalid_probabilities_are_not_written(
    tmp_path: Path, task: int, p: Any, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        write_probabilities(frame(), task, np.asarray(p), tmp_path / "p.parquet")
    assert not list(tmp_path.iterdir())
