"""Files and metrics of the debiasing challenge: clicks, recommendations, and how rare an item is.

The challenge has ten phases, 0 to 9, each with its own files. The files have no header, and their
rows are not in order of time. A user is a test user of phase ``user_id mod 11``, if there is one.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from common import reading
from common.answers import require_distinct
from common.arrays import IntArray
from common.errors import InputError, Report, stop
from common.schema import FLOAT64, Column
from related_challenges import challenge

import numpy as np
import pandas as pd

N_RECOMMENDED = 50
PHASES = range(10)
FINAL_PHASES = range(7, 10)
USER_MODULUS = 11

# Files of a phase, whose number is filled in. Clicks of the training users:
TRAIN_CLICKS = "underexpose_train_click-{}.csv"
# Clicks of the test users before the click to predict:
TEST_CLICKS = "underexpose_test_click-{}.csv"
# Test users and the time of the click to predict:
QUERY_TIMES = "underexpose_test_qtime-{}.csv"
# The click to predict, where it is known:
TRUE_CLICKS = "underexpose_test_qtime_with_answer-{}.csv"
# The clicks to predict in all phases, with the degrees of their items.
ANSWERS = "debias_track_answer.csv"
METRICS = ("NDCG@50 full", "NDCG@50 half", "hit rate@50 full", "hit rate@50 half")

# Ids are bounded because they index arrays; those of the challenge are below 200,000.
_USER = Column("user_id", high=9_999_999)
_ITEM = Column("item_id", high=9_999_999)
_TIME = Column("time", FLOAT64, 0, 1, whole=False)
_ANSWER_COLUMNS = (Column("phase_id", high=max(PHASES)), _USER, _ITEM, Column("item_degree"))
_ITEM_COLUMNS = [Column(f"item_{n}", high=_ITEM.high) for n in range(1, N_RECOMMENDED + 1)]


# ---- Phases ----------------------------------------------------------------------------------


def find_phases(folder: Path) -> list[int]:
    """Return the phases whose training clicks are in a folder.

    Raises
    ------
    InputError
        If there is none.
    """
    phases = [phase for phase in PHASES if reading.is_there(folder / TRAIN_CLICKS.format(phase))]
    if not phases:
        reading.require_file(folder / TRAIN_CLICKS.format(0))
    return phases


def add_phase(p: argparse.ArgumentParser) -> None:
    """Add the flag --phase: the phase of the challenge at which a submission is scored."""
    help_text = "at phase T: 0 to T count, from 7 on 7 to T (default: all phases that are there)"
    p.add_argument("--phase", type=int, choices=PHASES, metavar="T", help=help_text)


def phases_at(phase: int | None, available: Sequence[int], path: Path) -> list[int]:
    """Return the phases that count when a submission is scored at a phase of the challenge.

    Parameters
    ----------
    phase : int or None
        Phase of the challenge; None to count all available phases.
    available : sequence of int
        Phases that the files hold.
    path : Path
        File or folder with these phases, for messages.

    Raises
    ------
    InputError
        If a phase that counts is not available.
    """
    if phase is None:
        return list(available)
    first = FINAL_PHASES[0] if phase in FINAL_PHASES else PHASES[0]
    counted = list(range(first, phase + 1))
    if not set(counted) <= set(available):
        shown = ", ".join(map(str, available))
        expected = ", ".join(map(str, counted))
        raise InputError(f"{path}: holds the phases {shown}, --phase {phase} expects {expected}")
    return counted


# ---- Clicks ----------------------------------------------------------------------------------


def read_clicks(*paths: Path) -> pd.DataFrame:
    """Read the clicks of several files, one file after the other.

    Returns
    -------
    DataFrame
        Columns user_id and item_id, int64, and time, float64, from 0 to 1.
    """
    return pd.concat([_read(path, (_USER, _ITEM, _TIME)) for path in paths], ignore_index=True)


def read_queries(path: Path) -> pd.DataFrame:
    """Read the test users of a phase.

    Returns
    -------
    DataFrame
        Columns user_id, each once, and time, that of the click to predict.
    """
    return _read(path, (_USER, _TIME), once=True)


def split_latest(clicks: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split clicks into the latest click of every user, in order of users, and all other clicks.

    If several clicks of a user are the latest, the last row of these is taken.
    """
    ordered = clicks.iloc[np.lexsort((clicks["time"], clicks["user_id"]))]
    latest = ordered.drop_duplicates("user_id", keep="last")
    return latest, clicks.drop(latest.index)


def read_answers(path: Path) -> pd.DataFrame:
    """Read the clicks to predict of all phases.

    If the file `ANSWERS` is missing, but there are files `TRUE_CLICKS` beside it, the table is made
    of these and of the clicks. The training clicks are then in the same folder, or, after a local
    split, in the folder `train_data`.

    Returns
    -------
    DataFrame
        Columns phase_id, user_id (each once), item_id and item_degree.

    Raises
    ------
    InputError
        If a file is missing or faulty, or if a user belongs to another phase.
    """
    folder = path.parent
    has_true_clicks = any(folder.glob(TRUE_CLICKS.format("*")))
    if reading.is_there(path) or path.name != ANSWERS or not has_true_clicks:
        return _read_answers(path, _ANSWER_COLUMNS)
    has_train_clicks = any(folder.glob(TRAIN_CLICKS.format("*")))
    train = folder if has_train_clicks else folder.parent / challenge.TRAIN
    parts = []
    for phase in find_phases(train):
        clicks = read_clicks(train / TRAIN_CLICKS.format(phase), folder / TEST_CLICKS.format(phase))
        answer_path = folder / TRUE_CLICKS.format(phase)
        if reading.is_there(answer_path):
            answers = _read_answers(answer_path, (_USER, _ITEM, _TIME), phase_id=phase)
        else:
            answers = clicks.head(0)
        parts.append((phase, clicks, answers))
    return count_degrees(parts)


def count_degrees(parts: Iterable[tuple[int, pd.DataFrame, pd.DataFrame]]) -> pd.DataFrame:
    """Add the degrees of items to the clicks to predict.

    Parameters
    ----------
    parts : iterable of (phase, clicks, answers)
        Known clicks and clicks to predict, phase by phase in increasing order.

    Returns
    -------
    DataFrame
        Columns phase_id, user_id, item_id and item_degree. The degree of an item is how many of the
        known clicks up to this phase are on it.
    """
    degree = pd.Series(dtype=int)
    tables = []
    for phase, clicks, answers in parts:
        degree = degree.add(clicks["item_id"].value_counts(), fill_value=0)
        item_degree = answers["item_id"].map(degree).fillna(0).astype(int)
        tables.append(answers.assign(phase_id=phase, item_degree=item_degree))
    return pd.concat(tables, ignore_index=True)[[column.name for column in _ANSWER_COLUMNS]]


# ---- Recommendations -------------------------------------------------------------------------


def read_recommendations(path: Path, report: Report = stop) -> pd.DataFrame:
    """Read and check a submission.

    Parameters
    ----------
    path : Path
        The submission.
    report : callable
        Called with the message about each fault; by default it raises `InputError`.

    Returns
    -------
    DataFrame
        A row for each user in the file's order, indexed by user_id, with 50 columns of item ids.
    """
    columns = (_USER, *_ITEM_COLUMNS)
    source = _source(path, columns)
    recommended = _read(path, columns, report, once=True).set_index(_USER.name)
    ordered = np.sort(recommended, axis=1)
    # A cell that was reported as faulty is negative.
    is_repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    is_faulty = is_repeated.any(axis=1)
    if is_faulty.any():
        row = int(is_faulty.argmax())
        n_different = recommended.iloc[row].nunique()
        report(
            f"{path}: row {source.row_number(row)}: user {recommended.index[row]} has "
            f"{n_different} different items ({is_faulty.sum()} such rows), expected {N_RECOMMENDED}"
        )
    return recommended


def select_users(
    path: Path, recommended: pd.DataFrame, wanted: IntArray, report: Report = stop
) -> IntArray:
    """Return the items recommended to some users; rows of other users are ignored.

    Parameters
    ----------
    path : Path
        The submission, for messages.
    recommended : DataFrame
        Items by user; see `read_recommendations`.
    wanted : ndarray of int64, shape (users,)
        Ids of the users.
    report : callable
        Called with the message about missing users; by default it raises `InputError`.

    Returns
    -------
    ndarray of int64, shape (users, 50)
        Ids of items, -1 for a missing user.
    """
    missing = np.setdiff1d(wanted, recommended.index)
    if len(missing):
        shown = ", ".join(map(str, missing[: reading.SHOWN]))
        report(
            f"{path}: {len(missing)} of {len(wanted)} test users are missing, first user_id "
            f"{shown}, expected a row for each"
        )
    first = recommended[~recommended.index.duplicated()]
    return first.reindex(wanted, fill_value=-1).to_numpy()


def is_rare(answers: pd.DataFrame) -> pd.Series:
    """Return whether the item of each answer is rare, shape (answers,).

    An item is rare if its degree is at most the upper median of the degrees in the phase.
    """
    degree = answers.groupby("phase_id")["item_degree"]
    upper_median = degree.transform(lambda values: np.sort(values)[len(values) // 2])
    return answers["item_degree"] <= upper_median


def score(items: IntArray, answers: pd.DataFrame) -> pd.DataFrame:
    """Score recommendations by phase.

    Parameters
    ----------
    items : ndarray of int, shape (answers, 50)
        Ids of the items recommended to the user of each answer.
    answers : DataFrame
        Clicks to predict; see `read_answers`.

    Returns
    -------
    DataFrame
        A row for each phase with the columns `METRICS`: "full" is the mean over all users, "half"
        the mean over users whose item is rare.
    """
    is_match = items == answers["item_id"].to_numpy()[:, None]
    hit = is_match.any(axis=1)
    rank = is_match.argmax(axis=1)
    gain = np.where(hit, 1 / np.log2(rank + 2), 0.0)
    scores = {}
    for phase, full in answers.assign(gain=gain, hit=hit).groupby("phase_id"):
        half = full[is_rare(full)]
        # In the order of METRICS.
        scores[phase] = [
            full["gain"].mean(),
            half["gain"].mean(),
            full["hit"].mean(),
            half["hit"].mean(),
        ]
    return pd.DataFrame(scores, METRICS).T


# ---- Reading ---------------------------------------------------------------------------------


def _source(path: Path, columns: Sequence[Column]) -> reading.Source:
    """Describe a file without header by the names of its columns."""
    return reading.file_source(path, tuple(column.name for column in columns))


def _read(
    path: Path, columns: Sequence[Column], report: Report = stop, *, once: bool = False
) -> pd.DataFrame:
    """Read a file; with `once`, report a user who has several rows."""
    source = _source(path, columns)
    frame = reading.read_table(source, columns, report=report)
    if once:
        require_distinct(source, _USER.name, frame[_USER.name].to_numpy(), report)
    return frame


def _read_answers(path: Path, columns: Sequence[Column], **known: int) -> pd.DataFrame:
    """Read clicks to predict and add known columns; refuse a user who belongs to another phase."""
    answers = _read(path, columns, once=True).assign(**known)
    wrong = answers[answers["user_id"] % USER_MODULUS != answers["phase_id"]]
    user = wrong["user_id"].astype(str)
    phase = wrong["phase_id"].astype(str)
    faults = ("is " + user + " of phase " + phase).to_dict()
    expected = f"phase = user_id mod {USER_MODULUS}"
    challenge.report_cells(_source(path, columns), _USER.name, faults, expected, stop)
    return answers
