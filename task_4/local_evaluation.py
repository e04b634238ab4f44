"""Task 4: play the ten rounds with any entry and score it, as the challenge would.

Run:     python task_4/local_evaluation.py task_4/numpy                     the local split
         python task_4/local_evaluation.py task_4/numpy --phase public     the students of a phase
         python task_4/local_evaluation.py submissions/submission_task_4.zip --phase public
Writes:  data/test_output/scores_task_4.txt and .html, and sequence_task_4.csv, every question that
         was chosen; with --phase public the names end in _public

An entry that fails or breaks a rule gets a message, never a score.
"""

import argparse
from pathlib import Path

from common import cli
from common.adaptive import evaluation
from common.adaptive.entry_files import ENTRY_FILE
from common.errors import InputError


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return evaluation.build_parser(__doc__)


def main() -> None:
    """Play and score the entry that the flags name."""
    options = build_parser().parse_args()
    if options.submission is None:
        raise InputError(
            f"no entry is named, expected a folder or zip; the packages here: {name_packages()}"
        )
    evaluation.evaluate(options)


def name_packages() -> str:
    """Return the folders beside this script that hold an entry, as text with commas."""
    names = []
    for path in sorted(Path(__file__).parent.glob(f"*/{ENTRY_FILE}")):
        package = path.parent
        if package.is_relative_to(Path.cwd()):
            package = package.relative_to(Path.cwd())
        names.append(str(package))
    return ", ".join(names)


if __name__ == "__main__":
    cli.run(main)
