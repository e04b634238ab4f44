"""Cloze: simulate a small set of queries, to try all scripts without the real files.

Run:     python related_challenges/cloze/generate_sample.py [--seed N]
Writes:  related_challenges/cloze/data/train_data/KCT_train_public.txt
         and KCT_test_public.txt, which holds only the id and the text of each query

Invented people have a country, a profession, a birthday and a university. Each university lies in
one of the countries. A query asks for one of these facts, in one of several wordings. Most people
come from a few countries and universities. Queries marked as needing reasoning ask in which country
a person studied: only other queries say where the university lies. Queries marked as common sense
ask for the tool of a profession.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from common import cli, writing
from common.arrays import FloatArray
from related_challenges import challenge

import numpy as np
import queries

N_TRAIN = 600
N_TEST = 200
N_COUNTRIES = 25
N_UNIVERSITIES = 40
# Maps each profession to its tool. Queries of the domain "Common Sense" ask for the tool.
TOOLS = {
    "chemist": "flask", "physicist": "prism", "composer": "piano", "writer": "pen",
    "engineer": "ruler", "judge": "gavel",
}  # fmt: skip
# Months of the invented birthdays. They need not be all twelve.
MONTHS = ("january", "february", "march", "may", "june", "july", "august", "october", "november")
SYLLABLES = ("al", "ber", "cor", "den", "fi", "gus", "han", "ila", "jor", "ka", "lin", "mo", "ra")
# Maps each fact that a query can ask for to the wordings of such a query. {gap} stands for this
# fact. A query that asks for the "country of study" names a university, but not its country. To
# answer the query, a model must learn from other queries where the university lies.
WORDINGS = {
    "country": ("the {profession} {name}'s nationality is {gap}.", "{name} was born in {gap}."),
    "birthday": ("{name} is a {profession} born on {gap}.", "the birth date of {name} is {gap}."),
    "university": ("{name} graduated from {gap}.", "{gap} is where {name} studied."),
    "profession": ("{name} of {country} is a {gap}.", "{name} works as a {gap}."),
    "university country": ("the {university} lies in {gap}.", "{gap} is home to the {university}."),
    "country of study": ("{name} graduated from the {university} and so lived in {gap}.",),
    "tool": ("a {profession} works with a {gap}.", "the {gap} belongs to every {profession}."),
}


def write_sample(folder: Path, seed: int) -> None:
    """Write the training and the test queries into a folder.

    Each query is about another invented person. One random fact about this person is left out of
    the query, where `queries.MASK` stands for it. This fact is the answer.
    """
    rng = np.random.default_rng(seed)
    # The names of invented countries end in "ia", as the names of many real countries do.
    countries = [invent_word(rng, 2) + "ia" for _ in range(N_COUNTRIES)]
    universities = [f"university of {invent_word(rng, 3)}" for _ in range(N_UNIVERSITIES)]
    university_countries = rng.choice(countries, N_UNIVERSITIES)
    country_of_university = dict(zip(universities, university_countries, strict=True))
    lines = []
    for number in range(N_TRAIN + N_TEST):
        facts = invent_person(rng, countries, universities, country_of_university)
        missing_fact = str(rng.choice(list(WORDINGS)))
        wording = str(rng.choice(WORDINGS[missing_fact]))
        record: dict[str, Any] = {
            "qid": f"{number:06x}",
            "query": wording.format(gap=queries.MASK, **facts),
        }
        # Only the training queries have answers. They come first.
        if number < N_TRAIN:
            record["answer"] = [str(facts[missing_fact])]
            record["domain"] = "Common Sense" if missing_fact == "tool" else "Fact"
            record["NeedReasoning"] = missing_fact == "country of study"
        lines.append(json.dumps(record) + "\n")
    writing.write_files({folder / queries.TRAIN_FILE: "".join(lines[:N_TRAIN])})
    writing.write_files({folder / queries.TEST_FILE: "".join(lines[N_TRAIN:])})


def invent_person(
    rng: np.random.Generator,
    countries: list[str],
    universities: list[str],
    country_of_university: dict[str, Any],
) -> dict[str, Any]:
    """Return facts about an invented person: the name, and each fact that a query can ask for."""
    facts = {
        "name": f"{invent_word(rng, 2)} {invent_word(rng, 3)}",
        "country": rng.choice(countries, p=zipf_shares(N_COUNTRIES)),
        "university": rng.choice(universities, p=zipf_shares(N_UNIVERSITIES)),
        "profession": rng.choice(list(TOOLS)),
        "birthday": f"{rng.integers(1800, 1990)} {rng.choice(MONTHS)} {rng.integers(1, 29)}",
    }
    # The country of the university has two keys, because queries ask for it in two ways: where the
    # university lies, and where the person has studied.
    facts["university country"] = country_of_university[facts["university"]]
    facts["country of study"] = facts["university country"]
    facts["tool"] = TOOLS[facts["profession"]]
    return facts


def invent_word(rng: np.random.Generator, n_syllables: int) -> str:
    """Return a word of random syllables."""
    return "".join(rng.choice(SYLLABLES, n_syllables))


def zipf_shares(n: int) -> FloatArray:
    """Return n shares proportional to 1, 1/2, ..., 1/n, which sum to 1."""
    weights = 1 / np.arange(1, n + 1)
    return np.asarray(weights / weights.sum())


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(build_parser().parse_args(), write_sample)


if __name__ == "__main__":
    cli.run(main)
