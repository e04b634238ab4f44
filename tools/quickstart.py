"""What quickstart.py does, once a Python that is new enough runs it.

Only the standard library is used, also in what comes from common: nothing is installed yet.
"""

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import NamedTuple

from common import layout, made, source_code
from common.adaptive.weights import TRAINED_STUDENTS, WEIGHTS, copy_package, read_origin
from common.errors import InputError
from common.layout import ROOT

VENV = ROOT / ".venv"
OUTPUT = layout.TEST_OUTPUT_DIR
RECORD = OUTPUT / layout.RESULTS_NAME
PACKAGES = OUTPUT / "packages"
FINISHED_NAME = "quickstart_{title}.txt"
SPLIT = "local split"
# The others take seconds on the simulated data. The last begin first, beside the quickest: of those
# that import PyTorch one, whose compiled code the others then find.
SLOW = ("item_response", "partial_vae", "similarity_boosting", "gradient_boosting", "pytorch")
# Training files of more bytes in all: one step at a time, which has the memory for itself.
LARGE = 100e6
DATA_SUFFIXES = (".csv", ".txt", ".xml")
OF_TASKS = (layout.TRAIN_DIR, layout.METADATA_DIR, layout.TEMPLATE_DIR)
# Does a part of its work at each `next`, and returns what it has to say.
Run = Generator[None, None, str]
TESTS = ("-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "--durations=10")


class Step(NamedTuple):
    """A local split, or a sample model from training to its score."""

    title: str  # of what it belongs to: "task 1", or the name of a related challenge
    name: str  # of the model
    commands: tuple[tuple[str, ...], ...]  # of Python
    output_dir: Path  # of the score files
    data: tuple[Path, ...] = OF_TASKS  # folders of what is read
    package: Path | None = None  # folder of an entry of task 4


class StepError(Exception):
    """A command that the quickstart ran has failed; the message says which and why."""


def main(description: str | None) -> int:
    """Set up, then run everything or the tests; return the exit code."""
    raw_text = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw_text)
    parser.add_argument("--test", action="store_true", help="run the kit's checks and tests")
    parser.add_argument("--related", action="store_true", help="run the related challenges")
    parser.add_argument(
        "--size",
        choices=("tiny", "small", "full"),
        help="size of the simulated data (default small); never touches official data",
    )
    options = parser.parse_args()
    try:
        python = set_up(for_tests=options.test)
        if options.test:
            return run_tests(python)
        return run_related(python) if options.related else run_everything(python, options.size)
    except StepError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # Who reads it, as `head`, has seen enough; no last flush may fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("\nstopped; the next run resumes here", file=sys.stderr)
        return 130


# ---- Setting up ------------------------------------------------------------------------------


def set_up(for_tests: bool) -> str:
    """Return a Python that has everything, installing it into .venv if need be."""
    pins = ["requirements.txt", *(["requirements-dev.txt"] if for_tests else [])]
    if has_everything(sys.executable, pins):
        return sys.executable
    python = str(VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if not has_everything(python, pins):
        print(f"installing {' and '.join(pins)} into .venv (once; a few minutes)", flush=True)
        # Where pip is missing, making the environment was interrupted: start over.
        if not succeeds([python, "-m", "pip", "--version"]):
            run(sys.executable, "-m", "venv", "--clear", str(VENV))
        kit = ".[dev]" if for_tests else "."
        # Python compiles what it imports, once; all of PyTorch would take half a minute.
        later = [] if sys.dont_write_bytecode else ["--no-compile"]
        install = ["-m", "pip", "install", *later, "--editable", kit]
        run(python, *install, shown=sys.stdout.isatty())
        if for_tests:  # These have many processes that may not write there; also what lay there.
            succeeds([python, "-m", "compileall", "-q", "-j", "0", str(VENV)])
        if not has_everything(python, pins):
            raise StepError(f"the environment in {VENV} is broken: remove this folder, run again")
    return python


CHECK = """
import importlib.metadata as metadata, pathlib, re, sys
root, *pins = map(pathlib.Path, sys.argv[1:])
for path in pins:
    for package, version in re.findall(r"^([\\w-]+)==(\\S+)", (root / path).read_text(), re.M):
        assert metadata.version(package).split("+")[0] == version, package
from common import layout
assert layout.ROOT == root
"""


def has_everything(python: str, pins: list[str]) -> bool:
    """Return whether an interpreter has the packages pinned in these files, and this kit itself."""
    # With -P, `common` is found only if it is installed.
    return succeeds([python, "-P", "-c", CHECK, str(ROOT), *pins])


def succeeds(command: list[str]) -> bool:
    """Return whether a command exists and ends with exit code 0."""
    try:
        return not subprocess.run(command, capture_output=True).returncode
    except OSError:
        return False


def run_tests(python: str) -> int:
    """Check the code while the tests run, whatever either finds; return the exit code."""
    print("running ruff and mypy, and the tests", flush=True)
    with tempfile.TemporaryFile() as kept:
        checks = subprocess.Popen(
            [python, "tests/static_checks.py"], cwd=ROOT, stdout=kept, stderr=kept
        )
        codes = {"tests": subprocess.call([python, *TESTS], cwd=ROOT)}
        codes["ruff and mypy"] = checks.wait()
        kept.seek(0)
        print(kept.read().decode(errors="replace"), end="", flush=True)
    failed = [name for name, code in codes.items() if code]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


# ---- What there is to run --------------------------------------------------------------------


def run_everything(python: str, size: str | None) -> int:
    """Get data, split, run and score every sample model, show the scores; return the exit code."""
    prepare_data(python, size)
    steps = []
    for tasks, name in (((1, 2), layout.TRAIN_TASK_1_2), ((3, 4), layout.TRAIN_TASK_3_4)):
        if not (layout.TRAIN_DIR / name).exists():
            missing = show(layout.TRAIN_DIR / name)
            print(f"left out: tasks {tasks[0]} and {tasks[1]}: {missing} is missing")
            continue
        models = [model for task in tasks for model in find_models(f"task {task}")]
        # Tasks 1 and 2 share a split, task 3 needs none.
        if any(model.title != "task 3" for model in models):
            task = 1 if tasks == (1, 2) else 4
            split = ((f"task_{task}/local_data_split.py",),)
            steps.append(Step(f"task {task}", SPLIT, split, layout.TEST_INPUT_DIR))
        steps += models
    idea = "your own idea: {python} -m tools.new_entry task_1"
    return run_steps(python, steps, " (details: */scores_task_*.html there)", idea)


def prepare_data(python: str, size: str | None) -> None:
    """Simulate data where there are none; build missing templates; say which data they are."""

    def simulated_size() -> str:
        return str((made.read_marker(layout.DATA_DIR) or {}).get("size", "of unknown size"))

    is_empty = not any(layout.TRAIN_DIR.glob("*.csv"))
    is_simulated = not is_empty and bool(made.simulated_files(layout.DATA_DIR))
    if is_empty or (is_simulated and size and size != simulated_size()):
        print(f"simulating {size or 'small'} data in {show(layout.DATA_DIR)}/", flush=True)
        run(python, "data/generate_sample.py", "--size", size or "small")
        is_simulated = True
    template = layout.TEMPLATE_DIR / layout.TEMPLATE_TASK_3
    is_current = template.is_file()
    try:
        made.require_current([template])
    except InputError:  # It was made from other data.
        is_current = False
    if layout.METADATA_DIR.exists() and not is_current:
        print("building the submission templates", flush=True)
        run(python, "-m", "tools.templates")
    kind = f"simulated, {simulated_size()}" if is_simulated else "as found"
    print(f"data: {show(layout.DATA_DIR)}/ ({kind})", flush=True)


def find_scripts(folder: Path, title: str, output: Path, *data: Path) -> list[Step]:
    """Find every sample model of a folder by its file name; it runs as its header says."""
    models, evaluation = [], show(folder / "local_evaluation.py")
    for script in sorted(folder.glob("sample_model_*.py")):
        name = script.stem.removeprefix("sample_model_")
        # The flags of the first command of each, such as --local; the model may have been renamed.
        flags: dict[str, list[str]] = {}
        for words, _ in commands_in_header(script):
            flags.setdefault(words[0] if "/local_" in words[0] else show(script), words[1:])
        fit, score = ((path, *flags.get(path, ())) for path in (show(script), evaluation))
        to = ("--output_dir", show(output / name))
        commands = ((*fit, *to), (*score, "--submission_dir", show(output / name), *to))
        models.append(Step(title, name, commands, output / name, data or OF_TASKS))
    return models


def commands_in_header(script: Path) -> list[tuple[list[str], str]]:
    """Return commands under "Run:" in a header, without optional parts, and notes beside them."""
    # Also of a script that is not Python: whoever runs it says so.
    text = script.read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^Run:((?:\s+python .*)+)", text, re.MULTILINE)
    lines = found[1].strip().splitlines() if found else []
    parts = [line.strip().partition("  ") for line in lines]
    return [(shlex.split(words.partition(" [")[0])[1:], text.strip()) for words, _, text in parts]


def find_models(title: str) -> list[Step]:
    """Find every sample model of a task, also those that are packages."""
    folder = ROOT / title.replace(" ", "_")
    models = find_scripts(folder, title, OUTPUT)
    for script in sorted(folder.glob("*/train_model.py")):
        # A copy of the package is trained, since its folder may hold weights of all students.
        name, copy = script.parent.name, PACKAGES / script.parent.name
        train = (show(copy / script.name), "--local")
        score_script = show(script.with_name("local_evaluation.py"))
        score = (score_script, "--submission", show(copy), "--output_dir", show(OUTPUT / name))
        models.append(Step(title, name, (train, score), OUTPUT / name, package=script.parent))
    return models


def run_related(python: str) -> int:
    """As `run_everything`, for the related challenges."""
    folders = [path.parent for path in sorted(layout.RELATED_DIR.glob("*/generate_sample.py"))]
    if not folders:
        raise StepError(f"{show(layout.RELATED_DIR)}/ holds no challenge")
    steps = []
    for folder in folders:
        data = folder / layout.DATA_DIR.name
        train, split_dir = data / layout.TRAIN_DIR.name, data / layout.TEST_INPUT_DIR.name
        if not any(path.is_file() for path in train.rglob("*")):
            print(f"simulating data in {show(train)}/", flush=True)
            run(python, show(folder / "generate_sample.py"))
        split = folder / "local_data_split.py"
        if split.exists():
            steps.append(Step(folder.name, SPLIT, ((show(split),),), split_dir, (train,)))
        steps += find_scripts(folder, folder.name, data / OUTPUT.name, train, split_dir)
    pages = f"\ndetails: {show(layout.RELATED_DIR)}/*/data/{OUTPUT.name}/*/scores_*.html"
    idea = f"your idea: {{python}} -m tools.new_entry {show(folders[0])}"
    return run_steps(python, steps, pages, idea)


# ---- Running it ------------------------------------------------------------------------------


def run_steps(python: str, steps: list[Step], pages: str, idea: str) -> int:
    """Run steps, show the scores, the pages and the command for an idea; return the exit code."""
    if not RECORD.exists():  # Without the scores, no model is finished.
        name = FINISHED_NAME.format(title="*")
        related = layout.RELATED_DIR.glob(f"*/data/{OUTPUT.name}/*/{name}")
        for path in [*OUTPUT.glob(f"*/{name}"), *related]:
            path.unlink()
    failures = run_side_by_side(python, steps)
    if RECORD.exists():
        print(flush=True)
        run(python, "-m", "tools.scoreboard", shown=True)
        # Where the environment is not active, its Python has to be named.
        own = os.path.relpath(python, ROOT) if python.startswith(str(VENV)) else Path(python).name
        print(f"open {show(OUTPUT)}/{layout.SCOREBOARD_NAME}{pages}")
        print(f"{idea} my_idea".format(python=own), flush=True)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def run_side_by_side(python: str, steps: list[Step]) -> list[str]:
    """Run the splits, then the models, on all cores, of which one takes the quickest first, the
    others the slowest; return what has failed and why.
    """
    n_cores = os.cpu_count() or 1
    folders = {folder for step in steps for folder in step.data}
    is_large = sum(path.stat().st_size for path in data_files(folders)) > LARGE
    n_workers = 1 if is_large else n_cores
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, n_cores // n_workers)))
    n_ended, failures = 0, dict[Step, str]()
    splits = [step for step in steps if step.name == SPLIT]
    models = [step for step in steps if step.name != SPLIT]
    models.sort(key=lambda step: SLOW.index(step.name) if step.name in SLOW else -1)
    for waiting in map(deque, (splits, models)):
        running: dict[Step, Run] = {}
        begun: dict[Step, float] = {}
        quick = None
        try:
            while waiting or running:
                while waiting and len(running) < n_workers:
                    step = waiting.pop() if quick in running else waiting.popleft()
                    quick = quick if quick in running else step
                    running[step], begun[step] = run_step(python, step), time.perf_counter()
                for step, run in list(running.items()):
                    try:
                        next(run)
                        continue
                    except StopIteration as end:
                        said = end.value
                    except StepError as error:
                        said = "failed"
                        failures[step] = f"failed: {step.title}, {step.name}: {error}"
                    n_ended += 1
                    del running[step]
                    show_running("")
                    print(f"[{n_ended}/{len(steps)}] {step.title}  {step.name}: {said}", flush=True)
                now = time.perf_counter()
                names = [f"{s.title}  {s.name} {now - begun[s]:.0f} s" for s in running]
                show_running(f"running: {', '.join(names)}" if names else "")
                time.sleep(0.05 if running else 0)
        finally:
            show_running("")
            for run in running.values():
                run.close()
    return [failures[step] for step in steps if step in failures]


def show_running(text: str) -> None:
    """Show what runs in the last line of a terminal, in place of what stood there."""
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns - 1
        print(f"\r{' ' * columns}\r{text[:columns]}", end="", flush=True)


def run_step(python: str, step: Step) -> Run:
    """Run a step unless it has run on the same code and data; return its score and its time."""
    expected = fingerprint(step)
    finished = step.output_dir / FINISHED_NAME.format(title=step.title.replace(" ", "_"))
    if finished.exists() and finished.read_bytes() == expected:
        return "done already"
    finished.unlink(missing_ok=True)
    started = time.perf_counter()
    copy = PACKAGES / step.name
    if step.package:
        shutil.rmtree(copy, ignore_errors=True)
        copy_package(step.package, copy)
    said = yield from begin(python, "-c", IN_TURN, *map(shlex.join, step.commands))
    if step.package:
        _leave_weights(copy, step.package)
    finished.write_bytes(expected)
    score = re.search(r"^score [\d.]+", said, re.MULTILINE)
    return f"{score[0] + ', ' if score else ''}{time.perf_counter() - started:.1f} s"


def _leave_weights(copy: Path, package: Path) -> None:
    """Put a trained copy's weights into a package, unless there are others than of --local."""
    origin, old = read_origin(package), [*package.glob(f"{WEIGHTS}*")]
    if old and (origin is None or "local" not in origin.options):
        return
    for path in old:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    # The students that they know come first, so that no weights ever lie there without.
    for path in sorted(copy.glob(f"{WEIGHTS}*"), key=lambda path: path.name != TRAINED_STUDENTS):
        (shutil.copytree if path.is_dir() else shutil.copyfile)(path, package / path.name)


# Runs the commands of a step in one process: each library is imported once.
IN_TURN = """
import os, runpy, shlex, sys
for command in sys.argv[1:]:
    sys.argv = shlex.split(command)
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    print("$ python", command, flush=True)
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
"""


def begin(python: str, *words: str, shown: bool = False) -> Run:
    """Run Python, yielding while it runs; return what it printed, or raise `StepError` with it."""
    with tempfile.TemporaryFile() as kept:
        output = None if shown else kept
        process = subprocess.Popen([python, *words], cwd=ROOT, stdout=output, stderr=output)
        try:
            while process.poll() is None:
                yield
        finally:
            process.terminate()
            process.wait()
        kept.seek(0)
        said = kept.read().decode(errors="replace")
    if process.returncode:
        # Of several commands in turn, the last one that began.
        _, *parts = re.split(r"^\$ (python .*)\n", said, flags=re.MULTILINE)
        command, said = parts[-2:] if parts else (" ".join(["python", *words]), said)
        raise StepError(
            f"`{command}` ended with exit code {process.returncode}"
            + "".join(f"\n  {line}" for line in said.strip().splitlines()[-12:])
        )
    return said


def run(python: str, *words: str, shown: bool = False) -> None:
    """Run Python to its end, with nothing beside it."""
    for _ in begin(python, *words, shown=shown):
        time.sleep(0.01)


def fingerprint(step: Step) -> bytes:
    """Return bytes that change with the commands, the code they run, or the data they read."""
    scripts = [ROOT / command[0] for command in step.commands]
    if step.package:
        scripts = [*step.package.rglob("*.py"), scripts[-1]]
    digest = hashlib.sha256(f"{step.commands} {source_code.fingerprint(*scripts)}".encode())
    for path in data_files(step.data):
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest().encode()


def data_files(folders: Iterable[Path]) -> list[Path]:
    """Return the data files in some folders and below."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*"))]
    return [path for path in paths if path.suffix in DATA_SUFFIXES]


def show(path: Path) -> str:
    """Return a path as seen from the kit's folder, with forward slashes."""
    return path.relative_to(ROOT).as_posix()
