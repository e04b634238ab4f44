"""Play the platform's worker for one submission and one task: `score`.

As `compute_worker/compute_worker.py` of https://github.com/codalab/codabench does, but with
processes of this Python instead of containers: programs see ``/app`` folders of their own, but also
this machine, its files and its network.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from common import zips
from common.errors import InputError, printable, quote

import yaml
from bundle import METADATA_NAMES, Bundle, Task

DETAILS_NAME = "detailed_results.html"
NO_SCORES = "Could not find scores file, did the scoring program output it?"

_MAX_SUBMISSION = 4 << 30
# How much of the end of what a program writes is read, and how much of it is shown.
_TAIL = 1 << 16
_MAX_REASON = 500
_MAX_LINES = 20
# What programs get of this shell's environment, which may hold passwords: a container has none of
# it, and what an entry raises is shown.
_PASSED_ON = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
)  # fmt: skip


class Result(NamedTuple):
    """What became of a submission: its scores by column, or the fault for which there are none.

    Also the page that the participant sees, HTML, and the last lines of the programs' stderr.
    """

    scores: dict[str, float]
    fault: str = ""
    details: str = ""
    output: tuple[str, ...] = ()


class _Run(NamedTuple):
    """How a program ended, after how many seconds, and the last lines of its stderr."""

    code: int | None = None
    seconds: float | None = None
    lines: tuple[str, ...] = ()


def score(submission: Path, task: Task, bundle: Bundle, time_limit: int) -> Result:
    """Run a task's programs on a submission; a fault of the submission is returned, not raised.

    Each of the two steps, ingestion and scoring, may take so many seconds.
    """
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
    ingestion = _Run()
    if task.ingestion_program and task.input_data:
        shutil.copytree(task.ingestion_program, predicting / "program")
        shutil.copytree(task.input_data, predicting / "input_data")
        ingestion = _run_program(predicting, time_limit)
    # The platform tells so whether a program of the submission's own ran: none did.
    statuses = {
        "exitCode": None, "elapsedTime": ingestion.seconds,
        "ingestionExitCode": ingestion.code, "ingestionElapsedTime": ingestion.seconds,
    }  # fmt: skip
    (predicting / "output/metadata").write_text(yaml.safe_dump(statuses), encoding="utf-8")

    for name in ("input", "output", "shared"):
        (scoring / name).mkdir(parents=True)
    (predicting / "output").rename(scoring / "input/res")
    # Copies, so that nothing a run does reaches the next one.
    shutil.copytree(task.reference_data, scoring / "input/ref")
    shutil.copytree(task.scoring_program, scoring / "program")
    ended = _run_program(scoring, time_limit)
    output = (*ingestion.lines, *ended.lines)
    page, file = scoring / "output" / DETAILS_NAME, scoring / "output/scores.json"
    said = json.loads(file.read_bytes()) if file.is_file() else {}
    scores = {c.key: float(said[c.key]) for c in bundle.columns if c.key in said}
    if bundle.columns[0].key in scores:
        details = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
        return Result(scores, details=details, output=output)
    # What went wrong first explains most. A program that fails on purpose says why.
    lines = (ingestion.lines if ingestion.code else ()) or ended.lines
    fault = lines[-1].removeprefix("error: ") if lines else NO_SCORES
    return Result({}, fault, output=output)


def _run_program(app: Path, time_limit: int) -> _Run:
    """Run the program in ``app/program``; whatever it has started ends with it.

    `InputError` if it takes longer than it may, or cannot be started.
    """
    command = yaml.safe_load((app / "program" / METADATA_NAMES[0]).read_bytes())["command"]
    words = [word.replace("/app/", f"{app}{os.sep}") for word in shlex.split(command)]
    if words[0] in ("python", "python3"):
        words[0] = sys.executable
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    temporary = app.parent / "tmp"
    temporary.mkdir()
    environment |= {"PYTHONUNBUFFERED": "1", "TMPDIR": str(temporary), "RUN_LOCALLY": "1"}
    began = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        try:
            # In a group of its own, so that what the program starts ends with it.
            process = subprocess.Popen(
                words, cwd=app / "program", env=environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip
        except OSError as error:
            fault = f"the command {quote(command)} cannot be run ({error.strerror})"
            raise InputError(fault) from None
        try:
            code = process.wait(time_limit)
        except subprocess.TimeoutExpired:
            fault = f"Execution Time Limit exceeded. Limit was {time_limit} seconds"
            raise InputError(fault) from None
        finally:
            _kill(process)
        return _Run(code, round(time.monotonic() - began, 3), _last_lines(errors, app))


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a process, if it still runs, and those that it started."""
    if hasattr(os, "killpg"):
        # The group outlives its leader while members run; it is ours by start_new_session.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _last_lines(file: Any, app: Path) -> tuple[str, ...]:
    """Return the last lines of a program's output, with the paths that it has on the platform."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
    text = file.read().decode("utf-8", "replace").replace(str(app), "/app")
    # A progress bar writes over its line.
    lines = [re.split("\r", line.rstrip("\r"))[-1].strip() for line in text.split("\n")]
    return tuple(printable(line, _MAX_REASON) for line in lines if line)[-_MAX_LINES:]
