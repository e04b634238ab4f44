"""Debiasing: simulate ten small phases, to try all scripts without the real files.

Run:     python related_challenges/debiasing/generate_sample.py [--seed N]
Writes:  related_challenges/debiasing/data/train_data/underexpose_train_click-T.csv,
         underexpose_test_click-T.csv and underexpose_test_qtime-T.csv for the phases T = 0 to 9

Items belong to themes, and their popularity follows a power law. Each item has a few successors of
the same theme. A user is active for a while and starts at a popular item. From each item the user
mostly goes on to a successor, and sometimes to a popular item of any theme. A phase shares two
thirds of its time with the next phase, and so roughly two thirds of its clicks, as the organisers'
FAQ says of the real files. As in the real files, rows are not in order of time.
"""

import argparse
from pathlib import Path

from common import cli, writing
from related_challenges import challenge

import clicks
import numpy as np
import pandas as pd

N_USERS = 900
N_ITEMS = 500
N_THEMES = 20
N_SUCCESSORS = 4
# The popularity of the n-th item is 1 / n to this power.
POPULARITY_POWER = 0.7
# After each click, a user goes on to a successor of the clicked item with this probability, and
# otherwise to the next item in the user's list of popular items.
FOLLOW_PROBABILITY = 0.75
# Length of a user's list of popular items, which are drawn at random. Each step uses up one of
# them, and a user makes far fewer steps than this, so the list never runs out.
N_POPULAR = 200
# Each user makes at least `MIN_STEPS` steps from item to item. The number of further steps has a
# Poisson distribution with the mean `MEAN_FURTHER_STEPS`.
MIN_STEPS = 9
MEAN_FURTHER_STEPS = 14
# Times are between 0 and 1. Each of the ten phases lasts 3/12 (`WINDOW`), and starts 1/12 (`STEP`)
# after the phase before. So the last phase lasts from 9/12 to 1.
WINDOW = 3 / 12
STEP = 1 / 12
# All clicks of a user lie within a time of this length, on the same scale from 0 to 1.
SPAN = 0.3


def write_sample(folder: Path, seed: int) -> None:
    """Write the training clicks, test clicks and query times of all phases into a folder."""
    all_clicks = simulate_clicks(np.random.default_rng(seed))
    for phase in clicks.PHASES:
        # A phase has the clicks from `begin` until `WINDOW` later.
        begin = phase * STEP
        is_inside = all_clicks["time"].between(begin, begin + WINDOW, inclusive="left")
        inside = all_clicks[is_inside]
        # As in the real files, user_id modulo USER_MODULUS is the number of the phase in which the
        # user is a test user.
        is_test_user = inside["user_id"] % clicks.USER_MODULUS == phase
        # The latest click of each test user is hidden, since it is to be predicted. The other
        # clicks are known.
        hidden, known = clicks.split_latest(inside[is_test_user])
        # As in the real files, a test user has at least two known clicks. Drop all other test
        # users.
        n_clicks = known["user_id"].value_counts()
        kept_users = n_clicks[n_clicks >= 2].index
        hidden = hidden[hidden["user_id"].isin(kept_users)]
        known = known[known["user_id"].isin(kept_users)]
        tables = {
            clicks.TRAIN_CLICKS: inside[~is_test_user],
            clicks.TEST_CLICKS: known,
            clicks.QUERY_TIMES: hidden[["user_id", "time"]],
        }
        for name, table in tables.items():
            writing.write_files({folder / name.format(phase): table}, header=False)


def simulate_clicks(rng: np.random.Generator) -> pd.DataFrame:
    """Return the clicks of all users in random order: user_id, item_id and time from 0 to 1."""
    theme = rng.integers(N_THEMES, size=N_ITEMS)
    popularity = (1 / np.arange(1, N_ITEMS + 1)) ** POPULARITY_POWER
    # Each item has some successors, which users often click right after it. They are drawn from the
    # items of the same theme. An item may be drawn twice.
    successors = []
    for item in range(N_ITEMS):
        items_of_theme = np.flatnonzero(theme == theme[item])
        successors.append(rng.choice(items_of_theme, N_SUCCESSORS))
    # Each user's list of popular items: the more popular an item, the more often it is drawn.
    items_of_users = rng.choice(N_ITEMS, (N_USERS, N_POPULAR), p=popularity / popularity.sum())
    parts = []
    for user, popular_items in enumerate(items_of_users):
        # The keys are the items that the user has clicked, in order and each only once.
        clicked: dict[int, None] = {}
        # The user starts at the first popular item in the list. In each step, the user clicks the
        # current item, and then either goes on to one of its successors or jumps to the next
        # popular item in the list. Each step uses up a popular item, even if the user does not jump
        # to it.
        current = int(popular_items[0])
        n_steps = MIN_STEPS + rng.poisson(MEAN_FURTHER_STEPS)
        for popular_item in popular_items[1 : 1 + n_steps]:
            clicked[current] = None
            if rng.random() < FOLLOW_PROBABILITY:
                current = int(rng.choice(successors[current]))
            else:
                current = int(popular_item)
        # The user's clicks are at random times within a random interval of the length `SPAN`.
        start = rng.random() * (1 - SPAN)
        time = start + SPAN * np.sort(rng.random(len(clicked)))
        parts.append(pd.DataFrame({"user_id": user, "item_id": list(clicked), "time": time}))
    all_clicks = pd.concat(parts, ignore_index=True)
    return all_clicks.iloc[rng.permutation(len(all_clicks))]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(build_parser().parse_args(), write_sample)


if __name__ == "__main__":
    cli.run(main)
