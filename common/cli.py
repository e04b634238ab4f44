"""The command line that all scripts share: the same flags, the same errors, the same exit codes."""

import argparse
import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TextIO, cast

from common import io, layout, made, submission
from common.errors import InputError, one_line, printable
from common.tasks import TASKS, Form


def run(main: Callable[[], None]) -> NoReturn:
    """Run a script's main; turn the user's mistakes and `OSError` into one line and exit code 2."""
    # So that half-written files are removed after SIGTERM too.
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
        if signal.getsignal(number) != signal.SIG_IGN:  # As `nohup` has it.
            signal.signal(number, lambda received, _: sys.exit(128 + received))
    fault = None
    try:
        with contextlib.redirect_stdout(cast(TextIO, _Shown(sys.stdout))):
            main()
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe; the last flush must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except InputError as error:
        fault = str(error)
    except OSError as error:
        fault = f"{error.filename or 'reading or writing a file'}: {error.strerror or error}"
    except RuntimeError as error:
        # Of `Path.resolve`, in any argument; from Python 3.13 on, opening the file says so.
        loop = re.fullmatch("Symlink loop from '(.*)'", str(error), re.DOTALL)
        if not loop:
            raise
        fault = f"{loop[1]}: is a link that leads in a circle, expected a file or folder"
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    if fault is not None:
        print_fault(fault)
    sys.exit(0 if fault is None else 2)


class _Shown:
    """Where a script prints: a name may hold anything, which is shown, not sent to the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text with its line ends, and all else that is not printable escaped."""
        return self._stream.write("\n".join(map(printable, text.split("\n"))))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_fault(message: str) -> None:
    """Print what is wrong with the input on stderr, as one line."""
    print(f"error: {one_line(message)}", file=sys.stderr)


def run_check(path: Path, name: str, check: Callable[[list[str]], list[str]]) -> None:
    """Print the faults that `check` appends to a list, and exit with code 2; or its summary."""
    faults: list[str] = []
    try:
        summary = check(faults)
    except InputError as error:
        faults.append(str(error))
    for fault in faults:
        print_fault(fault)
    if faults:
        sys.exit(2)
    print(f"{show(path)}: valid for {name}", *summary, sep="\n")


def show(path: Path) -> str:
    """Return a short, printable form of a path: relative to the kit's folder if it lies inside."""
    short = path.relative_to(layout.ROOT) if path.is_relative_to(layout.ROOT) else path
    return printable(str(short))


def require_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Raise `InputError` if a file cannot be written, is an input or data, or is there twice."""
    taken = {_identity(path) for path in filter(None, inputs)}
    for path in filter(None, outputs):
        io.require_place(path)
        if layout.is_data(path) and io.is_there(path):
            raise InputError(
                f"{path}: is of the data that models learn from or are scored on, expected another "
                "name to write to"
            )
        if _identity(path) in taken:
            raise InputError(
                f"{path}: is read, or written with something else, expected another name"
            )
        taken.add(_identity(path))


def _identity(path: Path) -> object:
    """Return what two paths share that lead to one file, by links or in other letters."""
    try:
        status = path.stat()
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


# ---- Flags -----------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that refuses, before any work, to write where nothing can be written."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read the flags, and check those that name folders and files to write."""
        options, others = super().parse_known_args(args, namespace)
        named = vars(options)
        folder, name = named.get("output_dir"), named.get("output_file")
        if folder:
            io.require_folder(folder)
        file = folder / name if folder and name else None
        require_outputs([file, named.get("output"), named.get("log")])
        return options, others

    def error(self, message: str) -> NoReturn:
        """End with a message on one line that any terminal can print."""
        super().error(one_line(message))


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Make a parser whose help is the script's own docstring."""
    script = Path(sys.argv[0])
    prog = f"python -m tools.{script.stem}" if script.parent.name == "tools" else script.name
    raw_text = argparse.RawDescriptionHelpFormatter
    return _Parser(prog=prog, description=doc, formatter_class=raw_text, allow_abbrev=False)


def add_folder(p: argparse.ArgumentParser, flag: str, default: Path | str, what: str = "") -> None:
    """Add a flag that names a folder; a default that depends on other flags is told in words."""
    folder = default if isinstance(default, Path) else None
    told = _with_default(what, show(default) if isinstance(default, Path) else default)
    p.add_argument(flag, type=Path, metavar="DIR", default=folder, help=told)


def add_file(p: argparse.ArgumentParser, flag: str, default: Path | str, what: str = "") -> None:
    """Add a flag that names a file: where the default is no path, one in a folder named apart."""
    told = _with_default(what, show(Path(default)))
    p.add_argument(flag, type=type(default), metavar="FILE", default=default, help=told)


def add_number(
    p: argparse.ArgumentParser,
    flag: str,
    default: float,
    what: str = "",
    kind: Callable[[str], float] | None = None,
    metavar: str = "N",
) -> None:
    """Add a flag that names a number, a `seed` if that is its name, else by default a `count`."""
    kind = kind or (seed if flag == "--seed" else count)
    told = _with_default(what, default)
    p.add_argument(flag, type=kind, metavar=metavar, default=default, help=told)


def add_names(
    p: argparse.ArgumentParser, flag: str, what: str, names: Collection[str], default: Sequence[str]
) -> None:
    """Add a flag that takes some of the names; a default that depends on files is told in words."""
    shown, chosen = (default, None) if isinstance(default, str) else (" ".join(default), default)
    told = _with_default(f"{what} {', '.join(names)}", shown)
    p.add_argument(flag, nargs="+", choices=names, metavar="NAME", default=chosen, help=told)


def _with_default(what: str, default: object) -> str:
    return f"{what} (default {default})" if what else f"default {default}"


def add_metadata_flag(p: argparse.ArgumentParser) -> None:
    """Add the flag that names the metadata, to a model that uses what is known besides answers."""
    told = (
        "folder of the metadata of these answers, of which any file may be missing; default "
        "data/metadata, and none for training answers from another folder"
    )
    p.add_argument("--metadata_dir", type=Path, metavar="DIR", default=None, help=told)


def add_template_flags(p: argparse.ArgumentParser, name: str) -> None:
    """Add the two flags that name a submission template."""
    add_folder(p, "--submission_template_dir", "submission_templates")
    p.add_argument("--submission_template_file", metavar="FILE", help=f"default {name}")


def template_path(options: argparse.Namespace, folder: Path, name: str) -> Path:
    """Return the path of the template, from its flags or the defaults."""
    file = options.submission_template_file or name
    return Path((options.submission_template_dir or folder) / file)


def whole_number(low: int, high: int = sys.maxsize) -> Callable[[str], int]:
    """Return what reads a whole number within bounds, both inclusive, from the command line."""

    def number(text: str) -> int:
        if low <= int(text) <= high:
            return int(text)
        expected = f"at least {low}" if high == sys.maxsize else f"from {low} to {high}"
        raise argparse.ArgumentTypeError(f"{text} is not {expected}")

    return number


seed, count = whole_number(0), whole_number(1)


# ---- Sample models of the tasks 1 to 3 -------------------------------------------------------


class _SampleModelPaths(NamedTuple):
    """Where a sample model reads and writes."""

    train: Path
    template: Path
    output: Path
    # Folder of the metadata of these answers; None where there is none, or none is asked for.
    metadata: Path | None
    probabilities: Path | None


def sample_model_parser(
    doc: str | None, task: int, *, reads_answers: bool = True
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
    """
    about = TASKS[task]
    p = parser(doc)
    p.usage = "%(prog)s [flags]"
    # A model without a flag for the metadata wants none: "".
    p.set_defaults(input_dir=None, train_data=None, metadata_dir="", probabilities=None, local=None)
    if reads_answers:
        add_folder(p, "--input_dir", "data/train_data")
        add_file(p, "--train_data", about.data.train)
    add_template_flags(p, str(about.template))
    add_folder(p, "--output_dir", "submissions")
    help_ = f"default {about.submission}; the zip is written beside it"
    p.add_argument("--output_file", metavar="FILE", help=help_)
    written = f"data/test_output and {about.local_submission}"
    if about.form is Form.RANKING:
        halves = f"{about.local_train} (second: {about.local_answers})"
        help_ = (
            "rank by one half of the students (local_data_split.py), the first by default; "
            f"defaults become data/test_input, {halves}, {written}"
        )
        names = ("first", "second")
        p.add_argument("--local", nargs="?", const="first", choices=names, help=help_)
    else:
        help_ = "write the probability of each prediction to FILE (Parquet) as well"
        p.add_argument("--probabilities", type=Path, metavar="FILE", help=help_)
        help_ = (
            "use the local split: defaults become data/test_input, "
            f"{about.local_template}, {written}"
        )
        p.add_argument("--local", action="store_true", help=help_)
    return p


def sample_model_paths(options: argparse.Namespace, task: int) -> _SampleModelPaths:
    """Return the paths that the flags of `sample_model_parser` name.

    Raises
    ------
    InputError
        If a file to be read, or a folder that was named, is missing, or a file cannot be written
        where it is to go; this is reported before any work starts.
    """
    about = TASKS[task]
    train = options.train_data or about.data.train
    input_dir = layout.TRAIN_DIR
    template_dir = layout.TEMPLATE_DIR
    template = str(about.template)
    output_dir = layout.SUBMISSION_DIR
    output = about.submission
    if options.local:
        input_dir = layout.TEST_INPUT_DIR
        output_dir = layout.TEST_OUTPUT_DIR
        output = about.local_submission
        if about.local_template is not None:
            template_dir = layout.TEST_INPUT_DIR
            template = about.local_template
        elif train == about.data.train:
            train = about.local_train if options.local == "first" else about.local_answers
    train_dir = options.input_dir or input_dir
    paths = _SampleModelPaths(
        train=train_dir / train,
        template=template_path(options, template_dir, template),
        output=(options.output_dir or output_dir) / (options.output_file or output),
        metadata=metadata_of(train_dir, options.metadata_dir),
        probabilities=options.probabilities,
    )
    if options.train_data:
        io.require_file(paths.train)
        made.require_current([paths.train])
    io.require_file(paths.template)
    outputs = [*submission.files_of(paths.output), paths.probabilities, vars(options).get("log")]
    metadata = paths.metadata.glob("*_metadata*.csv") if paths.metadata else ()
    require_outputs(outputs, [paths.train, paths.template, *metadata])
    return paths


def metadata_of(train_dir: Path, named: Path | str | None = None) -> Path | None:
    """Return the folder of metadata that is named, "" for none; or that of the kit's answers."""
    if named is not None:
        if named and not Path(named).is_dir():
            raise InputError(f"{named}: not found, expected a folder of metadata")
        return Path(named) if named else None
    own = {folder.resolve() for folder in (layout.TRAIN_DIR, layout.TEST_INPUT_DIR)}
    return layout.METADATA_DIR if train_dir.resolve() in own else None
