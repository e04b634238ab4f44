"""What a bundle of `make_bundle.py` says: its phases, tasks and leaderboard.

A file that was edited by hand is the platform's to judge, which answers on upload; here only what
is read is checked.
"""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common import zips
from common.errors import InputError, one_line

import yaml

YAML_NAME = "competition.yaml"
METADATA_NAMES = ("metadata.yaml", "metadata")
_MAX_BUNDLE = 16 << 30

# The keys of competition.yaml, as attributes. A task has its `number` in the challenge besides, and
# the paths of what its programs are given, of the ingestion None where there is none.
Task = SimpleNamespace
Phase = SimpleNamespace
Column = SimpleNamespace
_PHASE = ("name", "start", "end", "tasks", "execution_time_limit", "max_submissions")
_COLUMN = ("key", "title", "sorting", "precision")


@dataclass(frozen=True)
class Bundle:
    """An unpacked bundle, tasks by index, pages by title; the first column is the main one."""

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

    tasks = {}
    for about in said["tasks"]:
        number = re.search(r"\bTask (\d+)\b", about["name"])
        files: dict[str, Path | None] = {
            kind: find(about[kind]) for kind in ("scoring_program", "reference_data")
        }
        for kind in ("ingestion_program", "input_data"):
            files[kind] = find(about[kind]) if about.get(kind) else None
        known = {"index": about["index"], "name": about["name"]}
        tasks[about["index"]] = Task(**known, **files, number=int(number[1]) if number else 0)
    phases = [Phase(**{key: about[key] for key in _PHASE}) for about in said["phases"]]
    for phase in phases:
        phase.tasks = [tasks[index] for index in phase.tasks]
    columns = said["leaderboards"][0]["columns"]
    columns = [Column(**{key: about[key] for key in _COLUMN}) for about in columns]
    pages = {about["title"]: find(about["file"]) for about in said["pages"]}
    pages["Terms"] = find(said["terms"])
    return Bundle(folder, said["title"], tasks, phases, columns, pages)


def require_answers(phase: Phase, private: Path) -> None:
    """Refuse to score a phase whose answers are in the private part of a bundle, if that lacks."""
    for task in phase.tasks:
        settings = task.reference_data / "settings.json"
        if settings.is_file() and json.loads(settings.read_bytes())["mode"] != "scored":
            raise InputError(
                f"{private}: not found, expected the answers of the {phase.name.lower()} phase, "
                "which hosting/make_bundle.py writes there (--private names another place)"
            )


def find_phase(bundle: Bundle, name: str) -> Phase:
    """Return the phase of a name, in capitals or not."""
    for phase in bundle.phases:
        if phase.name.casefold() == name.casefold():
            return phase
    names = ", ".join(phase.name for phase in bundle.phases)
    raise InputError(f"--phase {name}: the bundle has no such phase, expected {names}")
