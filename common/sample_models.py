"""The flags and paths that the sample models of the tasks 1 to 3 share."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common import cli, layout, provenance, reading, submission
from common.errors import InputError
from common.tasks import TASK_3, TASKS


@dataclass(frozen=True)
class Paths:
    """The files that a sample model reads and writes."""

    # The training answers.
    train: Path
    # The submission template, which says what to predict.
    template: Path
    # The submission's CSV; its zip is written beside it.
    output: Path
    # Folder of the metadata, which describe the students, the questions and the answers. None if
    # there is no such folder, or the model reads no metadata.
    metadata: Path | None
    # The file (Parquet) for predicted probabilities; None if the user does not ask for it.
    probabilities: Path | None


def parser(doc: str | None, task: int, *, reads_answers: bool = True) -> argparse.ArgumentParser:
    """Return a parser with the flags of all sample models, to which a model may add its own flags.

    Parameters
    ----------
    doc
        The script's docstring.
    task
        Number of the task: 1, 2 or 3.
    reads_answers
        Whether the model learns from the training answers.
    """
    # The chosen task, with the names of its files.
    chosen = TASKS[task]
    parser = cli.parser(doc)
    parser.usage = "%(prog)s [flags]"
    # `paths` reads these options of every sample model. Set them here, since some sample models
    # lack the flags for them: those of task 3 lack --probabilities, for instance.
    parser.set_defaults(input_dir=None, train_data=None, probabilities=None, local=None)
    if reads_answers:
        cli.add_optional_folder(parser, "--input_dir", "data/train_data")
        cli.add_file_name(parser, "--train_data", chosen.data.train)
    cli.add_template_flags(parser, str(chosen.template))
    cli.add_optional_folder(parser, "--output_dir", "submissions")
    help_text = f"default {chosen.submission}; the zip is written beside it"
    parser.add_argument("--output_file", metavar="FILE", help=help_text)
    if chosen is TASK_3:
        # In task 3, --local takes a value, "first" or "second": one half of the students.
        _add_halves_flag(parser)
    else:
        help_text = "write the probability of each prediction to FILE (Parquet) as well"
        parser.add_argument("--probabilities", type=Path, metavar="FILE", help=help_text)
        help_text = (
            "use the local split: defaults become data/test_input, "
            f"{chosen.local_template}, data/test_output and {chosen.local_submission}"
        )
        parser.add_argument("--local", action="store_true", help=help_text)
    return parser


def _add_halves_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag --local of task 3: rank by the answers of only one half of the students.

    The ranking can then be compared with the ranking by the other half.
    """
    help_text = (
        "rank by one half of the students (local_data_split.py), the first by default; "
        f"defaults become data/test_input, {TASK_3.local_train} (second: {TASK_3.local_answers}), "
        f"data/test_output and {TASK_3.local_submission}"
    )
    halves = ("first", "second")
    parser.add_argument("--local", nargs="?", const="first", choices=halves, help=help_text)


def add_metadata_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag --metadata_dir, for a model that reads metadata besides the answers."""
    help_text = (
        "folder of the metadata of these answers, of which any file may be missing; default "
        "data/metadata, and none for training answers from another folder"
    )
    parser.add_argument("--metadata_dir", type=Path, metavar="DIR", help=help_text)


def paths(options: argparse.Namespace, task: int) -> Paths:
    """Return the paths that a model's flags (see `parser`) name, and check that they can be used.

    A flag that is not given has a default.

    Raises
    ------
    InputError
        If an input file or a named folder is missing, or an output file cannot be written. This is
        reported before any work starts.
    """
    chosen = TASKS[task]
    train = options.train_data or chosen.data.train
    template = str(chosen.template)
    input_dir = layout.TRAIN_DIR
    template_dir = layout.TEMPLATE_DIR
    output_dir = layout.SUBMISSION_DIR
    output_name = chosen.submission
    if options.local:
        input_dir = layout.TEST_INPUT_DIR
        output_dir = layout.TEST_OUTPUT_DIR
        output_name = chosen.local_submission
        # Tasks 1 and 2 have a template for the local split. Task 3 has none: there, the value of
        # --local, "first" or "second", chooses one half of the students. Their answers are the
        # training answers, unless --train_data names another file.
        if chosen.local_template is not None:
            template_dir = layout.TEST_INPUT_DIR
            template = chosen.local_template
        elif train == chosen.data.train:
            train = chosen.local_train if options.local == "first" else chosen.local_answers
    train_dir = options.input_dir or input_dir
    metadata = None
    # A model without the flag --metadata_dir reads no metadata.
    if "metadata_dir" in options:
        metadata = metadata_folder(train_dir, options.metadata_dir)
    model_paths = Paths(
        train=train_dir / train,
        template=cli.template_path(options, template_dir, template),
        output=(options.output_dir or output_dir) / (options.output_file or output_name),
        metadata=metadata,
        probabilities=options.probabilities,
    )
    if options.train_data:
        reading.require_file(model_paths.train)
        provenance.require_current([model_paths.train])
    reading.require_file(model_paths.template)
    # Only some models have the flags --log and --save_model.
    further_outputs = [vars(options).get("log"), vars(options).get("save_model")]
    _require_outputs(model_paths, further_outputs)
    return model_paths


def _require_outputs(paths: Paths, further_outputs: list[Path | None]) -> None:
    """Raise `InputError` unless all files that a sample model writes can be written.

    None of them may be a file that the model reads. `further_outputs` are files such as the log;
    None stands for a file that is not asked for.
    """
    inputs = [paths.train, paths.template]
    if paths.metadata is not None:
        inputs += paths.metadata.glob("*_metadata*.csv")
    outputs = [*submission.files_of(paths.output), paths.probabilities, *further_outputs]
    cli.require_outputs(outputs, inputs)


def metadata_folder(train_dir: Path, named: Path | None = None) -> Path | None:
    """Return the folder of the metadata for training answers in `train_dir`; None if unknown.

    If the user has named a folder (`named`), the function returns it, or raises `InputError` if it
    does not exist. Otherwise it returns the kit's folder of metadata if `train_dir` is a folder of
    the kit, and None if not.
    """
    if named is not None:
        if not named.is_dir():
            raise InputError(f"{named}: not found, expected a folder of metadata")
        return named
    folders_of_kit = (layout.TRAIN_DIR.resolve(), layout.TEST_INPUT_DIR.resolve())
    return layout.METADATA_DIR if train_dir.resolve() in folders_of_kit else None
