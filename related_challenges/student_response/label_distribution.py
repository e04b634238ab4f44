"""Student responses: count each label, as in table 1 of Dzikovska et al. (2012).

Run:     python related_challenges/student_response/label_distribution.py
         python related_challenges/student_response/label_distribution.py --input_dir BEETLE SEB
Reads:   data/train_data/*.xml; with --input_dir the XML files in each folder named, or in the test
         sets inside it

Each folder is a column of the table. The column shows how many of the folder's answers have each
label, with the share, and then the numbers of answers, questions and modules.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

from common import cli
from common.errors import printable
from related_challenges import challenge

import pandas as pd
import responses

# Width of the first column, and least width of every other column, in characters.
FIRST_WIDTH = 28
MIN_WIDTH = 19


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    default = challenge.data_dir(__file__, challenge.TRAIN_FOLDER)
    parser = cli.parser(__doc__)
    parser.add_argument(
        "--input_dir",
        type=Path,
        nargs="+",
        metavar="DIR",
        default=[default],
        help=f"folders of XML files or of test sets (default: {cli.show(default)})",
    )
    return parser


def main() -> None:
    """Print the table of the folders that the flags name."""
    answers_by_title = {}
    for folder in build_parser().parse_args().input_dir:
        # The last three parts of the path tell corpora and test sets apart.
        title = printable("/".join(folder.resolve().parts[-3:]))
        answers_by_title[title] = responses.read_responses(folder)
    print_table(answers_by_title)


def print_table(answers_by_title: Mapping[str, pd.DataFrame]) -> None:
    """Print how many answers have each label, with a column for each set of answers.

    Parameters
    ----------
    answers_by_title : mapping of str to DataFrame
        Answers with labels, by the title of their column.
    """
    columns = {}
    for title, answers in answers_by_title.items():
        counts = answers["label"].value_counts()
        # Maps the name of each row to the row's cell in this column.
        cells = {name: f"{n:,} ({n / len(answers):.1%})" for name, n in counts.items()}
        modules = set(answers["module"]) - {""}
        cells["answers"] = f"{len(answers):,}"
        cells["questions"] = f"{answers['question'].nunique():,}"
        cells["modules"] = f"{len(modules):,}"
        columns[title] = cells
    order = [*responses.ALL_LABELS, "answers", "questions", "modules"]
    table = pd.DataFrame(columns).reindex(order)
    # Each folder's answers have a set of 2, 3 or 5 possible labels. Leave out the rows of labels
    # that are in none of these sets: these rows have no cells.
    table = table.dropna(how="all").fillna("")
    # All columns are wide enough for the longest title and a blank.
    width = max(MIN_WIDTH, *(len(title) + 1 for title in columns))
    rows = [["", *columns], *table.reset_index().to_numpy().tolist()]
    lines = challenge.align_columns(rows, first_width=FIRST_WIDTH, other_width=width)
    print("\n".join(lines))


if __name__ == "__main__":
    cli.run(main)
