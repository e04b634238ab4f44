"""Task 3: score a ranking of questions against the judgements of five expert teachers.

Run:     python task_3/local_evaluation.py --phase public
Writes:  data/test_output/scores_task_3_public.txt and scores_task_3_public.html

The score is the share of pairs on which the ranking agrees with its best expert. With few pairs, a
random ranking agrees well with its best expert too: what it reaches is printed beside the score, as
are the 95 % interval of every figure and how often the experts agree with each other. The page also
lists the pairs on which ranking and experts disagree.
"""

from common import cli
from common.evaluation import ranking


def main() -> None:
    """Score the ranking that the flags name."""
    ranking.evaluate(__doc__)


if __name__ == "__main__":
    cli.run(main)
