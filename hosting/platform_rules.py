"""The rules by which Codabench takes a bundle, and what a bundle says: `read_bundle`.

Codabench states its rules in its source only, https://github.com/codalab/codabench, from which
those here are taken; the place of each is named, below ``src/apps``. What the platform takes but
could score no submission with is refused as well; what it takes, but reads in another way than it
looks, is a warning.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common import zips
from common.errors import InputError, quote

from bundle_entry import (
    ON_SERVER,
    Entry,
    Rule,
    choice,
    data,
    entries,
    flag,
    image,
    indexes,
    moment,
    page,
    parse,
    read,
    read_distinct,
    shown,
    text,
    unpacked,
    whole,
)

# What `read` makes of the tables below: the keys that they name, as attributes.
Bundle = SimpleNamespace
Task = SimpleNamespace
Phase = SimpleNamespace
Column = SimpleNamespace

YAML_NAME = "competition.yaml"
METADATA_NAMES = ("metadata.yaml", "metadata")
# The public server's own queue gives no submission more, in seconds.
MAX_TIME = 600

_MAX_BUNDLE = 16 << 30
_MAX_METADATA = 1 << 20
_MAX_NAME, _MAX_TITLE, _MAX_KEY = 256, 64, 36
_SUBMISSION_RULES = (
    "Add", "Add_And_Delete", "Add_And_Delete_Multiple", "Force_Last", "Force_Latest_Multiple",
    "Force_Best",
)  # fmt: skip


def _program(entry: Entry, key: str, value: Any, _: None) -> Path:
    """A program has a command (compute_worker/compute_worker.py, _run_program_directory)."""
    path = unpacked(entry, key, value, None)
    if path is not ON_SERVER and not program_command(path):
        raise entry.fault(
            f"{key}: {quote(value)} has no {METADATA_NAMES[0]} with a command at its top level, "
            "expected one: no submission could be scored"
        )
    return path


# unpackers/v2.py; base_unpacker.py; competitions/models.py
_COMPETITION = {
    "title": Rule(text, _MAX_NAME),
    "pages": Rule(entries, 0),
    "tasks": Rule(entries, 1),
    "terms": Rule(page),
    "image": Rule(image),
    "phases": Rule(entries, 1),
    "leaderboards": Rule(entries, 1),
    "docker_image": Rule(text, _MAX_NAME, "codalab/codalab-legacy:py37", is_told=True),
    "enable_detailed_results": Rule(flag, default=False),
    "queue": Rule(flag, default=False),
}
_PAGE = {"title": Rule(text, _MAX_NAME), "file": Rule(page)}
_TASK = {
    "index": Rule(whole),
    "name": Rule(text, _MAX_NAME),
    "scoring_program": Rule(_program),
    "reference_data": Rule(unpacked, default=None),
    "ingestion_program": Rule(_program, default=None),
    "input_data": Rule(unpacked, default=None),
    "ingestion_only_during_scoring": Rule(flag, default=False),
}
_TASK_ON_SERVER = {"index": Rule(whole), "key": Rule(text)}
_PHASE = {
    "index": Rule(whole, default=0),
    "name": Rule(text, _MAX_NAME),
    "start": Rule(moment),
    "end": Rule(moment, default=None),
    "max_submissions_per_day": Rule(whole, default=5, is_told=True),
    "max_submissions": Rule(whole, default=100, is_told=True),
    "execution_time_limit": Rule(whole, default=MAX_TIME, is_told=True),
    "public_data": Rule(data, default=None),
    "starting_kit": Rule(data, default=None),
    "tasks": Rule(indexes),
}
# api/serializers/leaderboards.py; leaderboards/models.py
_LEADERBOARD = {
    "title": Rule(text, _MAX_TITLE),
    "key": Rule(text, _MAX_KEY),
    "submission_rule": Rule(choice, _SUBMISSION_RULES, "Add"),
    "columns": Rule(entries, 1),
    "primary_index": Rule(whole, default=0),
}
_COLUMN = {
    "index": Rule(whole),
    "key": Rule(text, _MAX_KEY),
    "title": Rule(text, _MAX_KEY),
    "sorting": Rule(choice, ("desc", "asc"), "desc"),
    "precision": Rule(whole, default=2, is_told=True),
    "computation": Rule(choice, ("avg", "sum", "min", "max"), ""),
}


def read_bundle(path: Path, folder: Path) -> Bundle:
    """Read a bundle as the platform would.

    Parameters
    ----------
    path
        The zip, or a folder that holds what the zip would.
    folder
        Where to unpack it; not used for a folder.

    Returns
    -------
    Bundle
        The keys of `_COMPETITION`, with `folder`, where the bundle lies unpacked; `tasks`, with the
        keys of `_TASK`, by index; `phases`, with the keys of `_PHASE`, in order; `columns` of the
        first leaderboard, the only one that is used, with the keys of `_COLUMN`, by index; the
        `primary` of them, by which submissions are ordered; and `warnings`: what the platform
        takes, but probably not as it was meant.

    Raises
    ------
    InputError
        If the platform would refuse it, or could score no submission; for the first fault.
    """
    if path.is_dir():
        folder = path
    else:
        zips.unpack(path, folder, _MAX_BUNDLE)
    entry = _read_yaml(path, folder)
    bundle = read(entry, _COMPETITION)
    bundle.folder, bundle.warnings = folder, entry.warnings
    for each in bundle.pages:
        read(each, _PAGE)
    if bundle.queue:
        entry.warn("queue is set: only the server knows whether it is there and yours to use")
    bundle.tasks = {
        task.index: task for task in read_distinct(bundle.tasks, _read_task, "task", "index")
    }
    bundle.phases = _read_phases(bundle.phases, bundle.tasks)
    boards = [_read_leaderboard(each) for each in bundle.leaderboards]
    if len(boards) > 1:
        entry.warn(f"leaderboards holds {len(boards)}, of which only the first is used")
    bundle.columns, bundle.primary = boards[0]
    return bundle


def _read_yaml(path: Path, root: Path) -> Entry:
    """Read competition.yaml, of version 2, which must lie at the root (competitions/tasks.py)."""
    file, place = root / YAML_NAME, f"{path}/{YAML_NAME}"
    if not file.is_file():
        inside = sorted(found.relative_to(root).as_posix() for found in root.rglob(YAML_NAME))
        where = f", it lies in {inside[0]}" if inside else ""
        raise InputError(
            f"{path}: holds no {YAML_NAME} at the top level{where}; expected it there: zip what "
            "the folder holds, not the folder"
        )
    content = parse(file.read_bytes(), place)
    if not isinstance(content, dict):
        raise InputError(f"{place}: holds {shown(content)}, expected keys with values")
    version = content.get("version")
    if version is None:
        raise InputError(
            f"{place}: version is missing, and the platform then reads the format of version 1; "
            "expected version: 2"
        )
    if str(version) != "2":
        raise InputError(f"{place}: version is {shown(version)}, expected 2")
    return Entry(place, content, root)


def _read_task(entry: Entry) -> Task:
    """Read a task, and why it cannot be played without the server; empty if it can."""
    if "key" in entry.content:
        task = read(entry, _TASK_ON_SERVER)
        entry.warn("key names a task on the server, which only the server can look up")
        task.name, task.played_by_server = task.key, "lies on the server"
        return task
    task = read(entry, _TASK)
    task.played_by_server = ""
    if ON_SERVER in vars(task).values():
        task.played_by_server = "has data that lie on the server"
    elif task.ingestion_only_during_scoring:
        task.played_by_server = "runs its ingestion program during scoring"
    return task


def task_number(task: Task) -> int | None:
    """Return a task's number in the challenge, 1 to 4, by its name; None if it has none."""
    found = re.search(r"\btask (\d+)\b", task.name, re.IGNORECASE)
    return int(found[1]) if found else None


def program_command(program: Path) -> str:
    """Return the command of a program: of its metadata.yaml, or metadata if there is no such file.

    Parameters
    ----------
    program
        Folder or zip of a program, or of a submission.

    Returns
    -------
    str
        Empty if it has no such file, or that has no command.
    """
    for name in METADATA_NAMES:
        content = _read_metadata(program, name)
        if content is not None:
            said = parse(content, f"{program}/{name}")
            command = said.get("command") if isinstance(said, dict) else None
            return command if isinstance(command, str) else ""
    return ""


def _read_metadata(program: Path, name: str) -> bytes | None:
    if not program.is_dir():
        with zips.open_zip(program) as archive:
            if name not in archive.namelist():
                return None
            return zips.read_member(archive, archive.getinfo(name), _MAX_METADATA)
    path = program / name
    if not path.is_file():
        return None
    if path.stat().st_size > _MAX_METADATA:
        raise InputError(
            f"{path}: has {path.stat().st_size:,} bytes, expected at most {_MAX_METADATA:,}"
        )
    return path.read_bytes()


def _read_phases(found: Sequence[Entry], tasks: Mapping[int, Task]) -> list[Phase]:
    """Phases follow each other (base_unpacker.py, _validate_phase_ordering)."""
    phases = [(read(entry, _PHASE), entry) for entry in found]
    phases.sort(key=lambda phase: phase[0].index)
    before = None
    for phase, entry in phases:
        if phase.end is not None and phase.end <= phase.start:
            entry.warn(f"end is {phase.end}, not after its start, {phase.start}: nobody can submit")
        phase.time_limit = phase.execution_time_limit or MAX_TIME
        if phase.time_limit > MAX_TIME:
            # competitions/tasks.py, _send_to_compute_worker
            entry.warn(
                f"execution_time_limit is {phase.time_limit}, but the public server's own queue "
                f"gives {MAX_TIME} s"
            )
        for index in phase.tasks:
            if index not in tasks:
                raise entry.fault(
                    f"tasks names {shown(index)}, expected indexes of tasks: "
                    f"{', '.join(map(str, tasks))}"
                )
        if before and before.end is None:
            raise entry.fault(
                f"the phase before it, {quote(before.name)}, has no end, expected one"
            )
        if before and phase.start <= before.end:
            raise entry.fault(
                f"start is {phase.start}, expected a time after {before.end}, the end of "
                f"{quote(before.name)}"
            )
        before = phase
    return [phase for phase, _ in phases]


def _read_leaderboard(entry: Entry) -> tuple[list[Column], Column]:
    """Return the columns by index, and the primary one."""
    board = read(entry, _LEADERBOARD)
    read_column = partial(read, rules=_COLUMN)
    found = read_distinct(board.columns, read_column, "column", "index", "key")
    columns = {column.index: column for column in found}
    if board.primary_index not in columns:
        raise entry.fault(
            f"primary_index is {board.primary_index}, expected an index of a column: "
            f"{', '.join(map(str, columns))}"
        )
    return [columns[index] for index in sorted(columns)], columns[board.primary_index]
