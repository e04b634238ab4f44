"""What the sample models share: the clicks of a phase as a matrix, and the best items of a user."""

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

# Users whose scores for all items are dense at the same time; with 41,000 items they take 21 MB.
BLOCK = 64
# How far back the clicks before a phase are read, in lengths of the phase.
HISTORY = 1.0
# Where --local looks for the test users' clicks.
LOCAL_DIR = challenge.data_dir(__file__, challenge.TEST_INPUT)


@dataclass(frozen=True)
class Phase:
    """All clicks of a phase and before it, users and items numbered from 0, by user and time, from
    0 for the first of the phase to 1 for the last, down to -`HISTORY` before it; test users, some
    perhaps without a click, are to be recommended to, at the time of the click to be predicted.
    """

    user: IntArray
    item: IntArray
    time: FloatArray
    item_ids: IntArray
    test_user_ids: IntArray
    test_user: IntArray
    query_time: FloatArray
    n_users: int
    name: str = ""  # for messages

    def by_user(self, values: FloatArray) -> csr_array:
        """Return a value for each click as a matrix, (users, items), added up."""
        return csr_array((values, (self.user, self.item)), shape=(self.n_users, len(self.item_ids)))


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of a sample model."""
    parser = challenge.model_parser(doc, __file__)
    parser.add_argument("--test_dir", type=Path, metavar="DIR", help="default: the --input_dir")
    help_text = f"use the local split: the default of --test_dir becomes {cli.show(LOCAL_DIR)}"
    parser.add_argument("--local", action="store_true", help=help_text)
    return parser


def run_model(options: argparse.Namespace, score_items: Callable[[Phase], csr_array]) -> None:
    """Write the `best_items` by the scores that a sample model gives in each phase."""
    test_dir = options.test_dir or (LOCAL_DIR if options.local else options.input_dir)
    users, items = [], []
    for number in tqdm(clicks.find_phases(options.input_dir), "phases", disable=None):
        phase = read_phase(options.input_dir, test_dir, number)
        users.append(phase.test_user_ids)
        items.append(best_items(phase, score_items(phase)))
    table = pd.DataFrame(np.column_stack([np.concatenate(users), np.concatenate(items)]))
    challenge.write_submission(options, table, header=False)


def read_phase(train_dir: Path, test_dir: Path, number: int) -> Phase:
    """Read the clicks of a phase, and those of earlier phases on its items before its first click
    and the first to be predicted: phases overlap, and none of these can be one to be predicted.
    """

    def read(phase: int) -> pd.DataFrame:
        test = test_dir / clicks.TEST_CLICKS.format(phase)
        return clicks.read_clicks(train_dir / clicks.TRAIN_CLICKS.format(phase), test)

    inside = read(number)
    item_ids = np.unique(inside["item_id"])
    begin, length = inside["time"].min(), max(np.ptp(inside["time"]), np.finfo(float).tiny)
    queries = clicks.read_queries(test_dir / clicks.QUERY_TIMES.format(number))
    # Without the clicks to be predicted a phase may seem to begin later than it does.
    parts, first = [inside], min(begin, queries["time"].min())
    for earlier in reversed([n for n in clicks.find_phases(train_dir) if n < number]):
        if first <= begin - HISTORY * length:
            break
        older = read(earlier)
        is_older = (older["time"] < first) & (older["time"] >= begin - HISTORY * length)
        parts.append(older[is_older & older["item_id"].isin(item_ids)])
        first = min(first, older["time"].min())
    found = pd.concat(parts).sort_values(["user_id", "time"], kind="stable")
    user, user_ids = pd.concat([found["user_id"], queries["user_id"]]).factorize()
    return Phase(
        user=user[: len(found)],
        item=np.searchsorted(item_ids, found["item_id"]),
        time=(found["time"].to_numpy() - begin) / length,
        item_ids=item_ids,
        test_user_ids=queries["user_id"].to_numpy(),
        test_user=user[len(found) :],
        query_time=(queries["time"].to_numpy() - begin) / length,
        n_users=len(user_ids),
        name=f"{train_dir}: phase {number}",
    )


def click_matrix(phase: Phase) -> csr_array:
    """Return the clicks as a matrix with 1 where a user clicked an item, shape (users, items)."""
    matrix = phase.by_user(np.ones(len(phase.user)))
    matrix.data[:] = 1
    return matrix


def places_from_latest(phase: Phase) -> IntArray:
    """Number the clicks of every user from 1 for the latest, shape (clicks,)."""
    end = np.cumsum(np.bincount(phase.user, minlength=phase.n_users))
    return np.asarray(end[phase.user] - np.arange(len(phase.user)))


def best_items(phase: Phase, scores: csr_array) -> IntArray:
    """Return the ids of every test user's fifty best items, not yet clicked, best first, by scores
    of at least 0, (test users, items); items without one follow in order of popularity.
    """
    n_clicks = np.bincount(phase.item, minlength=len(phase.item_ids))
    # Below every score that is above 0.
    least = scores.data[scores.data > 0].min(initial=1.0)
    popularity = least * np.argsort(np.argsort(n_clicks, kind="stable")) / len(n_clicks)
    seen = click_matrix(phase)[phase.test_user]
    n_unseen = len(phase.item_ids) - np.diff(seen.indptr).max(initial=0)
    if n_unseen < clicks.N_RECOMMENDED:
        told = f"{phase.name} holds {n_unseen} items that a user has not clicked"
        raise InputError(f"{told}, expected at least {clicks.N_RECOMMENDED}")
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

    Processors round sums differently in their last digits, and partition equal values differently.
    Neither may change a ranking: values are compared in single precision, and equal ones come in
    the order of their columns.
    """
    rounded = values.astype(np.float32)
    nth_largest = np.partition(rounded, -n, axis=1)[:, [-n]]
    is_larger = rounded > nth_largest
    is_equal = rounded == nth_largest
    n_missing = n - is_larger.sum(axis=1, keepdims=True)
    is_chosen = is_larger | (is_equal & (np.cumsum(is_equal, axis=1) <= n_missing))
    columns = np.nonzero(is_chosen)[1].reshape(len(values), n)
    chosen = np.take_along_axis(rounded, columns, axis=1)
    order = np.argsort(-chosen, axis=1, kind="stable")
    return np.asarray(np.take_along_axis(columns, order, axis=1))
