"""Science exam: simulate a small exam, so that everything runs without the real files.

Run:     python related_challenges/science_exam/generate_sample.py [--seed N]
Writes:  related_challenges/science_exam/data/train_data/train.csv, test.csv (the same questions
         without their answers, as the challenge publishes them) and sample_submission.csv

The texts are made of invented words. As in the real exam, the right option is written with more
care: it is longer on average than the wrong ones, which repeat more of the question's words.
"""

import argparse
from pathlib import Path

from common import cli, writing
from related_challenges import challenge

import exam
import numpy as np
import pandas as pd

N_QUESTIONS = 200
N_TOPICS = 20
WORDS_PER_TOPIC = 60
SYLLABLES = ("ka", "lo", "mi", "ter", "on", "ra", "ves", "pu", "dis", "tal", "ne", "gra", "sy")


def write_sample(folder: Path, seed: int) -> None:
    """Write train.csv, test.csv and sample_submission.csv into a folder."""
    rng = np.random.default_rng(seed)
    topics = [
        ["".join(rng.choice(SYLLABLES, rng.integers(2, 5))) for _ in range(WORDS_PER_TOPIC)]
        for _ in range(N_TOPICS)
    ]
    rows = []
    for number in range(N_QUESTIONS):
        topic = topics[rng.integers(N_TOPICS)]
        prompt = list(rng.choice(topic, 12))
        right = int(rng.integers(len(exam.LABELS)))
        options = []
        for option in range(len(exam.LABELS)):
            n_words = max(4, int(rng.normal(26 if option == right else 22, 4)))
            repeated = rng.random(n_words) < (0.20 if option == right else 0.25)
            words = np.where(repeated, rng.choice(prompt, n_words), rng.choice(topic, n_words))
            options.append(" ".join(words).capitalize() + ".")
        question = f"Which of these, if any, is the {' '.join(prompt)}?"
        rows.append((str(number), question, *options, exam.LABELS[right]))
    questions = pd.DataFrame(rows, columns=["id", "prompt", *exam.LABELS, "answer"])
    writing.write_files({folder / exam.TRAIN: questions})
    writing.write_files({folder / exam.TEST: questions.drop(columns="answer")})
    prediction = " ".join(exam.LABELS[: exam.N_GUESSES])
    writing.write_files({folder / exam.SAMPLE: questions[["id"]].assign(prediction=prediction)})


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(build_parser().parse_args(), write_sample)


if __name__ == "__main__":
    cli.run(main)
