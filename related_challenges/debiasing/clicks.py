"""Files and metrics of the debiasing challenge: clicks, recommendations, and how rare an item is.

The files have no header and are not in order of time. Phase T of the challenge, 0 to 9, has its own
files; a user belongs to the test users of phase ``user_id mod 11``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import challenge, io
from common.answers import find_repeats
from common.errors import InputError, Report, stop
from common.schema import Column

import numpy as np
import numpy.typing as npt

N_RECOMMENDED = 50
PHASES = range(10)
USER_MODULUS = 11
ANSWERS = "debias_track_answer.csv"

# Users and items index arrays directly, so they are bounded; the challenge's are below 200,000.
_USER = Column("user_id", high=9_999_999)
_ITEM = Column("item_id", high=9_999_999)
_TIME = Column("time", "float64", 0, 1, whole=False)
_DEGREE = Column("item_degree")
_PHASE = Column("phase_id", high=max(PHASES))
_CLICK_COLUMNS = (_USER, _ITEM, _TIME)
_QUERY_COLUMNS = (_USER, _TIME)
_ANSWER_COLUMNS = (_PHASE, _USER, _ITEM, _DEGREE)
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


@dataclass(frozen=True)
class Clicks:
    """Clicks of users on items, as equally long columns.

    Attributes
    ----------
    user, item
        Ids, int32.
    time
        Moment of the click between 0 and 1, float64.
    """

    user: IntArray
    item: IntArray
    time: FloatArray

    def __len__(self) -> int:
        """Count the clicks."""
        return len(self.user)

    def take(self, rows: npt.NDArray[Any]) -> "Clicks":
        """Return some of the clicks, by row numbers or a boolean for each."""
        return Clicks(self.user[rows], self.item[rows], self.time[rows])


@dataclass(frozen=True)
class TargetClicks:
    """The clicks to be predicted, one for each test user, as equally long columns.

    Attributes
    ----------
    phase, user, item
        Phase of the challenge, and who clicked on what; int32.
    degree
        How often the item was clicked in the files up to that phase, int32.
    """

    phase: IntArray
    user: IntArray
    item: IntArray
    degree: IntArray


def find_phases(folder: Path) -> list[int]:
    """Find the phases whose training clicks lie in a folder.

    Raises
    ------
    InputError
        If there are none.
    """
    phases = [phase for phase in PHASES if io.is_there(folder / train_clicks_name(phase))]
    if not phases:
        io.require_file(folder / train_clicks_name(0))
    return phases


def read_clicks(path: Path) -> Clicks:
    """Read a file of clicks: user, item, time.

    Raises
    ------
    InputError
        If a value is missing or wrong.
    """
    data = _read(_source(path, _CLICK_COLUMNS), _CLICK_COLUMNS)
    return Clicks(data["user_id"], data["item_id"], data["time"])


def write_clicks(path: Path, clicks: Clicks) -> None:
    """Write a file of clicks, atomically."""
    _write(path, _CLICK_COLUMNS, (clicks.user, clicks.item, clicks.time))


def read_query_users(path: Path) -> IntArray:
    """Read the test users of a phase, each once; as `read_queries`."""
    return read_queries(path)[0]


def read_queries(path: Path) -> tuple[IntArray, FloatArray]:
    """Read the test users of a phase, each once, and the times of the clicks to be predicted.

    Returns
    -------
    user : array of int32, shape (users,)
    time : array of float64, shape (users,)

    Raises
    ------
    InputError
        If a value is missing or wrong, or a user appears twice.
    """
    source = _source(path, _QUERY_COLUMNS)
    data = _read(source, _QUERY_COLUMNS)
    _require_distinct_users(path, data["user_id"], source.row_number)
    return data["user_id"], data["time"]


def write_query_times(path: Path, user: IntArray, time: FloatArray) -> None:
    """Write the test users of a phase with the time of the click to be predicted."""
    _write(path, _QUERY_COLUMNS, (user, time))


def write_answers(path: Path, answers: TargetClicks) -> None:
    """Write the clicks to be predicted, as phase_id, user_id, item_id, item_degree."""
    columns = (answers.phase, answers.user, answers.item, answers.degree)
    _write(path, _ANSWER_COLUMNS, columns)


def read_answers(path: Path) -> TargetClicks:
    """Read the clicks to be predicted.

    Raises
    ------
    InputError
        If a value is missing or wrong, a user appears twice or belongs to another phase.
    """
    source = _source(path, _ANSWER_COLUMNS)
    data = _read(source, _ANSWER_COLUMNS)
    _require_distinct_users(path, data["user_id"], source.row_number)
    other = np.flatnonzero(data["user_id"] % USER_MODULUS != data["phase_id"])
    if len(other):
        row = int(other[0])
        raise InputError(
            f"{path}: column 'phase_id': row {source.row_number(row)} is "
            f"{data['phase_id'][row]} for user "
            f"{data['user_id'][row]} ({len(other)} such rows), expected user_id mod {USER_MODULUS}"
        )
    return TargetClicks(data["phase_id"], data["user_id"], data["item_id"], data["item_degree"])


def write_recommendations(path: Path, user: IntArray, items: IntArray) -> None:
    """Write a submission: for every test user fifty items, best first.

    Parameters
    ----------
    path
        Where the CSV goes.
    user
        Test users of all phases, shape (users,).
    items
        Shape (users, 50).

    Raises
    ------
    InputError
        If a user appears twice or does not have fifty different items.
    """
    _check_recommendations(path, user, items, lambda row: row + 1)
    names = (column.name for column in _RECOMMENDATION_COLUMNS)
    columns = dict(zip(names, (user, *items.T), strict=True))
    challenge.write_submission(path, columns, header=False)


def read_recommendations(path: Path, report: Report = stop) -> tuple[IntArray, IntArray]:
    """Read and check a submission; `report` says what to do with a fault.

    Returns
    -------
    user : array of int32, shape (users,)
    items : array of int32, shape (users, 50)

    Raises
    ------
    InputError
        If a user appears twice or does not have exactly fifty different items.
    """
    source = _source(path, _RECOMMENDATION_COLUMNS)
    data = io.read_columns(source, _RECOMMENDATION_COLUMNS, report)
    user, *items = (data[column.name] for column in _RECOMMENDATION_COLUMNS)
    stacked = np.stack(items, axis=1)
    _check_recommendations(path, user, stacked, source.row_number, report)
    return user, stacked


def select_users(
    path: Path, user: IntArray, items: IntArray, wanted: IntArray, report: Report = stop
) -> IntArray:
    """Return the items recommended to the users wanted; further users are ignored.

    Parameters
    ----------
    path
        The submission, for messages.
    user, items
        As from `read_recommendations`.
    wanted
        Users to be scored, shape (wanted,).
    report
        What to do with a fault.

    Returns
    -------
    array of int32, shape (wanted, 50)

    Raises
    ------
    InputError
        If one of them is missing.
    """
    order = np.argsort(user)
    place = np.minimum(np.searchsorted(user, wanted, sorter=order), len(user) - 1)
    rows = order[place]
    missing = wanted[user[rows] != wanted]
    if len(missing):
        shown = ", ".join(map(str, missing[: io.SHOWN]))
        report(
            f"{path}: {len(missing)} of {len(wanted)} test users are missing, first user_id "
            f"{shown}, expected a row for each"
        )
    return items[rows]


def rank_of_answer(items: IntArray, answer: IntArray) -> npt.NDArray[np.int64]:
    """Find the rank, from 0, at which the item clicked was recommended; 50 if it was not.

    Parameters
    ----------
    items
        Shape (users, 50).
    answer
        The item that each user clicked, shape (users,).
    """
    found = items == answer[:, None]
    return np.where(found.any(axis=1), found.argmax(axis=1), N_RECOMMENDED)


@dataclass(frozen=True)
class PhaseScore:
    """The four metrics of one phase, each from 0 to 1, and what they rest on.

    ``full`` is over all users, ``half`` over those whose item is rare: its degree is at most the
    median degree of the items clicked.
    """

    ndcg_full: float
    ndcg_half: float
    hit_rate_full: float
    hit_rate_half: float
    n_full: int
    n_half: int


def score_phase(rank: IntArray, degree: IntArray) -> PhaseScore:
    """Score one phase by NDCG@50 and hit rate@50.

    Parameters
    ----------
    rank
        Rank of each user's item among the recommendations, from 0; 50 where it is not there.
    degree
        How often each user's item was clicked, shape (users,).
    """
    gain = np.where(rank < N_RECOMMENDED, 1 / np.log2(rank + 2), 0.0)
    hit = rank < N_RECOMMENDED
    rare = degree <= np.sort(degree)[len(degree) // 2]
    return PhaseScore(
        ndcg_full=float(gain.mean()),
        ndcg_half=float(gain[rare].mean()),
        hit_rate_full=float(hit.mean()),
        hit_rate_half=float(hit[rare].mean()),
        n_full=len(rank),
        n_half=int(rare.sum()),
    )


def _source(path: Path, columns: tuple[Column, ...]) -> io.Source:
    return io.file_source(path, tuple(column.name for column in columns))


def _read(source: io.Source, columns: tuple[Column, ...]) -> io.Columns:
    return io.read_columns(source, columns)


def _write(path: Path, columns: tuple[Column, ...], values: tuple[npt.NDArray[Any], ...]) -> None:
    names = (column.name for column in columns)
    io.write_csv(path, dict(zip(names, values, strict=True)), header=False)


def _require_distinct_users(
    path: Path, user: IntArray, row_number: Callable[[int], int], report: Report = stop
) -> None:
    repeats = find_repeats(user.astype(np.int64))
    # A cell that was reported as faulty is negative.
    repeats = repeats[user[repeats] >= 0]
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
    _require_distinct_users(path, user, row_number, report)
    ordered = np.sort(items, axis=1)
    repeated = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if items.shape != (len(user), N_RECOMMENDED) or repeated.any():
        row = int(repeated.argmax())
        found = len(np.unique(items[row]))
        report(
            f"{path}: row {row_number(row)}: user {user[row]} has {found} different items "
            f"({int(repeated.sum())} such rows), expected {N_RECOMMENDED}"
        )
