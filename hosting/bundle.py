"""A bundle of `make_bundle.py`: what it says, and the platform's worker, which runs its programs.

A file that was edited by hand is the platform's to judge, which answers on upload; here only what
is read is checked. A submission is scored as `compute_worker/compute_worker.py` of
https://github.com/codalab/codabench does, but with processes of this Python instead of containers:
programs see ``/app`` folders of their own, but also this machine, its files and its network.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from common import zips
from common.errors import InputError, one_line, printable, quote
from tools import script_runs

import yaml

YAML_NAME = "competition.yaml"
METADATA_NAMES = ("metadata.yaml", "metadata")
DETAILS_NAME = "detailed_results.html"
NO_SCORES = "Could not find scores file, did the scoring program output it?"

# Unpacked sizes in bytes.
_MAX_BUNDLE = 16 << 30
_MAX_SUBMISSION = 4 << 30
# Characters of a line, and lines, that are shown of what a program writes.
_MAX_REASON = 500
_MAX_LINES = 20
# Programs get no more of this shell's environment: it may hold passwords, and faults are shown.
_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "SYSTEMROOT",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)


@dataclass(frozen=True)
class Task:
    """A task of competition.yaml, with the paths of what its programs are given."""

    index: Any
    name: str
    # The task's number in the challenge, by its name; 0 if the name holds none.
    number: int
    scoring_program: Path
    reference_data: Path
    # None if submissions are scored as they are, without an ingestion program.
    ingestion_program: Path | None
    input_data: Path | None


@dataclass(frozen=True)
class Phase:
    """A phase of competition.yaml."""

    name: str
    # As competition.yaml writes them.
    start: Any
    end: Any
    tasks: list[Task]
    # In seconds.
    execution_time_limit: int
    # Of each team.
    max_submissions: int


@dataclass(frozen=True)
class Column:
    """A column of the leaderboard in competition.yaml."""

    key: str
    title: str
    # "asc" if a small value is good, otherwise "desc".
    sorting: str
    # Number of decimal places.
    precision: int


@dataclass(frozen=True)
class Bundle:
    """An unpacked bundle, tasks by index, pages by title; the first column is the main one."""

    folder: Path
    title: str
    tasks: dict[Any, Task]
    phases: list[Phase]
    columns: list[Column]
    pages: dict[str, Path]


def read_bundle(path: Path, folder: Path, private: Path | None = None) -> Bundle:
    """Unpack a bundle, or copy its folder, lay its private part over it, and read it."""
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
    """Return what competition.yaml says; a file that it names must exist (FileNotFoundError)."""

    def find(name: str) -> Path:
        if not (folder / name).exists():
            raise FileNotFoundError(name)
        return folder / name

    def find_if_named(name: str | None) -> Path | None:
        return find(name) if name else None

    tasks: dict[Any, Task] = {}
    for about in said["tasks"]:
        number = re.search(r"\bTask (\d+)\b", about["name"])
        tasks[about["index"]] = Task(
            index=about["index"],
            name=about["name"],
            number=int(number[1]) if number else 0,
            scoring_program=find(about["scoring_program"]),
            reference_data=find(about["reference_data"]),
            ingestion_program=find_if_named(about.get("ingestion_program")),
            input_data=find_if_named(about.get("input_data")),
        )
    phases = [
        Phase(
            name=about["name"],
            start=about["start"],
            end=about["end"],
            tasks=[tasks[index] for index in about["tasks"]],
            execution_time_limit=about["execution_time_limit"],
            max_submissions=about["max_submissions"],
        )
        for about in said["phases"]
    ]
    columns = [
        Column(
            key=about["key"],
            title=about["title"],
            sorting=about["sorting"],
            precision=about["precision"],
        )
        for about in said["leaderboards"][0]["columns"]
    ]
    pages = {about["title"]: find(about["file"]) for about in said["pages"]}
    pages["Terms"] = find(said["terms"])
    return Bundle(folder, said["title"], tasks, phases, columns, pages)


# ---- The worker --------------------------------------------------------------------------------


class Result(NamedTuple):
    """What became of a submission: scores by column, or the fault; page (HTML); end of stderr."""

    scores: dict[str, float]
    fault: str = ""
    details: str = ""
    output: tuple[str, ...] = ()


def score(submission: Path, task: Task, bundle: Bundle, time_limit: int) -> Result:
    """Run a task's programs on a submission, each at most so many seconds; a fault is returned."""
    with tempfile.TemporaryDirectory(prefix="submission_", ignore_cleanup_errors=True) as folder:
        base = Path(folder).resolve()
        submitted = base / "prediction/app/ingested_program"
        try:
            zips.unpack(submission, submitted, _MAX_SUBMISSION)
            for name in METADATA_NAMES:
                if (submitted / name).exists():
                    raise InputError(
                        f"holds {name}, which the platform takes for that of a program of its own; "
                        "expected files without one: this is not played here"
                    )
            return _run_steps(submitted.parent, base / "scoring/app", task, bundle, time_limit)
        except InputError as error:
            fault = str(error).removeprefix(f"{submission}: ")
            # Neither where it lies on this machine, nor where it was unpacked.
            for place in (submission.parent, submitted):
                fault = fault.replace(f"{place}{os.sep}", "")
            return Result({}, fault)


def _run_steps(
    predicting: Path, scoring: Path, task: Task, bundle: Bundle, time_limit: int
) -> Result:
    """Run the steps of prediction and scoring, each in a folder of its own."""
    shutil.copytree(predicting / "ingested_program", predicting / "output")
    # The platform tells so whether a program of the submission's own ran: none did.
    status: dict[str, int | None] = {"exitCode": None, "ingestionExitCode": None}
    lines: list[str] = []
    if task.ingestion_program and task.input_data:
        shutil.copytree(task.ingestion_program, predicting / "program")
        shutil.copytree(task.input_data, predicting / "input_data")
        status["ingestionExitCode"], lines = _run_program(predicting, time_limit)
    (predicting / "output/metadata").write_text(yaml.safe_dump(status), encoding="utf-8")

    for name in ("input", "output", "shared"):
        (scoring / name).mkdir(parents=True)
    (predicting / "output").rename(scoring / "input/res")
    # Copies, so that nothing a run does reaches the next one.
    shutil.copytree(task.reference_data, scoring / "input/ref")
    shutil.copytree(task.scoring_program, scoring / "program")
    _, said = _run_program(scoring, time_limit)
    output = (*lines, *said)
    page, file = scoring / "output" / DETAILS_NAME, scoring / "output/scores.json"
    found = json.loads(file.read_bytes()) if file.is_file() else {}
    scores = {c.key: float(found[c.key]) for c in bundle.columns if c.key in found}
    if bundle.columns[0].key in scores:
        details = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
        return Result(scores, details=details, output=output)
    # What went wrong first explains most. A program that fails on purpose says why.
    reasons = (lines if status["ingestionExitCode"] else []) or said
    return Result({}, reasons[-1].removeprefix("error: ") if reasons else NO_SCORES, output=output)


def _run_program(app: Path, time_limit: int) -> tuple[int, list[str]]:
    """Run ``app/program``, end what it started; return its exit code, the last lines of stderr."""
    command = yaml.safe_load((app / "program" / METADATA_NAMES[0]).read_bytes())["command"]
    words = [word.replace("/app/", f"{app}{os.sep}") for word in shlex.split(command)]
    if words[0] in ("python", "python3"):
        words[0] = sys.executable
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    temporary = app.parent / "tmp"
    temporary.mkdir()
    environment |= {"PYTHONUNBUFFERED": "1", "TMPDIR": str(temporary), "RUN_LOCALLY": "1"}
    where = app / "program"
    try:
        code, lines = script_runs.run_to_end(
            words, only_stderr=True, time_limit=time_limit, cwd=where, env=environment
        )
    except OSError as error:
        fault = f"the command {quote(command)} cannot be run ({error.strerror})"
        raise InputError(fault) from None
    except subprocess.TimeoutExpired:
        fault = f"Execution Time Limit exceeded. Limit was {time_limit} seconds"
        raise InputError(fault) from None
    # With the paths that it has on the platform.
    lines = [printable(line.replace(str(app), "/app"), _MAX_REASON) for line in lines]
    return code, lines[-_MAX_LINES:]
