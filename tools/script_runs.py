"""Run a user's scripts, such as an entry on a part of the training answers; ask for their flags."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from common import cli, layout, provenance, sample_models, splits, writing
from common.arrays import BoolArray
from common.errors import InputError, printable, quote
from common.tasks import Task

import pandas as pd

# How much of the end of what a program prints is read.
_TAIL = 1 << 16
_MAX_SHOWN = 200
TRAIN = "train.csv"
TEMPLATE = "template.csv"
_PRINT_FLAGS = Path(__file__).with_name("print_flags.py")


def run_to_end(
    words: Sequence[str], *, only_stderr: bool = False, time_limit: float | None = None, **how: Any
) -> tuple[int, list[str]]:
    """Run a program, which ends with this process, as does all that it has started; return its exit
    code and last lines; `subprocess.TimeoutExpired` after a number of seconds.
    """
    # Python programs print as UTF-8, as it is read here, not in the code page of Windows.
    environment = {**how.pop("env", os.environ), "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryFile() as printed:
        with subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if only_stderr else printed,
            stderr=printed,
            start_new_session=True,
            env=environment,
            **how,
        ) as process:
            try:
                code = process.wait(time_limit)
            finally:
                # Also after Control-C; with all that it has started: a group outlives its leader.
                if os.name == "nt":
                    process.kill()
                else:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(process.pid, signal.SIGKILL)
        printed.seek(max(0, printed.seek(0, 2) - _TAIL))
        lines = printed.read().decode(errors="replace").split("\n")
    # A progress bar writes over its line.
    lines = [line.rstrip("\r").rpartition("\r")[2].strip() for line in lines]
    return code, [line for line in lines if line]


def run_script(command: Sequence[object], what: str, shown: Path | None = None) -> list[str]:
    """Run a Python script and return the last lines that it printed.

    If the script fails, `InputError` names it, or `shown`, and its last line.
    """
    words = [str(word) for word in command]
    code, lines = run_to_end([sys.executable, *words])
    if not code:
        return lines
    last = lines[-1] if lines else "it printed nothing"
    name = cli.show((shown or Path(words[0])).resolve())
    raise InputError(
        f"{name}: ended with exit code {code} on {what}: "
        f"{printable(last.removeprefix('error: '), _MAX_SHOWN)}"
    )


def repeatable(
    by: provenance.Provenance,
    task: Task,
    path: Path,
    or_else: str = "",
    *,
    keep: Collection[str] = (),
) -> tuple[Path, list[str]]:
    """Return the script that made a file, and its flags but for the places; since the file may come
    from anywhere, `InputError` unless it is of the task in this kit, and declares the flags.
    """
    folder = task.folder
    script = Path(os.path.realpath(layout.ROOT / by.script))
    is_entry = script.parent == folder and script.suffix == ".py" and script.is_file()
    if not is_entry or script.name.startswith("local_"):
        raise InputError(
            f"{path}: was made by {by.script}, which cannot be repeated, expected a script in "
            f"{folder.name}/ of this kit{or_else}"
        )
    options = provenance.settings(by.options, keep=("metadata_dir", *keep))
    options.pop("local", None)
    flags = provenance.flags_of(options)
    if not flags:
        return script, flags
    own = {f"--{name}" for name in options} & declared_flags(script)
    for word in flags:
        if word.startswith("--") and (word not in own or flags.count(word) > 1):
            raise InputError(
                f"{path}: was made with {quote(word)}, which is no flag of {cli.show(script)}, "
                f"expected its own flags{or_else}"
            )
    return script, flags


class Fold(NamedTuple):
    """One run of an entry: all answers, and which of them it does not learn from."""

    title: str
    table: pd.DataFrame
    held_out: BoolArray
    metadata: Path | None
    folder: Path  # an empty one, for files


def run_on_fold(script: Path, flags: Sequence[str], fold: Fold) -> Path:
    """Let a script of task 1 or 2 learn, and predict what is held out; return the template."""
    _, table, held_out, metadata, folder = fold
    template = folder / TEMPLATE
    names = [name for name in splits.PAIR_COLUMNS if name in table]
    writing.write_files({folder / TRAIN: table[~held_out]})
    writing.write_files({template: table.loc[held_out, names]})
    places: list[object] = ["--input_dir", folder, "--train_data", TRAIN]
    places += ["--submission_template_dir", folder, "--submission_template_file", TEMPLATE]
    places += ["--output_dir", folder]
    if metadata is not None and reads_metadata(script):
        places += ["--metadata_dir", metadata]
    run_script([script, *places, *flags], fold.title)
    return template


@cache
def declared_flags(script: Path) -> frozenset[str]:
    """Return the flags that a script's function `build_parser` declares, but for --help.

    A script without this function declares none, and a note says so.

    Raises
    ------
    InputError
        If the script cannot be imported, or its `build_parser` fails.
    """
    if not _defines_build_parser(script):
        print(
            f"note: {cli.show(script.resolve())} has no function build_parser(), which returns the "
            "parser of its flags; it is run with the flags of files only",
            flush=True,
        )
        return frozenset()
    lines = run_script([_PRINT_FLAGS, script], "asking for its flags", shown=script)
    return frozenset(json.loads(lines[-1])) - {"-h", "--help"}


def _defines_build_parser(script: Path) -> bool:
    """Return whether importing a script is safe: it defines `build_parser`, as the samples do."""
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError):
        # Running the script tells what is wrong.
        return False
    return any(
        isinstance(node, ast.FunctionDef) and node.name == "build_parser" for node in tree.body
    )


def reads_metadata(script: Path) -> bool:
    """Return whether a script takes --metadata_dir."""
    return "--metadata_dir" in declared_flags(script)


def metadata_of(train: Path, named: Path | None = None) -> Path | None:
    """Return the folder of the metadata that belong to training answers; None if not known."""
    folder = sample_models.metadata_folder(train.parent, named)
    return folder if folder is not None and folder.is_dir() else None
