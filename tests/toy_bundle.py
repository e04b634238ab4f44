"""A tiny competition bundle for the tests: its scoring program does what the submission says."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

GONE = object()
# Which file each task's scoring program reads.
SCORED = {1: "submission_task_1.csv", 2: "submission_task_2.csv", 4: "played"}
COMMAND = "python3 /app/program/score.py /app/input /app/output"
# Runs the submission itself, with `given` and `written` for the folders: a test may try anything.
SCORE = """\
import json, pathlib, sys
given, written = map(pathlib.Path, sys.argv[1:])
def score(value, **more):
    (written / "scores.json").write_text(json.dumps({"score": value, **more}))
    (written / "detailed_results.html").write_text(f"<p>{value}</p>")
file = given / "res" / (given / "ref/file.txt").read_text()
if not file.exists():
    sys.exit("error: no file of the task in the zip")
exec(file.read_text())
"""
# Hands over what the entry says, if the data that it is given are there.
INGEST = """\
import pathlib, sys
data, entry, written = map(pathlib.Path, sys.argv[1:])
assert (data / "students.csv").read_text() == "UserId"
source = (entry / "submission_model_task_4.py").read_text()
if "fail" in source:
    sys.exit("error: the entry failed")
(written / "played").write_text(source)
"""


def content() -> dict[str, Any]:
    """Return what competition.yaml of a bundle that is all right holds."""
    ingestion = {"ingestion_program": "ingestion_program.zip", "input_data": "input_data"}
    tasks = [
        {"name": f"Task {number}, {phase}", "description": ".",
         "scoring_program": "scoring_program", "reference_data": f"ref/{number}_{phase}",
         **(ingestion if number == 4 else {})}
        for number in SCORED for phase in ("public", "private")
    ]  # fmt: skip
    same = {"max_submissions_per_day": 5, "max_submissions": 100, "execution_time_limit": 600,
            "public_data": "public.zip", "starting_kit": "public.zip"}  # fmt: skip
    columns = [
        {"index": place, "key": title.lower().replace(" ", "_"), "title": title,
         "sorting": "asc" if place == 1 else "desc", "precision": 4 if place < 2 else 3}
        for place, title in enumerate(("Score", "Standard error", "Mask 0", "Mask 1"))
    ]  # fmt: skip
    return {
        "version": 2,
        "title": "Toy challenge",
        "description": ".",
        "image": "logo.png",
        "terms": "pages/terms.md",
        "docker_image": "codalab/codalab-legacy:py312",
        "enable_detailed_results": True,
        "pages": [{"title": "Overview", "file": "pages/overview.md"}],
        "tasks": [{"index": index, **task} for index, task in enumerate(tasks)],
        "phases": [
            {"index": 0, "name": "Public", "start": "2026-10-01 09:00", "end": "2026-11-01 09:00",
             "tasks": [0, 2, 4], **same},
            {"index": 1, "name": "Private", "start": "2026-11-01 09:01", "tasks": [1, 3, 5],
             **same},
        ],
        "leaderboards": [{"title": "Results", "key": "main", "submission_rule": "Force_Best",
                          "columns": columns}],
    }  # fmt: skip


def write_folder(folder: Path) -> Path:
    """Write the bundle as a folder."""
    texts = {
        "pages/overview.md": "# Overview",
        "pages/terms.md": "Terms",
        "scoring_program/metadata.yaml": f"command: {COMMAND}",
        "scoring_program/score.py": SCORE,
        "input_data/students.csv": "UserId",
        "public.zip": "",
    }
    for number, name in SCORED.items():
        texts |= {f"ref/{number}_{phase}/file.txt": name for phase in ("public", "private")}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n...")
    command = "python3 /app/program/ingest.py /app/input_data /app/ingested_program /app/output"
    ingestion = {"metadata.yaml": f"command: {command}", "ingest.py": INGEST}
    write_zip(folder / "ingestion_program.zip", ingestion)
    change(folder, {})
    return folder


def change(folder: Path, changes: Mapping[str, object]) -> None:
    """Write competition.yaml as of a bundle that is all right, but for some changes.

    They are named by where they are, `phases.0.end`; a value GONE leaves it out.
    """
    what = content()
    for path, value in changes.items():
        *parents, last = path.split(".")
        place: Any = what
        for key in parents:
            place = place[int(key) if isinstance(place, list) else key]
        if isinstance(place, list):
            place[int(last) : int(last) + 1] = [value]
        elif value is GONE:
            del place[last]
        else:
            place[last] = value
    (folder / "competition.yaml").write_text(yaml.safe_dump(what, sort_keys=False))


def write_zip(
    path: Path,
    members: Mapping[str, str],
    time: float | None = None,
    method: int = zipfile.ZIP_STORED,
) -> Path:
    """Write a zip, as of a time in seconds since 1970."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    if time is not None:
        os.utime(path, (time, time))
    return path


def zip_folder(folder: Path, path: Path) -> Path:
    """Zip what a folder holds."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return path
