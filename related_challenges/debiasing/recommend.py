"""Steps that all sample models share: read a phase, choose each user's best items, write them."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common import cli
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from related_challenges import challenge

import clicks
import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from submission import N_RECOMMENDED
from tqdm import tqdm

# Sparse scores are made dense for this many users at a time: 21 MB for 41,000 items.
N_USERS_PER_BLOCK = 64
# Clicks before a phase are used too, but only if they were made at most this long before its start.
# The unit of time is the length of the phase.
HISTORY = 1.0
# With --local, the test users' clicks are read from this folder.
LOCAL_DIR = challenge.data_dir(__file__, challenge.TEST_INPUT_FOLDER)


@dataclass(frozen=True)
class Phase:
    """Clicks of a phase and shortly before it, sorted by user, then by time.

    Users and items are numbered from 0. A test user may have no row.

    Attributes
    ----------
    user, item : ndarray of int64, shape (clicks,)
        Numbers of the user and item of each click.
    time : ndarray of float64, shape (clicks,)
        Time on a scale from 0 (first click of the phase) to 1 (its last click). Before the phase it
        is negative, down to -`HISTORY`.
    item_ids : ndarray of int64, shape (items,)
        Ids of the items, by number.
    test_user_ids, test_user : ndarray of int64, shape (test users,)
        Ids and numbers of the users to recommend items to.
    query_time : ndarray of float64, shape (test users,)
        Time of the click to predict, on the scale of `time`.
    n_users : int
        Number of users, test users included.
    name : str
        Name of the phase for messages.
    """

    user: IntArray
    item: IntArray
    time: FloatArray
    item_ids: IntArray
    test_user_ids: IntArray
    test_user: IntArray
    query_time: FloatArray
    n_users: int
    name: str = ""

    def sum_by_user_and_item(self, values: FloatArray) -> csr_array:
        """Return the sum of the clicks' `values` for each user and item, shape (users, items)."""
        return csr_array((values, (self.user, self.item)), shape=(self.n_users, len(self.item_ids)))


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a sample model; `doc` is the docstring of its script."""
    parser = challenge.model_parser(doc, __file__)
    help_text = "folder of the test users' clicks and query times (default: the --input_dir)"
    parser.add_argument("--test_dir", type=Path, metavar="DIR", help=help_text)
    help_text = f"predict the local split: the default of --test_dir becomes {cli.show(LOCAL_DIR)}"
    parser.add_argument("--local", action="store_true", help=help_text)
    return parser


def run_model(options: argparse.Namespace, score_items: Callable[[Phase], csr_array]) -> None:
    """Write the recommendations of a sample model for all phases.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    score_items : callable
        Takes a phase and returns a csr_array of shape (test users, items) with a score for each
        pair, at least 0. The items that `best_items` chooses are recommended.
    """
    test_dir = options.test_dir or (LOCAL_DIR if options.local else options.input_dir)
    users = []
    items = []
    for number in tqdm(clicks.find_phases(options.input_dir), "phases", disable=None):
        phase = read_phase(options.input_dir, test_dir, number)
        users.append(phase.test_user_ids)
        items.append(best_items(phase, score_items(phase)))
    # The columns are the user id and the fifty items.
    table = pd.DataFrame(np.column_stack([np.concatenate(users), np.concatenate(items)]))
    challenge.write_submission(options, table, header=False)


def read_phase(train_dir: Path, test_dir: Path, number: int) -> Phase:
    """Read the clicks of a phase, and older clicks on its items from the files of earlier phases.

    Phases overlap, so the file of an earlier phase may show a click that is to be predicted in this
    phase. Therefore a click from such a file is used only if it is older than all clicks of this
    phase, both the known clicks and the clicks to predict.

    Parameters
    ----------
    train_dir : Path
        Folder of the training clicks.
    test_dir : Path
        Folder of the test users' clicks and query times.
    number : int
        Number of the phase.
    """

    def read_known_clicks(phase_number: int) -> pd.DataFrame:
        """Return the known clicks of training and test users."""
        train = train_dir / clicks.TRAIN_CLICKS.format(phase_number)
        test = test_dir / clicks.TEST_CLICKS.format(phase_number)
        return clicks.read_clicks(train, test)

    inside = read_known_clicks(number)
    item_ids = np.unique(inside["item_id"])
    phase_start = inside["time"].min()
    # Times are divided by the length, so it must not be 0.
    length = max(np.ptp(inside["time"]), np.finfo(float).tiny)
    history_start = phase_start - HISTORY * length
    queries = clicks.read_queries(test_dir / clicks.QUERY_TIMES.format(number))
    parts = [inside]
    # The time of the oldest click so far. At first, this is the oldest click of this phase, be it a
    # known click or a click to predict.
    oldest = min(phase_start, queries["time"].min())
    # Go back from phase to phase. Phases overlap, so take only clicks that are older than all
    # clicks so far. Then no click is taken twice.
    earlier_phases = [phase for phase in clicks.find_phases(train_dir) if phase < number]
    for earlier_phase in reversed(earlier_phases):
        if oldest <= history_start:
            break
        earlier = read_known_clicks(earlier_phase)
        is_in_time = (earlier["time"] >= history_start) & (earlier["time"] < oldest)
        is_on_known_item = earlier["item_id"].isin(item_ids)
        parts.append(earlier[is_in_time & is_on_known_item])
        oldest = min(oldest, earlier["time"].min())
    table = pd.concat(parts).sort_values(["user_id", "time"], kind="stable")
    # Number the users who have clicked and the test users in one go: a user who is in both tables
    # must get the same number.
    user, user_ids = pd.concat([table["user_id"], queries["user_id"]]).factorize()
    return Phase(
        user=user[: len(table)],
        item=np.searchsorted(item_ids, table["item_id"]),
        time=(table["time"].to_numpy() - phase_start) / length,
        item_ids=item_ids,
        test_user_ids=queries["user_id"].to_numpy(),
        test_user=user[len(table) :],
        query_time=(queries["time"].to_numpy() - phase_start) / length,
        n_users=len(user_ids),
        name=f"{train_dir}: phase {number}",
    )


def click_matrix(phase: Phase) -> csr_array:
    """Return a matrix with 1 where a user clicked an item, shape (users, items)."""
    matrix = phase.sum_by_user_and_item(np.ones(len(phase.user)))
    matrix.data[:] = 1
    return matrix


def positions_from_latest(phase: Phase) -> IntArray:
    """For each click, return its position among its user's clicks: 1 for the latest, then 2, ..."""
    # Clicks are sorted by user, then by time. `end` is the index after each user's latest click.
    end = np.cumsum(np.bincount(phase.user, minlength=phase.n_users))
    return np.asarray(end[phase.user] - np.arange(len(phase.user)))


def best_items(phase: Phase, scores: csr_array) -> IntArray:
    """Return the fifty best items of every test user, among those that the user has not clicked.

    Parameters
    ----------
    phase : Phase
        Clicks of the phase.
    scores : csr_array, shape (test users, items)
        Scores of at least 0. Items with the score 0 follow in order of popularity.

    Returns
    -------
    ndarray of int64, shape (test users, 50)
        Ids of items, best first.

    Raises
    ------
    InputError
        If fewer than fifty items are left that a test user has not clicked.
    """
    n_clicks = np.bincount(phase.item, minlength=len(phase.item_ids))
    # Items without a positive score are ranked by popularity, after all others. So scale popularity
    # to be below 1 and below every positive score.
    smallest_score = scores.data[scores.data > 0].min(initial=1.0)
    # Rank of each item by its number of clicks, 0 for the fewest. The inner `argsort` sorts the
    # items. The outer `argsort` gives the position of each item in this order.
    popularity_rank = np.argsort(np.argsort(n_clicks, kind="stable"))
    popularity = smallest_score * popularity_rank / len(n_clicks)
    seen = click_matrix(phase)[phase.test_user]
    # The largest number of different items that a test user has clicked.
    most_seen = np.diff(seen.indptr).max(initial=0)
    n_unseen = len(phase.item_ids) - most_seen
    if n_unseen < N_RECOMMENDED:
        raise InputError(
            f"{phase.name} holds only {n_unseen} items that its most active test user has not "
            f"clicked, expected at least {N_RECOMMENDED}"
        )
    # Begin with an empty array, because `concatenate` needs at least one array. Without test users,
    # there is no other.
    best = [np.empty((0, N_RECOMMENDED), phase.item_ids.dtype)]
    for start in range(0, len(phase.test_user), N_USERS_PER_BLOCK):
        rows = slice(start, start + N_USERS_PER_BLOCK)
        block = scores[rows].toarray()
        # Put the popularity in place of scores that are not positive, and -inf in place of the
        # scores of items that the user has clicked, so that these are not chosen.
        block = np.where(block > 0, block, popularity)
        block[seen[rows].nonzero()] = -np.inf
        best.append(phase.item_ids[largest_columns(block, N_RECOMMENDED)])
    return np.concatenate(best)


def largest_columns(values: FloatArray, n: int) -> IntArray:
    """Return the columns of the n largest values of each row, largest first, shape (rows, n).

    Processors differ in the last digits of sums and in the order of equal values. To give the same
    ranking on all processors, values are compared in single precision, and equal values come in the
    order of their columns.
    """
    rounded = values.astype(np.float32)
    # `partition` moves the n-th largest value of each row to column -n. The list [-n] keeps the
    # shape (rows, 1), so that each row is compared with its own n-th largest value.
    nth_largest = np.partition(rounded, -n, axis=1)[:, [-n]]
    is_chosen = rounded >= nth_largest
    n_surplus = is_chosen.sum(axis=1) - n
    for row in np.flatnonzero(n_surplus):
        # Several values equal the n-th largest. Drop the surplus: the equal values farthest to the
        # right.
        equal_columns = np.flatnonzero(rounded[row] == nth_largest[row])
        dropped = equal_columns[-n_surplus[row] :]
        is_chosen[row, dropped] = False
    # Each row now has exactly n chosen values, so their columns fill a matrix of shape (rows, n).
    columns = np.nonzero(is_chosen)[1].reshape(len(values), n)
    chosen = np.take_along_axis(rounded, columns, axis=1)
    order = np.argsort(-chosen, axis=1, kind="stable")
    return np.asarray(np.take_along_axis(columns, order, axis=1))
