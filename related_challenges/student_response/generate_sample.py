"""Student responses: simulate a small corpus, so that everything runs without the real one.

Run:     python related_challenges/student_response/generate_sample.py [--seed N]
Writes:  related_challenges/student_response/data/train_data/*.xml, one file for each question

A question asks for some ideas, each a phrase of invented words; a reference answer holds them all.
A correct answer has all of them, a partial one some, a contradictory one puts "not" before one, an
irrelevant one has ideas of other questions, and one outside the domain is a stock phrase.
Words are dropped and misspelt at random.
"""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import responses

from common import challenge, cli

N_QUESTIONS = 20
ANSWERS_PER_QUESTION = 40
SHARES = (0.42, 0.23, 0.27, 0.03, 0.05)
SYLLABLES = ("ba", "cir", "du", "el", "fo", "gap", "hin", "jo", "ku", "lam", "men", "not", "os")
OUTSIDE = ("i do not know", "no idea", "help me please", "what", "i am tired", "skip this")


def write_sample(folder: Path, seed: int) -> None:
    """Write one XML file for each question into a folder."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    vocabulary = ["".join(rng.choice(SYLLABLES, rng.integers(2, 4))) for _ in range(120)]
    ideas = [
        [" ".join(rng.choice(vocabulary, 3)) for _ in range(rng.integers(2, 4))]
        for _ in range(N_QUESTIONS)
    ]
    for number, own in enumerate(ideas):
        root = ET.Element("question", id=f"Q{number}", module="simulated")
        subject = rng.choice(own).split()[0]
        ET.SubElement(root, "questionText").text = f"Explain why the {subject} is {subject}."
        references = ET.SubElement(root, "referenceAnswers")
        for version, text in enumerate((" and ".join(own), " because ".join(own[::-1]))):
            ET.SubElement(references, "referenceAnswer", id=f"Q{number}-r{version}").text = text
        answers = ET.SubElement(root, "studentAnswers")
        for student in range(ANSWERS_PER_QUESTION):
            label = str(rng.choice(responses.LABEL_SETS[5], p=SHARES))
            other = ideas[int(rng.integers(N_QUESTIONS))]
            element = ET.SubElement(
                answers, "studentAnswer", id=f"Q{number}.{student}", accuracy=label
            )
            element.text = write_answer(rng, label, own, other)
        ET.indent(root)
        text = ET.tostring(root, encoding="unicode")
        (folder / f"Q{number:02d}.xml").write_bytes(f'<?xml version="1.0"?>\n{text}\n'.encode())


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
    kept = [word for word in words if word == "not" or rng.random() > 0.15] or words
    return " ".join(word[:-1] if rng.random() < 0.1 else word for word in kept)


if __name__ == "__main__":
    cli.run(lambda: challenge.run_generator(__doc__, __file__, write_sample))
