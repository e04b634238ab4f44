"""Debiasing: simulate ten small phases, so that everything runs without the real files.

Run:     python related_challenges/debiasing/generate_sample.py [--seed N]
Writes:  related_challenges/debiasing/data/train_data/underexpose_train_click-T.csv,
         underexpose_test_click-T.csv and underexpose_test_qtime-T.csv for the phases T = 0 to 9

Items belong to themes and are popular by a power law. A user is active for a while, and walks from
an item mostly to one of its few successors in the theme, sometimes to a popular item of any theme.
A phase shares two thirds of its time with the next one, in the real files three quarters; as there,
rows are not in order of time.
"""

from pathlib import Path

from common import challenge, cli

import clicks
import numpy as np

N_USERS, N_ITEMS, N_THEMES = 900, 500, 20
# Each phase covers a window of this length in time and begins STEP after the previous one.
WINDOW, STEP = 3 / 12, 1 / 12
# How long a user is active.
SPAN = 0.3


def write_sample(folder: Path, seed: int) -> None:
    """Write the files of all phases into a folder."""
    rng = np.random.default_rng(seed)
    theme = rng.integers(N_THEMES, size=N_ITEMS)
    popularity = (1 / np.arange(1, N_ITEMS + 1)) ** 0.7
    successors = np.array(
        [rng.choice(np.flatnonzero(theme == theme[i]), 4) for i in range(N_ITEMS)]
    )
    popular = rng.choice(N_ITEMS, (N_USERS, 200), p=popularity / popularity.sum())
    user: list[int] = []
    item: list[int] = []
    time: list[float] = []
    for number in range(N_USERS):
        seen: dict[int, None] = {}
        current = int(popular[number, 0])
        for candidate in popular[number, 1 : 10 + rng.poisson(14)]:
            seen[current] = None
            follows = rng.random() < 0.75
            current = int(rng.choice(successors[current]) if follows else candidate)
        user += [number] * len(seen)
        item += seen
        time += (rng.random() * (1 - SPAN) + SPAN * np.sort(rng.random(len(seen)))).tolist()
    everything = clicks.Clicks(np.array(user), np.array(item), np.array(time))
    everything = everything.take(rng.permutation(len(everything)))
    for phase in clicks.PHASES:
        begin = phase * STEP
        inside = (everything.time >= begin) & (everything.time < begin + WINDOW)
        is_test_user = everything.user % clicks.USER_MODULUS == phase
        train = everything.take(inside & ~is_test_user)
        test = everything.take(inside & is_test_user)
        order = np.lexsort((test.time, test.user))
        is_last = np.append(np.diff(test.user[order]) != 0, True)
        asked = test.take(order[is_last])
        # A test user keeps at least two clicks, as in the real files.
        rest = test.take(np.sort(order[~is_last]))
        kept = np.flatnonzero(np.bincount(rest.user, minlength=N_USERS) >= 2)
        rest = rest.take(np.isin(rest.user, kept))
        asked = asked.take(np.isin(asked.user, kept))
        clicks.write_clicks(folder / clicks.train_clicks_name(phase), train)
        clicks.write_clicks(folder / clicks.test_clicks_name(phase), rest)
        clicks.write_query_times(folder / clicks.query_times_name(phase), asked.user, asked.time)


if __name__ == "__main__":
    cli.run(lambda: challenge.run_generator(__doc__, __file__, write_sample))
