"""Cloze: the same as local_evaluation.py, under the name in the challenge's description.

Run:     python related_challenges/cloze/evaluate.py
         python related_challenges/cloze/evaluate.py --candidates 3
The flags and the files written are those of local_evaluation.py. With --candidates K only the first
K guesses count, as in the challenge's description.
"""

import argparse

from common import cli

import local_evaluation


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags, with this script's docstring as its help."""
    return local_evaluation.build_parser(__doc__)


def main() -> None:
    """Score the submission with the code of local_evaluation.py."""
    local_evaluation.main(build_parser())


if __name__ == "__main__":
    cli.run(main)
