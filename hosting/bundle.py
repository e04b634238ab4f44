"""What a bundle of `make_bundle.py` says: its phases, tasks and leaderboard.

A file that was edited by hand is the platform's to judge, which answers on upload; here only what
is read is checked.
"""

import json
import re
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from common import zips
from common.errors import InputError, one_line

import yaml

YAML_NAME = "competition.yaml"
METADATA_NAMES = ("metadata.yaml", "metadata")
_MAX_BUNDLE = 16 << 30


@dataclass(frozen=True)
class Task:
    """A task of a phase; its number in the challenge, 1 to 4, and what its programs are given."""

    index: int
    number: int
    name: str
    scoring_program: Path
    reference_data: Path
    ingestion_program: Path | None
    input_data: Path | None


@dataclass(frozen=True)
class Phase:
    """A phase: the indexes of its tasks, and its limits, the time in seconds."""

    name: str
    start: datetime
    end: datetime
    tasks: list[int]
    time_limit: int
    max_submissions: int


@dataclass(frozen=True)
class Column:
    """A column of the leaderboard; `sorting` is asc or desc."""

    key: str
    title: str
    sorting: str
    precision: int


@dataclass(frozen=True)
class Bundle:
    """A bundle that lies unpacked in a folder; tasks by index, pages by title.

    Submissions are ordered by the first column, then by the others.
    """

    folder: Path
    title: str
    tasks: dict[int, Task]
    phases: list[Phase]
    columns: list[Column]
    pages: dict[str, Path]


def private_part_of(path: Path) -> Path:
    """Return where `make_bundle.py` writes the private part of a bundle, zip or unpacked."""
    return path.with_name(f"{path.name.removesuffix('.zip')}_private.zip")


def read_bundle(path: Path, folder: Path, private: Path | None = None) -> Bundle:
    """Unpack a bundle, or copy its folder, lay its private part over it, and read it.

    `InputError` if something of it is missing, or is not as `make_bundle.py` writes it.
    """
    if path.is_dir():
        shutil.copytree(path, folder, dirs_exist_ok=True)
    else:
        zips.unpack(path, folder, _MAX_BUNDLE)
    if private is not None:
        zips.unpack(private, folder, _MAX_BUNDLE)
    if not (folder / YAML_NAME).is_file():
        inside = sorted(found.relative_to(folder).as_posix() for found in folder.rglob(YAML_NAME))
        where = f", it lies in {inside[0]}" if inside else ""
        raise InputError(
            f"{path}: holds no {YAML_NAME} at the top level{where}; expected it there: zip what "
            "the folder holds, not the folder"
        )
    try:
        return _read(yaml.safe_load((folder / YAML_NAME).read_bytes()), folder)
    except FileNotFoundError as missing:
        raise InputError(f"{path}/{YAML_NAME}: file {missing} is not in the bundle") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path}/{YAML_NAME}: cannot be read, expected what hosting/make_bundle.py writes "
            f"({type(error).__name__}: {one_line(str(error))})"
        ) from None


def _read(said: dict[str, Any], folder: Path) -> Bundle:
    def find(name: str) -> Path:
        if not (folder / name).exists():
            raise FileNotFoundError(name)
        return folder / name

    def task(about: dict[str, Any]) -> Task:
        number = re.search(r"\bTask (\d+)\b", about["name"])
        files = (about.get(kind) for kind in ("ingestion_program", "input_data"))
        ingestion, data = (find(name) if name else None for name in files)
        index, known = about["index"], int(number[1]) if number else 0
        program, reference = find(about["scoring_program"]), find(about["reference_data"])
        return Task(index, known, about["name"], program, reference, ingestion, data)

    def phase(about: dict[str, Any]) -> Phase:
        start, end = (datetime.fromisoformat(about[name]) for name in ("start", "end"))
        limits = about["execution_time_limit"], about["max_submissions"]
        return Phase(about["name"], start, end, [tasks[n].index for n in about["tasks"]], *limits)

    tasks = {about["index"]: task(about) for about in said["tasks"]}
    columns = [
        Column(about["key"], about["title"], about["sorting"], about["precision"])
        for about in said["leaderboards"][0]["columns"]
    ]
    pages = {about["title"]: find(about["file"]) for about in said["pages"]}
    pages["Terms"] = find(said["terms"])
    phases = [phase(about) for about in said["phases"]]
    return Bundle(folder, said["title"], tasks, phases, columns, pages)


def require_answers(bundle: Bundle, phase: Phase, private: Path) -> None:
    """Refuse to score a phase whose answers are in the private part of a bundle, if that lacks."""
    for index in phase.tasks:
        settings = bundle.tasks[index].reference_data / "settings.json"
        if settings.is_file() and json.loads(settings.read_bytes())["mode"] != "scored":
            raise InputError(
                f"{private}: not found, expected the answers of the {phase.name.lower()} phase, "
                "which hosting/make_bundle.py writes beside the bundle (--private names another "
                "place)"
            )


def program_command(program: Path) -> str:
    """Return the command in the metadata of a program's folder."""
    return str(yaml.safe_load((program / METADATA_NAMES[0]).read_bytes())["command"])


def find_phase(bundle: Bundle, name: str) -> Phase:
    """Return the phase of a name, in capitals or not."""
    for phase in bundle.phases:
        if phase.name.casefold() == name.casefold():
            return phase
    names = ", ".join(phase.name for phase in bundle.phases)
    raise InputError(f"--phase {name}: the bundle has no such phase, expected {names}")
