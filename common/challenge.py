"""What only the related challenges share: folders, flags, submissions, the frames of their scripts.

Every challenge keeps its files beside its scripts, laid out like the kit's own `data/`.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import cli, folds, io, layout, made, simulated
from common.errors import InputError, Report

SUBMISSION = "submission.csv"


def data_dir(script: str) -> Path:
    """Return the folder of a challenge's files, `data/` beside its scripts."""
    return Path(script).resolve().parent / layout.DATA_DIR.name


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


def split_parser(
    doc: str | None, script: str, n_folds: int | None = None
) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `local_data_split.py`, which may split into folds."""
    p = cli.parser(doc)
    cli.add_folder(p, "--input_dir", data_dir(script) / layout.TRAIN_DIR.name)
    cli.add_folder(p, "--output_dir", data_dir(script) / layout.TEST_INPUT_DIR.name)
    if n_folds is not None:
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


def model_parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's sample model; a model adds its own flags to it."""
    p = cli.parser(doc)
    cli.add_folder(p, "--input_dir", data_dir(script) / layout.TRAIN_DIR.name)
    cli.add_folder(p, "--output_dir", data_dir(script) / layout.TEST_OUTPUT_DIR.name)
    cli.add_file(p, "--output_file", SUBMISSION)
    return p


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
    print(f"written: {cli.show(path)} ({len(next(iter(columns.values()))):,} rows)")


# ---- Evaluations and checks ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What an evaluation found; the first six as in `common.evaluation.record.Evaluation`."""

    score: float
    metric: str
    facts: Sequence[tuple[str, str]]
    parts: Mapping[str, float]
    rules: str = ""
    rests_on: Sequence[Path] = ()
    # What the terminal shows.
    lines: Sequence[str]
    # What the score file holds after the score: {"ndcg_50_half": 0.04}.
    figures: Mapping[str, float] = field(default_factory=dict)
    # What the page shows below the facts, as HTML.
    body: str = ""


def evaluation_parser(
    doc: str | None,
    script: str,
    *,
    input_dir: str = layout.TRAIN_DIR.name,
    ref_data: str | None = None,
) -> argparse.ArgumentParser:
    """Make the parser of a challenge's `local_evaluation.py`.

    The true answers are a file, or where none is named all, of a folder in `data/`.
    """
    output_dir = data_dir(script) / layout.TEST_OUTPUT_DIR.name
    p = cli.parser(doc)
    cli.add_folder(p, "--input_dir", data_dir(script) / input_dir)
    cli.add_folder(p, "--submission_dir", output_dir)
    cli.add_file(p, "--submit_data", SUBMISSION)
    cli.add_folder(p, "--output_dir", output_dir)
    if ref_data is None:
        p.set_defaults(ref_data="")
    else:
        cli.add_file(p, "--ref_data", ref_data)
    return p


def evaluate(
    p: argparse.ArgumentParser,
    script: str,
    title: str,
    metric_name: str,
    score: Callable[[argparse.Namespace, Path, Path], Scored],
) -> None:
    """Score a submission; print the score, write it as text and as a page, and record it.

    `metric_name` is what the scoreboard calls the score; `score` is given the flags and the paths
    of the submission and of the true answers.
    """
    # Models import this module too, and need none of these.
    from common.evaluation import record, score_files

    options = p.parse_args()
    name, output_dir = Path(script).resolve().parent.name, options.output_dir
    submission = options.submission_dir / options.submit_data
    reference = options.input_dir / options.ref_data
    score_files.remove_scores(output_dir, name, (submission, reference))
    found = score(options, submission, reference)
    evaluation = record.Evaluation(
        title=title,
        metric=found.metric,
        score=found.score,
        submission=submission,
        reference=reference,
        facts=found.facts,
        rules=found.rules,
        parts=found.parts,
        rests_on=found.rests_on,
        metric_name=metric_name,
    )
    paths = score_files.write_scores(
        output_dir, name, evaluation, figures=found.figures, body=found.body
    )
    record.append_result(output_dir, name, evaluation)
    print("\n".join(found.lines))
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def in_columns(rows: Sequence[Sequence[str]], first: int, others: int) -> list[str]:
    """Return rows of cells as lines for the terminal, the first column and the others so wide."""
    return [
        " ".join([f"{name:{first}s}", *(f"{cell:>{others}s}" for cell in cells)])
        for name, *cells in rows
    ]


def run_check(
    doc: str | None,
    script: str,
    check: Callable[[argparse.Namespace, Report], list[str]],
    **files: str,
) -> None:
    """Print all that is wrong with a submission and exit with 2, or a summary of a valid one.

    `check` calls what it is given with each fault and returns the lines of the summary; `files` are
    the defaults of further flags that name a file in --input_dir.
    """
    p = cli.parser(doc)
    p.add_argument("file", type=Path, metavar="FILE", help="the submission")
    cli.add_folder(p, "--input_dir", data_dir(script) / layout.TRAIN_DIR.name)
    for name, default in files.items():
        cli.add_file(p, f"--{name}", default)
    options = p.parse_args()
    faults: list[str] = []
    summary: list[str] = []
    try:
        summary = check(options, faults.append)
    except InputError as error:
        faults.append(str(error))
    cli.print_verdict(options.file, Path(script).resolve().parent.name, faults, summary)
