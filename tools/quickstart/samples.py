"""Runs all sample models, of the tasks or of the related challenges, and shows their scores."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from common import layout
from common.layout import ROOT
from tools.quickstart.environment import VENV
from tools.quickstart.finished import forget_models
from tools.quickstart.prepare_data import prepare_related_data, prepare_task_data
from tools.quickstart.processes import CommandError, run_python
from tools.quickstart.side_by_side import run_side_by_side
from tools.quickstart.steps import (
    OUTPUT_DIR,
    Step,
    find_related_steps,
    find_task_steps,
    show,
)

RECORD = OUTPUT_DIR / layout.RESULTS_NAME
SCOREBOARD = f"{show(OUTPUT_DIR)}/{layout.SCOREBOARD_NAME}"


def run_tasks(python: str, size: str | None) -> int:
    """Get data, then run and score every sample model of the tasks; return the exit code."""
    prepare_task_data(python, size)
    failures = run_steps(python, find_task_steps())
    if show_scores(python):
        print(f"open {SCOREBOARD} (details: */scores_task_*.html there)")
        print(f"your own idea: {command_of(python)} -m tools.new_entry task_1 my_idea", flush=True)
    return report_failures(failures)


def run_related(python: str) -> int:
    """Get data, then run and score every sample model of the related challenges.

    Returns the exit code.
    """
    folders = [path.parent for path in sorted(layout.RELATED_DIR.glob("*/generate_sample.py"))]
    if not folders:
        raise CommandError(f"{show(layout.RELATED_DIR)}/ holds no challenge")
    steps = []
    for folder in folders:
        prepare_related_data(python, folder)
        steps += find_related_steps(folder)
    failures = run_steps(python, steps)
    if show_scores(python):
        folder_name = show(folders[0])
        print(f"open {SCOREBOARD}")
        print(f"details: {show(layout.RELATED_DIR)}/*/data/{OUTPUT_DIR.name}/*/scores_*.html")
        print(
            f"your idea: {command_of(python)} -m tools.new_entry {folder_name} my_idea", flush=True
        )
    return report_failures(failures)


def run_steps(python: str, steps: Sequence[Step]) -> list[str]:
    """Run the steps that are not finished; return a message for each step that failed."""
    # If the record of scores was removed, every model has to be scored again.
    if not RECORD.exists():
        forget_models()
    return run_side_by_side(python, steps)


def show_scores(python: str) -> bool:
    """Show the table of all scores; return whether there are any."""
    if not RECORD.exists():
        return False
    print(flush=True)
    run_python(python, "-m", "tools.scoreboard", shown=True)
    return True


def command_of(python: str) -> str:
    """Return the command that starts this Python in the kit's folder."""
    # Name the Python in .venv by its path: a user may not have activated .venv.
    if python.startswith(str(VENV)):
        return os.path.relpath(python, ROOT)
    return Path(python).name


def report_failures(failures: Sequence[str]) -> int:
    """Print the messages of failed steps to stderr; return the exit code."""
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0
