"""Accuracy of matrix factorisation on real answers, as the READMEs of tasks 1 and 2 tell it.

    KIT_REAL_DATA=… python tests/benchmarks/matrix_factorization_on_real_answers.py
    … --quick     three splits instead of ten

Each split of the pool is 80 % for training and 20 % for scoring. The number of dimensions is chosen
for each split anew, among `DIMENSIONS`, by the loss on the answers that the model itself holds out
of the training answers. The constants of the engine (stopping rule, priors, burn-in) were settled
with scores on splits of this pool and on simulated answers in view.
"""

import argparse
from typing import Literal

import numpy as np
from real_answers import pool_splits, read_course_subset, read_pool
from tqdm import tqdm

from common import cli
from common.answers import Answers
from common.models.matrix_factorization import MatrixFactorization

DIMENSIONS = (1, 4, 8, 12)
N_SAMPLES = 30
Predicts = Literal["is_correct", "option"]


def majority_accuracy(train: Answers, test: Answers, predicts: Predicts) -> float:
    """Score the most frequent answer to each question."""
    learned, asked = getattr(train, predicts), getattr(test, predicts)
    n_questions = int(max(train.question.max(), test.question.max())) + 1
    counts = np.zeros((n_questions, 5))
    np.add.at(counts, (train.question, learned), 1)
    counts[counts.sum(axis=1) == 0] = counts.sum(axis=0)
    return float(np.mean(counts.argmax(axis=1)[test.question] == asked))


def accuracy(model: MatrixFactorization, test: Answers) -> float:
    """Score the most probable answer."""
    p = model.predict_proba(test.student, test.question)
    if model.predicts == "is_correct":
        return float(np.mean((p > 0.5) == test.is_correct))
    return float(np.mean(p.argmax(axis=1) + 1 == test.option))


def choose_dimensions(train: Answers, predicts: Predicts, seed: int) -> tuple[int, float]:
    """Choose the dimensions with the least held-out loss; give them and the accuracy there."""
    fits = {
        k: MatrixFactorization(predicts, n_dimensions=k, seed=seed).fit(train).history[-1]
        for k in DIMENSIONS
    }
    best = min(fits, key=lambda k: fits[k][0])
    return best, fits[best][1]


def measure(train: Answers, test: Answers, predicts: Predicts, seed: int) -> dict[str, float]:
    """Fit and score everything on one split."""
    k, _ = choose_dimensions(train, predicts, seed)
    scores = {"majority": majority_accuracy(train, test, predicts)}
    for name, dimensions, samples in (
        ("one dimension", 1, 0),
        ("variational", k, 0),
        ("samples", k, N_SAMPLES),
    ):
        model = MatrixFactorization(
            predicts, n_dimensions=dimensions, n_samples=samples, seed=seed
        ).fit(train)
        scores[name] = accuracy(model, test)
    return {**scores, "dimensions chosen": k}


def report(title: str, rows: list[dict[str, float]]) -> None:
    """Print mean ± standard deviation of every column."""
    print(f"\n{title}")
    for name in rows[0]:
        values = [row[name] for row in rows]
        if name == "dimensions chosen":
            print(f"  {name:18} {', '.join(f'{v:.0f}' for v in values)}")
        else:
            deviation = np.std(values, ddof=1) if len(values) > 1 else float("nan")
            print(f"  {name:18} {np.mean(values):.4f} ± {deviation:.4f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="three splits instead of ten")
    n_splits = 3 if parser.parse_args().quick else 10
    pool = read_pool()
    tasks: tuple[tuple[int, Predicts], ...] = ((1, "is_correct"), (2, "option"))
    for task, predicts in tasks:
        rows = [
            measure(train, test, predicts, seed)
            for seed, train, test in tqdm(pool_splits(pool), total=10, desc=f"task {task}")
            if seed < n_splits
        ]
        report(f"task {task}, pool of tasks 3 and 4, {n_splits} splits", rows)
    train, valid = read_course_subset("train"), read_course_subset("valid")
    rows = [measure(train, valid, "is_correct", seed) for seed in range(min(n_splits, 5))]
    report(f"course subset, scored on valid_data.csv, {len(rows)} seeds of the model", rows)


if __name__ == "__main__":
    cli.run(main)
