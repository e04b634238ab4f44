"""Read a bundle of `make_bundle.py`, and score submissions with its programs.

`read_bundle` checks only the parts of competition.yaml that are used here. The platform checks the
rest when the bundle is uploaded.

`score` does what `compute_worker/compute_worker.py` of https://github.com/codalab/codabench does,
but it runs the programs as processes of this Python instead of in containers. Each program gets its
own ``/app`` folder; it can also reach this machine's files and network.
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
from common.errors import InputError, one_line, printable, quote, without_folder
from tools import script_runs

import yaml

YAML_NAME = "competition.yaml"
METADATA_NAMES = ("metadata.yaml", "metadata")
DETAILS_NAME = "detailed_results.html"
NO_SCORES = "Could not find scores file, did the scoring program output it?"

# Largest unpacked sizes, in bytes.
_MAX_BUNDLE = 16 * 2**30
_MAX_SUBMISSION = 4 * 2**30
# A line that a program writes is cut to this many characters.
_MAX_LINE_LENGTH = 500
# Only the last lines that a program writes are shown, at most this many.
_MAX_LINES = 20
# The only environment variables that programs get. Other variables may hold passwords, which could
# end up in an error message that participants read.
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
    """A task of competition.yaml, with the folders of its programs and of their data."""

    index: Any
    name: str
    # The task's number in the challenge, taken from the name; 0 if the name has no number.
    number: int
    scoring_program: Path
    reference_data: Path
    # The ingestion program lets a submission predict before it is scored. Only task 4 has such a
    # program and input data for it; both are None for the other tasks.
    ingestion_program: Path | None
    input_data: Path | None


@dataclass(frozen=True)
class Phase:
    """A phase of competition.yaml."""

    name: str
    # The times at which the phase begins and ends, as competition.yaml writes them.
    start: Any
    end: Any
    tasks: list[Task]
    # Seconds that each program may run.
    execution_time_limit: int
    # Largest number of submissions that a team may make in the whole phase.
    max_submissions: int


@dataclass(frozen=True)
class Column:
    """A column of the leaderboard in competition.yaml."""

    key: str
    title: str
    # "asc" if smaller values are better, "desc" if larger values are better.
    sorting: str
    # Number of decimal places.
    precision: int


@dataclass(frozen=True)
class Bundle:
    """An unpacked bundle."""

    # The folder with the unpacked files.
    folder: Path
    title: str
    # Maps the index of each task in competition.yaml to the task.
    tasks: dict[Any, Task]
    phases: list[Phase]
    # Columns of the leaderboard; the first one is `main_column`.
    columns: list[Column]
    # Maps the title of each page to its Markdown file.
    pages: dict[str, Path]

    @property
    def main_column(self) -> Column:
        """The column whose scores decide the ranks. A submission without this score has failed."""
        return self.columns[0]


def read_bundle(path: Path, folder: Path, private: Path | None = None) -> Bundle:
    """Unpack a bundle into a folder and read its competition.yaml.

    Parameters
    ----------
    path
        The bundle: a zip, or a folder with the unpacked zip, which is copied.
    folder
        Where to unpack the bundle.
    private
        Zip with the answers of the private phase. Its files replace those of the bundle.

    Raises
    ------
    InputError
        If the bundle or its competition.yaml cannot be read.
    """
    if path.is_dir():
        shutil.copytree(path, folder, dirs_exist_ok=True)
    else:
        zips.unpack(path, folder, _MAX_BUNDLE)
    if private is not None:
        zips.unpack(private, folder, _MAX_BUNDLE)
    _require_yaml(path, folder)
    try:
        content = yaml.safe_load((folder / YAML_NAME).read_bytes())
        return _read(content, folder)
    except FileNotFoundError as missing:
        # competition.yaml names a file that is not there. `_read` raises this error with the file's
        # name as its text.
        raise InputError(f"{path}/{YAML_NAME}: file {missing} is not in the bundle") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path}/{YAML_NAME}: cannot be read, expected what hosting/make_bundle.py writes "
            f"({type(error).__name__}: {one_line(str(error))})"
        ) from None


def _require_yaml(path: Path, folder: Path) -> None:
    """Raise `InputError` if a bundle has no competition.yaml at its top level.

    `path` is the bundle as the user has named it, `folder` the folder with its files.
    """
    if (folder / YAML_NAME).is_file():
        return
    # If a user zips the bundle's folder instead of the files in it, competition.yaml lies in a
    # folder of the zip.
    elsewhere = sorted(file.relative_to(folder).as_posix() for file in folder.rglob(YAML_NAME))
    where = f", it lies in {elsewhere[0]}" if elsewhere else ""
    raise InputError(
        f"{path}: holds no {YAML_NAME} at the top level{where}; expected it there: zip what "
        "the folder holds, not the folder"
    )


def _read(content: dict[str, Any], folder: Path) -> Bundle:
    """Return the bundle that competition.yaml describes.

    `content` is the parsed YAML. Raises `FileNotFoundError` if `folder` lacks a file that the YAML
    names.
    """
    tasks = {entry["index"]: _read_task(entry, folder) for entry in content["tasks"]}
    phases = [
        Phase(
            name=entry["name"],
            start=entry["start"],
            end=entry["end"],
            tasks=[tasks[index] for index in entry["tasks"]],
            execution_time_limit=entry["execution_time_limit"],
            max_submissions=entry["max_submissions"],
        )
        for entry in content["phases"]
    ]
    columns = [
        Column(
            key=entry["key"],
            title=entry["title"],
            sorting=entry["sorting"],
            precision=entry["precision"],
        )
        for entry in content["leaderboards"][0]["columns"]
    ]
    pages = {entry["title"]: _find(folder, entry["file"]) for entry in content["pages"]}
    pages["Terms"] = _find(folder, content["terms"])
    return Bundle(
        folder=folder,
        title=content["title"],
        tasks=tasks,
        phases=phases,
        columns=columns,
        pages=pages,
    )


def _read_task(entry: dict[str, Any], folder: Path) -> Task:
    """Return a task; `entry` is its description in competition.yaml."""
    ingestion_program = entry.get("ingestion_program")
    input_data = entry.get("input_data")
    number_in_name = re.search(r"\bTask (\d+)\b", entry["name"])
    return Task(
        index=entry["index"],
        name=entry["name"],
        # 0 stands for a name without a number.
        number=int(number_in_name[1]) if number_in_name else 0,
        scoring_program=_find(folder, entry["scoring_program"]),
        reference_data=_find(folder, entry["reference_data"]),
        ingestion_program=_find(folder, ingestion_program) if ingestion_program else None,
        input_data=_find(folder, input_data) if input_data else None,
    )


def _find(folder: Path, name: str) -> Path:
    """Return the path of a file or folder in the bundle.

    Raises `FileNotFoundError` if the bundle does not hold it.
    """
    if not (folder / name).exists():
        raise FileNotFoundError(name)
    return folder / name


# ---- Scoring, as the platform's compute worker does it -----------------------------------------


class Result(NamedTuple):
    """The scores of a submission, or why it has none."""

    # Maps keys of the leaderboard's columns to scores; empty if the submission failed.
    scores: dict[str, float]
    # Why the submission failed; empty if it was scored.
    fault: str = ""
    # The page that explains the score, as HTML.
    details: str = ""
    # The last lines that the programs wrote to stderr.
    output: tuple[str, ...] = ()


class ProgramRun(NamedTuple):
    """How a program ended."""

    # The exit code of the program; None if there was no program to run.
    exit_code: int | None
    # The last lines that the program wrote to stderr.
    lines: list[str]


def score(submission: Path, task: Task, bundle: Bundle, time_limit: int) -> Result:
    """Score a submission with the programs of a task, as the platform does.

    If the task has an ingestion program, this program runs first and lets the submission predict.
    Then the scoring program runs. `time_limit` is the number of seconds that each program may run.
    If the submission fails, the result says why; no error is raised.
    """
    with tempfile.TemporaryDirectory(prefix="submission_", ignore_cleanup_errors=True) as folder:
        base = Path(folder).resolve()
        # On the platform, each of the two programs has a container of its own and finds its files
        # in the folder /app. The platform puts the submission into /app/ingested_program.
        predicting_app = base / "prediction/app"
        scoring_app = base / "scoring/app"
        unpacked = predicting_app / "ingested_program"
        try:
            zips.unpack(submission, unpacked, _MAX_SUBMISSION)
            _require_no_program(unpacked)
            return _run_steps(predicting_app, scoring_app, task, bundle, time_limit)
        except InputError as error:
            fault = str(error).removeprefix(f"{submission}: ")
            # The participants will read this message. Remove from it the paths of folders on the
            # organiser's machine.
            for private_folder in (submission.parent, unpacked):
                fault = without_folder(fault, private_folder)
            return Result({}, fault)


def _require_no_program(submission: Path) -> None:
    """Raise `InputError` if the folder of an unpacked submission holds a program of its own."""
    for name in METADATA_NAMES:
        if (submission / name).exists():
            raise InputError(
                f"holds {name}: the platform would run the submission as a program, which "
                "is not done here; remove this file"
            )


def _run_steps(
    predicting_app: Path, scoring_app: Path, task: Task, bundle: Bundle, time_limit: int
) -> Result:
    """Run the ingestion program, if there is one, and the scoring program.

    `predicting_app` and `scoring_app` are the ``/app`` folders of the two programs; the first one
    holds the unpacked submission.
    """
    ingestion = _run_ingestion(predicting_app, task, time_limit)
    for name in ("input", "output", "shared"):
        (scoring_app / name).mkdir(parents=True)
    # The platform puts the output of the ingestion program into input/res, and the reference data
    # into input/ref. The scoring program gets copies, so that it cannot change the bundle for the
    # next run.
    (predicting_app / "output").rename(scoring_app / "input/res")
    shutil.copytree(task.reference_data, scoring_app / "input/ref")
    shutil.copytree(task.scoring_program, scoring_app / "program")
    scoring_lines = _run_program(scoring_app, time_limit).lines

    output = (*ingestion.lines, *scoring_lines)
    scores = _read_scores(scoring_app / "output/scores.json", bundle)
    if bundle.main_column.key in scores:
        page = scoring_app / "output" / DETAILS_NAME
        details = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
        return Result(scores, details=details, output=output)
    # There is no score: the last line of the program that has failed tells the reason. If the
    # ingestion program fails, the scoring program fails too, but the lines of the scoring program
    # do not tell the reason.
    has_ingestion_failed = bool(ingestion.exit_code)
    fault_lines = scoring_lines
    if has_ingestion_failed and ingestion.lines:
        fault_lines = ingestion.lines
    fault = fault_lines[-1].removeprefix("error: ") if fault_lines else NO_SCORES
    return Result({}, fault, output=output)


def _run_ingestion(app: Path, task: Task, time_limit: int) -> ProgramRun:
    """Run the ingestion program of a task, if the task has one.

    `app` is the folder on this machine that takes the place of ``/app`` on the platform. When the
    program has ended, the folder `output` in it holds the files of the submission, the files that
    the program has written, and a file of exit codes, such as the platform writes.
    """
    # The platform gives this name to the folder of the submission.
    submission = app / "ingested_program"
    shutil.copytree(submission, app / "output")
    run = ProgramRun(exit_code=None, lines=[])
    if task.ingestion_program and task.input_data:
        shutil.copytree(task.ingestion_program, app / "program")
        shutil.copytree(task.input_data, app / "input_data")
        run = _run_program(app, time_limit)
    # On the platform, a submission may bring its own program, and exitCode is the exit code of this
    # program. Here exitCode is None, because `_require_no_program` refuses such submissions.
    status = {"exitCode": None, "ingestionExitCode": run.exit_code}
    (app / "output/metadata").write_text(yaml.safe_dump(status), encoding="utf-8")
    return run


def _read_scores(path: Path, bundle: Bundle) -> dict[str, float]:
    """Return the scores in scores.json for which the leaderboard has a column."""
    written = json.loads(path.read_bytes()) if path.is_file() else {}
    keys = [column.key for column in bundle.columns]
    return {key: float(written[key]) for key in keys if key in written}


def _run_program(app: Path, time_limit: int) -> ProgramRun:
    """Run the command of ``app/program/metadata.yaml``, and end every process that it started.

    The result holds the last lines that the program has written to stderr.
    """
    program = app / "program"
    command = yaml.safe_load((program / "metadata.yaml").read_bytes())["command"]
    # The command names files by their paths on the platform, where all files lie in /app/. Change
    # them to the paths on this machine.
    words = [word.replace("/app/", f"{app}{os.sep}") for word in shlex.split(command)]
    if words[0] in ("python", "python3"):
        words[0] = sys.executable
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    temporary = app.parent / "tmp"
    temporary.mkdir()
    # On the platform, the scoring program refuses to score before the phase begins. With
    # RUN_LOCALLY, it scores at any time.
    environment |= {"PYTHONUNBUFFERED": "1", "TMPDIR": str(temporary), "RUN_LOCALLY": "1"}
    try:
        exit_code, lines = script_runs.run_to_end(
            words, only_stderr=True, time_limit=time_limit, cwd=program, env=environment
        )
    except OSError as error:
        fault = f"the command {quote(command)} cannot be run ({error.strerror})"
        raise InputError(fault) from None
    except subprocess.TimeoutExpired:
        fault = f"Execution Time Limit exceeded. Limit was {time_limit} seconds"
        raise InputError(fault) from None
    # Change the paths on this machine back to paths on the platform.
    lines = [printable(line.replace(str(app), "/app"), _MAX_LINE_LENGTH) for line in lines]
    return ProgramRun(exit_code, lines[-_MAX_LINES:])
