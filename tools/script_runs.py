"""Run a user's script on a part of the training answers, as the user would run it."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import cli, io, layout, splits
from common.errors import InputError, printable

import numpy as np
import numpy.typing as npt
import pandas as pd

# How much of what a script prints is read, when it fails.
_TAIL = 4096
_MAX_SHOWN = 200
TRAIN, TEMPLATE = "train.csv", "template.csv"


def run_script(command: Sequence[object], what: str, shown: Path | None = None) -> None:
    """Run a Python script to its end; it is stopped with this process, also by Control-C.

    Parameters
    ----------
    command
        The script and its flags.
    what
        On what it runs, for the message: ``fold 3``.
    shown
        The script to name in the message, where a copy of it runs.

    Raises
    ------
    InputError
        If it fails; the message ends with the last line that it printed.
    """
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as printed:
        with subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                code = process.wait()
            except BaseException:
                # Before its folder is removed, also where it would go on after Control-C.
                process.kill()
                process.wait()
                raise
        if not code:
            return
        printed.seek(max(0, printed.seek(0, 2) - _TAIL))
        lines = printed.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
    name = cli.show((shown or Path(words[0])).resolve())
    raise InputError(
        f"{name}: ended with exit code {code} on {what}: "
        f"{printable(last.removeprefix('error: '), _MAX_SHOWN)}"
    )


def run_on_split(
    script: Path,
    flags: Sequence[str],
    table: pd.DataFrame,
    held_out: npt.NDArray[np.bool_],
    folder: Path,
    *,
    metadata: Path | None,
    what: str,
) -> Path:
    """Let a script of task 1 or 2 learn from some answers and predict the others.

    Parameters
    ----------
    script
        Like a sample model, with its flags.
    flags
        Further flags of its own.
    table
        All answers, as `answers.read_answers` returns them.
    held_out
        True for the answers to be predicted, shape (answers,).
    folder
        For the files that it reads and writes.
    metadata
        Folder of the metadata of these answers; None if there is none.
    what
        As in `run_script`.

    Returns
    -------
    Path
        The template, whose rows are the answers held out, in their order.
    """
    template = folder / TEMPLATE
    held = table[held_out]
    names = [name for name in splits.PAIR_COLUMNS if name in table]
    io.write_csv(folder / TRAIN, table[~held_out])
    io.write_csv(template, held[names])
    places: list[object] = ["--input_dir", folder, "--train_data", TRAIN]
    places += ["--submission_template_dir", folder, "--submission_template_file", TEMPLATE]
    places += ["--output_dir", folder]
    if metadata is not None and reads_metadata(script):
        places += ["--metadata_dir", metadata]
    run_script([script, *places, *flags], what)
    return template


def link(folder: Path, place: Path) -> None:
    """Make a folder appear at another place; a copy where links are not allowed (Windows)."""
    try:
        place.symlink_to(folder, target_is_directory=True)
    except OSError:
        shutil.copytree(folder, place)


def reads_metadata(script: Path) -> bool:
    """Return whether a script takes --metadata_dir, judging by its text."""
    text = script.read_text(encoding="utf-8", errors="replace")
    return "add_metadata_flag(" in text or "--metadata_dir" in text


def metadata_of(train: Path) -> Path | None:
    """Return the folder of the metadata that belong to training answers; None if not known."""
    own = {folder.resolve() for folder in (layout.TRAIN_DIR, layout.TEST_INPUT_DIR)}
    is_own = train.parent.resolve() in own and layout.METADATA_DIR.is_dir()
    return layout.METADATA_DIR if is_own else None


def task_of(script: Path) -> int:
    """Return the task of an entry: of a script by the folder it lies in, of a folder 4.

    Raises
    ------
    InputError
        If it is neither a script of task 1 or 2 nor a package of task 4.
    """
    if script.is_dir():
        io.require_file(script / "train_model.py")
        return 4
    io.require_file(script)
    folders = {"task_1": 1, "task_2": 2}
    task = folders.get(script.resolve().parent.name)
    if task is None or script.suffix != ".py":
        raise InputError(
            f"{script}: is no script in task_1/ or task_2/, nor a folder of task 4, expected one"
        )
    return task
