"""Cloze: simulate a small set of queries, so that everything runs without the real files.

Run:     python related_challenges/cloze/generate_sample.py [--seed N]
Writes:  related_challenges/cloze/data/train_data/KCT_train_public.txt
         and KCT_test_public.txt, without answers

Invented people have a country, a profession, a birthday and a university; each university lies in
some country. A query asks for one of these facts, in one of several wordings. Most people come from
a few countries and universities. To ask in which country a person studied needs reasoning, since
other queries say where the university lies. To ask for the tool of a profession is common sense.
"""

import argparse
import json
from pathlib import Path

from common import cli, writing
from common.arrays import FloatArray
from related_challenges import challenge

import numpy as np
import queries

N_TRAIN = 600
N_TEST = 200
N_COUNTRIES = 25
N_UNIVERSITIES = 40
# Tool of each profession.
TOOLS = {
    "chemist": "flask", "physicist": "prism", "composer": "piano", "writer": "pen",
    "engineer": "ruler", "judge": "gavel",
}  # fmt: skip
MONTHS = ("january", "february", "march", "may", "june", "july", "august", "october", "november")
SYLLABLES = ("al", "ber", "cor", "den", "fi", "gus", "han", "ila", "jor", "ka", "lin", "mo", "ra")
# Sentences that ask for a fact, by the fact that fills the gap.
WORDINGS = {
    "country": ("the {profession} {name}'s nationality is {gap}.", "{name} was born in {gap}."),
    "birthday": ("{name} is a {profession} born on {gap}.", "the birth date of {name} is {gap}."),
    "university": ("{name} graduated from {gap}.", "{gap} is where {name} studied."),
    "profession": ("{name} of {country} is a {gap}.", "{name} works as a {gap}."),
    "place": ("the {university} lies in {gap}.", "{gap} is home to the {university}."),
    "abroad": ("{name} graduated from the {university} and so lived in {gap}.",),
    "tool": ("a {profession} works with a {gap}.", "the {gap} belongs to every {profession}."),
}


def write_sample(folder: Path, seed: int) -> None:
    """Write the training and the test queries into a folder."""
    rng = np.random.default_rng(seed)
    countries = [invent_word(rng, 2) + "ia" for _ in range(N_COUNTRIES)]
    universities = [f"university of {invent_word(rng, 3)}" for _ in range(N_UNIVERSITIES)]
    university_countries = rng.choice(countries, N_UNIVERSITIES)
    country_of = dict(zip(universities, university_countries, strict=True))
    lines = []
    for number in range(N_TRAIN + N_TEST):
        facts = {
            "name": f"{invent_word(rng, 2)} {invent_word(rng, 3)}",
            "country": rng.choice(countries, p=falling_shares(N_COUNTRIES)),
            "university": rng.choice(universities, p=falling_shares(N_UNIVERSITIES)),
            "profession": rng.choice(list(TOOLS)),
            "birthday": f"{rng.integers(1800, 1990)} {rng.choice(MONTHS)} {rng.integers(1, 29)}",
        }
        facts["place"] = country_of[facts["university"]]
        facts["abroad"] = facts["place"]
        facts["tool"] = TOOLS[facts["profession"]]
        asked = str(rng.choice(list(WORDINGS)))
        record = {
            "qid": f"{number:06x}",
            "query": str(rng.choice(WORDINGS[asked])).format(gap=queries.MASK, **facts),
            "answer": [str(facts[asked])],
            "domain": "Common Sense" if asked == "tool" else "Fact",
            "NeedReasoning": asked == "abroad",
        }
        if number >= N_TRAIN:
            del record["answer"]
        lines.append(json.dumps(record) + "\n")
    writing.write_files({folder / queries.TRAIN: "".join(lines[:N_TRAIN])})
    writing.write_files({folder / queries.TEST: "".join(lines[N_TRAIN:])})


def invent_word(rng: np.random.Generator, n_syllables: int) -> str:
    """Return a word of random syllables."""
    return "".join(rng.choice(SYLLABLES, n_syllables))


def falling_shares(n: int) -> FloatArray:
    """Return n shares in proportion to 1, 1/2, 1/3, ... that sum to 1."""
    popularity = 1 / np.arange(1, n + 1)
    return np.asarray(popularity / popularity.sum())


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(build_parser().parse_args(), write_sample)


if __name__ == "__main__":
    cli.run(main)
