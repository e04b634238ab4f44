"""Student responses: simulate a small corpus, so that everything runs without the real one.

Run:     python related_challenges/student_response/generate_sample.py [--seed N]
Writes:  related_challenges/student_response/data/train_data/*.xml, one file for each question,
         and data/test_data/test-unseen-*/*.xml: test sets like those of SemEval-2013 task 7

The first test set has new answers to the training questions, the second has new questions of the
same domains, and the third has questions of new domains, which use other words.

A question asks for some ideas, each a phrase of invented words. Its reference answers hold all of
the ideas, and so does a correct answer. A partially correct answer has some of them, and a
contradictory answer puts "not" before one. An irrelevant answer has the ideas of another question,
and an answer outside the domain is a stock phrase. Words are dropped and misspelt at random.
"""

import argparse
from pathlib import Path

from common import cli, layout, writing
from related_challenges import challenge

import numpy as np
import responses

TRAIN_DOMAINS = ("D0", "D1", "D2", "D3", "D4")
NEW_DOMAINS = ("D5", "D6")
# Questions in a domain. The last question of a training domain is in the test set of new questions.
N_QUESTIONS = 5
# Answers to each training question.
N_TRAIN_ANSWERS = 40
# Answers to each question of a test set.
N_TEST_ANSWERS = {
    responses.UNSEEN_ANSWERS: 8,
    responses.UNSEEN_QUESTIONS: 30,
    responses.UNSEEN_DOMAINS: 15,
}
# Different words of a domain.
N_WORDS = 60
# Probabilities of the labels, in the order of `responses.LABEL_SETS`.
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
    """Write training files and test sets into two folders."""
    rng = np.random.default_rng(seed)
    for domain in (*TRAIN_DOMAINS, *NEW_DOMAINS):
        vocabulary = ["".join(rng.choice(SYLLABLES, rng.integers(2, 4))) for _ in range(N_WORDS)]
        ideas_by_question = [invent_ideas(rng, vocabulary) for _ in range(N_QUESTIONS)]
        for number, ideas in enumerate(ideas_by_question):
            subject = rng.choice(ideas).split()[0]
            n_written = 0
            for folder, n_answers in choose_folders(train, test, domain, number):
                answers = ""
                for student in range(n_written, n_written + n_answers):
                    label = str(rng.choice(responses.LABEL_SETS[5], p=SHARES))
                    other = (number + int(rng.integers(1, N_QUESTIONS))) % N_QUESTIONS
                    text = write_answer(rng, label, ideas, ideas_by_question[other])
                    answers += ANSWER.format(
                        name=f"{domain}_{number}", number=student, label=label, text=text
                    )
                n_written += n_answers
                question = QUESTION.format(
                    name=f"{domain}_{number}",
                    domain=domain,
                    subject=subject,
                    ideas=" and ".join(ideas),
                    reversed_ideas=" because ".join(reversed(ideas)),
                    answers=answers,
                )
                writing.write_files({folder / f"{domain}-{number}.xml": question})


def invent_ideas(rng: np.random.Generator, vocabulary: list[str]) -> list[str]:
    """Return the ideas of a question, two or three phrases of three words."""
    return [" ".join(rng.choice(vocabulary, 3)) for _ in range(rng.integers(2, 4))]


def choose_folders(train: Path, test: Path, domain: str, number: int) -> list[tuple[Path, int]]:
    """Return the folders that have answers to a question, each with the number of answers."""
    if domain in NEW_DOMAINS:
        return [(test / responses.UNSEEN_DOMAINS, N_TEST_ANSWERS[responses.UNSEEN_DOMAINS])]
    if number == N_QUESTIONS - 1:
        return [(test / responses.UNSEEN_QUESTIONS, N_TEST_ANSWERS[responses.UNSEEN_QUESTIONS])]
    return [
        (train, N_TRAIN_ANSWERS),
        (test / responses.UNSEEN_ANSWERS, N_TEST_ANSWERS[responses.UNSEEN_ANSWERS]),
    ]


def write_answer(rng: np.random.Generator, label: str, ideas: list[str], other: list[str]) -> str:
    """Return the text of an answer with a label.

    `ideas` are those of the question, `other` those of another question.
    """
    if label == "non_domain":
        return str(rng.choice(OUTSIDE))
    parts = {
        "correct": ideas,
        "partially_correct_incomplete": ideas[: len(ideas) // 2],
        "contradictory": [f"not {ideas[0]}", *ideas[1:]],
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
        build_parser().parse_args(), write_sample, challenge.TRAIN_FOLDER, layout.TEST_DIR.name
    )


if __name__ == "__main__":
    cli.run(main)
