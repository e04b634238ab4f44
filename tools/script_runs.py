"""Run a user's scripts, such as an entry on some training answers, and ask for their flags."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from common import cli, layout, provenance, splits, writing
from common.arrays import BoolArray
from common.errors import InputError, printable, quote
from common.tasks import Task

import pandas as pd

# Only this number of bytes at the end of a program's output is read.
_TAIL = 1 << 16
# An error message shows at most this number of characters of the last line that a script printed.
_MAX_SHOWN = 200
# Names of two files in the folder of a fold: the answers to learn from, and the list of the pairs
# of student and question to predict.
TRAIN = "train.csv"
TEMPLATE = "template.csv"
_PRINT_FLAGS = Path(__file__).with_name("print_flags.py")


def run_to_end(
    words: Sequence[str],
    *,
    only_stderr: bool = False,
    time_limit: float | None = None,
    **popen_options: Any,
) -> tuple[int, list[str]]:
    """Run a program to its end, then end the processes that it has started (not on Windows).

    Parameters
    ----------
    words
        The command.
    only_stderr
        Whether to drop what the program writes to stdout.
    time_limit
        Seconds that the program may run. None for no limit.
    **popen_options
        Further arguments of `subprocess.Popen`, such as ``cwd`` and ``env``.

    Returns
    -------
    tuple of int and list of str
        The exit code, and the last lines of the output that are not empty.

    Raises
    ------
    subprocess.TimeoutExpired
        If the program exceeds the time limit. It is ended.
    """
    # Take `env` out of the options, because the program gets a changed copy of it.
    environment = dict(popen_options.pop("env", os.environ))
    # The output is read as UTF-8. On Windows, Python would write another encoding.
    environment["PYTHONIOENCODING"] = "utf-8"
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if only_stderr else output,
            stderr=output,
            start_new_session=True,
            env=environment,
            **popen_options,
        ) as process:
            try:
                code = process.wait(time_limit)
            finally:
                # This also runs if Control-C ends the wait.
                _end_with_children(process)
        return code, _last_lines(output)


def _end_with_children(process: subprocess.Popen[bytes]) -> None:
    """End a process, which leads a session of its own, and all processes in the same group."""
    if os.name == "nt":
        # Windows has no such groups: end only the process itself.
        process.kill()
        return
    # `process` may have ended already, but processes that it has started may still run. They are in
    # the same group of processes: end the whole group.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_lines(output: BinaryIO) -> list[str]:
    """Return the lines in the last `_TAIL` bytes of a file; empty lines are left out."""
    # `seek` returns the new position. At the end of the file, this is the size of the file.
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _TAIL))
    lines = []
    for line in output.read().decode(errors="replace").split("\n"):
        # With "\r", a progress bar returns to the start of its line and writes over it. Keep what
        # it wrote last: the text after the last "\r" in the line.
        shown = line.rstrip("\r").split("\r")[-1].strip()
        if shown:
            lines.append(shown)
    return lines


def run_script(
    command: Sequence[object],
    purpose: str,
    named_script: Path | None = None,
    kit_copy: Path | None = None,
) -> list[str]:
    """Run a Python script to its end.

    Parameters
    ----------
    command
        The script and its flags.
    purpose
        What the script is run on or for, such as "fold 1" or "asking for its flags". The error
        message then says "ended with exit code 1 on fold 1".
    named_script
        The script that the error message names. By default, the script in `command`.
    kit_copy
        The temporary copy of the kit in which the script lies, or None if it was not copied. In
        the error message, paths in the kit replace paths in the copy.

    Returns
    -------
    list of str
        The last lines that the script printed.

    Raises
    ------
    InputError
        If the script fails. The message ends with the last line that the script printed.
    """
    words = [str(word) for word in command]
    # A package of task 4 may lie in a copy outside of the kit. PYTHONPATH lets it import the kit.
    search_path = [str(kit_copy or layout.ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, search_path))}
    code, lines = run_to_end([sys.executable, *words], env=environment)
    if code == 0:
        return lines
    last_line = lines[-1] if lines else "it printed nothing"
    reason = name_in_kit(last_line, kit_copy).removeprefix("error: ")
    script = named_script or Path(words[0])
    script_name = name_in_kit(cli.show(script.resolve()), kit_copy)
    raise InputError(
        f"{script_name}: ended with exit code {code} on {purpose}: {printable(reason, _MAX_SHOWN)}"
    )


def name_in_kit(text: str, kit_copy: PurePath | None) -> str:
    """Return a text in which paths in a copy of the kit are relative to the kit's folder.

    The copy is temporary, and users do not know it. If `kit_copy` is None, there is no copy, and
    the text stays as it is.
    """
    if kit_copy is None:
        return text
    # On Windows, a path in a text may be written with slashes, backslashes, or doubled backslashes.
    for separator in ("/", "\\\\", "\\"):
        folder = kit_copy.as_posix().replace("/", separator)
        text = text.replace(f"{folder}{separator}", "").replace(folder, str(layout.ROOT))
    return text


def command_to_repeat(
    record: provenance.Provenance,
    task: Task,
    path: Path,
    or_else: str = "",
    *,
    keep: Collection[str] = (),
) -> tuple[Path, list[str]]:
    """Return the script that made a file, and its flags, so that it can be run again.

    A file may come from anywhere: the command in its record is checked before anybody runs it.

    Parameters
    ----------
    record
        How the file was made.
    task
        The task of the file.
    path
        The file, for the error message.
    or_else
        The end of the error message: what the user can do instead.
    keep
        Flags that name paths are left out, except --metadata_dir and the flags with these names.

    Returns
    -------
    tuple of Path and list of str
        The script, and its flags.

    Raises
    ------
    InputError
        If the script is no entry in the folder of the task, or does not declare the flags.
    """
    folder = task.folder
    script = Path(os.path.realpath(layout.ROOT / record.script))
    if script.parent != folder or not _is_entry(script):
        raise InputError(
            f"{path}: was made by {record.script}, which cannot be repeated, expected a script in "
            f"{folder.name}/ of this kit{or_else}"
        )
    # The caller chooses the files, so leave out the flags that name paths, except --metadata_dir
    # and the flags in `keep`.
    options = provenance.settings(record.options, keep=("metadata_dir", *keep))
    options.pop("local", None)
    flags = provenance.flags_of(options)
    forged = _find_forged_flag(script, options, flags)
    if forged is not None:
        raise InputError(
            f"{path}: was made with {quote(forged)}, which is no flag of {cli.show(script)}, "
            f"expected its own flags{or_else}"
        )
    return script, flags


def _is_entry(script: Path) -> bool:
    """Return whether a file in a task's folder is a script that predicts.

    The scripts local_data_split.py and local_evaluation.py do not predict.
    """
    return script.suffix == ".py" and script.is_file() and not script.name.startswith("local_")


def _find_forged_flag(script: Path, options: Mapping[str, Any], flags: Sequence[str]) -> str | None:
    """Return the first word of a recorded command that must not be run; None if there is none.

    `options` are the options in the record, by name. `flags` are the same options as words of a
    command line, such as "--seed" and "3". In a forged record, the value of an option may itself be
    a flag, such as --output_dir, which would let the script write anywhere. So a word that begins
    with -- is allowed only if it appears once, is the name of a recorded option, and is a flag that
    the script declares.
    """
    if not flags:
        return None
    recorded_flags = {f"--{name}" for name in options}
    allowed = recorded_flags & declared_flags(script)
    for word in flags:
        is_flag = word.startswith("--")
        is_allowed = word in allowed and flags.count(word) == 1
        if is_flag and not is_allowed:
            return word
    return None


@dataclass(frozen=True)
class Fold:
    """Training answers, split into those that an entry learns from and those that it predicts."""

    # For messages, such as "fold 1".
    title: str
    # All training answers.
    answers: pd.DataFrame
    # True for an answer to be predicted, shape (n_answers,).
    is_held_out: BoolArray
    # Folder of the metadata that belong to the answers; None if there are none.
    metadata_dir: Path | None
    # The folder for the files that belong to this fold; empty before the fold is run.
    folder: Path


def run_on_fold(
    script: Path, flags: Sequence[str], fold: Fold, kit_copy: Path | None = None
) -> Path:
    """Let a script of task 1 or 2 predict the held-out answers of a fold, learning from the rest.

    The predictions are written to the fold's folder. Returns the path of the template of the
    submission, a file that lists the held-out answers without their outcomes. `kit_copy` is the
    temporary copy of the kit in which the script lies, or None if the script was not copied.
    """
    train = fold.folder / TRAIN
    template = fold.folder / TEMPLATE
    pair_columns = [name for name in splits.PAIR_COLUMNS if name in fold.answers]
    writing.write_files({train: fold.answers[~fold.is_held_out]})
    writing.write_files({template: fold.answers.loc[fold.is_held_out, pair_columns]})
    path_flags = flags_for_paths(train, template, fold.folder)
    path_flags += metadata_flags(script, fold.metadata_dir, kit_copy)
    run_script([script, *path_flags, *flags], fold.title, kit_copy=kit_copy)
    return template


def flags_for_paths(train: Path, template: Path, output_dir: Path) -> list[object]:
    """Return the flags with which a script of task 1 or 2 reads and writes these files."""
    return [
        *("--input_dir", train.parent, "--train_data", train.name),
        *("--submission_template_dir", template.parent),
        *("--submission_template_file", template.name),
        *("--output_dir", output_dir),
    ]


@cache
def declared_flags(script: Path, kit_copy: Path | None = None) -> frozenset[str]:
    """Return the flags that a script's function `build_parser` declares, except --help.

    If the script lacks this function, no flag is known, and a note tells the user so. `kit_copy` is
    the temporary copy of the kit in which the script lies, or None if the script was not copied.

    Raises
    ------
    InputError
        If the script cannot be imported, or its `build_parser` fails.
    """
    if not _defines_build_parser(script):
        name = name_in_kit(cli.show(script.resolve()), kit_copy)
        print(
            f"note: {name} has no function build_parser(), which returns the parser of its flags; "
            "it gets only the flags that name its files",
            flush=True,
        )
        return frozenset()
    # `_PRINT_FLAGS` is a script that imports `script` and prints its flags as JSON.
    command = [_PRINT_FLAGS, script]
    lines = run_script(command, "asking for its flags", named_script=script, kit_copy=kit_copy)
    return frozenset(json.loads(lines[-1])) - {"-h", "--help"}


def _defines_build_parser(script: Path) -> bool:
    """Return whether a script defines `build_parser` at its top level.

    Only such a script is imported to find out its flags: importing any other script may run it.
    """
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError):
        # The file is not valid Python; Python will report the error when the script runs.
        return False
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return any(function.name == "build_parser" for function in functions)


def metadata_flags(
    script: Path, metadata_dir: Path | None, kit_copy: Path | None = None
) -> list[object]:
    """Return the flag --metadata_dir and its value, the folder.

    Returns an empty list if `metadata_dir` is None, or if the script does not have this flag.
    `kit_copy` is the temporary copy of the kit in which the script lies, or None.
    """
    if metadata_dir is None or "--metadata_dir" not in declared_flags(script, kit_copy):
        return []
    return ["--metadata_dir", metadata_dir]


def reads_metadata(script: Path, kit_copy: Path | None = None) -> bool:
    """Return whether a script has the flag --metadata_dir.

    `kit_copy` is the temporary copy of the kit in which the script lies, or None.
    """
    return "--metadata_dir" in declared_flags(script, kit_copy)


def existing_metadata(folder: Path | None) -> Path | None:
    """Return a folder of metadata; None if there is no such folder."""
    return folder if folder is not None and folder.is_dir() else None
