"""Accuracy of the partial VAE on real answers, with the settings that the sample models use.

Run:     KIT_REAL_DATA=… python tests/benchmarks/partial_vae_on_real_answers.py [--seeds 10]

Pool: the ten fixed splits of `real_answers`, a model for each, mean ± standard deviation over the
splits. Course subset: trained on its training part, five seeds, scored on its validation part. The
settings were chosen on answers held out of the training parts, of the first split and of the course
subset. All splits share one pool, so what one scores another learns from.
"""

import argparse
import time

import numpy as np
import torch
from real_answers import SEEDS, pool_splits, read_course_subset, read_pool

from common import cli
from common.answers import Answers
from common.metrics import accuracy
from common.models.partial_vae import PartialVAE

N_COURSE_SEEDS = 5


def majority(train: Answers, test: Answers, predicts: str) -> float:
    """Score the most frequent category of each question; ties go to the smaller one."""
    column, test_column = getattr(train, predicts), getattr(test, predicts)
    n_questions = max(train.question.max(), test.question.max()) + 1
    count = np.zeros((n_questions, column.max() + 1), np.int64)
    np.add.at(count, (train.question, column), 1)
    count[count.sum(axis=1) == 0] = count.sum(axis=0)
    return accuracy(test_column, count.argmax(axis=1)[test.question])


def score(train: Answers, test: Answers, predicts: str, seed: int) -> tuple[float, float]:
    """Fit, predict, score: accuracy, and seconds for both."""
    started = time.perf_counter()
    model = PartialVAE(predicts, seed=seed).fit(train)  # type: ignore[arg-type]
    p = model.predict_proba(test.student, test.question)
    seconds = time.perf_counter() - started
    prediction = p > 0.5 if predicts == "is_correct" else p.argmax(axis=1) + 1
    return accuracy(getattr(test, predicts), prediction), seconds


def show(name: str, majority_scores: list[float], rows: list[tuple[float, float]]) -> None:
    """Print a row of the table."""
    scores, seconds = np.array(rows).T
    print(
        f"{name:26} majority {np.mean(majority_scores):.4f}   "
        f"partial VAE {scores.mean():.4f} ± {scores.std(ddof=1):.4f}   "
        f"({np.median(seconds):.1f} s each, lowest {scores.min():.4f}, n = {len(scores)})",
        flush=True,
    )


def main() -> None:
    """Print a line for each set of answers and task."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seeds", type=int, default=len(SEEDS), metavar="N", help="only the first N splits"
    )
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="threads of PyTorch")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    pool = read_pool()
    for predicts, name in (("is_correct", "pool, right/wrong"), ("option", "pool, option")):
        splits = list(pool_splits(pool))[: options.seeds]
        show(
            name,
            [majority(train, test, predicts) for _, train, test in splits],
            [score(train, test, predicts, seed) for seed, train, test in splits],
        )
    train, valid = read_course_subset("train"), read_course_subset("valid")
    show(
        "course subset, right/wrong",
        [majority(train, valid, "is_correct")],
        [score(train, valid, "is_correct", seed) for seed in range(N_COURSE_SEEDS)],
    )


if __name__ == "__main__":
    cli.run(main)
