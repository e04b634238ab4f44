"""Files and metrics of the debiasing challenge.

The metrics are NDCG and hit rate, over all users and over the users whose item is rare. The
challenge has ten phases, 0 to 9, each with its own files. The files have no header, and their rows
are not in order of time. A user is a test user of phase ``user_id mod 11``, and of no phase if the
remainder is 10.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from common import layout, provenance, reading
from common.answers import require_distinct
from common.arrays import FloatArray, IntArray
from common.errors import InputError, Report, stop
from common.schema import FLOAT64, Column
from related_challenges import challenge

import numpy as np
import pandas as pd

PHASES = layout.DEBIASING_PHASES
# The phases of the challenge's final stage; see `phases_that_count`.
FINAL_PHASES = range(7, 10)
# Number of phases before the final stage. In the final stage, the organisers' script added 1 to
# each sum of scores for each of these phases.
N_EARLIER_PHASES = FINAL_PHASES[0] - PHASES[0]
# The phase in which a user is a test user is the user's id modulo this number.
USER_MODULUS = 11
# The Unix time at which each phase starts in the challenge's schedule of 2020. The last three
# phases, which are the final stage, start together.
PHASE_STARTS = (
    0,
    1_586_534_399,
    1_587_139_199,
    1_587_743_999,
    1_588_348_799,
    1_588_953_599,
    1_589_558_399,
    1_591_315_200,
    1_591_315_200,
    1_591_315_200,
)

# Names of the files of a phase, where {} stands for the number of the phase. The first file holds
# the clicks of the training users.
TRAIN_CLICKS = "underexpose_train_click-{}.csv"
# The clicks of the test users before the click to predict.
TEST_CLICKS = "underexpose_test_click-{}.csv"
# A row for each test user, with the time of the click to predict.
QUERY_TIMES = "underexpose_test_qtime-{}.csv"
# A row for each test user, with the click to predict. A local split writes this file.
TRUE_CLICKS = layout.DEBIASING_TRUE_CLICKS

# The file of the clicks to predict in all phases. It also holds the degree of each item, which is
# the number of known clicks on the item.
ANSWERS = layout.DEBIASING_ANSWERS
# "full" is the mean over all test users, "half" the mean over those whose clicked item is rare
# (`is_rare`).
METRICS = ("NDCG@50 full", "NDCG@50 half", "hit rate@50 full", "hit rate@50 half")

# Ids have an upper bound, since a large id takes much memory. The ids of the challenge are below
# 200,000.
_USER = Column("user_id", high=9_999_999)
_ITEM = Column("item_id", high=9_999_999)
_TIME = Column("time", FLOAT64, 0, 1, whole=False)
_ANSWER_COLUMNS = (Column("phase_id", high=max(PHASES)), _USER, _ITEM, Column("item_degree"))


# ---- Phases ----------------------------------------------------------------------------------


def find_phases(folder: Path) -> list[int]:
    """Return the phases whose training clicks are in a folder.

    Raises
    ------
    InputError
        If the folder has no training clicks of any phase.
    """
    phases = [phase for phase in PHASES if reading.is_there(folder / TRAIN_CLICKS.format(phase))]
    if not phases:
        # Raises an error that names the missing file.
        reading.require_file(folder / TRAIN_CLICKS.format(0))
    return phases


def phase_at(time: int) -> int:
    """Return the phase of the challenge at a Unix time.

    This is the last phase that has begun. A phase has begun if the time is greater than its start.
    Phase 0 has begun at any time.
    """
    return max(phase for phase in PHASES if phase == 0 or time > PHASE_STARTS[phase])


def add_phase(p: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add the flags --phase and --time, two ways to name the phase; return the group of both flags.

    Both flags set the option `phase`. See `phases_that_count` for what the phase decides.
    """

    def phase_of_text(text: str) -> int:
        """Return the phase at the Unix time that a text holds."""
        try:
            return phase_at(int(text))
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text} is no Unix time, expected whole seconds such as {PHASE_STARTS[-1]}"
            ) from None

    group = p.add_mutually_exclusive_group()
    help_text = (
        "score as at phase T of the challenge: phases 0 to T count, or 7 to T if T is 7 or more "
        "(default: all phases found)"
    )
    group.add_argument("--phase", type=int, choices=PHASES, metavar="T", help=help_text)
    help_text = "the phase at this Unix time in the challenge's schedule"
    group.add_argument("--time", type=phase_of_text, metavar="UNIX", dest="phase", help=help_text)
    return group


def phases_that_count(phase: int | None, available: Sequence[int], path: Path) -> list[int]:
    """Return the phases that count for a submission that is scored during a phase.

    At phase T of the challenge, a score was the sum over the phases 0 to T. In the final stage,
    which began with phase 7, it was the sum over the phases 7 to T.

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
        raise InputError(f"{path}: holds the phases {shown}; phase {phase} needs {expected}")
    return counted


def answers_that_count(phase: int | None, answers: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the answers that count for a submission that is scored at phase `phase`.

    They are the answers of the phases that `phases_that_count` returns. `path` is the file of the
    answers, for messages.
    """
    available = sorted(answers["phase_id"].unique().tolist())
    phases = phases_that_count(phase, available, path)
    return answers[answers["phase_id"].isin(phases)]


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
        Columns user_id (no user twice) and time (when the click to predict happens).
    """
    return _read(path, (_USER, _TIME), once_per_user=True)


def split_latest(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split clicks into the latest click of every user, sorted by user_id, and all other clicks.

    If a user has several clicks at the latest time, the last row counts as the latest click.
    """
    ordered = table.iloc[np.lexsort((table["time"], table["user_id"]))]
    latest = ordered.drop_duplicates("user_id", keep="last")
    return latest, table.drop(latest.index)


def answer_files(path: Path) -> list[Path]:
    """Return the files that hold the clicks to predict.

    The clicks are in the file at `path`. If this file is missing and has the default name
    `ANSWERS`, the clicks are in the files `TRUE_CLICKS` in its folder, one for each phase. If there
    are no such files either, the result is `path`.
    """
    if reading.is_there(path) or path.name != ANSWERS:
        return [path]
    paths = [path.with_name(TRUE_CLICKS.format(phase)) for phase in PHASES]
    present = [phase_path for phase_path in paths if reading.is_there(phase_path)]
    return present or [path]


def read_answers(path: Path) -> pd.DataFrame:
    """Read the answers, that is, the clicks that models have to predict, of all phases.

    `path` is the file of the answers. If this file is missing and has the default name `ANSWERS`,
    the answers are made from other files in its folder: for each phase, the clicks to predict
    (`TRUE_CLICKS`) and the test clicks. The training clicks are read from the same folder or, if it
    holds none, from the folder `train_data` beside it.

    Returns
    -------
    DataFrame
        Columns phase_id, user_id (each once), item_id and item_degree. The degree of an item is how
        often it was clicked in the known clicks (training clicks and test clicks) of this phase and
        of all earlier phases.

    Raises
    ------
    InputError
        If a file is missing or faulty, if a user belongs to another phase, or if the published
        clicks have changed since the local split.
    """
    folder = path.parent
    paths = answer_files(path)
    provenance.require_current(paths)
    has_one_file = paths == [path]
    if has_one_file:
        return _read_answer_file(path, _ANSWER_COLUMNS)
    # A local split writes the answers into a folder of their own, without the training clicks:
    # these are in the folder `train_data` beside it.
    has_train_clicks = any(folder.glob(TRAIN_CLICKS.format("*")))
    train_dir = folder if has_train_clicks else folder.parent / challenge.TRAIN_FOLDER
    # For each phase: its number, its known clicks and its answers.
    parts = []
    for phase in find_phases(train_dir):
        train_path = train_dir / TRAIN_CLICKS.format(phase)
        known_clicks = read_clicks(train_path, folder / TEST_CLICKS.format(phase))
        answer_path = folder / TRUE_CLICKS.format(phase)
        if reading.is_there(answer_path):
            answers = _read_answer_file(answer_path, (_USER, _ITEM, _TIME), phase)
        else:
            # This phase has no clicks to predict, so its table is empty. Its known clicks are still
            # needed: they count for the degrees of items in later phases.
            answers = known_clicks.head(0)
        parts.append((phase, known_clicks, answers))
    return add_degrees(parts)


def add_degrees(parts: Iterable[tuple[int, pd.DataFrame, pd.DataFrame]]) -> pd.DataFrame:
    """Join the answers of all phases, and add the degree of each answer's item.

    Parameters
    ----------
    parts : iterable of (phase, known clicks, answers)
        For each phase, in increasing order: its number, its known clicks and its clicks to predict.

    Returns
    -------
    DataFrame
        Columns phase_id, user_id, item_id and item_degree. The degree of an item is the number of
        known clicks on it in the files of this phase and all earlier phases. A click that is in the
        files of two phases counts twice.
    """
    # The number of known clicks on each item, in the phases so far.
    degree = pd.Series(dtype=int)
    tables = []
    for phase, known_clicks, answers in parts:
        degree = degree.add(known_clicks["item_id"].value_counts(), fill_value=0)
        item_degree = answers["item_id"].map(degree).fillna(0).astype(int)
        tables.append(answers.assign(phase_id=phase, item_degree=item_degree))
    return pd.concat(tables, ignore_index=True)[[column.name for column in _ANSWER_COLUMNS]]


# ---- Scores ------------------------------------------------------------------------------------


def is_rare(answers: pd.DataFrame) -> pd.Series:
    """Return whether the item of each answer is rare, shape (answers,).

    An item is rare if its degree is at most the median of the degrees of the phase's answers. If
    the number of answers is even, this is the larger of the two middle values.
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
        A row for each phase with the columns `METRICS`: the NDCG and the hit rate, as a mean over
        all users ("full") and as a mean over the users whose item is rare ("half").
    """
    is_match = items == answers["item_id"].to_numpy()[:, None]
    hit = is_match.any(axis=1)
    # The position of the right item among the recommended items, from 0. If the right item is not
    # among them, `argmax` gives 0 too, and the rank means nothing.
    rank = is_match.argmax(axis=1)
    # For each answer, exactly one item is right. So the NDCG is the gain of this item if it is
    # among the recommended items, and 0 if not. The gain is 1 / log2(rank + 2): 1 at rank 0, the
    # best one, and less at later ranks.
    gain = np.where(hit, 1 / np.log2(rank + 2), 0.0)
    scores = {}
    for phase, all_users in answers.assign(gain=gain, hit=hit).groupby("phase_id"):
        users_of_rare_items = all_users[is_rare(all_users)]
        # The means are in the order of `METRICS`.
        scores[phase] = [
            all_users["gain"].mean(),
            users_of_rare_items["gain"].mean(),
            all_users["hit"].mean(),
            users_of_rare_items["hit"].mean(),
        ]
    return pd.DataFrame(scores, METRICS).T


def sum_over_phases(scores: pd.DataFrame) -> FloatArray:
    """Return the sum of each metric over the phases, in the order of `METRICS`."""
    # `ascontiguousarray` stores the rows (phases) one after the other. NumPy then adds up row by
    # row, so that rounding is the same on every machine.
    sums: FloatArray = np.ascontiguousarray(scores).sum(axis=0)
    return sums


# ---- Reading ---------------------------------------------------------------------------------


def _source(path: Path, columns: Sequence[Column]) -> reading.Source:
    """Return the source of a file without a header row, whose columns are `columns`."""
    return reading.file_source(path, tuple(column.name for column in columns))


def _read(
    path: Path, columns: Sequence[Column], report: Report = stop, *, once_per_user: bool = False
) -> pd.DataFrame:
    """Read a file; with `once_per_user`, report a user who has several rows."""
    source = _source(path, columns)
    frame = reading.read_table(source, columns, report=report)
    if once_per_user:
        require_distinct(source, _USER.name, frame[_USER.name].to_numpy(), report)
    return frame


def _read_answer_file(
    path: Path, columns: Sequence[Column], phase_of_file: int | None = None
) -> pd.DataFrame:
    """Read clicks to predict, and check that every user is a test user of the click's phase.

    If the file has the column `phase_id`, this column gives the phase of each click. Otherwise all
    clicks are of the phase `phase_of_file`, and the column is added.

    Raises
    ------
    InputError
        If the file is missing or faulty, if a user has several rows, or if a user is a test user of
        another phase or of none.
    """
    answers = _read(path, columns, once_per_user=True)
    if phase_of_file is not None:
        answers = answers.assign(phase_id=phase_of_file)
    # A user is a test user of the phase whose number is the user's id modulo USER_MODULUS.
    is_wrong = answers["user_id"] % USER_MODULUS != answers["phase_id"]
    wrong = answers[is_wrong]
    # Maps each faulty row to what is wrong in it.
    faults = {}
    for row, user, phase in zip(wrong.index, wrong["user_id"], wrong["phase_id"], strict=True):
        faults[row] = f"is {user}, who is no test user of phase {phase}"
    expected = f"the phase to be user_id mod {USER_MODULUS}"
    # If there are faults, `report_faults` passes one message about them to `stop`, which raises it
    # as an `InputError`.
    challenge.report_faults(_source(path, columns), _USER.name, faults, expected, report=stop)
    return answers
