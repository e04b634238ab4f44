"""Clicks of a phase, and the best items of a user: shared by all sample models."""

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
from tqdm import tqdm

# Number of users whose scores are dense at the same time; for 41,000 items they take 21 MB.
BLOCK = 64
# Clicks before a phase are read this far back, in lengths of the phase.
HISTORY = 1.0
# Folder of the test users' clicks with --local.
LOCAL_DIR = challenge.data_dir(__file__, challenge.TEST_INPUT)


@dataclass(frozen=True)
class Phase:
    """Clicks of a phase and shortly before it, in order of users and times.

    Users and items are numbered from 0. A test user may have no click.

    Attributes
    ----------
    user, item : ndarray of int64, shape (clicks,)
        Numbers of the user and item of each click.
    time : ndarray of float64, shape (clicks,)
        0 for the first click of the phase, 1 for its last; down to -`HISTORY` before the phase.
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

    def by_user(self, values: FloatArray) -> csr_array:
        """Add up a value of each click by user and item, shape (users, items)."""
        return csr_array((values, (self.user, self.item)), shape=(self.n_users, len(self.item_ids)))


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a sample model; `doc` is the docstring of its script."""
    parser = challenge.model_parser(doc, __file__)
    parser.add_argument("--test_dir", type=Path, metavar="DIR", help="default: the --input_dir")
    help_text = f"use the local split: the default of --test_dir becomes {cli.show(LOCAL_DIR)}"
    parser.add_argument("--local", action="store_true", help=help_text)
    return parser


def run_model(options: argparse.Namespace, score_items: Callable[[Phase], csr_array]) -> None:
    """Write the recommendations of a sample model for all phases.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    score_items : callable
        Takes a phase and returns the score of every item for every test user, a csr_array of shape
        (test users, items) of values of at least 0. `best_items` are recommended.
    """
    test_dir = options.test_dir or (LOCAL_DIR if options.local else options.input_dir)
    users = []
    items = []
    for number in tqdm(clicks.find_phases(options.input_dir), "phases", disable=None):
        phase = read_phase(options.input_dir, test_dir, number)
        users.append(phase.test_user_ids)
        items.append(best_items(phase, score_items(phase)))
    table = pd.DataFrame(np.column_stack([np.concatenate(users), np.concatenate(items)]))
    challenge.write_submission(options, table, header=False)


def read_phase(train_dir: Path, test_dir: Path, number: int) -> Phase:
    """Read the clicks of a phase, and clicks on its items from before the phase.

    Phases overlap, and an earlier phase may hold a click to predict. Therefore only clicks before
    the first click of this phase, known or to predict, are taken from earlier phases.

    Parameters
    ----------
    train_dir : Path
        Folder of the training clicks.
    test_dir : Path
        Folder of the test users' clicks and query times.
    number : int
        Number of the phase.
    """

    def read(phase: int) -> pd.DataFrame:
        test = test_dir / clicks.TEST_CLICKS.format(phase)
        return clicks.read_clicks(train_dir / clicks.TRAIN_CLICKS.format(phase), test)

    inside = read(number)
    item_ids = np.unique(inside["item_id"])
    begin = inside["time"].min()
    length = max(np.ptp(inside["time"]), np.finfo(float).tiny)
    earliest = begin - HISTORY * length
    queries = clicks.read_queries(test_dir / clicks.QUERY_TIMES.format(number))
    parts = [inside]
    # The first click of the phase may be one to predict.
    first = min(begin, queries["time"].min())
    earlier_phases = [phase for phase in clicks.find_phases(train_dir) if phase < number]
    for earlier_phase in reversed(earlier_phases):
        if first <= earliest:
            break
        older = read(earlier_phase)
        is_before = (older["time"] < first) & (older["time"] >= earliest)
        parts.append(older[is_before & older["item_id"].isin(item_ids)])
        first = min(first, older["time"].min())
    table = pd.concat(parts).sort_values(["user_id", "time"], kind="stable")
    user, user_ids = pd.concat([table["user_id"], queries["user_id"]]).factorize()
    return Phase(
        user=user[: len(table)],
        item=np.searchsorted(item_ids, table["item_id"]),
        time=(table["time"].to_numpy() - begin) / length,
        item_ids=item_ids,
        test_user_ids=queries["user_id"].to_numpy(),
        test_user=user[len(table) :],
        query_time=(queries["time"].to_numpy() - begin) / length,
        n_users=len(user_ids),
        name=f"{train_dir}: phase {number}",
    )


def click_matrix(phase: Phase) -> csr_array:
    """Return a matrix with 1 where a user clicked an item, shape (users, items)."""
    matrix = phase.by_user(np.ones(len(phase.user)))
    matrix.data[:] = 1
    return matrix


def positions_from_latest(phase: Phase) -> IntArray:
    """Return the position of each click among its user's, 1 for the latest, shape (clicks,)."""
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
        If a user has clicked all but fewer than fifty items.
    """
    n_clicks = np.bincount(phase.item, minlength=len(phase.item_ids))
    # Popularity is scaled to lie below every positive score.
    least = scores.data[scores.data > 0].min(initial=1.0)
    popularity_rank = np.argsort(np.argsort(n_clicks, kind="stable"))
    popularity = least * popularity_rank / len(n_clicks)
    seen = click_matrix(phase)[phase.test_user]
    n_unseen = len(phase.item_ids) - np.diff(seen.indptr).max(initial=0)
    if n_unseen < clicks.N_RECOMMENDED:
        raise InputError(
            f"{phase.name} holds {n_unseen} items that a user has not clicked, expected at least "
            f"{clicks.N_RECOMMENDED}"
        )
    best = [np.empty((0, clicks.N_RECOMMENDED), phase.item_ids.dtype)]
    for start in range(0, len(phase.test_user), BLOCK):
        rows = slice(start, start + BLOCK)
        block = scores[rows].toarray()
        block = np.where(block > 0, block, popularity)
        block[seen[rows].nonzero()] = -np.inf
        best.append(phase.item_ids[largest_columns(block, clicks.N_RECOMMENDED)])
    return np.concatenate(best)


def largest_columns(values: FloatArray, n: int) -> IntArray:
    """Return the columns of the n largest values of each row, largest first, shape (rows, n).

    Processors differ in the last digits of sums and in the order of equal values. To give the same
    ranking on all, values are compared in single precision, and equal values come in the order of
    their columns.
    """
    rounded = values.astype(np.float32)
    nth_largest = np.partition(rounded, -n, axis=1)[:, [-n]]
    is_chosen = rounded >= nth_largest
    n_surplus = is_chosen.sum(axis=1) - n
    for row in np.flatnonzero(n_surplus):
        # Too many values equal the n-th largest: the last ones are left out.
        equal_columns = np.flatnonzero(rounded[row] == nth_largest[row])
        is_chosen[row, equal_columns[-n_surplus[row] :]] = False
    columns = np.nonzero(is_chosen)[1].reshape(len(values), n)
    chosen = np.take_along_axis(rounded, columns, axis=1)
    order = np.argsort(-chosen, axis=1, kind="stable")
    return np.asarray(np.take_along_axis(columns, order, axis=1))
