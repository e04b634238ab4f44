"""The rules by which Codabench takes a bundle, and what a bundle says: `read_bundle`.

Codabench states its rules in its source only, https://github.com/codalab/codabench, from which
those here are taken; every function names its place there, below ``src/apps``. What the platform
takes but could score no submission with is refused as well; what it takes, but reads in another way
than it looks, is a warning.
"""

import uuid
import zipfile
from collections.abc import Hashable, Mapping
from datetime import date, datetime, time
from pathlib import Path

from common import zips
from common.errors import InputError, quote

import unpacking
from bundle import Bundle, Phase, Task
from bundle_entry import Entry, entries_of, parse, path_of, shown, text_of, whole_of
from dateutil import parser as dates
from leaderboard_rules import read_leaderboard

YAML_NAME = "competition.yaml"
METADATA_NAMES = ("metadata.yaml", "metadata")
TASK_DATA = ("ingestion_program", "input_data", "scoring_program", "reference_data")
# The public server's own queue gives no submission more, in seconds.
MAX_TIME = 600

_MAX_BUNDLE = 16 << 30
_MAX_METADATA = 1 << 20
_MAX_NAME = 256
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8")


def read_bundle(path: Path, folder: Path) -> Bundle:
    """Read a bundle as the platform would.

    Parameters
    ----------
    path
        The zip, or a folder that holds what the zip would.
    folder
        Where to unpack it; not used for a folder.

    Raises
    ------
    InputError
        If the platform would refuse it, or could score no submission; for the first fault.
    """
    if not path.is_dir():
        unpacking.unpack(path, folder, _MAX_BUNDLE)
    root = folder if not path.is_dir() else path
    everything = _read_yaml(path, root)
    _check_version(everything)
    title = text_of(everything, "title", _MAX_NAME)
    _check_pages(everything)
    tasks = _read_tasks(everything)
    _check_solutions(everything, tasks)
    _read_page(everything, "terms")
    _check_image(everything)
    _check_queue(everything)
    phases = _read_phases(everything, tasks)
    columns, primary = read_leaderboard(everything)
    image = everything.content.get("docker_image")
    if not image:
        everything.warn("docker_image is not set, so that programs run in codalab-legacy:py37")
    return Bundle(
        root, title, str(image or "codalab/codalab-legacy:py37"), tasks, phases, columns, primary,
        bool(everything.content.get("enable_detailed_results", False)), everything.warnings,
    )  # fmt: skip


# ---- The file as a whole -----------------------------------------------------------------------


def _read_yaml(path: Path, root: Path) -> Entry:
    """Read competition.yaml, which must lie at the root (competitions/tasks.py)."""
    file = root / YAML_NAME
    place = f"{path}/{YAML_NAME}"
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
    return Entry(place, content, root)


def _check_version(entry: Entry) -> None:
    """The version tells which format to read, and 1 is assumed (competitions/tasks.py)."""
    version = entry.content.get("version")
    if version is None:
        raise entry.fault(
            "version is missing, and the platform then reads the format of version 1; expected "
            "version: 2"
        )
    if str(version) != "2":
        raise entry.fault(f"version is {shown(version)}, expected 2")


def _check_pages(entry: Entry) -> None:
    """Every page must be there and not be empty (unpackers/v2.py, _unpack_pages)."""
    for page in entries_of(entry, "pages"):
        text_of(page, "title", _MAX_NAME)
        _read_page(page, "file")


def _read_page(entry: Entry, key: str) -> None:
    """A page or the terms: a file with text (unpackers/v2.py, _unpack_pages, _unpack_terms)."""
    name = text_of(entry, key)
    path = path_of(entry, key, name)
    if not path.is_file():
        raise entry.fault(f"{key}: file {quote(name)} is not in the bundle, expected a page there")
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise entry.fault(f"{key}: file {quote(name)} is not UTF-8 text") from None
    if not content:
        raise entry.fault(f"{key}: file {quote(name)} is empty, expected a page")


def _check_image(entry: Entry) -> None:
    """The logo: a picture (base_unpacker.py, _read_image; api/fields.py, NamedBase64ImageField)."""
    name = text_of(entry, "image")
    path = path_of(entry, "image", name)
    if not path.is_file():
        raise entry.fault(f"image: file {quote(name)} is not in the bundle, expected a picture")
    with path.open("rb") as file:
        if not file.read(16).startswith(_IMAGES):
            raise entry.fault(f"image: file {quote(name)} is no PNG, JPEG or GIF, expected one")


def _check_queue(entry: Entry) -> None:
    """A queue is looked up on the server (base_unpacker.py, _unpack_queue)."""
    if entry.content.get("queue"):
        entry.warn("queue is set: only the server knows whether it is there and yours to use")


# ---- Tasks -------------------------------------------------------------------------------------


def _read_tasks(entry: Entry) -> dict[int, Task]:
    """Tasks have unique indexes and a scoring program (unpackers/v2.py, _unpack_tasks)."""
    tasks: dict[int, Task] = {}
    for task in entries_of(entry, "tasks", at_least_one=True):
        index = whole_of(task, "index")
        if index in tasks:
            raise task.fault(f"index is {index}, as of another task, expected different ones")
        if "key" in task.content:
            key = text_of(task, "key")
            task.warn("key names a task on the server, which only the server can look up")
            tasks[index] = Task(index, key, played_by_server="lies on the server")
        else:
            tasks[index] = _read_task(task, index)
    return tasks


def _read_task(entry: Entry, index: int) -> Task:
    """Its data are in the bundle or on the server (base_unpacker.py, _save_tasks)."""
    name = text_of(entry, "name", _MAX_NAME)
    if "scoring_program" not in entry.content:
        raise entry.fault("scoring_program is missing, expected a folder or zip of the bundle")
    found = {key: _data_file(entry, key) for key in TASK_DATA if key in entry.content}
    for key, path in found.items():
        if path is None:
            continue
        if path.is_file() and not zipfile.is_zipfile(path):
            raise entry.fault(f"{key}: {quote(entry.content[key])} is no zip, expected one")
        if key.endswith("_program") and not program_command(path):
            # compute_worker/compute_worker.py, _run_program_directory
            raise entry.fault(
                f"{key}: {quote(entry.content[key])} has no {METADATA_NAMES[0]} with a command at "
                "its top level, expected one: no submission could be scored"
            )
    why = ""
    if None in found.values():
        why = "has data that lie on the server"
    elif entry.content.get("ingestion_only_during_scoring"):
        why = "runs its ingestion program during scoring"
    return Task(index, name, **found, played_by_server=why)


def _data_file(entry: Entry, key: str) -> Path | None:
    """A file or folder, or the UUID of data on the server (base_unpacker.py, _get_data_key)."""
    name = text_of(entry, key)
    path = path_of(entry, key, name)
    if path.exists():
        return path
    try:
        uuid.UUID(name)
    except ValueError:
        raise entry.fault(
            f"{key}: {quote(name)} is not in the bundle, expected a file or folder there"
        ) from None
    entry.warn(f"{key} names data on the server, which only the server can look up")
    return None


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
        if program.is_dir():
            path = program / name
            if path.is_file() and path.stat().st_size > _MAX_METADATA:
                raise InputError(
                    f"{path}: has {path.stat().st_size:,} bytes, expected at most {_MAX_METADATA:,}"
                )
            text = path.read_bytes() if path.is_file() else None
        else:
            with zips.open_zip(program) as archive:
                there = name in archive.namelist()
                text = (
                    zips.read_member(archive, archive.getinfo(name), _MAX_METADATA)
                    if there
                    else None
                )
        if text is not None:
            content = parse(text, f"{program}/{name}")
            command = content.get("command") if isinstance(content, dict) else None
            return command if isinstance(command, str) else ""
    return ""


def _check_solutions(entry: Entry, tasks: Mapping[int, Task]) -> None:
    """Solutions, if any, are of tasks that are there (unpackers/v2.py, _unpack_solutions)."""
    if not entry.content.get("solutions"):
        return
    for solution in entries_of(entry, "solutions"):
        whole_of(solution, "index")
        _task_indexes(solution, tasks)
        if "key" not in solution.content:
            _data_file(solution, "path")


def _task_indexes(entry: Entry, tasks: Mapping[int, Task]) -> tuple[int, ...]:
    """Tasks of a phase or a solution, by their indexes (base_unpacker.py, _save_competition)."""
    indexes = entry.content.get("tasks")
    if not isinstance(indexes, list) or not indexes:
        raise entry.fault(f"tasks is {shown(indexes)}, expected at least one index of a task")
    for index in indexes:
        if not isinstance(index, Hashable) or index not in tasks:
            raise entry.fault(
                f"tasks names {shown(index)}, expected indexes of tasks: "
                f"{', '.join(map(str, tasks))}"
            )
    return tuple(indexes)


# ---- Phases ------------------------------------------------------------------------------------


def _read_phases(entry: Entry, tasks: Mapping[int, Task]) -> tuple[Phase, ...]:
    """Phases follow each other (unpackers/v2.py, _unpack_phases; base_unpacker.py,
    _validate_phase_ordering; api/serializers/competitions.py, validate_phases).
    """
    entries = entries_of(entry, "phases", at_least_one=True)
    entries.sort(key=lambda phase: whole_of(phase, "index", 0))
    phases = [_read_phase(phase, tasks) for phase in entries]
    if entries[0].content.get("auto_migrate_to_this_phase"):
        raise entries[0].fault(
            "auto_migrate_to_this_phase is set, expected it at a phase that follows another"
        )
    for place, before, after in zip(entries[1:], phases, phases[1:], strict=False):
        if before.end is None:
            raise place.fault(
                f"the phase before it, {quote(before.name)}, has no end, expected one"
            )
        if after.start <= before.end:
            raise place.fault(
                f"start is {after.start}, expected a time after {before.end}, the end of "
                f"{quote(before.name)}"
            )
    return tuple(phases)


def _read_phase(entry: Entry, tasks: Mapping[int, Task]) -> Phase:
    """One phase (unpackers/v2.py, _unpack_phases; competitions/models.py, Phase)."""
    name = text_of(entry, "name", _MAX_NAME)
    start, end = _time(entry, "start"), _time(entry, "end")
    if start is None:
        raise entry.fault('start is missing, expected a time in quotes, such as "2026-10-01 09:00"')
    if end is not None and end <= start:
        entry.warn(f"end is {end}, not after its start, {start}: nobody can submit")
    defaults = {"max_submissions_per_day": 5, "max_submissions": 100, "execution_time_limit": 600}
    for key, default in defaults.items():
        if key not in entry.content:
            entry.warn(f"{key} is not set, so that it is {default}")
    numbers = {key: whole_of(entry, key, default) for key, default in defaults.items()}
    time_limit = numbers["execution_time_limit"] or MAX_TIME
    if time_limit > MAX_TIME:
        # competitions/tasks.py, _send_to_compute_worker
        entry.warn(
            f"execution_time_limit is {time_limit}, but the public server's own queue gives "
            f"{MAX_TIME} s"
        )
    for key in ("public_data", "starting_kit"):
        if key in entry.content:
            _data_file(entry, key)
    return Phase(name, start, end, _task_indexes(entry, tasks), time_limit)


def _time(entry: Entry, key: str) -> datetime | None:
    """A time: YAML's own kind loses its hours, text its time zone (unpackers/utils.py)."""
    value = entry.content.get(key)
    if not value:
        return None
    if isinstance(value, date):
        midnight = datetime.combine(value, time())
        if isinstance(value, datetime) and value.time() != time():
            entry.warn(
                f"{key} is {value} without quotes, which the platform reads as {midnight}; "
                "expected the time in quotes"
            )
        return midnight
    try:
        parsed = dates.parse(value)
    except (ValueError, OverflowError, TypeError):
        raise entry.fault(
            f'{key} is {shown(value)}, expected a time in quotes, such as "2026-10-01 09:00"'
        ) from None
    assert isinstance(parsed, datetime)
    if parsed.utcoffset():
        entry.warn(f"{key} is {shown(value)}, of which the platform drops the time zone")
    return parsed.replace(tzinfo=None)
