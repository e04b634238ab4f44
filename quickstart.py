#!/usr/bin/env python3
"""From a fresh clone to scored submissions for all four tasks, in one command.

    python3 quickstart.py           set up, simulate data if there are none, run and score all
    python3 quickstart.py --test    set up the same way and run the kit's tests

Needs only Python 3.11 or newer with pip. Everything is installed into .venv beside this file. Where
the official data lie in data/, they are used instead of simulated ones. What is done is not done
again: a second run shows the table at once.
"""

# Only the standard library and common.layout here: nothing is installed yet when this file starts.
from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from common import layout, provenance
from common.layout import ROOT

VENV = ROOT / ".venv"
OUTPUT = layout.TEST_OUTPUT_DIR
DONE_FILE = OUTPUT / "quickstart.json"
OLDEST_PYTHON = (3, 11)
SIZES = ("tiny", "small", "full")
METRIC = {
    1: "accuracy, right or wrong",
    2: "accuracy, option chosen",
    3: "agreement, best expert",
    4: "accuracy after 10 questions",
}


@dataclass(frozen=True)
class Model:
    """A sample model: the commands that fit and predict, and the one that scores.

    Attributes
    ----------
    task
        Number of the task.
    name
        Name of the model, as in its file.
    commands
        Arguments of Python, timed together; those of task 4 include the ten rounds of questions.
    evaluation
        Arguments of Python for the score, or nothing where the last command writes it.
    """

    task: int
    name: str
    commands: tuple[tuple[str, ...], ...]
    evaluation: tuple[str, ...]

    @property
    def output_dir(self) -> Path:
        """Folder of the submission and its score files."""
        return OUTPUT / self.name


@dataclass
class Result:
    """What a run of a sample model gave; `fingerprint` says for which code and data."""

    fingerprint: str
    score: float
    seconds: float
    peak_mb: float | None


class StepError(Exception):
    """A command that the quickstart ran has failed; the message says which and why."""


def main() -> int:
    """Set up, then run everything or the tests; give the exit code."""
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        print(
            f"error: this is Python {platform.python_version()}, expected {wanted} or newer",
            file=sys.stderr,
        )
        return 2
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--test", action="store_true", help="run the kit's tests instead")
    parser.add_argument(
        "--size",
        choices=SIZES,
        help="size of the simulated data (default small); never touches official data",
    )
    options = parser.parse_args()
    try:
        python = set_up("requirements-dev.txt" if options.test else "requirements.txt")
        if options.test:
            return subprocess.call(
                [
                    python,
                    "-m",
                    "pytest",
                    "-n",
                    "auto",
                    "--dist",
                    "worksteal",
                    "-q",
                    "--durations=10",
                ],
                cwd=ROOT,
            )
        return run_everything(python, options.size)
    except StepError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; a second run goes on from here", file=sys.stderr)
        return 130


# ---- Setting up ------------------------------------------------------------------------------


def set_up(requirements: str) -> str:
    """Give a Python that has everything, installing it into .venv if need be.

    Parameters
    ----------
    requirements
        Name of the file with the pinned packages.

    Returns
    -------
    str
        Path of the interpreter: the running one, if it has everything already.
    """
    if has_everything(sys.executable, requirements):
        return sys.executable
    python = str(VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if not has_everything(python, requirements):
        print(f"installing {requirements} into .venv (once; a few minutes)", flush=True)
        if not Path(python).exists():
            say_output(
                [sys.executable, "-m", "venv", str(VENV)],
                "cannot make .venv; on Debian and Ubuntu `apt install python3-venv` mends that",
            )
        say_output(
            [python, "-m", "pip", "install", "--disable-pip-version-check", "-r", requirements],
            "pip could not install the requirements",
        )
        if not has_everything(python, requirements):
            raise StepError(
                f"the environment in {VENV} is broken: remove this folder and start again"
            )
    return python


CHECK = """
import importlib.metadata as metadata, pathlib, re, sys
root, name = pathlib.Path(sys.argv[1]), sys.argv[2]
def pins(name):
    for line in (root / name).read_text().splitlines():
        if line.startswith("-r "):
            yield from pins(line[3:].strip())
        elif match := re.match(r"([\\w-]+)==(\\S+)", line):
            yield match.groups()
for package, version in pins(name):
    assert metadata.version(package).split("+")[0] == version, package
from common import layout
assert layout.ROOT == root
"""


def has_everything(python: str, requirements: str) -> bool:
    """Tell whether an interpreter has the pinned packages and this very kit."""
    if not Path(python).exists():
        return False
    # From another folder, where `common` is found only if it is installed.
    with tempfile.TemporaryDirectory() as elsewhere:
        check = subprocess.run(
            [python, "-c", CHECK, str(ROOT), requirements], cwd=elsewhere, capture_output=True
        )
    return check.returncode == 0


def say_output(command: list[str], failure: str) -> None:
    """Run a command, showing its last line as it changes; raise `StepError` with its end."""
    lines: list[str] = []
    terminal = sys.stdout.isatty()
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if terminal:
                print(f"\r\033[K  {lines[-1][:76]}", end="", flush=True)
    if terminal:
        print("\r\033[K", end="", flush=True)
    if process.returncode:
        raise StepError(f"{failure}:\n" + "\n".join(lines[-15:]))


# ---- Running everything ----------------------------------------------------------------------


def run_everything(python: str, size: str | None) -> int:
    """Get data, split, run and score every sample model, show the table."""
    started = time.perf_counter()
    is_simulated = prepare_data(python, size)
    models = [model for model in find_models() if train_file(model.task).exists()]
    done = read_done()
    splits = sorted({split_script(model.task) for model in models if model.task != 3})
    for script in splits:
        mark = fingerprint((script,), split_script_task(script))
        if done.get(script) != mark:
            print(f"splitting  {script}", flush=True)
            run([python, script])
            done[script] = mark
            write_done(done)
    failures = []
    for number, model in enumerate(models, 1):
        key = f"task_{model.task}/{model.name}"
        mark = fingerprint((*model.commands, model.evaluation), model.task)
        kept = done.get(key)
        known = isinstance(kept, dict) and kept.get("fingerprint") == mark
        text_path = model.output_dir / f"scores_task_{model.task}.txt"
        label = f"[{number}/{len(models)}] task {model.task}  {model.name}"
        if known and text_path.exists():
            print(f"{label}: done before", flush=True)
            continue
        print(label, end=": ", flush=True)
        try:
            result = run_model(python, model, mark, text_path)
        except StepError as error:
            print("failed", flush=True)
            failures.append(f"{key}: {error}")
            done.pop(key, None)
        else:
            print(f"{result.score:.4f} in {result.seconds:.1f} s", flush=True)
            done[key] = asdict(result)
        write_done(done)
    show_table(models, done, is_simulated)
    print(
        f"\n{time.perf_counter() - started:.0f} s in all. The pages with details: "
        f"{show(OUTPUT)}/*/scores_task_*.html"
    )
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


def prepare_data(python: str, size: str | None) -> bool:
    """Simulate data where there are none; build missing templates; tell whether it is simulated."""
    is_empty = not any(layout.TRAIN_DIR.glob("*.csv"))
    is_simulated = not is_empty and bool(provenance.simulated_files(layout.DATA_DIR))
    if is_empty or (is_simulated and size and size != simulated_size()):
        size = size or "small"
        print(f"simulating {size} data in {show(layout.DATA_DIR)}/", flush=True)
        run([python, "data/generate_sample.py", "--size", size])
        is_simulated = True
    if layout.METADATA_DIR.exists() and not (layout.TEMPLATE_DIR / layout.TEMPLATE_TASK_3).exists():
        print("building the submission templates", flush=True)
        run([python, "-m", "common.templates"])
    kind = f"simulated, {simulated_size()}" if is_simulated else "as found"
    print(f"data: {show(layout.DATA_DIR)}/ ({kind})", flush=True)
    return is_simulated


def simulated_size() -> str:
    """Give the size of the simulated data in data/."""
    marker = layout.DATA_DIR / layout.SIMULATED_MARKER_NAME
    return str(json.loads(marker.read_text(encoding="utf-8"))["size"])


def find_models() -> list[Model]:
    """Find every sample model by its file name; majority and entropy first, being the plainest."""
    models = []
    for task in (1, 2, 3):
        for script in sorted((ROOT / f"task_{task}").glob("sample_model_*.py")):
            name = script.stem.removeprefix("sample_model_")
            folder = f"{show(OUTPUT)}/{name}"
            evaluation = [f"task_{task}/local_evaluation.py", "--submission_dir", folder]
            command = [show(script), "--output_dir", folder]
            if task != 3:
                command.append("--local")
            models.append(
                Model(task, name, (tuple(command),), (*evaluation, "--output_dir", folder))
            )
    for script in sorted((ROOT / "task_4").glob("*/train_model.py")):
        name = f"{script.parent.name}"
        commands = (
            (show(script), "--local"),
            (
                show(script.with_name("local_evaluation.py")),
                "--output_dir",
                f"{show(OUTPUT)}/{name}",
            ),
        )
        models.append(Model(4, name, commands, ()))
    plainest = ("random", "majority", "entropy", "numpy")
    rank = {name: place for place, name in enumerate(plainest)}
    return sorted(models, key=lambda m: (m.task, rank.get(m.name, len(plainest)), m.name))


def train_file(task: int) -> Path:
    """Give the training file of a task."""
    return layout.TRAIN_DIR / (layout.TRAIN_TASK_1_2 if task < 3 else layout.TRAIN_TASK_3_4)


def split_script(task: int) -> str:
    """Give the script that makes the local split of a task; tasks 1 and 2 share theirs."""
    return f"task_{1 if task == 2 else task}/local_data_split.py"


def split_script_task(script: str) -> int:
    """Give the task that a split script belongs to."""
    return int(script[len("task_")])


def run_model(python: str, model: Model, mark: str, text_path: Path) -> Result:
    """Run and score one sample model."""
    text_path.unlink(missing_ok=True)
    seconds, peaks = 0.0, []
    for command in model.commands:
        started = time.perf_counter()
        peaks.append(run([python, *command]))
        seconds += time.perf_counter() - started
    if model.evaluation:
        run([python, *model.evaluation])
    score = float(text_path.read_text().split("score:")[1].split()[0])
    known_peaks = [peak for peak in peaks if peak is not None]
    return Result(mark, score, seconds, max(known_peaks) if known_peaks else None)


def run(command: list[str]) -> float | None:
    """Run a command to its end; give its peak memory in MB where the system tells it.

    Raises
    ------
    StepError
        If it fails, with what it said.
    """
    with tempfile.TemporaryFile() as said:
        # Progress bars go to standard error: shown live on a terminal, kept otherwise.
        terminal = sys.stderr.isatty()
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=said, stderr=None if terminal else said
        )
        peak_mb = None
        try:
            if hasattr(os, "wait4"):
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                # Linux counts in kilobytes, macOS in bytes.
                peak_mb = usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
            else:
                process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
        if process.returncode:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            raise StepError(
                f"`{' '.join(['python', *command[1:]])}` ended with exit code "
                f"{process.returncode}" + "".join(f"\n  {line}" for line in lines[-8:])
            )
    return peak_mb


def fingerprint(commands: tuple[object, ...], task: int) -> str:
    """Give a text that changes with the commands, the code they run, or the data they read."""
    digest = hashlib.sha256(repr(commands).encode())
    code = [*ROOT.glob("common/**/*.py"), *ROOT.glob(f"task_{task}/**/*.py")]
    for path in sorted(code):
        digest.update(path.read_bytes())
    for folder in (layout.TRAIN_DIR, layout.METADATA_DIR, layout.TEMPLATE_DIR):
        for path in sorted(folder.glob("*.csv")):
            status = path.stat()
            digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()


def read_done() -> dict[str, object]:
    """Read what earlier runs have done; nothing if there is no such file or it is damaged."""
    try:
        done = json.loads(DONE_FILE.read_text())
    except (OSError, ValueError):
        return {}
    return done if isinstance(done, dict) else {}


def write_done(done: dict[str, object]) -> None:
    """Write what is done, beside and then renamed, so that a kill loses nothing."""
    DONE_FILE.parent.mkdir(parents=True, exist_ok=True)
    partial = DONE_FILE.with_suffix(".partial")
    partial.write_text(json.dumps(done, indent=1))
    partial.replace(DONE_FILE)


def show(path: Path) -> str:
    """Show a path as seen from the kit's folder, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def show_table(models: list[Model], done: dict[str, object], is_simulated: bool) -> None:
    """Print one line for every sample model: task, model, metric, score, seconds, memory."""
    header = ("task", "model", "metric", "score", "seconds", "peak MB")
    rows = []
    for model in models:
        kept = done.get(f"task_{model.task}/{model.name}")
        if not isinstance(kept, dict):
            rows.append((str(model.task), model.name, METRIC[model.task], "failed", "", ""))
            continue
        peak = f"{kept['peak_mb']:.0f}" if kept["peak_mb"] is not None else "unknown"
        rows.append(
            (
                str(model.task),
                model.name,
                METRIC[model.task],
                f"{kept['score']:.4f}",
                f"{kept['seconds']:.1f}",
                peak,
            )
        )
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    numbers = (3, 4, 5)
    print(f"\nScores on {'simulated' if is_simulated else 'the official'} data\n")
    for row in (header, tuple("-" * width for width in widths), *rows):
        cells = [
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    sys.exit(main())
