"""Steps that the scripts of all four related challenges share.

The steps are: make parsers, write samples, folds and submissions, read predictions, write scores
and run checks. Every challenge keeps its files in `data/` beside its scripts.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from common import cli, layout, provenance, reading, simulated, splits, writing
from common.answers import match_ids
from common.arrays import IntArray
from common.errors import InputError, Report, quote
from common.schema import TEXT, Column
from common.stray_files import list_paths
from related_challenges import folds

SUBMISSION = "submission.csv"
# Names of the folders in a challenge's `data/`.
TRAIN_FOLDER = layout.TRAIN_DIR.name
TEST_INPUT_FOLDER = layout.TEST_INPUT_DIR.name
TEST_OUTPUT_FOLDER = layout.TEST_OUTPUT_DIR.name
# The flags of a model that say where the file of folds is: its folder and its name, with their
# defaults. In the kit's four tasks, the flags for the submission template have the same names.
FOLD_FLAGS = {
    "submission_template_dir": TEST_INPUT_FOLDER,
    "submission_template_file": layout.FOLDS,
}


def data_dir(script: str, name: str = "") -> Path:
    """Return `data/` beside a challenge's scripts, or a folder in it.

    Parameters
    ----------
    script : str
        ``__file__`` of any script of the challenge.
    name : str
        Folder in `data/`; empty for `data/` itself.
    """
    # An empty name adds nothing to the path.
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
        Default of each flag, by the flag's name without the leading dashes. A flag that ends in
        ``_dir`` names a folder, and its default is a folder in `data/`. Any other flag names a
        file.

    Returns
    -------
    ArgumentParser
        The parsed options also have `challenge`, the name of the challenge.
    """
    p = cli.parser(doc)
    # `challenge` is no flag. The other functions of this module read the challenge's name from it.
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
    options: argparse.Namespace,
    write_sample: Callable[..., None],
    folders: Sequence[str] = (TRAIN_FOLDER,),
) -> None:
    """Write simulated files and the marker that says that they are simulated.

    Parameters
    ----------
    options : Namespace
        Flags of `generator_parser`.
    write_sample : callable
        Called as ``write_sample(*paths, seed)`` with one path for each of `folders`. It writes all
        simulated files of the challenge into these folders.
    folders : sequence of str
        Names of the folders in ``--output_dir``.
    """

    def write_into(folder: Path) -> dict[str, Any]:
        """Write all simulated files into a folder; return further entries for the marker."""
        paths = [folder / name for name in folders]
        write_sample(*paths, options.seed)
        return {"seed": options.seed}

    # The files are written into a temporary folder first, and then moved into --output_dir.
    simulated.place_simulated(options.output_dir, folders, write_into)
    folder_names = " and ".join(cli.show(options.output_dir / name) for name in folders)
    print(f"simulated files in {folder_names}")


def fold_parser(
    doc: str | None, script: str, n_folds: int, **files: str
) -> argparse.ArgumentParser:
    """Make the parser of a `local_data_split.py`, for a challenge that is split into folds.

    Parameters
    ----------
    doc, script
        Docstring and ``__file__`` of the script.
    n_folds : int
        Default of ``--folds``.
    **files : str
        Further flags for files, with their defaults.
    """
    p = parser(doc, script, input_dir=TRAIN_FOLDER, output_dir=TEST_INPUT_FOLDER, **files)
    cli.add_number(p, "--folds", n_folds, parse=int)
    cli.add_number(p, "--seed", 0)
    return p


def split_into_folds(
    options: argparse.Namespace,
    noun: str,
    ids: Sequence[str],
    group: IntArray,
    made_from: Sequence[Path],
) -> None:
    """Divide examples into folds and write the file of folds.

    Parameters
    ----------
    options : Namespace
        Flags of `fold_parser`.
    noun : str
        Name of the examples in the message, such as ``questions``.
    ids : sequence of str
        Ids of the examples.
    group : ndarray of int, shape (examples,)
        Group of each example. Examples of the same group are put into the same fold.
    made_from : sequence of Path
        Files that the examples were read from. If one of them has changed since, models refuse the
        folds.

    Raises
    ------
    InputError
        If ``--folds`` is below 2 or above the number of groups.
    """
    fold = splits.assign_folds(group, options.folds, options.seed)
    path = options.output_dir / layout.FOLDS
    table = {"id": ids, "fold": fold}
    writing.write_files({path: table}, record=provenance.record_path(path), made_from=made_from)
    print(f"written: {cli.show(path)} ({len(ids):,} {noun}, {options.folds} folds)")


# ---- Models ----------------------------------------------------------------------------------


def model_parser(doc: str | None, script: str, **files: str) -> argparse.ArgumentParser:
    """Make the parser of a sample model.

    Parameters
    ----------
    doc
        Docstring of the script, shown by ``--help``.
    script
        ``__file__`` of the script.
    **files : str
        Further flags for files, with their defaults. If `test_data` is among them, the parser also
        has ``--local`` and the flags that name the file of folds (`FOLD_FLAGS`). With ``--local``,
        the model predicts the training examples instead of the test file: each fold by a fit on
        the other folds.
    """
    defaults = {
        "input_dir": TRAIN_FOLDER,
        "output_dir": TEST_OUTPUT_FOLDER,
        "output_file": SUBMISSION,
        **files,
    }
    can_predict_folds = "test_data" in files
    if can_predict_folds:
        defaults.update(FOLD_FLAGS)
    p = parser(doc, script, **defaults)
    if can_predict_folds:
        help_text = "predict each fold of the training file by a model trained on the other folds"
        p.add_argument("--local", action="store_true", help=help_text)
    return p


def read_folds(options: argparse.Namespace, ids: Sequence[str]) -> IntArray | None:
    """Read the fold of every training example, if the model is to predict folds.

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
    # `model_parser` adds --local and `FOLD_FLAGS` only for models that can predict folds.
    can_predict_folds = "submission_template_dir" in options
    if not can_predict_folds or not options.local:
        return None
    path: Path = options.submission_template_dir / options.submission_template_file
    return path


def write_submission(
    options: argparse.Namespace, columns: writing.Table, *, header: bool = True
) -> None:
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
    # With --local, the model has predicted the folds of the training file. The record then says how
    # these folds were made.
    folds_file = _folds_path(options)
    split_description = "" if folds_file is None else folds.describe_folds(folds_file)
    writing.write_files(
        {path: columns}, record=path.with_suffix(".json"), split=split_description, header=header
    )
    # The first column tells the number of rows, since all columns have the same length.
    _, first_column = next(iter(columns.items()))
    print(f"written: {cli.show(path)} ({len(first_column):,} rows)")


# ---- Evaluations and checks ------------------------------------------------------------------


def evaluation_parser(
    doc: str | None, script: str, input_dir: str = TRAIN_FOLDER, **files: str
) -> argparse.ArgumentParser:
    """Make the parser of a `local_evaluation.py`.

    Parameters
    ----------
    doc, script
        Docstring and ``__file__`` of the script.
    input_dir : str
        Default of ``--input_dir``: the folder in `data/` that holds the true answers.
    **files : str
        Further flags for files, with their defaults. If ``ref_data`` is among them, it names the
        file of true answers in ``--input_dir``. Otherwise all files of that folder hold true
        answers.
    """
    defaults = {
        "input_dir": input_dir,
        "output_dir": TEST_OUTPUT_FOLDER,
        "submission_dir": TEST_OUTPUT_FOLDER,
    }
    return parser(doc, script, **defaults, submit_data=SUBMISSION, **files)


def start_evaluation(
    parser: argparse.ArgumentParser,
    find_answer_files: Callable[[Path], Sequence[Path]] | None = None,
) -> argparse.Namespace:
    """Parse the flags of a `local_evaluation.py`, and delete the score files of an earlier run.

    If this run fails, no old score files are left, so no user can mistake old scores for new ones.

    Parameters
    ----------
    parser : ArgumentParser
        Parser of `evaluation_parser`.
    find_answer_files : callable, optional
        Takes the file or folder of true answers, and returns the files that hold the answers. By
        default these are the file itself, or all files in the folder.

    Returns
    -------
    Namespace
        The flags and three more entries: `submission` is the submission, `reference` the file or
        folder of true answers, and `doubts` are the reasons why the score may be wrong.

    Raises
    ------
    InputError
        If the submission has learned from the true answers, or if a file that the submission was
        made from has changed since.
    """
    # These imports are slow. Sample models import this module too, and do not need scores.
    from common.evaluation import entry_origin, score_files

    options = parser.parse_args()
    options.submission = options.submission_dir / options.submit_data
    if "ref_data" in options:
        options.reference = options.input_dir / options.ref_data
    else:
        options.reference = options.input_dir
    score_files.remove_scores(
        options.output_dir,
        options.challenge,
        # Related challenges have no phases.
        phase="",
        # The files that the evaluation reads. If a score file had the path of one of them, it would
        # be removed here: then `InputError` is raised instead.
        inputs=(options.submission, options.reference),
    )
    find_files = find_answer_files or _files_in
    # Leave out missing files here. When the evaluation tries to read a missing file, it reports it.
    true_answers = [path for path in find_files(options.reference) if path.is_file()]
    options.doubts = entry_origin.judge_submission(options.submission, true_answers)
    return options


def _files_in(path: Path) -> list[Path]:
    """Return a file itself, or all files in a folder."""
    return list(list_paths(path)) if path.is_dir() else [path]


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
        Result of `start_evaluation`.
    lines : sequence of str
        Lines to print.
    score : float
        The score of the challenge.
    figures : mapping of str to float, optional
        Further numbers for the text file, by name.
    body : str
        HTML for the page, shown below its table of facts.
    **fields
        Fields of `common.evaluation.record.Evaluation`, which stand on the page and in the record.
        The fields `submission` and `reference` may be omitted; their values are then taken from
        `options`.
    """
    # These imports are slow. Sample models import this module too, and do not need scores.
    from common.evaluation import record, score_files
    from common.metrics import Score

    fields = {
        "submission": options.submission,
        "reference": options.reference,
        "doubts": options.doubts,
        **fields,
    }
    evaluation = record.Evaluation(task=options.challenge, score=Score(score), **fields)
    score_files.publish(options.output_dir, evaluation, lines, figures=figures, body=body)


def align_columns(
    rows: Sequence[Sequence[str]], *, first_width: int, other_width: int
) -> list[str]:
    """Lay out a table for the terminal.

    Parameters
    ----------
    rows : sequence of sequences of str
        Cells of the table.
    first_width : int
        Width of the first column in characters. It is aligned to the left.
    other_width : int
        Width of each other column in characters. It is aligned to the right.

    Returns
    -------
    list of str
        One line for each row.
    """
    lines = []
    for name, *cells in rows:
        padded = [f"{cell:>{other_width}s}" for cell in cells]
        lines.append(" ".join([f"{name:{first_width}s}", *padded]))
    return lines


def read_predictions(
    path: Path,
    column: str,
    ids: Sequence[str],
    *,
    source_of_ids: str,
    parse: Callable[[str], Any],
    expected: str,
    report: Report,
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
        Ids that must occur exactly once. No other id may occur.
    source_of_ids : str
        Where the ids come from, for messages, such as ``the questions``.
    parse : callable
        Turns the text of a cell into a prediction. For a faulty cell it raises `InputError`, whose
        message is reported, or another `ValueError`, for which the cell's text is reported.
    expected : str
        The content that a cell should have, for messages.
    report : callable
        Called with the message about each fault; it may raise.
    may_be_empty : bool
        Whether a cell may be empty.

    Returns
    -------
    list
        Parsed predictions in the order of `ids`. If `report` does not raise, the prediction of a
        faulty cell or a missing id is "".
    """
    columns = (folds.ID, Column(column, TEXT, may_be_empty=may_be_empty))
    source = reading.file_source(path)
    table = reading.read_table(source, columns, report=report)
    file_ids = table[folds.ID.name].to_numpy(object)
    # For each id in `ids`: its row in the file, or -1 if the file lacks the id.
    row_of_id = match_ids(source, folds.ID.name, file_ids, ids, source_of_ids, report)
    values, faults = _parse_cells(table[column], parse)
    report_faults(source, column, faults, expected, report)
    return [values[row] if row >= 0 else "" for row in row_of_id]


def _parse_cells(
    cells: Iterable[str], parse: Callable[[str], Any]
) -> tuple[list[Any], dict[int, str]]:
    """Parse the cells of a column of predictions; return the values and the faults of cells.

    `parse` turns the text of a cell into a prediction, or raises an error for a faulty cell. The
    message of an `InputError` becomes the fault. For any other `ValueError`, the fault shows the
    text of the cell.

    The value of a faulty cell is "". The keys of the faults are row numbers, which begin with 0.
    """
    values: list[Any] = []
    faults: dict[int, str] = {}
    for row, cell in enumerate(cells):
        try:
            values.append(parse(cell))
        # `InputError` is a subclass of `ValueError`, so its branch comes first.
        except InputError as error:
            values.append("")
            faults[row] = str(error)
        except ValueError:
            values.append("")
            # An empty cell is either allowed, or `read_table` has already reported it.
            if cell:
                faults[row] = f"is {quote(cell)}"
    return values, faults


def report_faults(
    source: reading.Source, column: str, faults: Mapping[Any, str], expected: str, report: Report
) -> None:
    """Report all faulty cells of a column in one message; without faults do nothing.

    Parameters
    ----------
    source : Source
        The file, for its name and its row numbers.
    column : str
        Name of the column.
    faults : mapping of int to str
        Maps the row of each faulty cell to what is wrong with the cell, such as ``is 'F'``. Row 0
        is the first row below the header.
    expected : str
        The content that a cell should have, for the message.
    report : callable
        Called with the message; it may raise.
    """
    if not faults:
        return
    shown = []
    for row, fault in islice(faults.items(), reading.SHOWN):
        shown.append(f"row {source.row_number(row)} {fault}")
    reading.report_cells(source, column, shown, len(faults), expected, report)


def check_parser(doc: str | None, script: str, **files: str) -> argparse.ArgumentParser:
    """Make the parser of a `check_submission.py`.

    Parameters
    ----------
    doc, script
        Docstring and ``__file__`` of the script.
    **files : str
        Further flags for files, with their defaults.
    """
    p = parser(doc, script, input_dir=TRAIN_FOLDER, **files)
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

    def collect(faults: list[str]) -> list[str]:
        return check(options, faults.append)

    cli.run_check(options.file, options.challenge, collect)
