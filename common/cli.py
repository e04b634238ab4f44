"""The command line that all scripts share: the same flags, the same errors, the same exit codes."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from common import io, layout, made, run_log, submission
from common.errors import InputError, one_line, printable


def run(main: Callable[[], None]) -> NoReturn:
    """Run a script's main function; turn the user's mistakes into one line and exit code 2.

    Parameters
    ----------
    main
        The script. It raises `InputError` for invalid input; an `OSError` (a full disk, a folder
        without write permission) is for the user to fix as well. Any other exception is a bug
        and shows its traceback.
    """
    _require_own_kit(Path(sys.argv[0]).resolve())
    # So that half-written files are removed after SIGTERM too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        main()
    except InputError as error:
        _stop(str(error))
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe; the last flush must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _stop(f"{error.filename or 'reading or writing a file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    sys.exit(0)


def _require_own_kit(script: Path) -> None:
    """Stop where the environment of one copy of the kit runs a script of another one."""
    roots = (folder for folder in script.parents if (folder / "common" / "layout.py").is_file())
    root = next(roots, layout.ROOT)
    if root != layout.ROOT:
        _stop(
            f"{script}: this Python belongs to the kit in {layout.ROOT} and would use its data; "
            f"use the environment in {root}, which `python3 quickstart.py` makes there"
        )


def print_fault(message: str) -> None:
    """Print what is wrong with the input on stderr, as one line."""
    print(f"error: {one_line(message)}", file=sys.stderr)


def print_verdict(
    submission: Path, name: str, faults: Sequence[str], summary: Sequence[str]
) -> None:
    """Print what a check of a submission found; exit with code 2 if it has faults.

    Parameters
    ----------
    submission
        The file or folder.
    name
        What it is for: ``task 1``.
    faults
        What is wrong with it.
    summary
        Lines about a valid one.
    """
    for fault in faults:
        print_fault(fault)
    if faults:
        sys.exit(2)
    print(f"{show(submission)}: valid for {name}")
    for line in summary:
        print(line)


def _stop(message: str) -> NoReturn:
    print_fault(message)
    sys.exit(2)


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Make a parser whose help is the script's own docstring."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


def show(path: Path) -> str:
    """Return a short, printable form of a path: relative to the kit's folder if it lies inside."""
    short = path.relative_to(layout.ROOT) if path.is_relative_to(layout.ROOT) else path
    return printable(str(short))


def share(text: str) -> float:
    """Read a share between 0 and 1, both exclusive, from the command line."""
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def seed(text: str) -> int:
    """Read a seed, a whole number of at least 0, from the command line."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def count(text: str) -> int:
    """Read a whole number of at least 1 from the command line."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


@dataclass(frozen=True)
class SplitOptions:
    """Where a local split reads and writes."""

    train: Path
    output_dir: Path
    seed: int


def split_options(doc: str | None, train_name: str) -> SplitOptions:
    """Read the flags of a `local_data_split.py`.

    Parameters
    ----------
    doc
        The script's docstring.
    train_name
        Default name of the training file.
    """
    p = parser(doc)
    p.add_argument(
        "--input_dir",
        type=Path,
        metavar="DIR",
        default=layout.TRAIN_DIR,
        help="default data/train_data",
    )
    p.add_argument("--train_data", metavar="FILE", default=train_name, help=f"default {train_name}")
    p.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_INPUT_DIR,
        help="default data/test_input",
    )
    p.add_argument(
        "--seed", type=seed, metavar="N", default=0, help="seed of the split (default 0)"
    )
    options = p.parse_args()
    return SplitOptions(options.input_dir / options.train_data, options.output_dir, options.seed)


@dataclass(frozen=True)
class SampleModelPaths:
    """Where a sample model reads and writes.

    Attributes
    ----------
    train, template, output
        The training answers, the submission template, and the submission to be written.
    metadata
        Folder of the metadata of these answers; None where there is none, or none is asked for.
    probabilities
        Where the probabilities go, beside the submission; None where none are asked for.
    """

    train: Path
    template: Path
    output: Path
    metadata: Path | None = None
    probabilities: Path | None = None


def sample_model_parser(
    doc: str | None,
    task: int,
    *,
    reads_answers: bool = True,
    reads_metadata: bool = False,
    logs_steps: bool = False,
) -> argparse.ArgumentParser:
    """Make the parser of a sample model of task 1, 2 or 3; a model adds its own flags to it.

    Parameters
    ----------
    doc
        The script's docstring.
    task
        Number of the task.
    reads_answers
        Whether the model learns from the training answers.
    reads_metadata
        Whether the model uses what is known about answers, students and questions besides.
    logs_steps
        Whether the model logs the steps of its fit.
    """
    train, template = _default_names(task)
    output = layout.submission_name(task)
    p = parser(doc)
    p.usage = "%(prog)s [flags]"
    if reads_answers:
        p.add_argument("--input_dir", type=Path, metavar="DIR", help="default data/train_data")
        p.add_argument("--train_data", metavar="FILE", default=train, help=f"default {train}")
    if reads_metadata:
        p.add_argument(
            "--metadata_dir",
            type=Path,
            metavar="DIR",
            help="folder of the metadata of these answers, of which any file may be missing; "
            "default data/metadata, and none for training answers from another folder",
        )
    add_template_flags(p, template)
    p.add_argument("--output_dir", type=Path, metavar="DIR", help="default submissions")
    p.add_argument(
        "--output_file", metavar="FILE", help=f"default {output}; the zip is written beside it"
    )
    if logs_steps:
        run_log.add_log_flag(p)
    if task in (1, 2):
        p.add_argument(
            "--probabilities",
            type=Path,
            metavar="FILE",
            help="write the probability of each prediction to FILE (Parquet) as well",
        )
        p.add_argument(
            "--local",
            action="store_true",
            help="use the local split: defaults become data/test_input, "
            f"{layout.LOCAL_TEMPLATE_TASK_1_2}, data/test_output and "
            f"{layout.local_submission_name(task)}",
        )
    return p


def add_template_flags(p: argparse.ArgumentParser, name: str) -> None:
    """Add the two flags that name a submission template."""
    p.add_argument(
        "--submission_template_dir", type=Path, metavar="DIR", help="default submission_templates"
    )
    p.add_argument("--submission_template_file", metavar="FILE", help=f"default {name}")


def template_path(options: argparse.Namespace, folder: Path, name: str) -> Path:
    """Return the path of the template, from its flags or the defaults."""
    path: Path = (options.submission_template_dir or folder) / (
        options.submission_template_file or name
    )
    return path


def sample_model_paths(options: argparse.Namespace, task: int) -> SampleModelPaths:
    """Return the paths that the flags of `sample_model_parser` name.

    Raises
    ------
    InputError
        If a file to be read, or a folder that was named, is missing, or a file cannot be written
        where it is to go; this is reported before any work starts.
    """
    if getattr(options, "local", False):
        input_dir = template_dir = layout.TEST_INPUT_DIR
        template = layout.LOCAL_TEMPLATE_TASK_1_2
        output_dir, output = layout.TEST_OUTPUT_DIR, layout.local_submission_name(task)
    else:
        input_dir, template_dir = layout.TRAIN_DIR, layout.TEMPLATE_DIR
        template = _default_names(task)[1]
        output_dir, output = layout.SUBMISSION_DIR, layout.submission_name(task)
    reads_answers = hasattr(options, "train_data")
    train = options.train_data if reads_answers else _default_names(task)[0]
    train_dir = getattr(options, "input_dir", None) or input_dir
    paths = SampleModelPaths(
        train=train_dir / train,
        template=template_path(options, template_dir, template),
        output=(options.output_dir or output_dir) / (options.output_file or output),
        metadata=_metadata_dir(options, train_dir),
        probabilities=getattr(options, "probabilities", None),
    )
    if reads_answers:
        io.require_file(paths.train)
    io.require_file(paths.template)
    _require_places(paths)
    made.require_current([paths.train])
    return paths


def _require_places(paths: SampleModelPaths) -> None:
    """Raise `InputError` unless every file can be written, and in the place of no other one."""
    taken = {paths.train.resolve(), paths.template.resolve()}
    written = submission.files_of(paths.output)
    if paths.probabilities is not None:
        written.append(paths.probabilities)
    for path in written:
        io.require_place(path)
        if path.resolve() in taken:
            raise InputError(
                f"{path}: is read, or written with something else, expected another name"
            )
        taken.add(path.resolve())


def _metadata_dir(options: argparse.Namespace, train_dir: Path) -> Path | None:
    """Return the folder of the metadata that belong to the training answers of a folder."""
    if not hasattr(options, "metadata_dir"):
        return None
    if options.metadata_dir is not None:
        named: Path = options.metadata_dir
        if not named.is_dir():
            raise InputError(f"{named}: not found, expected a folder of metadata")
        return named
    # Other answers have other ids, which must not be looked up in the default files.
    own = {folder.resolve() for folder in (layout.TRAIN_DIR, layout.TEST_INPUT_DIR)}
    return layout.METADATA_DIR if train_dir.resolve() in own else None


def _default_names(task: int) -> tuple[str, str]:
    if task == 3:
        return layout.TRAIN_TASK_3_4, layout.TEMPLATE_TASK_3
    return layout.TRAIN_TASK_1_2, layout.TEMPLATE_TASK_1_2
