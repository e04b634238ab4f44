"""Run scripts and parse their flags, with the same errors and exit codes in all scripts."""

import argparse
import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from common import layout, provenance, reading, running_script, streams, writing
from common.errors import InputError, one_line, printable

# ---- How a script runs ---------------------------------------------------------------------------


def run(main: Callable[[], None]) -> None:
    """Run a script's `main`. If it fails, print the error and exit.

    `InputError` and `OSError` count as mistakes of the user: they are printed in one line, and the
    exit code is 2. Without an error, `run` returns and does not exit, so that a notebook that runs
    the script goes on.
    """
    provenance.start_run(has_end=True)
    # Fingerprint the code before `main` runs: somebody may edit it meanwhile.
    provenance.note_code()
    # The signal handlers that were set before this run. They are put back at the end.
    handlers_before = _exit_on_signals()
    try:
        with (
            streams.safe_printing(),
            # Within the `with` statement, stdout is the stream that `safe_printing` has put there.
            contextlib.redirect_stdout(cast(TextIO, _PrintableStream(sys.stdout))),
            provenance.watching_reads(),
        ):
            main()
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'reading or writing a file'}: {error.strerror or error}")
    except RuntimeError as error:
        # Before Python 3.13, `Path.resolve` raises RuntimeError for a loop of symlinks.
        loop = re.fullmatch("Symlink loop from '(.*)'", str(error), re.DOTALL)
        if not loop:
            raise
        _fail(f"{loop[1]}: is a link that leads in a circle, expected a file or folder")
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        # The exit code that shells give a program that Control-C has ended.
        sys.exit(128 + signal.SIGINT)
    finally:
        # A notebook's kernel, or the quickstart, may run another script in this process. So put the
        # earlier signal handlers back.
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
        # That other script may import modules with the same names as modules in this script's
        # folder. Forget this script's modules, so that the other script imports its own modules.
        running_script.forget_modules_beside(main)


def _fail(message: str) -> NoReturn:
    """Print a user's mistake and exit with code 2."""
    print_fault(message)
    sys.exit(2)


def _exit_on_signals() -> dict[int, Any]:
    """Let signals end the script by `SystemExit`, so that temporary files are removed.

    Returns the handlers that the signals had before.
    """

    def exit_on_signal(number: int, frame: object) -> NoReturn:
        # The exit code that shells give a program that a signal has ended.
        sys.exit(128 + number)

    signals = [signal.SIGTERM]
    # Windows has no SIGHUP.
    if hasattr(signal, "SIGHUP"):
        signals.append(signal.SIGHUP)
    handlers: dict[int, Any] = {}
    for number in signals:
        # A signal that is ignored, such as SIGHUP under `nohup`, stays ignored. `getsignal` returns
        # None for a handler that a library in C has set. Such a handler could not be put back
        # later, so it stays.
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            handlers[number] = signal.signal(number, exit_on_signal)
    return handlers


class _PrintableStream:
    """Escapes unprintable characters, since file names may contain control codes for terminals."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        r"""Write a text; escape all unprintable characters but line ends (\n)."""
        lines = text.split("\n")
        return self._stream.write("\n".join(map(printable, lines)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_fault(message: str) -> None:
    """Print a user's mistake on stderr, as one line."""
    # If nothing can be written to stderr, the exit code alone tells that there was a mistake.
    with contextlib.suppress(OSError):
        print(f"error: {one_line(message)}", file=sys.stderr, flush=True)


def run_check(path: Path, name: str, check: Callable[[list[str]], list[str]]) -> None:
    """Check a file; print the faults and exit with code 2, or print a summary.

    Parameters
    ----------
    path
        The file.
    name
        Name of the task or challenge, for the summary.
    check
        Checks the file. It appends every fault to the list that it is called with, and returns the
        lines of the summary.
    """
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
    """Return a path as printable text; a path in the kit's folder is relative to that folder."""
    if path.is_relative_to(layout.ROOT):
        return printable(path.relative_to(layout.ROOT).as_posix())
    return printable(str(path))


def require_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Raise `InputError` unless every output can be written, and none overwrites another file.

    An output must be neither one of the `inputs` nor an input data file of the kit, and no two
    outputs may be the same file. Paths that are None are skipped.
    """
    taken = {_identity(path) for path in inputs if path is not None}
    for path in outputs:
        if path is None:
            continue
        writing.require_writable(path)
        if layout.is_input(path) and reading.is_there(path):
            raise InputError(
                f"{path}: is an input data file and would be overwritten; choose another name"
            )
        if _identity(path) in taken:
            raise InputError(
                f"{path}: is an input or another output too and would be overwritten; choose "
                "another name"
            )
        taken.add(_identity(path))


def _identity(path: Path) -> object:
    """Return a key that is equal for two paths to the same file.

    Two paths to one file may differ by symlinks. If the file system ignores the case of letters,
    they may also differ in upper and lower case.
    """
    try:
        status = path.stat()
    except OSError:
        return os.path.normcase(os.path.realpath(path))
    return status.st_dev, status.st_ino


# ---- Flags ---------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that checks, before any work starts, that output files can be written.

    Output files are those that the flags --output_dir and --output_file, --output, and --log name.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the flags, then check the output folders and files that they name.

        By default, the flags are those of the script that runs.
        """
        if args is None:
            # A script parses its own command line, which it does before any other work.
            _begin_run_in_notebook()
            _check_script()
            args = running_script.arguments()
        options, others = super().parse_known_args(args, namespace)
        # `get` returns None for a flag without a value, and for a flag that the parser lacks.
        values = vars(options)
        folder = values.get("output_dir")
        name = values.get("output_file")
        if folder:
            writing.require_writable_folder(folder)
        file_in_folder = folder / name if folder and name else None
        require_outputs([file_in_folder, values.get("output"), values.get("log")])
        return options, others

    def error(self, message: str) -> NoReturn:
        """Exit with a message on one line that any terminal can print."""
        super().error(one_line(message))


def _begin_run_in_notebook() -> None:
    """Begin a new run if this process is the kernel of a notebook.

    A kernel runs several scripts, one after the other. The record of what a script writes should
    name only the files that have been read since the script parsed its flags.
    """
    # If `cli.run` has started the script, it has begun a run and will end it, so `has_end` is True.
    # But if a cell of the notebook calls the script's functions without `cli.run`, begin one here.
    if running_script.in_kernel() and not provenance.RUN.has_end:
        provenance.start_run(has_end=False)


def _check_script() -> None:
    """Raise `InputError` if other modules are loaded than those that the script should import.

    Such modules may belong to another script or to another copy of the kit.
    """
    script = running_script.find_script()
    if script is not None:
        running_script.require_own_code(script)


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is the script's docstring."""
    script = running_script.find_script() or Path(sys.argv[0])
    prog = f"python -m tools.{script.stem}" if script.parent.name == "tools" else script.name
    raw_text = argparse.RawDescriptionHelpFormatter
    return _Parser(prog=prog, description=doc, formatter_class=raw_text, allow_abbrev=False)


def add_folder(
    parser: argparse.ArgumentParser, flag: str, default: Path, description: str = ""
) -> None:
    """Add a flag that names a folder; `description` describes the folder in the help."""
    help_text = _with_default(description, show(default))
    parser.add_argument(flag, type=Path, metavar="DIR", default=default, help=help_text)


def add_optional_folder(
    parser: argparse.ArgumentParser, flag: str, default_in_words: str, description: str = ""
) -> None:
    """Add a flag that names a folder and is None by default.

    `default_in_words` tells in the help which folder is used by default.
    """
    help_text = _with_default(description, default_in_words)
    parser.add_argument(flag, type=Path, metavar="DIR", help=help_text)


def add_file(
    parser: argparse.ArgumentParser, flag: str, default: Path, description: str = ""
) -> None:
    """Add a flag that names a file by its path."""
    help_text = _with_default(description, show(default))
    parser.add_argument(flag, type=Path, metavar="FILE", default=default, help=help_text)


def add_file_name(
    parser: argparse.ArgumentParser, flag: str, default: str, description: str = ""
) -> None:
    """Add a flag that names a file in a folder that another flag names."""
    help_text = _with_default(description, default)
    parser.add_argument(flag, metavar="FILE", default=default, help=help_text)


def add_number(
    parser: argparse.ArgumentParser,
    flag: str,
    default: float,
    description: str = "",
    parse: Callable[[str], float] | None = None,
    metavar: str = "N",
) -> None:
    """Add a flag whose value is a number.

    `parse` reads the number from the text of the flag. By default the number is whole, and at least
    0 for the flag ``--seed``, at least 1 for others.
    """
    if parse is None:
        parse = seed if flag == "--seed" else count
    help_text = _with_default(description, default)
    parser.add_argument(flag, type=parse, metavar=metavar, default=default, help=help_text)


def add_optional_number(
    parser: argparse.ArgumentParser,
    flag: str,
    default_in_words: str,
    description: str,
    parse: Callable[[str], float],
    metavar: str = "N",
) -> None:
    """Add a flag whose value is a number, and which is None by default.

    `default_in_words` tells in the help what happens by default. `parse` reads the number.
    """
    help_text = _with_default(description, default_in_words)
    parser.add_argument(flag, type=parse, metavar=metavar, help=help_text)


def add_names(
    parser: argparse.ArgumentParser,
    flag: str,
    description: str,
    names: Collection[str],
    default: Sequence[str],
) -> None:
    """Add a flag whose values are one or more of `names`."""
    help_text = _with_default(f"{description} {', '.join(names)}", " ".join(default))
    parser.add_argument(
        flag, nargs="+", choices=names, metavar="NAME", default=default, help=help_text
    )


def add_optional_names(
    parser: argparse.ArgumentParser,
    flag: str,
    description: str,
    names: Collection[str],
    default_in_words: str,
) -> None:
    """Add a flag whose values are one or more of `names`, and which is None by default.

    `default_in_words` tells in the help which names are used by default.
    """
    help_text = _with_default(f"{description} {', '.join(names)}", default_in_words)
    parser.add_argument(flag, nargs="+", choices=names, metavar="NAME", help=help_text)


def _with_default(description: str, default: object) -> str:
    """Return the help of a flag with its default."""
    return f"{description} (default {default})" if description else f"default {default}"


def add_template_flags(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the two flags that name a submission template."""
    add_optional_folder(parser, "--submission_template_dir", "submission_templates")
    parser.add_argument("--submission_template_file", metavar="FILE", help=f"default {name}")


def add_answer_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name training answers and the folder of their metadata."""
    parser.add_argument("--tasks", choices=layout.TASK_PAIRS, default="3/4", help="default: 3/4")
    add_folder(parser, "--input_dir", layout.TRAIN_DIR)
    help_text = "the answers (default: train_task_1_2.csv or train_task_3_4.csv)"
    parser.add_argument("--train_data", metavar="FILE", help=help_text)
    add_folder(parser, "--metadata_dir", layout.METADATA_DIR)


def answers_path(options: argparse.Namespace) -> Path:
    """Return the path of the training answers, from the flags of `add_answer_flags`."""
    input_dir: Path = options.input_dir
    name: str = options.train_data or f"train_{layout.ending_of(options.tasks)}"
    return input_dir / name


def template_path(options: argparse.Namespace, folder: Path, name: str) -> Path:
    """Return the path of the template, from its flags or the defaults."""
    template_folder: Path = options.submission_template_dir or folder
    template_name: str = options.submission_template_file or name
    return template_folder / template_name


def input_file(folder: Path, name: str) -> Path:
    """Return the path of an input file that a flag names.

    The file is sought in `folder`, then in the current folder. If it is in neither, the path in
    `folder` is returned.
    """
    in_folder = folder / name
    in_current_folder = Path(name)
    if not reading.is_there(in_folder) and reading.is_there(in_current_folder):
        return in_current_folder
    return in_folder


def whole_number(low: int, high: int = sys.maxsize) -> Callable[[str], int]:
    """Return a function that parses a whole number within bounds, both inclusive."""

    def number(text: str) -> int:
        # argparse reports the ValueError of `int` as an invalid value.
        if low <= int(text) <= high:
            return int(text)
        expected = f"at least {low}" if high == sys.maxsize else f"from {low} to {high}"
        raise argparse.ArgumentTypeError(f"{text} is not {expected}")

    return number


# Two parsers of whole numbers: for the seed of random numbers, and for a count of at least 1.
seed = whole_number(0)
count = whole_number(1)
