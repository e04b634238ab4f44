"""What only the related challenges share: folders, flags, submissions, the frames of their scripts.

Every challenge keeps its files beside its scripts, laid out like the kit's own `data/`.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from common import cli, folds, io, layout, simulated
from common.errors import InputError, Report

SUBMISSION = "submission.csv"


def data_dir(script: str, name: str = "") -> Path:
    """Return the folder of a challenge's files, `data/` beside its scripts, or one in there."""
    return Path(script).resolve().parent / layout.DATA_DIR.name / name


def parser(
    doc: str | None,
    script: str,
    *,
    input_dir: str = layout.TRAIN_DIR.name,
    output_dir: str = layout.TEST_OUTPUT_DIR.name,
) -> argparse.ArgumentParser:
    """Make the parser of a script that reads one folder of `data/` and writes another."""
    p = cli.parser(doc)
    cli.add_folder(p, "--input_dir", data_dir(script, input_dir))
    cli.add_folder(p, "--output_dir", data_dir(script, output_dir))
    return p


# ---- Samples and splits ----------------------------------------------------------------------


def run_generator(
    doc: str | None,
    script: str,
    write_sample: Callable[..., None],
    folders: Sequence[str] = (layout.TRAIN_DIR.name,),
) -> None:
    """Write a simulated sample, marked as such; `write_sample` is given the folders and a seed."""
    p = cli.parser(doc)
    cli.add_folder(p, "--output_dir", data_dir(script))
    p.add_argument("--seed", type=cli.seed, metavar="N", default=0, help="default 0")
    options = p.parse_args()

    def write(folder: Path) -> dict[str, Any]:
        write_sample(*(folder / name for name in folders), options.seed)
        return {"seed": options.seed}

    simulated.place_simulated(options.output_dir, folders, write)
    shown = " and ".join(cli.show(options.output_dir / name) for name in folders)
    print(f"simulated files in {shown}")


def fold_parser(
    doc: str | None, script: str, n_folds: int, train: str = ""
) -> argparse.ArgumentParser:
    """Make the parser of a `local_data_split.py` that divides examples into folds."""
    p = parser(doc, script, output_dir=layout.TEST_INPUT_DIR.name)
    if train:
        cli.add_file(p, "--train_data", train)
    p.add_argument("--folds", type=int, metavar="N", default=n_folds, help=f"default {n_folds}")
    p.add_argument("--seed", type=cli.seed, metavar="N", default=0, help="default 0")
    return p


def split_into_folds(
    options: argparse.Namespace,
    what: str,
    ids: Sequence[str],
    group: folds.IntArray,
    made_from: Sequence[Path],
) -> None:
    """Write the folds of examples, of which those of a group stay together; `what` names them."""
    fold = folds.assign_folds(group, options.folds, options.seed)
    path = options.output_dir / layout.FOLDS
    folds.write_folds(path, ids, fold, made_from)
    print(f"written: {cli.show(path)} ({len(ids):,} {what}, {options.folds} folds)")


# ---- Models ----------------------------------------------------------------------------------


def model_parser(doc: str | None, script: str, **files: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's sample model; a model adds its own flags to it.

    Where a training and a test file are named, it predicts the latter, or with --local the former.
    """
    p = parser(doc, script)
    cli.add_file(p, "--output_file", SUBMISSION)
    for flag, default in files.items():
        cli.add_file(p, f"--{flag}", default)
    if files:
        told = "predict the training file instead, every fold after learning from the others"
        p.add_argument("--local", action="store_true", help=told)
        add_folds(p, script)
    return p


def add_folds(p: argparse.ArgumentParser, script: str) -> None:
    """Add the flags that name the folds which a model predicts."""
    cli.add_folder(p, "--submission_template_dir", data_dir(script, layout.TEST_INPUT_DIR.name))
    cli.add_file(p, "--submission_template_file", layout.FOLDS)


def folds_path(options: argparse.Namespace) -> Path | None:
    """Return the file of the folds that a model predicts; None where it predicts a test file."""
    if not options.local:
        return None
    return Path(options.submission_template_dir / options.submission_template_file)


def write_submission(
    options: argparse.Namespace,
    columns: Any,
    *,
    header: bool = True,
    folds_file: Path | None = None,
) -> None:
    """Write columns, a DataFrame or a mapping, as a submission, and beside it how it was made.

    Of folds, each was predicted after learning from the others.
    """
    path = options.output_dir / options.output_file
    split = "" if folds_file is None else folds.describe_folds(folds_file)
    io.write_recorded({path: columns}, path.with_suffix(".json"), split=split, header=header)
    print(f"written: {cli.show(path)} ({len(columns[next(iter(columns))]):,} rows)")


# ---- Evaluations and checks ------------------------------------------------------------------


def evaluation_parser(
    doc: str | None, script: str, *, input_dir: str = layout.TRAIN_DIR.name, ref_data: str = ""
) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `local_evaluation.py`.

    The true answers are a file, or where none is named all, of a folder in `data/`.
    """
    p = parser(doc, script, input_dir=input_dir)
    cli.add_folder(p, "--submission_dir", data_dir(script, layout.TEST_OUTPUT_DIR.name))
    cli.add_file(p, "--submit_data", SUBMISSION)
    if ref_data:
        cli.add_file(p, "--ref_data", ref_data)
    p.set_defaults(challenge=Path(script).resolve().parent.name, ref_data=ref_data)
    return p


def evaluation_flags(p: argparse.ArgumentParser) -> tuple[argparse.Namespace, Path, Path]:
    """Read the flags, and take older scores away; return the submission and the true answers."""
    # Models import this module too, and need no pages.
    from common.evaluation import score_files

    options = p.parse_args()
    submission = options.submission_dir / options.submit_data
    reference = options.input_dir / options.ref_data
    score_files.remove_scores(options.output_dir, options.challenge, (submission, reference))
    return options, submission, reference


def write_scores(
    options: argparse.Namespace,
    *,
    lines: Sequence[str],
    figures: Mapping[str, float] | None = None,
    body: str = "",
    **found: Any,
) -> None:
    """Print lines; write a score as text, with further figures, and as a page; record it.

    What was found is an `Evaluation` of `common.evaluation.record`; the body is HTML.
    """
    from common.evaluation import record, score_files

    evaluation = record.Evaluation(**found)
    name, folder = options.challenge, options.output_dir
    paths = score_files.write_scores(folder, name, evaluation, figures=figures, body=body)
    record.append_result(folder, name, evaluation)
    print("\n".join(lines))
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def in_columns(rows: Sequence[Sequence[str]], first: int, others: int) -> list[str]:
    """Return rows of cells as lines for the terminal, the first column and the others so wide."""
    return [
        " ".join([f"{name:{first}s}", *(f"{cell:>{others}s}" for cell in cells)])
        for name, *cells in rows
    ]


def report_cells(
    file: Path | io.Source, column: str, faults: Mapping[Any, str], expected: str, report: Report
) -> None:
    """Report the wrong cells of a column in one line: what is wrong, by their place from 0."""
    if faults:
        source = io.file_source(file) if isinstance(file, Path) else file
        number = source.row_number
        shown = [f"row {number(at)} {fault}" for at, fault in islice(faults.items(), io.SHOWN)]
        more = f" and {len(faults) - io.SHOWN} more rows" if len(faults) > io.SHOWN else ""
        report(f"{source.name}: column '{column}': {'; '.join(shown)}{more}, expected {expected}")


def check_parser(doc: str | None, script: str, **files: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `check_submission.py`, with the files that it reads."""
    p = cli.parser(doc)
    p.add_argument("file", type=Path, metavar="FILE", help="the submission")
    cli.add_folder(p, "--input_dir", data_dir(script, layout.TRAIN_DIR.name))
    for flag, default in files.items():
        cli.add_file(p, f"--{flag}", default)
    p.set_defaults(challenge=Path(script).resolve().parent.name)
    return p


def run_check(
    p: argparse.ArgumentParser, check: Callable[[argparse.Namespace, Report], list[str]]
) -> None:
    """Print all that is wrong with a submission and exit with 2, or a summary of a valid one.

    `check` calls what it is given with each fault and returns the lines of the summary.
    """
    options = p.parse_args()
    faults: list[str] = []
    summary: list[str] = []
    try:
        summary = check(options, faults.append)
    except InputError as error:
        faults.append(str(error))
    cli.print_verdict(options.file, options.challenge, faults, summary)
