"""Files and metrics of the debiasing challenge: clicks, recommendations, and how rare an item is.

The files have no header and are not in order of time; they are read as DataFrames with the columns
named below. Phase T of the challenge, 0 to 9, has its own files; a user belongs to the test users
of phase ``user_id mod 11``.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import challenge, io
from common.errors import InputError, Report, stop
from common.schema import Column

import numpy as np
import numpy.typing as npt
import pandas as pd

N_RECOMMENDED = 50
PHASES = range(10)
USER_MODULUS = 11
ANSWERS = "debias_track_answer.csv"
METRICS = ("NDCG@50 full", "NDCG@50 half", "hit rate@50 full", "hit rate@50 half")

# Users and items index arrays directly, so they are bounded; the challenge's are below 200,000.
_USER = Column("user_id", high=9_999_999)
_ITEM = Column("item_id", high=9_999_999)
_TIME = Column("time", "float64", 0, 1, whole=False)
_CLICK_COLUMNS = (_USER, _ITEM, _TIME)
_QUERY_COLUMNS = (_USER, _TIME)
_ANSWER_COLUMNS = (Column("phase_id", high=max(PHASES)), _USER, _ITEM, Column("item_degree"))
_RECOMMENDATION_COLUMNS = (
    _USER,
    *(Column(f"item_{place}", high=_ITEM.high) for place in range(1, N_RECOMMENDED + 1)),
)

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]


def train_clicks_name(phase: int) -> str:
    """Name of the clicks of the users who are not test users of a phase."""
    return f"underexpose_train_click-{phase}.csv"


def test_clicks_name(phase: int) -> str:
    """Name of the clicks of the test users of a phase, before the click to be predicted."""
    return f"underexpose_test_click-{phase}.csv"


def query_times_name(phase: int) -> str:
    """Name of the test users of a phase, with the time of the click to be predicted."""
    return f"underexpose_test_qtime-{phase}.csv"


def find_phases(folder: Path) -> list[int]:
    """Find the phases whose training clicks lie in a folder; there must be one."""
    phases = [phase for phase in PHASES if io.is_there(folder / train_clicks_name(phase))]
    if not phases:
        io.require_file(folder / train_clicks_name(0))
    return phases


def read_clicks(*paths: Path) -> pd.DataFrame:
    """Read files of clicks, one after the other: user_id, item_id, time from 0 to 1."""
    return pd.concat([_read(path, _CLICK_COLUMNS)[0] for path in paths], ignore_index=True)


def read_queries(path: Path) -> pd.DataFrame:
    """Read the test users of a phase, each once: user_id, time of the click to be predicted."""
    queries, row_number = _read(path, _QUERY_COLUMNS)
    _require_distinct_users(path, queries["user_id"], row_number)
    return queries


def read_answers(path: Path) -> pd.DataFrame:
    """Read the clicks to be predicted, each user once: phase_id, user_id, item_id, item_degree."""
    answers, row_number = _read(path, _ANSWER_COLUMNS)
    _require_distinct_users(path, answers["user_id"], row_number)
    other = np.flatnonzero(answers["user_id"] % USER_MODULUS != answers["phase_id"])
    if len(other):
        phase, user, *_ = answers.iloc[other[0]]
        raise InputError(
            f"{path}: column 'phase_id': row {row_number(int(other[0]))} is {phase} for user "
            f"{user} ({len(other)} such rows), expected user_id mod {USER_MODULUS}"
        )
    return answers


def write(path: Path, frame: pd.DataFrame) -> None:
    """Write a file of the challenge, which has no header."""
    io.write_csv(path, {str(name): frame[name].to_numpy() for name in frame}, header=False)


def split_latest(clicks: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the latest click of every user, in order of users, and the other clicks, as they lie.

    Of several clicks at the same moment the last in the file counts as the latest.
    """
    ordered = clicks.iloc[np.lexsort((clicks["time"], clicks["user_id"]))]
    latest = ordered[~ordered["user_id"].duplicated(keep="last")]
    return latest, clicks.drop(latest.index)


def write_recommendations(path: Path, user: IntArray, items: IntArray) -> None:
    """Write a submission: for the test users of all phases fifty items, (users, 50), best first."""
    _check_recommendations(path, user, items, lambda row: row + 1)
    names = (column.name for column in _RECOMMENDATION_COLUMNS)
    columns = dict(zip(names, (user, *items.T), strict=True))
    challenge.write_submission(path, columns, header=False)


def read_recommendations(path: Path, report: Report = stop) -> pd.DataFrame:
    """Read and check a submission: the fifty items of every user, in the order of the file."""
    found, row_number = _read(path, _RECOMMENDATION_COLUMNS, report)
    found = found.set_index("user_id")
    _check_recommendations(path, found.index.to_numpy(), found.to_numpy(), row_number, report)
    return found


def select_users(
    path: Path, recommended: pd.DataFrame, wanted: IntArray, report: Report = stop
) -> IntArray:
    """Return the items recommended to the users wanted, (wanted, 50); others are ignored."""
    missing = wanted[~np.isin(wanted, recommended.index)]
    if len(missing):
        shown = ", ".join(map(str, missing[: io.SHOWN]))
        report(
            f"{path}: {len(missing)} of {len(wanted)} test users are missing, first user_id "
            f"{shown}, expected a row for each"
        )
    first = recommended[~recommended.index.duplicated()]
    return first.reindex(wanted, fill_value=-1).to_numpy()


def rank_of_answer(items: IntArray, answer: IntArray) -> IntArray:
    """Find at which rank, from 0, each user's answer is among the items, (users, 50); else 50."""
    found = items == answer[:, None]
    return np.where(found.any(axis=1), found.argmax(axis=1), N_RECOMMENDED)


def is_rare(degree: IntArray) -> npt.NDArray[np.bool_]:
    """Tell of which clicks of a phase the item is rare: its degree is at most the median one."""
    return np.asarray(degree <= np.sort(degree)[len(degree) // 2])


def score_phase(rank: IntArray, degree: IntArray) -> list[float]:
    """Score one phase by `METRICS`: over all users, and over those whose item is rare ("half").

    Given are the rank of each user's item, as from `rank_of_answer`, and how often it was clicked.
    """
    hit, rare = rank < N_RECOMMENDED, is_rare(degree)
    gain = np.where(hit, 1 / np.log2(rank + 2), 0.0)
    return [float(values.mean()) for values in (gain, gain[rare], hit, hit[rare])]


def _read(
    path: Path, columns: Sequence[Column], report: Report = stop
) -> tuple[pd.DataFrame, Callable[[int], int]]:
    """Read a file, and return what says in which row of it a row of the frame lies."""
    source = io.file_source(path, tuple(column.name for column in columns))
    return pd.DataFrame(io.read_columns(source, columns, report)), source.row_number


def _require_distinct_users(
    path: Path, user: "pd.Series[int]", row_number: Callable[[int], int], report: Report = stop
) -> None:
    # A cell that was reported as faulty is negative.
    repeats = np.flatnonzero(user.duplicated() & (user >= 0))
    if len(repeats):
        row = int(repeats[0])
        report(
            f"{path}: column 'user_id': row {row_number(row)} repeats user {user[row]} "
            f"({len(repeats)} such rows), expected each once"
        )


def _check_recommendations(
    path: Path,
    user: IntArray,
    items: IntArray,
    row_number: Callable[[int], int],
    report: Report = stop,
) -> None:
    _require_distinct_users(path, pd.Series(user), row_number, report)
    ordered = np.sort(items, axis=1)
    repeated = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if items.shape != (len(user), N_RECOMMENDED) or repeated.any():
        row = int(repeated.argmax())
        found = len(np.unique(items[row]))
        report(
            f"{path}: row {row_number(row)}: user {user[row]} has {found} different items "
            f"({int(repeated.sum())} such rows), expected {N_RECOMMENDED}"
        )
