"""Commands that people run: `python -m tools.scoreboard`."""
