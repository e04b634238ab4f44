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
    """Return the folder of a challenge's files, `data/` beside its scripts.

    Parameters
    ----------
    script
        The ``__file__`` of a script of the challenge.
    """
    return Path(script).resolve().parent / layout.DATA_DIR.name


def split_parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `local_data_split.py`.

    Parameters
    ----------
    doc, script
        The script's ``__doc__`` and ``__file__``.
    """
    p = cli.parser(doc)
    add_folder(p, "--input_dir", data_dir(script) / layout.TRAIN_DIR.name)
    add_folder(p, "--output_dir", data_dir(script) / layout.TEST_INPUT_DIR.name)
    return p


def model_parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's sample model; a model adds its own flags to it."""
    p = cli.parser(doc)
    add_folder(p, "--input_dir", data_dir(script) / layout.TRAIN_DIR.name)
    add_folder(p, "--output_dir", data_dir(script) / layout.TEST_OUTPUT_DIR.name)
    p.add_argument(
        "--output_file", metavar="FILE", default=SUBMISSION, help=f"default {SUBMISSION}"
    )
    return p


def evaluation_parser(
    doc: str | None, script: str, *, input_dir: str = layout.TRAIN_DIR.name
) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `local_evaluation.py`.

    Parameters
    ----------
    doc, script
        The script's ``__doc__`` and ``__file__``.
    input_dir
        Folder in `data/` that holds the true answers.
    """
    output_dir = data_dir(script) / layout.TEST_OUTPUT_DIR.name
    p = cli.parser(doc)
    add_folder(p, "--input_dir", data_dir(script) / input_dir)
    add_folder(p, "--submission_dir", output_dir)
    p.add_argument(
        "--submit_data", metavar="FILE", default=SUBMISSION, help=f"default {SUBMISSION}"
    )
    add_folder(p, "--output_dir", output_dir)
    return p


def check_parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `check_submission.py`."""
    p = cli.parser(doc)
    p.add_argument("file", type=Path, metavar="FILE", help="the submission")
    add_folder(p, "--input_dir", data_dir(script) / layout.TRAIN_DIR.name)
    return p


def run_check(submission: Path, script: str, check: Callable[[Report], list[str]]) -> None:
    """Print all that is wrong with a submission and exit with 2, or a summary of a valid one.

    Parameters
    ----------
    submission
        The file.
    script
        The ``__file__`` of the challenge's `check_submission.py`.
    check
        Calls what it is given with each fault; returns the lines of the summary.
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


def add_folder(p: argparse.ArgumentParser, flag: str, default: Path) -> None:
    """Add a flag that names a folder."""
    p.add_argument(
        flag, type=Path, metavar="DIR", default=default, help=f"default {cli.show(default)}"
    )


def add_file(p: argparse.ArgumentParser, flag: str, default: str) -> None:
    """Add a flag that names a file in a folder that another flag names."""
    p.add_argument(flag, metavar="FILE", default=default, help=f"default {default}")


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
    add_folder(p, "--output_dir", data_dir(script))
    p.add_argument("--seed", type=cli.seed, metavar="N", default=0, help="default 0")
    options = p.parse_args()

    def write(folder: Path) -> dict[str, Any]:
        write_sample(folder / layout.TRAIN_DIR.name, options.seed)
        return {"seed": options.seed}

    simulated.place_simulated(options.output_dir, [layout.TRAIN_DIR.name], write)
    target = options.output_dir / layout.TRAIN_DIR.name
    print(f"simulated files in {cli.show(target)}")
