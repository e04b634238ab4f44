"""Student responses: simulate a small corpus, so that everything runs without the real one.

Run:     python related_challenges/student_response/generate_sample.py [--seed N]
Writes:  related_challenges/student_response/data/train_data/*.xml, one file for each question,
         and data/test_data/test-unseen-*/*.xml: test sets like those of SemEval-2013 task 7

A test set has new answers to the training questions, or new questions of the same domains, or
questions of other domains, whose words are others. A question asks for some ideas, each a phrase of
invented words; a reference answer holds them all. A correct answer has all of them, a partial one
some, a contradictory one puts "not" before one, an irrelevant one has ideas of other questions, and
one outside the domain is a stock phrase. Words are dropped and misspelt at random.
"""

import argparse
from pathlib import Path

from common import cli, layout, writing
from related_challenges import challenge

import numpy as np
import responses

TRAIN_DOMAINS, NEW_DOMAINS = ("D0", "D1", "D2", "D3", "D4"), ("D5", "D6")
# Questions in a domain; in a training domain, the last one is the unseen one.
N_QUESTIONS = 5
TRAIN_ANSWERS = 40
# To each question of the test sets, in the order of `responses.SCENARIOS`.
TEST_ANSWERS = (8, 30, 15)
SHARES = (0.42, 0.23, 0.27, 0.03, 0.05)
SYLLABLES = ("ba", "cir", "du", "el", "fo", "gap", "hin", "jo", "ku", "lam", "men", "not", "os")
OUTSIDE = ("i do not know", "no idea", "help me please", "what", "i am tired", "skip this")
QUESTION = """<?xml version="1.0"?>
<question id="{name}" module="{domain}">
  <questionText>Explain why the {subject} is {subject}.</questionText>
  <referenceAnswers>
    <referenceAnswer id="{name}-r0">{ideas}</referenceAnswer>
    <referenceAnswer id="{name}-r1">{reversed_ideas}</referenceAnswer>
  </referenceAnswers>
  <studentAnswers>
{answers}  </studentAnswers>
</question>
"""
ANSWER = '    <studentAnswer id="{name}.{number}" accuracy="{label}">{text}</studentAnswer>\n'


def write_sample(train: Path, test: Path, seed: int) -> None:
    """Write training files and test sets into two folders; a seed gives their bytes."""
    rng = np.random.default_rng(seed)
    tests = [(test / name, n) for name, n in zip(responses.SCENARIOS, TEST_ANSWERS, strict=True)]
    for domain in (*TRAIN_DOMAINS, *NEW_DOMAINS):
        vocabulary = ["".join(rng.choice(SYLLABLES, rng.integers(2, 4))) for _ in range(60)]
        ideas = [
            [" ".join(rng.choice(vocabulary, 3)) for _ in range(rng.integers(2, 4))]
            for _ in range(N_QUESTIONS)
        ]
        for number, own in enumerate(ideas):
            places = [(train, TRAIN_ANSWERS), tests[0]]
            if domain in NEW_DOMAINS or number == N_QUESTIONS - 1:
                places = [tests[2 if domain in NEW_DOMAINS else 1]]
            name, subject, n_students = f"{domain}_{number}", rng.choice(own).split()[0], 0
            for place, n_answers in places:
                answers = ""
                for student in range(n_students, n_students + n_answers):
                    label = str(rng.choice(responses.LABEL_SETS[5], p=SHARES))
                    other = ideas[(number + int(rng.integers(1, N_QUESTIONS))) % N_QUESTIONS]
                    text = write_answer(rng, label, own, other)
                    answers += ANSWER.format(name=name, number=student, label=label, text=text)
                n_students += n_answers
                facts = {"name": name, "domain": domain, "subject": subject, "answers": answers}
                facts |= {"ideas": " and ".join(own), "reversed_ideas": " because ".join(own[::-1])}
                writing.write_files({place / f"{domain}-{number}.xml": QUESTION.format(**facts)})


def write_answer(rng: np.random.Generator, label: str, own: list[str], other: list[str]) -> str:
    """Word an answer as a student with this label might."""
    if label == "non_domain":
        return str(rng.choice(OUTSIDE))
    parts = {
        "correct": own,
        "partially_correct_incomplete": own[: len(own) // 2],
        "contradictory": [f"not {own[0]}", *own[1:]],
        "irrelevant": other,
    }[label]
    words = " and ".join(rng.permutation(parts)).split()
    kept = [word for word in words if word == "not" or rng.random() > 0.3] or words
    return " ".join(word[:-1] if rng.random() < 0.1 else word for word in kept)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(
        build_parser().parse_args(), write_sample, challenge.TRAIN, layout.TEST_DIR.name
    )


if __name__ == "__main__":
    cli.run(main)
