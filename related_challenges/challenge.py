"""Flags, files and messages that the scripts of all four related challenges share.

Every challenge keeps its files in `data/` beside its scripts.
"""

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
# Names of the folders in a challenge's `data/`.
TRAIN = layout.TRAIN_DIR.name
TEST_INPUT = layout.TEST_INPUT_DIR.name
TEST_OUTPUT = layout.TEST_OUTPUT_DIR.name
# Flags, with defaults, of a model that predicts folds.
FOLD_FLAGS = {"submission_template_dir": TEST_INPUT, "submission_template_file": layout.FOLDS}


def data_dir(script: str, name: str = "") -> Path:
    """Return `data/` beside a challenge's scripts, or a folder in it.

    Parameters
    ----------
    script : str
        ``__file__`` of any script of the challenge.
    name : str
        Folder in `data/`; empty for `data/` itself.
    """
    return Path(script).resolve().parent / layout.DATA_DIR.name / name


def parser(doc: str | None, script: str, **defaults: str) -> argparse.ArgumentParser:
    """Make the parser of a challenge's script.

    Parameters
    ----------
    doc : str or None
        Docstring of the script, shown by ``--help``.
    script : str
        ``__file__`` of the script.
    **defaults : str
        Flags without dashes, with their defaults. A flag that ends in ``_dir`` names a folder, and
        its default is a folder in `data/`; any other flag names a file.

    Returns
    -------
    ArgumentParser
        The parsed options also have `challenge`, the name of the challenge.
    """
    p = cli.parser(doc)
    p.set_defaults(challenge=Path(script).resolve().parent.name)
    for flag, default in defaults.items():
        if flag.endswith("_dir"):
            cli.add_folder(p, f"--{flag}", data_dir(script, default))
        else:
            cli.add_file_name(p, f"--{flag}", default)
    return p


# ---- Samples and splits ----------------------------------------------------------------------


def generator_parser(doc: str | None, script: str) -> argparse.ArgumentParser:
    """Make the parser of a `generate_sample.py`: --output_dir and --seed."""
    p = parser(doc, script, output_dir="")
    cli.add_number(p, "--seed", 0)
    return p


def run_generator(
    options: argparse.Namespace, write_sample: Callable[..., None], *folders: str
) -> None:
    """Write simulated files and the marker that says that they are simulated.

    Parameters
    ----------
    options : Namespace
        Flags of `generator_parser`.
    write_sample : callable
        Called as ``write_sample(*paths, seed)`` with one path for each of `folders`; it writes the
        files.
    *folders : str
        Folders in ``--output_dir``; without any, the folder of training data.
    """
    folders = folders or (TRAIN,)

    def write(output_dir: Path) -> dict[str, Any]:
        write_sample(*(output_dir / name for name in folders), options.seed)
        return {"seed": options.seed}

    simulated.place_simulated(options.output_dir, folders, write)
    shown = " and ".join(cli.show(options.output_dir / name) for name in folders)
    print(f"simulated files in {shown}")


def fold_parser(
    doc: str | None, script: str, n_folds: int, **files: str
) -> argparse.ArgumentParser:
    """Make the parser of a `local_data_split.py` that divides examples into folds.

    Parameters
    ----------
    doc, script
        As in `parser`.
    n_folds : int
        Default of ``--folds``.
    **files : str
        Further flags for files, with their defaults.
    """
    p = parser(doc, script, input_dir=TRAIN, output_dir=TEST_INPUT, **files)
    cli.add_number(p, "--folds", n_folds, parse=int)
    cli.add_number(p, "--seed", 0)
    return p


def split_into_folds(
    options: argparse.Namespace,
    examples: str,
    ids: Sequence[str],
    group: IntArray,
    made_from: Sequence[Path],
) -> None:
    """Divide examples into folds and write the file of folds.

    Parameters
    ----------
    options : Namespace
        Flags of `fold_parser`.
    examples : str
        What the examples are called in the message, such as ``questions``.
    ids : sequence of str
        Ids of the examples.
    group : ndarray of int, shape (examples,)
        Examples of the same group are put into the same fold.
    made_from : sequence of Path
        Files the examples were read from. If one of them changes, the folds are refused later.

    Raises
    ------
    InputError
        If ``--folds`` is no number from 2 to the number of groups.
    """
    fold = splits.assign_folds(group, options.folds, options.seed)
    path = options.output_dir / layout.FOLDS
    table = {"id": ids, "fold": fold}
    writing.write_files({path: table}, record=provenance.record_path(path), made_from=made_from)
    print(f"written: {cli.show(path)} ({len(ids):,} {examples}, {options.folds} folds)")


# ---- Models ----------------------------------------------------------------------------------


def model_parser(doc: str | None, script: str, **files: str) -> argparse.ArgumentParser:
    """Make the parser of a sample model.

    Parameters
    ----------
    doc, script
        As in `parser`.
    **files : str
        Further flags for files, with their defaults. If `test_data` is among them, the parser also
        gets ``--local``: predict the training file in folds instead of the test file.
    """
    defaults = {"input_dir": TRAIN, "output_dir": TEST_OUTPUT, "output_file": SUBMISSION, **files}
    if "test_data" not in files:
        return parser(doc, script, **defaults)
    p = parser(doc, script, **defaults, **FOLD_FLAGS)
    help_text = "predict the training file instead, every fold after learning from the others"
    p.add_argument("--local", action="store_true", help=help_text)
    return p


def read_folds(options: argparse.Namespace, ids: Sequence[str]) -> IntArray | None:
    """Read the folds that a model is to predict.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    ids : sequence of str
        Ids of the training examples.

    Returns
    -------
    ndarray of int, shape (examples,), or None
        Folds in the order of `ids`; None if the model is to predict a test file.

    Raises
    ------
    InputError
        If the file of folds is missing, faulty or made from other training data.
    """
    path = _folds_path(options)
    return None if path is None else folds.read_folds(path, ids)


def _folds_path(options: argparse.Namespace) -> Path | None:
    """Return the file of folds; None if the model does not predict folds."""
    if "submission_template_dir" not in options or not options.local:
        return None
    return Path(options.submission_template_dir / options.submission_template_file)


def write_submission(options: argparse.Namespace, columns: Any, *, header: bool = True) -> None:
    """Write a submission, and beside it a record of how it was made.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`; the file is ``--output_file`` in ``--output_dir``.
    columns : DataFrame or mapping of str to sequence
        Columns of equal length.
    header : bool
        Whether the first line holds the names of the columns.
    """
    path = options.output_dir / options.output_file
    folds_file = _folds_path(options)
    split = "" if folds_file is None else folds.describe_folds(folds_file)
    writing.write_files(
        {path: columns}, record=path.with_suffix(".json"), split=split, header=header
    )
    first_column = columns[next(iter(columns))]
    print(f"written: {cli.show(path)} ({len(first_column):,} rows)")


# ---- Evaluations and checks ------------------------------------------------------------------


def evaluation_parser(
    doc: str | None, script: str, input_dir: str = TRAIN, **files: str
) -> argparse.ArgumentParser:
    """Make the parser of a `local_evaluation.py`.

    Parameters
    ----------
    doc, script
        As in `parser`.
    input_dir : str
        Folder in `data/` that holds the true answers.
    **files : str
        Further flags for files, with their defaults. `ref_data` names the file of true answers in
        `input_dir`; without it, the true answers are the whole folder.
    """
    defaults = {"input_dir": input_dir, "output_dir": TEST_OUTPUT, "submission_dir": TEST_OUTPUT}
    return parser(doc, script, **defaults, submit_data=SUBMISSION, **files)


def read_evaluation_flags(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the flags of a `local_evaluation.py` and remove older score files.

    Parameters
    ----------
    parser : ArgumentParser
        Parser of `evaluation_parser`.

    Returns
    -------
    Namespace
        The flags, and two paths: `submission`, and `reference`, the file or folder of true answers.
    """
    # Imported here because sample models import this module too and need no score files.
    from common.evaluation import score_files

    options = parser.parse_args()
    options.submission = options.submission_dir / options.submit_data
    options.reference = options.input_dir / vars(options).get("ref_data", "")
    inputs = (options.submission, options.reference)
    score_files.remove_scores(options.output_dir, options.challenge, "", inputs)
    return options


def write_scores(
    options: argparse.Namespace,
    lines: Sequence[str],
    *,
    score: float,
    figures: Mapping[str, float] | None = None,
    body: str = "",
    **fields: Any,
) -> None:
    """Print a score, write its text file and page, and append it to the record of all scores.

    Parameters
    ----------
    options : Namespace
        Flags of `read_evaluation_flags`.
    lines : sequence of str
        Lines for the terminal.
    score : float
        The score of the challenge.
    figures : mapping of str to float, optional
        Further lines of the text file.
    body : str
        HTML below the facts of the page.
    **fields
        Fields of `common.evaluation.record.Evaluation`; `submission` and `reference` default to the
        paths in `options`.
    """
    from common.evaluation import record, score_files
    from common.metrics import Score

    fields = {"submission": options.submission, "reference": options.reference, **fields}
    evaluation = record.Evaluation(task=options.challenge, score=Score(score), **fields)
    score_files.publish(options.output_dir, evaluation, lines, figures=figures, body=body)


def in_columns(rows: Sequence[Sequence[str]], first: int, others: int) -> list[str]:
    """Lay out a table for the terminal.

    Parameters
    ----------
    rows : sequence of sequences of str
        Cells of the table.
    first : int
        Width of the first column, aligned to the left.
    others : int
        Width of every other column, aligned to the right.

    Returns
    -------
    list of str
        One line for each row.
    """
    lines = []
    for name, *cells in rows:
        padded = [f"{cell:>{others}s}" for cell in cells]
        lines.append(" ".join([f"{name:{first}s}", *padded]))
    return lines


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
    """Read and check the predictions of a submission.

    Parameters
    ----------
    path : Path
        The submission, with an `id` column.
    column : str
        Column of the predictions.
    ids : sequence of str
        Ids that must occur once each, and no other.
    expected_in : str
        Where the ids come from, for messages, such as ``the questions``.
    parse : callable
        Turns the text of a cell into a prediction. For a faulty cell it raises `ValueError` or
        `LookupError`; the message of an `InputError` (a `ValueError`) is shown.
    expected : str
        What a cell should hold, for messages.
    report : callable
        Called with the message about each fault; it may raise.
    may_be_empty : bool
        Whether a cell may be empty.

    Returns
    -------
    list
        Parsed predictions in the order of `ids`. If `report` does not raise, faulty cells are "".
    """
    columns = folds.ID, Column(column, TEXT, may_be_empty=may_be_empty)
    source = reading.file_source(path)
    data = reading.read_table(source, columns, report=report)
    file_ids = data[folds.ID.name].to_numpy(object)
    rows = match_ids(source, folds.ID.name, file_ids, ids, expected_in, report)
    values: list[Any] = []
    faults = {}
    for row, cell in enumerate(data[column]):
        try:
            values.append(parse(cell))
        except (ValueError, LookupError) as error:
            values.append("")
            if cell:  # An empty cell has been reported already.
                faults[row] = str(error) if isinstance(error, InputError) else f"is {quote(cell)}"
    report_cells(source, column, faults, expected, report)
    return [values[row] for row in rows]


def report_cells(
    source: reading.Source, column: str, faults: Mapping[Any, str], expected: str, report: Report
) -> None:
    """Report all faulty cells of a column in one message; without faults do nothing.

    Parameters
    ----------
    source : Source
        File that was read.
    column : str
        Name of the column.
    faults : mapping of int to str
        What is wrong, by the row's position from 0.
    expected : str
        What a cell should hold.
    report : callable
        Called with the message; it may raise.
    """
    if not faults:
        return
    shown = [
        f"row {source.row_number(row)} {fault}"
        for row, fault in islice(faults.items(), reading.SHOWN)
    ]
    reading.report_cells(source, column, shown, len(faults), expected, report)


def check_parser(doc: str | None, script: str, **files: str) -> argparse.ArgumentParser:
    """Make the parser of a `check_submission.py`.

    Parameters
    ----------
    doc, script
        As in `parser`.
    **files : str
        Further flags for files, with their defaults.
    """
    p = parser(doc, script, input_dir=TRAIN, **files)
    p.add_argument("file", type=Path, metavar="FILE", help="the submission")
    return p


def run_check(
    options: argparse.Namespace, check: Callable[[argparse.Namespace, Report], list[str]]
) -> None:
    """Check a submission: print all of its faults, or a summary if it is valid.

    Parameters
    ----------
    options : Namespace
        Flags of `check_parser`.
    check : callable
        Called as ``check(options, report)``. It calls `report` with a message for each fault and
        returns the lines of the summary.

    Raises
    ------
    SystemExit
        With code 2 if there is a fault.
    """
    cli.run_check(options.file, options.challenge, lambda faults: check(options, faults.append))
