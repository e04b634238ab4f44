"""Codabench bundles (competitions packed as a zip) for the tests.

The tests use real bundles, and a toy bundle whose scoring program runs the submission as code.
"""

import os
import zipfile
from collections.abc import Mapping
from datetime import date
from itertools import cycle
from pathlib import Path
from typing import Any

from common import layout
from common.adaptive.entry_files import ENTRY_FILE
from common.tasks import TASKS

import yaml
from competition import Days, Plan, describe
from conftest import succeeds

# For each task, the file that the scoring program reads. In task 4, the ingestion program writes
# this file before the scoring program starts.
SCORED = {1: "submission_task_1.csv", 2: "submission_task_2.csv", 4: "played"}
# The scoring program of the toy bundle. It runs the submission as Python code. A test can put any
# code there, which may call `score` and use the folders `given` and `written`.
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
# The ingestion program of the toy bundle. It checks that it finds its data, and writes the code of
# the entry to the file that the scoring program reads.
INGEST = """\
import pathlib, sys
data, entry, written = map(pathlib.Path, sys.argv[1:])
assert (data / "students.csv").read_text() == "UserId"
source = (entry / "submission_model_task_4.py").read_text()
if "fail" in source:
    sys.exit("error: the entry failed")
(written / "played").write_text(source)
"""
# A page with every kind of Markdown that the pages of a bundle may hold.
OVERVIEW = """\
# Toy *challenge*

Text with `code` & **strong**
words.

- one
- two

| file | holds |
|---|---|
| `a` | b |

    python a.py
"""


def write_folder(folder: Path) -> Path:
    """Write the files of the toy bundle into a folder, and return the folder.

    The bundle has one scoring program for all tasks and phases. For each phase, it has an ingestion
    program, which plays the entries of task 4. In a real bundle, the reference data of a task are
    the true answers. Here they hold only the name of the file that the scoring program reads
    (`SCORED`).
    """
    score = "python3 /app/program/score.py /app/input /app/output"
    ingest = "python3 /app/program/ingest.py /app/input_data /app/ingested_program /app/output"
    # The content of each file of the toy bundle, by its path.
    texts = {
        "pages/overview.md": OVERVIEW,
        "pages/terms.md": "Terms",
        "scoring_program/metadata.yaml": f"command: {score}",
        "scoring_program/score.py": SCORE,
        "input_data/task_4/students.csv": "UserId",
        "public_data.zip": "",
        "starting_kit.zip": "",
        "competition.yaml": yaml.safe_dump(_describe_toy()),
    }
    for phase in layout.PHASES:
        texts[f"ingestion_program/{phase}/metadata.yaml"] = f"command: {ingest}"
        texts[f"ingestion_program/{phase}/ingest.py"] = INGEST
        for task, scored_file in SCORED.items():
            texts[f"reference_data/task_{task}_{phase}/file.txt"] = scored_file
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def _describe_toy() -> dict[str, Any]:
    """Return the contents of the toy bundle's competition.yaml.

    The contents are those of a real bundle, with three exceptions. There is a single page. A team
    may submit only twice per phase, so that a test can exceed the limit. The table of scores has
    two more columns, for the accuracies with mask 0 and mask 1 in task 4.
    """
    days = {
        "public": Days(date(2026, 10, 1), date(2026, 10, 31)),
        "private": Days(date(2026, 11, 1), date(2026, 12, 1)),
    }
    plan = Plan(
        tasks=tuple(SCORED),
        title="Toy challenge",
        days=days,
        origin="own",
        contact="",
        private_on_server=False,
    )
    competition: dict[str, Any] = yaml.safe_load(describe(plan))
    competition["pages"] = competition["pages"][:1]
    for phase in competition["phases"]:
        phase["max_submissions"] = 2
    table_of_scores = competition["leaderboards"][0]
    for number in (0, 1):
        column = {
            "key": f"mask_{number}",
            "title": f"Mask {number}",
            "sorting": "desc",
            "precision": 3,
        }
        table_of_scores["columns"].append(column)
    return competition


def write_zip(
    path: Path,
    members: Mapping[str, str | bytes],
    time: float | None = None,
    method: int = zipfile.ZIP_STORED,
) -> Path:
    """Write a zip of the files in `members`, which maps their names to their contents.

    `time` is the zip's time of change, in seconds since 1970; by default, now. `method` is the
    method of compression; by default, the zip is not compressed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", compression=method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    if time is not None:
        os.utime(path, (time, time))
    return path


def make_bundles(folder: Path, *flags: object) -> Path:
    """Make bundles with hosting/make_bundle.py; unpack each zip into a folder of the same name.

    The function returns the folder `bundle`, into which bundle.zip is unpacked. With the flag
    --tasks, this bundle holds all these tasks. The output of the script is written to said.txt.
    """
    output = succeeds(["hosting/make_bundle.py", *flags, "--output", folder / "bundle.zip"])
    (folder / "said.txt").write_text(output)
    for path in folder.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(path.with_suffix(""))
    return folder / "bundle"


def entry(select: str = "pass", update: str = "pass") -> dict[str, str]:
    """Return the files of an entry of task 4, by name.

    `select` and `update` are code with which the entry's methods `select_questions` and
    `update_model` begin. The predictions of the entry are arbitrary zeros and ones, which depend on
    the revealed answers.
    """
    source = f"""
class Submission:
    def select_questions(self, seen, right, can_query):
        {select}
        return can_query.argmax(axis=1)
    def update_model(self, seen, right, can_query):
        {update}
    def predict(self, seen, right):
        return right.cumsum(axis=1) % 2
"""
    return {ENTRY_FILE: source}


def submission_for(templates: Path, task: int) -> dict[str, str]:
    """Return a valid submission to task 1, 2 or 3: its files, by name.

    The submission fills in the task's template, which is in the folder `templates`.
    """
    template = layout.TEMPLATE_TASK_3 if task == 3 else layout.TEMPLATE_TASK_1_2
    header, *rows = (templates / template).read_text().split()
    if task == 3:
        # The questions have the ranks 1, 2, 3 and so on, in the order of the template. A row of
        # the template ends with a comma, after which the rank is missing.
        lines = [header]
        for rank, row in enumerate(rows, 1):
            lines.append(f"{row}{rank}")
    else:
        # The possible values are predicted in turn.
        values = {1: (0, 1), 2: (1, 2, 3, 4)}[task]
        lines = [f"{header},{TASKS[task].column.name}"]
        for row, value in zip(rows, cycle(values), strict=False):
            lines.append(f"{row},{value}")
    text = "\n".join(lines) + "\n"
    return {TASKS[task].submission: text}
