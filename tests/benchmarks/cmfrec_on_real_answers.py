"""Measure the accuracy of cmfrec on the same splits of real answers as the kit's models.

KIT_REAL_DATA=… python tests/benchmarks/cmfrec_on_real_answers.py PEER/bin/python

PEER is an environment with cmfrec (see peer_cmfrec.py). The settings of cmfrec are chosen on a
fifth of the training answers of the first split. It predicts whether answers are right.
"""

import itertools
import json
import subprocess
import tempfile
from pathlib import Path

from common import cli

import numpy as np
import pandas as pd
from real_answers import pool_splits, read_pool
from tqdm import tqdm

N_FACTORS = (1, 3, 8)
PENALTIES = (3, 10, 30, 100)


def score(
    peer_python: str, train: pd.DataFrame, test: pd.DataFrame, settings: dict[str, int]
) -> float:
    """Fit cmfrec, a library for matrix factorisation; return its accuracy on the answers `test`.

    `peer_python` is the interpreter in which cmfrec is installed.
    """
    arrays = {
        "student": train["UserId"].to_numpy(),
        "question": train["QuestionId"].to_numpy(),
        "is_correct": train["IsCorrect"].to_numpy(),
        "test_student": test["UserId"].to_numpy(),
        "test_question": test["QuestionId"].to_numpy(),
        "test_is_correct": test["IsCorrect"].to_numpy(),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arrays.npz"
        np.savez(path, allow_pickle=False, **arrays)
        peer = Path(__file__).with_name("peer_cmfrec.py")
        done = subprocess.run(
            [peer_python, str(peer), str(path), json.dumps(settings)],
            capture_output=True,
            text=True,
            check=True,
        )
    last_line = done.stdout.splitlines()[-1]
    return float(json.loads(last_line)["accuracy"])


def main() -> None:
    """Choose cmfrec's settings, score every split, print mean ± standard deviation."""
    p = cli.parser(__doc__)
    p.add_argument("peer_python", metavar="PEER/bin/python")
    peer_python = p.parse_args().peer_python
    splits = list(pool_splits(read_pool()))
    _seed, first_train, _test = splits[0]
    best = choose_settings(peer_python, first_train)
    scores = [
        score(peer_python, train, test, best)
        for _seed, train, test in tqdm(splits, "splits", disable=None)
    ]
    print(f"cmfrec {best}: {np.mean(scores):.4f} ± {np.std(scores, ddof=1):.4f}")


def choose_settings(peer_python: str, train: pd.DataFrame) -> dict[str, int]:
    """Return the settings with the best accuracy on a held-out fifth of the training answers."""
    is_held_out = np.random.default_rng(0).random(len(train)) < 0.2
    grid = [
        {"k": n_factors, "lambda_": penalty}
        for n_factors, penalty in itertools.product(N_FACTORS, PENALTIES)
    ]
    accuracies = [
        score(peer_python, train[~is_held_out], train[is_held_out], settings)
        for settings in tqdm(grid, "settings", disable=None)
    ]
    return grid[int(np.argmax(accuracies))]


if __name__ == "__main__":
    cli.run(main)
