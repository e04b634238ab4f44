"""Science exam: simulate a small exam, to try all scripts without the real files.

Run:     python related_challenges/science_exam/generate_sample.py [--seed N]
Writes:  related_challenges/science_exam/data/train_data/train.csv, test.csv (the same questions
         without their answers, as the challenge publishes them) and sample_submission.csv

The texts are made of invented words. As in the real exam, the right option is longer on average
than the wrong options, and wrong options repeat more words of the question than right ones.
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
WORDS_PER_PROMPT = 12
# The number of words in an option is drawn from a normal distribution: its mean for right options,
# its mean for wrong options, its standard deviation; and the smallest number allowed.
RIGHT_LENGTH = 26
WRONG_LENGTH = 22
LENGTH_SPREAD = 4
MIN_LENGTH = 4
# Probability that a word of an option is taken from the question, for right and for wrong options.
RIGHT_REPEATED = 0.20
WRONG_REPEATED = 0.25
SYLLABLES = ("ka", "lo", "mi", "ter", "on", "ra", "ves", "pu", "dis", "tal", "ne", "gra", "sy")


def write_sample(folder: Path, seed: int) -> None:
    """Write train.csv, test.csv and sample_submission.csv into a folder.

    A question and its options are made of words of the same topic, so that they resemble each other
    more than they resemble other questions.
    """
    rng = np.random.default_rng(seed)
    topics = [invent_topic(rng) for _ in range(N_TOPICS)]
    rows = []
    for number in range(N_QUESTIONS):
        topic = topics[rng.integers(N_TOPICS)]
        prompt_words = list(rng.choice(topic, WORDS_PER_PROMPT))
        right = int(rng.integers(len(exam.LABELS)))
        options = [
            write_option(rng, topic, prompt_words, is_right=(index == right))
            for index in range(len(exam.LABELS))
        ]
        prompt = f"Which of these, if any, is the {' '.join(prompt_words)}?"
        rows.append((str(number), prompt, *options, exam.LABELS[right]))
    questions = pd.DataFrame(rows, columns=["id", "prompt", *exam.LABELS, "answer"])
    writing.write_files({folder / exam.TRAIN_FILE: questions})
    writing.write_files({folder / exam.TEST_FILE: questions.drop(columns="answer")})
    prediction = " ".join(exam.LABELS[: exam.N_GUESSES])
    writing.write_files(
        {folder / exam.SAMPLE_SUBMISSION: questions[["id"]].assign(prediction=prediction)}
    )


def invent_topic(rng: np.random.Generator) -> list[str]:
    """Return the words of a topic, made of random syllables."""
    return ["".join(rng.choice(SYLLABLES, rng.integers(2, 5))) for _ in range(WORDS_PER_TOPIC)]


def write_option(
    rng: np.random.Generator, topic: list[str], prompt_words: list[str], *, is_right: bool
) -> str:
    """Return the text of an option: words of the topic, some of them from the question."""
    mean_length = RIGHT_LENGTH if is_right else WRONG_LENGTH
    n_words = max(MIN_LENGTH, int(rng.normal(mean_length, LENGTH_SPREAD)))
    repeat_probability = RIGHT_REPEATED if is_right else WRONG_REPEATED
    is_repeated = rng.random(n_words) < repeat_probability
    words = np.where(is_repeated, rng.choice(prompt_words, n_words), rng.choice(topic, n_words))
    return " ".join(words).capitalize() + "."


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(build_parser().parse_args(), write_sample)


if __name__ == "__main__":
    cli.run(main)
