"""Cloze: the evaluation under the name that the challenge's description gives it.

Run:     python related_challenges/cloze/evaluate.py
         python related_challenges/cloze/evaluate.py --candidates 3
It takes the same flags as local_evaluation.py and writes the same files. --candidates is the K of
the description: how many guesses count.
"""

from common import cli

import local_evaluation

if __name__ == "__main__":
    cli.run(lambda: local_evaluation.main(__doc__))
