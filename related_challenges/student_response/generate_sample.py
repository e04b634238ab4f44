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

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from common import challenge, cli, io, layout

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


def write_sample(train: Path, test: Path, seed: int) -> None:
    """Write training files and test sets into two folders; a seed gives their bytes."""
    rng = np.random.default_rng(seed)
    tests = [test / name for name in responses.SCENARIOS]
    for domain in (*TRAIN_DOMAINS, *NEW_DOMAINS):
        vocabulary = ["".join(rng.choice(SYLLABLES, rng.integers(2, 4))) for _ in range(60)]
        ideas = [
            [" ".join(rng.choice(vocabulary, 3)) for _ in range(rng.integers(2, 4))]
            for _ in range(N_QUESTIONS)
        ]
        for number in range(N_QUESTIONS):
            if domain in NEW_DOMAINS:
                places = [(tests[2], TEST_ANSWERS[2])]
            elif number == N_QUESTIONS - 1:
                places = [(tests[1], TEST_ANSWERS[1])]
            else:
                places = [(train, TRAIN_ANSWERS), (tests[0], TEST_ANSWERS[0])]
            name, subject = f"{domain}_{number}", rng.choice(ideas[number]).split()[0]
            first = 0
            for place, n_answers in places:
                root = ET.Element("question", id=name, module=domain)
                ask = f"Explain why the {subject} is {subject}."
                ET.SubElement(root, "questionText").text = ask
                add_answers(rng, root, ideas, number, range(first, first + n_answers))
                first += n_answers
                ET.indent(root)
                text = ET.tostring(root, encoding="unicode")
                io.write_text(place / f"{domain}-{number}.xml", f'<?xml version="1.0"?>\n{text}\n')


def add_answers(
    rng: np.random.Generator,
    root: ET.Element,
    ideas: Sequence[list[str]],
    number: int,
    students: range,
) -> None:
    """Add reference answers and students' to a question, one of those whose ideas are given."""
    own, name = ideas[number], root.get("id")
    references = ET.SubElement(root, "referenceAnswers")
    for version, text in enumerate((" and ".join(own), " because ".join(own[::-1]))):
        ET.SubElement(references, "referenceAnswer", id=f"{name}-r{version}").text = text
    elements = ET.SubElement(root, "studentAnswers")
    for student in students:
        label = str(rng.choice(responses.LABEL_SETS[5], p=SHARES))
        other = ideas[(number + int(rng.integers(1, len(ideas)))) % len(ideas)]
        element = ET.SubElement(elements, "studentAnswer", id=f"{name}.{student}", accuracy=label)
        element.text = write_answer(rng, label, own, other)


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


if __name__ == "__main__":
    folders = (challenge.TRAIN, layout.TEST_DIR.name)
    cli.run(lambda: challenge.run_generator(__doc__, __file__, write_sample, *folders))
