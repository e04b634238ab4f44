"""Debiasing: simulate ten small phases, so that everything runs without the real files.

Run:     python related_challenges/debiasing/generate_sample.py [--seed N]
Writes:  related_challenges/debiasing/data/train_data/underexpose_train_click-T.csv,
         underexpose_test_click-T.csv and underexpose_test_qtime-T.csv for the phases T = 0 to 9

Items belong to themes and are popular by a power law. A user is active for a while, and walks from
an item mostly to one of its few successors in the theme, sometimes to a popular item of any theme.
A phase shares two thirds of its time with the next one, in the real files three quarters; as there,
rows are not in order of time.
"""

import argparse
from pathlib import Path

from common import cli, writing
from related_challenges import challenge

import clicks
import numpy as np
import pandas as pd

N_USERS, N_ITEMS, N_THEMES = 900, 500, 20
# Each phase covers a window of this length in time and begins STEP after the previous one.
WINDOW, STEP = 3 / 12, 1 / 12
SPAN = 0.3  # of a user's activity


def write_sample(folder: Path, seed: int) -> None:
    """Write the files of all phases into a folder."""
    rng = np.random.default_rng(seed)
    theme = rng.integers(N_THEMES, size=N_ITEMS)
    popularity = (1 / np.arange(1, N_ITEMS + 1)) ** 0.7
    successors = np.array(
        [rng.choice(np.flatnonzero(theme == theme[i]), 4) for i in range(N_ITEMS)]
    )
    popular = rng.choice(N_ITEMS, (N_USERS, 200), p=popularity / popularity.sum())
    parts = []
    for number in range(N_USERS):
        seen: dict[int, None] = {}
        current = int(popular[number, 0])
        for candidate in popular[number, 1 : 10 + rng.poisson(14)]:
            seen[current] = None
            follows = rng.random() < 0.75
            current = int(rng.choice(successors[current]) if follows else candidate)
        time = rng.random() * (1 - SPAN) + SPAN * np.sort(rng.random(len(seen)))
        parts.append(pd.DataFrame({"user_id": number, "item_id": [*seen], "time": time}))
    everything = pd.concat(parts, ignore_index=True)
    everything = everything.iloc[rng.permutation(len(everything))]
    for phase in clicks.PHASES:
        begin = phase * STEP
        inside = everything[everything["time"].between(begin, begin + WINDOW, inclusive="left")]
        is_test_user = inside["user_id"] % clicks.USER_MODULUS == phase
        asked, rest = clicks.split_latest(inside[is_test_user])
        # A test user keeps at least two clicks, as in the real files.
        kept = rest["user_id"].value_counts().loc[lambda n: n >= 2].index
        asked, rest = (part[part["user_id"].isin(kept)] for part in (asked, rest))
        for name, table in (
            (clicks.TRAIN_CLICKS, inside[~is_test_user]),
            (clicks.TEST_CLICKS, rest),
            (clicks.QUERY_TIMES, asked[["user_id", "time"]]),
        ):
            writing.write_files({folder / name.format(phase): table}, header=False)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(build_parser().parse_args(), write_sample)


if __name__ == "__main__":
    cli.run(main)
