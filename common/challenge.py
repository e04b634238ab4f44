"""What only the related challenges share: folders, flags, submissions, samples marked as simulated.

Every challenge keeps its files beside its scripts, laid out like the kit's own `data/`.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from common import cli, folds, io, layout, made, simulated
from common.errors import InputError, Report

SUBMISSION = "submission.csv"


def data_dir(script: str) -> Path:
    """Return the folder of a challenge's files, `data/` beside the script that is given."""
    return Path(script).resolve().parent / layout.DATA_DIR.name


def split_parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `local_data_split.py`, given its docstring and its file."""
    p = cli.parser(doc)
    cli.add_folder(p, "--input_dir", data_dir(script) / layout.TRAIN_DIR.name)
    cli.add_folder(p, "--output_dir", data_dir(script) / layout.TEST_INPUT_DIR.name)
    return p


def model_parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's sample model; a model adds its own flags to it."""
    p = cli.parser(doc)
    cli.add_folder(p, "--input_dir", data_dir(script) / layout.TRAIN_DIR.name)
    cli.add_folder(p, "--output_dir", data_dir(script) / layout.TEST_OUTPUT_DIR.name)
    cli.add_file(p, "--output_file", SUBMISSION)
    return p


def evaluation_parser(
    doc: str | None, script: str, *, input_dir: str = layout.TRAIN_DIR.name
) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `local_evaluation.py`; input_dir holds the true answers."""
    p = cli.parser(doc)
    cli.add_folder(p, "--input_dir", data_dir(script) / input_dir)
    cli.add_folder(p, "--submission_dir", data_dir(script) / layout.TEST_OUTPUT_DIR.name)
    cli.add_file(p, "--submit_data", SUBMISSION)
    cli.add_folder(p, "--output_dir", data_dir(script) / layout.TEST_OUTPUT_DIR.name)
    return p


def check_parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `check_submission.py`."""
    p = cli.parser(doc)
    p.add_argument("file", type=Path, metavar="FILE", help="the submission")
    cli.add_folder(p, "--input_dir", data_dir(script) / layout.TRAIN_DIR.name)
    return p


def run_check(submission: Path, script: str, check: Callable[[Report], list[str]]) -> None:
    """Print all that is wrong with a submission and exit with 2, or a summary of a valid one.

    `check` calls what it is given with each fault, and returns the lines of the summary.
    """
    faults: list[str] = []
    summary: list[str] = []
    try:
        summary = check(faults.append)
    except InputError as error:
        faults.append(str(error))
    cli.print_verdict(submission, Path(script).resolve().parent.name, faults, summary)


def write_submission(
    path: Path,
    columns: Mapping[str, Any],
    *,
    header: bool = True,
    folds_file: Path | None = None,
) -> None:
    """Write a submission and, in a .json beside it, how it was made (`common.made`).

    Parameters
    ----------
    path
        Where the CSV goes.
    columns
        For each column name an array.
    header
        Whether to write the column names in row 1.
    folds_file
        The folds, each predicted after learning from the others; None if there were none.
    """
    split = "" if folds_file is None else folds.describe_folds(folds_file)
    with io.atomic_write(path, path.with_suffix(".json")) as (csv_file, origin_file):
        io.write_csv_to(csv_file, columns, header=header)
        made_now = made.this_process(path.parent, {path.name: csv_file}, split=split)
        origin_file.write(made_now.as_json())


def run_generator(doc: str | None, script: str, write_sample: Callable[[Path, int], None]) -> None:
    """Run a challenge's `generate_sample.py`: write a simulated sample and mark it as such.

    Parameters
    ----------
    doc, script
        The script's ``__doc__`` and ``__file__``.
    write_sample
        Writes the files into a folder, given a seed; the same seed gives the same bytes.

    Raises
    ------
    InputError
        If the folder holds files that are not simulated.
    """
    p = cli.parser(doc)
    cli.add_folder(p, "--output_dir", data_dir(script))
    p.add_argument("--seed", type=cli.seed, metavar="N", default=0, help="default 0")
    options = p.parse_args()

    def write(folder: Path) -> dict[str, Any]:
        write_sample(folder / layout.TRAIN_DIR.name, options.seed)
        return {"seed": options.seed}

    simulated.place_simulated(options.output_dir, [layout.TRAIN_DIR.name], write)
    target = options.output_dir / layout.TRAIN_DIR.name
    print(f"simulated files in {cli.show(target)}")
