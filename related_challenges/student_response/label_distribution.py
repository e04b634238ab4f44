"""Student responses: how often each label occurs, as in table 1 of Dzikovska et al. (2012).

Run:     python related_challenges/student_response/label_distribution.py
         python related_challenges/student_response/label_distribution.py --input_dir BEETLE SEB
Reads:   data/train_data/*.xml, or the files of each folder, or of the test sets in it

A folder is a column: number and share of the answers with each label, and how many answers,
questions and modules there are. The labels are those of the folder's files.
"""

from pathlib import Path

from common import challenge, cli, layout
from common.errors import printable

import numpy as np
import responses


def main() -> None:
    """Print the table of the folders that the flags name."""
    default = challenge.data_dir(__file__) / layout.TRAIN_DIR.name
    p = cli.parser(__doc__)
    p.add_argument(
        "--input_dir",
        type=Path,
        nargs="+",
        metavar="DIR",
        default=[default],
        help=f"default {cli.show(default)}",
    )
    folders = p.parse_args().input_dir
    columns = [describe(responses.read_responses(folder)) for folder in folders]
    names = [printable("/".join(folder.resolve().parts[-3:])) for folder in folders]
    width = max(18, *map(len, names))
    print(f"{'':28s}" + "".join(f"  {name:>{width}s}" for name in names))
    for name in columns[0]:
        cells = [column[name] for column in columns]
        if any(cells):
            print(f"{name:28s}" + "".join(f"  {cell:>{width}s}" for cell in cells))


def describe(answers: responses.Responses) -> dict[str, str]:
    """Return the cells of a folder's column, empty where a label is not of its set."""
    counts = np.bincount(answers.label, minlength=len(answers.labels))
    cells = {
        name: f"{number:,} ({number / len(answers):.1%})"
        for name, number in zip(answers.labels, counts, strict=True)
    }
    return {
        **{name: cells.get(name, "") for name in responses.ALL_LABELS},
        "answers": f"{len(answers):,}",
        "questions": f"{len(answers.questions):,}",
        "modules": f"{len({*answers.questions['module']} - {''}):,}",
    }


if __name__ == "__main__":
    cli.run(main)
