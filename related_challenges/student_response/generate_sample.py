"""Student responses: simulate a small corpus, to try all scripts without the real files.

Run:     python related_challenges/student_response/generate_sample.py [--seed N]
Writes:  related_challenges/student_response/data/train_data/*.xml, one file for each question,
         and data/test_data/test-unseen-*/*.xml: test sets like those of SemEval-2013 task 7;
         data/annotated_data/*.xml and annotations.csv, from which prepare.py makes such files

The first test set has new answers to the training questions, the second has new questions of the
same domains, and the third has questions of new domains, which use other words.

A question asks for some ideas, each a phrase of invented words. Its reference answers hold all of
the ideas, and so does a correct answer. A partially correct answer has some of them, and a
contradictory answer puts "not" before one. An irrelevant answer has the ideas of another question,
and an answer outside the domain is a stock phrase. Words are dropped and misspelt at random.

The annotated answers are to questions of further domains. Two annotators have labelled the answers
of two domains by DeMAND, and those of another domain by facets, which are the ideas (annotations.py
explains both). The second annotator has seen only some of the answers. Some answers are repeated.
One question is so easy, and another so hard, that prepare.py removes it.
"""

import argparse
from pathlib import Path
from typing import TypeAlias

from common import cli, layout, writing
from related_challenges import challenge

import annotations
import numpy as np
import pandas as pd
import responses

TRAIN_DOMAINS = ("D0", "D1", "D2", "D3", "D4")
NEW_DOMAINS = ("D5", "D6")
# Number of questions in a domain. The last question of a training domain has no training answers;
# it is in the test set of new questions.
N_QUESTIONS = 5
# Number of training answers to each question that has training answers.
N_TRAIN_ANSWERS = 40
# Number of answers to each question of a test set.
N_TEST_ANSWERS = {
    responses.UNSEEN_ANSWERS: 8,
    responses.UNSEEN_QUESTIONS: 30,
    responses.UNSEEN_DOMAINS: 15,
}
# Number of words invented for a domain; a few may repeat.
N_WORDS = 60
# Probability that an answer has each of the five labels, in the order of `responses.LABEL_SETS[5]`.
LABEL_PROBABILITIES = (0.42, 0.23, 0.27, 0.03, 0.05)
# Probability that a word of an answer is dropped.
DROP_PROBABILITY = 0.3
# Probability that a word is misspelt. A misspelt word lacks its last letter.
MISSPELL_PROBABILITY = 0.1
SYLLABLES = ("ba", "cir", "du", "el", "fo", "gap", "hin", "jo", "ku", "lam", "men", "not", "os")
STOCK_PHRASES = ("i do not know", "no idea", "help me please", "what", "i am tired", "skip this")
# Template of a question file. The text of the question makes no sense, and need not make sense.
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
ANSWER_WITHOUT_LABEL = '    <studentAnswer id="{name}.{number}">{text}</studentAnswer>\n'

# Domains whose answers annotators have labelled: with one DeMAND label for each whole answer, or
# with a label for each facet (idea of the question).
DEMAND_DOMAINS = ("A0", "A1")
FACET_DOMAINS = ("F0",)
# Number of annotated answers to each question.
N_ANNOTATED_ANSWERS = 40
# Probabilities of the labels of the answers to two special questions: nearly all students answer
# the first one correctly, and no student answers the second one correctly.
SPECIAL_PROBABILITIES = {
    "A0_0": (0.95, 0.05, 0.0, 0.0, 0.0),
    "A0_1": (0.0, 0.4, 0.4, 0.1, 0.1),
}
# Probability that an annotated answer repeats an earlier answer to the question.
REPETITION_PROBABILITY = 0.1
# Probability that the second annotator labels an answer; the first labels all.
SECOND_ANNOTATOR_SHARE = 0.3
# Probability that the second annotator's opinion about an answer is drawn at random, and so may
# differ from the right one.
CONFUSION_PROBABILITY = 0.2

# A row of annotations: id of the answer, annotator, facet, label.
Row: TypeAlias = tuple[str, str, str, str]


def write_sample(train: Path, test: Path, annotated: Path, seed: int) -> None:
    """Write training files, test sets and annotated answers into three folders."""
    rng = np.random.default_rng(seed)
    for domain in (*TRAIN_DOMAINS, *NEW_DOMAINS):
        ideas_by_question = invent_domain(rng)
        for number in range(N_QUESTIONS):
            folders = choose_folders(train, test, domain, number)
            write_question(rng, domain, number, ideas_by_question, folders)
    # Use a second random generator. So a change of how annotated answers are simulated does not
    # change the files above.
    write_annotated_answers(np.random.default_rng([seed, 1]), annotated)


def invent_domain(rng: np.random.Generator) -> list[list[str]]:
    """Return the ideas of each question of a new domain."""
    vocabulary = ["".join(rng.choice(SYLLABLES, rng.integers(2, 4))) for _ in range(N_WORDS)]
    return [invent_ideas(rng, vocabulary) for _ in range(N_QUESTIONS)]


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
        Folders, each with the number of answers to write into it; see `choose_folders`.
    """
    name = f"{domain}_{number}"
    # The question asks about the first word of one of its ideas.
    subject = rng.choice(ideas_by_question[number]).split()[0]
    # Number the answers through from folder to folder, so that all ids of answers differ.
    n_written = 0
    for folder, n_answers in folders:
        answers = ""
        for answer_number in range(n_written, n_written + n_answers):
            label, text = draw_answer(rng, number, ideas_by_question, LABEL_PROBABILITIES)
            answers += ANSWER.format(name=name, number=answer_number, label=label, text=text)
        n_written += n_answers
        question = format_question(name, domain, subject, ideas_by_question[number], answers)
        writing.write_files({folder / f"{domain}-{number}.xml": question})


def format_question(name: str, domain: str, subject: str, ideas: list[str], answers: str) -> str:
    """Return the XML of a question; `answers` is the XML of the answers to it."""
    return QUESTION.format(
        name=name,
        domain=domain,
        subject=subject,
        ideas=" and ".join(ideas),
        second_reference=" because ".join(reversed(ideas)),
        answers=answers,
    )


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


def draw_answer(
    rng: np.random.Generator,
    number: int,
    ideas_by_question: list[list[str]],
    probabilities: tuple[float, ...],
) -> tuple[str, str]:
    """Return a random label, and the text of an invented answer for which this label is right.

    The ideas of a question are the invented phrases that a correct answer holds. Any other answer
    lacks some of them, denies one, holds the ideas of another question, or is a stock phrase.

    `number` is the question's number in its domain, and `probabilities` holds the probability of
    each label.
    """
    label = str(rng.choice(responses.LABEL_SETS[5], p=probabilities))
    # Draw another question of the domain: add 1 to N_QUESTIONS - 1 to the number of the question,
    # modulo N_QUESTIONS.
    n_steps = int(rng.integers(1, N_QUESTIONS))
    other_number = (number + n_steps) % N_QUESTIONS
    other_ideas = ideas_by_question[other_number]
    return label, write_answer(rng, label, ideas_by_question[number], other_ideas)


def write_answer(
    rng: np.random.Generator, label: str, ideas: list[str], other_ideas: list[str]
) -> str:
    """Return the text of an invented answer for which `label` is right.

    `ideas` are the ideas of the question, and `other_ideas` are the ideas of another question.
    """
    if label == "non_domain":
        return str(rng.choice(STOCK_PHRASES))
    ideas_of_answer = {
        "correct": ideas,
        "partially_correct_incomplete": ideas[: len(ideas) // 2],
        "contradictory": [f"not {ideas[0]}", *ideas[1:]],
        "irrelevant": other_ideas,
    }[label]
    ideas_in_random_order = rng.permutation(ideas_of_answer)
    words = " and ".join(ideas_in_random_order).split()
    # Drop words at random, but not "not", which makes an answer contradictory.
    kept = [word for word in words if word == "not" or rng.random() > DROP_PROBABILITY]
    if not kept:
        kept = words
    spelt = [word[:-1] if rng.random() < MISSPELL_PROBABILITY else word for word in kept]
    return " ".join(spelt)


def write_annotated_answers(rng: np.random.Generator, folder: Path) -> None:
    """Write the questions of the annotated domains, and a file of annotations, into a folder.

    The answers of `DEMAND_DOMAINS` have DeMAND labels, each of which is about a whole answer. The
    answers of `FACET_DOMAINS` have a label for each facet; the facets are the ideas of the
    question.
    """
    rows: list[Row] = []
    for domain in (*DEMAND_DOMAINS, *FACET_DOMAINS):
        ideas_by_question = invent_domain(rng)
        for question_number, ideas in enumerate(ideas_by_question):
            name = f"{domain}_{question_number}"
            facets = ideas if domain in FACET_DOMAINS else []
            answers = ""
            drawn = draw_answers_with_repetitions(rng, name, question_number, ideas_by_question)
            for answer_number, (label, text) in enumerate(drawn):
                answers += ANSWER_WITHOUT_LABEL.format(name=name, number=answer_number, text=text)
                rows += annotate(rng, f"{name}.{answer_number}", label, facets)
            # The question asks about the first word of its first idea.
            subject = ideas[0].split()[0]
            question = format_question(name, domain, subject, ideas, answers)
            writing.write_files({folder / f"{domain}-{question_number}.xml": question})
    table = pd.DataFrame(rows, columns=[column.name for column in annotations.COLUMNS])
    writing.write_files({folder / annotations.FILE: table})


def draw_answers_with_repetitions(
    rng: np.random.Generator, name: str, number: int, ideas_by_question: list[list[str]]
) -> list[tuple[str, str]]:
    """Return label and text of each annotated answer to a question; some answers are repeated.

    `name` is the id of the question, and `number` its number in its domain.
    """
    # A few special questions have label probabilities of their own.
    probabilities = SPECIAL_PROBABILITIES.get(name, LABEL_PROBABILITIES)
    drawn: list[tuple[str, str]] = []
    for _ in range(N_ANNOTATED_ANSWERS):
        if drawn and rng.random() < REPETITION_PROBABILITY:
            repeated = drawn[int(rng.integers(len(drawn)))]
            drawn.append(repeated)
        else:
            drawn.append(draw_answer(rng, number, ideas_by_question, probabilities))
    return drawn


def annotate(rng: np.random.Generator, answer_id: str, label: str, facets: list[str]) -> list[Row]:
    """Return the rows of two annotators about an answer whose right label is `label`, one of five.

    `facets` are the ideas of the question. An annotator gives a label to each facet. If `facets` is
    empty, the annotator gives one DeMAND label to the whole answer instead. The second annotator
    has labelled only some answers, and sometimes disagrees with the first.
    """
    rows = annotate_once(rng, answer_id, "first", label, facets)
    if rng.random() < SECOND_ANNOTATOR_SHARE:
        if rng.random() < CONFUSION_PROBABILITY:
            label = str(rng.choice(responses.LABEL_SETS[5]))
        rows += annotate_once(rng, answer_id, "second", label, facets)
    return rows


def annotate_once(
    rng: np.random.Generator, answer_id: str, annotator: str, label: str, facets: list[str]
) -> list[Row]:
    """Return the rows of one annotator about an answer whose right label is `label`, one of five.

    The answer gets a label for each facet (idea of the question). These labels are chosen so that
    `annotations.label_of_facets` combines them into `label`. No combination of them stands for
    `non_domain`, so an answer outside the domain gets a DeMAND label, which is about the whole
    answer.
    """
    if not facets or label == "non_domain":
        # Several DeMAND labels may stand for `label`: draw one of them.
        demand_labels = [name for name, becomes in annotations.DEMAND.items() if becomes == label]
        return [(answer_id, annotator, "", str(rng.choice(demand_labels)))]
    # Divide the list of facets into two halves. All facets of a half get the same finding, such as
    # UNDERSTOOD. The findings of the two halves differ only if the answer is partly correct or
    # contradictory.
    finding_in_first_half, finding_in_second_half = {
        "correct": (annotations.UNDERSTOOD, annotations.UNDERSTOOD),
        "partially_correct_incomplete": (annotations.UNDERSTOOD, annotations.NOT_ADDRESSED),
        "contradictory": (annotations.CONTRADICTED, annotations.UNDERSTOOD),
        "irrelevant": (annotations.NOT_ADDRESSED, annotations.NOT_ADDRESSED),
    }[label]
    rows = []
    for number, facet in enumerate(facets):
        is_in_first_half = number < len(facets) // 2
        finding = finding_in_first_half if is_in_first_half else finding_in_second_half
        # Several labels of facets may stand for this finding: draw one of them.
        facet_labels = [name for name, finds in annotations.FACETS.items() if finds == finding]
        rows.append((answer_id, annotator, facet, str(rng.choice(facet_labels))))
    return rows


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(
        build_parser().parse_args(),
        write_sample,
        folders=(challenge.TRAIN_FOLDER, layout.TEST_DIR.name, annotations.FOLDER),
    )


if __name__ == "__main__":
    cli.run(main)
