"""Student responses: simulate a small corpus, to try all scripts without the real files.

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
# Number of questions in a domain. The last question of a training domain has no training answers;
# it is in the test set of new questions.
N_QUESTIONS = 5
# Number of training answers to each training question.
N_TRAIN_ANSWERS = 40
# Number of answers to each question of a test set.
N_TEST_ANSWERS = {
    responses.UNSEEN_ANSWERS: 8,
    responses.UNSEEN_QUESTIONS: 30,
    responses.UNSEEN_DOMAINS: 15,
}
# Number of words invented for a domain; a few may repeat.
N_WORDS = 60
# In the order of `responses.LABEL_SETS[5]`.
LABEL_PROBABILITIES = (0.42, 0.23, 0.27, 0.03, 0.05)
DROP_PROBABILITY = 0.3
# A misspelt word lacks its last letter.
MISSPELL_PROBABILITY = 0.1
SYLLABLES = ("ba", "cir", "du", "el", "fo", "gap", "hin", "jo", "ku", "lam", "men", "not", "os")
STOCK_PHRASES = ("i do not know", "no idea", "help me please", "what", "i am tired", "skip this")
# The text of the question need not make sense.
QUESTION = """<?xml version="1.0"?>
<question id="{name}" module="{domain}">
  <questionText>Explain why the {subject} is {subject}.</questionText>
  <referenceAnswers>
    <referenceAnswer id="{name}-r0">{ideas}</referenceAnswer>
    <referenceAnswer id="{name}-r1">{second_reference}</referenceAnswer>
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
        for number in range(N_QUESTIONS):
            folders = choose_folders(train, test, domain, number)
            write_question(rng, domain, number, ideas_by_question, folders)


def write_question(
    rng: np.random.Generator,
    domain: str,
    number: int,
    ideas_by_question: list[list[str]],
    folders: list[tuple[Path, int]],
) -> None:
    """Write a question into each folder, with different answers in each.

    Parameters
    ----------
    rng : Generator
        Source of random numbers.
    domain : str
        Domain of the question.
    number : int
        Number of the question in its domain.
    ideas_by_question : list of lists of str
        Ideas of all questions of the domain.
    folders : list of (Path, int)
        Result of `choose_folders`.
    """
    name = f"{domain}_{number}"
    ideas = ideas_by_question[number]
    subject = rng.choice(ideas).split()[0]
    # Answers are numbered on from folder to folder, so that their ids differ.
    n_written = 0
    for folder, n_answers in folders:
        answers = ""
        for answer_number in range(n_written, n_written + n_answers):
            label = str(rng.choice(responses.LABEL_SETS[5], p=LABEL_PROBABILITIES))
            # A different question of the domain.
            other = (number + int(rng.integers(1, N_QUESTIONS))) % N_QUESTIONS
            text = write_answer(rng, label, ideas, ideas_by_question[other])
            answers += ANSWER.format(name=name, number=answer_number, label=label, text=text)
        n_written += n_answers
        question = QUESTION.format(
            name=name,
            domain=domain,
            subject=subject,
            ideas=" and ".join(ideas),
            second_reference=" because ".join(reversed(ideas)),
            answers=answers,
        )
        writing.write_files({folder / f"{domain}-{number}.xml": question})


def invent_ideas(rng: np.random.Generator, vocabulary: list[str]) -> list[str]:
    """Return the ideas of a question, two or three phrases of three words."""
    return [" ".join(rng.choice(vocabulary, 3)) for _ in range(rng.integers(2, 4))]


def choose_folders(train: Path, test: Path, domain: str, number: int) -> list[tuple[Path, int]]:
    """Return the folders to write a question to, each with the number of its answers there."""
    if domain in NEW_DOMAINS:
        return [(test / responses.UNSEEN_DOMAINS, N_TEST_ANSWERS[responses.UNSEEN_DOMAINS])]
    if number == N_QUESTIONS - 1:
        return [(test / responses.UNSEEN_QUESTIONS, N_TEST_ANSWERS[responses.UNSEEN_QUESTIONS])]
    return [
        (train, N_TRAIN_ANSWERS),
        (test / responses.UNSEEN_ANSWERS, N_TEST_ANSWERS[responses.UNSEEN_ANSWERS]),
    ]


def write_answer(rng: np.random.Generator, label: str, ideas: list[str], other: list[str]) -> str:
    """Return the text of an invented answer that deserves a label.

    `ideas` are the ideas of the question, `other` those of another question.
    """
    if label == "non_domain":
        return str(rng.choice(STOCK_PHRASES))
    parts = {
        "correct": ideas,
        "partially_correct_incomplete": ideas[: len(ideas) // 2],
        "contradictory": [f"not {ideas[0]}", *ideas[1:]],
        "irrelevant": other,
    }[label]
    ideas_in_random_order = rng.permutation(parts)
    words = " and ".join(ideas_in_random_order).split()
    kept = [word for word in words if word == "not" or rng.random() > DROP_PROBABILITY]
    if not kept:
        kept = words
    spelt = [word[:-1] if rng.random() < MISSPELL_PROBABILITY else word for word in kept]
    return " ".join(spelt)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(
        build_parser().parse_args(),
        write_sample,
        folders=(challenge.TRAIN_FOLDER, layout.TEST_DIR.name),
    )


if __name__ == "__main__":
    cli.run(main)
