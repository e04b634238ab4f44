"""Files and metrics of the debiasing challenge: clicks, recommendations, and how rare an item is.

The files have no header and are not in order of time; they are read as DataFrames with the columns
named below. Phase T of the challenge, 0 to 9, has its own files; a user belongs to the test users
of phase ``user_id mod 11``.
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
PHASES, FINAL_PHASES = range(10), range(7, 10)
USER_MODULUS = 11
# Of phase T: the clicks of the other users, those of the test users before the one to be predicted,
# the time of that, and, where it is known, the click itself.
TRAIN_CLICKS, TEST_CLICKS, QUERY_TIMES, TRUE_CLICKS = (
    f"underexpose_{kind}-{{}}.csv"
    for kind in ("train_click", "test_click", "test_qtime", "test_qtime_with_answer")
)
# The clicks to be predicted in all phases, with the degrees of their items.
ANSWERS = "debias_track_answer.csv"
METRICS = ("NDCG@50 full", "NDCG@50 half", "hit rate@50 full", "hit rate@50 half")

# Users and items index arrays directly, so they are bounded; the challenge's are below 200,000.
_USER = Column("user_id", high=9_999_999)
_ITEM = Column("item_id", high=9_999_999)
_TIME = Column("time", FLOAT64, 0, 1, whole=False)
_ANSWER_COLUMNS = (Column("phase_id", high=max(PHASES)), _USER, _ITEM, Column("item_degree"))
_ITEM_COLUMNS = [Column(f"item_{n}", high=_ITEM.high) for n in range(1, N_RECOMMENDED + 1)]


# ---- Phases ----------------------------------------------------------------------------------


def find_phases(folder: Path) -> list[int]:
    """Find the phases whose training clicks lie in a folder; there must be one."""
    phases = [phase for phase in PHASES if reading.is_there(folder / TRAIN_CLICKS.format(phase))]
    if not phases:
        reading.require_file(folder / TRAIN_CLICKS.format(0))
    return phases


def add_phase(p: argparse.ArgumentParser) -> None:
    """Add the flag that says at which phase of the challenge a submission is scored."""
    told = "at phase T: 0 to T count, from 7 on 7 to T (default: all phases that are there)"
    p.add_argument("--phase", type=int, choices=PHASES, metavar="T", help=told)


def phases_at(phase: int | None, there: Sequence[int], where: Path) -> list[int]:
    """Return the phases that count at one of the challenge, which must be there."""
    if phase is None:
        return [*there]
    first = FINAL_PHASES[0] if phase in FINAL_PHASES else PHASES[0]
    wanted = [*range(first, phase + 1)]
    if not {*wanted} <= {*there}:
        found, expected = (", ".join(map(str, numbers)) for numbers in (there, wanted))
        raise InputError(f"{where}: holds the phases {found}, --phase {phase} expects {expected}")
    return wanted


# ---- Clicks ----------------------------------------------------------------------------------


def read_clicks(*paths: Path) -> pd.DataFrame:
    """Read files of clicks, one after the other: user_id, item_id, time from 0 to 1."""
    return pd.concat([_read(path, (_USER, _ITEM, _TIME)) for path in paths], ignore_index=True)


def read_queries(path: Path) -> pd.DataFrame:
    """Read the test users of a phase, each once: user_id, time of the click to be predicted."""
    return _read(path, (_USER, _TIME), once=True)


def split_latest(clicks: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the latest click of every user, in order, of several the file's last; and the rest."""
    ordered = clicks.iloc[np.lexsort((clicks["time"], clicks["user_id"]))]
    latest = ordered.drop_duplicates("user_id", keep="last")
    return latest, clicks.drop(latest.index)


def read_answers(path: Path) -> pd.DataFrame:
    """Read the clicks to be predicted: phase_id, user_id, item_id, item_degree; a missing `ANSWERS`
    is made of `TRUE_CLICKS` beside it, and training clicks there or, of a split, in `train_data`.
    """
    folder = path.parent
    if (
        reading.is_there(path)
        or path.name != ANSWERS
        or not any(folder.glob(TRUE_CLICKS.format("*")))
    ):
        return _read_answers(path, _ANSWER_COLUMNS)
    has_all = any(folder.glob(TRAIN_CLICKS.format("*")))
    train = folder if has_all else folder.parent / challenge.TRAIN
    parts = []
    for phase in find_phases(train):
        clicks = read_clicks(train / TRAIN_CLICKS.format(phase), folder / TEST_CLICKS.format(phase))
        answer, place = clicks.head(0), folder / TRUE_CLICKS.format(phase)
        if reading.is_there(place):
            answer = _read_answers(place, (_USER, _ITEM, _TIME), phase_id=phase)
        parts.append((phase, clicks, answer))
    return count_degrees(parts)


def count_degrees(parts: Iterable[tuple[int, pd.DataFrame, pd.DataFrame]]) -> pd.DataFrame:
    """Return the table of `ANSWERS`; a degree counts the item's clicks in the phases so far."""
    degree, found = pd.Series(dtype=int), []
    for phase, clicks, answer in parts:
        degree = degree.add(clicks["item_id"].value_counts(), fill_value=0)
        item_degree = answer["item_id"].map(degree).fillna(0).astype(int)
        found.append(answer.assign(phase_id=phase, item_degree=item_degree))
    return pd.concat(found, ignore_index=True)[[column.name for column in _ANSWER_COLUMNS]]


# ---- Recommendations -------------------------------------------------------------------------


def read_recommendations(path: Path, report: Report = stop) -> pd.DataFrame:
    """Read and check a submission: the fifty different items of every user, in the file's order."""
    columns = (_USER, *_ITEM_COLUMNS)
    source = _source(path, columns)
    found = _read(path, columns, report, once=True).set_index(_USER.name)
    ordered = np.sort(found, axis=1)
    # A cell that was reported as faulty is negative.
    repeated = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if repeated.any():
        place = int(repeated.argmax())
        told = f"has {found.iloc[place].nunique()} different items ({repeated.sum()} such rows)"
        where = f"{path}: row {source.row_number(place)}: user {found.index[place]}"
        report(f"{where} {told}, expected {N_RECOMMENDED}")
    return found


def select_users(
    path: Path, recommended: pd.DataFrame, wanted: IntArray, report: Report = stop
) -> IntArray:
    """Return the items recommended to the users wanted, (wanted, 50); others are ignored."""
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
    """Tell of which clicks the item is rare: its degree is at most the median one of the phase."""
    degree = answers.groupby("phase_id")["item_degree"]
    return answers["item_degree"] <= degree.transform(lambda own: np.sort(own)[len(own) // 2])


def score(items: IntArray, answers: pd.DataFrame) -> pd.DataFrame:
    """Return `METRICS` by phase of items recommended, (answers, 50); "half" is of rare items."""
    found = items == answers["item_id"].to_numpy()[:, None]
    hit = found.any(axis=1)
    gain = np.where(hit, 1 / np.log2(found.argmax(axis=1) + 2), 0.0)
    scores = {}
    for phase, own in answers.assign(gain=gain, hit=hit).groupby("phase_id"):
        among = own, own[is_rare(own)]
        scores[phase] = [part[name].mean() for name in ("gain", "hit") for part in among]
    return pd.DataFrame(scores, METRICS).T


# ---- Reading ---------------------------------------------------------------------------------


def _source(path: Path, columns: Sequence[Column]) -> reading.Source:
    return reading.file_source(path, tuple(column.name for column in columns))


def _read(
    path: Path, columns: Sequence[Column], report: Report = stop, *, once: bool = False
) -> pd.DataFrame:
    """Read a file in which, if so said, each user has one row."""
    source = _source(path, columns)
    frame = reading.read_table(source, columns, report=report)
    if once:
        require_distinct(source, _USER.name, frame[_USER.name].to_numpy(), report)
    return frame


def _read_answers(path: Path, columns: Sequence[Column], **known: int) -> pd.DataFrame:
    """Read clicks to be predicted; raise `InputError` if a user belongs to another phase."""
    answers = _read(path, columns, once=True).assign(**known)
    wrong = answers[answers["user_id"] % USER_MODULUS != answers["phase_id"]]
    told = "is " + wrong["user_id"].astype(str) + " of phase " + wrong["phase_id"].astype(str)
    expected = f"phase = user_id mod {USER_MODULUS}"
    challenge.report_cells(_source(path, columns), _USER.name, told.to_dict(), expected, stop)
    return answers
