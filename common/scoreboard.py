"""`python -m common.scoreboard`: the scoreboard under a short name; see `common/scores/`."""

from common import cli
from common.scores.scoreboard import main

if __name__ == "__main__":
    cli.run(main)
