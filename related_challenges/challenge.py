"""What only the related challenges share; each keeps its files beside its scripts, like `data/`."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from common import cli, layout, provenance, reading, simulated, splits, writing
from common.answers import match_ids
from common.arrays import IntArray
from common.errors import InputError, Report, quote
from common.schema import TEXT, Column
from related_challenges import folds

SUBMISSION = "submission.csv"
TRAIN, TEST_INPUT, TEST_OUTPUT = (
    folder.name for folder in (layout.TRAIN_DIR, layout.TEST_INPUT_DIR, layout.TEST_OUTPUT_DIR)
)
# Flags of a model that predicts folds.
FOLDS = {"submission_template_dir": TEST_INPUT, "submission_template_file": layout.FOLDS}


def data_dir(script: str, name: str = "") -> Path:
    """Return the folder of a challenge's files, `data/` beside its scripts, or one in there."""
    return Path(script).resolve().parent / layout.DATA_DIR.name / name


def parser(doc: str | None, script: str, **places: str) -> argparse.ArgumentParser:
    """Make the parser of a script from its flags' defaults, of `data/` those that end in _dir."""
    p = cli.parser(doc)
    p.set_defaults(challenge=Path(script).resolve().parent.name)
    for flag, default in places.items():
        if flag.endswith("_dir"):
            cli.add_folder(p, f"--{flag}", data_dir(script, default))
        else:
            cli.add_file_name(p, f"--{flag}", default)
    return p


# ---- Samples and splits ----------------------------------------------------------------------


def generator_parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """Return the parser of a `generate_sample.py`."""
    p = parser(doc, script, output_dir="")
    cli.add_number(p, "--seed", 0)
    return p


def run_generator(
    options: argparse.Namespace, write_sample: Callable[..., None], *folders: str
) -> None:
    """Write simulated files and the marker that says so.

    `write_sample` is called with the folders, by default the one of training data, and the seed.
    """
    folders = folders or (TRAIN,)

    def write(folder: Path) -> dict[str, Any]:
        write_sample(*(folder / name for name in folders), options.seed)
        return {"seed": options.seed}

    simulated.place_simulated(options.output_dir, folders, write)
    shown = " and ".join(cli.show(options.output_dir / name) for name in folders)
    print(f"simulated files in {shown}")


def fold_parser(
    doc: str | None, script: str, n_folds: int, **files: str
) -> argparse.ArgumentParser:
    """Make the parser of a `local_data_split.py` that divides examples into folds."""
    p = parser(doc, script, input_dir=TRAIN, output_dir=TEST_INPUT, **files)
    cli.add_number(p, "--folds", n_folds, parse=int)
    cli.add_number(p, "--seed", 0)
    return p


def split_into_folds(
    options: argparse.Namespace,
    what: str,
    ids: Sequence[str],
    group: IntArray,
    made_from: Sequence[Path],
) -> None:
    """Write the folds of examples, of which those of a group stay together; `what` names them."""
    fold = splits.assign_folds(group, options.folds, options.seed)
    path = options.output_dir / layout.FOLDS
    table = {"id": ids, "fold": fold}
    writing.write_files({path: table}, record=provenance.record_path(path), made_from=made_from)
    print(f"written: {cli.show(path)} ({len(ids):,} {what}, {options.folds} folds)")


# ---- Models ----------------------------------------------------------------------------------


def model_parser(doc: str | None, script: str, **files: str) -> argparse.ArgumentParser:
    """Make a model's parser; with `test_data` it predicts this, with --local the training file."""
    places = {"input_dir": TRAIN, "output_dir": TEST_OUTPUT, "output_file": SUBMISSION, **files}
    if "test_data" not in files:
        return parser(doc, script, **places)
    p = parser(doc, script, **places, **FOLDS)
    told = "predict the training file instead, every fold after learning from the others"
    p.add_argument("--local", action="store_true", help=told)
    return p


def read_folds(options: argparse.Namespace, ids: Sequence[str]) -> IntArray | None:
    """Return the folds that a model is to predict, (examples,); None where it predicts a test."""
    path = _folds_path(options)
    return None if path is None else folds.read_folds(path, ids)


def _folds_path(options: argparse.Namespace) -> Path | None:
    if "submission_template_dir" not in options or not options.local:
        return None
    return Path(options.submission_template_dir / options.submission_template_file)


def write_submission(options: argparse.Namespace, columns: Any, *, header: bool = True) -> None:
    """Write columns, a DataFrame or a mapping, as a submission, and beside it how it was made."""
    path, folds_file = options.output_dir / options.output_file, _folds_path(options)
    split = "" if folds_file is None else folds.describe_folds(folds_file)
    writing.write_files(
        {path: columns}, record=path.with_suffix(".json"), split=split, header=header
    )
    print(f"written: {cli.show(path)} ({len(columns[next(iter(columns))]):,} rows)")


# ---- Evaluations and checks ------------------------------------------------------------------


def evaluation_parser(
    doc: str | None, script: str, input_dir: str = TRAIN, **files: str
) -> argparse.ArgumentParser:
    """Make the parser of a `local_evaluation.py`; the true answers are --ref_data, or a folder."""
    places = {"input_dir": input_dir, "output_dir": TEST_OUTPUT, "submission_dir": TEST_OUTPUT}
    return parser(doc, script, **places, submit_data=SUBMISSION, **files)


def read_evaluation_flags(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the flags, add the paths `submission` and `reference`, and remove older scores."""
    # Models import this module too, and need no pages.
    from common.evaluation import score_files

    options = parser.parse_args()
    options.submission = options.submission_dir / options.submit_data
    options.reference = options.input_dir / vars(options).get("ref_data", "")
    inputs = options.submission, options.reference
    score_files.remove_scores(options.output_dir, options.challenge, "", inputs)
    return options


def write_scores(
    options: argparse.Namespace,
    lines: Sequence[str],
    *,
    score: float,
    figures: Mapping[str, float] | None = None,
    body: str = "",
    **found: Any,
) -> None:
    """Print lines; write and record a score, `found` for its `Evaluation`, and a body in HTML."""
    from common.evaluation import record, score_files
    from common.metrics import Score

    found = {"submission": options.submission, "reference": options.reference, **found}
    evaluation = record.Evaluation(task=options.challenge, score=Score(score), **found)
    score_files.publish(options.output_dir, evaluation, lines, figures=figures, body=body)


def in_columns(rows: Sequence[Sequence[str]], first: int, others: int) -> list[str]:
    """Return rows of cells as lines for the terminal, the first column and the others so wide."""
    return [
        " ".join([f"{name:{first}s}", *(f"{cell:>{others}s}" for cell in cells)])
        for name, *cells in rows
    ]


def read_predictions(
    path: Path,
    column: str,
    ids: Sequence[str],
    expected_in: str,
    parse: Callable[[str], Any],
    expected: str,
    report: Report,
    *,
    may_be_empty: bool = False,
) -> list[Any]:
    """Return what `parse` makes of a column, by order of ids; report cells for which it raises."""
    columns = folds.ID, Column(column, TEXT, may_be_empty=may_be_empty)
    source = reading.file_source(path)
    data = reading.read_table(source, columns, report=report)
    rows = match_ids(source, folds.ID.name, data["id"].to_numpy(object), ids, expected_in, report)
    values: list[Any] = []
    faults = {}
    for row, cell in enumerate(data[column]):
        try:
            values.append(parse(cell))
        except (ValueError, LookupError) as error:
            values.append("")
            if cell:  # An empty one has been reported already.
                faults[row] = str(error) if isinstance(error, InputError) else f"is {quote(cell)}"
    report_cells(source, column, faults, expected, report)
    return [values[row] for row in rows]


def report_cells(
    source: reading.Source, column: str, faults: Mapping[Any, str], expected: str, report: Report
) -> None:
    """Report the wrong cells of a column in one line: what is wrong, by their place from 0."""
    number = source.row_number
    shown = [f"row {number(at)} {fault}" for at, fault in islice(faults.items(), reading.SHOWN)]
    if faults:
        reading.report_cells(source, column, shown, len(faults), expected, report)


def check_parser(doc: str | None, script: str, **files: str) -> argparse.ArgumentParser:
    """Return the parser of a `check_submission.py`; `files` are flags and their defaults."""
    p = parser(doc, script, input_dir=TRAIN, **files)
    p.add_argument("file", type=Path, metavar="FILE", help="the submission")
    return p


def run_check(
    options: argparse.Namespace, check: Callable[[argparse.Namespace, Report], list[str]]
) -> None:
    """Run a `check_submission.py` as `cli.run_check`; `check` reports each fault."""
    cli.run_check(options.file, options.challenge, lambda faults: check(options, faults.append))
