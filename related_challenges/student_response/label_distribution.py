"""Student responses: count each label, as in table 1 of Dzikovska et al. (2012).

Run:     python related_challenges/student_response/label_distribution.py
         python related_challenges/student_response/label_distribution.py --input_dir BEETLE SEB
Reads:   data/train_data/*.xml, or the files of each folder, or of the test sets in it

Each folder is a column of the table. The column has the number and share of the answers with each
label of the folder's files, and the numbers of answers, questions and modules.
"""

import argparse
from pathlib import Path

from common import cli
from common.errors import printable
from related_challenges import challenge

import pandas as pd
import responses


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
        help=f"default {cli.show(default)}",
    )
    return parser


def main() -> None:
    """Print the table of the folders that the flags name."""
    columns = {}
    for folder in build_parser().parse_args().input_dir:
        answers = responses.read_responses(folder)
        counts = answers["label"].value_counts()
        column = {name: f"{n:,} ({n / len(answers):.1%})" for name, n in counts.items()}
        modules = set(answers["module"]) - {""}
        column["answers"] = f"{len(answers):,}"
        column["questions"] = f"{answers['question'].nunique():,}"
        column["modules"] = f"{len(modules):,}"
        title = printable("/".join(folder.resolve().parts[-3:]))
        columns[title] = column
    order = [*responses.ALL_LABELS, "answers", "questions", "modules"]
    table = pd.DataFrame(columns).reindex(order).dropna(how="all").fillna("")
    width = max(18, *map(len, columns)) + 1
    rows = [["", *columns], *table.reset_index().to_numpy().tolist()]
    print("\n".join(challenge.in_columns(rows, 28, width)))


if __name__ == "__main__":
    cli.run(main)
