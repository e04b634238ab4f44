"""Cloze: simulate a small set of queries, so that everything runs without the real files.

Run:     python related_challenges/cloze/generate_sample.py [--seed N]
Writes:  related_challenges/cloze/data/train_data/KCT_train_public.txt
         and KCT_test_public.txt, without answers

Invented people have a country, a profession, a birthday and a university, which lies in a country
of its own; sentences ask for one of these in several wordings: facts. Most people come from a few
countries and universities. In which country a person studied counts as reasoning: other sentences
say where the university lies. What a profession works with is common sense.
"""

import argparse
import json
from pathlib import Path

from common import cli, writing
from related_challenges import challenge

import numpy as np
import queries

N_TRAIN, N_TEST = 600, 200
TOOLS = {
    "chemist": "flask", "physicist": "prism", "composer": "piano", "writer": "pen",
    "engineer": "ruler", "judge": "gavel",
}  # fmt: skip
MONTHS = ("january", "february", "march", "may", "june", "july", "august", "october", "november")
SYLLABLES = ("al", "ber", "cor", "den", "fi", "gus", "han", "ila", "jor", "ka", "lin", "mo", "ra")
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

    def invent(n_syllables: int) -> str:
        return "".join(rng.choice(SYLLABLES, n_syllables))

    countries = [invent(2) + "ia" for _ in range(25)]
    universities = [f"university of {invent(3)}" for _ in range(40)]
    places = dict(zip(universities, rng.choice(countries, 40), strict=True))
    popularity = 1 / np.arange(1, 41)
    lines = []
    for number in range(N_TRAIN + N_TEST):
        facts = {
            "name": f"{invent(2)} {invent(3)}",
            "country": rng.choice(countries, p=popularity[:25] / popularity[:25].sum()),
            "university": rng.choice(universities, p=popularity / popularity.sum()),
            "profession": rng.choice([*TOOLS]),
            "birthday": f"{rng.integers(1800, 1990)} {rng.choice(MONTHS)} {rng.integers(1, 29)}",
        }
        facts["place"] = facts["abroad"] = places[facts["university"]]
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


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.generator_parser(__doc__, __file__)


def main() -> None:
    """Simulate the files."""
    challenge.run_generator(build_parser().parse_args(), write_sample)


if __name__ == "__main__":
    cli.run(main)
