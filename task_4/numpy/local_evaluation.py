"""Task 4: play the ten rounds with the package in this folder and score it, as the challenge would.

Run:     python task_4/numpy/local_evaluation.py                  the local split
         python task_4/numpy/local_evaluation.py --phase public   the released students of a phase
Writes:  data/test_output/scores_task_4.txt and .html, and sequence_task_4.csv: what was asked

An entry that fails or breaks a rule gets a message, never a score.
"""

from pathlib import Path

from common import cli
from common.adaptive import evaluation

if __name__ == "__main__":
    cli.run(lambda: evaluation.evaluate(__doc__, Path(__file__).parent))
